//! Connecting, with one clear message for each way it can fail.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::deadline::Deadline;
use super::group::{Bell, Plain};
use super::hello;
use super::membership::Membership;
use super::oauth::TokenFile;
use super::options::{KafkaOptions, Mechanism};
use super::questions::Questions;
use super::reader::Reader;
use super::rights::{self, Resource};
use super::start::Starts;
use super::txn::{Deliveries, Ready};
use super::{KafkaLog, LogError, Topic};

/// How long to ask about a topic before giving up.
const CONNECT_PATIENCE: Duration = Duration::from_secs(15);
/// How long a topic may be unknown: a broker that has just started may not have heard of it.
const UNKNOWN_FOR: Duration = Duration::from_secs(3);

impl KafkaLog {
    /// Connects, checks the topics, takes over the transactional id, and joins the group; the first polls then bring
    /// an assignment.
    ///
    /// # Errors
    /// One that says what to correct: no broker, wrong credentials, a missing topic, differing numbers of partitions.
    pub fn connect(options: KafkaOptions) -> Result<KafkaLog, LogError> {
        let plain = context(&options);
        let partitions = partitions(&options)?;
        check_counts(&options, &partitions)?;
        let questions = Questions::new(&options, &plain)?;
        let bell = Arc::new(Bell::default());
        let producer = producer(&options, &plain)?;
        let requests = Reader::new(&options, Topic::Requests, plain.clone(), &bell)?;
        let responses = Reader::new(&options, Topic::Responses, plain.clone(), &bell)?;
        let membership = Membership::join(&options, plain.clone(), &bell)?;
        Ok(KafkaLog {
            plain,
            bell,
            partitions,
            questions,
            membership,
            requests,
            responses,
            restorer: None,
            producer: Some(producer),
            committed: Starts::new(),
            unrestored: BTreeSet::new(),
            rewind_due: false,
            oldest_ms: None,
            options,
        })
    }
}

/// A context for clients of these options.
pub(super) fn context(options: &KafkaOptions) -> Plain {
    let uses_token = options.security.mechanism == Mechanism::OauthBearer;
    let token = options.security.token_file.clone().filter(|_| uses_token).map(TokenFile);
    Plain { token, ..Plain::default() }
}

/// A new producer that has taken over the transactional id.
pub(super) fn producer(options: &KafkaOptions, plain: &Plain) -> Result<Ready, LogError> {
    let producer = options
        .producer()?
        .create_with_context(Deliveries::new(plain.clone()))
        .map_err(|source| LogError::Kafka { what: "making the producer", source })?;
    Ready::take_over(producer, options.transaction_timeout)
        .map_err(|source| LogError::Kafka { what: "taking over the transactional id", source })
        .map_err(|error| rights::refused(options, error, None))
}

/// The number of partitions of every topic.
fn partitions(options: &KafkaOptions) -> Result<[i32; 7], LogError> {
    let client = hello::greet(options)?;
    let mut counts = [0; 7];
    for topic in Topic::ALL {
        counts[topic.index()] = partitions_of(options, &client, topic)?;
    }
    Ok(counts)
}

/// The number of partitions of one topic.
pub(super) fn partitions_of(
    options: &KafkaOptions,
    client: &BaseConsumer<Plain>,
    topic: Topic,
) -> Result<i32, LogError> {
    use RDKafkaErrorCode as Code;
    let name = options.name(topic);
    let deadline = Deadline::after(CONNECT_PATIENCE);
    loop {
        hello::serve(client);
        let metadata = client.fetch_metadata(Some(name), Duration::from_secs(2));
        let found = metadata.as_ref().ok().and_then(|metadata| metadata.topics().first());
        match (found, found.and_then(|found| found.error()).map(Code::from)) {
            (Some(found), None) if !found.partitions().is_empty() => return Ok(found.partitions().len() as i32),
            (_, Some(Code::TopicAuthorizationFailed)) => {
                return Err(rights::forbidden(options, Resource::Topic(topic)));
            }
            (_, Some(Code::UnknownTopicOrPartition | Code::UnknownTopic)) if deadline.elapsed() > UNKNOWN_FOR => {
                let what = "there is no such topic; run `toolgate topics apply`".to_owned();
                return Err(LogError::TopicUnfit { name: name.to_owned(), what });
            }
            (_, code) if deadline.has_passed() => {
                let source = metadata.err().or(code.map(KafkaError::MetadataFetch)).unwrap_or(KafkaError::Canceled);
                return Err(LogError::Kafka { what: "asking about a topic", source });
            }
            _ => {}
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Requests, responses and the changelog are read by partition, so they need the same ones.
fn check_counts(options: &KafkaOptions, counts: &[i32; 7]) -> Result<(), LogError> {
    let of = |topic: Topic| counts[topic.index()];
    for topic in [Topic::Requests, Topic::Bindings] {
        if of(topic) != of(Topic::Responses) {
            return Err(LogError::TopicUnfit {
                name: options.name(topic).to_owned(),
                what: format!(
                    "has {} partitions but `{}` has {}; give both the same number, or keys do not meet",
                    of(topic),
                    options.name(Topic::Responses),
                    of(Topic::Responses)
                ),
            });
        }
    }
    Ok(())
}
