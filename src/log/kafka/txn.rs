//! One transaction, as states that consume each other.
//!
//! ```text
//! Ready --begin--> Open --commit--> Ended::Committed(Ready)
//!                                   Ended::Aborted(Some(Ready) | None)
//!                                   Ended::Indeterminate
//! ```
//! A producer that saw anything indefinite is not in the result, so nothing can begin on it again: the client library
//! ends transactions without a new epoch each (it lacks KIP-890), and what is still under way of an old transaction could
//! become part of the next one. The only way on is a new producer with the same transactional id, whose
//! `init_transactions` raises the epoch and settles what the old one left.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rdkafka::Message;
use rdkafka::TopicPartitionList;
use rdkafka::client::{ClientContext, OAuthToken};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerGroupMetadata;
use rdkafka::error::{KafkaError, RDKafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext, PurgeConfig};

use super::convert;
use super::deadline::Deadline;
use super::group::Plain;
use crate::log::record::{Outgoing, Partition, Topic};

/// Between two looks at what is acknowledged: short beside a transaction, long beside a look.
const NAP: Duration = Duration::from_micros(300);

/// The target of the events that mark how far a transaction is; `make bench-kafka` takes the time between them.
const MARKS: &str = "toolgate::transaction";
/// How much longer than its time-out a transaction may take to end.
const GRACE: Duration = Duration::from_secs(1);

/// Keeps the first record that could not be delivered: why, and the topic. Its transaction cannot commit, and the
/// producer is not used after it, so there is no reset.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    plain: Plain,
    failed: Mutex<Option<(KafkaError, String)>>,
    /// The topic that must not be written to. The library purges the records of such a transaction with no reason given,
    /// and names the topic in a log line alone.
    denied: Mutex<Option<String>>,
}

impl Deliveries {
    pub(super) fn new(plain: Plain) -> Deliveries {
        Deliveries { plain, ..Deliveries::default() }
    }

    fn note(&self, error: &KafkaError, topic: &str) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.get_or_insert_with(|| (error.clone(), topic.to_owned()));
    }

    fn failed(&self) -> Option<(KafkaError, String)> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ClientContext for Deliveries {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn error(&self, error: KafkaError, reason: &str) {
        self.plain.error(error, reason);
    }

    fn log(&self, level: RDKafkaLogLevel, facility: &str, text: &str) {
        if let Some(topic) = denied(facility, text) {
            let mut denied = self.denied.lock().unwrap_or_else(PoisonError::into_inner);
            denied.get_or_insert_with(|| topic.to_owned());
        }
        self.plain.log(level, facility, text);
    }

    fn generate_oauth_token(&self, config: Option<&str>) -> Result<OAuthToken, Box<dyn std::error::Error>> {
        self.plain.generate_oauth_token(config)
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, _: ()) {
        if let Err((error, message)) = result {
            self.note(error, message.topic());
        }
    }
}

/// A record with the topic and partition it goes to.
#[derive(Debug)]
pub(super) struct Placed<'a> {
    pub(super) name: &'a str,
    pub(super) partition: Partition,
    pub(super) record: Outgoing,
}

