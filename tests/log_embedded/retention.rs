//! What maintenance removes, what it must not, and that the file stays within bounds.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use toolgate::log::sqlite::{Maintained, Retention, SqliteLog, WorkerOptions};
use toolgate::log::{Commit, Event, Log, Offset, Outgoing, Topic, Transaction};

use crate::support::{NOW_MS, P0, all, client, options, outgoing, poll, poll_records, transaction, worker};

fn tombstone(key: &str) -> Outgoing {
    Outgoing { value: None, ..outgoing(Topic::Bindings, 0, key, b"") }
}

fn commit(log: &mut SqliteLog, records: Vec<Outgoing>, offsets: &[(Topic, i32, i64)]) {
    assert_eq!(log.commit(transaction(records, offsets)).expect("valid"), Commit::Committed);
}

/// The state the changelog stands for.
fn restored(log: &mut SqliteLog) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut state = BTreeMap::new();
    log.restore(P0, &mut |record| {
        let key = record.key.expect("bindings have keys");
        match record.value {
            Some(value) => state.insert(key, value),
            None => state.remove(&key),
        };
        Ok(())
    })
    .expect("restores");
    state
}

fn offsets(path: &Path, topic: Topic) -> Vec<i64> {
    all(&mut client(path), topic, 0).iter().map(|record| record.position.offset.0).collect()
}

#[test]
fn old_records_go_but_never_an_input_that_was_not_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let mut log = worker(&path, 1);
    let mut producer = client(&path);
    for timestamp_ms in [10, 20, 30, 40] {
        producer.append(vec![outgoing(Topic::Requests, 0, "k", b"q")], timestamp_ms).expect("appends");
        producer.append(vec![outgoing(Topic::Audit, 0, "k", b"a")], timestamp_ms).expect("appends");
    }
    let retention = Retention::uniform(100);
    log.maintain(1000, &retention, 100).expect("maintains");
    assert_eq!(offsets(&path, Topic::Requests), [0, 1, 2, 3], "nothing was committed yet");
    assert!(offsets(&path, Topic::Audit).is_empty());

    commit(&mut log, vec![], &[(Topic::Requests, 0, 3)]);
    let done = log.maintain(125, &retention, 100).expect("maintains");
    assert_eq!((done.expired, done.more), (2, false), "cut-off at 25");
    assert_eq!(offsets(&path, Topic::Requests), [2, 3]);
    log.maintain(i64::MAX, &retention, 100).expect("maintains");
    assert_eq!(offsets(&path, Topic::Requests), [3], "read up to 3");
    assert_eq!(producer.start_offset(Topic::Requests, P0).expect("reads"), Offset(3));
    assert!(matches!(poll(&mut log), Event::Assigned(_)), "and that is no gap");
    assert_eq!(poll_records(&mut log)[0].position.offset, Offset(3));
}

#[test]
fn offsets_go_on_after_everything_was_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let mut log = worker(&path, 1);
    for round in 0..5 {
        commit(&mut log, vec![outgoing(Topic::Results, 0, "k", b"r"), tombstone("k")], &[]);
        assert_eq!(offsets(&path, Topic::Results), [round]);
        assert_eq!(offsets(&path, Topic::Bindings), [round]);
        log.maintain(NOW_MS + 1000, &Retention::uniform(10), 100).expect("maintains");
        assert!(offsets(&path, Topic::Results).is_empty());
        assert!(offsets(&path, Topic::Bindings).is_empty());
        drop(log);
        log = worker(&path, 1);
        assert_eq!(log.end_offset(Topic::Results, P0).expect("reads"), Offset(round + 1));
    }
}

#[test]
fn compaction_keeps_the_latest_of_a_key_and_a_tombstone_its_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let mut log = worker(&path, 1);
    let put = |key: &str, value: &[u8]| outgoing(Topic::Bindings, 0, key, value);
    commit(&mut log, vec![put("a", b"1"), put("b", b"1"), put("a", b"2"), put("c", b"1"), tombstone("b")], &[]);
    let state = restored(&mut log);
    let retention = Retention::uniform(100);
    let done = log.maintain(NOW_MS, &retention, 100).expect("maintains");
    assert_eq!((done.compacted, done.expired), (2, 0));
    assert_eq!(offsets(&path, Topic::Bindings), [2, 3, 4]);
    assert_eq!(restored(&mut log), state);
    let done = log.maintain(NOW_MS + 101, &retention, 100).expect("maintains");
    assert_eq!((done.compacted, done.expired), (0, 1));
    assert_eq!(offsets(&path, Topic::Bindings), [2, 3]);
    assert_eq!(restored(&mut log), state);
}

