//! Where partitions end, in both senses: the high watermark, and the last stable offset before any open transaction.

use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;

use super::deadline::Deadline;
use super::group::Plain;
use super::options::KafkaOptions;
use super::start::PATIENCE;
use crate::log::error::LogError;
use crate::log::record::{Offset, Partition, Topic};

/// Asks brokers for the ends of partitions. Two clients, because the isolation level is a client's.
pub(super) struct Ends {
    committed: BaseConsumer<Plain>,
    uncommitted: BaseConsumer<Plain>,
    names: [String; 7],
}

impl Ends {
    pub(super) fn new(options: &KafkaOptions, context: &Plain) -> Result<Ends, LogError> {
        let client = |isolation: &str| {
            let mut config = options.client()?;
            config.set("isolation.level", isolation);
            config.create_with_context(context.clone()).map_err(|source| LogError::Connect {
                servers: options.bootstrap_servers.clone(),
                what: plain(&source),
            })
        };
        Ok(Ends {
            committed: client("read_committed")?,
            uncommitted: client("read_uncommitted")?,
            names: options.topics.clone(),
        })
    }

    /// A client to ask for metadata.
    pub(super) fn client(&self) -> &BaseConsumer<Plain> {
        &self.uncommitted
    }

    /// The next offset to be written, whether or not what is below it can be read yet.
    pub(super) fn high(&self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        self.ask(&self.uncommitted, topic, partition).map(|(_, high)| high)
    }

    /// Everything below can be read, or is known to be aborted.
    pub(super) fn stable(&self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        self.ask(&self.committed, topic, partition).map(|(_, stable)| stable)
    }

    /// Waits until no transaction is open below what is the end now. Returns the start and that end.
    pub(super) fn settled(
        &self,
        topic: Topic,
        partition: Partition,
        meanwhile: &mut dyn FnMut() -> Result<(), LogError>,
    ) -> Result<(Offset, Offset), LogError> {
        let (low, high) = self.ask(&self.uncommitted, topic, partition)?;
        // Longer than any transaction of ours may be open.
        let deadline = Deadline::after(PATIENCE * 2);
        while self.stable(topic, partition)? < high {
            if deadline.has_passed() {
                return Err(LogError::Unstable { topic, partition, waited_s: deadline.elapsed().as_secs() });
            }
            meanwhile()?;
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok((low, high))
    }

    fn ask(
        &self,
        client: &BaseConsumer<Plain>,
        topic: Topic,
        partition: Partition,
    ) -> Result<(Offset, Offset), LogError> {
        let name = &self.names[topic.index()];
        let deadline = Deadline::after(PATIENCE);
        loop {
            match client.fetch_watermarks(name, partition.0, Duration::from_secs(5)) {
                Ok((low, high)) => return Ok((Offset(low), Offset(high))),
                Err(source) if deadline.has_passed() => {
                    return Err(LogError::Kafka { what: "asking for the end of a partition", source });
                }
                Err(error) => {
                    // A leader that moves is found again in a moment.
                    tracing::debug!(%error, "kafka: asking again for the end of a partition");
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        }
    }
}

/// The message of an error of configuration, which librdkafka words well, without its type's name.
#[allow(clippy::wildcard_enum_match_arm, reason = "librdkafka's enum; the others have words of their own")]
fn plain(error: &KafkaError) -> String {
    match error {
        KafkaError::ClientConfig(_, what, name, _) => format!("{name}: {what}"),
        KafkaError::ClientCreation(what) => what.clone(),
        other => other.to_string(),
    }
}
