//! A changelog with everything in it that a changelog can have, and the state that it amounts to.

use std::collections::BTreeMap;
use std::time::Duration;

use prost::Message;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use toolgate::gate::decode::NewRequest;
use toolgate::log::partitioner::partition_of;
use toolgate::request::Binding;
use toolgate::wire::v1;
use toolgate::wire::v1::transport_outcome::Outcome;

use crate::support::Cluster;

pub(crate) const PARTITIONS: i32 = 6;
/// The partition in which transactions are left open.
pub(crate) const HELD: i32 = 5;
pub(crate) const CHANGELOG: &str = "toolgate.g.bindings";
const TOOL: &str = "review_status";
const WAIT: Duration = Duration::from_secs(60);

/// What the changelog tells of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Story {
    Announced,
    /// Announced, and again as a second attempt.
    Reissued,
    Forgotten,
    /// Forgotten, and announced once more under the same id with other arguments.
    Anew,
    /// An aborted transaction would have forgotten it.
    NotForgotten,
    /// It is in an aborted transaction alone.
    NeverWas,
    /// A transaction that is open while workers rebuild would forget it; it is aborted later.
    NotForgottenLate,
    /// The second attempt is in a transaction that is open while workers rebuild, and committed later.
    ReissuedLate,
}

pub(crate) fn story(number: usize) -> Story {
    let is_held = partition_of(id(number).as_bytes(), PARTITIONS).0 == HELD;
    match number % 100 {
        0..20 => Story::Reissued,
        20 => Story::Forgotten,
        21 => Story::NeverWas,
        22..30 => Story::Anew,
        30..40 => Story::NotForgotten,
        40..60 if is_held => Story::NotForgottenLate,
        60..80 if is_held => Story::ReissuedLate,
        _ => Story::Announced,
    }
}

pub(crate) fn id(number: usize) -> String {
    format!("request.{number:08}")
}

/// The transactions that were left open by former owners.
pub(crate) struct Held {
    aborting: BaseProducer,
    committing: BaseProducer,
}

impl Held {
    pub(crate) fn end(self) {
        self.aborting.abort_transaction(WAIT).expect("it aborts");
        self.committing.commit_transaction(WAIT).expect("it commits");
    }
}

/// A number of requests and the moment at which they were announced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct History {
    pub(crate) count: usize,
    issued_ms: i64,
}

impl History {
    pub(crate) fn new(count: usize) -> History {
        History { count, issued_ms: toolgate::worker::clock::now().unix_millis() }
    }

    /// The record of a request after its attempt of this number.
    fn binding(&self, number: usize, attempt: u32, change: &str) -> Binding {
        let arguments = format!("{{\"change_id\":\"{change}\"}}").into_bytes();
        let request = v1::ToolRequest {
            request_id: id(number),
            tool: TOOL.into(),
            arguments: arguments.clone(),
            issued_at_unix_ms: self.issued_ms + i64::from(attempt),
            deadline_unix_ms: self.issued_ms + 6 * 3_600_000,
            attempt,
            ..v1::ToolRequest::default()
        };
        let request = NewRequest::from_message(request).expect("a sound request");
        Binding { attempts: attempt, ..Binding::of(&request, 1, arguments) }
    }

    /// What must be known of a request in the end.
    pub(crate) fn model(&self, number: usize) -> Option<Binding> {
        let change = change(number);
        match story(number) {
            Story::Forgotten | Story::NeverWas => None,
            Story::Reissued | Story::ReissuedLate => Some(self.binding(number, 2, &change)),
            Story::Announced | Story::Anew | Story::NotForgotten | Story::NotForgottenLate => {
                Some(self.binding(number, 1, &change))
            }
        }
    }

    /// How many requests each partition has in the end.
    pub(crate) fn live(&self) -> BTreeMap<i32, usize> {
        let mut live = BTreeMap::new();
        for number in (0..self.count).filter(|number| !matches!(story(*number), Story::Forgotten | Story::NeverWas)) {
            *live.entry(partition_of(id(number).as_bytes(), PARTITIONS).0).or_default() += 1;
        }
        live
    }

