//! Retries over more time than usual: calls that take longer than a budget looks back, and contracts that are
//! replaced between two attempts.

use prost::Message;
use toolgate::contract::Registry;
use toolgate::log::{Offset, Partition, Position, Record, Topic};
use toolgate::partition::{Around, Effects, Outcome, PartitionState};
use toolgate::time::Timestamp;
use toolgate::wire::v1;

use crate::stage::{Stage, good};
use crate::support;
use crate::world;

const BIND: &str = "equals: /arguments/environment}";

fn at(minutes: i64) -> Timestamp {
    support::start().saturating_add_millis(minutes * 60_000)
}

fn around(contracts: &[(&str, &[(&str, &str)])]) -> Around {
    let mut registry = Registry::default();
    for (folder, edits) in contracts {
        registry.insert(support::variant("release.state", folder, edits)).unwrap();
    }
    Around { registry, partitions: 1, ..world::around() }
}

fn record(topic: Topic, id: &str, value: Vec<u8>) -> Record {
    let position = Position { topic, partition: Partition(0), offset: Offset(0) };
    Record { position, timestamp_ms: 0, key: Some(id.into()), value: Some(value), headers: Vec::new() }
}

/// With two hours to answer.
fn announce(state: &mut PartitionState, around: &Around, id: &str, attempt: u32, now: Timestamp) {
    let request = v1::ToolRequest {
        request_id: id.into(),
        tool: "release.state".into(),
        arguments: br#"{"environment":"staging","env":"staging"}"#.to_vec(),
        issued_at_unix_ms: now.unix_millis(),
        deadline_unix_ms: at(120).unix_millis(),
        attempt,
        ..v1::ToolRequest::default()
    };
    state.request(&record(Topic::Requests, id, request.encode_to_vec()), around, now, &mut Effects::default());
}

fn respond(state: &mut PartitionState, around: &Around, response: &v1::ToolResponse, now: Timestamp) -> Effects {
    let mut effects = Effects::default();
    state.receive(record(Topic::Responses, &response.request_id, response.encode_to_vec()));
    state.respond(around, Offset(0), now, &mut effects);
    effects
}

#[test]
fn an_outage_of_calls_that_take_long_is_no_storm() {
    let around = around(&[("release.state/v1", &[("budget: 2m", "budget: 1h")])]);
    let mut state = PartitionState::new(Partition(0), 1);
    let ids: Vec<String> = (0..1000).map(|n| format!("req-{n:04}")).collect();
    ids.iter().for_each(|id| announce(&mut state, &around, id, 1, at(0)));
    let mut retries = 0;
    for id in &ids {
        let effects = respond(&mut state, &around, &Stage::response(id, 1, 503, ""), at(11));
        retries += effects.settlements.iter().filter(|settlement| settlement.scheduled.is_some()).count();
    }
    assert!(retries <= 10, "{retries} retries, and nothing was asked in the last ten minutes");
}

#[test]
fn a_further_attempt_is_judged_by_the_contract_of_the_first() {
    let before = around(&[("release.state/v1", &[])]);
    let after = around(&[
        ("release.state/v1", &[("status: active", "status: retired")]),
        ("release.state/v2", &[("version: 1", "version: 2"), (BIND, "equals: /arguments/env}")]),
    ]);
    let mut state = PartitionState::new(Partition(0), 1);
    announce(&mut state, &before, "req-0001", 1, at(0));
    respond(&mut state, &before, &Stage::response("req-0001", 1, 503, ""), at(0));
    announce(&mut state, &after, "req-0001", 2, at(1));
    let effects = respond(&mut state, &after, &Stage::response("req-0001", 2, 200, &good("req-0001")), at(1));
    let [settlement] = effects.settlements.as_slice() else { panic!("one decision") };
    assert_eq!((settlement.outcome, settlement.reason), (Outcome::Accepted, None));
}
