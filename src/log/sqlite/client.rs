//! What another process does with the file of a running worker: append, read, wait.

use std::path::Path;
use std::time::Duration;

use super::store::Store;
use crate::log::batch::Share;
use crate::log::error::LogError;
use crate::log::record::{Offset, Outgoing, Partition, Position, Record, Topic};

/// The most bytes one read brings; a larger record still comes, alone.
const READ_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A connection that owns nothing: any number of them work on one log at a time.
#[derive(Debug)]
pub struct SqliteClient {
    store: Store,
}

impl SqliteClient {
    pub(super) fn open(path: &Path, partitions: Option<i32>) -> Result<SqliteClient, LogError> {
        Ok(SqliteClient { store: Store::open(path, partitions)? })
    }

    /// Appends all records or none, durably; returns where they are, in the order given.
    pub fn append(&mut self, records: Vec<Outgoing>, timestamp_ms: i64) -> Result<Vec<Position>, LogError> {
        self.store.commit(records, timestamp_ms, None)
    }

    /// The records from `from` on, at most `max` and about 16 MiB; none at the end. Where retention or compaction
    /// has removed records the next one that is left comes first.
    pub fn read(
        &mut self,
        topic: Topic,
        partition: Partition,
        from: Offset,
        max: usize,
    ) -> Result<Vec<Record>, LogError> {
        let share = Share { records: max, bytes: READ_BYTES_MAX, first_always: true };
        self.store.read_from(topic, partition, from, share)
    }

    /// The next offset to be written.
    pub fn end_offset(&mut self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        self.store.end_offset(topic, partition)
    }

    /// The first offset that retention has left.
    pub fn start_offset(&mut self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        self.store.start_offset(topic, partition)
    }

    /// The next offset the worker will read of an input, `None` before its first commit.
    pub fn committed(&mut self, topic: Topic, partition: Partition) -> Result<Option<Offset>, LogError> {
        self.store.committed_lowest(topic, partition)
    }

    /// How many partitions every topic has.
    #[must_use]
    pub fn partitions(&self) -> i32 {
        self.store.partitions
    }

    /// Waits up to `wait` for a commit of anybody else since the last call (since opening, at first); false if there
    /// was none. Looks every 5 ms. Read again after it returns true: what was committed meanwhile is never missed.
    pub fn wait_for_change(&mut self, wait: Duration) -> Result<bool, LogError> {
        let mut left = wait;
        self.store.wait_for_change(&mut left)
    }
}
