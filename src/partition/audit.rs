//! The records that every decision leaves: one for the audit, and the raw material for people.

use super::settlement::{Outcome, Settlement, audit_outcome};
use super::{AgentMessage, Around, FALLBACK_POLICY, respond};
use crate::contract::{Contract, Payload};
use crate::gate::decode::{DecodeError, NewRequest, RawResponse};
use crate::gate::{Diagnosis, FailureCode, Reason, Stage};
use crate::log::Record;
use crate::request::{Binding, State};
use crate::time::Timestamp;
use crate::wire::{Digest, v1};
use std::sync::Arc;

/// A response that was judged, with everything that its records tell.
pub(super) struct Judged<'a> {
    pub record: &'a Record,
    pub response: &'a RawResponse,
    pub known: Option<&'a Binding>,
    pub contract: Option<Arc<Contract>>,
    pub around: &'a Around,
    pub now: Timestamp,
}

impl Judged<'_> {
    /// The same record always gets the same id, on whichever worker and after whatever restart.
    pub(super) fn decision_id(&self) -> String {
        decision_id(&["response", &self.around.responses_topic, &position_text(self.record)])
    }

    pub(super) fn settlement(
        &self,
        outcome: Outcome,
        reason: Option<Reason>,
        stage: Stage,
        diagnosis: Option<Diagnosis>,
        agent: Option<AgentMessage>,
        code: Option<FailureCode>,
    ) -> Settlement {
        let (response, digest) = (self.response, self.response.body().digest());
        let id = self.decision_id();
        let contract = self.contract.as_deref();
        let quarantined = outcome != Outcome::Accepted;
        let source = source(self.record, &self.around.responses_topic);
        let code_text = code.as_ref().map(|code| code.as_str().to_owned()).unwrap_or_default();
        let audit = v1::AuditRecord {
            decision_id: id.clone(),
            request_id: response.request_id().to_owned(),
            tool: response.tool().to_owned(),
            outcome: audit_outcome(outcome),
            reason: reason.map(|reason| reason.code().to_owned()).unwrap_or_default(),
            stage: stage.name().to_owned(),
            contract_version: contract.map_or(0, |contract| contract.version),
            contract_sha256: contract.map(|contract| contract.digest.to_vec()).unwrap_or_default(),
            attempt: response.attempt(),
            source: Some(source.clone()),
            raw_sha256: digest.to_vec(),
            raw_bytes: response.body().len() as u64,
            result_sha256: agent.as_ref().map(|agent| Digest::of(agent.json.as_bytes()).to_vec()).unwrap_or_default(),
            now_unix_ms: self.now.unix_millis(),
            subject: v1::AuditSubject::Response.into(),
            request: self.known.map(Binding::to_message),
            failure_code: code_text.clone(),
            quarantine_id: if quarantined { quarantine_id(&id) } else { String::new() },
            worker: self.around.worker.clone(),
            connector: response.connector().to_owned(),
            connector_version: response.connector_version().to_owned(),
            endpoint: response.endpoint().to_owned(),
            upstream: response.transport().to_message(),
            ..v1::AuditRecord::default()
        };
        let quarantine = match reason {
            Some(reason) if quarantined => {
                Some(self.quarantine(reason, stage, diagnosis.as_ref(), &id, source, code_text))
            }
            Some(_) | None => None,
        };
        Settlement {
            outcome,
            reason,
            stage,
            diagnosis,
            contract: self.contract.clone(),
            digest: Some(digest),
            agent,
            quarantine,
            scheduled: None,
            audit,
        }
    }

    fn quarantine(
        &self,
        reason: Reason,
        stage: Stage,
        diagnosis: Option<&Diagnosis>,
        decision_id: &str,
        source: v1::SourcePosition,
        failure_code: String,
    ) -> v1::QuarantineRecord {
        let response = self.response;
        let contract = self.contract.as_deref();
        let policy = contract.map_or(&FALLBACK_POLICY, |contract| &contract.policy);
        v1::QuarantineRecord {
            request_id: response.request_id().to_owned(),
            tool: response.tool().to_owned(),
            sha256: response.body().digest().to_vec(),
            contract_version: contract.map_or(0, |contract| contract.version),
            contract_sha256: contract.map(|contract| contract.digest.to_vec()).unwrap_or_default(),
            attempt: response.attempt(),
            payload: Some(payload(policy.payload, response.body().expose())),
            scope: v1::PayloadScope::Body.into(),
            payload_bytes: response.body().len() as u64,
            content_type: response.content_type().map(str::to_owned),
            headers: response.headers().to_messages(),
            upstream: response.transport().to_message(),
            endpoint: response.endpoint().to_owned(),
            connector: response.connector().to_owned(),
            connector_version: response.connector_version().to_owned(),
            received_at_unix_ms: response.received_at().map_or(0, Timestamp::unix_millis),
            failure_code,
            retry: self.known.map(|known| v1::RetryMetadata {
                attempts: known.attempts,
                attempts_max: policy.retry.as_ref().map_or(1, |retry| retry.attempts_max),
                next_due_unix_ms: 0,
            }),
            expires_at_unix_ms: self.now.saturating_add_millis(policy.quarantine_retention_ms).unix_millis(),
            traceparent: self.known.and_then(|known| known.traceparent.as_deref()).unwrap_or_default().to_owned(),
            ..base(self.record, reason, stage, diagnosis, decision_id, source, self.now)
        }
    }
}

