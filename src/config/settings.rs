//! Every setting there is, as one table.
//!
//! The parser, the names of the environment variables and `docs/configuration.md` are all read
//! from here, so that none of them can know a setting that the others do not.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, time::Duration};

use super::{
    Config, KafkaAssignor, KafkaGroupProtocol, KafkaMechanism, KafkaSecurity, LogFormat, LogKind, LogLevel,
    RequestEncoding, ResponseEncoding,
};

/// One setting: its name, what it may hold, what it holds when nobody says anything.
#[derive(Debug)]
pub struct Setting {
    pub section: &'static str,
    pub key: &'static str,
    /// One sentence for people.
    pub doc: &'static str,
    pub default: Fallback,
    pub(super) kind: Kind,
}

/// What holds when a setting is written nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// The text that would be written for it in an environment variable.
    Text(&'static str),
    /// There is no safe default; the words say what to write.
    Required(&'static str),
}

/// The type and the bounds of a setting. Each kind carries a setter of exactly its type, so a row
/// of the table whose type disagrees with [`Config`] does not compile.
pub(super) enum Kind {
    /// A group, instance or topic name as a broker allows it: `[A-Za-z0-9._-]{1,max}`.
    /// With `group`, `{group}` may stand for the consumer group's name.
    Name {
        chars_max: usize,
        group: bool,
        set: fn(&mut Config, String),
    },
    Integer {
        min: u64,
        max: u64,
        set: fn(&mut Config, u64),
    },
    /// Bounds in bytes.
    Size {
        min: u64,
        max: u64,
        set: fn(&mut Config, u64),
    },
    /// Bounds in milliseconds.
    Duration {
        min: u64,
        max: u64,
        set: fn(&mut Config, Duration),
    },
    Boolean {
        set: fn(&mut Config, bool),
    },
    Path {
        set: fn(&mut Config, PathBuf),
    },
    /// Anything without control characters, also nothing at all.
    Text {
        chars_max: usize,
        set: fn(&mut Config, String),
    },
    /// `name=value` pairs; a table in TOML.
    Properties {
        set: fn(&mut Config, BTreeMap<String, String>),
    },
    /// `off`, or an IP address and a port.
    Listen {
        set: fn(&mut Config, Option<SocketAddr>),
    },
    Choice {
        options: &'static [Choice],
    },
}

/// One of the texts that a setting may hold, and what it sets.
type Choice = (&'static str, fn(&mut Config));

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.type_name())
    }
}

impl Kind {
    pub(super) const fn type_name(&self) -> &'static str {
        match self {
            Kind::Name { .. } => "name",
            Kind::Integer { .. } => "integer",
            Kind::Size { .. } => "size",
            Kind::Duration { .. } => "duration",
            Kind::Boolean { .. } => "boolean",
            Kind::Path { .. } => "path",
            Kind::Text { .. } => "text",
            Kind::Properties { .. } => "properties",
            Kind::Listen { .. } => "address",
            Kind::Choice { .. } => "choice",
        }
    }
}

impl Setting {
    /// `section.key`
    pub fn name(&self) -> String {
        format!("{}.{}", self.section, self.key)
    }

    /// `TOOLGATE_SECTION_KEY`
    pub fn variable(&self) -> String {
        format!("TOOLGATE_{}_{}", self.section, self.key).to_ascii_uppercase()
    }
}

const fn row(
    section: &'static str,
    key: &'static str,
    kind: Kind,
    default: &'static str,
    doc: &'static str,
) -> Setting {
    Setting { section, key, doc, default: Fallback::Text(default), kind }
}

const SECOND: u64 = 1000;
const HOUR: u64 = 3600 * SECOND;
const DAY: u64 = 24 * HOUR;
const MIB: u64 = 1 << 20;

const fn name(set: fn(&mut Config, String)) -> Kind {
    Kind::Name { chars_max: 100, group: false, set }
}

/// 249 characters is what Kafka allows for a topic's name.
const fn topic(set: fn(&mut Config, String)) -> Kind {
    Kind::Name { chars_max: 249, group: false, set }
}

