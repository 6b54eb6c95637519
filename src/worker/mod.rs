//! The worker: a thin loop over a log, around the pure core.
//!
//! One step is one batch: poll, take in requests, let timers fire, judge responses, commit once.
//! Where the commit does not go through, memory is what it was before the step, and the log reads
//! the same records again.

pub mod clock;
mod observe;
mod spread;

use self::spread::{Job, Moment};

use crate::log::{Commit, Event, Log, LogError, Offset, Partition, Record, Topic, Transaction};
use crate::partition::{Around, Blocked, Effects, PartitionState};
use crate::telemetry::Metrics;
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Bounds of a step.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Records taken from the log at once.
    pub batch_records_max: usize,
    /// How long a step waits for records where nothing else is due.
    pub poll_wait: Duration,
    /// Responses that may wait for their requests in one partition; beyond that they are read again later.
    pub parked_max: usize,
    /// Bytes that one record may have.
    pub record_bytes_max: usize,
    /// Threads that judge, the worker's own among them; 0 counts as 1.
    pub threads: usize,
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Something was read, judged or due.
    Worked,
    /// Partitions are ours whose state is not rebuilt yet. Each of the next steps rebuilds one, and reads nothing.
    Restoring,
    /// There was nothing to do for as long as the step waited.
    Idle,
    /// The commit did not go through; the same records come again.
    Undone,
}

/// A worker and its partitions.
#[derive(Debug)]
pub struct Worker<L> {
    log: L,
    around: Arc<Around>,
    bounds: Bounds,
    metrics: Arc<Metrics>,
    partitions: BTreeMap<Partition, Owned>,
    /// Ours, and to be rebuilt before anything else; the next one last.
    unrestored: Vec<Partition>,
    seed: u64,
}

#[derive(Debug)]
struct Owned {
    state: PartitionState,
    /// The next response offset to commit where none waits.
    responses_next: Option<Offset>,
}

/// What a batch has for one partition.
#[derive(Debug, Default)]
struct Share {
    requests: Vec<Record>,
    responses: Vec<Record>,
}

/// Timers that one partition may work through in a step; the others are due still.
const TIMERS_MAX: usize = 1000;

impl<L: Log> Worker<L> {
    /// A worker that owns nothing yet. `seed` comes from the system's generator.
    pub fn new(log: L, around: Around, bounds: Bounds, metrics: Arc<Metrics>, seed: u64) -> Worker<L> {
        Worker {
            log,
            around: Arc::new(around),
            bounds,
            metrics,
            partitions: BTreeMap::new(),
            unrestored: Vec::new(),
            seed,
        }
    }

    pub fn log_mut(&mut self) -> &mut L {
        &mut self.log
    }

    /// The state of the partitions that this worker owns.
    pub fn states(&self) -> impl Iterator<Item = &PartitionState> {
        self.partitions.values().map(|owned| &owned.state)
    }

