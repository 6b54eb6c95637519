//! A log that notes where the worker's thread spends its time.

use std::sync::Mutex;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use toolgate::log::{Commit, Event, Log, LogError, Offset, Partition, Record, Topic, Transaction};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::cpu;

/// The stages of a step, in order. Those of the commit are the marks of `log/kafka/txn.rs`; the last two happen on a
/// thread of their own, so the worker's has only the waiting.
pub const STAGES: [&str; 6] = ["poll", "judge", "queued", "acknowledged", "offsets", "committed"];

/// Time on the processor and on the clock, by stage.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    pub cpu: [Duration; STAGES.len()],
    pub clock: [Duration; STAGES.len()],
}

#[derive(Debug)]
struct Lap {
    thread: ThreadId,
    cpu: Duration,
    clock: Instant,
    spent: Spent,
}

/// One worker thread, so one stopwatch.
static LAP: Mutex<Option<Lap>> = Mutex::new(None);

/// Everything since the last lap went to `stage`.
fn lap(stage: &str) {
    let (cpu, clock, thread) = (cpu::thread(), Instant::now(), std::thread::current().id());
    let mut guard = LAP.lock().expect("nobody panics in here");
    let lap = guard.get_or_insert_with(|| Lap { thread, cpu, clock, spent: Spent::default() });
    let Some(at) = STAGES.iter().position(|known| *known == stage) else { return };
    lap.spent.clock[at] += clock.duration_since(lap.clock);
    lap.clock = clock;
    if lap.thread == thread {
        lap.spent.cpu[at] += cpu.saturating_sub(lap.cpu);
        lap.cpu = cpu;
    }
}

/// What was spent since the last call.
pub fn take() -> Spent {
    lap("judge");
    let mut guard = LAP.lock().expect("nobody panics in here");
    guard.as_mut().map(|lap| std::mem::take(&mut lap.spent)).unwrap_or_default()
}

/// Hears the marks of a transaction.
struct Marks;

impl<S: tracing::Subscriber> Layer<S> for Marks {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        lap(event.metadata().name());
    }
}

/// Listens to the marks, and to nothing else.
pub fn listen() {
    let marks = tracing_subscriber::filter::filter_fn(|metadata| metadata.target() == "toolgate::transaction");
    tracing_subscriber::registry().with(Marks.with_filter(marks)).init();
}

/// Counts, and tells poll, judging and commit apart.
#[derive(Debug)]
pub struct Timed<L> {
    inner: L,
    /// Results that are committed.
    pub results: usize,
    pub transactions: usize,
    /// How often it went back to what is committed, and how often it asked for an end to prove an absence.
    pub rewinds: usize,
    pub asks: usize,
}

impl<L> Timed<L> {
    pub fn new(inner: L) -> Timed<L> {
        Timed { inner, results: 0, transactions: 0, rewinds: 0, asks: 0 }
    }
}

impl<L: Log> Log for Timed<L> {
    fn poll(&mut self, records_max: usize, wait: Duration) -> Result<Event, LogError> {
        lap("judge");
        let event = self.inner.poll(records_max, wait);
        lap("poll");
        event
    }

    fn restore(
        &mut self,
        partition: Partition,
        apply: &mut dyn FnMut(Record) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        self.inner.restore(partition, apply)
    }

    fn position(&mut self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        self.inner.position(topic, partition)
    }

    fn end_offset(&mut self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        self.asks += 1;
        self.inner.end_offset(topic, partition)
    }

    fn commit(&mut self, transaction: Transaction) -> Result<Commit, LogError> {
        lap("judge");
        let results = transaction.records.iter().filter(|record| record.topic == Topic::Results).count();
        let commit = self.inner.commit(transaction);
        lap("committed");
        if matches!(commit, Ok(Commit::Committed)) {
            self.results += results;
            self.transactions += 1;
        }
        commit
    }

    fn rewind(&mut self) -> Result<(), LogError> {
        self.rewinds += 1;
        self.inner.rewind()
    }
}
