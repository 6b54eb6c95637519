//! What the worker asks of any log, of this one.

use std::time::Duration;

use rdkafka::producer::{BaseRecord, Producer};
use toolgate::log::kafka::{GroupProtocol, KafkaLog, KafkaOptions};
use toolgate::log::{Commit, Event, Log, LogError, Offset, Outgoing, Partition, Record, Topic, Transaction};

use crate::support::{Cluster, send, until};

const WAIT: Duration = Duration::from_millis(200);

pub(crate) fn options(cluster: &Cluster, group: &str, instance: &str) -> KafkaOptions {
    KafkaOptions { session_timeout: Duration::from_secs(3), ..KafkaOptions::new(&cluster.servers(), group, instance) }
}

fn outgoing(topic: Topic, partition: i32, key: &str, value: &str) -> Outgoing {
    let (partition, key) = (Some(Partition(partition)), Some(key.as_bytes().to_vec()));
    Outgoing { topic, partition, key, value: Some(value.as_bytes().to_vec()), headers: Vec::new() }
}

/// Polls until `count` partitions are assigned and restores each.
pub(crate) fn join(log: &mut KafkaLog, count: usize) -> Vec<Record> {
    let (mut owned, mut state) = (std::collections::BTreeSet::new(), Vec::new());
    until("the partitions are assigned", Duration::from_secs(60), || {
        match log.poll(100, WAIT).expect("the log can be polled") {
            Event::Assigned(partitions) => {
                for partition in partitions {
                    log.restore(partition, &mut |record| {
                        state.push(record);
                        Ok(())
                    })
                    .expect("it restores");
                    owned.insert(partition);
                }
            }
            Event::Revoked(partitions) => owned.retain(|one| !partitions.contains(one)),
            Event::Records(records) => panic!("records before the partitions are restored: {records:?}"),
            Event::Idle => {}
        }
        owned.len() == count
    });
    state
}

fn records(log: &mut KafkaLog, count: usize) -> Vec<Record> {
    let mut all = Vec::new();
    until("the records arrive", Duration::from_secs(30), || {
        match log.poll(100, WAIT).expect("the log can be polled") {
            Event::Records(records) => all.extend(records),
            Event::Idle => {}
            other @ (Event::Assigned(_) | Event::Revoked(_)) => panic!("no change is due, but {other:?}"),
        }
        all.len() >= count
    });
    all
}

/// Whose records come first is not promised across batches.
fn sorted(mut records: Vec<Record>) -> Vec<Record> {
    records.sort_by_key(|record| record.position);
    records
}

fn values(records: &[Record]) -> Vec<&str> {
    records.iter().map(|record| std::str::from_utf8(record.value.as_deref().unwrap()).unwrap()).collect()
}

fn write(log: &mut KafkaLog, records: Vec<Outgoing>, next: &[(Topic, i64)]) -> Result<Commit, LogError> {
    let offsets = next.iter().map(|(topic, next)| (*topic, Partition(0), Offset(*next))).collect();
    log.commit(Transaction { records, offsets })
}

fn round_trip(group_protocol: GroupProtocol) {
    let Some(cluster) = Cluster::start(&[]) else { return };
    let options = KafkaOptions { group_protocol, ..options(&cluster, "g", "w1") };
    cluster.make_topics(&options, 1);
    let producer = cluster.producer();
    for n in 0..3 {
        send(&producer, "tool.requests", 0, "a", format!("request {n}").as_bytes());
        send(&producer, "tool.responses", 0, "a", format!("response {n}").as_bytes());
    }
    {
        let mut log = KafkaLog::connect(options.clone()).expect("the worker connects");
        assert!(join(&mut log, 1).is_empty());
        let read = sorted(records(&mut log, 6));
        assert_eq!(values(&read), ["request 0", "request 1", "request 2", "response 0", "response 1", "response 2"]);
        assert_eq!(log.end_offset(Topic::Requests, Partition(0)).unwrap(), Offset(3));
        assert_eq!(log.position(Topic::Requests, Partition(0)).unwrap(), Offset(3));

        let first = write(
            &mut log,
            vec![outgoing(Topic::Bindings, 0, "a", "one")],
            &[(Topic::Requests, 1), (Topic::Responses, 1)],
        );
        assert_eq!(first.unwrap(), Commit::Committed);
        // As after a batch that is undone: the same records come again.
        log.rewind().expect("it rewinds");
        assert_eq!(values(&sorted(records(&mut log, 4))), ["request 1", "request 2", "response 1", "response 2"]);
        // Timers alone: no offsets of their own.
        assert_eq!(write(&mut log, vec![outgoing(Topic::Bindings, 0, "b", "two")], &[]).unwrap(), Commit::Committed);
        let last = write(
            &mut log,
            vec![outgoing(Topic::Results, 0, "a", "done")],
            &[(Topic::Requests, 3), (Topic::Responses, 2)],
        );
        assert_eq!(last.unwrap(), Commit::Committed);
    }
    let mut log = KafkaLog::connect(options).expect("the worker connects again");
    let state = join(&mut log, 1);
    assert_eq!(values(&state), ["one", "two"]);
    assert_eq!(values(&records(&mut log, 1)), ["response 2"]);
}

