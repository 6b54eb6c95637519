//! The same with every fate a response can have: overtaken, failed, retried, of nobody, of no form. Each reason,
//! payload, retry directive and closed state is asked for by name.

mod load;
mod verdict;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use toolgate::contract::{Registry, fixture::Secrets, pack};
use toolgate::gate::decode::Encoding;
use toolgate::log::sqlite::{SqliteLog, WorkerOptions};
use toolgate::partition::Around;
use toolgate::telemetry::{Build, Metrics};
use toolgate::worker::{Bounds, Worker, clock};

use load::{Dice, Load};

/// Names the log to the child; without it the child's test does nothing.
const CHILD: &str = "TOOLGATE_KILL_FATES_LOG";
pub(crate) const PARTITIONS: i32 = 2;
/// Kills, unless `TOOLGATE_KILLS` says how many.
const KILLS: usize = 50;
/// Longer than any machine takes for what is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

fn open(path: &Path) -> SqliteLog {
    let now_ms = || clock::now().unix_millis();
    let options = WorkerOptions {
        group: "test".into(),
        partitions: PARTITIONS,
        accept_gap: false,
        batch_bytes_max: 1 << 20,
        now_ms,
    };
    SqliteLog::open_worker(path, options).expect("the log opens for a worker")
}

/// The process to be killed: a worker in an endless loop.
#[test]
fn child() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/tools/ci.job_status/v1");
    let mut registry = Registry::default();
    registry.insert(pack::load_dir(&contract).expect("a shipped contract")).expect("it is the only one");
    let around = Around {
        registry,
        secrets: Secrets::default(),
        responses: Encoding::Protobuf,
        requests_topic: "tool.requests".into(),
        responses_topic: "tool.responses".into(),
        partitions: PARTITIONS,
        group: "test".into(),
        worker: "worker-0".into(),
        skew_ms: 0,
    };
    // Small batches make many commits, and with them many moments to die in.
    let bounds = Bounds {
        batch_records_max: 8,
        poll_wait: Duration::from_millis(20),
        parked_max: 100,
        record_bytes_max: 1 << 20,
        threads: 1,
    };
    let metrics = Arc::new(Metrics::new(&[], Build { version: "0", commit: "0" }));
    let seed = clock::now().unix_millis() as u64;
    let mut worker = Worker::new(open(&PathBuf::from(path)), around, bounds, metrics, seed);
    loop {
        worker.step(clock::now).expect("the log works");
    }
}

/// A worker that does not outlive the test, however that ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only where it has been killed and waited for already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn spawn(path: &Path) -> Running {
    let child = Command::new(std::env::current_exe().expect("this test's binary"))
        .args(["fates::child", "--exact", "--nocapture"])
        .env(CHILD, path)
        .stdout(Stdio::null())
        .spawn()
        .expect("the child starts");
    Running(child)
}

/// Kills the child, which must have been alive until now.
fn kill(mut child: Running) {
    assert_eq!(child.0.try_wait().expect("the child can be asked"), None, "the worker ended by itself");
    child.0.kill().expect("the child can be killed");
    child.0.wait().expect("the child ends");
}

/// Waits until something holds, looking whenever the log has changed.
fn wait_until(load: &mut Load, what: &str, mut holds: impl FnMut(&mut Load) -> bool) {
    let started = clock::instant();
    while !holds(load) {
        assert!(started.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}");
        load.client.wait_for_change(Duration::from_millis(20)).expect("the log can be watched");
    }
}

#[test]
fn every_fate_is_what_it_would_be_without_kills() {
    let kills = std::env::var("TOOLGATE_KILLS").map_or(KILLS, |text| text.parse().expect("TOOLGATE_KILLS is a number"));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    drop(open(&path));
    let mut load = Load::new(&path);
    let mut dice = Dice(7);
    let mut interrupted = 0;
    for _ in 0..kills {
        load.append(20);
        let child = spawn(&path);
        // Some die while they start and restore, others after some commits, with more to do.
        let goal = load.results() + dice.roll(16);
        load.append(12);
        wait_until(&mut load, "results", |load| load.results() >= goal);
        std::thread::sleep(Duration::from_micros(dice.roll(30_000) as u64 / (1 + dice.roll(20) as u64)));
        kill(child);
        interrupted += usize::from(!load.is_done());
        load.dispatch();
    }
    let child = spawn(&path);
    wait_until(&mut load, "the end", |load| load.dispatch() == 0 && load.is_done());
    kill(child);
    verdict::check(&mut load);
    assert!(2 * interrupted > kills, "only {interrupted} of {kills} workers had something left to do");
}
