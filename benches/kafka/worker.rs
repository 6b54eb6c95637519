//! The worker as a process of its own, so that nobody else's time is counted.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolgate::contract::fixture::Secrets;
use toolgate::contract::pack;
use toolgate::gate::decode::Encoding;
use toolgate::log::kafka::{KafkaLog, KafkaOptions};
use toolgate::log::{Log, RECORD_BYTES_MAX};
use toolgate::partition::Around;
use toolgate::telemetry::{Build, Metrics};
use toolgate::worker::{Bounds, Worker};

use crate::at_least_once::AtLeastOnce;
use crate::cpu::Used;
use crate::job::Job;
use crate::load::{self, PARTITIONS};
use crate::timed;
use crate::timed::{STAGES, Timed};

/// Everything that partitions share, with the shipped contracts.
pub fn around() -> Around {
    Around {
        registry: pack::load_all(Path::new("schemas")).expect("the shipped contracts load").0,
        secrets: Secrets::default(),
        responses: Encoding::Protobuf,
        requests_topic: "tool.requests".into(),
        responses_topic: "tool.responses".into(),
        partitions: PARTITIONS,
        group: "bench".into(),
        worker: "bench".into(),
        skew_ms: 0,
    }
}

/// The options of a job's worker.
pub fn options(job: &Job) -> KafkaOptions {
    let mut options = KafkaOptions::new(job.servers.as_str(), &job.group, "bench");
    options.topics = load::topics(&job.inputs, &job.group);
    // Only the number of records bounds a batch that is meant to be large.
    options.batch_bytes_max = options.batch_bytes_max.max(job.batch * 8192);
    options
}

fn bounds(job: &Job) -> Bounds {
    Bounds {
        batch_records_max: job.batch,
        // One, unless asked for: the broker and the client need a core as well.
        threads: crate::knob("TOOLGATE_BENCH_THREADS", 1),
        poll_wait: Duration::from_millis(100),
        parked_max: 10_000,
        record_bytes_max: RECORD_BYTES_MAX,
    }
}

/// Judges `count` responses, each of which is accepted, and says what that took.
pub fn drain(job: &Job) {
    let log = KafkaLog::connect(options(job)).expect("the worker connects");
    if job.interval.is_zero() {
        run(job, log);
    } else {
        run(job, AtLeastOnce::new(log, job, options(job)));
    }
}

fn run(job: &Job, log: impl Log) {
    timed::listen();
    let metrics = Arc::new(Metrics::new(&[], Build { version: "bench", commit: "bench" }));
    let mut worker = Worker::new(Timed::new(log), around(), bounds(job), metrics, 7);
    let now = load::now();
    while worker.states().next().is_none() {
        let _step = worker.step(|| now).expect("the log works");
    }
    let (started, before) = (Instant::now(), Used::now());
    let (already, _) = (worker.log_mut().results, timed::take());
    while worker.log_mut().results - already < job.count {
        let _step = worker.step(|| now).expect("the log works");
    }
    let (took, spent) = (started.elapsed(), timed::take());
    let used = before.since();
    let each = |time: Duration| time.as_secs_f64() * 1e6 / job.count as f64;
    println!("per_second={}", job.count as f64 / took.as_secs_f64());
    println!("cpu_us={}", each(used.all));
    println!("library_us={}", each(used.library));
    println!("others_us={}", each(used.all.saturating_sub(used.library + spent.cpu.iter().sum())));
    println!("rewinds={}", worker.log_mut().rewinds);
    println!("asks={}", worker.log_mut().asks);
    println!("transaction_ms={}", took.as_secs_f64() * 1e3 / worker.log_mut().transactions as f64);
    for (at, stage) in STAGES.iter().enumerate() {
        println!("{stage}_us={}", each(spent.cpu[at]));
        println!("{stage}_clock_us={}", each(spent.clock[at]));
    }
}

/// Serves until it is killed.
pub fn serve(job: &Job) {
    let log = KafkaLog::connect(options(job)).expect("the worker connects");
    let metrics = Arc::new(Metrics::new(&[], Build { version: "bench", commit: "bench" }));
    let mut worker = Worker::new(log, around(), bounds(job), metrics, 7);
    let now = load::now();
    loop {
        let _step = worker.step(|| now).expect("the log works");
    }
}
