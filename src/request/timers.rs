//! When to look at a request again: sixteen bytes each, checked when they come due.

use crate::time::Timestamp;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Milliseconds since the epoch, and the hash of a request's id.
type Timer = (i64, u64);

/// A heap of moments. An entry names a request by its hash and may be out of date: whoever takes
/// it looks at the record, which alone says what is due.
#[derive(Debug, Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<Timer>>,
    journal: Option<Journal>,
}

/// What the open batch has done.
#[derive(Debug, Default)]
struct Journal {
    set: Vec<Timer>,
    taken: Vec<Timer>,
}

impl Timers {
    pub fn set(&mut self, at: Timestamp, hash: u64) {
        let timer = (at.unix_millis(), hash);
        self.heap.push(Reverse(timer));
        if let Some(journal) = &mut self.journal {
            journal.set.push(timer);
        }
    }

    /// The earliest moment, in milliseconds since the epoch.
    pub fn next_due_ms(&self) -> Option<i64> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes one entry that is due.
    pub fn pop_due(&mut self, now: Timestamp) -> Option<u64> {
        if self.next_due_ms()? > now.unix_millis() {
            return None;
        }
        let Reverse(timer) = self.heap.pop()?;
        if let Some(journal) = &mut self.journal {
            journal.taken.push(timer);
        }
        Some(timer.1)
    }

    pub fn len(&self) -> usize {
        self.heap.len()
    }

    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Starts a batch: from here on changes can be undone.
    pub fn begin(&mut self) {
        self.journal = Some(Journal::default());
    }

    /// The batch is durable.
    pub fn commit(&mut self) {
        self.journal = None;
    }

    /// Undoes the batch. Entries that it has set are removed one for one, or a log that fails for
    /// hours would fill the heap with repetitions.
    pub fn rollback(&mut self) {
        let Some(Journal { set, taken }) = self.journal.take() else { return };
        self.heap.extend(taken.into_iter().map(Reverse));
        let mut undone: HashMap<Timer, u32> = HashMap::new();
        for timer in set {
            *undone.entry(timer).or_default() += 1;
        }
        if undone.is_empty() {
            return;
        }
        self.heap.retain(|Reverse(timer)| match undone.get_mut(timer) {
            Some(count @ 1..) => {
                *count -= 1;
                false
            }
            Some(0) | None => true,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_unix_millis(millis).unwrap()
    }

    fn drain(mut timers: Timers) -> Vec<(i64, u64)> {
        let next = |timers: &mut Timers| Some((timers.next_due_ms()?, timers.pop_due(at(1_000_000))?));
        std::iter::from_fn(|| next(&mut timers)).collect()
    }

    #[test]
    fn timers_come_in_order_and_only_when_due() {
        let mut timers = Timers::default();
        for (millis, hash) in [(30, 3), (10, 1), (20, 2)] {
            timers.set(at(millis), hash);
        }
        assert_eq!((timers.next_due_ms(), timers.pop_due(at(9))), (Some(10), None));
        assert_eq!([20, 20, 20].map(|now| timers.pop_due(at(now))), [Some(1), Some(2), None]);
        assert_eq!(drain(timers), [(30, 3)]);
    }

    proptest! {
        /// The steps of a batch: set a timer, or take what is due.
        #[test]
        fn an_undone_batch_has_left_nothing_and_taken_nothing(
            before in prop::collection::vec((0..9i64, 0..4u64), 0..20),
            batch in prop::collection::vec((any::<bool>(), 0..9i64, 0..4u64), 0..40),
            is_durable in any::<bool>(),
        ) {
            let mut timers = Timers::default();
            let mut expected = before.clone();
            for (millis, hash) in before {
                timers.set(at(millis), hash);
            }
            timers.begin();
            for (sets, millis, hash) in batch {
                if sets { timers.set(at(millis), hash) } else { timers.pop_due(at(millis)); }
            }
            if is_durable {
                expected = timers.heap.iter().map(|Reverse(timer)| *timer).collect();
                timers.commit();
            }
            timers.rollback();
            expected.sort_unstable();
            prop_assert_eq!(drain(timers), expected);
        }
    }
}
