//! Requests over time: odd announcements, retries, deadlines, and what is kept afterwards.

use crate::transcript::check;

#[test]
fn a_repeated_announcement_changes_nothing_and_another_one_is_audited() {
    check(
        "
        > announce r1 ci.job_status
        state r1 attempt 1 outstanding
        > announce r1 ci.job_status
        > announce r1 ci.job_status deadline=90
        audit r1 refused REQUEST_CONFLICT
        > announce r1 release.state attempt=2
        audit r1 refused REQUEST_CONFLICT
        > respond r1 good
        agent r1 success
        audit r1 accepted
        state r1 attempt 1 closed accepted
        > announce r1 ci.job_status deadline=90
        audit r1 refused REQUEST_ID_REUSED
        > announce r1 ci.job_status
        ",
    );
}

#[test]
fn a_retryable_failure_is_asked_again_once_it_is_due() {
    check(
        "
        > announce r1 ci.job_status
        state r1 attempt 1 outstanding
        > respond r1 unavailable
        quarantine r1 UPSTREAM_ERROR responses-0@0 kept 37
        audit r1 failed UPSTREAM_ERROR
        state r1 attempt 1 awaits its retry
        > respond r1 good
        quarantine r1 STALE_ATTEMPT responses-0@1 kept 134
        audit r1 refused STALE_ATTEMPT
        > wait 2
        retry r1 attempt 2 UPSTREAM_UNAVAILABLE
        state r1 attempt 1 awaits its next attempt
        > respond r1 good
        quarantine r1 STALE_ATTEMPT responses-0@2 kept 134
        audit r1 refused STALE_ATTEMPT
        > announce r1 ci.job_status attempt=2
        state r1 attempt 2 outstanding
        > respond r1 good
        quarantine r1 STALE_ATTEMPT responses-0@3 kept 134
        audit r1 refused STALE_ATTEMPT
        > respond r1 good attempt=2
        agent r1 success
        audit r1 accepted
        state r1 attempt 2 closed accepted
        > wait 100
        ",
    );
}

#[test]
fn retries_end_and_the_agent_learns_it() {
    check(
        "
        > announce r1 ci.job_status
        state r1 attempt 1 outstanding
        > respond r1 unavailable
        quarantine r1 UPSTREAM_ERROR responses-0@0 kept 37
        audit r1 failed UPSTREAM_ERROR
        state r1 attempt 1 awaits its retry
        > wait 2
        retry r1 attempt 2 UPSTREAM_UNAVAILABLE
        state r1 attempt 1 awaits its next attempt
        > announce r1 ci.job_status attempt=2
        state r1 attempt 2 outstanding
        > respond r1 unavailable attempt=2
        quarantine r1 UPSTREAM_ERROR responses-0@1 kept 37
        audit r1 failed UPSTREAM_ERROR
        state r1 attempt 2 awaits its retry
        > wait 4
        retry r1 attempt 3 UPSTREAM_UNAVAILABLE
        state r1 attempt 2 awaits its next attempt
        > announce r1 ci.job_status attempt=3
        state r1 attempt 3 outstanding
        > respond r1 unavailable attempt=3
        agent r1 failure UPSTREAM_UNAVAILABLE retryable=true
        quarantine r1 UPSTREAM_ERROR responses-0@2 kept 37
        audit r1 failed UPSTREAM_ERROR UPSTREAM_UNAVAILABLE
        state r1 attempt 3 closed failed
        > respond r1 good attempt=3
        quarantine r1 DUPLICATE_RESPONSE responses-0@3 kept 134
        audit r1 refused DUPLICATE_RESPONSE
        ",
    );
}

#[test]
fn a_response_that_overtakes_the_next_attempt_is_accepted() {
    check(
        "
        > announce r1 ci.job_status
        state r1 attempt 1 outstanding
        > respond r1 unavailable
        quarantine r1 UPSTREAM_ERROR responses-0@0 kept 37
        audit r1 failed UPSTREAM_ERROR
        state r1 attempt 1 awaits its retry
        > wait 2
        retry r1 attempt 2 UPSTREAM_UNAVAILABLE
        state r1 attempt 1 awaits its next attempt
        > respond r1 good attempt=2; announce r1 ci.job_status attempt=2
        agent r1 success
        audit r1 accepted
        state r1 attempt 2 closed accepted
        > announce r2 ci.job_status
        state r2 attempt 1 outstanding
        > respond r2 good attempt=2
        quarantine r2 UNKNOWN_REQUEST responses-0@2 kept 134
        audit r2 refused UNKNOWN_REQUEST
        > respond r2 good
        agent r2 success
        audit r2 accepted
        state r2 attempt 1 closed accepted
        ",
    );
}

