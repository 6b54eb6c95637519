//! Clients beside a running worker.

use std::thread;
use std::time::Duration;

use toolgate::log::{Event, Log, Offset, Partition, Topic};

use crate::support::{P0, all, client, outgoing, poll, poll_records, worker};

/// Longer than any machine needs; waited for only when something is broken.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_waiting_worker_sees_what_a_client_appends_and_the_other_way_round() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let mut log = worker(&path, 1);
    assert!(matches!(poll(&mut log), Event::Assigned(_)));
    let mut tail = client(&path);
    let mut producer = client(&path);
    thread::scope(|scope| {
        scope.spawn(|| producer.append(vec![outgoing(Topic::Requests, 0, "k", b"q")], 1).expect("appends"));
        let Event::Records(records) = log.poll(9, LONG).expect("polls") else { panic!("nothing came") };
        assert_eq!(records.len(), 1);
    });
    while all(&mut tail, Topic::Requests, 0).is_empty() {
        assert!(tail.wait_for_change(LONG).expect("waits"), "the change is missed");
    }
    assert_eq!(tail.end_offset(Topic::Requests, P0).expect("reads"), Offset(1));
}

#[test]
fn without_a_change_waiting_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let mut log = worker(&path, 1);
    assert!(matches!(poll(&mut log), Event::Assigned(_)));
    assert_eq!(log.poll(9, Duration::from_millis(12)).expect("polls"), Event::Idle);
    let mut tail = client(&path);
    assert!(!tail.wait_for_change(Duration::from_millis(12)).expect("waits"));
    assert!(!tail.wait_for_change(Duration::ZERO).expect("waits"));
    client(&path).append(vec![outgoing(Topic::Results, 0, "k", b"r")], 1).expect("appends");
    assert!(tail.wait_for_change(Duration::ZERO).expect("waits"), "what came between two calls is not missed");
    assert!(!tail.wait_for_change(Duration::ZERO).expect("waits"));
    assert_eq!(log.poll(9, Duration::from_millis(12)).expect("polls"), Event::Idle, "no input has changed");
}

#[test]
fn writers_at_the_same_time_share_the_offsets_without_holes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let mut log = worker(&path, 1);
    thread::scope(|scope| {
        for writer in 0..3_u8 {
            let mut producer = client(&path);
            scope.spawn(move || {
                for _ in 0..40 {
                    let pair = vec![outgoing(Topic::Responses, 0, "k", &[writer]); 2];
                    let positions = producer.append(pair, 1).expect("appends");
                    assert_eq!(positions[0].offset.next(), positions[1].offset, "a pair stays together");
                }
            });
        }
    });
    assert!(matches!(poll(&mut log), Event::Assigned(_)));
    let offsets: Vec<i64> = poll_records(&mut log).iter().map(|record| record.position.offset.0).collect();
    assert_eq!(offsets, (0..240).collect::<Vec<_>>());
}

#[test]
fn a_batch_is_bounded_in_records_and_bytes_and_reads_every_partition() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let mut log = worker(&path, 3);
    assert!(matches!(poll(&mut log), Event::Assigned(_)));
    let mut producer = client(&path);
    for partition in 0..3 {
        for topic in [Topic::Responses, Topic::Requests] {
            producer.append(vec![outgoing(topic, partition, "k", &[0; 100_000]); 20], 1).expect("appends");
        }
    }
    let (mut total, mut seen) = (0, Vec::new());
    while let Event::Records(records) = log.poll(12, Duration::ZERO).expect("polls") {
        let bytes: usize = records.iter().map(|record| record.bytes()).sum();
        assert!(records.len() <= 12 && bytes <= 1 << 20, "{} records, {bytes} bytes", records.len());
        let first_response = records.iter().position(|record| record.position.topic == Topic::Responses);
        let requests = records.iter().filter(|record| record.position.topic == Topic::Requests).count();
        assert!(first_response.is_none_or(|first| first == requests), "requests come first");
        total += records.len();
        seen.extend(records.iter().map(|record| record.position));
    }
    assert_eq!(total, 120);
    for partition in (0..3).map(Partition) {
        for topic in Topic::INPUTS {
            let mut own = seen.iter().filter(|p| (p.topic, p.partition) == (topic, partition));
            assert!(own.by_ref().map(|p| p.offset.0).eq(0..20), "{topic}-{partition} in order and whole");
        }
    }
}

#[test]
fn what_waits_is_counted_and_the_oldest_of_it_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let mut log = worker(&path, 2);
    assert!(matches!(poll(&mut log), Event::Assigned(_)));
    assert_eq!(log.lag().expect("reads"), (0, None));
    let mut producer = client(&path);
    producer.append(vec![outgoing(Topic::Requests, 1, "k", b"q")], 70).expect("appends");
    producer
        .append(vec![outgoing(Topic::Responses, 0, "k", b"r"), outgoing(Topic::Responses, 0, "k", b"r")], 90)
        .expect("appends");
    assert_eq!(log.lag().expect("reads"), (3, Some(70)));
    assert_eq!(poll_records(&mut log).len(), 3);
    assert_eq!(log.lag().expect("reads"), (0, None));
}
