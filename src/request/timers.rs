//! When to look at a request again: sixteen bytes each, checked when they come due.

use crate::time::Timestamp;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A heap of moments. An entry names a request by its hash and may be out of date: whoever takes
/// it looks at the record, which alone says what is due.
#[derive(Debug, Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(i64, u64)>>,
}

impl Timers {
    pub fn set(&mut self, at: Timestamp, hash: u64) {
        self.heap.push(Reverse((at.unix_millis(), hash)));
    }

    /// The earliest moment, in milliseconds since the epoch.
    pub fn next_due_ms(&self) -> Option<i64> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes one entry that is due.
    pub fn pop_due(&mut self, now: Timestamp) -> Option<u64> {
        let is_due = self.next_due_ms().is_some_and(|at| at <= now.unix_millis());
        if is_due { self.heap.pop().map(|Reverse((_, hash))| hash) } else { None }
    }

    pub fn len(&self) -> usize {
        self.heap.len()
    }

    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}
