//! `toolgate.toml`: reads text it is given and reports every mistake in it at once.
//!
//! Nothing here opens a file or looks at the process's environment; `main` passes both in. A
//! value is taken from the first of: flag, environment, file, default.

mod docs;
mod kafka;
mod mistake;
mod settings;
mod source;
mod units;

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, time::Duration};

pub use docs::documentation;
pub use kafka::{DENIED, denied};
pub use mistake::{Mistake, Place};
use settings::SETTINGS;
pub use settings::{Fallback, Setting};
use source::{Found, Origin};

/// The whole configuration, checked. It holds no secret: secrets stay in files of their own.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Config {
    pub worker: Worker,
    pub log: Log,
    pub kafka: Kafka,
    pub topics: Topics,
    pub encoding: Encoding,
    pub retention: Retention,
    pub contracts: Contracts,
    pub telemetry: Telemetry,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Worker {
    pub group: String,
    pub instance: String,
    pub batch_records_max: usize,
    /// 0: one for each core.
    pub threads: usize,
    pub batch_bytes_max: usize,
    pub poll_wait: Duration,
    pub drain_timeout: Duration,
    pub parked_max: usize,
    pub skew: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Log {
    pub kind: LogKind,
    pub path: PathBuf,
    pub partitions: u16,
    pub accept_gap: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogKind {
    #[default]
    Embedded,
    Kafka,
}

/// Section `[kafka]`. A text that is empty was not given.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Kafka {
    pub bootstrap_servers: String,
    pub group_protocol: KafkaGroupProtocol,
    pub assignor: KafkaAssignor,
    pub static_membership: bool,
    pub session_timeout: Duration,
    pub transaction_timeout: Duration,
    pub replication_factor: u16,
    pub min_insync_replicas: u16,
    pub security_protocol: KafkaSecurity,
    pub ca_file: String,
    pub certificate_file: String,
    pub key_file: String,
    pub sasl_mechanism: KafkaMechanism,
    pub username: String,
    pub password_file: String,
    pub properties: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum KafkaGroupProtocol {
    #[default]
    Classic,
    Consumer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum KafkaAssignor {
    #[default]
    CooperativeSticky,
    Range,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum KafkaSecurity {
    #[default]
    Plaintext,
    Ssl,
    SaslPlaintext,
    SaslSsl,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum KafkaMechanism {
    Plain,
    ScramSha256,
    #[default]
    ScramSha512,
    OauthBearer,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Topics {
    pub requests: String,
    pub responses: String,
    pub results: String,
    pub quarantine: String,
    pub retries: String,
    pub audit: String,
    pub bindings: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Encoding {
    pub requests: RequestEncoding,
    pub responses: ResponseEncoding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RequestEncoding {
    #[default]
    Protobuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ResponseEncoding {
    #[default]
    Protobuf,
    CloudEvents,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Retention {
    pub requests: Duration,
    pub responses: Duration,
    pub results: Duration,
    pub quarantine: Duration,
    pub retries: Duration,
    pub audit: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Contracts {
    pub dir: PathBuf,
    pub secrets_dir: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Telemetry {
    pub log_format: LogFormat,
    pub log_level: LogLevel,
    pub metrics_listen: Option<SocketAddr>,
    pub allow_non_loopback: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

/// Everything a configuration is read from.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// The text of the file, if there is one.
    pub toml: Option<&'a str>,
    /// What to call the file in messages.
    pub file_name: &'a str,
    pub env: &'a BTreeMap<String, String>,
    /// Values of the command line, by `section.key`.
    pub flags: &'a BTreeMap<String, String>,
}

impl Config {
    /// Reads a file and an environment without any flags. See [`Config::from_sources`].
    pub fn parse(toml: Option<&str>, file_name: &str, env: &BTreeMap<String, String>) -> Result<Config, Vec<Mistake>> {
        Config::from_sources(Sources { toml, file_name, env, flags: &BTreeMap::new() })
    }

    /// Reads all sources and reports all mistakes, in the order of the file, then environment, then
    /// flags. A wrong value is a mistake even where a stronger source overrides it.
    pub fn from_sources(sources: Sources<'_>) -> Result<Config, Vec<Mistake>> {
        let mut mistakes = Vec::new();
        let found = source::collect(&sources, &mut mistakes);
        let mut config = Config::default();
        for (index, setting) in SETTINGS.iter().enumerate() {
            match (&setting.default, found.strongest(index)) {
                (_, Some(value)) => setting.kind.apply_unchecked(&mut config, value),
                (Fallback::Text(text), None) => setting.kind.apply_unchecked(&mut config, text),
                (Fallback::Required(what), None) if !found.attempted(index) && config.needs(setting) => {
                    mistakes.push(Mistake {
                        place: found.section_place(setting.section, &sources),
                        key: setting.name(),
                        message: format!("missing: give {what}, or set {}", setting.variable()),
                    })
                }
                (Fallback::Required(_), None) => {}
            }
        }
        config.topics.bindings = config.topics.bindings.replace("{group}", &config.worker.group);
        config.check_together(&found, &sources, &mut mistakes);
        mistakes.sort_by(|a, b| a.place.cmp(&b.place));
        if mistakes.is_empty() { Ok(config) } else { Err(mistakes) }
    }

    /// The file of the embedded log is not for those who use Kafka. `log.kind` stands before it in the table.
    fn needs(&self, setting: &Setting) -> bool {
        !(self.log.kind == LogKind::Kafka && (setting.section, setting.key) == ("log", "path"))
    }

    /// Rules that look at more than one setting.
    fn check_together(&self, found: &Found, sources: &Sources<'_>, mistakes: &mut Vec<Mistake>) {
        let mut complain = |section: &str, key: &str, message: String| {
            let place = found.place(section, key).unwrap_or_else(|| found.section_place(section, sources));
            mistakes.push(Mistake { place, key: format!("{section}.{key}"), message });
        };
        if let Some(address) = self.telemetry.metrics_listen
            && !address.ip().is_loopback()
            && !self.telemetry.allow_non_loopback
        {
            let message = format!(
                "{address} can be reached from other machines: use 127.0.0.1:{}, or set telemetry.allow_non_loopback = true",
                address.port()
            );
            complain("telemetry", "metrics_listen", message);
        }
        self.kafka.check(self.log.kind, &mut |key, message| complain("kafka", key, message));
        let topics = self.topics.named();
        for (i, (key, name)) in topics.iter().enumerate() {
            if let Some((other, _)) = topics[..i].iter().find(|(_, earlier)| earlier == name) {
                complain(
                    "topics",
                    key,
                    format!("has the same name as topics.{other}: give each topic a name of its own"),
                );
            }
        }
    }

    /// Every setting with the text that holds for it and where that text came from, for
    /// `toolgate config show`.
    pub fn explain(sources: Sources<'_>) -> Result<Vec<Explained>, Vec<Mistake>> {
        let config = Config::from_sources(sources)?;
        let found = source::collect(&sources, &mut Vec::new());
        let explain = |(index, setting): (usize, &'static Setting)| {
            let default = match setting.default {
                Fallback::Text(text) | Fallback::Required(text) => text,
            };
            let origin = found.origin(index);
            let value = found.strongest(index).unwrap_or(default).replace("{group}", &config.worker.group);
            Explained { setting, value, origin: origin_name(origin) }
        };
        Ok(SETTINGS.iter().enumerate().map(explain).collect())
    }
}

/// One line of `toolgate config show`.
#[derive(Clone, Debug)]
pub struct Explained {
    pub setting: &'static Setting,
    pub value: String,
    /// `flag`, `environment`, `file` or `default`.
    pub origin: &'static str,
}

fn origin_name(origin: Option<Origin>) -> &'static str {
    match origin {
        Some(Origin::Flag) => "flag",
        Some(Origin::Environment) => "environment",
        Some(Origin::File) => "file",
        None => "default",
    }
}

impl Topics {
    /// The seven topics by the key of their setting.
    pub fn named(&self) -> [(&'static str, &str); 7] {
        [
            ("requests", &self.requests),
            ("responses", &self.responses),
            ("results", &self.results),
            ("quarantine", &self.quarantine),
            ("retries", &self.retries),
            ("audit", &self.audit),
            ("bindings", &self.bindings),
        ]
    }
}

impl LogLevel {
    /// The name that a log filter understands.
    pub const fn name(self) -> &'static str {
        match self {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
            LogLevel::Trace => "trace",
        }
    }
}

#[cfg(test)]
mod tests;
