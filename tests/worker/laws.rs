//! What must be true of a log whatever happened to its worker.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use toolgate::contract::Lookup;
use toolgate::contract::fixture::Secrets;
use toolgate::gate::decode::RawResponse;
use toolgate::gate::parse::Tape;
use toolgate::gate::{self, Bench, Case, Reason, Request, RpcId, Stage, Stop};
use toolgate::log::{Record, Topic};
use toolgate::request::Binding;
use toolgate::time::Timestamp;
use toolgate::wire::{Digest, v1};

use crate::support::{CANARY, REQUESTS, RESPONSES};
use crate::world::World;

/// Checks all laws on a log whose inputs have been read to their ends.
#[track_caller]
pub(crate) fn check(world: &World) {
    let audits: Vec<v1::AuditRecord> = decoded(&world.log.records(Topic::Audit));
    one_audit_for_each_response(world, &audits);
    one_terminal_message_for_each_request(world, &audits);
    quarantine_is_complete(world, &audits);
    audits.iter().for_each(|audit| the_decision_can_be_made_again(world, audit));
    assert_eq!(world.state(), world.committed_state(), "memory is what the changelog says");
    nothing_of_a_refused_response_gets_out(world);
}

pub(crate) fn decoded<M: Message + Default>(records: &[Record]) -> Vec<M> {
    let value = |record: &Record| record.value.clone().expect("a value");
    records.iter().map(|record| M::decode(value(record).as_slice()).expect("our own record")).collect()
}

type At = (String, i32, i64);

fn at(source: Option<&v1::SourcePosition>) -> Option<At> {
    source.map(|source| (source.topic.clone(), source.partition, source.offset))
}

fn position(record: &Record) -> At {
    let topic = if record.position.topic == Topic::Requests { REQUESTS } else { RESPONSES };
    (topic.to_owned(), record.position.partition.0, record.position.offset.0)
}

#[track_caller]
fn one_audit_for_each_response(world: &World, audits: &[v1::AuditRecord]) {
    let sources: Vec<At> = audits.iter().filter_map(|audit| at(audit.source.as_ref())).collect();
    let unique: BTreeSet<&At> = sources.iter().collect();
    assert_eq!(unique.len(), sources.len(), "no record is audited twice");
    let audited: BTreeSet<At> = sources.into_iter().filter(|(topic, ..)| topic == RESPONSES).collect();
    let read: BTreeSet<At> = world.log.records(Topic::Responses).iter().map(position).collect();
    assert_eq!(audited, read, "every response is audited, and nothing else");
    let ids: BTreeSet<&str> = audits.iter().map(|audit| audit.decision_id.as_str()).collect();
    assert_eq!(ids.len(), audits.len(), "decision ids are unique");
}

#[track_caller]
fn one_terminal_message_for_each_request(world: &World, audits: &[v1::AuditRecord]) {
    let mut told: Vec<Vec<u8>> = Vec::new();
    let mut closed = BTreeSet::new();
    for audit in audits.iter().filter(|audit| !audit.result_sha256.is_empty()) {
        let request = audit.request.as_ref().expect("only a known request is answered");
        let is_first = closed.insert((audit.request_id.clone(), request.first_issued_at_unix_ms));
        assert!(is_first, "{} is answered twice", audit.request_id);
        told.push(audit.result_sha256.clone());
    }
    let digest = |record: Record| Digest::of(&record.value.unwrap_or_default()).to_vec();
    let mut sent: Vec<Vec<u8>> = world.log.records(Topic::Results).into_iter().map(digest).collect();
    sent.sort();
    told.sort();
    assert_eq!(sent, told, "what agents got is what the audit says");
}

