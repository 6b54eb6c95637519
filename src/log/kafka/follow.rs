//! Reading a topic beside a worker, committed records alone: `toolgate tail`. It joins no group and commits nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use super::connect;
use super::convert;
use super::deadline::Deadline;
use super::group::Plain;
use super::hello;
use super::options::KafkaOptions;
use super::questions::{PATIENCE, Questions};
use super::reader::note;
use super::rights;
use crate::log::error::LogError;
use crate::log::record::{Offset, Partition, Record, Topic};

/// About how many bytes one read brings.
const READ_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Where reading begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// With the oldest record that is left.
    Start,
    /// With what is committed from now on.
    End,
}

/// A reader of all partitions of a topic.
pub struct Follower {
    consumer: BaseConsumer<Plain>,
    options: KafkaOptions,
    topic: Topic,
    /// What was committed when reading began, of partitions where it has not been read yet.
    ends: BTreeMap<Partition, Offset>,
    /// Starts anew with every sign that brokers are there.
    silence: Deadline,
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").field("topic", &self.topic).field("ends", &self.ends).finish()
    }
}

impl Follower {
    /// Connects, and finds out where the topic begins and ends.
    ///
    /// # Errors
    /// No broker, wrong credentials, no such topic, no right to read it.
    pub fn connect(options: KafkaOptions, topic: Topic, begin: Begin) -> Result<Follower, LogError> {
        let denied = |error| forbidden(&options, topic, error);
        let client = hello::greet(&options)?;
        let partitions = connect::partitions_of(&options, &client, topic).map_err(denied)?;
        let plain = connect::context(&options);
        let questions = Questions::new(&options, &plain)?;
        let (mut list, mut ends) = (TopicPartitionList::new(), BTreeMap::new());
        for partition in (0..partitions).map(Partition) {
            let (low, stable) = questions.readable(topic, partition).map_err(denied)?;
            let from = if begin == Begin::Start { low } else { stable };
            if from < stable {
                ends.insert(partition, stable);
            }
            list.add_partition_offset(options.name(topic), partition.0, KafkaOffset::Offset(from.0))
                .map_err(|source| LogError::Kafka { what: "naming an offset", source })?;
        }
        let failed = |source| LogError::Kafka { what: "making the reader", source };
        // A person who looks on need not know that retention was faster.
        let consumer: BaseConsumer<Plain> =
            options.reader()?.set("auto.offset.reset", "earliest").create_with_context(plain).map_err(failed)?;
        consumer.assign(&list).map_err(failed)?;
        Ok(Follower { consumer, options, topic, ends, silence: Deadline::after(PATIENCE) })
    }

    /// Has everything been read that was committed when reading began?
    #[must_use]
    pub fn has_caught_up(&self) -> bool {
        self.ends.is_empty()
    }

    /// What comes next, at most `max` records and about 16 MiB, in order within a partition. Waits up to `wait` for the
    /// first of them.
    ///
    /// # Errors
    /// A right that is missing, or no sign of a broker for a minute while there is something to read.
    pub fn read(&mut self, max: usize, wait: Duration) -> Result<Vec<Record>, LogError> {
        let deadline = Deadline::after(wait);
        let (mut records, mut bytes) = (Vec::new(), 0);
        while records.len() < max && bytes < READ_BYTES_MAX {
            let patience = if records.is_empty() { deadline.left() } else { Duration::ZERO };
            match self.consumer.poll(patience) {
                None if records.is_empty() && !deadline.has_passed() => continue,
                None => break,
                Some(Ok(message)) => {
                    let record = convert::record(self.topic, &message);
                    let (partition, next) = (Partition(message.partition()), record.position.offset.next());
                    if self.ends.get(&partition).is_some_and(|end| next >= *end) {
                        self.ends.remove(&partition);
                    }
                    bytes += record.bytes();
                    records.push(record);
                }
                Some(Err(KafkaError::PartitionEOF(partition))) => drop(self.ends.remove(&Partition(partition))),
                Some(Err(error)) => {
                    self.forgive(error)?;
                    continue;
                }
            }
            self.silence = Deadline::after(PATIENCE);
        }
        if self.silence.has_passed() && !self.has_caught_up() {
            let what = format!("nothing was heard for {} s", PATIENCE.as_secs());
            return Err(LogError::Unreachable { servers: self.options.bootstrap_servers.clone(), what });
        }
        Ok(records)
    }

    /// The client library looks for the group although nobody joins it, so that right may be missing.
    fn forgive(&self, error: KafkaError) -> Result<(), LogError> {
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::GroupAuthorizationFailed) {
            return Ok(());
        }
        note(error, self.options.name(self.topic)).map_err(|error| forbidden(&self.options, self.topic, error))
    }
}

/// Whoever looks on is not a worker, and needs another right than a worker on the same topic.
fn forbidden(options: &KafkaOptions, topic: Topic, error: LogError) -> LogError {
    rights::needs(options, topic, "READ", error)
}
