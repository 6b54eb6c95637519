//! What comes of one event: one audit record by construction, and whatever else goes with it.

use crate::contract::Contract;
use crate::gate::{Diagnosis, FailureCode, Reason, Stage};
use crate::log::{Header, Outgoing, Partition, Topic};
use crate::request::Binding;
use crate::time::Timestamp;
use crate::wire::cloudevents::{Event, EventType};
use crate::wire::{Digest, v1};
use prost::Message;
use std::sync::Arc;

/// How an event was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    Accepted,
    /// A well-understood failure of the tool.
    Failed,
    /// Inadmissible.
    Refused,
    /// No evidence before the deadline.
    Expired,
}

impl Outcome {
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Accepted => "accepted",
            Outcome::Failed => "failed",
            Outcome::Refused => "refused",
            Outcome::Expired => "expired",
        }
    }

    const fn to_message(self) -> v1::AuditOutcome {
        match self {
            Outcome::Accepted => v1::AuditOutcome::Accepted,
            Outcome::Failed => v1::AuditOutcome::Failed,
            Outcome::Refused => v1::AuditOutcome::Refused,
            Outcome::Expired => v1::AuditOutcome::Expired,
        }
    }
}

/// The agent's terminal message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentMessage {
    pub key: String,
    pub json: String,
    pub headers: Vec<Header>,
}

/// The settled event. Exactly one [`v1::AuditRecord`]; everything else where it applies.
#[derive(Clone, Debug)]
pub struct Settlement {
    pub outcome: Outcome,
    /// `None` where evidence was accepted, and where a deadline passed.
    pub reason: Option<Reason>,
    pub stage: Stage,
    pub diagnosis: Option<Diagnosis>,
    pub contract: Option<Arc<Contract>>,
    /// Digest of the raw bytes; `None` for a deadline.
    pub digest: Option<Digest>,
    pub agent: Option<AgentMessage>,
    pub quarantine: Option<v1::QuarantineRecord>,
    /// A retry that was scheduled: the attempt, when it is due, and the code that it answers.
    pub scheduled: Option<Scheduled>,
    pub audit: v1::AuditRecord,
}

/// An attempt to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduled {
    pub attempt: u32,
    pub not_before: Timestamp,
    pub code: FailureCode,
}

/// A change of the state, and records that are no decision: they go to the log with the settlements.
#[derive(Debug, Default)]
pub struct Effects {
    pub settlements: Vec<Settlement>,
    pub directives: Vec<v1::RetryDirective>,
    /// New value of a request's record; `None` forgets it.
    pub bindings: Vec<(String, Option<Binding>)>,
    /// Announcements of first attempts, for the counters.
    pub announced: Vec<(Box<str>, u32)>,
    /// Shadow versions that came to another decision than the one that was published.
    pub disagreements: Vec<(Arc<Contract>, String)>,
}

impl Effects {
    pub fn is_empty(&self) -> bool {
        self.settlements.is_empty() && self.directives.is_empty() && self.bindings.is_empty()
    }

    /// All records of one partition's effects, in an order in which the changelog comes last.
    pub fn records(&self, partition: Partition, record_bytes_max: usize) -> Vec<Outgoing> {
        let mut records = Vec::with_capacity(self.settlements.len() * 3 + self.bindings.len());
        for settlement in &self.settlements {
            settlement.records(record_bytes_max, &mut records);
        }
        let directive =
            |directive: &v1::RetryDirective| keyed(Topic::Retries, &directive.request_id, directive.encode_to_vec());
        records.extend(self.directives.iter().map(directive));
        records.extend(self.latest_bindings().map(|(id, binding)| Outgoing {
            topic: Topic::Bindings,
            partition: Some(partition),
            key: Some(id.as_bytes().to_vec()),
            value: binding.as_ref().map(|binding| binding.to_message().encode_to_vec()),
            headers: Vec::new(),
        }));
        records
    }

    /// A request that changed twice in a batch is written once.
    fn latest_bindings(&self) -> impl Iterator<Item = &(String, Option<Binding>)> {
        let latest: std::collections::HashMap<&str, usize> =
            self.bindings.iter().enumerate().map(|(at, (id, _))| (id.as_str(), at)).collect();
        self.bindings
            .iter()
            .enumerate()
            .filter(move |(at, (id, _))| latest.get(id.as_str()) == Some(at))
            .map(|(_, entry)| entry)
    }
}

