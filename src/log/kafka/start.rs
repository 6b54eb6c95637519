//! Where an owner of a partition goes on: at the committed offsets of both inputs.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use crate::log::error::LogError;
use crate::log::record::{Offset, Partition, Topic};

/// The next offset to read of input partitions.
pub(super) type Starts = BTreeMap<(Topic, Partition), Offset>;

/// How long a call to a broker may take. Longer than a transaction: a stable offset is not to be had before the
/// transaction of the former owner has ended, by its own end or the broker's.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The committed offsets of the inputs, as stable ones: a consumer that reads committed records asks for those, and the
/// broker answers once no transaction that may change them is open.
pub(super) fn committed<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    names: &[String; 7],
    partitions: &[Partition],
    accept_gap: bool,
) -> Result<Starts, LogError> {
    let mut list = TopicPartitionList::new();
    for topic in Topic::INPUTS {
        for partition in partitions {
            list.add_partition(&names[topic.index()], partition.0);
        }
    }
    let found = consumer
        .committed_offsets(list, PATIENCE)
        .map_err(|source| LogError::Kafka { what: "fetching the committed offsets", source })?;
    let mut starts = Starts::new();
    for topic in Topic::INPUTS {
        for &partition in partitions {
            let name = &names[topic.index()];
            let one = found.find_partition(name, partition.0);
            if let Some(Err(source)) = one.as_ref().map(rdkafka::topic_partition_list::TopicPartitionListElem::error) {
                return Err(LogError::Kafka { what: "fetching the committed offsets", source });
            }
            let committed = match one.map(|one| one.offset()) {
                Some(KafkaOffset::Offset(offset)) => Some(Offset(offset)),
                Some(_) | None => None,
            };
            let offset = checked(consumer, name, (topic, partition), committed, accept_gap)?;
            starts.insert((topic, partition), offset);
        }
    }
    Ok(starts)
}

/// Holds a committed offset against what the log still has.
fn checked<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    name: &str,
    (topic, partition): (Topic, Partition),
    committed: Option<Offset>,
    accept_gap: bool,
) -> Result<Offset, LogError> {
    let (low, high) = consumer
        .fetch_watermarks(name, partition.0, PATIENCE)
        .map_err(|source| LogError::Kafka { what: "asking for the start of an input", source })?;
    let start = Offset(low);
    match committed {
        None => Ok(start),
        Some(committed) if committed >= start && committed.0 <= high => Ok(committed),
        Some(committed) if committed < start && !accept_gap => {
            Err(LogError::Gap { topic, partition, committed, start })
        }
        Some(committed) if committed < start => Ok(start),
        Some(committed) => Err(LogError::TopicUnfit {
            name: name.to_owned(),
            what: format!(
                "partition {partition} ends at {high} but offset {committed} was committed: the topic was made anew or lost records; start a new group, or reset the offsets of this one"
            ),
        }),
    }
}