#[test]
fn a_deadline_that_passes_is_told_once() {
    check(
        "
        > announce r1 ci.job_status
        state r1 attempt 1 outstanding
        > wait 61
        > wait 1
        agent r1 failure EXPIRED retryable=false
        audit r1 expired EXPIRED
        state r1 attempt 1 closed expired
        > respond r1 good
        quarantine r1 LATE_RESPONSE responses-0@0 kept 134
        audit r1 refused LATE_RESPONSE
        > wait 10
        ",
    );
}

#[test]
fn a_response_after_the_deadline_is_late_even_where_it_is_read_first() {
    check(
        "
        > announce r1 ci.job_status
        state r1 attempt 1 outstanding
        > respond r1 good; wait 63
        agent r1 failure EXPIRED retryable=false
        quarantine r1 LATE_RESPONSE responses-0@0 kept 134
        audit r1 expired EXPIRED
        audit r1 refused LATE_RESPONSE
        state r1 attempt 1 closed expired
        > announce r2 ci.job_status deadline=1 ago=10; wait 4; respond r2 good
        agent r2 failure EXPIRED retryable=false
        quarantine r2 LATE_RESPONSE responses-0@1 kept 134
        audit r2 expired EXPIRED
        audit r2 refused LATE_RESPONSE
        state r2 attempt 1 closed expired
        ",
    );
}

#[test]
fn a_retry_that_nobody_makes_expires() {
    check(
        "
        > announce r1 ci.job_status
        state r1 attempt 1 outstanding
        > respond r1 unavailable
        quarantine r1 UPSTREAM_ERROR responses-0@0 kept 37
        audit r1 failed UPSTREAM_ERROR
        state r1 attempt 1 awaits its retry
        > wait 2
        retry r1 attempt 2 UPSTREAM_UNAVAILABLE
        state r1 attempt 1 awaits its next attempt
        > wait 60
        agent r1 failure EXPIRED retryable=false
        audit r1 expired EXPIRED
        state r1 attempt 1 closed expired
        ",
    );
}

#[test]
fn a_closed_request_shrinks_and_is_forgotten() {
    check(
        "
        > announce r1 ci.job_status; respond r1 good
        agent r1 success
        audit r1 accepted
        state r1 attempt 1 closed accepted
        > wait 86399
        > wait 1
        state r1 attempt 1 closed accepted, trimmed
        > respond r1 good
        quarantine r1 DUPLICATE_RESPONSE responses-0@1 kept 134
        audit r1 refused DUPLICATE_RESPONSE
        > announce r1 ci.job_status attempt=2
        audit r1 refused REQUEST_ID_REUSED
        > wait 86400
        state r1 forgotten
        > respond r1 good
        quarantine r1 UNKNOWN_REQUEST responses-0@2 kept 134
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
fn a_request_that_has_expired_is_not_revived_by_its_next_attempt() {
    check(
        "
        > announce r1 ci.job_status
        state r1 attempt 1 outstanding
        > wait 62; announce r1 ci.job_status attempt=2
        agent r1 failure EXPIRED retryable=false
        audit r1 expired EXPIRED
        audit r1 refused REQUEST_ID_REUSED
        state r1 attempt 1 closed expired
        > respond r1 good attempt=2
        quarantine r1 LATE_RESPONSE responses-0@0 kept 134
        audit r1 refused LATE_RESPONSE
        ",
    );
}

#[test]
fn an_id_that_is_due_to_be_forgotten_is_free_again() {
    check(
        "
        > announce r1 ci.job_status; respond r1 good
        agent r1 success
        audit r1 accepted
        state r1 attempt 1 closed accepted
        > wait 172800; announce r1 ci.job_status
        state r1 attempt 1 outstanding
        > respond r1 good
        agent r1 success
        audit r1 accepted
        state r1 attempt 1 closed accepted
        ",
    );
}