/// Why a transaction did not commit.
#[derive(Debug)]
pub(super) struct Cause {
    pub(super) what: &'static str,
    pub(super) error: KafkaError,
    /// The broker refuses our epoch: somebody else has it, or the transaction has been open for too long.
    pub(super) is_fenced: bool,
    /// A topic that will never take the records as they are, and what to do about it.
    pub(super) unfit: Option<(String, &'static str)>,
    pub(super) took: Duration,
}

/// A producer that has no transaction.
pub(super) struct Ready {
    producer: BaseProducer<Deliveries>,
    patience: Duration,
}

/// A producer with a transaction begun.
pub(super) struct Open {
    producer: BaseProducer<Deliveries>,
    patience: Duration,
    deadline: Deadline,
}

/// How a transaction ended.
pub(super) enum Ended {
    Committed(Ready),
    /// Nothing of it exists; without a producer where that one is not to be used again.
    Aborted(Option<Ready>, Cause),
    /// Only the broker knows, and only a new producer can make it say.
    Indeterminate(Cause),
}

impl Ready {
    /// Takes over the transactional id: afterwards no other producer of this id can commit, and whatever
    /// transaction one of them left open has ended.
    pub(super) fn take_over(producer: BaseProducer<Deliveries>, patience: Duration) -> Result<Ready, KafkaError> {
        let deadline = Deadline::after(patience * 3);
        loop {
            // A token is asked for in a poll, and without one there is no connection.
            producer.poll(Duration::ZERO);
            match producer.init_transactions(patience) {
                Ok(()) => return Ok(Ready { producer, patience }),
                Err(KafkaError::Transaction(error)) if error.is_retriable() && !deadline.has_passed() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Lets the client renew its token while there is nothing to write.
    pub(super) fn tend(&self) {
        self.producer.poll(Duration::ZERO);
    }

    /// Whether the transactional id is still ours: asks by a transaction with one tombstone that is then aborted, so
    /// that nobody ever sees it.
    pub(super) fn prove(self, name: &str) -> Result<Ready, Box<Cause>> {
        const WHAT: &str = "proving that the transactional id is ours";
        let deadline = Deadline::after(self.patience);
        if let Err(error) = self.producer.begin_transaction() {
            return Err(Box::new(cause(WHAT, error, deadline)));
        }
        let open = Open { producer: self.producer, patience: self.patience, deadline };
        // A compacted topic takes no record without a key.
        let key = Some(Vec::new());
        let record = Outgoing { topic: Topic::Bindings, partition: None, key, value: None, headers: Vec::new() };
        let written = open.send(&Placed { name, partition: Partition(0), record }).and_then(|()| open.drain());
        match written.and_then(|()| open.producer.abort_transaction(open.patience)) {
            Ok(()) => Ok(Ready { producer: open.producer, patience: open.patience }),
            Err(error) => Err(Box::new(open.given_up(WHAT, error))),
        }
    }

    /// Begins a transaction and queues the records.
    pub(super) fn commit(
        self,
        records: &[Placed<'_>],
        offsets: TopicPartitionList,
        member: ConsumerGroupMetadata,
    ) -> Ended {
        let deadline = Deadline::after(self.patience);
        match self.producer.begin_transaction() {
            Ok(()) => {}
            Err(error) => return Ended::Aborted(None, cause("beginning a transaction", error, deadline)),
        }
        let open = Open { producer: self.producer, patience: self.patience, deadline };
        let queued = records.iter().try_for_each(|record| open.send(record));
        tracing::trace!(name: "queued", target: MARKS, "the records are queued");
        let drained = queued.and_then(|()| open.drain());
        tracing::trace!(name: "acknowledged", target: MARKS, "every record is acknowledged");
        match drained {
            Ok(()) => open.end_in_time(offsets, member),
            Err(error) => open.abandon("writing the records of a transaction", error),
        }
    }
}

impl Open {
    fn send(&self, placed: &Placed<'_>) -> Result<(), KafkaError> {
        let Outgoing { key, value, .. } = &placed.record;
        let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(placed.name).partition(placed.partition.0);
        record.key = key.as_deref();
        record.payload = value.as_deref();
        record.headers = convert::headers(&placed.record);
        loop {
            match self.producer.send(record) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back))
                    if !self.deadline.has_passed() =>
                {
                    record = back;
                    self.producer.poll(Duration::from_millis(1));
                }
                Err((error, _)) => {
                    self.producer.context().note(&error, placed.name);
                    return Err(error);
                }
            }
        }
    }

    /// Waits until every record is acknowledged. `commit_transaction` would do so too, in steps of 100 ms.
    fn drain(&self) -> Result<(), KafkaError> {
        while self.producer.in_flight_count() > 0 && !self.deadline.has_passed() {
            // A poll with patience would turn in circles: its last millisecond counts as none to the client library.
            self.producer.poll(Duration::ZERO);
            if self.producer.in_flight_count() > 0 {
                std::thread::sleep(NAP);
            }
        }
        self.producer.poll(Duration::ZERO);
        match self.producer.context().failed() {
            Some((error, _)) => Err(error),
            None if self.producer.in_flight_count() > 0 => Err(KafkaError::Flush(RDKafkaErrorCode::MessageTimedOut)),
            None => Ok(()),
        }
    }

    /// Ends the transaction, on a thread of its own, because the client may never come back: adding offsets does not keep
    /// its time-out (confluentinc/librdkafka#5456), and where the coordinator of the group is gone from the cluster it
    /// waits until any other broker changes its state (#5511). The producer is then left to that thread. The broker ends a
    /// transaction that old by itself, and a new producer finds out how.
    fn end_in_time(self, offsets: TopicPartitionList, member: ConsumerGroupMetadata) -> Ended {
        const WHAT: &str = "ending a transaction";
        let deadline = self.deadline;
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let ending = std::thread::Builder::new().name("transaction".to_owned()).spawn(move || {
            // Nobody listens any more where time has run out.
            let _late = tell.send(self.end(&offsets, &member));
        });
        if ending.is_err() {
            return Ended::Aborted(None, cause("starting a thread for a transaction", KafkaError::Canceled, deadline));
        }
        let timed_out = KafkaError::MessageProduction(RDKafkaErrorCode::OperationTimedOut);
        let ended = told.recv_timeout(deadline.left() + GRACE);
        ended.unwrap_or_else(|_| Ended::Indeterminate(cause(WHAT, timed_out, deadline)))
    }

    /// Every record is acknowledged: adds the offsets, and commits.
    fn end(self, offsets: &TopicPartitionList, member: &ConsumerGroupMetadata) -> Ended {
        let what = "adding the offsets to a transaction";
        if let Err(error) = self.retried(|| self.producer.send_offsets_to_transaction(offsets, member, self.patience)) {
            return match transaction(&error) {
                // The group refused: we no longer own what we judged. No record is under way, so this end is definite.
                Some(refused) if refused.txn_requires_abort() && !is_indefinite(refused) => self.abort(what, error),
                _ => Ended::Indeterminate(cause(what, error, self.deadline)),
            };
        }
        tracing::trace!(name: "offsets", target: MARKS, "the offsets are added");
        let what = "committing a transaction";
        match self.retried(|| self.producer.commit_transaction(self.patience)) {
            Ok(()) => Ended::Committed(Ready { producer: self.producer, patience: self.patience }),
            Err(error) => match transaction(&error) {
                Some(refused) if refused.txn_requires_abort() && !is_indefinite(refused) => self.abort(what, error),
                _ => Ended::Indeterminate(cause(what, error, self.deadline)),
            },
        }
    }

    /// Repeats a call that the library says may be repeated, except after a time-out: what timed out may have happened.
    fn retried(&self, call: impl Fn() -> Result<(), KafkaError>) -> Result<(), KafkaError> {
        loop {
            match call() {
                Err(KafkaError::Transaction(error))
                    if error.is_retriable() && !is_indefinite(&error) && !self.deadline.has_passed() =>
                {
                    self.producer.poll(Duration::from_millis(5));
                }
                other => return other,
            }
        }
    }

    fn abort(self, what: &'static str, error: KafkaError) -> Ended {
        let cause = cause(what, error, self.deadline);
        match self.producer.abort_transaction(self.patience) {
            Ok(()) => Ended::Aborted(Some(Ready { producer: self.producer, patience: self.patience }), cause),
            Err(_) => Ended::Aborted(None, cause),
        }
    }

    /// Some records are not acknowledged, and may still be under way. Nobody asked for a commit, so nothing of this
    /// will exist; but this producer, whose epoch those records carry, must not begin anything again.
    fn abandon(self, what: &'static str, error: KafkaError) -> Ended {
        Ended::Aborted(None, self.given_up(what, error))
    }

    fn given_up(self, what: &'static str, error: KafkaError) -> Cause {
        let error = self.producer.client().fatal_error().map_or(error, |(code, _)| KafkaError::MessageProduction(code));
        // A transaction that failed refuses to begin another, and tells why: more than its purged records know.
        let error = match self.producer.begin_transaction() {
            Err(KafkaError::Transaction(cause)) if cause.txn_requires_abort() => KafkaError::Transaction(cause),
            _ => error,
        };
        let deliveries = self.producer.context();
        let failed = deliveries.failed();
        let unfit = match deliveries.denied.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(topic) => unfit(&error).map(|what| (topic, what)),
            None => failed.and_then(|(error, topic)| unfit(&error).map(|what| (topic, what))),
        };
        self.producer.purge(PurgeConfig::default().queue().inflight());
        Cause { unfit, ..cause(what, error, self.deadline) }
    }
}

/// The topic in a line such as `Failed to add partition "x" [0] to transaction: Broker: Topic authorization failed`.
fn denied<'t>(facility: &str, text: &'t str) -> Option<&'t str> {
    let is_denied = facility == "ADDPARTS" && text.contains("Topic authorization failed");
    text.split('"').nth(1).filter(|_| is_denied)
}

