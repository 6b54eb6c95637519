use super::*;

fn outgoing(topic: Topic, partition: i32, value: &str) -> Outgoing {
    let (partition, value) = (Some(Partition(partition)), Some(value.as_bytes().to_vec()));
    Outgoing { topic, partition, key: Some(b"k".to_vec()), value, headers: Vec::new() }
}

fn polled(log: &mut MemoryLog) -> Event {
    log.poll(100, Duration::ZERO).expect("no gap")
}

fn values(event: Event) -> Vec<String> {
    let Event::Records(records) = event else { panic!("no records but {event:?}") };
    records.into_iter().map(|r| String::from_utf8(r.value.expect("a value")).expect("text")).collect()
}

fn committing(value: &str, next: i64) -> Transaction {
    let offsets = vec![(Topic::Requests, Partition(0), Offset(next))];
    Transaction { records: vec![outgoing(Topic::Results, 0, value)], offsets }
}

fn log_with_two_requests() -> MemoryLog {
    let mut log = MemoryLog::new(2);
    log.append(vec![outgoing(Topic::Requests, 0, "a"), outgoing(Topic::Requests, 0, "b")]).expect("fits");
    assert_eq!(polled(&mut log), Event::Assigned(vec![Partition(0), Partition(1)]));
    log
}

#[test]
fn reads_on_from_what_was_committed_after_a_restart() {
    let mut log = log_with_two_requests();
    assert_eq!(values(polled(&mut log)), ["a", "b"]);
    assert_eq!(polled(&mut log), Event::Idle);
    assert_eq!(log.commit(committing("done a", 1)).expect("valid"), Commit::Committed);
    log.restart();
    assert!(matches!(polled(&mut log), Event::Assigned(_)));
    assert_eq!(values(polled(&mut log)), ["b"]);
}

#[test]
fn faults_apply_all_or_nothing_and_demand_a_rewind() {
    for (fault, outcome, applied) in [
        (Fault::Aborted, Commit::Aborted, false),
        (Fault::IndeterminateApplied, Commit::Indeterminate, true),
        (Fault::IndeterminateLost, Commit::Indeterminate, false),
    ] {
        let mut log = log_with_two_requests();
        assert_eq!(values(polled(&mut log)), ["a", "b"]);
        log.fail_commit(fault);
        assert_eq!(log.commit(committing("done a", 1)).expect("valid"), outcome);
        assert!(matches!(log.poll(1, Duration::ZERO), Err(LogError::NotRewound { .. })), "{fault:?}");
        assert!(matches!(log.commit(Transaction::default()), Err(LogError::NotRewound { .. })), "{fault:?}");
        log.rewind().expect("no gap");
        assert_eq!(log.records(Topic::Results, Partition(0)).len(), usize::from(applied), "{fault:?}");
        assert_eq!(values(polled(&mut log)), if applied { vec!["b"] } else { vec!["a", "b"] }, "{fault:?}");
    }
}

#[test]
fn a_revoked_partition_is_not_read_until_it_is_assigned_again() {
    let mut log = log_with_two_requests();
    log.revoke(vec![Partition(0)]);
    assert_eq!(polled(&mut log), Event::Revoked(vec![Partition(0)]));
    assert_eq!(polled(&mut log), Event::Idle);
    log.assign(vec![Partition(0)]);
    assert_eq!(polled(&mut log), Event::Assigned(vec![Partition(0)]));
    assert_eq!(values(polled(&mut log)), ["a", "b"]);
}

#[test]
fn refuses_what_it_cannot_keep() {
    let mut log = log_with_two_requests();
    let elsewhere = log.append(vec![outgoing(Topic::Requests, 0, "c"), outgoing(Topic::Requests, 2, "d")]);
    assert!(matches!(elsewhere, Err(LogError::UnknownPartition { partitions: 2, .. })));
    assert_eq!(log.records(Topic::Requests, Partition(0)).len(), 2, "all or nothing");
    assert!(matches!(log.commit(committing("x", 3)), Err(LogError::BeyondEnd { end: Offset(2), .. })));
}

#[test]
fn a_gap_is_not_skipped() {
    let mut log = log_with_two_requests();
    assert_eq!(log.commit(committing("x", 0)).expect("valid"), Commit::Committed);
    log.truncate(Topic::Requests, Partition(0), Offset(1));
    let gap = log.rewind().expect_err("a record is gone");
    assert!(matches!(gap, LogError::Gap { committed: Offset(0), start: Offset(1), .. }));
}

#[test]
fn restores_the_changelog_in_order_and_stops_at_an_error() {
    let mut log = MemoryLog::new(1);
    log.append(vec![outgoing(Topic::Bindings, 0, "1"), outgoing(Topic::Bindings, 0, "2")]).expect("fits");
    let mut seen = Vec::new();
    log.restore(Partition(0), &mut |record| {
        seen.push(record.position.offset);
        Ok(())
    })
    .expect("applies");
    assert_eq!(seen, [Offset(0), Offset(1)]);
    let refused = log.restore(Partition(0), &mut |record| {
        Err(LogError::Restore { position: record.position, what: "no".to_owned() })
    });
    assert!(matches!(refused, Err(LogError::Restore { position: Position { offset: Offset(0), .. }, .. })));
}
