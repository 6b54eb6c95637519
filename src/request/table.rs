//! The requests of one partition, in memory: one allocation each, and undone as one.

use super::binding::Binding;
use super::codec::{self, Names, id_of};
use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::hash::Hasher;

/// One change of a batch: the id, and its record before.
type Undo = (Box<str>, Option<Box<[u8]>>);

/// All records of a partition, each as one slice of bytes.
///
/// Request ids are chosen by dispatchers, so the hash has a seed from outside.
#[derive(Debug)]
pub struct Table {
    records: HashTable<Box<[u8]>>,
    names: Names,
    hashing: Hashing,
    /// What the records that this batch touched were before it: `None` where there was none.
    journal: Option<Vec<Undo>>,
}

/// A hash whose every secret comes from the seed. Those of foldhash's `FixedState` are constants that anybody
/// can read, and only one more number is the seed's.
#[derive(Debug)]
struct Hashing {
    start: u64,
    secrets: SharedSeed,
}

impl Hashing {
    fn hash(&self, id: &[u8]) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.start, &self.secrets);
        hasher.write(id);
        hasher.finish()
    }
}

impl Table {
    pub fn new(seed: u64) -> Table {
        let hashing = Hashing { start: seed.rotate_left(32), secrets: SharedSeed::from_u64(seed) };
        Table { records: HashTable::new(), names: Names::default(), hashing, journal: None }
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The hash under which timers find this id again.
    pub fn hash(&self, request_id: &str) -> u64 {
        self.hashing.hash(request_id.as_bytes())
    }

    pub fn get(&self, request_id: &str) -> Option<Binding> {
        let found = self.records.find(self.hash(request_id), |record| id_of(record) == request_id.as_bytes())?;
        codec::decode(found, &self.names)
    }

    /// All records whose id has this hash: nearly always one.
    pub fn with_hash(&self, hash: u64) -> Vec<Binding> {
        self.records
            .iter_hash(hash)
            .filter(|record| self.hashing.hash(id_of(record)) == hash)
            .filter_map(|record| codec::decode(record, &self.names))
            .collect()
    }

    pub fn put(&mut self, binding: &Binding) {
        let record = codec::encode(binding, &mut self.names);
        self.replace(&binding.request_id, Some(record));
    }

    pub fn forget(&mut self, request_id: &str) {
        self.replace(request_id, None);
    }

    fn replace(&mut self, request_id: &str, record: Option<Box<[u8]>>) {
        let before = self.swap(request_id, record);
        if let Some(journal) = &mut self.journal {
            journal.push((request_id.into(), before));
        }
    }

    #[allow(clippy::borrowed_box, reason = "the table hands out what it holds")]
    fn swap(&mut self, request_id: &str, record: Option<Box<[u8]>>) -> Option<Box<[u8]>> {
        let hash = self.hash(request_id);
        let is_same = |known: &Box<[u8]>| id_of(known) == request_id.as_bytes();
        let Some(record) = record else {
            return self.records.find_entry(hash, is_same).ok().map(|entry| entry.remove().0);
        };
        let rehash = |known: &Box<[u8]>| self.hashing.hash(id_of(known));
        match self.records.entry(hash, is_same, rehash) {
            Entry::Occupied(mut entry) => Some(std::mem::replace(entry.get_mut(), record)),
            Entry::Vacant(entry) => {
                entry.insert(record);
                None
            }
        }
    }

    /// Starts a batch: from here on changes can be undone.
    pub fn begin(&mut self) {
        self.journal = Some(Vec::new());
    }

    /// The batch is durable.
    pub fn commit(&mut self) {
        self.journal = None;
    }

    /// Undoes the batch, last change first.
    pub fn rollback(&mut self) {
        for (request_id, before) in self.journal.take().into_iter().flatten().rev() {
            self.swap(&request_id, before);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Binding> {
        self.records.iter().filter_map(|record| codec::decode(record, &self.names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::machine::tests::{binding, now};

    fn table(ids: &[&str]) -> Table {
        let mut table = Table::new(7);
        for id in ids {
            table.put(&Binding { request_id: (*id).into(), ..binding() });
        }
        table
    }

    #[test]
    fn what_is_put_is_found() {
        let long = "x".repeat(128);
        let table = table(&["req-a", "req-b", &long]);
        assert_eq!(table.get("req-a").unwrap().request_id.as_ref(), "req-a");
        assert_eq!(table.get(&long).unwrap().request_id.as_ref(), long);
        assert_eq!(table.get("req-c"), None);
        assert_eq!(table.with_hash(table.hash("req-b")).len(), 1);
        assert_eq!(table.len(), 3);
    }

    #[test]
    fn a_batch_is_undone_exactly() {
        let mut table = table(&["req-a", "req-b"]);
        let before: Vec<_> = ["req-a", "req-b", "req-c"].map(|id| table.get(id)).into();
        table.begin();
        table.put(&Binding { attempt: 9, ..table.get("req-a").unwrap() });
        table.put(&Binding { attempt: 10, ..table.get("req-a").unwrap() });
        table.forget("req-b");
        table.put(&Binding { request_id: "req-c".into(), ..binding() });
        table.forget("req-c");
        table.put(&Binding { request_id: "req-c".into(), ..binding() });
        table.rollback();
        assert_eq!(["req-a", "req-b", "req-c"].map(|id| table.get(id)).to_vec(), before);
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn a_committed_batch_stays() {
        let mut table = table(&["req-a"]);
        table.begin();
        table.forget("req-a");
        table.commit();
        table.rollback();
        assert!(table.is_empty());
    }

    #[test]
    fn timers_find_their_request_again_or_nothing() {
        let mut table = table(&["req-a"]);
        let mut timers = crate::request::Timers::default();
        timers.set(now(), table.hash("req-a"));
        table.forget("req-a");
        let hash = timers.pop_due(now()).unwrap();
        assert!(table.with_hash(hash).is_empty());
        assert_eq!(timers.pop_due(now()), None);
    }

    /// Ids that differ in little have hashes that differ in much, with any seed.
    #[test]
    fn ids_spread_over_the_table_and_seeds_over_ids() {
        for seed in [0, 1, u64::MAX] {
            let table = Table::new(seed);
            let mut buckets = [0u32; 64];
            for n in 0..6400 {
                buckets[(table.hash(&format!("req-{n:08}")) % 64) as usize] += 1;
            }
            assert!(buckets.iter().all(|count| (50..200).contains(count)), "{seed}: {buckets:?}");
        }
        assert_ne!(Table::new(1).hash("req-a"), Table::new(2).hash("req-a"));
    }
}
