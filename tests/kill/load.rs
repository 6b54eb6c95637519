//! The load: what is asked, what is answered, and what must come of it.

use crate::worker::PARTITIONS;
use prost::Message;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use toolgate::log::sqlite::{SqliteClient, SqliteLog};
use toolgate::log::{Offset, Outgoing, Partition, Position, Record, Topic};
use toolgate::wire::v1;
use toolgate::worker::clock;

/// What a request must end in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Accepted,
    Refused,
    /// Fails once with a retryable code; the second attempt is accepted.
    Retried,
    /// Nobody answers before its deadline.
    Expired,
}

pub(crate) struct Load {
    client: SqliteClient,
    pub fates: BTreeMap<String, Fate>,
    /// Positions of all responses: each must have one audit record.
    pub responses: BTreeSet<Position>,
    /// Positions of the responses that are not evidence for their request.
    pub quarantined: BTreeSet<Position>,
    reissued: BTreeSet<String>,
    retries_read: BTreeMap<Partition, Offset>,
    results_read: BTreeMap<Partition, Offset>,
    answered: BTreeSet<String>,
    seed: u64,
}

impl Load {
    pub(crate) fn new(path: &Path, seed: u64) -> Load {
        Load {
            client: SqliteLog::open_client(path, Some(PARTITIONS)).unwrap(),
            fates: BTreeMap::new(),
            responses: BTreeSet::new(),
            quarantined: BTreeSet::new(),
            reissued: BTreeSet::new(),
            retries_read: BTreeMap::new(),
            results_read: BTreeMap::new(),
            answered: BTreeSet::new(),
            seed,
        }
    }

    pub(crate) fn random(&mut self, below: usize) -> usize {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        (self.seed % below.max(1) as u64) as usize
    }

    /// Appends requests with their responses: about a tenth each refused, retried and expired, and
    /// beside them duplicates and answers to nobody.
    pub(crate) fn append(&mut self, count: usize) {
        for _ in 0..count {
            let id = format!("req.{:08}", self.fates.len());
            let fate = match self.random(10) {
                0 => Fate::Refused,
                1 => Fate::Retried,
                2 => Fate::Expired,
                _ => Fate::Accepted,
            };
            self.fates.insert(id.clone(), fate);
            self.request(&id, fate, 1);
            match fate {
                Fate::Accepted => self.respond(&id, 1, 200, &good(&id), false),
                Fate::Refused => self.respond(&id, 1, 200, &good(&id).replace("approved", "Approved"), true),
                Fate::Retried => self.respond(&id, 1, 503, "busy", true),
                Fate::Expired => {}
            }
            if self.random(10) == 0 && matches!(fate, Fate::Accepted | Fate::Refused) {
                self.respond(&id, 1, 200, &good(&id), true);
            }
            if self.random(20) == 0 {
                let nobody = format!("req.nobody.{}", self.fates.len());
                self.respond(&nobody, 1, 200, "{}", true);
            }
        }
    }

    /// The dispatcher: answers directives with the next attempt and its good response.
    pub(crate) fn reissue(&mut self) {
        for record in news(&mut self.client, Topic::Retries, &mut self.retries_read) {
            let directive = v1::RetryDirective::decode(record.value.unwrap().as_slice()).unwrap();
            assert!(self.reissued.insert(directive.request_id.clone()), "{} was told twice", directive.request_id);
            assert_eq!(directive.attempt, 2);
            self.request(&directive.request_id, Fate::Retried, 2);
            self.respond(&directive.request_id, 2, 200, &good(&directive.request_id), false);
        }
    }

    fn request(&mut self, id: &str, fate: Fate, attempt: u32) {
        let now = clock::now().unix_millis();
        // What nobody answers expires soon; the others have time for all the kills.
        let deadline = if fate == Fate::Expired { now + 50 } else { now + 3_600_000 };
        let message = v1::ToolRequest {
            request_id: id.into(),
            tool: "review_status".into(),
            arguments: br#"{"change_id":"CR-1"}"#.to_vec(),
            issued_at_unix_ms: now,
            deadline_unix_ms: deadline,
            attempt,
            ..v1::ToolRequest::default()
        };
        self.client.append(vec![outgoing(Topic::Requests, id, message.encode_to_vec())], now).unwrap();
    }

    fn respond(&mut self, id: &str, attempt: u32, status: u32, body: &str, quarantined: bool) {
        let message = v1::ToolResponse {
            request_id: id.into(),
            tool: "review_status".into(),
            attempt,
            body: body.as_bytes().to_vec(),
            content_type: Some("application/json".into()),
            outcome: Some(v1::TransportOutcome { outcome: Some(v1::transport_outcome::Outcome::HttpStatus(status)) }),
            ..v1::ToolResponse::default()
        };
        let record = outgoing(Topic::Responses, id, message.encode_to_vec());
        let position = self.client.append(vec![record], clock::now().unix_millis()).unwrap()[0];
        self.responses.insert(position);
        if quarantined {
            self.quarantined.insert(position);
        }
    }

    /// Requests that have their terminal message so far.
    pub(crate) fn settled(&mut self) -> usize {
        for record in news(&mut self.client, Topic::Results, &mut self.results_read) {
            let id = String::from_utf8(record.key.unwrap()).unwrap();
            assert!(self.answered.insert(id.clone()), "{id} was answered twice");
        }
        self.answered.len()
    }

    pub(crate) fn is_done(&mut self) -> bool {
        self.settled() == self.fates.len()
    }

    pub(crate) fn missing(&self) -> String {
        let missing: Vec<_> = self.fates.iter().filter(|(id, _)| !self.answered.contains(*id)).take(5).collect();
        format!("{} of {} are answered; not {missing:?}", self.answered.len(), self.fates.len())
    }
}

fn good(id: &str) -> String {
    format!(
        r#"{{"tool":"review_status","request_id":"{id}","outcome":"success","data":{{"change_id":"CR-1","decision":"approved","reviewed_by":"m.osei"}}}}"#
    )
}

fn outgoing(topic: Topic, key: &str, value: Vec<u8>) -> Outgoing {
    Outgoing { topic, partition: None, key: Some(key.as_bytes().to_vec()), value: Some(value), headers: Vec::new() }
}

/// Everything of a topic beyond what was read before.
pub(crate) fn news(client: &mut SqliteClient, topic: Topic, read: &mut BTreeMap<Partition, Offset>) -> Vec<Record> {
    let mut all = Vec::new();
    for partition in (0..PARTITIONS).map(Partition) {
        let from = read.entry(partition).or_insert(Offset(0));
        loop {
            let records = client.read(topic, partition, *from, 1000).unwrap();
            let Some(last) = records.last() else { break };
            *from = last.position.offset.next();
            all.extend(records);
        }
    }
    all
}
