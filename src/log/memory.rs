//! A log in memory for tests and simulations: the same promises as the others, no clock, no waiting, and
//! faults on demand.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::api::{Commit, Event, Log, Transaction, place};
use super::batch::{self, Lane};
use super::error::LogError;
use super::record::{Offset, Outgoing, Partition, Position, Record, Topic};

/// About what a batch may hold, unless a test says otherwise.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How a commit is made to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Nothing is written, and the worker learns so.
    Aborted,
    /// Everything is written, but the worker does not learn it.
    IndeterminateApplied,
    /// Nothing is written, and the worker does not learn it.
    IndeterminateLost,
}

/// What a partition of a topic holds.
#[derive(Clone, Debug, Default)]
struct Shelf {
    start: i64,
    records: Vec<Record>,
}

impl Shelf {
    fn end(&self) -> Offset {
        Offset(self.start + self.records.len() as i64)
    }

    fn from(&self, offset: Offset) -> &[Record] {
        let skipped = usize::try_from(offset.0 - self.start).unwrap_or(0);
        self.records.get(skipped..).unwrap_or(&[])
    }
}

/// A log of one worker in memory.
#[derive(Debug)]
pub struct MemoryLog {
    partitions: i32,
    now_ms: i64,
    batch_bytes_max: usize,
    shelves: BTreeMap<(Topic, Partition), Shelf>,
    committed: BTreeMap<(Topic, Partition), Offset>,
    /// The next offset to read, of the assigned partitions only.
    positions: BTreeMap<(Topic, Partition), Offset>,
    pending: VecDeque<Event>,
    faults: VecDeque<Fault>,
    rewind_due: bool,
    turn: usize,
}

impl MemoryLog {
    /// An empty log; the first poll assigns all its partitions. Less than one partition counts as one.
    #[must_use]
    pub fn new(partitions: i32) -> MemoryLog {
        let mut log = MemoryLog {
            partitions: partitions.max(1),
            now_ms: 0,
            batch_bytes_max: BATCH_BYTES_MAX,
            shelves: BTreeMap::new(),
            committed: BTreeMap::new(),
            positions: BTreeMap::new(),
            pending: VecDeque::new(),
            faults: VecDeque::new(),
            rewind_due: false,
            turn: 0,
        };
        log.restart();
        log
    }

    #[must_use]
    pub fn partitions(&self) -> i32 {
        self.partitions
    }

    /// What records are stamped with from now on, in milliseconds since the Unix epoch.
    pub fn set_now_ms(&mut self, now_ms: i64) {
        self.now_ms = now_ms;
    }

    pub fn set_batch_bytes_max(&mut self, bytes: usize) {
        self.batch_bytes_max = bytes;
    }

    /// Writes as a producer does; all records or none.
    pub fn append(&mut self, records: Vec<Outgoing>) -> Result<Vec<Position>, LogError> {
        let placed = self.placed(records)?;
        Ok(placed.into_iter().map(|(partition, record)| self.push(partition, record)).collect())
    }

    /// Everything a partition holds, oldest first.
    #[must_use]
    pub fn records(&self, topic: Topic, partition: Partition) -> &[Record] {
        self.shelves.get(&(topic, partition)).map_or(&[], |shelf| &shelf.records)
    }

    /// The next offset to read of an input, as the last commit left it.
    #[must_use]
    pub fn committed(&self, topic: Topic, partition: Partition) -> Option<Offset> {
        self.committed.get(&(topic, partition)).copied()
    }

    /// The next commits end like this, first come first served.
    pub fn fail_commit(&mut self, fault: Fault) {
        self.faults.push_back(fault);
    }

    /// The worker is gone and another one starts on what was committed: all partitions are assigned again.
    pub fn restart(&mut self) {
        self.positions.clear();
        self.pending.clear();
        self.rewind_due = false;
        self.assign((0..self.partitions).map(Partition).collect());
    }

    /// The next poll assigns these partitions; from then on they are read from their committed offsets.
    pub fn assign(&mut self, partitions: Vec<Partition>) {
        self.pending.push_back(Event::Assigned(partitions));
    }

    /// The next poll revokes these partitions; from then on they are not read.
    pub fn revoke(&mut self, partitions: Vec<Partition>) {
        self.pending.push_back(Event::Revoked(partitions));
    }

    /// Loses everything below `start`, read or not, as an over-eager retention does.
    pub fn truncate(&mut self, topic: Topic, partition: Partition, start: Offset) {
        let shelf = self.shelves.entry((topic, partition)).or_default();
        let gone = usize::try_from(start.0 - shelf.start).unwrap_or(0).min(shelf.records.len());
        shelf.records.drain(..gone);
        shelf.start += gone as i64;
    }

    fn placed(&self, records: Vec<Outgoing>) -> Result<Vec<(Partition, Outgoing)>, LogError> {
        records.into_iter().map(|record| Ok((place(&record, self.partitions)?, record))).collect()
    }

    fn push(&mut self, partition: Partition, record: Outgoing) -> Position {
        let shelf = self.shelves.entry((record.topic, partition)).or_default();
        let position = Position { topic: record.topic, partition, offset: shelf.end() };
        let Outgoing { key, value, headers, .. } = record;
        shelf.records.push(Record { position, timestamp_ms: self.now_ms, key, value, headers });
        position
    }