#[test]
fn a_step_stays_within_its_budget_and_says_that_there_is_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let mut log = worker(&path, 3);
    for partition in 0..3 {
        let mut records = vec![outgoing(Topic::Audit, partition, "k", b"a"); 20];
        records.extend(vec![outgoing(Topic::Bindings, partition, "k", b"b"); 20]);
        commit(&mut log, records, &[]);
    }
    let (mut steps, mut removed) = (0, 0);
    loop {
        let done = log.maintain(i64::MAX, &Retention::uniform(0), 10).expect("maintains");
        assert!(done.expired + done.compacted <= 10, "{done:?}");
        removed += done.expired + done.compacted;
        steps += 1;
        if !done.more {
            break;
        }
    }
    assert_eq!(removed, 60 + 57, "all of the audit, all but the latest of the changelog");
    assert_eq!(steps, 13, "120 records, 10 at a time, and one to see that nothing is left");
    let last = log.maintain(i64::MAX, &Retention::uniform(0), 10).expect("maintains");
    assert_eq!(Maintained { pages_freed: 0, ..last }, Maintained::default());
}

#[test]
fn maintenance_makes_way_for_another_writer_and_catches_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let mut log = worker(&path, 1);
    commit(&mut log, vec![outgoing(Topic::Audit, 0, "k", b"a"); 5], &[]);
    let writer = Connection::open(&path).expect("opens");
    writer.execute_batch("BEGIN IMMEDIATE").expect("takes the write lock");
    let done = log.maintain(i64::MAX, &Retention::uniform(0), 100).expect("no error, or the worker would stop");
    assert_eq!(done, Maintained { more: true, ..Maintained::default() });
    writer.execute_batch("ROLLBACK").expect("lets go");
    let done = log.maintain(i64::MAX, &Retention::uniform(0), 100).expect("maintains");
    assert_eq!((done.expired, done.more), (5, false));
}

#[test]
fn every_partition_of_many_has_its_turn_within_the_budget() {
    const PARTITIONS: i32 = 200;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let mut log = worker(&path, PARTITIONS);
    let records =
        (0..PARTITIONS).flat_map(|p| [Topic::Audit, Topic::Results].map(|topic| outgoing(topic, p, "k", b"")));
    commit(&mut log, records.collect(), &[]);
    let (mut removed, mut steps) = (0, 0);
    while removed < 400 {
        let done = log.maintain(i64::MAX, &Retention::uniform(0), 7).expect("maintains");
        assert!((1..=7).contains(&done.expired), "{done:?}");
        removed += done.expired;
        steps += 1;
    }
    assert_eq!(steps, 58, "400 records, 7 at a time");
    assert!(!log.maintain(i64::MAX, &Retention::uniform(0), 7).expect("maintains").more);
}

static CLOCK_MS: AtomicI64 = AtomicI64::new(0);

/// Bytes of the log and its write-ahead log.
fn size(path: &Path) -> u64 {
    let wal = path.with_extension("log-wal");
    [path, &wal].iter().map(|file| fs::metadata(file).map_or(0, |found| found.len())).sum()
}

/// One round of work: 200 requests of 1 KiB come in, each leaves a result, an audit record and a binding that
/// the next round closes.
fn round(log: &mut SqliteLog, path: &Path, number: i64) {
    let now_ms = CLOCK_MS.fetch_add(1000, Ordering::Relaxed) + 1000;
    let requests = (0..200).map(|n| outgoing(Topic::Requests, 0, &format!("{number}/{n}"), &[1; 1024])).collect();
    client(path).append(requests, now_ms).expect("appends");
    let Event::Records(batch) = log.poll(200, Duration::ZERO).expect("polls") else { panic!("200 records wait") };
    assert_eq!(batch.len(), 200);
    let mut records = Vec::new();
    for n in 0..200 {
        let key = format!("{number}/{n}");
        records.push(outgoing(Topic::Results, 0, &key, &[2; 1024]));
        records.push(outgoing(Topic::Audit, 0, &key, &[3; 256]));
        records.push(outgoing(Topic::Bindings, 0, &key, &[4; 512]));
        records.push(tombstone(&format!("{}/{n}", number - 1)));
    }
    commit(log, records, &[(Topic::Requests, 0, (number + 1) * 200)]);
    while log.maintain(now_ms, &Retention::uniform(3000), 500).expect("maintains").more {}
}

#[test]
fn the_file_stays_bounded_under_steady_load_and_shrinks_after_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let options = WorkerOptions { now_ms: || CLOCK_MS.load(Ordering::Relaxed), ..options(1) };
    let mut log = SqliteLog::open_worker(&path, options).expect("opens");
    assert!(matches!(poll(&mut log), Event::Assigned(_)));
    let mut sizes = Vec::new();
    for number in 0..50 {
        round(&mut log, &path, number);
        sizes.push(size(&path));
    }
    let (early, late) = (sizes[..15].iter().max(), sizes[15..].iter().max());
    assert!(late <= early.map(|bytes| bytes + bytes / 4).as_ref(), "grows on: {sizes:?}");
    assert_eq!(restored(&mut log).len(), 200, "the last round's bindings are open");

    while log.maintain(i64::MAX, &Retention::uniform(0), 500).expect("maintains").more {}
    while log.maintain(i64::MAX, &Retention::uniform(0), 500).expect("maintains").pages_freed > 0 {}
    assert_eq!(log.commit(Transaction::default()).expect("valid"), Commit::Committed);
    drop(log);
    assert!(size(&path) < 1 << 20, "{} bytes for 200 bindings of 512", size(&path));
}
