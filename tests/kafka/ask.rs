//! Single requests and responses, to be spoilt in single ways.

use std::time::Duration;

use prost::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use toolgate::log::partitioner::partition_of;
use toolgate::wire::v1;
use toolgate::wire::v1::transport_outcome::Outcome;

fn now_ms() -> i64 {
    toolgate::worker::clock::now().unix_millis()
}

/// Announces a request whose deadline no test waits for.
pub(crate) fn announce(producer: &BaseProducer, partitions: i32, id: &str) {
    let request = v1::ToolRequest {
        request_id: id.into(),
        tool: "review_status".into(),
        arguments: b"{\"change_id\":\"CR-1\"}".to_vec(),
        issued_at_unix_ms: now_ms(),
        deadline_unix_ms: now_ms() + 600_000,
        attempt: 1,
        ..Default::default()
    };
    put(producer, "tool.requests", partitions, id, &request.encode_to_vec());
}

/// A response that is accepted; `more` is text inside its data.
pub(crate) fn response(id: &str, more: &str) -> v1::ToolResponse {
    let body = format!(
        "{{\"tool\":\"review_status\",\"request_id\":\"{id}\",\"outcome\":\"success\",\"data\":{{\"change_id\":\"CR-1\",\"decision\":\"approved\",\"reviewed_by\":\"m.osei\"{more}}}}}"
    );
    v1::ToolResponse {
        request_id: id.into(),
        tool: "review_status".into(),
        attempt: 1,
        body: body.into_bytes(),
        content_type: Some("application/json".into()),
        outcome: Some(v1::TransportOutcome { outcome: Some(Outcome::HttpStatus(200)) }),
        received_at_unix_ms: now_ms(),
        ..Default::default()
    }
}

pub(crate) fn respond(producer: &BaseProducer, partitions: i32, response: &v1::ToolResponse) {
    put(producer, "tool.responses", partitions, &response.request_id, &response.encode_to_vec());
}

/// Writes a record and waits until it is there.
pub(crate) fn put(producer: &BaseProducer, topic: &str, partitions: i32, key: &str, value: &[u8]) {
    let partition = partition_of(key.as_bytes(), partitions).0;
    producer.send(BaseRecord::to(topic).partition(partition).key(key).payload(value)).expect("room in the queue");
    producer.flush(Duration::from_secs(30)).expect("the record is written");
}