#[track_caller]
fn quarantine_is_complete(world: &World, audits: &[v1::AuditRecord]) {
    let raw: BTreeMap<At, Record> = [Topic::Requests, Topic::Responses]
        .iter()
        .flat_map(|t| world.log.records(*t))
        .map(|r| (position(&r), r))
        .collect();
    let kept: Vec<v1::QuarantineRecord> = decoded(&world.log.records(Topic::Quarantine));
    let kept_ids: Vec<&str> = kept.iter().map(|record| record.id.as_str()).collect();
    let mut wanted: Vec<&str> =
        audits.iter().map(|audit| audit.quarantine_id.as_str()).filter(|id| !id.is_empty()).collect();
    let unique: BTreeSet<&&str> = kept_ids.iter().collect();
    assert_eq!(unique.len(), kept.len(), "nothing is set aside twice");
    wanted.retain(|id| !kept_ids.contains(id));
    assert!(wanted.is_empty(), "not in quarantine: {wanted:?}");
    for audit in audits.iter().filter(|audit| audit.subject() == v1::AuditSubject::Response) {
        let is_accepted = audit.outcome() == v1::AuditOutcome::Accepted;
        assert_eq!(audit.quarantine_id.is_empty(), is_accepted, "all but accepted responses are set aside");
    }
    for record in &kept {
        let source = at(record.source.as_ref()).expect("a position");
        let value = raw[&source].value.clone().unwrap_or_default();
        let bytes = match record.scope() {
            v1::PayloadScope::Record => value,
            v1::PayloadScope::Body => v1::ToolResponse::decode(value.as_slice()).expect("a response").body,
            v1::PayloadScope::Unspecified => panic!("a payload of no scope"),
        };
        assert_eq!(record.sha256, Digest::of(&bytes).to_vec(), "the digest is that of the raw bytes");
        assert_eq!(record.payload_bytes, bytes.len() as u64);
        if let Some(v1::quarantine_record::Payload::Plain(payload)) = &record.payload {
            assert_eq!(payload.data, bytes, "the payload is as it came");
        }
        let reason = Reason::from_code(&record.reason).expect("a reason");
        assert!(record.diagnosis.is_some(), "{reason} is explained");
    }
}

/// P8: the audit record, the raw bytes and the contract are enough to come to the same decision.
#[track_caller]
fn the_decision_can_be_made_again(world: &World, audit: &v1::AuditRecord) {
    let is_judged = audit.subject() == v1::AuditSubject::Response
        && ![Stage::Decode.name(), Stage::Match.name()].contains(&audit.stage.as_str());
    let Some(message) = audit.request.clone().filter(|_| is_judged) else { return };
    let known = Binding::from_message(message).expect("a request record");
    let around = crate::world::around();
    let Lookup::Found(contract) = around.registry.look_up(&known.tool, audit.contract_version) else { return };
    assert_eq!(audit.contract_sha256, contract.digest.to_vec(), "the audit names the contract that judged");
    let source = at(audit.source.as_ref()).expect("a position");
    let record = world.log.records(Topic::Responses).into_iter().find(|record| position(record) == source);
    let value = record.and_then(|record| record.value).expect("the raw record is there");
    let response = v1::ToolResponse::decode(value.as_slice()).expect("a response");
    let response = RawResponse::from_message(response).expect("a sound response");
    let mut tape = Tape::default();
    let arguments = gate::arguments(&known.arguments, &mut tape).expect("our own arguments");
    let rpc_id = known.rpc_id.as_deref().map_or(RpcId::RequestId(&known.request_id), RpcId::Json);
    let request = Request { id: &known.request_id, tool: &known.tool, issued_at: known.issued_at, arguments, rpc_id };
    let now = Timestamp::from_unix_millis(audit.now_unix_ms).expect("a time");
    let secrets = Secrets::default();
    let mut bench = Bench::default();
    let decision =
        gate::decide(&Case { response: &response, request, contract: &contract, secrets: &secrets, now }, &mut bench);
    let (outcome, reason, result) = match &decision {
        Ok(result) => (v1::AuditOutcome::Accepted, "", Digest::of(result.as_str().as_bytes()).to_vec()),
        Err(Stop::Failed(_)) => (v1::AuditOutcome::Failed, Reason::UpstreamError.code(), Vec::new()),
        Err(Stop::Refused(refusal)) => (v1::AuditOutcome::Refused, refusal.reason.code(), Vec::new()),
    };
    assert_eq!((audit.outcome(), audit.reason.as_str()), (outcome, reason), "{}", audit.request_id);
    if outcome == v1::AuditOutcome::Accepted {
        assert_eq!(audit.result_sha256, result, "{}: the same bytes as before", audit.request_id);
    }
}

/// P1, as far as text can be looked for: every hostile body of the stories carries the same words.
#[track_caller]
fn nothing_of_a_refused_response_gets_out(world: &World) {
    for topic in [Topic::Results, Topic::Retries, Topic::Audit, Topic::Bindings] {
        for record in world.log.records(topic) {
            let bytes = record.value.iter().chain(record.headers.iter().filter_map(|header| header.value.as_ref()));
            let is_there = bytes.into_iter().any(|bytes| bytes.windows(CANARY.len()).any(|w| w == CANARY.as_bytes()));
            assert!(!is_there, "{} carries what a response said", record.position);
        }
    }
    assert!(!world.metrics.encode().contains(CANARY));
}
