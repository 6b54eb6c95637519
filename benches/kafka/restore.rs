//! How fast the state comes back, and what it takes in memory, each in a process of its own.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use prost::Message;
use toolgate::log::kafka::KafkaLog;
use toolgate::log::partitioner::partition_of;
use toolgate::log::{Event, Log, Offset, Partition, Position, Record, Topic};
use toolgate::partition::PartitionState;

use crate::cpu;
use crate::job::Job;
use crate::load::{self, PARTITIONS};
use crate::worker::{around, options};

/// Restores `count` requests from a changelog.
pub fn restore(job: &Job) {
    let mut log = KafkaLog::connect(options(job)).expect("the worker connects");
    let around = around();
    let before = cpu::resident();
    let mut states: BTreeMap<Partition, PartitionState> = BTreeMap::new();
    let mut took = Duration::ZERO;
    while states.len() < PARTITIONS as usize {
        let Event::Assigned(partitions) = log.poll(1, Duration::from_millis(100)).expect("it polls") else { continue };
        let started = Instant::now();
        for partition in partitions {
            let mut state = PartitionState::new(partition, 1);
            log.restore(partition, &mut |record| state.restore(&record).map_err(|why| panic!("{why}")))
                .expect("it restores");
            state.restored(&around);
            states.insert(partition, state);
        }
        took += started.elapsed();
    }
    let restored: usize = states.values().map(PartitionState::len).sum();
    assert_eq!(restored, job.count, "the whole changelog");
    println!("per_second={}", restored as f64 / took.as_secs_f64());
    println!("bytes={}", cpu::resident().saturating_sub(before) as f64 / restored as f64);
}

/// Holds `count` requests as after a restore, with their timers, without a broker.
pub fn hold(job: &Job) {
    let around = around();
    let before = cpu::resident();
    let mut states: Vec<PartitionState> = (0..PARTITIONS).map(|one| PartitionState::new(Partition(one), 1)).collect();
    for number in 0..job.count {
        let key = load::id(number).into_bytes();
        let partition = partition_of(&key, PARTITIONS);
        let value = load::binding(number).to_message().encode_to_vec();
        let position = Position { topic: Topic::Bindings, partition, offset: Offset(number as i64) };
        let record = Record { position, timestamp_ms: 0, key: Some(key), value: Some(value), headers: Vec::new() };
        states[partition.0 as usize].restore(&record).expect("a record of ours");
    }
    states.iter_mut().for_each(|state| state.restored(&around));
    assert_eq!(states.iter().map(PartitionState::len).sum::<usize>(), job.count);
    println!("bytes={}", cpu::resident().saturating_sub(before) as f64 / job.count as f64);
}
