//! Requests and responses of every fate, and what must come of each.

use std::collections::BTreeMap;
use std::path::Path;

use prost::Message;
use toolgate::log::sqlite::{SqliteClient, SqliteLog};
use toolgate::log::{Offset, Outgoing, Partition, Position, Record, Topic};
use toolgate::wire::v1;
use toolgate::worker::clock;

use super::PARTITIONS;

/// A small generator: the fates are the same in every run, the moments of the kills are not.
pub(crate) struct Dice(pub u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

/// How a request ends: the agent's code, empty for a result.
pub(crate) type Code = &'static str;

pub(crate) struct Load {
    pub client: SqliteClient,
    dice: Dice,
    /// Terminal message by request.
    pub requests: BTreeMap<String, Code>,
    /// Reason by response, empty for an accepted one.
    pub responses: BTreeMap<Position, &'static str>,
    /// Requests that are to be asked again, once each.
    pub retried: Vec<String>,
    next_directive: BTreeMap<Partition, Offset>,
    counter: usize,
}

const MINUTE: i64 = 60_000;

impl Load {
    pub(crate) fn new(path: &Path) -> Load {
        let client = SqliteLog::open_client(path, None).expect("the log opens for a client");
        let (requests, responses, retried, next_directive) = Default::default();
        Load { client, dice: Dice(1), requests, responses, retried, next_directive, counter: 0 }
    }

    /// Appends this many requests, each with the responses that its fate has.
    pub(crate) fn append(&mut self, requests: usize) {
        for _ in 0..requests {
            self.append_one();
        }
    }

    fn append_one(&mut self) {
        self.counter += 1;
        let id = format!("req-{}", self.counter);
        let good = (response(&id, 1, "good"), "");
        match self.dice.roll(40) {
            0 | 1 => {
                self.write(&id, "INVALID_RESPONSE", 10 * MINUTE, vec![(response(&id, 1, "prose"), "INVALID_JSON")])
            }
            2 => self.write(&id, "NOT_FOUND", 10 * MINUTE, vec![(response(&id, 1, "missing"), "UPSTREAM_ERROR")]),
            3 => self.write(&id, "", 10 * MINUTE, vec![good.clone(), (good.0, "DUPLICATE_RESPONSE")]),
            4 => self.write(&id, "EXPIRED", -1, vec![(good.0, "LATE_RESPONSE")]),
            5 => self.write(&id, "EXPIRED", 50, vec![]),
            6 => {
                self.retried.push(id.clone());
                self.write(&id, "", 10 * MINUTE, vec![(response(&id, 1, "down"), "UPSTREAM_ERROR")]);
            }
            7 => self.write(&id, "", 10 * MINUTE, vec![(response(&id, 2, "good"), "UNKNOWN_REQUEST"), good]),
            8 => self.write_overtaken(&id, good.0),
            9 => self.add(vec![keyed(Topic::Responses, &id, good.0.encode_to_vec())], &["UNKNOWN_REQUEST"]),
            10 => self.add(vec![keyed(Topic::Responses, &id, vec![0xff; 9])], &["UNDECODABLE_EVENT"]),
            _ => self.write(&id, "", 10 * MINUTE, vec![good]),
        }
    }

    /// A request and then its responses, as a dispatcher writes them.
    fn write(&mut self, id: &str, code: Code, patience_ms: i64, responses: Vec<(v1::ToolResponse, &'static str)>) {
        self.requests.insert(id.to_owned(), code);
        self.add(vec![keyed(Topic::Requests, id, request(id, 1, patience_ms).encode_to_vec())], &[]);
        let (responses, reasons): (Vec<_>, Vec<_>) = responses.into_iter().unzip();
        let record = |response: &v1::ToolResponse| keyed(Topic::Responses, id, response.encode_to_vec());
        self.add(responses.iter().map(record).collect(), &reasons);
    }

    /// A response that can be read while its request is still behind all the others.
    fn write_overtaken(&mut self, id: &str, response: v1::ToolResponse) {
        self.requests.insert(id.to_owned(), "");
        let mut records = vec![keyed(Topic::Responses, id, response.encode_to_vec())];
        for _ in 0..12 {
            self.counter += 1;
            let other = format!("req-{}", self.counter);
            records.push(keyed(Topic::Requests, &other, request(&other, 1, 50).encode_to_vec()));
            self.requests.insert(other, "EXPIRED");
        }
        records.push(keyed(Topic::Requests, id, request(id, 1, 10 * MINUTE).encode_to_vec()));
        self.add(records, &[""]);
    }

    /// Appends together; `reasons` are those of the responses among the records.
    fn add(&mut self, records: Vec<Outgoing>, reasons: &[&'static str]) {
        if records.is_empty() {
            return;
        }
        let now_ms = clock::now().unix_millis();
        let positions = self.client.append(records, now_ms).expect("the log takes them");
        let responses = positions.into_iter().filter(|position| position.topic == Topic::Responses);
        self.responses.extend(responses.zip(reasons.iter().copied()));
    }

    /// Does what retry directives ask for; returns how many there were.
    pub(crate) fn dispatch(&mut self) -> usize {
        let mut directives = 0;
        for partition in (0..PARTITIONS).map(Partition) {
            let from = self.next_directive.get(&partition).copied().unwrap_or(Offset(0));
            for record in self.client.read(Topic::Retries, partition, from, usize::MAX).expect("reads") {
                self.next_directive.insert(partition, record.position.offset.next());
                let directive: v1::RetryDirective = decode(&record);
                let id = directive.request_id;
                let request = request(&id, directive.attempt, 10 * MINUTE).encode_to_vec();
                self.add(vec![keyed(Topic::Requests, &id, request)], &[]);
                let response = response(&id, directive.attempt, "good").encode_to_vec();
                self.add(vec![keyed(Topic::Responses, &id, response)], &[""]);
                directives += 1;
            }
        }
        directives
    }

    /// Every record of a topic.
    pub(crate) fn all(&mut self, topic: Topic) -> Vec<Record> {
        let read = |partition| self.client.read(topic, Partition(partition), Offset(0), usize::MAX).expect("reads");
        (0..PARTITIONS).flat_map(read).collect()
    }

    /// How many terminal messages there are.
    pub(crate) fn results(&mut self) -> usize {
        let end = |partition| self.client.end_offset(Topic::Results, Partition(partition)).expect("reads").0;
        (0..PARTITIONS).map(end).sum::<i64>() as usize
    }

    /// Whether the worker has read everything, and every request is answered.
    pub(crate) fn is_done(&mut self) -> bool {
        let is_read = |partition| {
            [Topic::Requests, Topic::Responses].into_iter().all(|topic| {
                let end = self.client.end_offset(topic, partition).expect("reads");
                self.client.committed(topic, partition).expect("reads").unwrap_or(Offset(0)) == end
            })
        };
        (0..PARTITIONS).map(Partition).all(is_read) && self.results() >= self.requests.len()
    }
}

pub(crate) fn decode<M: Message + Default>(record: &Record) -> M {
    M::decode(record.value.as_deref().expect("a value")).expect("a record of ours")
}

fn keyed(topic: Topic, key: &str, value: Vec<u8>) -> Outgoing {
    Outgoing { topic, partition: None, key: Some(key.into()), value: Some(value), headers: Vec::new() }
}

fn request(id: &str, attempt: u32, patience_ms: i64) -> v1::ToolRequest {
    let now_ms = clock::now().unix_millis();
    v1::ToolRequest {
        request_id: id.into(),
        tool: "ci.job_status".into(),
        arguments: br#"{"project_id":"bluebird"}"#.to_vec(),
        issued_at_unix_ms: now_ms - 1000,
        deadline_unix_ms: now_ms + patience_ms,
        attempt,
        ..v1::ToolRequest::default()
    }
}

fn response(id: &str, attempt: u32, body: &str) -> v1::ToolResponse {
    let (body, status) = match body {
        "prose" => ("the run has passed".to_owned(), 200),
        "missing" => ("{}".to_owned(), 404),
        "down" => (String::new(), 503),
        _ => (
            format!(
                r#"{{"api_version":2,"project":{{"slug":"bluebird"}},"run":{{"id":"run_7Kd29QmXv4Lp","status":"failed"}},"observed_at":"{}"}}"#,
                clock::now()
            ),
            200,
        ),
    };
    v1::ToolResponse {
        request_id: id.into(),
        tool: "ci.job_status".into(),
        attempt,
        body: body.into_bytes(),
        content_type: Some("application/json".into()),
        outcome: Some(v1::TransportOutcome { outcome: Some(v1::transport_outcome::Outcome::HttpStatus(status)) }),
        ..v1::ToolResponse::default()
    }
}
