//! An accepted response costs no heap allocation in the core, once its memory has grown to size.

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::path::Path;
use toolgate::contract::fixture::Secrets;
use toolgate::contract::pack;
use toolgate::gate::decode::{NewRequest, RawResponse};
use toolgate::gate::parse::Tape;
use toolgate::gate::{Bench, Case, Request, decide};
use toolgate::time::Timestamp;
use toolgate::wire::v1;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const BODY: &str = r#"{"tool":"review_status","request_id":"req.J7q94MkP","outcome":"success","data":{"change_id":"CR-48213","decision":"approved","reviewed_by":"m.osei"}}"#;

const JOB: &str = r#"{"api_version":2,"project":{"slug":"bluebird"},"run":{"id":"run_7Kd29QmXv4Lp","status":"failed"},"observed_at":"2026-12-01T05:03:11.482Z"}"#;

fn allocations(tool: &str, body: &str, arguments: &str) -> usize {
    let contract = pack::load_dir(&Path::new("schemas/tools").join(tool).join("v1")).expect("the contract is sound");
    let now = Timestamp::parse_rfc3339("2026-12-01T05:04:00Z").expect("a time");
    let announced = NewRequest::from_message(v1::ToolRequest {
        request_id: "req.J7q94MkP".into(),
        tool: tool.into(),
        arguments: arguments.into(),
        issued_at_unix_ms: now.unix_millis() - 5000,
        deadline_unix_ms: now.unix_millis() + 60_000,
        attempt: 1,
        ..v1::ToolRequest::default()
    })
    .expect("a request");
    let response = RawResponse::from_message(v1::ToolResponse {
        request_id: "req.J7q94MkP".into(),
        tool: tool.into(),
        attempt: 1,
        body: body.into(),
        content_type: Some("application/json".into()),
        outcome: Some(v1::TransportOutcome { outcome: Some(v1::transport_outcome::Outcome::HttpStatus(200)) }),
        ..v1::ToolResponse::default()
    })
    .expect("a response");
    let secrets = Secrets::default();
    let (mut bench, mut tape) = (Bench::default(), Tape::default());
    let mut judge = || {
        let request = Request::announced(&announced, &mut tape).expect("arguments");
        let case = Case { response: &response, request, contract: &contract, secrets: &secrets, now };
        assert!(decide(&case, &mut bench).is_ok());
    };
    (0..10).for_each(|_| judge());
    let region = Region::new(ALLOCATOR);
    judge();
    region.change().allocations
}

/// One test, since the allocator counts for the whole process.
#[test]
fn an_accepted_response_allocates_nothing() {
    assert_eq!(allocations("review_status", BODY, r#"{"change_id":"CR-48213"}"#), 0, "an envelope");
    assert_eq!(allocations("ci.job_status", JOB, r#"{"project_id":"bluebird"}"#), 0, "an adapted document");
}
