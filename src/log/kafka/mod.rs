//! The worker's log as a share of a Kafka cluster.
//!
//! One thread, the worker's, owns three things: a member of the group that reads responses ([`responses`]), a
//! reader of the requests of the same partitions ([`reader`]), and a transactional producer ([`txn`]). The
//! changelog is read by a fourth client that exists only while something is restored ([`restore`]).
//!
//! What holds it together:
//! - Records, and offsets of both inputs, are in one transaction, with the group's generation as of that moment.
//! - Callbacks of the group run only in a poll. While a change of the assignment waits to be told, nothing commits.
//! - After anything indefinite there is a new producer, and memory and positions go back to what is committed.

pub mod admin;
mod configured;
mod connect;
mod convert;
mod deadline;
mod ends;
mod group;
mod oauth;
mod options;
mod reader;
mod responses;
mod restore;
mod start;
pub mod topics;
mod txn;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use self::deadline::Deadline;
use self::ends::Ends;
use self::group::{Bell, Change, Plain};
use self::reader::Reader;
use self::responses::Responses;
use self::restore::Restorer;
use self::start::Starts;
use self::txn::{Cause, Ended, Placed, Ready};
use super::api::{Commit, Event, Log, Transaction, place};
use super::error::LogError;
use super::record::{Offset, Partition, Record, Topic};

pub use self::options::{Assignor, GroupProtocol, KafkaOptions, Mechanism, Secret, Security, SecurityProtocol};

/// The longest sleep between two looks at the consumers. They ring when there is something; this only bounds what a
/// missed ring would cost.
const NAP: Duration = Duration::from_millis(100);
/// While a proof is outstanding.
const NAP_PROBING: Duration = Duration::from_millis(5);

/// A worker's share of a cluster.
pub struct KafkaLog {
    options: KafkaOptions,
    plain: Plain,
    bell: Arc<Bell>,
    /// How many partitions each topic has, in the order of [`Topic::ALL`].
    partitions: [i32; 7],
    ends: Ends,
    responses: Responses,
    reader: Reader,
    restorer: Option<Restorer>,
    /// `None` from a transaction that ended badly to the rewind that must follow.
    producer: Option<Ready>,
    /// What was last committed of the partitions that are ours.
    committed: Starts,
    rewind_due: bool,
}

impl fmt::Debug for KafkaLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaLog")
            .field("group", &self.options.group)
            .field("instance", &self.options.instance)
            .finish()
    }
}

impl KafkaLog {
    /// Partitions of the inputs and the changelog, which have the same number.
    #[must_use]
    pub fn partitions(&self) -> i32 {
        self.partitions[Topic::Responses.index()]
    }

    /// Takes up what a rebalance did. The first change is told; the others wait for their turn.
    fn change(&mut self) -> Result<Option<Event>, LogError> {
        match self.responses.next_change() {
            None => Ok(None),
            Some(Change::Failed(error)) => Err(error),
            Some(Change::Assigned(starts)) => {
                self.committed.extend(starts.iter().map(|(key, offset)| (*key, *offset)));
                Ok(Some(Event::Assigned(self.responses.assigned(starts))))
            }
            Some(Change::Revoked(partitions)) => {
                self.responses.revoked(&partitions);
                self.committed.retain(|(_, partition), _| !partitions.contains(partition));
                partitions.iter().try_for_each(|partition| self.reader.forget(*partition))?;
                Ok(Some(Event::Revoked(partitions)))
            }
        }
    }

    /// What can be had now. Responses are looked for first, so that their requests are likely in the same batch, but
    /// leave a quarter of it to requests; what is handed on has requests first.
    fn batch(&mut self, records_max: usize) -> Result<(Vec<Record>, bool), LogError> {
        let bytes_max = self.options.batch_bytes_max;
        let share = (records_max - records_max / 4).max(1);
        self.responses.fill(share, bytes_max - bytes_max / 4)?;
        if self.responses.has_changes() {
            return Ok((Vec::new(), false));
        }
        let left = records_max.saturating_sub(self.responses.ready.len()).max(1);
        let mut batch = Vec::new();
        let is_proven = self.reader.read(left, bytes_max / 4, &mut batch)?;
        batch.extend(self.responses.ready.drain(..));
        Ok((batch, is_proven))
    }

