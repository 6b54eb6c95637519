//! Where producers put their keys. No broker knows a producer's partitioner, so it is read off the newest records.

use std::collections::BTreeSet;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use super::connect;
use super::deadline::Deadline;
use super::group::Plain;
use super::options::KafkaOptions;
use super::topics::{Change, Finding, Severity};
use crate::log::error::LogError;
use crate::log::partitioner::partition_of;
use crate::log::record::{Partition, Topic};

/// Records looked at in each partition, the newest.
const NEWEST: i64 = 50;
/// How long to look in all.
const PATIENCE: Duration = Duration::from_secs(15);

/// Topics of whose newest records some are on other partitions than their keys belong to. It is advice: whoever may
/// write to a topic can put a record anywhere, and that must not keep a worker from starting.
///
/// # Errors
/// A topic cannot be read.
pub fn misplaced(options: &KafkaOptions) -> Result<Vec<Finding>, LogError> {
    let failed = |source| LogError::Kafka { what: "looking at the newest records", source };
    let consumer: BaseConsumer<Plain> =
        options.reader()?.create_with_context(connect::context(options)).map_err(failed)?;
    let deadline = Deadline::after(PATIENCE);
    let mut findings = Vec::new();
    for topic in Topic::INPUTS {
        let name = options.name(topic);
        let (elsewhere, keys) = count(&consumer, name, deadline).map_err(failed)?;
        if elsewhere > 0 {
            let what = format!(
                "{elsewhere} of the newest {keys} keys are not on the partition to which murmur2 takes them: their responses are MISROUTED; \
                 let every producer use the partitioner of the Java client (in librdkafka partitioner=murmur2_random)"
            );
            let (name, severity) = (name.to_owned(), Severity::Advice);
            findings.push(Finding { topic, name, severity, what, change: Change::Nothing });
        }
    }
    Ok(findings)
}

/// How many of the newest keys are elsewhere, and how many were looked at.
fn count(consumer: &BaseConsumer<Plain>, name: &str, deadline: Deadline) -> Result<(usize, usize), KafkaError> {
    let metadata = consumer.fetch_metadata(Some(name), deadline.left())?;
    let ids: Vec<i32> =
        metadata.topics().iter().flat_map(|topic| topic.partitions()).map(|partition| partition.id()).collect();
    let mut list = TopicPartitionList::new();
    let mut unread = BTreeSet::new();
    for &id in &ids {
        let (low, high) = consumer.fetch_watermarks(name, id, deadline.left())?;
        if low < high {
            list.add_partition_offset(name, id, KafkaOffset::Offset(low.max(high - NEWEST)))?;
            unread.insert(id);
        }
    }
    consumer.assign(&list)?;
    let (mut elsewhere, mut keys) = (0, 0);
    while !unread.is_empty() && !deadline.has_passed() {
        match consumer.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => {
                if let Some(key) = message.key() {
                    keys += 1;
                    let belongs = partition_of(key, ids.len() as i32) == Partition(message.partition());
                    elsewhere += usize::from(!belongs);
                }
            }
            Some(Err(KafkaError::PartitionEOF(id))) => drop(unread.remove(&id)),
            Some(Err(_)) | None => {}
        }
    }
    consumer.unassign()?;
    Ok((elsewhere, keys))
}
