//! What a worker is told about its cluster, and the librdkafka properties that follow from it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use rdkafka::ClientConfig;

use crate::config::denied;
use crate::log::api::RECORD_BYTES_MAX;
use crate::log::error::LogError;
use crate::log::record::Topic;

/// How the members of a group share out the partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupProtocol {
    /// The members do, over JoinGroup and SyncGroup; incrementally, with `cooperative-sticky`.
    #[default]
    Classic,
    /// The broker does (KIP-848). The session time-out is then the broker's to set.
    Consumer,
}

/// The rule that the classic protocol shares out by. All members of a group must have it in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Assignor {
    #[default]
    CooperativeSticky,
    Range,
}

/// How connections are made and who we say we are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecurityProtocol {
    #[default]
    Plaintext,
    Ssl,
    SaslPlaintext,
    SaslSsl,
}

/// A SASL mechanism.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mechanism {
    Plain,
    ScramSha256,
    #[default]
    ScramSha512,
    /// The password file holds a token, read anew whenever the old one is about to expire.
    OauthBearer,
}

/// A secret that no message and no `Debug` shows.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Encryption and identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Security {
    pub protocol: SecurityProtocol,
    /// PEM; without it the system's certificates are trusted.
    pub ca_file: Option<PathBuf>,
    /// PEM, for mutual TLS; both or neither.
    pub certificate_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
    pub mechanism: Mechanism,
    pub username: String,
    pub password: Secret,
    /// Where an `OauthBearer` token is read from.
    pub token_file: Option<PathBuf>,
}

/// Everything a worker needs to know to use a cluster.
#[derive(Clone, Debug)]
pub struct KafkaOptions {
    /// `host:port` of some brokers, separated by commas.
    pub bootstrap_servers: String,
    pub group: String,
    /// The name of this worker among those of its group; unique, and the same again after a restart.
    pub instance: String,
    pub group_protocol: GroupProtocol,
    pub assignor: Assignor,
    /// Static membership: a restart within the session time-out moves no partitions.
    pub is_static: bool,
    /// After how long without a heartbeat a worker counts as gone.
    pub session_timeout: Duration,
    /// How long the broker leaves a transaction of a dead worker open; readers are held back that long.
    pub transaction_timeout: Duration,
    /// The names of the topics, in the order of [`Topic::ALL`].
    pub topics: [String; 7],
    pub security: Security,
    /// Further librdkafka properties; see [`denied`].
    pub properties: BTreeMap<String, String>,
    /// Goes on at the start of the log where unread records are gone, instead of stopping.
    pub accept_gap: bool,
    /// About how many bytes a batch may hold.
    pub batch_bytes_max: usize,
}

impl KafkaOptions {
    /// Options with the default topics, no encryption, and the time-outs that are recommended.
    #[must_use]
    pub fn new(bootstrap_servers: &str, group: &str, instance: &str) -> KafkaOptions {
        KafkaOptions {
            bootstrap_servers: bootstrap_servers.to_owned(),
            group: group.to_owned(),
            instance: instance.to_owned(),
            group_protocol: GroupProtocol::default(),
            assignor: Assignor::default(),
            is_static: true,
            session_timeout: Duration::from_secs(10),
            transaction_timeout: Duration::from_secs(10),
            topics: Topic::ALL.map(|topic| topic.default_name(group)),
            security: Security::default(),
            properties: BTreeMap::new(),
            accept_gap: false,
            batch_bytes_max: 4 * 1024 * 1024,
        }
    }

    /// The name of a topic on the broker.
    #[must_use]
    pub fn name(&self, topic: Topic) -> &str {
        &self.topics[topic.index()]
    }

    /// Group and instance: a restarted worker fences what its past left open, and nobody else.
    #[must_use]
    pub fn transactional_id(&self) -> String {
        format!("toolgate.{}.{}", self.group, self.instance)
    }

    /// What all clients have in common.
    pub(crate) fn client(&self) -> Result<ClientConfig, LogError> {
        let mut config = ClientConfig::new();
        for (name, value) in &self.properties {
            if let Some(why) = denied(name) {
                return Err(LogError::Property { name: name.clone(), why });
            }
            config.set(name, value);
        }
        config.set("bootstrap.servers", &self.bootstrap_servers);
        config.set("client.id", format!("toolgate-{}", self.instance));
        config.set("allow.auto.create.topics", "false");
        config.set("message.max.bytes", (RECORD_BYTES_MAX + 64 * 1024).to_string());
        self.security.apply(&mut config)?;
        Ok(config)
    }

