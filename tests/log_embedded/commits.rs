//! Commits are atomic, whatever is in their way.

use std::time::Duration;

use rusqlite::Connection;
use toolgate::log::sqlite::{SqliteLog, WorkerOptions};
use toolgate::log::{Commit, Event, Header, Log, LogError, Offset, Outgoing, Partition, Position, Topic, Transaction};

use crate::support::{
    GROUP, NOW_MS, P0, all, client, options, outgoing, poll, poll_records, refused, transaction, worker,
};

#[test]
fn a_record_comes_back_as_it_was_given() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let mut log = worker(&path, 4);
    let headers =
        vec![Header { name: "a".to_owned(), value: Some(b"1".to_vec()) }, Header { name: "a".to_owned(), value: None }];
    let sent = Outgoing { topic: Topic::Requests, partition: None, key: Some(b"21".to_vec()), value: None, headers };
    let mut writer = client(&path);
    let positions = writer.append(vec![sent.clone(), sent.clone()], 77).expect("appends");
    // murmur2("21") = -973932308; without its sign, modulo 4.
    let partition = Partition((-973_932_308_i32 & 0x7fff_ffff) % 4);
    assert_eq!(positions[1], Position { topic: Topic::Requests, partition, offset: Offset(1) });
    assert_eq!(poll(&mut log), Event::Assigned((0..4).map(Partition).collect()));
    let read = poll_records(&mut log);
    assert_eq!(read, writer.read(Topic::Requests, partition, Offset(0), 9).expect("reads"));
    assert_eq!(read.iter().map(|record| record.position).collect::<Vec<_>>(), positions);
    let first = read.into_iter().next().expect("two records");
    assert_eq!((first.timestamp_ms, first.key, first.value, first.headers), (77, sent.key, None, sent.headers));
}

#[test]
fn offsets_and_records_are_committed_together_and_read_on_from() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let mut log = worker(&path, 1);
    let requests = (0..5).map(|n| outgoing(Topic::Requests, 0, "k", &[n])).collect();
    client(&path).append(requests, 1).expect("appends");
    assert!(matches!(poll(&mut log), Event::Assigned(_)));
    assert_eq!(poll_records(&mut log).len(), 5);
    assert_eq!(poll(&mut log), Event::Idle);
    let done = transaction(vec![outgoing(Topic::Results, 0, "k", b"r")], &[(Topic::Requests, 0, 3)]);
    assert_eq!(log.commit(done).expect("commits"), Commit::Committed);
    log.rewind().expect("no gap");
    assert_eq!(poll_records(&mut log)[0].position.offset, Offset(3));
    drop(log);

    let mut log = worker(&path, 1);
    assert!(matches!(poll(&mut log), Event::Assigned(_)));
    assert_eq!(poll_records(&mut log)[0].position.offset, Offset(3));
    let results = all(&mut client(&path), Topic::Results, 0);
    assert_eq!((results.len(), results[0].timestamp_ms), (1, NOW_MS));
    assert_eq!(client(&path).committed(Topic::Requests, P0).expect("reads"), Some(Offset(3)));
}

#[test]
fn a_commit_that_is_refused_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let good = || outgoing(Topic::Results, 0, "k", b"r");
    let large = outgoing(Topic::Results, 0, "k", &vec![0; toolgate::log::RECORD_BYTES_MAX + 1]);
    for (bad, part) in [
        (transaction(vec![good(), outgoing(Topic::Results, 2, "k", b"")], &[]), "no such partition"),
        (transaction(vec![good()], &[(Topic::Requests, 0, 1)]), "the log ends at 0"),
        (transaction(vec![good()], &[(Topic::Requests, 2, 0)]), "no such partition"),
        (transaction(vec![good(), large], &[]), "over the 8388608 a log takes"),
    ] {
        let mut log = worker(&path, 2);
        refused(log.commit(bad), &[part]);
        refused(log.commit(Transaction::default()), &["not rewound before the next commit"]);
        refused(log.poll(1, Duration::ZERO), &["not rewound before the next poll"]);
        log.rewind().expect("no gap");
        assert_eq!(log.end_offset(Topic::Results, P0).expect("reads"), Offset(0), "{part}");
        assert!(all(&mut client(&path), Topic::Results, 0).is_empty(), "{part}");
    }
}

