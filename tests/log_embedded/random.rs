//! Random lives of a log against the naive model: whatever is done to it in whatever order, it holds what it must.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use toolgate::log::sqlite::{Retention, SqliteClient, SqliteLog, WorkerOptions};
use toolgate::log::{Commit, Event, Header, Log, Offset, Outgoing, Partition, Record, Topic, Transaction};

use crate::model::{Lane, Model, PARTITIONS, inputs, lanes};
use crate::support::{all, client, options, poll, refused};

const RETENTION_MS: i64 = 50;
const BATCH_BYTES_MAX: usize = 50_000;

thread_local! {
    /// The worker asks for the time through a plain function.
    static NOW_MS: Cell<i64> = const { Cell::new(0) };
}

#[derive(Clone, Debug)]
enum Deed {
    /// A client writes.
    Append(Vec<Outgoing>),
    /// The worker reads, writes, and commits so many quarters of what it has read.
    Work {
        records_max: usize,
        results: Vec<Outgoing>,
        quarters: usize,
    },
    /// The last record of a commit, or of what a client writes, has no place to go.
    Refuse(Vec<Outgoing>),
    Rewind,
    Reopen,
    Pass(i64),
    Maintain {
        budget_rows: usize,
    },
}

fn header() -> impl Strategy<Value = Header> {
    let name = prop_oneof![Just(String::new()), Just("content-type".to_owned()), Just("ä".to_owned())];
    (name, option::of(vec(any::<u8>(), 0..4))).prop_map(|(name, value)| Header { name, value })
}

/// Few keys, so that they meet; values of all bytes, empty, absent, and some that need pages of their own.
fn record() -> impl Strategy<Value = Outgoing> {
    let key = prop_oneof![Just(Vec::new()), Just(b"a".to_vec()), Just(b"b".to_vec()), Just(vec![0, 255, 254])];
    let value = prop_oneof![8 => vec(any::<u8>(), 0..40), 1 => any::<u8>().prop_map(|byte| vec![byte; 40_000])];
    let partition = option::of((0..PARTITIONS).prop_map(Partition));
    let topic = (0..Topic::ALL.len()).prop_map(|index| Topic::ALL[index]);
    (topic, partition, option::of(key), option::of(value), vec(header(), 0..3))
        .prop_map(|(topic, partition, key, value, headers)| Outgoing { topic, partition, key, value, headers })
}

fn deed() -> impl Strategy<Value = Deed> {
    let work = (1..12_usize, vec(record(), 0..8), 0..5_usize);
    prop_oneof![
        4 => vec(record(), 0..12).prop_map(Deed::Append),
        6 => work.prop_map(|(records_max, results, quarters)| Deed::Work { records_max, results, quarters }),
        1 => vec(record(), 0..4).prop_map(Deed::Refuse),
        1 => Just(Deed::Rewind),
        1 => Just(Deed::Reopen),
        2 => (1..80_i64).prop_map(Deed::Pass),
        3 => prop_oneof![1..10_usize, Just(10_000)].prop_map(|budget_rows| Deed::Maintain { budget_rows }),
    ]
}

struct Life<'a> {
    path: &'a Path,
    /// Absent only between one worker and the next, which the first must not see.
    log: Option<SqliteLog>,
    beside: SqliteClient,
    model: Model,
}

fn open(path: &Path) -> SqliteLog {
    let options = WorkerOptions { batch_bytes_max: BATCH_BYTES_MAX, now_ms: || NOW_MS.get(), ..options(PARTITIONS) };
    let mut log = SqliteLog::open_worker(path, options).expect("opens");
    assert_eq!(poll(&mut log), Event::Assigned((0..PARTITIONS).map(Partition).collect()));
    log
}

