//! Readers of the inputs: one for requests, one for responses. Each is told what to read by the log, not by the group, so
//! it begins anew anywhere without asking a broker, and both topics are co-located under any assignor.
//!
//! A topic may end in records that nobody sees: marks of commits, and what was aborted. No record then says that
//! everything below the end has been read, so a reader that is asked for proof probes: it reads again from its
//! position, once the last stable offset has reached the end in question, until it is told that there is nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use super::convert;
use super::deadline::Deadline;
use super::group::{Bell, Highs, Plain};
use super::options::KafkaOptions;
use super::questions::Questions;
use crate::log::error::LogError;
use crate::log::record::{Offset, Partition, Record, Topic};

/// How often the last stable offset is asked for while it is behind the end.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// What is wanted as proof: that everything below `end` has been read.
#[derive(Debug)]
struct Probe {
    end: Offset,
    /// Reading again from the position; the next end that is reported is beyond `end`.
    is_reading: bool,
    asked: Deadline,
}

/// The consumer of one input.
pub(super) struct Reader {
    consumer: BaseConsumer<Plain>,
    highs: Arc<Highs>,
    topic: Topic,
    name: String,
    positions: BTreeMap<Partition, Offset>,
    probes: BTreeMap<Partition, Probe>,
}

impl Reader {
    pub(super) fn new(
        options: &KafkaOptions,
        topic: Topic,
        context: Plain,
        bell: &Arc<Bell>,
    ) -> Result<Reader, LogError> {
        let context = Plain { highs: Arc::default(), ..context };
        let highs = context.highs.clone();
        let mut consumer: BaseConsumer<Plain> = options
            .reader()?
            .set("statistics.interval.ms", "1000")
            .create_with_context(context)
            .map_err(|source| LogError::Kafka { what: "making the reader of an input", source })?;
        let bell = bell.clone();
        consumer.set_nonempty_callback(move || bell.ring());
        let name = options.name(topic).to_owned();
        Ok(Reader { consumer, highs, topic, name, positions: BTreeMap::new(), probes: BTreeMap::new() })
    }

    /// Reads a partition from here on, whether or not it was read before.
    pub(super) fn read_from(&mut self, partition: Partition, offset: Offset) -> Result<(), LogError> {
        if self.positions.contains_key(&partition) {
            self.unassign(partition)?;
        }
        self.positions.insert(partition, offset);
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.name, partition.0, KafkaOffset::Offset(offset.0))
            .and_then(|()| self.consumer.incremental_assign(&list))
            .map_err(|source| LogError::Kafka { what: "assigning an input", source })
    }

    pub(super) fn forget(&mut self, partition: Partition) -> Result<(), LogError> {
        self.probes.remove(&partition);
        if self.positions.remove(&partition).is_some() { self.unassign(partition) } else { Ok(()) }
    }

    fn unassign(&self, partition: Partition) -> Result<(), LogError> {
        let mut list = TopicPartitionList::new();
        list.add_partition(&self.name, partition.0);
        self.consumer
            .incremental_unassign(&list)
            .map_err(|source| LogError::Kafka { what: "giving up an input", source })
    }

    /// Everything below was read.
    pub(super) fn position(&self, partition: Partition) -> Option<Offset> {
        self.positions.get(&partition).copied()
    }

    /// How many records are behind the position, as of a second ago at most. Marks of transactions count as records.
    pub(super) fn lag(&self) -> u64 {
        let behind = |(partition, position): (&Partition, &Offset)| {
            self.highs.of(*partition).map_or(0, |high| (high.0 - position.0).max(0) as u64)
        };
        self.positions.iter().map(behind).sum()
    }

    /// Somebody needs to know when everything below `end` has been read.
    pub(super) fn want(&mut self, partition: Partition, end: Offset) {
        let is_open = self.position(partition).is_some_and(|position| position < end);
        let known = self.probes.get(&partition).is_some_and(|probe| probe.end >= end);
        if is_open && !known {
            self.probes.insert(partition, Probe { end, is_reading: false, asked: Deadline::after(ASK_EVERY) });
        }
    }

    /// True while a proof is outstanding: do not sleep for long.
    pub(super) fn is_probing(&self) -> bool {
        !self.probes.is_empty()
    }

    /// What is there now, without waiting. Returns whether a probe has reached its end, which is news for the worker.
    pub(super) fn read(
        &mut self,
        records_max: usize,
        bytes_max: usize,
        into: &mut Vec<Record>,
    ) -> Result<bool, LogError> {
        let (mut taken, mut bytes, mut is_proven) = (0, 0, false);
        while taken < records_max && bytes < bytes_max {
            match self.consumer.poll(Duration::ZERO) {
                None => break,
                Some(Ok(message)) => {
                    let (partition, offset) = (Partition(message.partition()), Offset(message.offset()));
                    let Some(position) = self.positions.get_mut(&partition).filter(|position| offset >= **position)
                    else {
                        continue;
                    };
                    *position = offset.next();
                    let record = convert::record(self.topic, &message);
                    (taken, bytes) = (taken + 1, bytes + record.bytes());
                    into.push(record);
                }
                Some(Err(KafkaError::PartitionEOF(partition))) => is_proven |= self.at_end(Partition(partition)),
                Some(Err(error)) => note(error)?,
            }
        }
        Ok(is_proven)
    }

    fn at_end(&mut self, partition: Partition) -> bool {
        let Some(probe) = self.probes.get(&partition).filter(|probe| probe.is_reading) else { return false };
        if let Some(position) = self.positions.get_mut(&partition) {
            *position = (*position).max(probe.end);
        }
        self.probes.remove(&partition);
        true
    }

    /// Moves the probes on: call when a read brought nothing.
    pub(super) fn probe(&mut self, questions: &Questions) -> Result<(), LogError> {
        let mut stable: Vec<Partition> = Vec::new();
        let positions = &self.positions;
        self.probes.retain(|partition, probe| positions.get(partition).is_some_and(|position| *position < probe.end));
        for (partition, probe) in &mut self.probes {
            if probe.is_reading || !probe.asked.has_passed() {
                continue;
            }
            probe.asked = Deadline::after(ASK_EVERY);
            if questions.stable(self.topic, *partition)? >= probe.end {
                probe.is_reading = true;
                stable.push(*partition);
            }
        }
        for partition in stable {
            if let Some(position) = self.position(partition) {
                self.read_from(partition, position)?;
            }
        }
        Ok(())
    }
}

/// Errors of a consumer are mostly news about connections, which the client mends by itself. What it cannot mend ends
/// the worker.
pub(super) fn note(error: KafkaError) -> Result<(), LogError> {
    use rdkafka::error::RDKafkaErrorCode as Code;
    const HOPELESS: [Code; 8] = [
        Code::Fatal,
        Code::FencedInstanceId,
        Code::AutoOffsetReset,
        Code::OffsetOutOfRange,
        Code::TopicAuthorizationFailed,
        Code::GroupAuthorizationFailed,
        Code::UnknownTopicOrPartition,
        Code::UnknownTopic,
    ];
    let is_fatal = matches!(error, KafkaError::MessageConsumptionFatal(_));
    if is_fatal || error.rdkafka_error_code().is_some_and(|code| HOPELESS.contains(&code)) {
        return Err(LogError::Kafka { what: "reading an input", source: error });
    }
    tracing::debug!(%error, "kafka: reading goes on after an error");
    Ok(())
}
