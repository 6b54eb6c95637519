//! The worker's log as a share of a Kafka cluster.
//!
//! One thread, the worker's, owns a member of the group, which says what is ours ([`membership`]); two readers, of
//! the responses and of the requests of those partitions ([`reader`]); a transactional producer ([`txn`]); and clients to
//! ask brokers ([`questions`]). The changelog is read by a client that exists only while something is restored
//! ([`restore`]).
//!
//! What holds it together:
//! - Records, and offsets of both inputs, are in one transaction, with the group's generation as of that moment.
//! - Callbacks of the group run only in a poll. While a change of the assignment waits to be told, nothing commits.
//! - After anything indefinite there is a new producer, and memory and positions go back to what is committed.

pub mod admin;
mod append;
mod configured;
mod connect;
mod convert;
mod deadline;
mod follow;
mod group;
mod hello;
mod membership;
mod oauth;
mod options;
mod questions;
mod reader;
mod restore;
pub mod rights;
pub mod sample;
mod start;
pub mod topics;
mod txn;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::error::RDKafkaErrorCode;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use self::deadline::Deadline;
use self::group::{Bell, Change, Plain};
use self::membership::Membership;
use self::questions::Questions;
use self::reader::Reader;
use self::restore::Restorer;
use self::start::Starts;
use self::txn::{Cause, Ended, Placed, Ready};
use super::api::{Commit, Event, Log, Transaction, place};
use super::error::LogError;
use super::record::{Offset, Partition, Record, Topic};

pub use self::append::Appender;
pub use self::follow::{Begin, Follower};
pub use self::options::{Assignor, GroupProtocol, KafkaOptions, Mechanism, Secret, Security, SecurityProtocol};

/// The longest sleep between two looks at the consumers. They ring when there is something; this only bounds what a
/// missed ring would cost.
const NAP: Duration = Duration::from_millis(100);
/// Between two tries to join under a name that is not released yet.
const REJOIN_PAUSE: Duration = Duration::from_secs(1);
/// While a proof is outstanding.
const NAP_PROBING: Duration = Duration::from_millis(5);

/// A worker's share of a cluster.
pub struct KafkaLog {
    options: KafkaOptions,
    plain: Plain,
    bell: Arc<Bell>,
    /// How many partitions each topic has, in the order of [`Topic::ALL`].
    partitions: [i32; 7],
    questions: Questions,
    membership: Membership,
    requests: Reader,
    responses: Reader,
    restorer: Option<Restorer>,
    /// `None` from a transaction that ended badly to the rewind that must follow.
    producer: Option<Ready>,
    /// What was last committed of the partitions that are ours.
    committed: Starts,
    /// Ours, and not read before their state is restored.
    unrestored: BTreeSet<Partition>,
    rewind_due: bool,
    /// When the oldest record of the last batch was written.
    oldest_ms: Option<i64>,
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

    /// How many input records are written and not read, as of a second ago at most, and when the oldest of the last batch
    /// was written, in milliseconds since the epoch; not where everything is read, or nothing was yet.
    #[must_use]
    pub fn lag(&self) -> (u64, Option<i64>) {
        let behind = self.requests.lag() + self.responses.lag();
        (behind, self.oldest_ms.filter(|_| behind > 0))
    }

    /// Whether everything below `end` has been read of an input. Asking makes sure that it becomes true, also where the
    /// topic ends in what nobody sees.
    ///
    /// # Errors
    /// The partition is not ours.
    pub fn has_read_to(&mut self, topic: Topic, partition: Partition, end: Offset) -> Result<bool, LogError> {
        let reader = if topic == Topic::Requests { &mut self.requests } else { &mut self.responses };
        reader.want(partition, end);
        Ok(self.position(topic, partition)? >= end)
    }

    /// Takes up what a rebalance did. The first change is told; the others wait for their turn.
    fn change(&mut self) -> Result<Option<Event>, LogError> {
        match self.membership.next_change() {
            None => Ok(None),
            Some(Change::Failed(error)) => Err(error),
            Some(Change::Assigned(partitions)) => {
                let starts = self.starts(&partitions)?;
                self.committed.extend(starts);
                self.unrestored.extend(&partitions);
                Ok(Some(Event::Assigned(partitions)))
            }
            Some(Change::Revoked(partitions)) => self.revoked(partitions).map(Some),
        }
    }