impl Life<'_> {
    fn log(&mut self) -> &mut SqliteLog {
        self.log.as_mut().expect("a worker runs")
    }

    fn live(&mut self, deed: Deed) {
        match deed {
            Deed::Append(records) => {
                let expected = self.model.write(&records, NOW_MS.get());
                let positions = self.beside.append(records, NOW_MS.get()).expect("appends");
                let found: Vec<(Lane, Offset)> = positions.iter().map(|p| ((p.topic, p.partition), p.offset)).collect();
                assert_eq!(found, expected);
            }
            Deed::Work { records_max, results, quarters } => self.work(records_max, results, quarters),
            Deed::Refuse(records) => self.refuse(records),
            Deed::Rewind => self.rewind(),
            Deed::Reopen => {
                self.log = None;
                self.log = Some(open(self.path));
                self.model.rewind();
            }
            Deed::Pass(ms) => NOW_MS.set(NOW_MS.get() + ms),
            Deed::Maintain { budget_rows } => self.maintain(budget_rows),
        }
    }

    fn work(&mut self, records_max: usize, results: Vec<Outgoing>, quarters: usize) {
        let waiting = self.model.waiting();
        match self.log().poll(records_max, Duration::ZERO).expect("polls") {
            Event::Idle => assert_eq!(waiting, 0, "something waits"),
            Event::Records(records) => {
                assert_bounded(&records, records_max);
                records.iter().for_each(|record| self.model.reads(record));
            }
            other @ (Event::Assigned(_) | Event::Revoked(_)) => panic!("{other:?}"),
        }
        let done = inputs().map(|lane| {
            let of = |map: &BTreeMap<Lane, usize>| map.get(&lane).copied().unwrap_or(0);
            let (committed, read) = (of(&self.model.committed), of(&self.model.read));
            (lane, committed + (read - committed) * quarters / 4)
        });
        let done: Vec<(Lane, usize)> = done.collect();
        let offsets = done.iter().map(|&((topic, partition), next)| (topic, partition, Offset(next as i64))).collect();
        self.model.write(&results, NOW_MS.get());
        let outcome = self.log().commit(Transaction { records: results, offsets }).expect("commits");
        assert_eq!(outcome, Commit::Committed);
        self.model.committed.extend(done);
    }

    fn refuse(&mut self, mut records: Vec<Outgoing>) {
        let partition = Some(Partition(PARTITIONS));
        records.push(Outgoing { topic: Topic::Audit, partition, key: None, value: None, headers: Vec::new() });
        refused(self.beside.append(records.clone(), NOW_MS.get()), &["no such partition"]);
        // Offsets that would skip what waits must not come through either.
        let offsets = inputs().map(|(t, p)| (t, p, Offset(self.model.end((t, p)) as i64))).collect();
        refused(self.log().commit(Transaction { records, offsets }), &["no such partition"]);
        self.rewind();
    }

    fn rewind(&mut self) {
        self.log().rewind().expect("no gap");
        self.model.rewind();
    }

    fn maintain(&mut self, budget_rows: usize) {
        let retention = Retention::uniform(RETENTION_MS);
        let done = self.log().maintain(NOW_MS.get(), &retention, budget_rows).expect("maintains");
        for lane in lanes() {
            let left = all(&mut self.beside, lane.0, lane.1.0);
            self.model.maintained(lane, &left, NOW_MS.get() - RETENTION_MS, !done.more);
        }
    }

    fn assert_agrees(&mut self) {
        for lane in lanes() {
            let (topic, partition) = lane;
            self.model.assert_holds(lane, &all(&mut self.beside, topic, partition.0));
            let end = Offset(self.model.end(lane) as i64);
            assert_eq!(self.log().end_offset(topic, partition).expect("reads"), end, "end of {lane:?}");
        }
        for lane @ (topic, partition) in inputs() {
            let committed = self.beside.committed(topic, partition).expect("reads").map_or(0, |offset| offset.0);
            assert_eq!(committed as usize, self.model.committed.get(&lane).copied().unwrap_or(0), "{lane:?}");
        }
        for partition in (0..PARTITIONS).map(Partition) {
            let mut restored = Vec::new();
            self.log()
                .restore(partition, &mut |record| {
                    restored.push(record);
                    Ok(())
                })
                .expect("restores");
            self.model.assert_holds((Topic::Bindings, partition), &restored);
        }
    }
}

/// Within the bounds, and requests first. One record of each topic may exceed the bytes.
fn assert_bounded(records: &[Record], records_max: usize) {
    assert!((1..=records_max).contains(&records.len()));
    assert!(records.is_sorted_by_key(|record| record.position.topic == Topic::Responses), "requests first");
    let largest = |topic| records.iter().filter(|r| r.position.topic == topic).map(Record::bytes).max().unwrap_or(0);
    let allowance: usize = Topic::INPUTS.into_iter().map(largest).sum();
    let bytes: usize = records.iter().map(Record::bytes).sum();
    assert!(bytes <= BATCH_BYTES_MAX + allowance, "{bytes} bytes");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_log_holds_what_the_model_holds(deeds in vec(deed(), 1..40)) {
        NOW_MS.set(0);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.log");
        let log = Some(open(&path));
        let mut life = Life { path: &path, log, beside: client(&path), model: Model::default() };
        for deed in deeds {
            life.live(deed);
            life.assert_agrees();
        }
    }
}