    fn known(&self, topic: Topic, partition: Partition) -> Result<(), LogError> {
        if (0..self.partitions).contains(&partition.0) {
            return Ok(());
        }
        Err(LogError::UnknownPartition { topic, partition, partitions: self.partitions })
    }

    /// Moves the positions of a partition to its committed offsets.
    fn reposition(&mut self, partition: Partition) -> Result<(), LogError> {
        for topic in Topic::INPUTS {
            self.known(topic, partition)?;
            let start = self.shelves.get(&(topic, partition)).map_or(Offset(0), |shelf| Offset(shelf.start));
            let committed = self.committed(topic, partition).unwrap_or(start);
            if committed < start {
                return Err(LogError::Gap { topic, partition, committed, start });
            }
            self.positions.insert((topic, partition), committed);
        }
        Ok(())
    }

    fn settle(&mut self, event: &Event) -> Result<(), LogError> {
        match event {
            Event::Assigned(partitions) => {
                partitions.iter().try_for_each(|&partition| self.reposition(partition))?;
            }
            Event::Revoked(partitions) => {
                self.positions.retain(|(_, partition), _| !partitions.contains(partition));
            }
            Event::Records(_) | Event::Idle => {}
        }
        Ok(())
    }

    fn read_batch(&mut self, max_records: usize) -> Result<Vec<Record>, LogError> {
        let shelves = &self.shelves;
        let waiting = |(&(topic, partition), &from): (&(Topic, Partition), &Offset)| {
            let end = shelves.get(&(topic, partition))?.end();
            (from < end).then_some(Lane { topic, partition, from, end })
        };
        let mut lanes: Vec<Lane> = self.positions.iter().filter_map(waiting).collect();
        let mut read = |lane: &Lane, mut share: batch::Share, into: &mut Vec<Record>| {
            if let Some(shelf) = shelves.get(&(lane.topic, lane.partition)) {
                into.extend(shelf.from(lane.from).iter().take_while(|record| share.admit(record.bytes())).cloned());
            }
            Ok(())
        };
        let batch = batch::collect(&mut lanes, self.turn, max_records.max(1), self.batch_bytes_max, &mut read)?;
        self.turn = self.turn.wrapping_add(1);
        for record in &batch {
            let position = record.position;
            self.positions.insert((position.topic, position.partition), position.offset.next());
        }
        Ok(batch)
    }

    /// What is wrong with a transaction, if anything; `Ok` holds its records with their partitions.
    fn checked(&self, transaction: &mut Transaction) -> Result<Vec<(Partition, Outgoing)>, LogError> {
        for &(topic, partition, offset) in &transaction.offsets {
            self.known(topic, partition)?;
            let end = self.shelves.get(&(topic, partition)).map_or(Offset(0), Shelf::end);
            if offset > end || offset < Offset(0) {
                return Err(LogError::BeyondEnd { topic, partition, offset, end });
            }
        }
        self.placed(std::mem::take(&mut transaction.records))
    }
}

impl Log for MemoryLog {
    /// Never waits: what is not there now will not come while the caller waits.
    fn poll(&mut self, max_records: usize, _wait: Duration) -> Result<Event, LogError> {
        if self.rewind_due {
            return Err(LogError::NotRewound { what: "the next poll" });
        }
        if let Some(event) = self.pending.pop_front() {
            self.settle(&event)?;
            return Ok(event);
        }
        let batch = self.read_batch(max_records)?;
        Ok(if batch.is_empty() { Event::Idle } else { Event::Records(batch) })
    }

    fn restore(
        &mut self,
        partition: Partition,
        apply: &mut dyn FnMut(Record) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        self.known(Topic::Bindings, partition)?;
        self.records(Topic::Bindings, partition).iter().cloned().try_for_each(apply)
    }

    fn position(&mut self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        let partitions = self.partitions;
        self.positions.get(&(topic, partition)).copied().ok_or(LogError::UnknownPartition {
            topic,
            partition,
            partitions,
        })
    }

    fn end_offset(&mut self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        self.known(topic, partition)?;
        Ok(self.shelves.get(&(topic, partition)).map_or(Offset(0), Shelf::end))
    }

    fn commit(&mut self, mut transaction: Transaction) -> Result<Commit, LogError> {
        if self.rewind_due {
            return Err(LogError::NotRewound { what: "the next commit" });
        }
        self.rewind_due = true;
        let placed = self.checked(&mut transaction)?;
        let (applied, outcome) = match self.faults.pop_front() {
            None => (true, Commit::Committed),
            Some(Fault::Aborted) => (false, Commit::Aborted),
            Some(Fault::IndeterminateApplied) => (true, Commit::Indeterminate),
            Some(Fault::IndeterminateLost) => (false, Commit::Indeterminate),
        };
        if applied {
            for (partition, record) in placed {
                self.push(partition, record);
            }
            let offsets = transaction.offsets.into_iter();
            self.committed.extend(offsets.map(|(topic, partition, offset)| ((topic, partition), offset)));
        }
        self.rewind_due = outcome != Commit::Committed;
        Ok(outcome)
    }

    fn rewind(&mut self) -> Result<(), LogError> {
        let assigned: Vec<Partition> = self.positions.keys().map(|(_, partition)| *partition).collect();
        assigned.into_iter().try_for_each(|partition| self.reposition(partition))?;
        self.rewind_due = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
