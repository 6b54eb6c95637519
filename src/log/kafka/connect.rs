//! Connecting, with one clear message for each way it can fail.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::deadline::Deadline;
use super::group::{Bell, Plain};
use super::membership::Membership;
use super::oauth::TokenFile;
use super::options::{KafkaOptions, Mechanism};
use super::questions::Questions;
use super::reader::Reader;
use super::start::Starts;
use super::txn::{Deliveries, Ready};
use super::{KafkaLog, LogError, Topic};

/// How long to look for a broker before giving up.
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
        let questions = Questions::new(&options, &plain)?;
        let partitions = partitions(&options, &plain, &questions)?;
        check_counts(&options, &partitions)?;
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
    Ready::take_over(producer, options.transaction_timeout).map_err(|source| match source.rdkafka_error_code() {
        Some(RDKafkaErrorCode::TransactionalIdAuthorizationFailed) => LogError::Connect {
            servers: options.bootstrap_servers.clone(),
            what: format!(
                "no right to use the transactional id `{}`; grant WRITE and DESCRIBE on it",
                options.transactional_id()
            ),
        },
        _ => LogError::Kafka { what: "taking over the transactional id", source },
    })
}

/// The number of partitions of every topic.
fn partitions(options: &KafkaOptions, plain: &Plain, questions: &Questions) -> Result<[i32; 7], LogError> {
    let mut counts = [0; 7];
    for topic in Topic::ALL {
        counts[topic.index()] = partitions_of(options, plain, questions, options.name(topic))?;
    }
    Ok(counts)
}

fn partitions_of(options: &KafkaOptions, plain: &Plain, questions: &Questions, name: &str) -> Result<i32, LogError> {
    use RDKafkaErrorCode as Code;
    let unfit = |what: &str| LogError::TopicUnfit { name: name.to_owned(), what: what.to_owned() };
    let deadline = Deadline::after(CONNECT_PATIENCE);
    loop {
        let problem = match questions.metadata(name) {
            Ok(metadata) => {
                let topic = metadata.topics().first();
                let code = topic.and_then(|topic| topic.error()).map(RDKafkaErrorCode::from);
                match (topic, code) {
                    (Some(topic), None) if !topic.partitions().is_empty() => return Ok(topic.partitions().len() as i32),
                    (_, Some(Code::TopicAuthorizationFailed)) => {
                        return Err(unfit(
                            "no right to see it; grant DESCRIBE, and READ or WRITE, to this worker's user",
                        ));
                    }
                    (_, Some(Code::UnknownTopicOrPartition | Code::UnknownTopic))
                        if deadline.elapsed() > UNKNOWN_FOR =>
                    {
                        return Err(unfit("there is no such topic; run `toolgate topics apply`"));
                    }
                    _ => None,
                }
            }
            Err(error) => Some(error),
        };
        // Nothing mends a wrong password or certificate but a person: say so at once.
        if let Some((code, reason)) = plain.troubles.last()
            && matches!(code, Code::Authentication | Code::SSL | Code::SaslAuthenticationFailed)
        {
            return Err(LogError::Connect { servers: options.bootstrap_servers.clone(), what: cure(code, &reason) });
        }
        if deadline.has_passed() {
            return Err(unreachable(options, plain, problem));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn cure(code: RDKafkaErrorCode, reason: &str) -> String {
    let reason = reason.lines().next().unwrap_or_default();
    if code == RDKafkaErrorCode::SSL {
        format!("the TLS handshake failed ({reason}); check kafka.ca_file, and whether the port speaks TLS")
    } else {
        format!("the broker refused who we say we are ({reason}); check kafka.username and kafka.password_file")
    }
}

fn unreachable(options: &KafkaOptions, plain: &Plain, problem: Option<KafkaError>) -> LogError {
    let reason = plain.troubles.last().map(|(_, reason)| reason);
    let reason = reason.or_else(|| problem.map(|error| error.to_string())).unwrap_or_else(|| "no answer".to_owned());
    LogError::Connect {
        servers: options.bootstrap_servers.clone(),
        what: format!("no broker can be reached ({reason}); check kafka.bootstrap_servers and kafka.security_protocol"),
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
