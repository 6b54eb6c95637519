//! What must be in the log when everything is over.

use std::collections::{BTreeMap, BTreeSet};

use toolgate::gate::parse::{Limits, Tape};
use toolgate::log::Topic;
use toolgate::request::{Binding, State};
use toolgate::wire::{Digest, v1};

use super::load::{Load, decode};

pub(crate) fn check(load: &mut Load) {
    let audits: Vec<v1::AuditRecord> = load.all(Topic::Audit).iter().map(decode).collect();
    every_request_has_one_terminal_message(load);
    every_response_has_one_audit_record(load, &audits);
    quarantine_is_complete(load, &audits);
    every_retry_was_asked_for_once(load);
    the_state_is_what_agents_were_told(load);
}

fn every_request_has_one_terminal_message(load: &mut Load) {
    let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for record in load.all(Topic::Results) {
        let value = record.value.expect("a message");
        let mut tape = Tape::default();
        let root = tape.parse(&value, &Limits::default()).expect("JSON").root();
        let error = root.get("error").and_then(|error| error.get("code"));
        let code = error.and_then(|code| code.as_str()).unwrap_or_default().to_owned();
        let id = String::from_utf8(record.key.expect("a key")).expect("an id");
        assert_eq!(root.get("request_id").and_then(|node| node.as_str()), Some(id.as_str()));
        told.entry(id).or_default().push(code);
    }
    let expected: BTreeMap<String, Vec<String>> =
        load.requests.iter().map(|(id, code)| (id.clone(), vec![(*code).to_owned()])).collect();
    same("terminal messages", &told, &expected);
}

fn every_response_has_one_audit_record(load: &Load, audits: &[v1::AuditRecord]) {
    let mut audited: BTreeMap<(i32, i64), Vec<String>> = BTreeMap::new();
    for audit in audits.iter().filter(|audit| audit.subject() == v1::AuditSubject::Response) {
        let source = audit.source.as_ref().expect("a position");
        audited.entry((source.partition, source.offset)).or_default().push(audit.reason.clone());
    }
    let expected: BTreeMap<(i32, i64), Vec<String>> =
        load.responses.iter().map(|(at, reason)| ((at.partition.0, at.offset.0), vec![(*reason).to_owned()])).collect();
    same("audit records", &audited, &expected);
    let timers = audits.iter().filter(|audit| audit.subject() == v1::AuditSubject::Timer).count();
    assert_eq!(timers, load.requests.values().filter(|code| **code == "EXPIRED").count());
}

fn quarantine_is_complete(load: &mut Load, audits: &[v1::AuditRecord]) {
    let responses: BTreeMap<(i32, i64), Vec<u8>> = load
        .all(Topic::Responses)
        .into_iter()
        .map(|record| ((record.position.partition.0, record.position.offset.0), record.value.expect("a value")))
        .collect();
    let mut kept = BTreeMap::new();
    for record in load.all(Topic::Quarantine) {
        let record: v1::QuarantineRecord = decode(&record);
        let source = record.source.clone().expect("a position");
        let raw = &responses[&(source.partition, source.offset)];
        let Some(v1::quarantine_record::Payload::Plain(payload)) = &record.payload else { panic!("it is not kept") };
        assert_eq!(Digest::of(&payload.data).to_vec(), record.sha256);
        assert!(raw.ends_with(&payload.data) || raw.windows(payload.data.len()).any(|part| part == payload.data));
        *kept.entry(record.id).or_insert(0) += 1;
    }
    let wanted: BTreeMap<String, i32> =
        audits.iter().filter(|audit| !audit.quarantine_id.is_empty()).map(|a| (a.quarantine_id.clone(), 1)).collect();
    same("quarantine records", &kept, &wanted);
    let inadmissible = load.responses.values().filter(|reason| !reason.is_empty()).count();
    assert_eq!(kept.len(), inadmissible, "all that was not accepted, and nothing else");
}

fn every_retry_was_asked_for_once(load: &mut Load) {
    let directives = load.all(Topic::Retries);
    let asked: Vec<String> = directives.iter().map(|r| decode::<v1::RetryDirective>(r).request_id).collect();
    let unique: BTreeSet<&String> = asked.iter().collect();
    assert_eq!(unique.len(), asked.len(), "no directive comes twice");
    assert_eq!(unique, load.retried.iter().collect(), "every retry was asked for");
}

fn the_state_is_what_agents_were_told(load: &mut Load) {
    let mut state = BTreeMap::new();
    for record in load.all(Topic::Bindings) {
        let known = Binding::from_message(decode(&record)).expect("a sound binding");
        let code = match known.state {
            State::Closed { code, .. } => code.as_deref().unwrap_or_default().to_owned(),
            other @ (State::Outstanding | State::AwaitingRetry { .. }) => format!("{other:?}"),
        };
        state.insert(known.request_id.to_string(), code);
    }
    let expected: BTreeMap<String, String> =
        load.requests.iter().map(|(id, code)| (id.clone(), (*code).to_owned())).collect();
    same("requests", &state, &expected);
}

/// Compares, and names only what differs.
fn same<K: Ord + std::fmt::Debug, V: PartialEq + std::fmt::Debug>(
    what: &str,
    found: &BTreeMap<K, V>,
    wanted: &BTreeMap<K, V>,
) {
    let lost: Vec<_> = wanted.iter().filter(|(key, value)| found.get(key) != Some(value)).take(5).collect();
    let extra: Vec<_> = found.iter().filter(|(key, value)| wanted.get(key) != Some(value)).take(5).collect();
    assert!(lost.is_empty() && extra.is_empty(), "{what}: lost {lost:?}, not wanted {extra:?}");
}
