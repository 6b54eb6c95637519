//! The log that commands use beside a worker, whichever it is: they write to it, or read from it.

use super::args::Begin;
use super::settings::{self, Flags};
use crate::config::{Config, LogKind};
use crate::log::kafka::{self, Appender, Follower, KafkaOptions};
use crate::log::sqlite::{SqliteClient, SqliteLog};
use crate::log::{LogError, Offset, Outgoing, Partition, Record, Topic};
use crate::worker::clock;
use anyhow::{Result, anyhow, bail};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Records that are read at once.
const READ_MAX: usize = 500;

/// The configuration of a command with `--log FILE`.
///
/// # Errors
/// Bad configuration, or a file where the log is not one.
pub(super) fn config(file: Option<&Path>, log: Option<&Path>) -> Result<Config> {
    let mut flags = Flags::new();
    settings::flag(&mut flags, "log.path", log.map(Path::display));
    let config = settings::load(file, &flags)?;
    if config.log.kind == LogKind::Kafka && log.is_some() {
        bail!("--log names an embedded log, but log.kind is \"kafka\"; leave one of them out");
    }
    Ok(config)
}

/// The topic that a person means: its short name, or the configured one.
pub(super) fn topic(config: &Config, name: &str) -> Result<Topic> {
    let configured = config.topics.named();
    let found = Topic::ALL.into_iter().find(|topic| {
        topic.name() == name || configured.iter().any(|(short, full)| *short == topic.name() && *full == name)
    });
    let names = Topic::ALL.map(Topic::name).join(", ");
    found.ok_or_else(|| anyhow!("{name:?} is no topic; use one of {names}, or a configured name"))
}

/// Where records go.
pub(super) enum Sink {
    Embedded { log: SqliteClient, written: usize },
    Kafka(Box<Appender>),
}

impl Sink {
    pub(super) fn open(config: &Config, topic: Topic) -> Result<Sink, LogError> {
        Ok(match config.log.kind {
            LogKind::Embedded => {
                let log = SqliteLog::open_client(&config.log.path, Some(config.log.partitions.into()))?;
                Sink::Embedded { log, written: 0 }
            }
            LogKind::Kafka => Sink::Kafka(Box::new(Appender::connect(KafkaOptions::from_config(config)?, topic)?)),
        })
    }

    /// Writes the records and waits until they are safe.
    pub(super) fn append(&mut self, records: Vec<Outgoing>) -> Result<(), LogError> {
        match self {
            Sink::Embedded { log, written } => {
                *written += log.append(records, clock::now().unix_millis())?.len();
                Ok(())
            }
            Sink::Kafka(log) => log.append(&records),
        }
    }

    /// How many records are known to be safe.
    pub(super) fn written(&self) -> usize {
        match self {
            Sink::Embedded { written, .. } => *written,
            Sink::Kafka(log) => log.acknowledged(),
        }
    }
}

/// Where records come from.
pub(super) enum Source {
    Embedded { log: SqliteClient, topic: Topic, next: BTreeMap<Partition, Offset>, caught_up: bool },
    Kafka(Box<Follower>),
}

impl Source {
    pub(super) fn open(config: &Config, topic: Topic, begin: Begin) -> Result<Source, LogError> {
        match config.log.kind {
            LogKind::Embedded => {
                let mut log = SqliteLog::open_client(&config.log.path, None)?;
                let mut next = BTreeMap::new();
                for partition in (0..log.partitions()).map(Partition) {
                    let from = match begin {
                        Begin::Start => log.start_offset(topic, partition)?,
                        Begin::End => log.end_offset(topic, partition)?,
                    };
                    next.insert(partition, from);
                }
                Ok(Source::Embedded { log, topic, next, caught_up: false })
            }
            LogKind::Kafka => {
                let begin = match begin {
                    Begin::Start => kafka::Begin::Start,
                    Begin::End => kafka::Begin::End,
                };
                let log = Follower::connect(KafkaOptions::from_config(config)?, topic, begin)?;
                Ok(Source::Kafka(Box::new(log)))
            }
        }
    }

    /// The next records, in the order of time; none where there were none for as long as `wait`.
    pub(super) fn read(&mut self, wait: Duration) -> Result<Vec<Record>, LogError> {
        let mut records = match self {
            Source::Kafka(log) => log.read(READ_MAX, wait)?,
            Source::Embedded { log, topic, next, caught_up } => {
                let mut records = read_all(log, *topic, next)?;
                *caught_up = records.is_empty();
                if records.is_empty() && log.wait_for_change(wait)? {
                    records = read_all(log, *topic, next)?;
                }
                records
            }
        };
        records.sort_by_key(|record| (record.timestamp_ms, record.position));
        Ok(records)
    }

    /// Has everything been read that was there at the beginning?
    pub(super) fn has_caught_up(&self) -> bool {
        match self {
            Source::Embedded { caught_up, .. } => *caught_up,
            Source::Kafka(log) => log.has_caught_up(),
        }
    }
}

fn read_all(
    log: &mut SqliteClient,
    topic: Topic,
    next: &mut BTreeMap<Partition, Offset>,
) -> Result<Vec<Record>, LogError> {
    let mut records = Vec::new();
    for (partition, from) in next {
        let read = log.read(topic, *partition, *from, READ_MAX)?;
        if let Some(last) = read.last() {
            *from = last.position.offset.next();
        }
        records.extend(read);
    }
    Ok(records)
}
