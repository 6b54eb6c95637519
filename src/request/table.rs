//! The requests of one partition, in memory: one allocation each, and undone as one.

use super::binding::Binding;
use crate::wire::v1;
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use prost::Message;
use std::hash::{BuildHasher, Hasher};

/// One change of a batch: the id, and its record before.
type Undo = (Box<str>, Option<Box<[u8]>>);

/// All records of a partition, each as the bytes of its changelog value.
///
/// Request ids are chosen by dispatchers, so the hash has a seed from outside.
#[derive(Debug)]
pub struct Table {
    records: HashTable<Box<[u8]>>,
    hasher: FixedState,
    /// What the records that this batch touched were before it: `None` where there was none.
    journal: Option<Vec<Undo>>,
}

impl Table {
    pub fn new(seed: u64) -> Table {
        Table { records: HashTable::new(), hasher: FixedState::with_seed(seed), journal: None }
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The hash under which timers find this id again.
    pub fn hash(&self, request_id: &str) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(request_id.as_bytes());
        hasher.finish()
    }

    pub fn get(&self, request_id: &str) -> Option<Binding> {
        let found = self.records.find(self.hash(request_id), |bytes| id_of(bytes) == request_id.as_bytes())?;
        decode(found)
    }

    /// All records whose id has this hash: nearly always one.
    pub fn with_hash(&self, hash: u64) -> Vec<Binding> {
        self.records
            .iter_hash(hash)
            .filter_map(|bytes| decode(bytes))
            .filter(|known| self.hash(&known.request_id) == hash)
            .collect()
    }

    pub fn put(&mut self, binding: &Binding) {
        let bytes = binding.to_message().encode_to_vec().into_boxed_slice();
        self.replace(&binding.request_id, Some(bytes));
    }

    pub fn forget(&mut self, request_id: &str) {
        self.replace(request_id, None);
    }

    fn replace(&mut self, request_id: &str, bytes: Option<Box<[u8]>>) {
        let before = self.swap(request_id, bytes);
        if let Some(journal) = &mut self.journal {
            journal.push((request_id.into(), before));
        }
    }

    fn swap(&mut self, request_id: &str, bytes: Option<Box<[u8]>>) -> Option<Box<[u8]>> {
        let hash = self.hash(request_id);
        let hasher = self.hasher.clone();
        #[allow(clippy::borrowed_box, reason = "the table hands out what it holds")]
        let rehash = |bytes: &Box<[u8]>| {
            let mut hasher = hasher.build_hasher();
            hasher.write(id_of(bytes));
            hasher.finish()
        };
        let entry = self.records.entry(hash, |known| id_of(known) == request_id.as_bytes(), rehash);
        match (entry, bytes) {
            (hashbrown::hash_table::Entry::Occupied(mut entry), Some(bytes)) => {
                Some(std::mem::replace(entry.get_mut(), bytes))
            }
            (hashbrown::hash_table::Entry::Occupied(entry), None) => Some(entry.remove().0),
            (hashbrown::hash_table::Entry::Vacant(entry), Some(bytes)) => {
                entry.insert(bytes);
                None
            }
            (hashbrown::hash_table::Entry::Vacant(_), None) => None,
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
        self.records.iter().filter_map(|bytes| decode(bytes))
    }
}

/// The id inside a record's bytes. It is field 1 and, as prost writes fields in order, comes first:
/// the tag 0x0a, the length as a varint (at most 128), the text.
fn id_of(bytes: &[u8]) -> &[u8] {
    match bytes {
        [0x0a, 0x80, 0x01, rest @ ..] => rest.get(..128).unwrap_or_default(),
        [0x0a, length, rest @ ..] => rest.get(..usize::from(*length)).unwrap_or_default(),
        _ => &[],
    }
}

/// What this table has encoded itself, it can read.
fn decode(bytes: &[u8]) -> Option<Binding> {
    v1::Binding::decode(bytes).ok().and_then(|message| Binding::from_message(message).ok())
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

    /// Memory of one outstanding request, on the heap and in the table (DESIGN goal: 256 bytes).
    #[test]
    fn a_typical_record_is_small() {
        let bytes = binding().to_message().encode_to_vec().len();
        // Box<[u8]> in the table, a byte of control, seven eighths of load, and a timer.
        let in_table = (16 + 1) * 8 / 7 + 16;
        assert!(bytes + in_table + 16 <= 256, "{bytes} + {in_table}");
    }
}
