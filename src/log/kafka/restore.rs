//! Reading the changelog of a partition to its end.

use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use super::convert;
use super::group::Plain;
use super::options::KafkaOptions;
use super::questions::{Meanwhile, Questions};
use super::reader::note;
use crate::log::error::LogError;
use crate::log::record::{Offset, Partition, Record, Topic};

/// How many records are applied between two signs of life to the group.
const RECORDS_BETWEEN_SIGNS: u32 = 5000;

/// The consumer of the changelog.
pub(super) struct Restorer {
    consumer: BaseConsumer<Plain>,
    name: String,
}

impl Restorer {
    pub(super) fn new(options: &KafkaOptions, context: Plain) -> Result<Restorer, LogError> {
        let consumer = options
            .reader()?
            .create_with_context(context)
            .map_err(|source| LogError::Kafka { what: "making the reader of the changelog", source })?;
        Ok(Restorer { consumer, name: options.name(Topic::Bindings).to_owned() })
    }

    /// Applies every record of the partition, oldest first.
    ///
    /// The former owner's last transaction may still be open, and a reader of committed records is told that it has
    /// reached the end when it has only reached that transaction. So reading begins once nothing is open below the end;
    /// then the end that is reported is beyond it. A leader that was elected meanwhile may report an end too early, before
    /// it has heard how far its followers are (KIP-207 keeps it from doing so when it is asked for the end, not when it is
    /// read from). So the end counts only where the leader is still the one that was asked for it.
    pub(super) fn restore(
        &self,
        questions: &Questions,
        partition: Partition,
        meanwhile: Meanwhile<'_>,
        apply: &mut dyn FnMut(Record) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        meanwhile()?;
        let mut next = None;
        loop {
            let leader = questions.leader(Topic::Bindings, partition, meanwhile)?;
            let (low, high) = questions.settled(Topic::Bindings, partition, meanwhile)?;
            let from = next.unwrap_or(low);
            if from < high {
                self.assign(partition, from)?;
                let read = self.read(partition, meanwhile, &mut |record| {
                    next = Some(record.position.offset.next());
                    apply(record)
                });
                self.consumer.unassign().map_err(|source| LogError::Kafka { what: "leaving the changelog", source })?;
                read?;
            }
            if questions.leader(Topic::Bindings, partition, meanwhile)? == leader {
                return Ok(());
            }
            tracing::info!(partition = partition.0, "kafka: the leader changed during the restore; reading on from it");
        }
    }

    fn assign(&self, partition: Partition, low: Offset) -> Result<(), LogError> {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.name, partition.0, KafkaOffset::Offset(low.0))
            .and_then(|()| self.consumer.assign(&list))
            .map_err(|source| LogError::Kafka { what: "assigning the changelog", source })
    }

    fn read(
        &self,
        partition: Partition,
        meanwhile: Meanwhile<'_>,
        apply: &mut dyn FnMut(Record) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        let mut since_sign = 0;
        loop {
            match self.consumer.poll(Duration::from_millis(500)) {
                Some(Ok(message)) => apply(convert::record(Topic::Bindings, &message))?,
                Some(Err(KafkaError::PartitionEOF(at))) if at == partition.0 => return Ok(()),
                Some(Err(error)) => note(error, &self.name)?,
                None => since_sign = RECORDS_BETWEEN_SIGNS,
            }
            since_sign += 1;
            if since_sign >= RECORDS_BETWEEN_SIGNS {
                since_sign = 0;
                meanwhile()?;
            }
        }
    }
}
