//! The worker's end of the file: positions, batches, commits.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rusqlite::OptionalExtension;

use super::commit::ReadTo;
use super::lock::WorkerLock;
use super::store::{self, Store};
use super::{read, schema};
use crate::log::api::{Commit, Event, Log, Transaction};
use crate::log::batch::{self, Lane, Share};
use crate::log::error::LogError;
use crate::log::record::{Offset, Partition, Record, Topic};

/// How a worker opens its log.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Whose offsets and state these are; a file keeps those of one group.
    pub group: String,
    /// Partitions of every topic, 1 to 1024; must be what the file has, if there is one.
    pub partitions: i32,
    /// Goes on at the start of the log where unread records are gone, instead of stopping.
    pub accept_gap: bool,
    /// About how many bytes a batch may hold; one larger record of each topic still comes.
    pub batch_bytes_max: usize,
    /// Milliseconds since the Unix epoch: what committed records are stamped with.
    pub now_ms: fn() -> i64,
}

/// The log of the one worker that owns the file.
#[derive(Debug)]
pub struct SqliteLog {
    pub(super) store: Store,
    options: WorkerOptions,
    /// The next offset to read of each input partition; empty until the assignment has been polled.
    positions: BTreeMap<(Topic, Partition), Offset>,
    /// True from a commit that did not go through to the rewind that must follow.
    rewind_due: bool,
    /// Which partition is asked first; moves on with every batch.
    turn: usize,
    pub(super) maintain_turn: usize,
    _lock: WorkerLock,
}

impl SqliteLog {
    /// Opens the log for a worker, creating it if there is none, and keeps every other worker out.
    pub fn open_worker(path: &Path, options: WorkerOptions) -> Result<SqliteLog, LogError> {
        let store = Store::open(path, Some(options.partitions))?;
        if store.partitions != options.partitions {
            let (found, wanted) = (store.partitions, options.partitions);
            return Err(LogError::Partitions { path: path.to_owned(), found, wanted });
        }
        let lock = WorkerLock::take(path)?;
        claim_for_group(&store, &options.group)?;
        Ok(SqliteLog {
            store,
            options,
            positions: BTreeMap::new(),
            rewind_due: false,
            turn: 0,
            maintain_turn: 0,
            _lock: lock,
        })
    }

    /// Bounds the file to about so many bytes: beyond them a commit fails with [`LogError::Full`] and nothing is lost.
    pub fn set_file_bytes_max(&mut self, bytes: u64) -> Result<(), LogError> {
        self.store.set_bytes_max(bytes)
    }

    /// How many input records wait to be read, and when the oldest of them was written, in milliseconds since the
    /// Unix epoch.
    pub fn lag(&self) -> Result<(u64, Option<i64>), LogError> {
        let (mut records, mut oldest) = (0, None);
        for (&(topic, partition), &from) in &self.positions {
            let waiting = self.store.end_offset(topic, partition)?.0 - from.0;
            if waiting > 0 {
                records += waiting as u64;
                let first =
                    self.store.read_from(topic, partition, from, Share { records: 1, bytes: 1, first_always: true })?;
                let written = first.first().map(|record| record.timestamp_ms);
                oldest = oldest.into_iter().chain(written).min();
            }
        }
        Ok((records, oldest))
    }

    /// The committed offsets, or the start of the log where nothing was committed yet.
    fn load_positions(&mut self) -> Result<(), LogError> {
        let mut positions = BTreeMap::new();
        for topic in Topic::INPUTS {
            for partition in partitions(&self.store) {
                positions.insert((topic, partition), self.first_position(topic, partition)?);
            }
        }
        self.positions = positions;
        Ok(())
    }

    fn first_position(&self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        let start = self.store.start_offset(topic, partition)?;
        match self.store.committed(&self.options.group, topic, partition)? {
            Some(committed) if committed < start && !self.options.accept_gap => {
                Err(LogError::Gap { topic, partition, committed, start })
            }
            Some(committed) => Ok(committed.max(start)),
            None => Ok(start),
        }
    }

    /// What can be read now; empty if nothing waits.
    fn read_batch(&mut self, max_records: usize) -> Result<Vec<Record>, LogError> {
        let fail = self.store.fail("reading records");
        // One snapshot for the whole batch: it shows a response only with the request that was written before.
        let snapshot = self.store.connection.transaction().map_err(&fail)?;
        let mut lanes = lanes(&snapshot, &self.positions).map_err(&fail)?;
        if lanes.is_empty() {
            return Ok(Vec::new());
        }
        let bytes_max = self.options.batch_bytes_max;
        let batch = batch::collect(&mut lanes, self.turn, max_records.max(1), bytes_max, &mut |lane, share, into| {
            read::lane(&snapshot, lane, share, into).map_err(&fail)
        })?;
        self.turn = self.turn.wrapping_add(1);
        for record in &batch {
            let position = record.position;
            self.positions.insert((position.topic, position.partition), position.offset.next());
        }
        Ok(batch)
    }

