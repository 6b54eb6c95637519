//! Requests, their responses of 1 KiB, and bindings; and clients to write them with.

use std::time::Duration;

use prost::Message;
use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use toolgate::gate::decode::NewRequest;
use toolgate::log::Topic;
use toolgate::log::partitioner::partition_of;
use toolgate::request::Binding;
use toolgate::time::Timestamp;
use toolgate::wire::v1;

use crate::loopback::Loopback;

pub const PARTITIONS: i32 = 4;
const TOOL: &str = "ci.job_status";
const ARGUMENTS: &[u8] = br#"{"project_id":"bluebird"}"#;
const BODY_BYTES: usize = 1024;
const WAIT: Duration = Duration::from_secs(120);

/// The moment at which everything is judged, so that nothing is stale or expires.
pub fn now() -> Timestamp {
    Timestamp::parse_rfc3339("2026-12-01T05:04:00Z").expect("a moment")
}

/// The names of a group's topics: inputs under a prefix of their own, so that many groups read the same ones.
pub fn topics(inputs: &str, group: &str) -> [String; 7] {
    Topic::ALL.map(|topic| {
        let prefix = if Topic::INPUTS.contains(&topic) { inputs } else { group };
        format!("{prefix}.{}", topic.name())
    })
}

pub fn id(number: usize) -> String {
    format!("req_01JB8W3F6ZK5{number:014}")
}

/// The number in an id.
pub fn number(id: &[u8]) -> Option<usize> {
    std::str::from_utf8(id).ok()?.strip_prefix("req_01JB8W3F6ZK5")?.parse().ok()
}

fn request(number: usize) -> v1::ToolRequest {
    v1::ToolRequest {
        request_id: id(number),
        tool: TOOL.into(),
        arguments: ARGUMENTS.to_vec(),
        issued_at_unix_ms: now().unix_millis() - 1000,
        deadline_unix_ms: now().unix_millis() + 60_000,
        attempt: 1,
        route: Some(v1::Route {
            agent: "support-agent".into(),
            session: format!("s-{number:08}"),
            reply_key: String::new(),
        }),
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into(),
        ..v1::ToolRequest::default()
    }
}

/// A response whose body has exactly 1 KiB, most of it nothing that an agent will see.
fn response(number: usize) -> Vec<u8> {
    let body = |log: &str| {
        format!(
            r#"{{"api_version":2,"project":{{"slug":"bluebird"}},"run":{{"id":"run_7Kd29QmXv4Lp","status":"failed","log":"{log}"}},"observed_at":"2026-12-01T05:03:11Z"}}"#
        )
    };
    let padding = "x".repeat(BODY_BYTES - body("").len());
    let response = v1::ToolResponse {
        request_id: id(number),
        tool: TOOL.into(),
        attempt: 1,
        body: body(&padding).into_bytes(),
        content_type: Some("application/json".into()),
        outcome: Some(v1::TransportOutcome { outcome: Some(v1::transport_outcome::Outcome::HttpStatus(200)) }),
        ..v1::ToolResponse::default()
    };
    response.encode_to_vec()
}

/// The record that a worker keeps for a request.
pub fn binding(number: usize) -> Binding {
    let request = NewRequest::from_message(request(number)).expect("a sound request");
    Binding::of(&request, 1, ARGUMENTS.to_vec())
}

/// A client of a broker on this machine.
pub fn client(servers: &Loopback) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", servers.as_str());
    config
}

/// A producer as plain as they come, with the guarantees that a worker's has short of transactions.
pub fn producer(servers: &Loopback) -> BaseProducer {
    producer_config(servers).create().expect("a producer")
}

pub fn producer_config(servers: &Loopback) -> ClientConfig {
    let mut config = client(servers);
    config.set("linger.ms", "1").set("acks", "all").set("enable.idempotence", "true");
    config.set("queue.buffering.max.messages", "200000").set("queue.buffering.max.kbytes", "1048576");
    config
}

/// Writes one record; `opaque` comes back with its delivery.
pub fn put<C: ProducerContext>(
    producer: &BaseProducer<C>,
    topic: &str,
    key: &[u8],
    value: &[u8],
    opaque: C::DeliveryOpaque,
) {
    let partition = partition_of(key, PARTITIONS).0;
    let mut record = BaseRecord::with_opaque_to(topic, opaque).partition(partition).key(key).payload(value);
    while let Err((error, back)) = producer.send(record) {
        assert!(matches!(error, KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull)), "{error}");
        record = back;
        producer.poll(Duration::from_millis(5));
    }
}

pub fn announce<C: ProducerContext>(
    producer: &BaseProducer<C>,
    inputs: &str,
    number: usize,
    opaque: C::DeliveryOpaque,
) {
    let topic = format!("{inputs}.{}", Topic::Requests.name());
    put(producer, &topic, id(number).as_bytes(), &request(number).encode_to_vec(), opaque);
}

pub fn respond(producer: &BaseProducer, inputs: &str, number: usize) {
    let topic = format!("{inputs}.{}", Topic::Responses.name());
    put(producer, &topic, id(number).as_bytes(), &response(number), ());
}

/// Requests and responses, all of them before anybody reads.
pub fn fill(servers: &Loopback, inputs: &str, count: usize) {
    let producer = producer(servers);
    (0..count).for_each(|number| announce(&producer, inputs, number, ()));
    producer.flush(WAIT).expect("the requests are acknowledged");
    (0..count).for_each(|number| respond(&producer, inputs, number));
    producer.flush(WAIT).expect("the responses are acknowledged");
}

/// Outstanding requests as they are in a changelog.
pub fn fill_changelog(servers: &Loopback, topic: &str, count: usize) {
    let producer = producer(servers);
    for number in 0..count {
        put(&producer, topic, id(number).as_bytes(), &binding(number).to_message().encode_to_vec(), ());
    }
    producer.flush(WAIT).expect("the bindings are acknowledged");
}
