//! One story each: what comes in, and everything that comes of it.

use crate::stage::{Stage, failure, good};
use prost::Message;
use toolgate::log::partitioner::partition_of;
use toolgate::log::{Partition, Topic};
use toolgate::wire::v1;

#[test]
fn evidence_reaches_the_agent_with_one_audit_record() {
    let mut stage = Stage::new();
    stage.ask("req-0001");
    stage.answer("req-0001");
    stage.run();
    assert_eq!(stage.agent("req-0001"), [good("req-0001")]);
    assert!(stage.quarantine().is_empty());
    let [audit] = stage.audits().try_into().unwrap();
    assert_eq!(audit.outcome(), v1::AuditOutcome::Accepted);
    assert_eq!(
        (audit.connector_version.as_str(), audit.endpoint.as_str()),
        ("2.1.0", "https://release.example.net/state")
    );
    assert_eq!(audit.contract_version, 1);
    assert!(!audit.raw_sha256.is_empty() && !audit.result_sha256.is_empty() && audit.request.is_some());
}

#[test]
fn a_refused_response_is_quarantined_with_its_place_and_the_agent_gets_the_fixed_failure() {
    let mut stage = Stage::new();
    stage.ask("req-0001");
    stage.respond(&Stage::response("req-0001", 1, 200, &good("req-0001").replace("healthy", "Healthy")));
    stage.run();
    assert_eq!(stage.agent("req-0001"), [failure("req-0001", "INVALID_RESPONSE", false)]);
    let [quarantined] = stage.quarantine().try_into().unwrap();
    assert_eq!((quarantined.reason.as_str(), quarantined.stage.as_str()), ("SCHEMA_VIOLATION", "validate"));
    assert_eq!(quarantined.diagnosis.unwrap().instance_path, "/data/state");
    assert_eq!(quarantined.source.unwrap().topic, "tool.responses");
    let Some(v1::quarantine_record::Payload::Plain(payload)) = quarantined.payload else { panic!("no payload") };
    assert!(payload.data.windows(7).any(|bytes| bytes == b"Healthy"));
}

#[test]
fn a_response_before_its_request_waits_for_it() {
    // Batches of four are read with one place kept for responses: these are read long before the
    // last request, which was in the log when they were written.
    let mut stage = Stage::with_batches_of(4);
    let ids: Vec<String> = (0..40).map(|i| format!("req-{i:04}")).collect();
    ids.iter().rev().for_each(|id| stage.answer(id));
    ids.iter().for_each(|id| stage.ask(id));
    stage.run();
    for id in &ids {
        assert_eq!(stage.agent(id), [good(id)], "{id}");
    }
}

#[test]
fn a_response_that_nobody_asked_for_is_refused_without_any_timer() {
    let mut stage = Stage::new();
    stage.answer("req-0001");
    stage.run();
    assert_eq!(stage.reasons(), ["UNKNOWN_REQUEST"]);
    assert!(stage.agent("req-0001").is_empty());
}

#[test]
fn a_response_on_the_wrong_partition_is_told_where_it_belongs() {
    let mut stage = Stage::new();
    stage.ask("req-0001");
    let home = partition_of(b"req-0001", crate::stage::PARTITIONS);
    let away = Partition(1 - home.0);
    let value = Stage::response("req-0001", 1, 200, &good("req-0001")).encode_to_vec();
    stage.append(Topic::Responses, "req-0001", Some(value), Some(away));
    stage.run();
    assert_eq!(stage.reasons(), ["MISROUTED"]);
    let diagnosis = stage.quarantine()[0].diagnosis.clone().unwrap();
    assert!(
        diagnosis.expected.contains(&format!("partition {home}"))
            && diagnosis.expected.contains(&format!("came on {away}"))
    );
}

#[test]
fn records_that_cannot_be_decoded_are_kept_with_their_position_and_block_nothing() {
    let mut stage = Stage::new();
    stage.ask("req-0001");
    stage.append(
        Topic::Responses,
        "req-0001",
        Some(b"\xac\xed\x00\x05sr\x00\x1eorg.example.DefaultRecord".to_vec()),
        None,
    );
    stage.append(Topic::Responses, "req-0001", None, None);
    stage.append(Topic::Requests, "req-0002", Some(b"not a request".to_vec()), None);
    stage.answer("req-0001");
    stage.run();
    assert_eq!(stage.agent("req-0001"), [good("req-0001")]);
    let quarantined = stage.quarantine();
    assert_eq!(quarantined.len(), 3);
    assert!(quarantined.iter().all(|record| record.reason == "UNDECODABLE_EVENT" && record.source.is_some()));
}

