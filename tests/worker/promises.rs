//! What agents, operators and shadow versions see, and what they never do.

use std::collections::BTreeSet;

use toolgate::log::memory::Fault;
use toolgate::log::{Header, Offset, Partition, Topic};
use toolgate::wire::v1;
use toolgate::worker::Step;

use crate::laws::{self, decoded};
use crate::support::CANARY;
use crate::world::World;

/// Bodies that are inadmissible for different reasons.
const HOSTILE: [&str; 6] = ["state-unknown", "foreign", "twice", "prose", "huge", "good-nothing-like-it"];

/// The agent's record where a request gets this body: key, bytes, and the headers but for the moment's.
fn told(body: &str) -> (Option<Vec<u8>>, Vec<u8>, Vec<Header>) {
    let mut world = World::new();
    let mut request = world.request("r1", "ci.job_status");
    request.route = Some(v1::Route { reply_key: "session-7".into(), ..v1::Route::default() });
    world.announce(&request);
    let mut response = world.response("r1", if body == "good-nothing-like-it" { "good" } else { body });
    if body == "good-nothing-like-it" {
        response.content_type = Some(format!("text/{CANARY}"));
        response.headers = vec![v1::Header { name: "x-note".into(), value: CANARY.into() }];
    }
    world.respond(&response);
    world.run();
    laws::check(&world);
    let mut records = world.log.records(Topic::Results);
    assert_eq!(records.len(), 1, "{body}");
    let record = records.remove(0);
    (record.key, record.value.expect("a message"), record.headers)
}

#[test]
fn an_agent_cannot_tell_one_refusal_from_another() {
    let first = told(HOSTILE[0]);
    assert_eq!(first.0.as_deref(), Some(b"session-7".as_slice()));
    let json = r#"{"tool":"ci.job_status","request_id":"r1","outcome":"failure","error":{"code":"INVALID_RESPONSE","retryable":false}}"#;
    assert_eq!(String::from_utf8_lossy(&first.1), json);
    for body in &HOSTILE[1..] {
        assert_eq!(told(body), first, "{body}");
    }
}

