//! The interface between the worker and its log, whichever log it is.

use std::time::Duration;

use super::error::LogError;
use super::partitioner::partition_of;
use super::record::{Offset, Outgoing, Partition, Record, Topic};

/// The most bytes one record may hold, key, value and headers together; the log refuses more.
pub const RECORD_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What a poll brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// These partitions are now ours: restore their state before anything else.
    Assigned(Vec<Partition>),
    /// These partitions are no longer ours: forget their state.
    Revoked(Vec<Partition>),
    /// Records of the inputs, at least one, requests before responses, in order within a partition.
    Records(Vec<Record>),
    /// Nothing happened for as long as the caller was ready to wait.
    Idle,
}

/// What is committed together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    pub records: Vec<Outgoing>,
    /// The next offset to read of an input partition, that is the last one done plus one.
    pub offsets: Vec<(Topic, Partition, Offset)>,
}

/// How a commit ended. After anything but `Committed` the log must be rewound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Commit {
    Committed,
    /// Nothing of the transaction exists.
    Aborted,
    /// All of it exists or none of it; only the log knows. State must be restored before going on.
    Indeterminate,
}

/// A log with transactions: Kafka, one file, or memory.
pub trait Log {
    /// The next event, waiting up to `wait` for one. Records come from the inputs (requests and responses) of the
    /// assigned partitions, at most `max_records` of them, and move the positions forward.
    fn poll(&mut self, max_records: usize, wait: Duration) -> Result<Event, LogError>;

    /// Reads the whole changelog of a partition, oldest record first, to the end it has when the call begins.
    /// Stops at the first error of `apply` and returns it.
    fn restore(
        &mut self,
        partition: Partition,
        apply: &mut dyn FnMut(Record) -> Result<(), LogError>,
    ) -> Result<(), LogError>;

    /// The next offset of an assigned input partition that [`poll`](Self::poll) will bring: everything below it was read.
    fn position(&mut self, topic: Topic, partition: Partition) -> Result<Offset, LogError>;

    /// The next offset to be written, whether or not what is below it can be read yet.
    fn end_offset(&mut self, topic: Topic, partition: Partition) -> Result<Offset, LogError>;

    /// Writes the records and the input offsets, all or nothing.
    fn commit(&mut self, transaction: Transaction) -> Result<Commit, LogError>;

    /// Moves the positions back to the committed offsets; due after anything but `Committed`.
    fn rewind(&mut self) -> Result<(), LogError>;
}

impl<L: Log + ?Sized> Log for Box<L> {
    fn poll(&mut self, max_records: usize, wait: Duration) -> Result<Event, LogError> {
        (**self).poll(max_records, wait)
    }

    fn restore(
        &mut self,
        partition: Partition,
        apply: &mut dyn FnMut(Record) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        (**self).restore(partition, apply)
    }

    fn position(&mut self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        (**self).position(topic, partition)
    }

    fn end_offset(&mut self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        (**self).end_offset(topic, partition)
    }

    fn commit(&mut self, transaction: Transaction) -> Result<Commit, LogError> {
        (**self).commit(transaction)
    }

    fn rewind(&mut self) -> Result<(), LogError> {
        (**self).rewind()
    }
}

/// The partition a record goes to, or why it cannot be written at all. A record with neither partition nor key goes to
/// the first: what we write without a key has no order to keep.
pub(super) fn place(record: &Outgoing, partitions: i32) -> Result<Partition, LogError> {
    let (topic, bytes) = (record.topic, record.bytes());
    if bytes > RECORD_BYTES_MAX {
        return Err(LogError::TooLarge { topic, bytes, bytes_max: RECORD_BYTES_MAX });
    }
    let by_key = || record.key.as_deref().map_or(Partition(0), |key| partition_of(key, partitions));
    let partition = record.partition.unwrap_or_else(by_key);
    if !(0..partitions).contains(&partition.0) {
        return Err(LogError::UnknownPartition { topic, partition, partitions });
    }
    Ok(partition)
}
