//! Membership of the group: what the rebalance callbacks find out, and what they leave for the next poll.
//!
//! A transaction lives only inside `commit()`, and callbacks run only inside a poll of the consumer, on the thread that
//! polls. So a revocation never finds a transaction open, and there is nothing to finish or abort here: what was
//! judged of a revoked partition is committed, what was not is read again by the next owner. Callbacks ask no broker
//! anything: one that waited for a broker that is gone would keep the member from learning where the others are.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::client::{ClientContext, OAuthToken};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, RebalanceProtocol};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::statistics::Statistics;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use super::oauth::TokenFile;
use crate::log::error::LogError;
use crate::log::record::{Offset, Partition};

/// What a rebalance did, in the order it did it.
#[derive(Debug)]
pub(super) enum Change {
    Assigned(Vec<Partition>),
    Revoked(Vec<Partition>),
    /// The client could not take up or give up what it was told to.
    Failed(LogError),
}

/// Rings when any of the consumers has something.
#[derive(Debug, Default)]
pub(super) struct Bell {
    rung: Mutex<bool>,
    heard: Condvar,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that holds a lock here can panic in between, and if it did the value would still be whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bell {
    pub(super) fn ring(&self) {
        *locked(&self.rung) = true;
        self.heard.notify_one();
    }

    /// Waits for a ring since the last wait, at most so long.
    pub(super) fn wait(&self, at_most: Duration) {
        let guard = locked(&self.rung);
        let waited = self.heard.wait_timeout_while(guard, at_most, |rung| !*rung);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

/// What librdkafka reports beside the calls that are made: the last problem of connections, for messages.
#[derive(Debug, Default)]
pub(super) struct Troubles(Mutex<Option<(RDKafkaErrorCode, String)>>);

impl Troubles {
    /// Keeps the first cause: that all brokers are down follows from it and says less.
    pub(super) fn note(&self, error: &KafkaError, reason: &str) {
        let Some(code) = error.rdkafka_error_code() else { return };
        let mut last = locked(&self.0);
        if code != RDKafkaErrorCode::AllBrokersDown || last.is_none() {
            *last = Some((code, reason.to_owned()));
        }
    }

    pub(super) fn last(&self) -> Option<(RDKafkaErrorCode, String)> {
        locked(&self.0).clone()
    }
}

/// Where partitions of a reader end, as its fetches were told. It costs no question, and is a second old at most.
#[derive(Debug, Default)]
pub(super) struct Highs(Mutex<BTreeMap<Partition, Offset>>);

impl Highs {
    fn note(&self, statistics: &Statistics) {
        let mut highs = locked(&self.0);
        for (id, partition) in statistics.topics.values().flat_map(|topic| &topic.partitions) {
            highs.insert(Partition(*id), Offset(partition.hi_offset));
        }
    }

    pub(super) fn of(&self, partition: Partition) -> Option<Offset> {
        locked(&self.0).get(&partition).copied()
    }
}

/// The context of every client of ours that is not the member of the group.
#[derive(Debug, Default, Clone)]
pub(crate) struct Plain {
    pub(super) troubles: Arc<Troubles>,
    pub(super) token: Option<TokenFile>,
    pub(super) highs: Arc<Highs>,
}

impl ClientContext for Plain {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "kafka client");
        self.troubles.note(&error, reason);
    }

    fn stats(&self, statistics: Statistics) {
        self.highs.note(&statistics);
    }

    /// librdkafka's own lines go to debug: what matters of them comes back as an error of a call.
    fn log(&self, _level: RDKafkaLogLevel, facility: &str, text: &str) {
        tracing::debug!(facility, text, "librdkafka");
    }

    fn generate_oauth_token(&self, _config: Option<&str>) -> Result<OAuthToken, Box<dyn std::error::Error>> {
        TokenFile::read(self.token.as_ref())
    }
}

impl ConsumerContext for Plain {}

/// The context of the member of the group.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) plain: Plain,
    /// The topic of responses.
    pub(super) name: String,
    pub(super) changes: Mutex<VecDeque<Change>>,
}

impl Member {
    pub(super) fn next_change(&self) -> Option<Change> {
        locked(&self.changes).pop_front()
    }

    pub(super) fn has_changes(&self) -> bool {
        !locked(&self.changes).is_empty()
    }

    fn push(&self, change: Change) {
        locked(&self.changes).push_back(change);
    }

    /// Takes the partitions, at their ends and paused: the member does not read.
    fn assign(&self, consumer: &BaseConsumer<Self>, list: &mut TopicPartitionList) {
        let partitions: Vec<Partition> = list.elements().iter().map(|one| Partition(one.partition())).collect();
        let at_end = |partition: &Partition| list.set_partition_offset(&self.name, partition.0, KafkaOffset::End);
        let placed = partitions.iter().try_for_each(at_end);
        let assigned = placed.and_then(|()| match consumer.rebalance_protocol() {
            RebalanceProtocol::Cooperative => consumer.incremental_assign(list),
            RebalanceProtocol::None | RebalanceProtocol::Eager => consumer.assign(list),
        });
        self.push(match assigned.and_then(|()| consumer.pause(list)) {
            Ok(()) => Change::Assigned(partitions),
            Err(source) => Change::Failed(LogError::Kafka { what: "taking up an assignment", source }),
        });
    }

    fn revoke(&self, consumer: &BaseConsumer<Self>, list: &TopicPartitionList) {
        let partitions = list.elements().iter().map(|one| Partition(one.partition())).collect();
        if consumer.assignment_lost() {
            tracing::warn!("kafka: the group went on without this worker; its partitions belong to others now");
        }
        self.push(Change::Revoked(partitions));
        let done: KafkaResult<()> = match consumer.rebalance_protocol() {
            RebalanceProtocol::Cooperative => consumer.incremental_unassign(list),
            RebalanceProtocol::None | RebalanceProtocol::Eager => consumer.unassign(),
        };
        if let Err(source) = done {
            self.push(Change::Failed(LogError::Kafka { what: "giving up an assignment", source }));
        }
    }
}

impl ClientContext for Member {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn error(&self, error: KafkaError, reason: &str) {
        self.plain.error(error, reason);
    }

    fn log(&self, level: RDKafkaLogLevel, facility: &str, text: &str) {
        self.plain.log(level, facility, text);
    }

    fn generate_oauth_token(&self, config: Option<&str>) -> Result<OAuthToken, Box<dyn std::error::Error>> {
        self.plain.generate_oauth_token(config)
    }
}

impl ConsumerContext for Member {
    fn rebalance(&self, consumer: &BaseConsumer<Self>, event: RDKafkaRespErr, list: &mut TopicPartitionList) {
        if event == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
            self.assign(consumer, list);
        } else {
            self.revoke(consumer, list);
        }
    }
}