fn transaction(error: &KafkaError) -> Option<&RDKafkaError> {
    if let KafkaError::Transaction(error) = error { Some(error) } else { None }
}

/// Errors after which the broker may or may not have done what it was asked for.
fn is_indefinite(error: &RDKafkaError) -> bool {
    const INDEFINITE: [RDKafkaErrorCode; 7] = [
        RDKafkaErrorCode::OperationTimedOut,
        RDKafkaErrorCode::RequestTimedOut,
        RDKafkaErrorCode::MessageTimedOut,
        RDKafkaErrorCode::BrokerTransportFailure,
        RDKafkaErrorCode::AllBrokersDown,
        RDKafkaErrorCode::NetworkException,
        RDKafkaErrorCode::TimedOutQueue,
    ];
    error.is_fatal() || INDEFINITE.contains(&error.code())
}

fn cause(what: &'static str, error: KafkaError, began: Deadline) -> Cause {
    const FENCED: [RDKafkaErrorCode; 3] =
        [RDKafkaErrorCode::Fenced, RDKafkaErrorCode::ProducerFenced, RDKafkaErrorCode::InvalidProducerEpoch];
    let is_fenced = error.rdkafka_error_code().is_some_and(|code| FENCED.contains(&code));
    Cause { what, error, is_fenced, unfit: None, took: began.elapsed() }
}

