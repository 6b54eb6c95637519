//! Single requests and responses, to be spoilt in single ways.

use std::time::Duration;

use prost::Message;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Headers;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Message as _, Offset, TopicPartitionList};
use toolgate::log::partitioner::partition_of;
use toolgate::wire::v1;
use toolgate::wire::v1::transport_outcome::Outcome;

use crate::support::{Cluster, until};

fn now_ms() -> i64 {
    toolgate::worker::clock::now().unix_millis()
}

/// A request's id as the envelope of the article allows it: `name` with digits and letters of its own.
pub(crate) fn id(name: &str) -> String {
    format!("request.{}", name.replace(['-', '.'], "_"))
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

/// A record that was read, and all of its bytes.
pub(crate) struct Seen {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    pub(crate) everything: Vec<u8>,
}

impl Seen {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.value).into_owned()
    }

    pub(crate) fn is_success(&self) -> bool {
        self.text().contains("\"outcome\":\"success\"")
    }
}

/// Everything that is committed in the first partition of a topic of ours.
pub(crate) fn read(cluster: &Cluster, topic: &str) -> Vec<Seen> {
    let mut config = cluster.client();
    config.set("group.id", "reader").set("isolation.level", "read_committed").set("enable.partition.eof", "true");
    let consumer: BaseConsumer = config.create().expect("a consumer");
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Beginning).expect("an offset");
    consumer.assign(&list).expect("an assignment");
    let mut all = Vec::new();
    until("the end is reached", Duration::from_secs(30), || match consumer.poll(Duration::from_millis(500)) {
        Some(Ok(message)) => {
            let (key, value) =
                (message.key().unwrap_or_default().to_vec(), message.payload().unwrap_or_default().to_vec());
            let mut everything = [key.as_slice(), &value].concat();
            for header in message.headers().iter().flat_map(|headers| headers.iter()) {
                everything.extend(header.key.as_bytes());
                everything.extend(header.value.unwrap_or_default());
            }
            all.push(Seen { key, value, everything });
            false
        }
        Some(Err(rdkafka::error::KafkaError::PartitionEOF(_))) => true,
        Some(Err(_)) | None => false,
    });
    all
}