const fn text(set: fn(&mut Config, String)) -> Kind {
    Kind::Text { chars_max: 4096, set }
}

/// A topic shorter than an hour could lose records before a restarted worker reads them.
const fn retention(set: fn(&mut Config, Duration)) -> Kind {
    Kind::Duration { min: HOUR, max: 3650 * DAY, set }
}

/// The sections, in the order of the documentation, with a sentence each.
pub(super) const SECTIONS: &[(&str, &str)] = &[
    ("worker", "How the worker takes its input and how much it holds."),
    ("log", "Where records are kept."),
    ("kafka", "How to reach the cluster and how the group works together. Read where `log.kind` is `kafka`."),
    ("topics", "The names of the seven topics. They must differ from each other."),
    ("encoding", "How records on the input topics are written. It is configured and never guessed."),
    ("retention", "How long records are kept per topic. The changelog of bindings is compacted instead."),
    ("contracts", "Where contracts and secrets are read from."),
    ("telemetry", "Log lines and metrics."),
];

#[rustfmt::skip] // One row, one setting: the formatter would turn the table into a page per row.
pub(super) static SETTINGS: &[Setting] = &[
    row("worker", "group", name(|c, v| c.worker.group = v), "toolgate",
        "Name of the consumer group: part of the changelog's name and of every audit record."),
    row("worker", "instance", name(|c, v| c.worker.instance = v), "local",
        "Name of this worker within its group; two live workers must not share one. In Kubernetes, the pod's name."),
    row("worker", "batch_records_max", Kind::Integer { min: 1, max: 10_000, set: |c, v| c.worker.batch_records_max = v as usize }, "500",
        "The most input records that one transaction covers. Larger batches cost less per record and wait longer."),
    row("worker", "batch_bytes_max", Kind::Size { min: MIB, max: 1024 * MIB, set: |c, v| c.worker.batch_bytes_max = v as usize }, "8MiB",
        "The most bytes of input that one transaction covers; one larger record still goes alone."),
    row("worker", "threads", Kind::Integer { min: 0, max: 64, set: |c, v| c.worker.threads = v as usize }, "0",
        "Threads that judge; 0 is one for each core. A partition is judged by one thread at a time."),
    row("worker", "poll_wait", Kind::Duration { min: 1, max: 60 * SECOND, set: |c, v| c.worker.poll_wait = v }, "100ms",
        "How long to wait for input before timers are looked at."),
    row("worker", "drain_timeout", Kind::Duration { min: 0, max: HOUR, set: |c, v| c.worker.drain_timeout = v }, "20s",
        "How long the worker may go on after SIGTERM to finish what it has begun."),
    row("worker", "parked_max", Kind::Integer { min: 1, max: 1_000_000, set: |c, v| c.worker.parked_max = v as usize }, "10000",
        "The most responses that may wait for a request which is written but not yet read. When full, input pauses."),
    row("worker", "skew", Kind::Duration { min: 0, max: HOUR, set: |c, v| c.worker.skew = v }, "2s",
        "How far the dispatcher's clock may differ from ours before a deadline counts as passed."),
    row("log", "kind", Kind::Choice { options: &[
        ("embedded", |c| c.log.kind = LogKind::Embedded),
        ("kafka", |c| c.log.kind = LogKind::Kafka)] }, "embedded",
        "Which log to use: one file, or a Kafka cluster (section `[kafka]`)."),
    Setting { section: "log", key: "path", kind: Kind::Path { set: |c, v| c.log.path = v },
        default: Fallback::Required("the file that holds the embedded log, such as path = \"toolgate.db\""),
        doc: "The file of the embedded log. There is no default: a store should not appear where nobody expects it." },
    row("log", "partitions", Kind::Integer { min: 1, max: 1024, set: |c, v| c.log.partitions = v as u16 }, "4",
        "Partitions of each topic, used when the embedded log or the topics are made; it cannot be changed afterwards."),
    row("log", "accept_gap", Kind::Boolean { set: |c, v| c.log.accept_gap = v }, "false",
        "Go on although retention has removed records that were never read. Set it for one start, after you know what is gone."),
    row("kafka", "bootstrap_servers", text(|c, v| c.kafka.bootstrap_servers = v), "",
        "`host:port` of some brokers, separated by commas."),
    row("kafka", "group_protocol", Kind::Choice { options: &[
        ("classic", |c| c.kafka.group_protocol = KafkaGroupProtocol::Classic),
        ("consumer", |c| c.kafka.group_protocol = KafkaGroupProtocol::Consumer)] }, "classic",
        "Who shares out the partitions: the members, or the broker (KIP-848, from Kafka 4.0)."),
    row("kafka", "assignor", Kind::Choice { options: &[
        ("cooperative-sticky", |c| c.kafka.assignor = KafkaAssignor::CooperativeSticky),
        ("range", |c| c.kafka.assignor = KafkaAssignor::Range)] }, "cooperative-sticky",
        "How the members share out, under the classic protocol. All members must have it in common; changing it takes a full stop."),
    row("kafka", "static_membership", Kind::Boolean { set: |c, v| c.kafka.static_membership = v }, "true",
        "A worker that restarts within the session time-out gets its partitions back and nobody else's move."),
    row("kafka", "session_timeout", Kind::Duration { min: SECOND, max: 300 * SECOND, set: |c, v| c.kafka.session_timeout = v }, "10s",
        "After how long without a heartbeat a worker counts as gone. The broker's to set where it shares out."),
    row("kafka", "transaction_timeout", Kind::Duration { min: SECOND, max: 60 * SECOND, set: |c, v| c.kafka.transaction_timeout = v }, "10s",
        "How long the open transaction of a dead worker holds readers back."),
    row("kafka", "replication_factor", Kind::Integer { min: 1, max: 15, set: |c, v| c.kafka.replication_factor = v as u16 }, "3",
        "Copies of each topic that `toolgate topics apply` makes."),
    row("kafka", "min_insync_replicas", Kind::Integer { min: 1, max: 15, set: |c, v| c.kafka.min_insync_replicas = v as u16 }, "2",
        "Copies that must have a record before it counts as written."),
    row("kafka", "security_protocol", Kind::Choice { options: &[
        ("plaintext", |c| c.kafka.security_protocol = KafkaSecurity::Plaintext),
        ("ssl", |c| c.kafka.security_protocol = KafkaSecurity::Ssl),
        ("sasl_plaintext", |c| c.kafka.security_protocol = KafkaSecurity::SaslPlaintext),
        ("sasl_ssl", |c| c.kafka.security_protocol = KafkaSecurity::SaslSsl)] }, "plaintext",
        "Encryption and identity."),
    row("kafka", "ca_file", text(|c, v| c.kafka.ca_file = v), "",
        "Certificates to trust (PEM). Without it, those of the system."),
    row("kafka", "certificate_file", text(|c, v| c.kafka.certificate_file = v), "",
        "Our certificate (PEM), for mutual TLS."),
    row("kafka", "key_file", text(|c, v| c.kafka.key_file = v), "", "The key of our certificate (PEM, without a passphrase)."),
    row("kafka", "sasl_mechanism", Kind::Choice { options: &[
        ("plain", |c| c.kafka.sasl_mechanism = KafkaMechanism::Plain),
        ("scram-sha-256", |c| c.kafka.sasl_mechanism = KafkaMechanism::ScramSha256),
        ("scram-sha-512", |c| c.kafka.sasl_mechanism = KafkaMechanism::ScramSha512),
        ("oauthbearer", |c| c.kafka.sasl_mechanism = KafkaMechanism::OauthBearer)] }, "scram-sha-512",
        "How we say who we are, with the two protocols that begin with `sasl`."),
    row("kafka", "username", text(|c, v| c.kafka.username = v), "", "The user, except with `oauthbearer`."),
    row("kafka", "password_file", text(|c, v| c.kafka.password_file = v), "",
        "The file that holds the password; with `oauthbearer` the token, which is read again before it expires."),
    row("kafka", "properties", Kind::Properties { set: |c, v| c.kafka.properties = v }, "",
        "Further properties of librdkafka, as a table. Those that would break a promise, or hold a secret, are refused."),
    row("topics", "requests", topic(|c, v| c.topics.requests = v), "tool.requests", "Announced requests (input)."),
    row("topics", "responses", topic(|c, v| c.topics.responses = v), "tool.responses", "Raw tool responses (input)."),
    row("topics", "results", topic(|c, v| c.topics.results = v), "tool.results", "What agents read."),
    row("topics", "quarantine", topic(|c, v| c.topics.quarantine = v), "tool.quarantine", "Refused responses, for people."),
    row("topics", "retries", topic(|c, v| c.topics.retries = v), "tool.retries", "Directives for the dispatcher."),
    row("topics", "audit", topic(|c, v| c.topics.audit = v), "tool.audit", "One record per decision."),
    row("topics", "bindings", Kind::Name { chars_max: 149, group: true, set: |c, v| c.topics.bindings = v }, "toolgate.{group}.bindings",
        "The changelog from which state is rebuilt. `{group}` stands for worker.group."),
    row("encoding", "requests", Kind::Choice { options: &[("protobuf", |c| c.encoding.requests = RequestEncoding::Protobuf)] }, "protobuf",
        "Encoding of the requests topic."),
    row("encoding", "responses", Kind::Choice { options: &[
        ("protobuf", |c| c.encoding.responses = ResponseEncoding::Protobuf),
        ("cloudevents", |c| c.encoding.responses = ResponseEncoding::CloudEvents)] }, "protobuf",
        "Encoding of the responses topic: `ToolResponse`, or CloudEvents in binary mode."),
    row("retention", "requests", retention(|c, v| c.retention.requests = v), "7d", "Age at which requests are removed."),
    row("retention", "responses", retention(|c, v| c.retention.responses = v), "7d", "Age at which raw responses are removed."),
    row("retention", "results", retention(|c, v| c.retention.results = v), "7d", "Age at which results are removed."),
    row("retention", "quarantine", retention(|c, v| c.retention.quarantine = v), "30d", "Age at which quarantine records are removed."),
    row("retention", "retries", retention(|c, v| c.retention.retries = v), "7d", "Age at which retry directives are removed."),
    row("retention", "audit", retention(|c, v| c.retention.audit = v), "365d", "Age at which audit records are removed."),
    row("contracts", "dir", Kind::Path { set: |c, v| c.contracts.dir = v }, "schemas",
        "The folder that holds `tools/<tool>/v<N>/`. A relative path counts from the working directory."),
    row("contracts", "secrets_dir", Kind::Path { set: |c, v| c.contracts.secrets_dir = v }, "secrets",
        "The folder with one file per signing secret, named as contracts name it. Read only if a contract names a secret."),
    row("telemetry", "log_format", Kind::Choice { options: &[
        ("text", |c| c.telemetry.log_format = LogFormat::Text),
        ("json", |c| c.telemetry.log_format = LogFormat::Json)] }, "text",
        "How log lines on standard error look."),
    row("telemetry", "log_level", Kind::Choice { options: &[
        ("error", |c| c.telemetry.log_level = LogLevel::Error),
        ("warn", |c| c.telemetry.log_level = LogLevel::Warn),
        ("info", |c| c.telemetry.log_level = LogLevel::Info),
        ("debug", |c| c.telemetry.log_level = LogLevel::Debug),
        ("trace", |c| c.telemetry.log_level = LogLevel::Trace)] }, "info",
        "The least serious line that is written."),
    row("telemetry", "metrics_listen", Kind::Listen { set: |c, v| c.telemetry.metrics_listen = v }, "off",
        "Where `/metrics`, `/livez` and `/readyz` are served, such as `127.0.0.1:9464`."),
    row("telemetry", "allow_non_loopback", Kind::Boolean { set: |c, v| c.telemetry.allow_non_loopback = v }, "false",
        "Allows `metrics_listen` on an address that other machines can reach. It has no authentication of its own."),
];