#[test]
fn an_error_in_the_middle_of_a_commit_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let mut log = worker(&path, 2);
    client(&path).append(vec![outgoing(Topic::Requests, 0, "k", b"q")], 1).expect("appends");
    let trap = "CREATE TRIGGER trap BEFORE INSERT ON records_audit WHEN NEW.key = CAST('bad' AS BLOB)
                BEGIN SELECT RAISE(ABORT, 'injected'); END";
    Connection::open(&path).and_then(|c| c.execute_batch(trap)).expect("the trap is set");
    let batch = || {
        let keys = [(Topic::Results, "good"), (Topic::Audit, "good"), (Topic::Audit, "bad"), (Topic::Bindings, "good")];
        let records = keys.into_iter().map(|(topic, key)| outgoing(topic, 1, key, b"r")).collect();
        transaction(records, &[(Topic::Requests, 0, 1)])
    };
    refused(log.commit(batch()), &["a.log", "writing records failed"]);
    log.rewind().expect("no gap");
    let mut reader = client(&path);
    for topic in [Topic::Results, Topic::Audit, Topic::Bindings] {
        assert!(all(&mut reader, topic, 1).is_empty(), "{topic}");
        assert_eq!(log.end_offset(topic, Partition(1)).expect("reads"), Offset(0), "{topic}");
    }
    assert_eq!(reader.committed(Topic::Requests, P0).expect("reads"), None);

    Connection::open(&path).and_then(|c| c.execute_batch("DROP TRIGGER trap")).expect("the trap is gone");
    assert_eq!(log.commit(batch()).expect("nothing is in the way"), Commit::Committed);
    assert_eq!(all(&mut reader, Topic::Audit, 1).len(), 2);
    assert_eq!(reader.committed(Topic::Requests, P0).expect("reads"), Some(Offset(1)));
}

#[test]
fn a_full_disk_loses_nothing_and_ends_when_there_is_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let mut log = worker(&path, 1);
    client(&path).append(vec![outgoing(Topic::Requests, 0, "k", b"q"); 200], 1).expect("appends");
    log.set_file_bytes_max(2 << 20).expect("bounded");
    let batch =
        |next| transaction(vec![outgoing(Topic::Results, 0, "k", &[7; 10_000]); 10], &[(Topic::Requests, 0, next)]);
    let mut committed = 0;
    let full = loop {
        match log.commit(batch(committed + 1)) {
            Ok(outcome) => assert_eq!(outcome, Commit::Committed),
            Err(error) => break error,
        }
        committed += 1;
    };
    assert!(matches!(full, LogError::Full { .. }), "{full}");
    assert!(full.to_string().contains("nothing of this batch was stored"));
    let mut reader = client(&path);
    assert_eq!(all(&mut reader, Topic::Results, 0).len() as i64, committed * 10);
    assert_eq!(reader.committed(Topic::Requests, P0).expect("reads"), Some(Offset(committed)));
    log.rewind().expect("no gap");
    log.set_file_bytes_max(1 << 30).expect("bounded");
    assert_eq!(log.commit(batch(committed + 1)).expect("there is room"), Commit::Committed);
    assert_eq!(all(&mut reader, Topic::Results, 0).len() as i64, (committed + 1) * 10);
}

#[test]
fn a_writer_that_never_lets_go_aborts_the_commit() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let mut log = worker(&path, 1);
    let stuck = Connection::open(&path).expect("opens");
    stuck.execute_batch("BEGIN IMMEDIATE").expect("takes the write lock");
    let batch = || transaction(vec![outgoing(Topic::Results, 0, "k", b"r")], &[]);
    assert_eq!(log.commit(batch()).expect("no error"), Commit::Aborted);
    stuck.execute_batch("ROLLBACK").expect("lets go");
    log.rewind().expect("no gap");
    assert_eq!(log.commit(batch()).expect("no error"), Commit::Committed);
    assert_eq!(log.end_offset(Topic::Results, P0).expect("reads"), Offset(1));
}

#[test]
fn a_gap_stops_the_worker_until_it_is_accepted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let mut log = worker(&path, 2);
    client(&path).append(vec![outgoing(Topic::Responses, 1, "k", b"r"); 9], 1).expect("appends");
    assert_eq!(log.commit(transaction(vec![], &[(Topic::Responses, 1, 2)])).expect("commits"), Commit::Committed);
    drop(log);
    let cut = "DELETE FROM records_responses WHERE (id & 0xffffffff) < 5;
               UPDATE partitions SET start_offset = 5 WHERE topic = 'responses' AND partition = 1;";
    Connection::open(&path).and_then(|c| c.execute_batch(cut)).expect("records are lost");

    let gap =
        refused(worker(&path, 2).poll(9, Duration::ZERO), &["responses-1", "so 3 records are gone", "--accept-gap"]);
    assert!(matches!(gap, LogError::Gap { committed: Offset(2), start: Offset(5), .. }));
    let accepting = WorkerOptions { accept_gap: true, ..options(2) };
    let mut log = SqliteLog::open_worker(&path, accepting).expect("opens");
    assert!(matches!(poll(&mut log), Event::Assigned(_)));
    assert_eq!(poll_records(&mut log)[0].position.offset, Offset(5));
    assert_eq!(GROUP, options(2).group);
}