    /// The records with their places, or why one of them cannot be written.
    fn placed(&self, transaction: &mut Transaction) -> Result<Vec<Placed<'_>>, LogError> {
        let records = std::mem::take(&mut transaction.records);
        let place_one = |record: super::record::Outgoing| {
            let partition = place(&record, self.partitions[record.topic.index()])?;
            Ok(Placed { name: self.options.name(record.topic), partition, record })
        };
        records.into_iter().map(place_one).collect()
    }

    /// The offsets of a transaction. One without any, of timers alone, gets those that are committed already: it is with
    /// the offsets that the group checks whether we still are who we were.
    fn offsets(&self, transaction: &Transaction) -> Result<TopicPartitionList, LogError> {
        let mut list = TopicPartitionList::new();
        let mut add = |topic: Topic, partition: Partition, offset: Offset| {
            list.add_partition_offset(self.options.name(topic), partition.0, KafkaOffset::Offset(offset.0))
                .map_err(|source| LogError::Kafka { what: "naming an offset", source })
        };
        for &(topic, partition, offset) in &transaction.offsets {
            add(topic, partition, offset)?;
        }
        if transaction.offsets.is_empty() {
            for (&(topic, partition), &offset) in &self.committed {
                add(topic, partition, offset)?;
            }
        }
        Ok(list)
    }

    /// What a transaction that did not commit means for the worker.
    fn failed(&self, commit: Commit, cause: &Cause) -> Result<Commit, LogError> {
        // The broker takes the epoch away when a transaction is open for too long. If ours was not, somebody else took it.
        if cause.is_fenced && cause.took < self.options.transaction_timeout.mul_f32(0.8) {
            let (group, instance) = (self.options.group.clone(), self.options.instance.clone());
            return Err(LogError::Fenced { group, instance });
        }
        if let Some((name, what)) = &cause.unfit {
            return Err(LogError::TopicUnfit { name: name.clone(), what: (*what).to_owned() });
        }
        tracing::warn!(error = %cause.error, took_ms = cause.took.as_millis() as u64, "kafka: {} failed", cause.what);
        Ok(commit)
    }
}

impl Log for KafkaLog {
    fn poll(&mut self, max_records: usize, wait: Duration) -> Result<Event, LogError> {
        if self.rewind_due {
            return Err(LogError::NotRewound { what: "the next poll" });
        }
        let deadline = Deadline::after(wait);
        loop {
            if let Some(event) = self.change()? {
                return Ok(event);
            }
            if self.responses.paused.is_empty() {
                self.restorer = None;
            }
            let (batch, is_proven) = self.batch(max_records.max(1))?;
            if !batch.is_empty() {
                return Ok(Event::Records(batch));
            }
            if self.responses.has_changes() {
                continue;
            }
            // A proof is news without a record: whoever waits for it may look again.
            if is_proven || deadline.has_passed() {
                return Ok(Event::Idle);
            }
            self.reader.probe(&self.ends)?;
            let nap = if self.reader.is_probing() { NAP_PROBING } else { NAP };
            self.bell.wait(deadline.left().min(nap));
        }
    }

    /// Complete means: to the end that the changelog has when the call begins, with no transaction open below it.
    fn restore(
        &mut self,
        partition: Partition,
        apply: &mut dyn FnMut(Record) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        if self.restorer.is_none() {
            self.restorer = Some(Restorer::new(&self.options, self.plain.clone())?);
        }
        let (responses, ends) = (&mut self.responses, &self.ends);
        if let Some(restorer) = &self.restorer {
            restorer.restore(ends, partition, &mut || responses.sign(), apply)?;
        }
        if self.responses.paused.contains(&partition)
            && let Some(&start) = self.responses.starts.get(&(Topic::Requests, partition))
        {
            self.reader.read_from(partition, start)?;
            self.responses.resume(partition)?;
        }
        Ok(())
    }

    fn position(&mut self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        let start = self.responses.starts.get(&(topic, partition)).copied();
        let reading = if topic == Topic::Requests { self.reader.position(partition) } else { None };
        reading.or(start).ok_or(LogError::UnknownPartition { topic, partition, partitions: self.partitions() })
    }

    fn end_offset(&mut self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        let end = self.ends.high(topic, partition)?;
        if topic == Topic::Requests {
            self.reader.want(partition, end);
        }
        Ok(end)
    }

    fn commit(&mut self, mut transaction: Transaction) -> Result<Commit, LogError> {
        if self.rewind_due {
            return Err(LogError::NotRewound { what: "the next commit" });
        }
        self.rewind_due = true;
        // A callback may have run while a partition was restored. What it took away must not be written for.
        if self.responses.has_changes() {
            return Ok(Commit::Aborted);
        }
        let offsets = self.offsets(&transaction)?;
        let Some(member) = self.responses.membership() else { return Ok(Commit::Aborted) };
        let Some(ready) = self.producer.take() else { return Err(LogError::NotRewound { what: "the next commit" }) };
        let ended = ready.commit(&self.placed(&mut transaction)?, &offsets, &member);
        match ended {
            Ended::Committed(ready) => {
                self.producer = Some(ready);
                self.rewind_due = false;
                let done = transaction.offsets.into_iter();
                self.committed.extend(done.map(|(topic, partition, offset)| ((topic, partition), offset)));
                Ok(Commit::Committed)
            }
            Ended::Aborted(ready, cause) => {
                self.producer = ready;
                self.failed(Commit::Aborted, &cause)
            }
            Ended::Indeterminate(cause) => self.failed(Commit::Indeterminate, &cause),
        }
    }

    fn rewind(&mut self) -> Result<(), LogError> {
        if self.producer.is_none() {
            self.producer = Some(connect::producer(&self.options, &self.plain)?);
        }
        self.responses.rewind(self.options.accept_gap)?;
        self.committed = self.responses.starts.clone();
        for partition in self.responses.owned() {
            if let Some(&start) = self.responses.starts.get(&(Topic::Requests, partition))
                && !self.responses.paused.contains(&partition)
            {
                self.reader.read_from(partition, start)?;
            }
        }
        self.rewind_due = false;
        Ok(())
    }
}