#[test]
fn a_tool_without_a_contract_never_delivers_and_still_answers() {
    let mut stage = Stage::new();
    let request = v1::ToolRequest { tool: "nobody.knows".into(), ..stage.request("req-0001", 1, 60) };
    stage.announce(&request);
    stage.respond(&v1::ToolResponse {
        tool: "nobody.knows".into(),
        ..Stage::response("req-0001", 1, 200, &good("req-0001"))
    });
    let pinned = v1::ToolRequest { contract_version: 99, ..stage.request("req-0002", 1, 60) };
    stage.announce(&pinned);
    stage.answer("req-0002");
    stage.run();
    let mut reasons = stage.reasons();
    reasons.sort();
    assert_eq!(reasons, ["UNKNOWN_CONTRACT", "UNKNOWN_TOOL"]);
    assert!(stage.agent("req-0001")[0].contains("INVALID_RESPONSE"));
    assert_eq!(stage.agent("req-0002"), [failure("req-0002", "INVALID_RESPONSE", false)]);
}

#[test]
fn only_the_first_answer_counts() {
    let mut stage = Stage::new();
    stage.ask("req-0001");
    stage.answer("req-0001");
    stage.answer("req-0001");
    stage.respond(&Stage::response("req-0001", 1, 200, &good("req-0001").replace("healthy", "degraded")));
    stage.run();
    assert_eq!(stage.agent("req-0001"), [good("req-0001")]);
    assert_eq!(stage.reasons(), ["ok", "DUPLICATE_RESPONSE", "DUPLICATE_RESPONSE"]);
    let details: Vec<String> =
        stage.quarantine().iter().map(|record| record.diagnosis.clone().unwrap().detail).collect();
    assert!(details[0].contains("same bytes") && details[1].contains("other bytes"), "{details:?}");
}

#[test]
fn the_answer_of_another_tool_ends_nothing() {
    let mut stage = Stage::new();
    stage.ask("req-0001");
    stage.respond(&v1::ToolResponse { tool: "review_status".into(), ..Stage::response("req-0001", 1, 200, "{}") });
    stage.answer("req-0001");
    stage.run();
    assert_eq!(stage.reasons(), ["WRONG_TOOL", "ok"]);
}

#[test]
fn nobody_answers_and_the_deadline_passes_once() {
    let mut stage = Stage::new();
    stage.ask("req-0001");
    stage.run();
    stage.wait(59);
    assert!(stage.agent("req-0001").is_empty());
    stage.wait(1);
    stage.wait(1000);
    assert_eq!(stage.agent("req-0001"), [failure("req-0001", "EXPIRED", false)]);
    stage.answer("req-0001");
    stage.run();
    assert_eq!(stage.reasons(), ["EXPIRED", "LATE_RESPONSE"]);
}

#[test]
fn a_response_that_arrives_with_the_deadline_behind_it_is_late() {
    let mut stage = Stage::new();
    let request = stage.request("req-0001", 1, 0);
    stage.announce(&request);
    stage.answer("req-0001");
    stage.run();
    assert_eq!(stage.agent("req-0001"), [failure("req-0001", "EXPIRED", false)]);
    assert!(stage.reasons().contains(&"LATE_RESPONSE".to_owned()));
}

#[test]
fn a_retry_is_asked_for_when_it_is_due_and_only_fresh_evidence_counts() {
    let mut stage = Stage::new();
    stage.ask("req-0001");
    stage.respond(&Stage::response("req-0001", 1, 503, "busy"));
    stage.run();
    assert!(stage.agent("req-0001").is_empty());
    stage.wait(30);
    let [directive] = stage.directives().try_into().unwrap();
    assert_eq!(
        (directive.attempt, directive.failure_code.as_str(), directive.reason.as_str()),
        (2, "UPSTREAM_UNAVAILABLE", "UPSTREAM_ERROR")
    );
    stage.restart();
    stage.wait(1);
    assert_eq!(stage.directives().len(), 1, "a restart tells the dispatcher nothing twice");
    let second = stage.request("req-0001", 2, 60);
    stage.announce(&second);
    stage.answer("req-0001");
    stage.respond(&Stage::response("req-0001", 2, 200, &good("req-0001")));
    stage.run();
    assert_eq!(stage.agent("req-0001"), [good("req-0001")]);
    assert_eq!(stage.reasons(), ["UPSTREAM_ERROR", "STALE_ATTEMPT", "ok"]);
}