#[test]
fn what_is_committed_stays_and_what_is_not_comes_again() {
    round_trip(GroupProtocol::Classic);
}

#[test]
fn the_same_holds_where_the_broker_shares_out() {
    round_trip(GroupProtocol::Consumer);
}

/// A dispatcher with transactions leaves marks that no reader sees. The absence of a request must be provable still.
#[test]
fn the_end_is_reached_past_marks_and_aborted_requests() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    let options = options(&cluster, "g", "w1");
    cluster.make_topics(&options, 1);
    let dispatcher: rdkafka::producer::BaseProducer =
        cluster.client().set("transactional.id", "dispatcher").create().unwrap();
    dispatcher.init_transactions(Duration::from_secs(20)).unwrap();
    dispatcher.begin_transaction().unwrap();
    send(&dispatcher, "tool.requests", 0, "a", b"committed");
    dispatcher.commit_transaction(Duration::from_secs(20)).unwrap();
    dispatcher.begin_transaction().unwrap();
    send(&dispatcher, "tool.requests", 0, "b", b"never");

    let mut log = KafkaLog::connect(options).expect("the worker connects");
    join(&mut log, 1);
    assert_eq!(values(&records(&mut log, 1)), ["committed"]);
    let end = log.end_offset(Topic::Requests, Partition(0)).unwrap();
    assert_eq!(end, Offset(3), "a record, a mark, a record of an open transaction");
    for _ in 0..5 {
        assert_eq!(log.poll(100, WAIT).unwrap(), Event::Idle);
        assert!(log.position(Topic::Requests, Partition(0)).unwrap() < end, "somebody's transaction is open below it");
    }
    dispatcher.abort_transaction(Duration::from_secs(20)).unwrap();
    until("the absence of a request is proven", Duration::from_secs(10), || {
        assert_eq!(log.poll(100, WAIT).unwrap(), Event::Idle);
        log.position(Topic::Requests, Partition(0)).unwrap() >= end
    });
}

/// After an outage both inputs have a backlog. Were responses taken faster than requests, they would wait for them in
/// memory, until there is no room and all of them are read again, and again.
#[test]
fn in_a_backlog_responses_do_not_overtake_their_requests() {
    const COUNT: usize = 2000;
    let Some(cluster) = Cluster::start(&[]) else { return };
    let options = options(&cluster, "g", "w1");
    cluster.make_topics(&options, 1);
    let producer = cluster.producer();
    for topic in ["tool.responses", "tool.requests"] {
        for n in 0..COUNT {
            let (key, value) = (n.to_string(), n.to_string());
            producer.send(BaseRecord::to(topic).partition(0).key(&key).payload(&value)).expect("room in the queue");
        }
        producer.flush(WAIT * 100).expect("the records are written");
    }
    let mut log = KafkaLog::connect(options).expect("the worker connects");
    join(&mut log, 1);
    let (mut requests, mut responses) = (0, 0);
    let mut read = |records_max: usize| {
        let Event::Records(batch) = log.poll(records_max, WAIT).expect("the log can be polled") else { return (0, 0) };
        let of_requests = batch.iter().filter(|record| record.position.topic == Topic::Requests).count();
        (requests, responses) = (requests + of_requests, responses + batch.len() - of_requests);
        (requests, responses)
    };
    // The smallest batch has one record of each input that is there.
    until("both inputs are there", Duration::from_secs(30), || read(1).0 > 0);
    until("one input is at its end", Duration::from_secs(30), || {
        let (requests, responses) = read(100);
        requests == COUNT || responses == COUNT
    });
    assert!(requests == COUNT && responses > 0, "{requests} requests, {responses} responses");
}

#[test]
fn the_lag_is_what_is_written_and_not_read() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    let options = options(&cluster, "g", "w1");
    cluster.make_topics(&options, 1);
    let mut log = KafkaLog::connect(options).expect("the worker connects");
    join(&mut log, 1);
    assert_eq!(log.lag(), (0, None));
    let producer = cluster.producer();
    (0..300).for_each(|_| send(&producer, "tool.responses", 0, "a", b"response"));
    let (mut read, patience) = (0, Duration::from_secs(20));
    let mut step = |log: &mut KafkaLog| {
        if let Event::Records(records) = log.poll(1, Duration::from_millis(1)).expect("the log can be polled") {
            read += records.len() as u64;
        }
        read
    };
    until("the lag is known", patience, || {
        let read = step(&mut log);
        let (lag, oldest) = log.lag();
        read > 0 && lag == 300 - read && oldest.is_some()
    });
    until("everything is read", patience, || step(&mut log) == 300);
    assert_eq!(log.lag(), (0, None));
}
