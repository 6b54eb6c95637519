//! What comes of one request, whatever its tool answers.

use crate::transcript::check;

#[test]
fn evidence_is_accepted_once() {
    check(
        "
        > announce r1 ci.job_status
        state r1 attempt 1 outstanding
        > respond r1 good
        agent r1 success
        audit r1 accepted
        state r1 attempt 1 closed accepted
        > respond r1 good
        quarantine r1 DUPLICATE_RESPONSE responses-0@1 kept 134
        audit r1 refused DUPLICATE_RESPONSE
        > respond r1 good-other
        quarantine r1 DUPLICATE_RESPONSE responses-0@2 kept 134
        audit r1 refused DUPLICATE_RESPONSE
        ",
    );
}

#[test]
fn shipped_contracts_of_every_kind_are_served() {
    check(
        "
        > announce r1 release.state; respond r1 release
        agent r1 success
        audit r1 accepted
        state r1 attempt 1 closed accepted
        > announce req.reviewed review_status; respond req.reviewed review
        agent req.reviewed success
        audit req.reviewed accepted
        state req.reviewed attempt 1 closed accepted
        > announce r3 mcp.sensor.read; respond r3 sensor
        agent r3 success
        audit r3 accepted
        state r3 attempt 1 closed accepted
        ",
    );
}

#[test]
fn what_is_inadmissible_becomes_a_fixed_failure_and_is_set_aside() {
    check(
        "
        > announce r1 ci.job_status; respond r1 state-unknown
        agent r1 failure INVALID_RESPONSE retryable=false
        quarantine r1 ADAPTER_MISMATCH responses-0@0 kept 156
        audit r1 refused ADAPTER_MISMATCH INVALID_RESPONSE
        state r1 attempt 1 closed refused
        > announce r2 ci.job_status; respond r2 foreign
        agent r2 failure INVALID_RESPONSE retryable=false
        quarantine r2 BINDING_MISMATCH responses-0@1 kept 135
        audit r2 refused BINDING_MISMATCH INVALID_RESPONSE
        state r2 attempt 1 closed refused
        > announce r3 ci.job_status; respond r3 twice
        agent r3 failure INVALID_RESPONSE retryable=false
        quarantine r3 DUPLICATE_MEMBER responses-1@0 kept 150
        audit r3 refused DUPLICATE_MEMBER INVALID_RESPONSE
        state r3 attempt 1 closed refused
        > announce r4 ci.job_status; respond r4 prose
        agent r4 failure INVALID_RESPONSE retryable=false
        quarantine r4 INVALID_JSON responses-1@1 kept 48
        audit r4 refused INVALID_JSON INVALID_RESPONSE
        state r4 attempt 1 closed refused
        > announce r5 ci.job_status; respond r5 huge
        agent r5 failure INVALID_RESPONSE retryable=false
        quarantine r5 TOO_LARGE responses-0@2 kept 300002
        audit r5 refused TOO_LARGE INVALID_RESPONSE
        state r5 attempt 1 closed refused
        > respond r1 good
        quarantine r1 DUPLICATE_RESPONSE responses-0@3 kept 134
        audit r1 refused DUPLICATE_RESPONSE
        ",
    );
}

#[test]
fn a_failure_of_the_tool_is_told_by_its_code_alone() {
    check(
        "
        > announce r1 ci.job_status; respond r1 not-found
        agent r1 failure NOT_FOUND retryable=false
        quarantine r1 UPSTREAM_ERROR responses-0@0 kept 42
        audit r1 failed UPSTREAM_ERROR NOT_FOUND
        state r1 attempt 1 closed failed
        ",
    );
}

#[test]
fn a_response_that_overtakes_its_request_is_accepted() {
    check(
        "
        > respond r1 good; announce r1 ci.job_status
        agent r1 success
        audit r1 accepted
        state r1 attempt 1 closed accepted
        ",
    );
}

#[test]
fn a_response_without_a_request_is_refused_without_any_waiting() {
    check(
        "
        > respond r1 good
        quarantine r1 UNKNOWN_REQUEST responses-0@0 kept 134
        audit r1 refused UNKNOWN_REQUEST
        > announce r1 ci.job_status
        state r1 attempt 1 outstanding
        > respond r1 good
        agent r1 success
        audit r1 accepted
        state r1 attempt 1 closed accepted
        ",
    );
}

#[test]
fn a_response_on_another_partition_than_its_key_belongs_to_is_misrouted() {
    check(
        "
        > announce r1 ci.job_status
        state r1 attempt 1 outstanding
        > respond r1 good misrouted
        quarantine r1 MISROUTED responses-1@0 kept 134
        audit r1 refused MISROUTED
        > respond r1 good
        agent r1 success
        audit r1 accepted
        state r1 attempt 1 closed accepted
        ",
    );
}