/// The members that every quarantine record has.
fn base(
    record: &Record,
    reason: Reason,
    stage: Stage,
    diagnosis: Option<&Diagnosis>,
    decision_id: &str,
    source: v1::SourcePosition,
    now: Timestamp,
) -> v1::QuarantineRecord {
    v1::QuarantineRecord {
        id: quarantine_id(decision_id),
        reason: reason.code().to_owned(),
        stage: stage.name().to_owned(),
        diagnosis: diagnosis.map(to_message),
        source: Some(source),
        decided_at_unix_ms: now.unix_millis(),
        source_timestamp_unix_ms: record.timestamp_ms,
        decision_id: decision_id.to_owned(),
        ..v1::QuarantineRecord::default()
    }
}

fn payload(kept: Payload, bytes: &[u8]) -> v1::quarantine_record::Payload {
    match kept {
        Payload::Plain => v1::quarantine_record::Payload::Plain(v1::PlainPayload { data: bytes.to_vec() }),
        // The loader refuses sealed payloads in this version; a digest gives nothing away.
        Payload::Digest | Payload::Sealed => {
            v1::quarantine_record::Payload::Omitted(v1::OmittedPayload { reason: v1::OmittedReason::ByContract.into() })
        }
    }
}

fn to_message(diagnosis: &Diagnosis) -> v1::Diagnosis {
    v1::Diagnosis {
        keyword: diagnosis.keyword.clone(),
        schema_path: diagnosis.schema_path.clone(),
        instance_path: diagnosis.instance_path.clone(),
        expected: diagnosis.expected.clone(),
        found_type: diagnosis.found.to_owned(),
        byte_offset: diagnosis.offset,
        detail: diagnosis.detail.to_owned(),
    }
}

fn source(record: &Record, topic: &str) -> v1::SourcePosition {
    v1::SourcePosition {
        topic: topic.to_owned(),
        partition: record.position.partition.0,
        offset: record.position.offset.0,
    }
}

fn position_text(record: &Record) -> String {
    format!("{}@{}", record.position.partition, record.position.offset)
}

/// Sixteen bytes of a digest over what identifies the event.
fn decision_id(parts: &[&str]) -> String {
    let digest = Digest::of(parts.join("\0").as_bytes()).to_string();
    let hex = digest.strip_prefix("sha256:").unwrap_or(&digest);
    format!("d-{}", &hex[..32])
}

fn quarantine_id(decision_id: &str) -> String {
    format!("q-{}", decision_id.strip_prefix("d-").unwrap_or(decision_id))
}

/// A record that is no request or response: kept whole, under its position.
pub(super) fn undecodable(
    record: &Record,
    topic: &str,
    error: DecodeError,
    around: &Around,
    now: Timestamp,
) -> Settlement {
    let value = record.value.as_deref().unwrap_or_default();
    let diagnosis = Diagnosis { keyword: "decode".into(), ..Diagnosis::of(error.detail) };
    let id = decision_id(&["record", topic, &position_text(record)]);
    let source = source(record, topic);
    let reason = Reason::UndecodableEvent;
    let digest = Digest::of(value);
    let audit = v1::AuditRecord {
        decision_id: id.clone(),
        outcome: audit_outcome(Outcome::Refused),
        reason: reason.code().to_owned(),
        stage: Stage::Decode.name().to_owned(),
        source: Some(source.clone()),
        raw_sha256: digest.to_vec(),
        raw_bytes: value.len() as u64,
        now_unix_ms: now.unix_millis(),
        subject: if topic == around.requests_topic { v1::AuditSubject::Request } else { v1::AuditSubject::Response }
            .into(),
        quarantine_id: quarantine_id(&id),
        worker: around.worker.clone(),
        ..v1::AuditRecord::default()
    };
    let quarantine = v1::QuarantineRecord {
        sha256: digest.to_vec(),
        payload: Some(payload(Payload::Plain, value)),
        scope: v1::PayloadScope::Record.into(),
        payload_bytes: value.len() as u64,
        expires_at_unix_ms: now.saturating_add_millis(FALLBACK_POLICY.quarantine_retention_ms).unix_millis(),
        ..base(record, reason, Stage::Decode, Some(&diagnosis), &id, source, now)
    };
    Settlement {
        outcome: Outcome::Refused,
        reason: Some(reason),
        stage: Stage::Decode,
        diagnosis: Some(diagnosis),
        contract: None,
        digest: Some(digest),
        agent: None,
        quarantine: Some(quarantine),
        scheduled: None,
        audit,
    }
}

