//! A log as naive as can be: it remembers everything that was ever written, and what of it must still be there.

use std::collections::{BTreeMap, BTreeSet};

use toolgate::log::partitioner::partition_of;
use toolgate::log::{Cleanup, Header, Offset, Outgoing, Partition, Record, Topic};

pub(crate) const PARTITIONS: i32 = 3;

pub(crate) type Lane = (Topic, Partition);

/// A record without its position.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Written {
    timestamp_ms: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<Header>,
}

#[derive(Default)]
pub(crate) struct Model {
    /// Everything ever written; the index is the offset.
    written: BTreeMap<Lane, Vec<Written>>,
    /// The offsets that are still there.
    kept: BTreeMap<Lane, BTreeSet<usize>>,
    pub(crate) committed: BTreeMap<Lane, usize>,
    pub(crate) read: BTreeMap<Lane, usize>,
}

pub(crate) fn lanes() -> impl Iterator<Item = Lane> {
    Topic::ALL.into_iter().flat_map(|topic| (0..PARTITIONS).map(move |partition| (topic, Partition(partition))))
}

pub(crate) fn inputs() -> impl Iterator<Item = Lane> {
    lanes().filter(|(topic, _)| topic.is_input())
}

impl Model {
    /// Writes the records and returns the offset each must get.
    pub(crate) fn write(&mut self, records: &[Outgoing], timestamp_ms: i64) -> Vec<(Lane, Offset)> {
        records.iter().map(|record| self.write_one(record.clone(), timestamp_ms)).collect()
    }

    fn write_one(&mut self, record: Outgoing, timestamp_ms: i64) -> (Lane, Offset) {
        let Outgoing { topic, partition, key, value, headers } = record;
        let by_key = || key.as_deref().map_or(Partition(0), |key| partition_of(key, PARTITIONS));
        let lane = (topic, partition.unwrap_or_else(by_key));
        let written = self.written.entry(lane).or_default();
        let offset = written.len();
        written.push(Written { timestamp_ms, key, value, headers });
        self.kept.entry(lane).or_default().insert(offset);
        (lane, Offset(offset as i64))
    }

    pub(crate) fn end(&self, lane: Lane) -> usize {
        self.written.get(&lane).map_or(0, Vec::len)
    }

    pub(crate) fn waiting(&self) -> usize {
        inputs().map(|lane| self.end(lane) - self.read.get(&lane).copied().unwrap_or(0)).sum()
    }

    /// Takes note that the record was read; it must be the next of its lane and as it was written.
    pub(crate) fn reads(&mut self, record: &Record) {
        let lane = (record.position.topic, record.position.partition);
        let next = self.read.entry(lane).or_default();
        assert_eq!(record.position.offset, Offset(*next as i64), "the next of {lane:?}");
        *next += 1;
        self.assert_as_written(lane, record);
    }

    pub(crate) fn rewind(&mut self) {
        self.read.clone_from(&self.committed);
    }

    fn assert_as_written(&self, lane: Lane, record: &Record) {
        let Record { position, timestamp_ms, key, value, headers } = record.clone();
        let expected = &self.written[&lane][position.offset.0 as usize];
        assert_eq!(&Written { timestamp_ms, key, value, headers }, expected, "{position}");
    }

    /// The lane holds exactly what it must.
    pub(crate) fn assert_holds(&self, lane: Lane, found: &[Record]) {
        let offsets: Vec<usize> = found.iter().map(|record| record.position.offset.0 as usize).collect();
        let expected: Vec<usize> = self.kept.get(&lane).into_iter().flatten().copied().collect();
        assert_eq!(offsets, expected, "offsets of {lane:?}");
        found.iter().for_each(|record| self.assert_as_written(lane, record));
    }

    /// Maintenance has left these records. What is gone must have been allowed to go, and, if `all` of the work is done,
    /// everything that may go must be gone.
    pub(crate) fn maintained(&mut self, lane: Lane, found: &[Record], cutoff_ms: i64, all: bool) {
        let left: BTreeSet<usize> = found.iter().map(|record| record.position.offset.0 as usize).collect();
        let kept = self.kept.entry(lane).or_default();
        assert!(left.is_subset(kept), "{lane:?} has records again that were gone");
        let written = self.written.get(&lane).map_or(&[][..], Vec::as_slice);
        let committed = self.committed.get(&lane).copied().unwrap_or(0);
        let may_go: BTreeSet<usize> = match lane.0.cleanup() {
            Cleanup::Delete => expired(kept, written, cutoff_ms, lane.0.is_input().then_some(committed)),
            Cleanup::Compact => replaced_or_buried(kept, written, cutoff_ms),
        };
        let gone: BTreeSet<usize> = kept.difference(&left).copied().collect();
        assert!(gone.is_subset(&may_go), "{lane:?} lost {gone:?}, of which only {may_go:?} may go");
        if all {
            assert_eq!(gone, may_go, "{lane:?} kept what was to go");
        }
        *kept = left;
    }
}

/// The old records at the start, of an input those below the committed offset.
fn expired(kept: &BTreeSet<usize>, written: &[Written], cutoff_ms: i64, committed: Option<usize>) -> BTreeSet<usize> {
    let is_old = |offset: &&usize| written[**offset].timestamp_ms < cutoff_ms;
    let is_read = |offset: &&usize| committed.is_none_or(|committed| **offset < committed);
    kept.iter().take_while(is_old).take_while(is_read).copied().collect()
}

/// What a later record of the same key replaces, and old tombstones.
fn replaced_or_buried(kept: &BTreeSet<usize>, written: &[Written], cutoff_ms: i64) -> BTreeSet<usize> {
    let is_replaced = |offset: usize| {
        let key = &written[offset].key;
        key.is_some() && kept.range(offset + 1..).any(|later| written[*later].key == *key)
    };
    let is_buried = |offset: usize| written[offset].value.is_none() && written[offset].timestamp_ms < cutoff_ms;
    kept.iter().copied().filter(|offset| is_replaced(*offset) || is_buried(*offset)).collect()
}
