//! What only brokers know: where partitions end, in both senses of the word, and what the group has committed.
//!
//! A question does no harm by being asked twice, so it is asked again while brokers come and go. A client can go on
//! for long with what it knew before a broker died; one that keeps failing is replaced by one that knows nothing.

use std::cell::RefCell;
use std::time::Duration;

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use super::deadline::Deadline;
use super::group::Plain;
use super::hello;
use super::options::KafkaOptions;
use super::start::{self, Starts};
use crate::log::error::LogError;
use crate::log::record::{Offset, Partition, Topic};

/// How long a question is repeated before the worker gives up: long enough for brokers to be restarted.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// How long one try may take. What is asked of the group has to wait for the transaction of a former owner, which ends
/// by itself or by the broker.
const TRY: Duration = Duration::from_secs(3);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(50);
/// How long one client may keep failing.
const RENEW_AFTER: Duration = Duration::from_secs(2);

/// Gives the group a sign of life while something takes long.
pub(super) type Meanwhile<'a> = &'a mut dyn FnMut() -> Result<(), LogError>;

/// One client, and how to make it anew.
struct Asker {
    config: ClientConfig,
    context: Plain,
    client: RefCell<BaseConsumer<Plain>>,
}

impl Asker {
    fn new(config: ClientConfig, context: &Plain) -> KafkaResult<Asker> {
        let client = RefCell::new(config.create_with_context(context.clone())?);
        Ok(Asker { config, context: context.clone(), client })
    }

    fn ask<T>(
        &self,
        what: &'static str,
        meanwhile: Meanwhile<'_>,
        question: impl Fn(&BaseConsumer<Plain>) -> KafkaResult<T>,
    ) -> Result<T, LogError> {
        let deadline = Deadline::after(PATIENCE);
        let mut renewal = Deadline::after(RENEW_AFTER);
        loop {
            // The library hands out what it wants of us, such as a new token, in polls alone.
            hello::serve(&self.client.borrow());
            let error = match question(&self.client.borrow()) {
                Ok(answer) => return Ok(answer),
                Err(source) if deadline.has_passed() || is_final(&source) => {
                    return Err(LogError::Kafka { what, source });
                }
                Err(error) => error,
            };
            tracing::debug!(%error, "kafka: {what}, again");
            meanwhile()?;
            std::thread::sleep(PAUSE);
            if renewal.has_passed() {
                let fresh = self.config.create_with_context(self.context.clone());
                *self.client.borrow_mut() = fresh.map_err(|source| LogError::Kafka { what, source })?;
                renewal = Deadline::after(RENEW_AFTER);
            }
        }
    }
}

/// No broker answers otherwise later: somebody has to grant a right first.
fn is_final(error: &KafkaError) -> bool {
    const FINAL: [RDKafkaErrorCode; 2] =
        [RDKafkaErrorCode::TopicAuthorizationFailed, RDKafkaErrorCode::GroupAuthorizationFailed];
    error.rdkafka_error_code().is_some_and(|code| FINAL.contains(&code))
}

/// Asks brokers. Two clients, because the isolation level is a client's.
pub(super) struct Questions {
    committed: Asker,
    uncommitted: Asker,
    names: [String; 7],
}

impl Questions {
    pub(super) fn new(options: &KafkaOptions, context: &Plain) -> Result<Questions, LogError> {
        let asker = |isolation: &str| {
            let mut config = options.reader()?;
            config.set("isolation.level", isolation);
            Asker::new(config, context).map_err(|source| LogError::Kafka { what: "making a client", source })
        };
        Ok(Questions {
            committed: asker("read_committed")?,
            uncommitted: asker("read_uncommitted")?,
            names: options.topics.clone(),
        })
    }

