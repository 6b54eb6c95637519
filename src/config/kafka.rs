//! Which librdkafka properties may be passed through, and which may not.

use std::collections::BTreeMap;

use super::{Kafka, KafkaMechanism, KafkaSecurity, LogKind};

/// Properties (or prefixes of them, ending in a dot) that may not be passed through, each with the reason. What is not
/// listed is for the operator to judge: buffers, back-offs, racks, statistics.
pub const DENIED: &[(&str, &str)] = &[
    ("bootstrap.servers", "it is kafka.bootstrap_servers"),
    ("metadata.broker.list", "it is kafka.bootstrap_servers"),
    ("group.id", "it is worker.group"),
    ("group.instance.id", "it is worker.instance"),
    ("client.id", "it is made from worker.instance"),
    ("transactional.id", "it is made from worker.group and worker.instance, so that a restart fences its own past"),
    ("transaction.timeout.ms", "it bounds how long a dead worker holds readers back"),
    ("enable.idempotence", "without it records could be written twice"),
    ("enable.gapless.guarantee", "the transaction already guarantees it"),
    ("acks", "all replicas must have what was committed"),
    ("request.required.acks", "all replicas must have what was committed"),
    ("isolation.level", "the worker must not see what was never committed"),
    ("enable.auto.commit", "offsets are committed with the records, or not at all"),
    ("auto.commit.enable", "offsets are committed with the records, or not at all"),
    ("auto.commit.interval.ms", "offsets are committed with the records, or not at all"),
    ("enable.auto.offset.store", "offsets are committed with the records, or not at all"),
    ("auto.offset.reset", "records that are gone must not be skipped silently; see --accept-gap"),
    ("enable.partition.eof", "a restore is complete when it has seen the end"),
    ("group.protocol", "it is kafka.group_protocol"),
    ("session.timeout.ms", "it is kafka.session_timeout"),
    ("partition.assignment.strategy", "it is kafka.assignor"),
    ("partitioner", "the partition of a key is computed by toolgate, as the Java client does"),
    ("allow.auto.create.topics", "topics are made by `toolgate topics apply`"),
    ("message.timeout.ms", "it must not be longer than the transaction"),
    ("delivery.timeout.ms", "it must not be longer than the transaction"),
    ("security.protocol", "it is kafka.security_protocol"),
    ("sasl.", "SASL is configured in [kafka], with secrets in files"),
    ("ssl.key.password", "secrets belong in files"),
    ("ssl.keystore.password", "secrets belong in files"),
    ("ssl.key.pem", "secrets belong in files; it is kafka.key_file"),
    ("enable.ssl.certificate.verification", "an unverified broker could be anybody"),
    ("ssl.endpoint.identification.algorithm", "an unverified broker could be anybody"),
    ("plugin.library.paths", "it loads code into the worker"),
];

/// Words in the name of a property that holds a secret. Secrets belong in files, where nothing prints them.
const SECRETS: [&str; 4] = ["password", "secret", "token", ".pem"];

/// Why a property may not be passed through, if it may not.
#[must_use]
pub fn denied(property: &str) -> Option<&'static str> {
    let name = property.trim().to_ascii_lowercase();
    let is_listed = |denied: &str| name == denied || (denied.ends_with('.') && name.starts_with(denied));
    let listed = DENIED.iter().find(|(denied, _)| is_listed(denied)).map(|(_, why)| *why);
    listed.or_else(|| SECRETS.iter().any(|word| name.contains(word)).then_some("secrets belong in files"))
}

impl Kafka {
    /// Rules that look at more than one setting of the section.
    pub(super) fn check(&self, kind: LogKind, complain: &mut dyn FnMut(&str, String)) {
        if kind == LogKind::Embedded {
            if !self.bootstrap_servers.is_empty() {
                complain("bootstrap_servers", "has no effect: set log.kind = \"kafka\", or remove it".to_owned());
            }
            return;
        }
        if self.bootstrap_servers.is_empty() {
            complain(
                "bootstrap_servers",
                "missing: give host:port of some brokers, or set TOOLGATE_KAFKA_BOOTSTRAP_SERVERS".to_owned(),
            );
        }
        if self.certificate_file.is_empty() != self.key_file.is_empty() {
            complain("key_file", "certificate_file and key_file belong together: give both or neither".to_owned());
        }
        if self.min_insync_replicas > self.replication_factor {
            complain(
                "min_insync_replicas",
                "is more than replication_factor: nothing could ever be written".to_owned(),
            );
        }
        let is_sasl = matches!(self.security_protocol, KafkaSecurity::SaslPlaintext | KafkaSecurity::SaslSsl);
        if is_sasl && self.password_file.is_empty() {
            complain("password_file", "missing: give the file that holds the password or token".to_owned());
        }
        if is_sasl && self.username.is_empty() && self.sasl_mechanism != KafkaMechanism::OauthBearer {
            complain("username", "missing: give the user to connect as".to_owned());
        }
        for name in self.properties.keys() {
            if let Some(why) = denied(name) {
                complain("properties", format!("`{name}` can't be passed through: {why}"));
            }
        }
    }
}

/// Reads `name=value` pairs, separated by semicolons or line ends. `None` where one is not such a pair.
pub(super) fn parse(text: &str) -> Option<BTreeMap<String, String>> {
    let pairs = text.split([';', '\n']).map(str::trim).filter(|pair| !pair.is_empty());
    let read = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || matches!(b, b'.' | b'_'));
        let is_value = !value.chars().any(char::is_control);
        (is_name && is_value).then(|| (name.to_owned(), value.to_owned()))
    };
    pairs.map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_break_a_promise_is_denied_and_says_why() {
        for name in ["acks", "isolation.level", "sasl.password", " Enable.Idempotence ", "sasl.oauthbearer.config"] {
            assert!(denied(name).is_some_and(|why| !why.is_empty()), "{name}");
        }
        assert_eq!(denied("ssl.some.future.secret"), Some("secrets belong in files"));
        for name in ["socket.keepalive.enable", "client.rack", "statistics.interval.ms"] {
            assert_eq!(denied(name), None, "{name}");
        }
    }

    #[test]
    fn pairs_are_read_and_anything_else_is_refused() {
        let read = parse("client.rack=a; socket.nagle.disable = true\n").expect("pairs");
        assert_eq!(
            read.into_iter().map(|(name, value)| name + &value).collect::<Vec<_>>(),
            ["client.racka", "socket.nagle.disabletrue"]
        );
        assert_eq!(parse("").map(|pairs| pairs.len()), Some(0));
        for bad in ["client.rack", "=a", "Client Rack=a"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
