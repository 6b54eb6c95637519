//! What the client library does at the least: consume the responses, produce the same bytes elsewhere.

use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::Producer;
use rdkafka::{Message, Offset, TopicPartitionList};
use toolgate::log::Topic;

use crate::cpu;
use crate::job::Job;
use crate::load::{self, PARTITIONS};

/// Passes `count` responses through, and says what that took. The consumer has the worker's settings.
pub fn pass_through(job: &Job) {
    let mut config = load::client(&job.servers);
    config.set("group.id", "raw").set("enable.auto.commit", "false").set("isolation.level", "read_committed");
    config.set("fetch.queue.backoff.ms", "10").set("fetch.wait.max.ms", "100");
    let consumer: BaseConsumer = config.create().expect("a consumer");
    let names = load::topics(&job.inputs, &job.group);
    let mut list = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        list.add_partition_offset(&names[Topic::Responses.index()], partition, Offset::Beginning).expect("an offset");
    }
    let producer = load::producer(&job.servers);
    let before = cpu::Used::now();
    consumer.assign(&list).expect("an assignment");
    let (mut started, mut taken) = (None, 0);
    while taken < job.count {
        match consumer.poll(Duration::from_millis(100)) {
            None => {}
            Some(Ok(message)) => {
                started.get_or_insert_with(Instant::now);
                let (key, value) = (message.key().unwrap_or_default(), message.payload().unwrap_or_default());
                load::put(&producer, &names[Topic::Results.index()], key, value, ());
                taken += 1;
                if taken % 100 == 0 {
                    producer.poll(Duration::ZERO);
                }
            }
            Some(Err(error)) => panic!("{error}"),
        }
    }
    while producer.in_flight_count() > 0 {
        producer.poll(Duration::from_millis(1));
    }
    let took = started.map_or(Duration::ZERO, |started| started.elapsed());
    let used = before.since();
    println!("per_second={}", job.count as f64 / took.as_secs_f64());
    println!("cpu_us={}", used.all.as_secs_f64() * 1e6 / job.count as f64);
}