    /// The broker that leads a partition.
    pub(super) fn leader(&self, topic: Topic, partition: Partition, meanwhile: Meanwhile<'_>) -> Result<i32, LogError> {
        let name = &self.names[topic.index()];
        let question = |client: &BaseConsumer<Plain>| {
            let metadata = client.fetch_metadata(Some(name), TRY)?;
            let mut partitions = metadata.topics().iter().flat_map(|topic| topic.partitions());
            let leader = partitions.find(|one| one.id() == partition.0).map(|one| one.leader()).filter(|id| *id >= 0);
            leader.ok_or(KafkaError::MetadataFetch(RDKafkaErrorCode::LeaderNotAvailable))
        };
        self.uncommitted.ask("asking for the leader of a partition", meanwhile, question)
    }

    /// The next offset to be written, whether or not what is below it can be read yet.
    pub(super) fn high(&self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        self.watermarks(&self.uncommitted, topic, partition, &mut || Ok(())).map(|(_, high)| high)
    }

    /// Everything below can be read, or is known to be aborted.
    pub(super) fn stable(&self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        self.watermarks(&self.committed, topic, partition, &mut || Ok(())).map(|(_, stable)| stable)
    }

    /// The start of a partition, and the end of what can be read of it now.
    pub(super) fn readable(&self, topic: Topic, partition: Partition) -> Result<(Offset, Offset), LogError> {
        self.watermarks(&self.committed, topic, partition, &mut || Ok(()))
    }

    /// Waits until no transaction is open below what is the end now. Returns the start and that end.
    pub(super) fn settled(
        &self,
        topic: Topic,
        partition: Partition,
        meanwhile: Meanwhile<'_>,
    ) -> Result<(Offset, Offset), LogError> {
        let (low, high) = self.watermarks(&self.uncommitted, topic, partition, meanwhile)?;
        // Longer than any transaction of ours may be open.
        let deadline = Deadline::after(PATIENCE);
        while self.stable(topic, partition)? < high {
            if deadline.has_passed() {
                return Err(LogError::Unstable { topic, partition, waited_s: deadline.elapsed().as_secs() });
            }
            meanwhile()?;
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok((low, high))
    }

    /// Where an owner of these partitions goes on, in both inputs: at the committed offsets, as stable ones. A client that
    /// reads committed records asks for those, and the broker answers once no transaction that may change them is open.
    pub(super) fn starts(
        &self,
        partitions: &[Partition],
        accept_gap: bool,
        meanwhile: Meanwhile<'_>,
    ) -> Result<Starts, LogError> {
        let mut list = TopicPartitionList::new();
        for topic in Topic::INPUTS {
            for partition in partitions {
                list.add_partition(&self.names[topic.index()], partition.0);
            }
        }
        let question = |client: &BaseConsumer<Plain>| {
            let found = client.committed_offsets(list.clone(), TRY)?;
            found.elements().iter().try_for_each(|one| one.error())?;
            Ok(found)
        };
        let found = self.committed.ask("fetching the committed offsets", meanwhile, question)?;
        let mut starts = Starts::new();
        for topic in Topic::INPUTS {
            let name = &self.names[topic.index()];
            for &partition in partitions {
                let committed = match found.find_partition(name, partition.0).map(|one| one.offset()) {
                    Some(KafkaOffset::Offset(offset)) => Some(Offset(offset)),
                    Some(_) | None => None,
                };
                let range = self.watermarks(&self.uncommitted, topic, partition, meanwhile)?;
                let start = start::checked(name, (topic, partition), committed, range, accept_gap)?;
                starts.insert((topic, partition), start);
            }
        }
        Ok(starts)
    }

    fn watermarks(
        &self,
        asker: &Asker,
        topic: Topic,
        partition: Partition,
        meanwhile: Meanwhile<'_>,
    ) -> Result<(Offset, Offset), LogError> {
        let name = &self.names[topic.index()];
        let question = |client: &BaseConsumer<Plain>| client.fetch_watermarks(name, partition.0, TRY);
        let (low, high) = asker.ask("asking for the ends of a partition", meanwhile, question)?;
        Ok((Offset(low), Offset(high)))
    }
}