#[test]
fn accepted_bytes_hold_the_selected_fields_and_nothing_else() {
    let mut world = World::new();
    world.announce(&world.request("r1", "ci.job_status"));
    let mut response = world.response("r1", "good");
    let more = format!(r#"{{"note":"{CANARY}","{CANARY}":1,"#);
    response.body = [more.as_bytes(), &response.body[1..]].concat();
    world.respond(&response);
    world.run();
    laws::check(&world);
    let value = world.log.records(Topic::Results)[0].value.clone().expect("a message");
    let data = r#"{"project_id":"bluebird","run_id":"run_7Kd29QmXv4Lp","state":"failed","observed_at":"2026-11-18T14:02:00Z"}"#;
    let json = format!(r#"{{"tool":"ci.job_status","request_id":"r1","outcome":"success","data":{data}}}"#);
    assert_eq!(String::from_utf8_lossy(&value), json);
}

#[test]
fn a_shadow_contract_publishes_nothing_and_its_disagreements_are_counted() {
    let mut world = World::new();
    for id in ["r1", "r2"] {
        world.announce(&world.request(id, "release.state"));
        world.respond(&world.response(id, "release"));
        // What does not become durable does not count either.
        world.fault(Fault::Aborted);
        world.run();
    }
    let audits: Vec<v1::AuditRecord> = decoded(&world.log.records(Topic::Audit));
    assert!(audits.iter().all(|a| a.contract_version == 1 && a.outcome() == v1::AuditOutcome::Accepted));
    assert_eq!((world.log.records(Topic::Results).len(), world.log.records(Topic::Quarantine).len()), (2, 0));
    let text = world.metrics.encode();
    let lines: Vec<&str> = text.lines().filter(|l| l.contains("disagree") && l.contains("release.state@2")).collect();
    assert!(lines.iter().any(|line| line.ends_with(" 2")), "{lines:?}");
    laws::check(&world);
}

#[test]
fn quarantine_holds_what_an_operator_needs() {
    let mut world = World::new();
    world.announce(&world.request("r1", "ci.job_status"));
    let response = world.response("r1", "prose");
    let position = world.respond(&response);
    world.run();
    let record = world.log.records(Topic::Quarantine).remove(0);
    let kept: v1::QuarantineRecord = decoded(std::slice::from_ref(&record)).remove(0);
    let source = kept.source.clone().expect("a position");
    assert_eq!((source.topic.as_str(), source.offset), ("tool.responses", position.offset.0));
    assert_eq!((kept.reason.as_str(), kept.stage.as_str()), ("INVALID_JSON", "parse"));
    assert_eq!((kept.failure_code.as_str(), kept.contract_version), ("INVALID_RESPONSE", 1));
    let plain = v1::PlainPayload { data: response.body };
    assert_eq!(kept.payload, Some(v1::quarantine_record::Payload::Plain(plain)));
    assert_eq!(record.headers.len(), 5, "a constant set of headers");
    assert!(record.headers.iter().all(|header| header.name.starts_with("__streams.errors.")));
}

#[test]
fn partitions_move_between_workers_without_loss() {
    let mut world = World::new();
    let ids: Vec<String> = (0..20).map(|n| format!("r{n}")).collect();
    for id in &ids {
        world.announce(&world.request(id, "ci.job_status"));
    }
    world.run();
    let of = |world: &World| world.worker.states().map(|state| state.id).collect::<Vec<_>>();
    for partition in [Partition(0), Partition(1), Partition(0)] {
        world.log.0.borrow_mut().revoke(vec![partition]);
        world.run();
        assert_eq!(of(&world), [Partition(1 - partition.0)]);
        for id in &ids {
            world.respond(&world.response(id, "good"));
        }
        world.run();
        world.log.0.borrow_mut().assign(vec![partition]);
        world.run();
    }
    let answered: BTreeSet<_> = world.log.records(Topic::Results).into_iter().map(|record| record.key).collect();
    assert_eq!((answered.len(), world.log.records(Topic::Results).len()), (20, 20));
    laws::check(&world);
}

#[test]
fn a_worker_without_partitions_is_idle_and_a_truncated_input_is_not_skipped() {
    let mut world = World::new();
    world.run();
    world.log.0.borrow_mut().revoke(vec![Partition(0), Partition(1)]);
    world.announce(&world.request("r1", "ci.job_status"));
    world.run();
    assert_eq!((world.step(), world.worker.states().count()), (Step::Idle, 0));
    world.log.0.borrow_mut().assign(vec![Partition(0), Partition(1)]);
    world.run();
    world.announce(&world.request("r1", "ci.job_status"));
    world.announce(&world.request("r1", "ci.job_status"));
    for partition in [Partition(0), Partition(1)] {
        let end = Offset(world.log.0.borrow().records(Topic::Requests, partition).len() as i64);
        world.log.0.borrow_mut().truncate(Topic::Requests, partition, end);
    }
    world.restart();
    let now = world.now;
    let error = world.worker.step(|| now).expect_err("unread requests are gone");
    assert!(matches!(error, toolgate::log::LogError::Gap { .. }), "{error}");
}

/// A step takes a thousand timers; the deadlines beyond them have passed all the same.
#[test]
fn a_deadline_holds_also_where_its_timer_has_not_had_its_turn() {
    let mut world = World::with(10_000, 1000);
    let ids: Vec<String> = (0..3000).map(|n| format!("r{n}")).collect();
    for id in &ids {
        world.announce(&world.request(id, "ci.job_status"));
    }
    world.run();
    world.advance(62_000);
    for id in &ids {
        world.respond(&world.response(id, "good"));
    }
    world.run();
    let kept: Vec<v1::QuarantineRecord> = decoded(&world.log.records(Topic::Quarantine));
    assert_eq!(kept.iter().filter(|record| record.reason == "LATE_RESPONSE").count(), ids.len());
    let audits: Vec<v1::AuditRecord> = decoded(&world.log.records(Topic::Audit));
    assert_eq!(audits.iter().filter(|audit| audit.failure_code == "EXPIRED").count(), ids.len());
}

/// Whoever runs the worker says with it that it is not ready, also long after it has begun.
#[test]
fn a_worker_says_for_as_long_as_it_has_partitions_to_rebuild() {
    let mut world = World::new();
    let mut steps = || {
        let mut steps = Vec::new();
        while steps.last() != Some(&Step::Idle) {
            steps.push(world.step());
        }
        steps
    };
    assert_eq!(steps(), [Step::Restoring, Step::Restoring, Step::Worked, Step::Idle], "two partitions, then none");
    world.log.0.borrow_mut().revoke(vec![Partition(1)]);
    world.run();
    world.log.0.borrow_mut().assign(vec![Partition(1)]);
    assert_eq!((world.step(), world.step(), world.step()), (Step::Restoring, Step::Worked, Step::Idle));
    world.announce(&world.request("r1", "ci.job_status"));
    world.fault(Fault::IndeterminateApplied);
    assert_eq!((world.step(), world.step()), (Step::Restoring, Step::Restoring), "its end is not known");
    assert_eq!((world.step(), world.step()), (Step::Worked, Step::Idle));
    laws::check(&world);
}