    /// The partitions that this worker owns.
    pub fn partitions(&self) -> impl Iterator<Item = Partition> + '_ {
        self.partitions.keys().copied()
    }

    /// One batch. `now` is read anew for what is judged after the poll has waited.
    ///
    /// # Errors
    /// The log failed. The state in memory is then not to be used further.
    pub fn step(&mut self, now: impl Fn() -> Timestamp) -> Result<Step, LogError> {
        if let Some(partition) = self.unrestored.pop() {
            self.restore(partition)?;
            return Ok(if self.unrestored.is_empty() { Step::Worked } else { Step::Restoring });
        }
        let event = self.log.poll(self.bounds.batch_records_max, self.wait(now()))?;
        let was_quiet = event == Event::Idle;
        let shares = match event {
            Event::Assigned(partitions) => return Ok(self.rebuild(partitions)),
            Event::Revoked(partitions) => {
                partitions.iter().for_each(|partition| drop(self.partitions.remove(partition)));
                BTreeMap::new()
            }
            Event::Records(records) => split(records),
            Event::Idle => BTreeMap::new(),
        };
        let step = self.work(shares, now())?;
        Ok(if step == Step::Idle && !was_quiet { Step::Worked } else { step })
    }

    /// Not longer than until the next timer.
    fn wait(&self, now: Timestamp) -> Duration {
        let due = self.partitions.values().filter_map(|owned| owned.state.next_due_ms()).min();
        let until = due.map(|due| Duration::from_millis(due.saturating_sub(now.unix_millis()).max(0) as u64));
        until.map_or(self.bounds.poll_wait, |until| until.min(self.bounds.poll_wait))
    }

    fn rebuild(&mut self, mut partitions: Vec<Partition>) -> Step {
        partitions.reverse();
        self.unrestored = partitions;
        Step::Restoring
    }

    fn restore(&mut self, partition: Partition) -> Result<(), LogError> {
        let started = clock::instant();
        let mut state =
            PartitionState::new(partition, self.seed ^ (partition.0 as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        self.log.restore(partition, &mut |record| {
            state.restore(&record).map_err(|what| LogError::Restore { position: record.position, what })
        })?;
        state.restored(&self.around);
        tracing::info!(partition = partition.0, requests = state.len(), "partition restored");
        self.metrics.restored(started.elapsed());
        self.partitions.insert(partition, Owned { state, responses_next: None });
        Ok(())
    }

    fn work(&mut self, mut shares: BTreeMap<Partition, Share>, now: Timestamp) -> Result<Step, LogError> {
        let moment = Moment { around: &self.around, now, record_bytes_max: self.bounds.record_bytes_max };
        let mut jobs = Vec::with_capacity(self.partitions.len());
        for (&id, owned) in &mut self.partitions {
            let applied = self.log.position(Topic::Requests, id)?;
            jobs.push(Job::new(id, owned, shares.remove(&id).unwrap_or_default(), applied));
        }
        spread::run(&mut jobs, self.bounds.threads, moment);
        let mut transaction = Transaction::default();
        let mut done: Vec<(Partition, Effects)> = Vec::new();
        for mut job in jobs {
            while job.blocked == Blocked::AskEnd {
                job.go_on(self.log.end_offset(Topic::Requests, job.id)?, moment);
            }
            self.metrics.decided(job.judged, job.took);
            transaction.offsets.append(&mut job.offsets);
            if !job.effects.is_empty() {
                transaction.records.append(&mut job.records);
                done.push((job.id, job.effects));
            }
        }
        if transaction.records.is_empty() && transaction.offsets.is_empty() {
            self.partitions.values_mut().for_each(|owned| owned.state.commit());
            return Ok(Step::Idle);
        }
        self.finish(transaction, &done)
    }

    fn finish(&mut self, transaction: Transaction, done: &[(Partition, Effects)]) -> Result<Step, LogError> {
        let records = transaction.records.len();
        let started = clock::instant();
        let commit = self.log.commit(transaction);
        observe::commit(&self.metrics, &commit, records, started.elapsed());
        match commit? {
            Commit::Committed => {
                self.partitions.values_mut().for_each(|owned| owned.state.commit());
                for (partition, effects) in done {
                    observe::effects(&self.metrics, *partition, effects);
                }
                observe::states(&self.metrics, self.states());
                let crowded = self.states().any(|state| state.waiting() > self.bounds.parked_max);
                if crowded { self.undo().map(|()| Step::Worked) } else { Ok(Step::Worked) }
            }
            Commit::Aborted => {
                tracing::warn!("the transaction was aborted; its records are read again");
                self.undo()?;
                Ok(Step::Undone)
            }
            Commit::Indeterminate => {
                tracing::warn!("the transaction's end is not known; the state is restored from the log");
                self.log.rewind()?;
                let owned = std::mem::take(&mut self.partitions).into_keys().collect();
                Ok(self.rebuild(owned))
            }
        }
    }

    /// Memory and positions go back to what is committed.
    fn undo(&mut self) -> Result<(), LogError> {
        for owned in self.partitions.values_mut() {
            owned.state.rollback();
            owned.responses_next = None;
        }
        self.log.rewind()
    }
}

fn split(records: Vec<Record>) -> BTreeMap<Partition, Share> {
    let mut shares: BTreeMap<Partition, Share> = BTreeMap::new();
    for record in records {
        let share = shares.entry(record.position.partition).or_default();
        if record.position.topic == Topic::Requests {
            share.requests.push(record)
        } else {
            share.responses.push(record)
        }
    }
    shares
}
