//! Records at the edges of what a log takes.

use toolgate::log::{Event, Header, Offset, Outgoing, Partition, RECORD_BYTES_MAX, Topic};

use crate::support::{P0, all, client, outgoing, poll, poll_records, worker};

/// Every way in which parts of a record may be absent, empty or no text.
#[test]
fn absent_empty_and_binary_parts_stay_what_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let mut log = worker(&path, 1);
    let every_byte: Vec<u8> = (0..=255).collect();
    let parts = [None, Some(Vec::new()), Some(every_byte)];
    let headers = |value: &Option<Vec<u8>>| vec![Header { name: "h".to_owned(), value: value.clone() }; 2];
    let mut sent = Vec::new();
    for key in &parts {
        for value in &parts {
            for headers in [Vec::new(), headers(&None), headers(&parts[1]), headers(&parts[2])] {
                let (key, value) = (key.clone(), value.clone());
                sent.push(Outgoing { topic: Topic::Responses, partition: Some(P0), key, value, headers });
            }
        }
    }
    client(&path).append(sent.clone(), 7).expect("appends");
    assert!(matches!(poll(&mut log), Event::Assigned(_)));
    let read = poll_records(&mut log);
    assert_eq!(read.len(), sent.len());
    for (offset, (record, sent)) in read.into_iter().zip(sent).enumerate() {
        assert_eq!(record.position.offset, Offset(offset as i64));
        assert_eq!((record.key, record.value, record.headers), (sent.key, sent.value, sent.headers), "{offset}");
    }
}

#[test]
fn the_largest_record_comes_whole_though_a_batch_is_smaller() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let mut log = worker(&path, 1);
    let value: Vec<u8> = (0..RECORD_BYTES_MAX - 1).map(|n| (n % 251) as u8).collect();
    let records = vec![
        outgoing(Topic::Responses, 0, "a", b"before"),
        outgoing(Topic::Responses, 0, "b", &value),
        outgoing(Topic::Responses, 0, "c", b"after"),
    ];
    client(&path).append(records, 1).expect("appends");
    assert!(matches!(poll(&mut log), Event::Assigned(_)));
    let batches: Vec<_> = (0..3).map(|_| poll_records(&mut log)).collect();
    assert!(batches.iter().all(|batch| batch.len() == 1), "the large one fits no batch with others");
    assert!(batches[1][0].value.as_deref() == Some(value.as_slice()), "the large one is whole");
    assert_eq!(batches[2][0].position.offset, Offset(2));
}

#[test]
fn what_has_neither_key_nor_partition_goes_to_the_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let _log = worker(&path, 5);
    let keyless = Outgoing { partition: None, key: None, ..outgoing(Topic::Results, 0, "", b"r") };
    let positions = client(&path).append(vec![keyless.clone(), keyless], 1).expect("appends");
    assert_eq!(positions.iter().map(|p| (p.partition, p.offset.0)).collect::<Vec<_>>(), [(P0, 0), (P0, 1)]);
}

#[test]
fn a_thousand_partitions_are_all_read_and_kept_apart() {
    const PARTITIONS: i32 = 1024;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.log");
    let mut log = worker(&path, PARTITIONS);
    let records = (0..PARTITIONS).map(|p| outgoing(Topic::Requests, p, "k", &p.to_be_bytes())).collect();
    client(&path).append(records, 1).expect("appends");
    assert_eq!(poll(&mut log), Event::Assigned((0..PARTITIONS).map(Partition).collect()));
    let mut seen = Vec::new();
    while let Event::Records(records) = poll(&mut log) {
        for record in records {
            assert_eq!(record.value.as_deref(), Some(record.position.partition.0.to_be_bytes().as_slice()));
            seen.push(record.position.partition.0);
        }
    }
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..PARTITIONS), "each once");
    assert_eq!(all(&mut client(&path), Topic::Requests, PARTITIONS - 1).len(), 1);
}
