//! What the tests of the embedded log share.

use std::path::Path;
use std::time::Duration;

use toolgate::log::sqlite::{SqliteClient, SqliteLog, WorkerOptions};
use toolgate::log::{Event, Log, LogError, Offset, Outgoing, Partition, Record, Topic, Transaction};

pub(crate) const GROUP: &str = "test";
/// The time every commit is stamped with.
pub(crate) const NOW_MS: i64 = 1_000_000;
pub(crate) const P0: Partition = Partition(0);

pub(crate) fn options(partitions: i32) -> WorkerOptions {
    let group = GROUP.to_owned();
    WorkerOptions { group, partitions, accept_gap: false, batch_bytes_max: 1 << 20, now_ms: || NOW_MS }
}

pub(crate) fn worker(path: &Path, partitions: i32) -> SqliteLog {
    SqliteLog::open_worker(path, options(partitions)).expect("the log opens for a worker")
}

pub(crate) fn client(path: &Path) -> SqliteClient {
    SqliteLog::open_client(path, None).expect("the log opens for a client")
}

pub(crate) fn outgoing(topic: Topic, partition: i32, key: &str, value: &[u8]) -> Outgoing {
    let (partition, key) = (Some(Partition(partition)), Some(key.as_bytes().to_vec()));
    Outgoing { topic, partition, key, value: Some(value.to_vec()), headers: Vec::new() }
}

pub(crate) fn transaction(records: Vec<Outgoing>, offsets: &[(Topic, i32, i64)]) -> Transaction {
    let offsets = offsets.iter().map(|&(topic, partition, next)| (topic, Partition(partition), Offset(next))).collect();
    Transaction { records, offsets }
}

/// The next event, without waiting.
pub(crate) fn poll(log: &mut SqliteLog) -> Event {
    log.poll(1000, Duration::ZERO).expect("the log can be polled")
}

pub(crate) fn poll_records(log: &mut SqliteLog) -> Vec<Record> {
    match poll(log) {
        Event::Records(records) => records,
        other @ (Event::Assigned(_) | Event::Revoked(_) | Event::Idle) => panic!("no records but {other:?}"),
    }
}

pub(crate) fn all(client: &mut SqliteClient, topic: Topic, partition: i32) -> Vec<Record> {
    client.read(topic, Partition(partition), Offset(0), usize::MAX).expect("the log can be read")
}

pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, LogError>, parts: &[&str]) -> LogError {
    let error = result.expect_err("this is refused");
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    error
}
