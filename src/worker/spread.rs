//! A batch on several cores: partitions know nothing of each other, so each is worked through by whichever thread is free.
//!
//! The log stays with the worker's thread. What a partition needs to know of it is asked before, and what only the log can
//! answer in the middle is asked after the others are done. What comes out is put together in the order of the
//! partitions, so it does not depend on the number of threads.

use super::{Owned, Share, TIMERS_MAX, clock};
use crate::log::{Offset, Outgoing, Partition, Topic};
use crate::partition::{Around, Blocked, Effects};
use crate::time::Timestamp;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Records below which a batch stays on one thread: starting another costs about as much as judging ten responses.
const RECORDS_TO_SPREAD: usize = 64;

/// What all partitions have in common in one step.
#[derive(Clone, Copy)]
pub(super) struct Moment<'a> {
    pub(super) around: &'a Around,
    pub(super) now: Timestamp,
    pub(super) record_bytes_max: usize,
}

/// One partition's share of a step, and what became of it.
pub(super) struct Job<'a> {
    pub(super) id: Partition,
    owned: &'a mut Owned,
    share: Share,
    /// The next request offset: everything below it was read.
    applied: Offset,
    pub(super) blocked: Blocked,
    pub(super) effects: Effects,
    pub(super) records: Vec<Outgoing>,
    pub(super) offsets: Vec<(Topic, Partition, Offset)>,
    /// How many responses were judged, and how long that took.
    pub(super) judged: usize,
    pub(super) took: Duration,
}

impl<'a> Job<'a> {
    pub(super) fn new(id: Partition, owned: &'a mut Owned, share: Share, applied: Offset) -> Job<'a> {
        Job {
            id,
            owned,
            share,
            applied,
            blocked: Blocked::No,
            effects: Effects::default(),
            records: Vec::new(),
            offsets: Vec::new(),
            judged: 0,
            took: Duration::ZERO,
        }
    }

    fn len(&self) -> usize {
        self.share.requests.len() + self.share.responses.len()
    }

    /// Requests, then timers, then responses, as far as they can be judged without asking the log.
    fn run(&mut self, moment: Moment<'_>) {
        let Moment { around, now, .. } = moment;
        let share = std::mem::take(&mut self.share);
        self.owned.state.begin();
        if let Some(last) = share.requests.last() {
            self.offsets.push((Topic::Requests, self.id, last.position.offset.next()));
        }
        for record in &share.requests {
            self.owned.state.request(record, around, now, &mut self.effects);
        }
        self.owned.state.due(around, now, TIMERS_MAX, &mut self.effects);
        let before = self.owned.state.first_waiting();
        if let Some(last) = share.responses.last() {
            self.owned.responses_next = Some(last.position.offset.next());
        }
        let had_responses = !share.responses.is_empty();
        share.responses.into_iter().for_each(|record| self.owned.state.receive(record));
        self.judge(moment);
        if had_responses || before != self.owned.state.first_waiting() {
            self.offsets.extend(self.next_response());
        }
    }

    /// Goes on after a miss, now that the end of the requests is known.
    pub(super) fn go_on(&mut self, end: Offset, moment: Moment<'_>) {
        self.owned.state.set_end(end);
        let before = self.owned.state.first_waiting();
        self.judge(moment);
        if before != self.owned.state.first_waiting() {
            self.offsets.retain(|(topic, ..)| *topic != Topic::Responses);
            self.offsets.extend(self.next_response());
        }
    }

    fn judge(&mut self, moment: Moment<'_>) {
        let (started, waiting) = (clock::instant(), self.owned.state.waiting());
        self.blocked = self.owned.state.respond(moment.around, self.applied, moment.now, &mut self.effects);
        self.judged += waiting - self.owned.state.waiting();
        self.took += started.elapsed();
        if self.blocked != Blocked::AskEnd {
            self.records = self.effects.records(self.id, moment.record_bytes_max);
        }
    }

    /// What waits is read again after a restart, so nothing is committed past it.
    fn next_response(&self) -> Option<(Topic, Partition, Offset)> {
        let next = self.owned.state.first_waiting().or(self.owned.responses_next)?;
        Some((Topic::Responses, self.id, next))
    }
}

/// Runs every job, on up to so many threads.
///
/// # Panics
/// Where a job does. Nothing of the batch has been committed then.
pub(super) fn run(jobs: &mut [Job<'_>], threads: usize, moment: Moment<'_>) {
    let busy = jobs.iter().filter(|job| job.len() > 0).count();
    let helpers = threads.min(busy).saturating_sub(1);
    if helpers == 0 || jobs.iter().map(Job::len).sum::<usize>() < RECORDS_TO_SPREAD {
        return jobs.iter_mut().for_each(|job| job.run(moment));
    }
    let queue = Mutex::new(jobs.iter_mut());
    let work = || {
        // A panic elsewhere ends the step; until then the queue is whole.
        while let Some(job) = { queue.lock().unwrap_or_else(PoisonError::into_inner).next() } {
            job.run(moment);
        }
    };
    std::thread::scope(|scope| {
        (0..helpers).for_each(|_| drop(scope.spawn(work)));
        work();
    });
}
