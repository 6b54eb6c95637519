//! From `toolgate.toml` to what the log is told.

use std::path::{Path, PathBuf};

use super::options::{Assignor, GroupProtocol, KafkaOptions, Mechanism, Secret, Security, SecurityProtocol};
use crate::config::{Config, Kafka, KafkaAssignor, KafkaGroupProtocol, KafkaMechanism, KafkaSecurity};
use crate::log::error::LogError;
use crate::log::record::Topic;

impl KafkaOptions {
    /// Takes the settings over and reads the password from its file.
    ///
    /// # Errors
    /// The password file cannot be read.
    pub fn from_config(config: &Config) -> Result<KafkaOptions, LogError> {
        let kafka = &config.kafka;
        let names = config.topics.named();
        // The table of names has the order of the topics; a test holds the two together.
        let topics = Topic::ALL.map(|topic| names[topic.index()].1.to_owned());
        Ok(KafkaOptions {
            bootstrap_servers: kafka.bootstrap_servers.clone(),
            group: config.worker.group.clone(),
            instance: config.worker.instance.clone(),
            group_protocol: match kafka.group_protocol {
                KafkaGroupProtocol::Classic => GroupProtocol::Classic,
                KafkaGroupProtocol::Consumer => GroupProtocol::Consumer,
            },
            assignor: match kafka.assignor {
                KafkaAssignor::CooperativeSticky => Assignor::CooperativeSticky,
                KafkaAssignor::Range => Assignor::Range,
            },
            is_static: kafka.static_membership,
            session_timeout: kafka.session_timeout,
            transaction_timeout: kafka.transaction_timeout,
            topics,
            security: security(kafka)?,
            properties: kafka.properties.clone(),
            accept_gap: config.log.accept_gap,
            batch_bytes_max: config.worker.batch_bytes_max,
        })
    }
}

fn security(kafka: &Kafka) -> Result<Security, LogError> {
    let (protocol, is_sasl) = match kafka.security_protocol {
        KafkaSecurity::Plaintext => (SecurityProtocol::Plaintext, false),
        KafkaSecurity::Ssl => (SecurityProtocol::Ssl, false),
        KafkaSecurity::SaslPlaintext => (SecurityProtocol::SaslPlaintext, true),
        KafkaSecurity::SaslSsl => (SecurityProtocol::SaslSsl, true),
    };
    let mechanism = match kafka.sasl_mechanism {
        KafkaMechanism::Plain => Mechanism::Plain,
        KafkaMechanism::ScramSha256 => Mechanism::ScramSha256,
        KafkaMechanism::ScramSha512 => Mechanism::ScramSha512,
        KafkaMechanism::OauthBearer => Mechanism::OauthBearer,
    };
    let is_token = mechanism == Mechanism::OauthBearer;
    let password = if is_sasl && !is_token { password(Path::new(&kafka.password_file))? } else { Secret::default() };
    Ok(Security {
        protocol,
        ca_file: given(&kafka.ca_file),
        certificate_file: given(&kafka.certificate_file),
        key_file: given(&kafka.key_file),
        mechanism,
        username: kafka.username.clone(),
        password,
        token_file: given(&kafka.password_file).filter(|_| is_sasl && is_token),
    })
}

fn given(text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| PathBuf::from(text))
}

/// The first line of the file: an editor may have added a line end.
fn password(path: &Path) -> Result<Secret, LogError> {
    let text = std::fs::read_to_string(path).map_err(|source| LogError::Io {
        path: path.to_owned(),
        what: "reading the password",
        source,
    })?;
    Ok(Secret(text.lines().next().unwrap_or_default().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_order_of_the_topics() {
        let config = Config::default();
        for topic in Topic::ALL {
            assert_eq!(config.topics.named()[topic.index()].0, topic.name());
        }
    }
}