    fn starts(&self, partitions: &[Partition]) -> Result<Starts, LogError> {
        let starts = self.questions.starts(partitions, self.options.accept_gap, &mut || self.membership.sign());
        starts.map_err(|error| self.refused(error, Topic::Responses))
    }

    fn revoked(&mut self, partitions: Vec<Partition>) -> Result<Event, LogError> {
        self.committed.retain(|(_, partition), _| !partitions.contains(partition));
        for partition in &partitions {
            self.unrestored.remove(partition);
            self.requests.forget(*partition)?;
            self.responses.forget(*partition)?;
        }
        Ok(Event::Revoked(partitions))
    }

    fn owned(&self) -> Vec<Partition> {
        let responses = self.committed.keys().filter(|(topic, _)| *topic == Topic::Responses);
        responses.map(|(_, partition)| *partition).collect()
    }

    /// Reads both inputs of a restored partition from what is committed.
    fn read_from_committed(&mut self, partition: Partition) -> Result<(), LogError> {
        for (topic, reader) in [(Topic::Requests, &mut self.requests), (Topic::Responses, &mut self.responses)] {
            if let Some(&start) = self.committed.get(&(topic, partition)) {
                reader.read_from(partition, start)?;
            }
        }
        Ok(())
    }

    /// Joins the group anew after it has expelled us. That happens when another worker has our name; and also when
    /// the answer to a join was lost with its broker, and the group knows us by an identity that we never heard of. The
    /// transactional id tells the two apart: another worker would have taken that first.
    fn rejoin(&mut self, code: RDKafkaErrorCode) -> Result<Option<Event>, LogError> {
        tracing::warn!(%code, "kafka: the group has expelled this worker; it joins anew");
        if let Some(ready) = self.producer.take() {
            match ready.prove(self.options.name(Topic::Bindings)) {
                Ok(ready) => self.producer = Some(ready),
                Err(cause) => {
                    let _aborted = self.failed(Commit::Aborted, &cause)?;
                    self.producer = Some(connect::producer(&self.options, &self.plain)?);
                }
            }
        }
        if code == RDKafkaErrorCode::UnreleasedInstanceId {
            // The broker holds the name of a worker that died until its session is over.
            std::thread::sleep(REJOIN_PAUSE);
        }
        self.membership = Membership::join(&self.options, self.plain.clone(), &self.bell)?;
        let owned = self.owned();
        if owned.is_empty() { Ok(None) } else { self.revoked(owned).map(Some) }
    }