#[test]
fn what_cannot_be_decoded_is_set_aside_and_blocks_nothing() {
    check(
        "
        > announce r1 ci.job_status; write responses null; write responses noise; write responses nothing
        quarantine ? UNDECODABLE_EVENT responses-0@0 kept 0
        quarantine ? UNDECODABLE_EVENT responses-0@1 kept 4
        quarantine ? UNDECODABLE_EVENT responses-0@2 kept 0
        audit ? refused UNDECODABLE_EVENT
        audit ? refused UNDECODABLE_EVENT
        audit ? refused UNDECODABLE_EVENT
        state r1 attempt 1 outstanding
        > write responses megabytes; respond r1 good
        agent r1 success
        quarantine ? UNDECODABLE_EVENT responses-0@3 omitted TooLarge
        audit ? refused UNDECODABLE_EVENT
        audit r1 accepted
        state r1 attempt 1 closed accepted
        > write requests null; write requests noise; write requests megabytes; announce r2 ci.job_status
        quarantine ? UNDECODABLE_EVENT requests-0@1 kept 0
        quarantine ? UNDECODABLE_EVENT requests-0@2 kept 4
        quarantine ? UNDECODABLE_EVENT requests-0@3 omitted TooLarge
        audit ? refused UNDECODABLE_EVENT
        audit ? refused UNDECODABLE_EVENT
        audit ? refused UNDECODABLE_EVENT
        state r2 attempt 1 outstanding
        > respond r2 good
        agent r2 success
        audit r2 accepted
        state r2 attempt 1 closed accepted
        ",
    );
}

#[test]
fn without_a_contract_nothing_is_delivered() {
    check(
        "
        > announce r1 nobody.knows; respond r1 good tool=nobody.knows
        agent r1 failure INVALID_RESPONSE retryable=false
        quarantine r1 UNKNOWN_TOOL responses-0@0 kept 134
        audit r1 refused UNKNOWN_TOOL INVALID_RESPONSE
        state r1 attempt 1 closed refused
        > announce r2 ci.job_status version=9; respond r2 good
        agent r2 failure INVALID_RESPONSE retryable=false
        quarantine r2 UNKNOWN_CONTRACT responses-0@1 kept 134
        audit r2 refused UNKNOWN_CONTRACT INVALID_RESPONSE
        state r2 attempt 1 closed refused
        > announce r3 release.state version=2; respond r3 release
        agent r3 failure INVALID_RESPONSE retryable=false
        quarantine r3 UNKNOWN_CONTRACT responses-1@0 kept 167
        audit r3 refused UNKNOWN_CONTRACT INVALID_RESPONSE
        state r3 attempt 1 closed refused
        > announce r4 nobody.knows
        state r4 attempt 1 outstanding
        > wait 62
        agent r4 failure EXPIRED retryable=false
        audit r4 expired EXPIRED
        state r4 attempt 1 closed expired
        ",
    );
}

#[test]
fn a_response_of_another_tool_ends_nothing() {
    check(
        "
        > announce r1 ci.job_status
        state r1 attempt 1 outstanding
        > respond r1 good tool=release.state
        quarantine r1 WRONG_TOOL responses-0@0 kept 134
        audit r1 refused WRONG_TOOL
        > respond r1 good
        agent r1 success
        audit r1 accepted
        state r1 attempt 1 closed accepted
        ",
    );
}

#[test]
fn a_response_to_another_call_of_the_tool_ends_nothing() {
    check(
        "
        > announce r1 mcp.sensor.read
        state r1 attempt 1 outstanding
        > respond r1 sensor-other
        quarantine r1 UNKNOWN_REQUEST responses-0@0 kept 142
        audit r1 refused UNKNOWN_REQUEST
        > respond r1 sensor
        agent r1 success
        audit r1 accepted
        state r1 attempt 1 closed accepted
        ",
    );
}

#[test]
fn a_held_request_waits_for_a_good_response() {
    check(
        "
        > announce r1 held.job_status; respond r1 prose tool=held.job_status
        quarantine r1 INVALID_JSON responses-0@0 kept 48
        audit r1 refused INVALID_JSON
        state r1 attempt 1 outstanding, 1 held
        > respond r1 foreign tool=held.job_status
        quarantine r1 BINDING_MISMATCH responses-0@1 kept 135
        audit r1 refused BINDING_MISMATCH
        state r1 attempt 1 outstanding, 2 held
        > respond r1 good tool=held.job_status
        agent r1 success
        audit r1 accepted
        state r1 attempt 1 closed accepted
        > announce r2 held.job_status
        state r2 attempt 1 outstanding
        > respond r2 prose tool=held.job_status; respond r2 foreign tool=held.job_status
        quarantine r2 INVALID_JSON responses-0@3 kept 48
        quarantine r2 BINDING_MISMATCH responses-0@4 kept 135
        audit r2 refused INVALID_JSON
        audit r2 refused BINDING_MISMATCH
        state r2 attempt 1 outstanding, 2 held
        > respond r2 twice tool=held.job_status
        agent r2 failure INVALID_RESPONSE retryable=false
        quarantine r2 DUPLICATE_MEMBER responses-0@5 kept 150
        audit r2 refused DUPLICATE_MEMBER INVALID_RESPONSE
        state r2 attempt 1 closed refused
        > announce r3 held.job_status; respond r3 prose tool=held.job_status
        quarantine r3 INVALID_JSON responses-1@0 kept 48
        audit r3 refused INVALID_JSON
        state r3 attempt 1 outstanding, 1 held
        > wait 62
        agent r3 failure EXPIRED retryable=false
        audit r3 expired EXPIRED
        state r3 attempt 1 closed expired
        ",
    );
}
