//! The child: a worker over the file that its environment names, until it is killed.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use toolgate::contract::fixture::Secrets;
use toolgate::contract::pack;
use toolgate::gate::decode::Encoding;
use toolgate::log::RECORD_BYTES_MAX;
use toolgate::log::sqlite::{SqliteLog, WorkerOptions};
use toolgate::partition::Around;
use toolgate::telemetry::{Build, Metrics};
use toolgate::worker::{Bounds, Worker, clock};

pub(crate) const LOG_VARIABLE: &str = "TOOLGATE_KILL_TEST_LOG";
pub(crate) const PARTITIONS: i32 = 3;

pub(crate) fn spawn(path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .env(LOG_VARIABLE, path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

pub(crate) fn run_until_killed(path: &Path) {
    let mut registry = toolgate::contract::Registry::default();
    for tool in ["review_status", "ci.job_status"] {
        registry.insert(pack::load_dir(&Path::new("schemas/tools").join(tool).join("v1")).unwrap()).unwrap();
    }
    let options = WorkerOptions {
        group: "kill".into(),
        partitions: PARTITIONS,
        accept_gap: false,
        batch_bytes_max: 1 << 20,
        now_ms: || clock::now().unix_millis(),
    };
    let around = Around {
        registry,
        secrets: Secrets::default(),
        responses: Encoding::Protobuf,
        requests_topic: "tool.requests".into(),
        responses_topic: "tool.responses".into(),
        partitions: PARTITIONS,
        group: "kill".into(),
        worker: "kill".into(),
        skew_ms: 0,
    };
    let bounds = Bounds {
        batch_records_max: 40,
        poll_wait: Duration::from_millis(5),
        parked_max: 1000,
        record_bytes_max: RECORD_BYTES_MAX,
        threads: 1,
    };
    let metrics = Arc::new(Metrics::new(&[], Build { version: "test", commit: "test" }));
    let log = SqliteLog::open_worker(path, options).unwrap();
    let mut worker = Worker::new(log, around, bounds, metrics, u64::from(std::process::id()));
    loop {
        worker.step(clock::now).unwrap();
    }
}