    /// Writes the changelog; what is returned holds the two open transactions.
    pub(crate) fn write(&self, cluster: &Cluster) -> Held {
        let producer = cluster.producer();
        let first = |number: usize| match story(number) {
            Story::NeverWas => None,
            Story::Anew | Story::Forgotten => Some(Some(self.binding(number, 1, "CR-of-old"))),
            Story::Announced
            | Story::Reissued
            | Story::NotForgotten
            | Story::NotForgottenLate
            | Story::ReissuedLate => Some(Some(self.binding(number, 1, &change(number)))),
        };
        self.put_all(&producer, first);
        let aborted = transactional(cluster, "former.1");
        self.put_all(&aborted, |number| match story(number) {
            Story::NotForgotten => Some(None),
            Story::NeverWas => Some(Some(self.binding(number, 1, &change(number)))),
            Story::Announced
            | Story::Reissued
            | Story::Forgotten
            | Story::Anew
            | Story::NotForgottenLate
            | Story::ReissuedLate => None,
        });
        aborted.abort_transaction(WAIT).expect("it aborts");
        self.put_all(&producer, |number| matches!(story(number), Story::Forgotten | Story::Anew).then_some(None));
        self.put_all(&producer, |number| {
            matches!(story(number), Story::Reissued | Story::Anew).then(|| self.model(number))
        });
        let (aborting, committing) = (transactional(cluster, "former.2"), transactional(cluster, "former.3"));
        self.put_all(&aborting, |number| (story(number) == Story::NotForgottenLate).then_some(None));
        self.put_all(&committing, |number| (story(number) == Story::ReissuedLate).then(|| self.model(number)));
        Held { aborting, committing }
    }

    /// Writes what `of` says of each request; an inner `None` is a tombstone.
    fn put_all(&self, producer: &BaseProducer, of: impl Fn(usize) -> Option<Option<Binding>>) {
        for (number, binding) in (0..self.count).filter_map(|number| Some((number, of(number)?))) {
            let value = binding.map(|binding| binding.to_message().encode_to_vec());
            put(producer, CHANGELOG, &id(number), value.as_deref());
        }
        producer.flush(WAIT).expect("the records are acknowledged");
    }

    /// Answers a request as it must stand.
    pub(crate) fn respond(&self, producer: &BaseProducer, number: usize) {
        let (id, change) = (id(number), change(number));
        let body = format!(
            "{{\"tool\":\"{TOOL}\",\"request_id\":\"{id}\",\"outcome\":\"success\",\"data\":{{\"change_id\":\"{change}\",\"decision\":\"approved\",\"reviewed_by\":\"m.osei\"}}}}"
        );
        let response = v1::ToolResponse {
            request_id: id.clone(),
            tool: TOOL.into(),
            attempt: self.model(number).map_or(1, |known| known.attempt),
            body: body.into_bytes(),
            content_type: Some("application/json".into()),
            outcome: Some(v1::TransportOutcome { outcome: Some(Outcome::HttpStatus(200)) }),
            received_at_unix_ms: self.issued_ms,
            ..v1::ToolResponse::default()
        };
        put(producer, "tool.responses", &id, Some(&response.encode_to_vec()));
    }
}

fn change(number: usize) -> String {
    format!("CR-{number}")
}

fn transactional(cluster: &Cluster, id: &str) -> BaseProducer {
    let mut config = cluster.client();
    // Longer than everything that happens while it is open.
    config.set("transactional.id", id).set("transaction.timeout.ms", "600000").set("linger.ms", "1");
    let producer: BaseProducer = config.create().expect("a producer");
    producer.init_transactions(WAIT).expect("it begins");
    producer.begin_transaction().expect("it begins");
    producer
}

fn put(producer: &BaseProducer, topic: &str, key: &str, value: Option<&[u8]>) {
    let partition = partition_of(key.as_bytes(), PARTITIONS).0;
    let mut record: BaseRecord<'_, str, [u8]> = BaseRecord::to(topic).partition(partition).key(key);
    record.payload = value;
    while let Err((error, back)) = producer.send(record) {
        assert!(matches!(error, KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull)), "{error}");
        record = back;
        producer.poll(Duration::from_millis(10));
    }
}