impl Settlement {
    fn records(&self, record_bytes_max: usize, records: &mut Vec<Outgoing>) {
        if let Some(agent) = &self.agent {
            let value = agent.json.clone().into_bytes();
            records.push(Outgoing { headers: agent.headers.clone(), ..keyed(Topic::Results, &agent.key, value) });
        }
        if let Some(quarantine) = &self.quarantine {
            let value = within(quarantine, record_bytes_max);
            let headers = dead_letter_headers(quarantine);
            records.push(Outgoing { headers, ..keyed(Topic::Quarantine, &quarantine.request_id, value) });
        }
        records.push(keyed(Topic::Audit, &self.audit.request_id, self.audit.encode_to_vec()));
    }
}

fn keyed(topic: Topic, key: &str, value: Vec<u8>) -> Outgoing {
    let key = (!key.is_empty()).then(|| key.as_bytes().to_vec());
    Outgoing { topic, partition: None, key, value: Some(value), headers: Vec::new() }
}

/// Room for key, headers and the log's own bytes around a quarantine record.
const RECORD_OVERHEAD: usize = 4096;

/// The record as bytes; without its payload where it would outgrow the log's limit, since digest
/// and source position still lead to the bytes.
fn within(quarantine: &v1::QuarantineRecord, record_bytes_max: usize) -> Vec<u8> {
    if quarantine.encoded_len() + RECORD_OVERHEAD <= record_bytes_max {
        return quarantine.encode_to_vec();
    }
    let reason = v1::OmittedReason::TooLarge.into();
    let payload = v1::quarantine_record::Payload::Omitted(v1::OmittedPayload { reason });
    v1::QuarantineRecord { payload: Some(payload), ..quarantine.clone() }.encode_to_vec()
}

/// Dead-letter headers in the manner of Kafka Streams (KIP-1034), with the code and the schema
/// path where others put exception text.
fn dead_letter_headers(quarantine: &v1::QuarantineRecord) -> Vec<Header> {
    let source = quarantine.source.clone().unwrap_or_default();
    let message = quarantine.diagnosis.as_ref().map(|d| d.schema_path.clone()).unwrap_or_default();
    [
        ("__streams.errors.exception", quarantine.reason.clone()),
        ("__streams.errors.message", message),
        ("__streams.errors.topic", source.topic),
        ("__streams.errors.partition", source.partition.to_string()),
        ("__streams.errors.offset", source.offset.to_string()),
    ]
    .into_iter()
    .map(|(name, value)| header(name, value))
    .collect()
}

fn header(name: &str, value: impl Into<Vec<u8>>) -> Header {
    Header { name: name.into(), value: Some(value.into()) }
}

/// Headers of an agent's message: CloudEvents in binary mode, the trace, and what a consumer needs
/// to be idempotent. All of it is ours.
pub(super) fn agent_headers(
    known: &Binding,
    json: &str,
    decision: (&str, EventType, Timestamp),
    contract: Option<&Contract>,
    group: &str,
) -> Vec<Header> {
    let (id, kind, time) = decision;
    let source = format!("/toolgate/{group}");
    let label = contract.map(|contract| contract.label.as_ref());
    let event = Event {
        kind,
        id,
        source: &source,
        subject: &known.request_id,
        time,
        contract: label,
        content_type: "application/json",
    };
    let mut headers: Vec<Header> = event.headers().into_iter().map(|(name, value)| header(name, value)).collect();
    headers.extend(known.traceparent.as_deref().map(|trace| header("traceparent", trace)));
    headers.push(header("attempt", known.attempt.to_string()));
    headers.push(header("result-digest", Digest::of(json.as_bytes()).to_string()));
    let free_text = contract.map(|contract| contract.untrusted_text.join(",")).unwrap_or_default();
    if kind == EventType::ResultAccepted && !free_text.is_empty() {
        headers.push(header("untrusted-text", free_text));
    }
    headers
}

pub(super) fn audit_outcome(outcome: Outcome) -> i32 {
    outcome.to_message().into()
}
