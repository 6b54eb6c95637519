//! The responses: the one topic that the group shares out.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerGroupMetadata};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use super::convert;
use super::deadline::Deadline;
use super::group::{Bell, Change, Member, Plain};
use super::options::KafkaOptions;
use super::reader::note;
use super::start::{self, PATIENCE, Starts};
use crate::log::error::LogError;
use crate::log::record::{Offset, Partition, Record, Topic};

/// Leaving runs callbacks too. One that assigns must not ask the group for offsets then: nobody would answer.
impl Drop for Responses {
    fn drop(&mut self) {
        self.consumer.context().is_closing.store(true, Ordering::Relaxed);
    }
}

/// The member of the group.
pub(super) struct Responses {
    consumer: BaseConsumer<Member>,
    name: String,
    /// The next offset to read of what is assigned, of both inputs; those of requests are where reading them begins.
    pub(super) starts: Starts,
    /// Assigned, and not read before their state is restored.
    pub(super) paused: BTreeSet<Partition>,
    /// Read, and not yet handed on.
    pub(super) ready: VecDeque<Record>,
}

impl Responses {
    pub(super) fn new(options: &KafkaOptions, plain: Plain, bell: &Arc<Bell>) -> Result<Responses, LogError> {
        let context = Member {
            plain,
            names: options.topics.clone(),
            accept_gap: options.accept_gap,
            changes: Mutex::new(VecDeque::new()),
            is_closing: AtomicBool::new(false),
        };
        let failed = |source| LogError::Kafka { what: "joining the group", source };
        let mut consumer: BaseConsumer<Member> = options.member()?.create_with_context(context).map_err(failed)?;
        let bell = bell.clone();
        consumer.set_nonempty_callback(move || bell.ring());
        let name = options.name(Topic::Responses).to_owned();
        consumer.subscribe(&[&name]).map_err(failed)?;
        Ok(Responses { consumer, name, starts: Starts::new(), paused: BTreeSet::new(), ready: VecDeque::new() })
    }

    pub(super) fn next_change(&self) -> Option<Change> {
        self.consumer.context().next_change()
    }

    pub(super) fn has_changes(&self) -> bool {
        self.consumer.context().has_changes()
    }

    /// Which member of which generation we are now, unless the group has gone on without us.
    ///
    /// The order matters: a member that was thrown out has an empty identity, which a broker would accept in a
    /// transaction without looking. The client sets its mark before anybody can see that identity, so the mark is read
    /// last.
    pub(super) fn membership(&self) -> Option<ConsumerGroupMetadata> {
        let metadata = self.consumer.group_metadata();
        if self.consumer.assignment_lost() { None } else { metadata }
    }

    pub(super) fn owned(&self) -> Vec<Partition> {
        self.starts.keys().filter(|(topic, _)| *topic == Topic::Responses).map(|(_, partition)| *partition).collect()
    }

    /// Moves what is there into `ready`, up to the bounds, without waiting. Stops at a change of the assignment.
    pub(super) fn fill(&mut self, records_max: usize, bytes_max: usize) -> Result<(), LogError> {
        let mut bytes: usize = self.ready.iter().map(Record::bytes).sum();
        while self.ready.len() < records_max && bytes < bytes_max {
            if !self.poll_once(&mut bytes)? || self.has_changes() {
                break;
            }
        }
        Ok(())
    }

    /// A sign of life in the middle of something long. What it brings is kept.
    pub(super) fn sign(&mut self) -> Result<(), LogError> {
        self.poll_once(&mut 0).map(|_| ())
    }

    fn poll_once(&mut self, bytes: &mut usize) -> Result<bool, LogError> {
        match self.consumer.poll(Duration::ZERO) {
            None => return Ok(false),
            Some(Ok(message)) => {
                let key = (Topic::Responses, Partition(message.partition()));
                let offset = Offset(message.offset());
                if let Some(next) = self.starts.get_mut(&key).filter(|next| offset >= **next) {
                    *next = offset.next();
                    let record = convert::record(Topic::Responses, &message);
                    *bytes += record.bytes();
                    self.ready.push_back(record);
                }
            }
            Some(Err(KafkaError::PartitionEOF(_))) => {}
            Some(Err(error)) => note(error)?,
        }
        Ok(true)
    }

    pub(super) fn assigned(&mut self, starts: Starts) -> Vec<Partition> {
        let partitions: Vec<Partition> =
            starts.keys().filter(|(topic, _)| *topic == Topic::Responses).map(|(_, partition)| *partition).collect();
        self.paused.extend(&partitions);
        self.starts.extend(starts);
        partitions
    }

    pub(super) fn revoked(&mut self, partitions: &[Partition]) {
        self.starts.retain(|(_, partition), _| !partitions.contains(partition));
        self.paused.retain(|partition| !partitions.contains(partition));
        self.ready.retain(|record| !partitions.contains(&record.position.partition));
    }

    /// The state of the partition is restored: its responses may come.
    pub(super) fn resume(&mut self, partition: Partition) -> Result<(), LogError> {
        if !self.paused.remove(&partition) || self.has_changes() {
            // Revoked meanwhile, perhaps; a change that is due decides.
            return Ok(());
        }
        let mut list = TopicPartitionList::new();
        list.add_partition(&self.name, partition.0);
        self.consumer.resume(&list).map_err(|source| LogError::Kafka { what: "resuming a partition", source })
    }

    /// Goes back to what is committed.
    pub(super) fn rewind(&mut self, accept_gap: bool) -> Result<(), LogError> {
        self.ready.clear();
        let owned = self.owned();
        if owned.is_empty() {
            return Ok(());
        }
        self.starts = start::committed(&self.consumer, &self.consumer.context().names, &owned, accept_gap)?;
        let deadline = Deadline::after(PATIENCE);
        loop {
            match self.seek() {
                Err(_) if self.has_changes() => return Ok(()),
                Err(error) if !deadline.has_passed() => {
                    tracing::debug!(%error, "kafka: seeking again");
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(source) => return Err(LogError::Kafka { what: "going back to the committed offsets", source }),
                Ok(()) => return Ok(()),
            }
        }
    }

    fn seek(&self) -> Result<(), KafkaError> {
        let still = self.consumer.assignment()?;
        let mut list = TopicPartitionList::new();
        for ((topic, partition), offset) in &self.starts {
            let is_assigned = still.find_partition(&self.name, partition.0).is_some();
            if *topic == Topic::Responses && is_assigned && !self.paused.contains(partition) {
                list.add_partition_offset(&self.name, partition.0, KafkaOffset::Offset(offset.0))?;
            }
        }
        if list.count() == 0 {
            return Ok(());
        }
        let sought = self.consumer.seek_partitions(list, Duration::from_secs(5))?;
        sought.elements().iter().try_for_each(|one| one.error())
    }
}