#[test]
fn odd_announcements_are_audited_and_change_nothing() {
    let mut stage = Stage::new();
    stage.ask("req-0001");
    stage.ask("req-0001");
    let other =
        v1::ToolRequest { arguments: br#"{"environment":"production"}"#.to_vec(), ..stage.request("req-0001", 1, 60) };
    stage.announce(&other);
    stage.answer("req-0001");
    stage.run();
    stage.announce(&other);
    stage.run();
    let mut reasons = stage.reasons();
    reasons.sort();
    assert_eq!(reasons, ["REQUEST_CONFLICT", "REQUEST_ID_REUSED", "ok"]);
    assert_eq!(stage.agent("req-0001"), [good("req-0001")]);
}

#[test]
fn a_closed_request_shrinks_and_is_forgotten_at_last() {
    let mut stage = Stage::new();
    stage.ask("req-0001");
    stage.answer("req-0001");
    stage.run();
    let latest = |stage: &mut Stage| stage.records(Topic::Bindings).pop().unwrap().value.map(|value| value.len());
    let full = latest(&mut stage).unwrap();
    stage.wait(86_400);
    assert!(latest(&mut stage).unwrap() < full);
    stage.wait(86_400);
    assert_eq!(latest(&mut stage), None, "a tombstone");
    stage.answer("req-0001");
    stage.run();
    assert_eq!(stage.reasons().last().unwrap(), "UNKNOWN_REQUEST");
}

#[test]
fn a_payload_beyond_the_records_limit_becomes_digest_and_position() {
    let mut stage = Stage::new();
    stage.ask("req-0001");
    let body = "x".repeat(toolgate::log::RECORD_BYTES_MAX - 2048);
    stage.respond(&Stage::response("req-0001", 1, 200, &body));
    stage.run();
    let [quarantined] = stage.quarantine().try_into().unwrap();
    assert_eq!((quarantined.reason.as_str(), quarantined.payload_bytes), ("TOO_LARGE", body.len() as u64));
    assert!(matches!(quarantined.payload, Some(v1::quarantine_record::Payload::Omitted(_))));
    assert_eq!(quarantined.sha256.len(), 32);
}

/// P8: the audit record and the raw bytes are enough to come to the same decision again.
#[test]
fn a_decision_can_be_made_again_from_its_audit_record() {
    use toolgate::contract::{fixture::Secrets, pack};
    use toolgate::gate::{Bench, Case, Request, RpcId, arguments, decide, decode::RawResponse, parse::Tape};
    use toolgate::request::Binding;
    use toolgate::time::Timestamp;
    let mut stage = Stage::new();
    stage.ask("req-0001");
    stage.answer("req-0001");
    stage.run();
    let audit = stage.audits().remove(0);
    stage.wait(50_000);
    let known = Binding::from_message(audit.request.unwrap()).unwrap();
    let contract = pack::load_dir(std::path::Path::new("schemas/tools/release.state/v1")).unwrap();
    assert_eq!(audit.contract_sha256, contract.digest);
    let response = RawResponse::from_message(Stage::response("req-0001", 1, 200, &good("req-0001"))).unwrap();
    assert_eq!(audit.raw_sha256, response.body().digest().to_vec());
    let (mut tape, mut bench) = (Tape::default(), Bench::default());
    let request = Request {
        id: &known.request_id,
        tool: &known.tool,
        issued_at: known.issued_at,
        arguments: arguments(&known.arguments, &mut tape).unwrap(),
        rpc_id: RpcId::RequestId(&known.request_id),
    };
    let now = Timestamp::from_unix_millis(audit.now_unix_ms).unwrap();
    let secrets = Secrets::default();
    let case = Case { response: &response, request, contract: &contract, secrets: &secrets, now };
    let again = decide(&case, &mut bench).unwrap().as_str().to_owned();
    assert_eq!(audit.result_sha256, toolgate::wire::Digest::of(again.as_bytes()).to_vec());
}