/// An announcement that was not taken as it is: audited, and without effect on the request.
pub(super) fn odd_request(
    record: &Record,
    request: &NewRequest,
    known: Option<&Binding>,
    (reason, detail): (Reason, &'static str),
    around: &Around,
    now: Timestamp,
) -> Settlement {
    let id = decision_id(&["request", &around.requests_topic, &position_text(record)]);
    let digest = Digest::of(record.value.as_deref().unwrap_or_default());
    let audit = v1::AuditRecord {
        decision_id: id,
        request_id: request.request_id.clone(),
        tool: request.tool.clone(),
        outcome: audit_outcome(Outcome::Refused),
        reason: reason.code().to_owned(),
        stage: Stage::Match.name().to_owned(),
        attempt: request.attempt,
        source: Some(source(record, &around.requests_topic)),
        raw_sha256: digest.to_vec(),
        raw_bytes: record.value.as_ref().map_or(0, Vec::len) as u64,
        now_unix_ms: now.unix_millis(),
        subject: v1::AuditSubject::Request.into(),
        request: known.map(Binding::to_message),
        worker: around.worker.clone(),
        ..v1::AuditRecord::default()
    };
    Settlement {
        outcome: Outcome::Refused,
        reason: Some(reason),
        stage: Stage::Match,
        diagnosis: Some(Diagnosis::of(detail)),
        contract: None,
        digest: Some(digest),
        agent: None,
        quarantine: None,
        scheduled: None,
        audit,
    }
}

/// A deadline that passed: the agent gets its fixed failure.
pub(super) fn expired(known: &Binding, contract: Option<Arc<Contract>>, around: &Around, now: Timestamp) -> Settlement {
    let id = decision_id(&["expired", &known.request_id, &known.first_issued_at.to_string()]);
    let agent = respond::failure(known, contract.as_ref(), &FailureCode::Expired, id.clone(), around, now);
    let audit = v1::AuditRecord {
        decision_id: id,
        request_id: known.request_id.to_string(),
        tool: known.tool.to_string(),
        outcome: audit_outcome(Outcome::Expired),
        stage: Stage::Emit.name().to_owned(),
        contract_version: contract.as_ref().map_or(0, |contract| contract.version),
        contract_sha256: contract.as_ref().map(|contract| contract.digest.to_vec()).unwrap_or_default(),
        attempt: known.attempt,
        result_sha256: Digest::of(agent.json.as_bytes()).to_vec(),
        now_unix_ms: now.unix_millis(),
        subject: v1::AuditSubject::Timer.into(),
        request: Some(known.to_message()),
        failure_code: FailureCode::Expired.as_str().to_owned(),
        worker: around.worker.clone(),
        ..v1::AuditRecord::default()
    };
    Settlement {
        outcome: Outcome::Expired,
        reason: None,
        stage: Stage::Emit,
        diagnosis: None,
        contract,
        digest: None,
        agent: Some(agent),
        quarantine: None,
        scheduled: None,
        audit,
    }
}

/// What the dispatcher is told when the next attempt is due.
pub(super) fn directive(known: &Binding, contract: Option<&Contract>) -> v1::RetryDirective {
    let (due, code, reason) = match &known.state {
        State::AwaitingRetry { due, code, reason } => {
            (due.map_or(0, Timestamp::unix_millis), code.to_string(), reason.to_string())
        }
        State::Outstanding | State::Closed { .. } => (0, String::new(), String::new()),
    };
    v1::RetryDirective {
        request_id: known.request_id.to_string(),
        tool: known.tool.to_string(),
        contract_version: known.contract_version,
        attempt: known.attempt + 1,
        not_before_unix_ms: due,
        deadline_unix_ms: known.deadline.unix_millis(),
        reason,
        failure_code: code,
        route: Some(known.route.clone()),
        traceparent: known.traceparent.as_deref().unwrap_or_default().to_owned(),
        bound_arguments: known.arguments.to_vec(),
        first_issued_at_unix_ms: known.first_issued_at.unix_millis(),
        attempts_max: contract
            .and_then(|contract| contract.policy.retry.as_ref())
            .map_or(1, |retry| retry.attempts_max),
        rpc_id: known.rpc_id.as_deref().unwrap_or_default().to_owned(),
        ..v1::RetryDirective::default()
    }
}
