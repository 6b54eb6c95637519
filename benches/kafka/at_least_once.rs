//! What the worker would be without transactions: records go out by themselves, and offsets are committed every so
//! often, once everything before them is acknowledged. For comparison only; the product has nothing like it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header as KafkaHeader, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};
use toolgate::log::kafka::{KafkaLog, KafkaOptions};
use toolgate::log::partitioner::partition_of;
use toolgate::log::{Commit, Event, Log, LogError, Offset, Outgoing, Partition, Record, Topic, Transaction};

use crate::job::Job;
use crate::load::{self, PARTITIONS};

/// Reads as the worker does and writes without transactions.
pub struct AtLeastOnce {
    inner: KafkaLog,
    options: KafkaOptions,
    producer: BaseProducer,
    /// Commits for a group without members: the brokers' work is the same.
    committer: BaseConsumer,
    due: BTreeMap<(Topic, Partition), Offset>,
    committed: Instant,
    interval: Duration,
}

impl AtLeastOnce {
    pub fn new(inner: KafkaLog, job: &Job, options: KafkaOptions) -> AtLeastOnce {
        let mut config = load::client(&job.servers);
        config.set("group.id", format!("{}.offsets", job.group)).set("enable.auto.commit", "false");
        AtLeastOnce {
            inner,
            options,
            producer: load::producer(&job.servers),
            committer: config.create().expect("a consumer"),
            due: BTreeMap::new(),
            committed: Instant::now(),
            interval: job.interval,
        }
    }

    fn send(&self, outgoing: &Outgoing) {
        let by_key = || outgoing.key.as_deref().map_or(Partition(0), |key| partition_of(key, PARTITIONS));
        let partition = outgoing.partition.unwrap_or_else(by_key);
        let mut record: BaseRecord<'_, [u8], [u8]> =
            BaseRecord::to(self.options.name(outgoing.topic)).partition(partition.0);
        record.key = outgoing.key.as_deref();
        record.payload = outgoing.value.as_deref();
        if !outgoing.headers.is_empty() {
            let empty = OwnedHeaders::new_with_capacity(outgoing.headers.len());
            record.headers = Some(outgoing.headers.iter().fold(empty, |all, header| {
                all.insert(KafkaHeader { key: &header.name, value: header.value.as_deref() })
            }));
        }
        while let Err((error, back)) = self.producer.send(record) {
            assert!(matches!(error, KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull)), "{error}");
            record = back;
            self.producer.poll(Duration::from_millis(1));
        }
    }

    fn commit_offsets(&mut self) {
        while self.producer.in_flight_count() > 0 {
            self.producer.poll(Duration::from_millis(1));
        }
        let mut list = TopicPartitionList::new();
        for ((topic, partition), offset) in std::mem::take(&mut self.due) {
            let name = self.options.name(topic);
            list.add_partition_offset(name, partition.0, KafkaOffset::Offset(offset.0)).expect("an offset");
        }
        self.committer.commit(&list, CommitMode::Sync).expect("offsets can be committed");
        self.committed = Instant::now();
    }
}

impl Log for AtLeastOnce {
    fn poll(&mut self, records_max: usize, wait: Duration) -> Result<Event, LogError> {
        self.inner.poll(records_max, wait)
    }

    fn restore(
        &mut self,
        partition: Partition,
        apply: &mut dyn FnMut(Record) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        self.inner.restore(partition, apply)
    }

    fn position(&mut self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        self.inner.position(topic, partition)
    }

    fn end_offset(&mut self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        self.inner.end_offset(topic, partition)
    }

    fn commit(&mut self, transaction: Transaction) -> Result<Commit, LogError> {
        transaction.records.iter().for_each(|record| self.send(record));
        let offsets = transaction.offsets.into_iter().map(|(topic, partition, offset)| ((topic, partition), offset));
        self.due.extend(offsets);
        self.producer.poll(Duration::ZERO);
        if self.committed.elapsed() >= self.interval {
            self.commit_offsets();
        }
        Ok(Commit::Committed)
    }

    fn rewind(&mut self) -> Result<(), LogError> {
        self.inner.rewind()
    }
}