/// What to do about a topic that refuses a record for good.
fn unfit(error: &KafkaError) -> Option<&'static str> {
    const CURES: [(RDKafkaErrorCode, &str); 4] = [
        (
            RDKafkaErrorCode::MessageSizeTooLarge,
            "a record is larger than the topic takes; raise its max.message.bytes (`toolgate topics plan` says to what)",
        ),
        (RDKafkaErrorCode::TopicAuthorizationFailed, "no right to write to it; grant WRITE to this worker's user"),
        (RDKafkaErrorCode::UnknownTopicOrPartition, "there is no such topic any more; run `toolgate topics apply`"),
        (RDKafkaErrorCode::InvalidRecord, "the broker refuses a record; look at the settings of the topic"),
    ];
    let code = error.rdkafka_error_code()?;
    CURES.iter().find(|(unfit, _)| *unfit == code).map(|(_, what)| *what)
}

impl std::fmt::Debug for Ready {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ready")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topic_that_must_not_be_written_to_is_read_from_the_log_line() {
        let line = "[thrd:TxnCoordinator]: localhost:9092/1: Failed to add partition \"tool.audit\" [3] to transaction: Broker: Topic authorization failed";
        assert_eq!(denied("ADDPARTS", line), Some("tool.audit"));
        assert_eq!(denied("FAIL", line), None);
        assert_eq!(
            denied("ADDPARTS", "Failed to add partition \"tool.audit\" [3] to transaction: Operation not attempted"),
            None
        );
    }
}