    /// A consumer that reads committed records and commits nothing by itself.
    pub(super) fn reader(&self) -> Result<ClientConfig, LogError> {
        let mut config = self.client()?;
        config.set("group.id", &self.group);
        config.set("enable.auto.commit", "false");
        config.set("enable.auto.offset.store", "false");
        config.set("isolation.level", "read_committed");
        // What retention ate is never skipped silently.
        config.set("auto.offset.reset", "error");
        config.set("enable.partition.eof", "true");
        // The default of a second stalls a restore whenever its queue has been full.
        config.set("fetch.queue.backoff.ms", "10");
        config.set("fetch.wait.max.ms", "100");
        // Room for the largest record, and a bound on memory.
        config.set("queued.max.messages.kbytes", "32768");
        config.set("fetch.message.max.bytes", (RECORD_BYTES_MAX + 64 * 1024).to_string());
        Ok(config)
    }

    /// The member of the group.
    pub(super) fn member(&self) -> Result<ClientConfig, LogError> {
        let mut config = self.reader()?;
        if self.is_static {
            config.set("group.instance.id", &self.instance);
        }
        match self.group_protocol {
            GroupProtocol::Classic => {
                let timeout_ms = self.session_timeout.as_millis();
                config.set("session.timeout.ms", timeout_ms.to_string());
                config.set("heartbeat.interval.ms", (timeout_ms / 5).max(1).to_string());
                config.set("partition.assignment.strategy", self.assignor.name());
            }
            // The other three are the broker's, and librdkafka refuses them here.
            GroupProtocol::Consumer => {
                config.set("group.protocol", "consumer");
            }
        }
        Ok(config)
    }

    /// The transactional producer.
    pub(super) fn producer(&self) -> Result<ClientConfig, LogError> {
        let mut config = self.client()?;
        let timeout_ms = self.transaction_timeout.as_millis().to_string();
        config.set("transactional.id", self.transactional_id());
        config.set("transaction.timeout.ms", &timeout_ms);
        // librdkafka gives up on a record no later than the broker gives up on its transaction.
        config.set("message.timeout.ms", &timeout_ms);
        config.set("enable.idempotence", "true");
        config.set("acks", "all");
        config.set("linger.ms", "1");
        config.set("queue.buffering.max.messages", "200000");
        config.set("queue.buffering.max.kbytes", "1048576");
        Ok(config)
    }
}

impl Assignor {
    const fn name(self) -> &'static str {
        match self {
            Assignor::CooperativeSticky => "cooperative-sticky",
            Assignor::Range => "range",
        }
    }
}

impl Mechanism {
    const fn name(self) -> &'static str {
        match self {
            Mechanism::Plain => "PLAIN",
            Mechanism::ScramSha256 => "SCRAM-SHA-256",
            Mechanism::ScramSha512 => "SCRAM-SHA-512",
            Mechanism::OauthBearer => "OAUTHBEARER",
        }
    }
}

impl Security {
    fn apply(&self, config: &mut ClientConfig) -> Result<(), LogError> {
        let (name, is_tls, is_sasl) = match self.protocol {
            SecurityProtocol::Plaintext => ("plaintext", false, false),
            SecurityProtocol::Ssl => ("ssl", true, false),
            SecurityProtocol::SaslPlaintext => ("sasl_plaintext", false, true),
            SecurityProtocol::SaslSsl => ("sasl_ssl", true, true),
        };
        config.set("security.protocol", name);
        if is_tls {
            let files = [
                ("kafka.ca_file", "ssl.ca.location", &self.ca_file),
                ("kafka.certificate_file", "ssl.certificate.location", &self.certificate_file),
                ("kafka.key_file", "ssl.key.location", &self.key_file),
            ];
            for (setting, property, file) in files {
                if let Some(path) = file {
                    readable(setting, path)?;
                    config.set(property, path.to_string_lossy());
                }
            }
        }
        if is_sasl {
            config.set("sasl.mechanism", self.mechanism.name());
            if self.mechanism != Mechanism::OauthBearer {
                config.set("sasl.username", &self.username);
                config.set("sasl.password", &self.password.0);
            }
        }
        Ok(())
    }
}

/// librdkafka's own message for this names an OpenSSL routine and not the file.
fn readable(setting: &'static str, path: &std::path::Path) -> Result<(), LogError> {
    // A folder can be opened but not read.
    match std::fs::read(path) {
        Ok(_) => Ok(()),
        Err(source) => Err(LogError::File { setting, path: path.to_owned(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_break_a_promise_is_denied_and_says_why() {
        let mut options = KafkaOptions::new("127.0.0.1:1", "g", "i");
        options.properties.insert("acks".into(), "1".into());
        let error = options.client().expect_err("acks is denied").to_string();
        assert!(error.contains("acks") && error.contains("all replicas"), "{error}");
    }

    #[test]
    fn no_secret_is_printed() {
        let mut options = KafkaOptions::new("127.0.0.1:1", "g", "i");
        options.security.password = Secret("hunter2".into());
        assert!(!format!("{options:?}").contains("hunter2"));
    }
}