    /// What can be had now, requests first. A quarter of the batch is for responses, which are looked for first, so that
    /// their requests are likely in the same batch. Where more responses wait, requests come before them: in a backlog
    /// of both, responses that overtake their requests would wait in memory until there is no room for them.
    fn batch(&mut self, records_max: usize) -> Result<(Vec<Record>, bool), LogError> {
        let (share, bytes_share) = (records_max.div_ceil(4), self.options.batch_bytes_max / 4);
        let (mut batch, mut responses) = (Vec::new(), Vec::new());
        let read = self.responses.read(share, bytes_share, &mut responses);
        let mut is_proven = read.map_err(|error| self.refused(error, Topic::Responses))?;
        let has_backlog = responses.len() >= share;
        let left = records_max.saturating_sub(responses.len()).max(1);
        let read = self.requests.read(left, 2 * bytes_share, &mut batch);
        is_proven |= read.map_err(|error| self.refused(error, Topic::Requests))?;
        if has_backlog {
            let left = records_max.saturating_sub(responses.len() + batch.len());
            let read = self.responses.read(left, bytes_share, &mut responses);
            is_proven |= read.map_err(|error| self.refused(error, Topic::Responses))?;
        }
        batch.append(&mut responses);
        self.oldest_ms = batch.iter().map(|record| record.timestamp_ms).min().or(self.oldest_ms);
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

    /// Says which right is missing, where that is what an error is about.
    fn refused(&self, error: LogError, asked: Topic) -> LogError {
        rights::refused(&self.options, error, Some(asked))
    }

    /// What a transaction that did not commit means for the worker.
    fn failed(&self, commit: Commit, cause: &Cause) -> Result<Commit, LogError> {
        // The broker takes the epoch away when a transaction is open for too long. If ours was not, somebody else took it.
        if cause.is_fenced && cause.took < self.options.transaction_timeout.mul_f32(0.8) {
            let (group, instance) = (self.options.group.clone(), self.options.instance.clone());
            return Err(LogError::Fenced { group, instance });
        }
        let unfit = cause.unfit.as_ref();
        let topic = unfit.and_then(|(name, _)| Topic::ALL.into_iter().find(|topic| self.options.name(*topic) == name));
        let error = LogError::Kafka { what: cause.what, source: cause.error.clone() };
        let error = rights::refused(&self.options, error, topic);
        let is_denied = cause.error.rdkafka_error_code() == Some(RDKafkaErrorCode::TopicAuthorizationFailed);
        // Trying again would change nothing, also where it is not known which topic it is.
        if is_denied || matches!(error, LogError::Forbidden { .. }) {
            return Err(error);
        }
        if let Some((name, what)) = unfit {
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
            self.membership.sign().map_err(|error| self.refused(error, Topic::Responses))?;
            if let Some(ready) = &self.producer {
                ready.tend();
            }
            if let Some(code) = self.membership.expelled()
                && let Some(event) = self.rejoin(code)?
            {
                return Ok(event);
            }
            if let Some(event) = self.change()? {
                return Ok(event);
            }
            if self.unrestored.is_empty() {
                self.restorer = None;
            }
            let (batch, is_proven) = self.batch(max_records.max(1))?;
            if !batch.is_empty() {
                return Ok(Event::Records(batch));
            }
            // A proof is news without a record: whoever waits for it may look again.
            if is_proven || deadline.has_passed() {
                return Ok(Event::Idle);
            }
            self.requests.probe(&self.questions)?;
            self.responses.probe(&self.questions)?;
            let nap = if self.requests.is_probing() || self.responses.is_probing() { NAP_PROBING } else { NAP };
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
        let membership = &self.membership;
        if let Some(restorer) = &self.restorer {
            let restored = restorer.restore(&self.questions, partition, &mut || membership.sign(), apply);
            restored.map_err(|error| self.refused(error, Topic::Bindings))?;
        }
        if self.unrestored.remove(&partition) { self.read_from_committed(partition) } else { Ok(()) }
    }

    fn position(&mut self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        let reader = if topic == Topic::Requests { &self.requests } else { &self.responses };
        let start = self.committed.get(&(topic, partition)).copied();
        let unknown = || LogError::UnknownPartition { topic, partition, partitions: self.partitions() };
        reader.position(partition).or(start).ok_or_else(unknown)
    }

    fn end_offset(&mut self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        let end = self.questions.high(topic, partition)?;
        if topic == Topic::Requests {
            self.requests.want(partition, end);
        }
        Ok(end)
    }

    fn commit(&mut self, mut transaction: Transaction) -> Result<Commit, LogError> {
        if self.rewind_due {
            return Err(LogError::NotRewound { what: "the next commit" });
        }
        self.rewind_due = true;
        // A callback may have run while a partition was restored. What it took away must not be written for.
        if self.membership.has_changes() || self.membership.expelled().is_some() {
            return Ok(Commit::Aborted);
        }
        let offsets = self.offsets(&transaction)?;
        let Some(member) = self.membership.metadata() else { return Ok(Commit::Aborted) };
        let Some(ready) = self.producer.take() else { return Err(LogError::NotRewound { what: "the next commit" }) };
        let ended = ready.commit(&self.placed(&mut transaction)?, offsets, member);
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
        let owned = self.owned();
        self.committed = self.starts(&owned)?;
        for partition in owned {
            if !self.unrestored.contains(&partition) {
                self.read_from_committed(partition)?;
            }
        }
        self.rewind_due = false;
        Ok(())
    }
}