    fn forbid_before_rewind(&self, what: &'static str) -> Result<(), LogError> {
        if self.rewind_due { Err(LogError::NotRewound { what }) } else { Ok(()) }
    }
}

impl Log for SqliteLog {
    fn poll(&mut self, max_records: usize, wait: Duration) -> Result<Event, LogError> {
        self.forbid_before_rewind("the next poll")?;
        if self.positions.is_empty() {
            self.load_positions()?;
            return Ok(Event::Assigned(partitions(&self.store).collect()));
        }
        let mut left = wait;
        loop {
            let batch = self.read_batch(max_records)?;
            if !batch.is_empty() {
                return Ok(Event::Records(batch));
            }
            if !self.store.wait_for_change(&mut left)? {
                return Ok(Event::Idle);
            }
        }
    }

    fn restore(
        &mut self,
        partition: Partition,
        apply: &mut dyn FnMut(Record) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        self.store.stream(Topic::Bindings, partition, apply)
    }

    fn position(&mut self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        let partitions = self.store.partitions;
        self.positions.get(&(topic, partition)).copied().ok_or(LogError::UnknownPartition {
            topic,
            partition,
            partitions,
        })
    }

    fn end_offset(&mut self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        self.store.end_offset(topic, partition)
    }

    /// Never `Indeterminate`: who opens the file sees all of a commit or nothing. `Aborted` if other processes kept the
    /// write lock for 5 seconds. After an error of the disk, nothing of it can be read; a process that dies before its
    /// next write may find it whole when it starts again, with records and offsets together.
    fn commit(&mut self, transaction: Transaction) -> Result<Commit, LogError> {
        self.forbid_before_rewind("the next commit")?;
        self.rewind_due = true;
        let read = Some(ReadTo { group: &self.options.group, offsets: &transaction.offsets });
        match self.store.commit(transaction.records, (self.options.now_ms)(), read) {
            Ok(_) => {
                self.rewind_due = false;
                Ok(Commit::Committed)
            }
            Err(LogError::Busy { .. }) => Ok(Commit::Aborted),
            Err(error) => Err(error),
        }
    }

    fn rewind(&mut self) -> Result<(), LogError> {
        if !self.positions.is_empty() {
            self.load_positions()?;
        }
        self.rewind_due = false;
        Ok(())
    }
}

impl Store {
    /// The committed offset of a group, that is the next one it reads.
    fn committed(&self, group: &str, topic: Topic, partition: Partition) -> Result<Option<Offset>, LogError> {
        self.connection
            .prepare_cached("SELECT next FROM offsets WHERE group_name = ?1 AND topic = ?2 AND partition = ?3")
            .and_then(|mut query| query.query_row((group, topic.name(), partition.0), |row| row.get(0)).optional())
            .map(|found| found.map(Offset))
            .map_err(self.fail("reading the committed offsets"))
    }

    /// The lowest committed offset of any group: what is below it has been read by everybody.
    pub(super) fn committed_lowest(&self, topic: Topic, partition: Partition) -> Result<Option<Offset>, LogError> {
        self.connection
            .prepare_cached("SELECT min(next) FROM offsets WHERE topic = ?1 AND partition = ?2")
            .and_then(|mut query| query.query_row((topic.name(), partition.0), |row| row.get::<_, Option<i64>>(0)))
            .map(|found| found.map(Offset))
            .map_err(self.fail("reading the committed offsets"))
    }
}

fn partitions(store: &Store) -> impl Iterator<Item = Partition> + use<> {
    (0..store.partitions).map(Partition)
}

/// The input partitions that have something beyond our position.
fn lanes(
    connection: &rusqlite::Connection,
    positions: &BTreeMap<(Topic, Partition), Offset>,
) -> rusqlite::Result<Vec<Lane>> {
    let mut lanes = Vec::new();
    let mut query = connection.prepare_cached("SELECT partition, next_offset FROM partitions WHERE topic = ?1")?;
    for topic in Topic::INPUTS {
        let mut rows = query.query([topic.name()])?;
        while let Some(row) = rows.next()? {
            let (partition, end) = (Partition(row.get(0)?), Offset(row.get(1)?));
            match positions.get(&(topic, partition)) {
                Some(&from) if from < end => lanes.push(Lane { topic, partition, from, end }),
                Some(_) | None => {}
            }
        }
    }
    Ok(lanes)
}

/// The changelog in the file is that of one group; the first worker's.
fn claim_for_group(store: &Store, group: &str) -> Result<(), LogError> {
    let fail = store::failure(&store.path, "reading the group");
    match schema::meta(&store.connection, "group").map_err(&fail)? {
        Some(found) if found == group => Ok(()),
        Some(found) => Err(LogError::Group { path: store.path.clone(), found, wanted: group.to_owned() }),
        None => schema::set_meta(&store.connection, "group", group).map_err(&fail),
    }
}
