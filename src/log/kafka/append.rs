//! Writing to an input beside a worker, as dispatchers and connectors do: `toolgate send`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rdkafka::client::{ClientContext, OAuthToken};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};

use super::connect;
use super::convert;
use super::deadline::Deadline;
use super::group::Plain;
use super::hello;
use super::options::KafkaOptions;
use super::rights;
use crate::log::api::place;
use crate::log::error::LogError;
use crate::log::record::{Outgoing, Topic};

/// How long brokers may take to acknowledge a batch; the client repeats itself meanwhile.
const PATIENCE: Duration = Duration::from_secs(30);
/// The client gives up a little earlier, so that a failure has its own reason.
const GIVES_UP_AFTER_MS: &str = "25000";

/// What brokers said to the records.
#[derive(Debug, Default)]
struct Receipts {
    plain: Plain,
    acknowledged: AtomicUsize,
    failed: Mutex<Option<KafkaError>>,
}

impl ClientContext for Receipts {
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

impl ProducerContext for Receipts {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, _: ()) {
        match result {
            Ok(_) => drop(self.acknowledged.fetch_add(1, Ordering::Relaxed)),
            Err((error, _)) => {
                self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| error.clone());
            }
        }
    }
}

/// A producer for one topic, without transactions: each record is there once all in-sync replicas have it.
pub struct Appender {
    producer: BaseProducer<Receipts>,
    options: KafkaOptions,
    topic: Topic,
    partitions: i32,
}

impl std::fmt::Debug for Appender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Appender").field("topic", &self.topic).finish()
    }
}

impl Appender {
    /// Connects and asks how many partitions the topic has.
    ///
    /// # Errors
    /// No broker, wrong credentials, no such topic, no right to see it.
    pub fn connect(options: KafkaOptions, topic: Topic) -> Result<Appender, LogError> {
        let client = hello::greet(&options)?;
        let partitions = connect::partitions_of(&options, &client, topic);
        let partitions = partitions.map_err(|error| forbidden(&options, topic, error))?;
        let receipts = Receipts { plain: connect::context(&options), ..Receipts::default() };
        let producer = options
            .client()?
            .set("enable.idempotence", "true")
            .set("acks", "all")
            .set("linger.ms", "1")
            .set("message.timeout.ms", GIVES_UP_AFTER_MS)
            .create_with_context(receipts)
            .map_err(|source| LogError::Kafka { what: "making the producer", source })?;
        Ok(Appender { producer, options, topic, partitions })
    }

    /// How many records brokers have acknowledged so far, also of an [`append`](Self::append) that failed.
    #[must_use]
    pub fn acknowledged(&self) -> usize {
        self.producer.context().acknowledged.load(Ordering::Relaxed)
    }

    /// Writes the records in this order, each to its partition, and waits until all are acknowledged.
    ///
    /// # Errors
    /// A record that cannot be written, a right that is missing, brokers that do not answer. Some of the records may then
    /// exist, more even than were acknowledged.
    pub fn append(&mut self, records: &[Outgoing]) -> Result<(), LogError> {
        let places: Vec<_> =
            records.iter().map(|record| place(record, self.partitions)).collect::<Result<_, LogError>>()?;
        let deadline = Deadline::after(PATIENCE);
        for (record, partition) in records.iter().zip(places) {
            self.queue(record, partition.0, deadline)?;
        }
        while self.producer.in_flight_count() > 0 && !deadline.has_passed() {
            self.producer.poll(Duration::from_millis(5));
        }
        self.producer.poll(Duration::ZERO);
        let failed = self.producer.context().failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        match failed {
            Some(error) => Err(self.failed(error)),
            None if self.producer.in_flight_count() > 0 => {
                Err(self.failed(KafkaError::MessageProduction(RDKafkaErrorCode::MessageTimedOut)))
            }
            None => Ok(()),
        }
    }

    fn queue(&self, outgoing: &Outgoing, partition: i32, deadline: Deadline) -> Result<(), LogError> {
        let name = self.options.name(outgoing.topic);
        let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(name).partition(partition);
        record.key = outgoing.key.as_deref();
        record.payload = outgoing.value.as_deref();
        record.headers = convert::headers(outgoing);
        loop {
            match self.producer.send(record) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) if !deadline.has_passed() => {
                    record = back;
                    self.producer.poll(Duration::from_millis(5));
                }
                Err((error, _)) => return Err(self.failed(error)),
            }
        }
    }

    fn failed(&self, source: KafkaError) -> LogError {
        let source =
            self.producer.client().fatal_error().map_or(source, |(code, _)| KafkaError::MessageProduction(code));
        forbidden(&self.options, self.topic, LogError::Kafka { what: "writing records", source })
    }
}

/// Whoever sends is not a worker, and needs another right than a worker on the same topic.
fn forbidden(options: &KafkaOptions, topic: Topic, error: LogError) -> LogError {
    rights::needs(options, topic, "WRITE", error)
}
