//! The state machine: every transition is a function of the record, the event, the policy and `now`.
//!
//! ```text
//! Outstanding --accepted--------------> Closed(accepted)
//!      |  |  `--failed, no retry left-> Closed(failed)
//!      |  |  `--refused---------------> Closed(refused), or held open
//!      |  `--retryable----------------> AwaitingRetry --directive, next attempt--> Outstanding
//!      `--deadline + skew-------------> Closed(expired)
//! Closed --replay window--> id and digest --retention--> forgotten
//! ```

use super::binding::{Binding, Closed, State, announcement};
use crate::contract::{Policy, Retry};
use crate::gate::decode::NewRequest;
use crate::gate::{FailureCode, Reason};
use crate::time::Timestamp;

/// What an announcement does to what is known of the request.
#[derive(Clone, Debug, PartialEq)]
pub enum Announced {
    /// A request that nobody has announced before.
    New(Binding),
    /// The next attempt of a known request.
    Reissued(Binding),
    /// A repetition, or an attempt that is over.
    Ignored,
    /// `REQUEST_CONFLICT` or `REQUEST_ID_REUSED`: what was there first stands.
    Refused(Reason, &'static str),
}

/// Takes in an announcement. `contract_version` is that of its pin, or of the active contract.
///
/// One contract judges all attempts of a request. Where one is known already, `arguments` must be
/// those that [`Binding::contract_version`] compares with, whatever has become active since.
pub fn announce(
    existing: Option<&Binding>,
    request: &NewRequest,
    contract_version: u32,
    arguments: Vec<u8>,
) -> Announced {
    let Some(known) = existing else {
        return Announced::New(Binding::of(request, contract_version, arguments));
    };
    let is_repeated = request.attempt == known.attempt && announcement(request) == known.announcement;
    if is_repeated || (request.attempt < known.attempt && *request.tool == *known.tool) {
        return Announced::Ignored;
    }
    if matches!(known.state, State::Closed { .. }) {
        return Announced::Refused(Reason::RequestIdReused, "the request of this id is closed and still remembered");
    }
    if *request.tool != *known.tool {
        return Announced::Refused(Reason::RequestConflict, "an attempt names another tool than the first one");
    }
    if request.attempt == known.attempt {
        return Announced::Refused(Reason::RequestConflict, "the attempt was announced before with other content");
    }
    let is_pinned = request.contract_version != 0 && known.contract_version != 0;
    if is_pinned && request.contract_version != known.contract_version {
        let detail = "an attempt pins another version of the contract than the one that judges the request";
        return Announced::Refused(Reason::RequestConflict, detail);
    }
    Announced::Reissued(Binding {
        attempts: known.attempts.saturating_add(1),
        first_issued_at: known.first_issued_at,
        held: known.held,
        // One request is judged by one contract, whatever has become active since.
        contract_version: if known.contract_version == 0 { contract_version } else { known.contract_version },
        ..Binding::of(request, contract_version, arguments)
    })
}

/// Does a response answer the request as it stands?
///
/// # Errors
/// The reason why it does not, and a fixed sentence.
pub fn matching(
    existing: Option<&Binding>,
    tool: &str,
    attempt: u32,
    digest: &[u8; 32],
) -> Result<(), (Reason, &'static str)> {
    let Some(known) = existing else {
        return Err((Reason::UnknownRequest, "no request of this id was announced before the response arrived"));
    };
    if !tool.is_empty() && tool != known.tool.as_ref() {
        return Err((Reason::WrongTool, "the response names another tool than the request"));
    }
    match &known.state {
        State::Closed { how: Closed::Expired, .. } => Err((Reason::LateResponse, "the request has expired")),
        State::Closed { digest: Some(first), .. } if first == digest => {
            Err((Reason::DuplicateResponse, "the request is answered already, by the same bytes"))
        }
        State::Closed { .. } => Err((Reason::DuplicateResponse, "the request is answered already, by other bytes")),
        State::Outstanding | State::AwaitingRetry { .. } if attempt < known.attempt => {
            Err((Reason::StaleAttempt, "a later attempt of the request is under way"))
        }
        State::Outstanding | State::AwaitingRetry { .. } if attempt > known.attempt => {
            Err((Reason::UnknownRequest, "this attempt of the request was not announced"))
        }
        State::AwaitingRetry { .. } => {
            Err((Reason::StaleAttempt, "this attempt has failed already and another is to follow"))
        }
        State::Outstanding => Ok(()),
    }
}

/// What was decided about a response that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    Accepted,
    Failed(&'a FailureCode),
    Refused(Reason),
}

/// What the agent is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing yet: another attempt follows, or the request is held open.
    Nothing,
    Result,
    Failure(FailureCode),
}

/// A change of a request's record, and what goes with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    pub next: Binding,
    pub answer: Answer,
}

/// The facts around a settlement.
#[derive(Clone, Copy, Debug)]
pub struct Settling<'a> {
    pub policy: &'a Policy,
    pub digest: [u8; 32],
    /// Whether the tool's retry budget has room.
    pub may_retry: bool,
    /// Any number: the jitter of the backoff is taken from it.
    pub jitter: u64,
    pub now: Timestamp,
}

/// Settles a matching response. A request that is not outstanding stays as it is, so that nobody
/// is told twice; [`matching`] lets none through.
pub fn settle(known: &Binding, verdict: Verdict<'_>, settling: &Settling<'_>) -> Transition {
    if known.state != State::Outstanding {
        return Transition { next: known.clone(), answer: Answer::Nothing };
    }
    let (code, reason, how) = match verdict {
        Verdict::Accepted => return close(known, Closed::Accepted, None, Answer::Result, settling),
        Verdict::Failed(code) => (code.clone(), Reason::UpstreamError, Closed::Failed),
        Verdict::Refused(reason) => (FailureCode::InvalidResponse, reason, Closed::Refused),
    };
    if let Some(due) = retry_due(known, &code, settling) {
        let state = State::AwaitingRetry { due: Some(due), code: code.as_str().into(), reason: reason.code().into() };
        return Transition { next: Binding { state, ..known.clone() }, answer: Answer::Nothing };
    }
    if how == Closed::Refused && known.held < settling.policy.hold {
        return Transition { next: Binding { held: known.held + 1, ..known.clone() }, answer: Answer::Nothing };
    }
    close(known, how, Some(&code), Answer::Failure(code.clone()), settling)
}

fn close(
    known: &Binding,
    how: Closed,
    code: Option<&FailureCode>,
    answer: Answer,
    settling: &Settling<'_>,
) -> Transition {
    let digest = Some(settling.digest);
    let state = closed(how, digest, code, settling.policy, settling.now);
    Transition { next: Binding { state, ..known.clone() }, answer }
}

fn closed(how: Closed, digest: Option<[u8; 32]>, code: Option<&FailureCode>, policy: &Policy, now: Timestamp) -> State {
    State::Closed {
        how,
        at: now,
        digest,
        code: code.map(|code| code.as_str().into()),
        trim_at: Some(now.saturating_add_millis(policy.replay_window_ms)),
        forget_at: now.saturating_add_millis(policy.retention_ms),
    }
}

/// When the next attempt is due, if there is to be one: the code is eligible, attempts, time and
/// the tool's budget are left, and the moment lies before the deadline.
fn retry_due(known: &Binding, code: &FailureCode, settling: &Settling<'_>) -> Option<Timestamp> {
    let retry = settling.policy.retry.as_ref()?;
    let eligible = retry.on.contains(code) && known.attempts < retry.attempts_max && settling.may_retry;
    if !eligible {
        return None;
    }
    let due = settling.now.saturating_add_millis(backoff_ms(retry, known.attempts, settling.jitter));
    let budget_ends = known.first_issued_at.saturating_add_millis(retry.budget_ms);
    (due < known.deadline && due <= budget_ends).then_some(due)
}

/// Exponential backoff with full jitter: anything from 0 to the bound of this attempt, so that
/// callers who failed together do not come back together.
fn backoff_ms(retry: &Retry, attempts: u32, jitter: u64) -> i64 {
    let doublings = attempts.saturating_sub(1).min(40);
    let bound = retry.backoff_initial_ms.saturating_mul(1 << doublings).min(retry.backoff_max_ms).max(0);
    (jitter % (bound as u64 + 1)) as i64
}

/// What is due for a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Due {
    Nothing,
    /// The dispatcher is to be told; the record says that it was.
    Directive(Binding),
    /// The agent gets its fixed failure.
    Expired(Binding),
    /// The record shrinks.
    Trim(Binding),
    Forget,
}

/// Looks what is due at `now`. `skew_ms` allows for the dispatcher's clock.
pub fn due(known: &Binding, policy: &Policy, skew_ms: i64, now: Timestamp) -> Due {
    match &known.state {
        State::Outstanding | State::AwaitingRetry { .. } if now >= known.deadline.saturating_add_millis(skew_ms) => {
            let state = closed(Closed::Expired, None, Some(&FailureCode::Expired), policy, now);
            Due::Expired(Binding { state, ..known.clone() })
        }
        State::AwaitingRetry { due: Some(due), code, reason } if now >= *due => {
            let state = State::AwaitingRetry { due: None, code: code.clone(), reason: reason.clone() };
            Due::Directive(Binding { state, ..known.clone() })
        }
        State::Outstanding | State::AwaitingRetry { .. } => Due::Nothing,
        State::Closed { forget_at, .. } if now >= *forget_at => Due::Forget,
        State::Closed { trim_at: Some(trim_at), .. } if now >= *trim_at => Due::Trim(trimmed(known)),
        State::Closed { .. } => Due::Nothing,
    }
}

/// The record without what only a replay needs.
fn trimmed(known: &Binding) -> Binding {
    let mut next = known.clone();
    next.arguments = Box::default();
    next.route = crate::wire::v1::Route::default();
    next.traceparent = None;
    next.rpc_id = None;
    if let State::Closed { trim_at, .. } = &mut next.state {
        *trim_at = None;
    }
    next
}

/// When [`due`] has something to say next.
pub fn next_due(known: &Binding, skew_ms: i64) -> Timestamp {
    let expires = known.deadline.saturating_add_millis(skew_ms);
    match &known.state {
        State::Outstanding | State::AwaitingRetry { due: None, .. } => expires,
        State::AwaitingRetry { due: Some(due), .. } => expires.min(*due),
        State::Closed { trim_at: Some(trim_at), forget_at, .. } => (*trim_at).min(*forget_at),
        State::Closed { forget_at, .. } => *forget_at,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::contract::Payload;
    use crate::wire::v1;
    use prost::Message;

    const SECOND: i64 = 1000;

    pub(in crate::request) fn now() -> Timestamp {
        Timestamp::parse_rfc3339("2026-12-01T12:00:00Z").unwrap()
    }

    fn at(seconds: i64) -> Timestamp {
        now().saturating_add_millis(seconds * SECOND)
    }

    fn request(attempt: u32) -> NewRequest {
        let issued = now().saturating_add_millis(i64::from(attempt) - 1).unix_millis();
        NewRequest::from_message(v1::ToolRequest {
            request_id: "req-0001".into(),
            tool: "ci.job_status".into(),
            arguments: br#"{"project_id":"bluebird"}"#.to_vec(),
            issued_at_unix_ms: issued,
            deadline_unix_ms: at(60).unix_millis(),
            attempt,
            ..v1::ToolRequest::default()
        })
        .unwrap()
    }

    pub(in crate::request) fn binding() -> Binding {
        Binding::of(&request(1), 2, br#"{"project_id":"bluebird"}"#.to_vec())
    }

    fn policy() -> Policy {
        Policy {
            retry: Some(Retry {
                on: vec![FailureCode::UpstreamUnavailable],
                attempts_max: 3,
                budget_ms: 50 * SECOND,
                backoff_initial_ms: SECOND,
                backoff_max_ms: 8 * SECOND,
                share_max: 0.2,
            }),
            hold: 0,
            payload: Payload::Plain,
            quarantine_retention_ms: 3600 * SECOND,
            deliver_late: false,
            replay_window_ms: 600 * SECOND,
            retention_ms: 3600 * SECOND,
        }
    }

    fn settle_at(known: &Binding, verdict: Verdict<'_>, seconds: i64) -> Transition {
        let policy = policy();
        settle(
            known,
            verdict,
            &Settling { policy: &policy, digest: [7; 32], may_retry: true, jitter: 500, now: at(seconds) },
        )
    }

    /// What a restart does to a record: to the changelog and back.
    fn restarted(known: &Binding) -> Binding {
        let bytes = known.to_message().encode_to_vec();
        Binding::from_message(v1::Binding::decode(bytes.as_slice()).unwrap()).unwrap()
    }

    fn each_state() -> Vec<Binding> {
        let outstanding = binding();
        let awaiting = settle_at(&outstanding, Verdict::Failed(&FailureCode::UpstreamUnavailable), 1).next;
        let Due::Directive(told) = due(&awaiting, &policy(), 0, at(2)) else { panic!("no directive") };
        let accepted = settle_at(&outstanding, Verdict::Accepted, 1).next;
        let failed = settle_at(&outstanding, Verdict::Failed(&FailureCode::NotFound), 1).next;
        let refused = settle_at(&outstanding, Verdict::Refused(Reason::SchemaViolation), 1).next;
        let Due::Expired(expired) = due(&outstanding, &policy(), 0, at(60)) else { panic!("not expired") };
        let Due::Trim(trimmed) = due(&accepted, &policy(), 0, at(700)) else { panic!("not trimmed") };
        vec![outstanding, awaiting, told, accepted, failed, refused, expired, trimmed]
    }

    #[test]
    fn a_restart_in_each_state_changes_nothing() {
        for known in each_state() {
            let again = restarted(&known);
            assert_eq!(again, known);
            for seconds in [0, 2, 60, 61, 700, 4000] {
                assert_eq!(due(&again, &policy(), 0, at(seconds)), due(&known, &policy(), 0, at(seconds)));
            }
            assert_eq!(next_due(&again, 0), next_due(&known, 0));
        }
    }

    #[test]
    fn what_is_due_next_is_due_then_and_not_before() {
        for known in each_state() {
            let next = next_due(&known, 0);
            assert_ne!(due(&known, &policy(), 0, next), Due::Nothing, "{:?}", known.state);
            assert_eq!(due(&known, &policy(), 0, next.saturating_add_millis(-1)), Due::Nothing, "{:?}", known.state);
        }
    }

    #[test]
    fn evidence_closes_the_request_and_a_second_answer_is_a_duplicate() {
        let transition = settle_at(&binding(), Verdict::Accepted, 1);
        assert_eq!(transition.answer, Answer::Result);
        let closed = Some(&transition.next);
        assert_eq!(matching(closed, "ci.job_status", 1, &[7; 32]).unwrap_err().0, Reason::DuplicateResponse);
        let (reason, detail) = matching(closed, "ci.job_status", 1, &[8; 32]).unwrap_err();
        assert_eq!((reason, detail.contains("other bytes")), (Reason::DuplicateResponse, true));
    }

    #[test]
    fn a_failure_that_is_not_retried_is_told_at_once() {
        let transition = settle_at(&binding(), Verdict::Failed(&FailureCode::NotFound), 1);
        assert_eq!(transition.answer, Answer::Failure(FailureCode::NotFound));
        let transition = settle_at(&binding(), Verdict::Refused(Reason::DuplicateMember), 1);
        assert_eq!(transition.answer, Answer::Failure(FailureCode::InvalidResponse));
    }

    #[test]
    fn a_retryable_failure_waits_tells_the_dispatcher_once_and_takes_the_next_attempt() {
        let waiting = settle_at(&binding(), Verdict::Failed(&FailureCode::UpstreamUnavailable), 1);
        assert_eq!(waiting.answer, Answer::Nothing);
        assert_eq!(matching(Some(&waiting.next), "", 1, &[0; 32]).unwrap_err().0, Reason::StaleAttempt);
        let Due::Directive(told) = due(&waiting.next, &policy(), 0, at(2)) else { panic!("no directive") };
        assert_eq!(due(&restarted(&told), &policy(), 0, at(3)), Due::Nothing);
        let Announced::Reissued(second) = announce(Some(&told), &request(2), 9, Vec::new()) else {
            panic!("not reissued")
        };
        assert_eq!((second.attempt, second.attempts, second.contract_version), (2, 2, 2));
        assert_eq!(matching(Some(&second), "ci.job_status", 1, &[0; 32]).unwrap_err().0, Reason::StaleAttempt);
        assert_eq!(matching(Some(&second), "ci.job_status", 2, &[0; 32]), Ok(()));
    }

    #[test]
    fn attempts_deadline_and_budget_end_the_retries() {
        let fail = Verdict::Failed(&FailureCode::UpstreamUnavailable);
        let last = Binding { attempts: 3, ..binding() };
        assert_eq!(settle_at(&last, fail, 1).answer, Answer::Failure(FailureCode::UpstreamUnavailable));
        assert_eq!(settle_at(&binding(), fail, 50).answer, Answer::Failure(FailureCode::UpstreamUnavailable));
        let policy = policy();
        let settling = Settling { policy: &policy, digest: [0; 32], may_retry: false, jitter: 0, now: at(1) };
        assert_eq!(settle(&binding(), fail, &settling).answer, Answer::Failure(FailureCode::UpstreamUnavailable));
    }

    #[test]
    fn the_deadline_expires_what_nobody_answered() {
        let Due::Expired(expired) = due(&binding(), &policy(), 2 * SECOND, at(62)) else { panic!("not expired") };
        assert_eq!(due(&binding(), &policy(), 2 * SECOND, at(61)), Due::Nothing);
        assert_eq!(matching(Some(&expired), "ci.job_status", 1, &[0; 32]).unwrap_err().0, Reason::LateResponse);
        let Due::Trim(trimmed) = due(&expired, &policy(), 0, at(700)) else { panic!("not trimmed") };
        assert!(trimmed.arguments.is_empty());
        assert_eq!(due(&trimmed, &policy(), 0, at(4000)), Due::Forget);
    }

    #[test]
    fn a_held_request_outlives_a_number_of_bad_answers() {
        let policy = Policy { hold: 2, retry: None, ..policy() };
        let settling = Settling { policy: &policy, digest: [0; 32], may_retry: true, jitter: 0, now: at(1) };
        let refused = Verdict::Refused(Reason::SignatureInvalid);
        let first = settle(&binding(), refused, &settling);
        let second = settle(&first.next, refused, &settling);
        assert_eq!((first.answer, second.answer, second.next.held), (Answer::Nothing, Answer::Nothing, 2));
        assert_eq!(matching(Some(&second.next), "", 1, &[0; 32]), Ok(()));
        assert_eq!(settle(&second.next, refused, &settling).answer, Answer::Failure(FailureCode::InvalidResponse));
    }

    #[test]
    fn odd_announcements_change_nothing() {
        let known = binding();
        let other = NewRequest { arguments: br#"{"project_id":"copperhead"}"#.to_vec(), ..request(1) };
        assert_eq!(announce(Some(&known), &request(1), 2, Vec::new()), Announced::Ignored);
        assert!(matches!(
            announce(Some(&known), &other, 2, Vec::new()),
            Announced::Refused(Reason::RequestConflict, _)
        ));
        let tool = NewRequest { tool: "release.state".into(), ..request(2) };
        assert!(matches!(announce(Some(&known), &tool, 2, Vec::new()), Announced::Refused(Reason::RequestConflict, _)));
        let pin = NewRequest { contract_version: 3, ..request(2) };
        assert!(matches!(announce(Some(&known), &pin, 3, Vec::new()), Announced::Refused(Reason::RequestConflict, _)));
        let same_pin = NewRequest { contract_version: 2, ..request(2) };
        assert!(matches!(announce(Some(&known), &same_pin, 2, Vec::new()), Announced::Reissued(_)));
        let unserved = Binding { contract_version: 0, ..binding() };
        assert!(
            matches!(announce(Some(&unserved), &pin, 3, Vec::new()), Announced::Reissued(next) if next.contract_version == 3)
        );
        let closed = settle_at(&known, Verdict::Accepted, 1).next;
        assert_eq!(announce(Some(&closed), &request(1), 2, Vec::new()), Announced::Ignored);
        assert!(matches!(
            announce(Some(&closed), &other, 2, Vec::new()),
            Announced::Refused(Reason::RequestIdReused, _)
        ));
        assert!(matches!(
            announce(Some(&closed), &request(2), 2, Vec::new()),
            Announced::Refused(Reason::RequestIdReused, _)
        ));
        let Announced::Reissued(second) = announce(Some(&known), &request(2), 2, Vec::new()) else {
            panic!("not reissued")
        };
        assert_eq!(announce(Some(&second), &request(1), 2, Vec::new()), Announced::Ignored);
    }

    #[test]
    fn a_verdict_moves_an_outstanding_request_only() {
        for known in each_state().into_iter().filter(|known| known.state != State::Outstanding) {
            let transition = settle_at(&known, Verdict::Accepted, 3);
            assert_eq!(transition, Transition { next: known, answer: Answer::Nothing });
        }
    }

    #[test]
    fn only_a_matching_answer_matches() {
        assert_eq!(matching(None, "ci.job_status", 1, &[0; 32]).unwrap_err().0, Reason::UnknownRequest);
        assert_eq!(matching(Some(&binding()), "release.state", 1, &[0; 32]).unwrap_err().0, Reason::WrongTool);
        assert_eq!(matching(Some(&binding()), "ci.job_status", 2, &[0; 32]).unwrap_err().0, Reason::UnknownRequest);
        assert_eq!(matching(Some(&binding()), "ci.job_status", 1, &[0; 32]), Ok(()));
    }

    #[test]
    fn backoff_is_jittered_over_its_whole_range_and_bounded() {
        let retry = policy().retry.unwrap();
        for attempts in 1..100 {
            for jitter in (0..40).map(|i| u64::MAX / 40 * i) {
                let wait = backoff_ms(&retry, attempts, jitter);
                let bound = (SECOND << (attempts - 1).min(3)).min(8 * SECOND);
                assert!((0..=bound).contains(&wait), "{attempts} {wait}");
            }
        }
        assert_eq!(backoff_ms(&retry, 1, 1000), 1000);
        assert_eq!(backoff_ms(&retry, 1, 1001), 0);
    }

    /// P3 on random schedules: whatever comes in whatever order, the agent hears exactly once.
    #[test]
    fn every_request_gets_exactly_one_terminal_answer() {
        let mut seed = 0x2545_F491_4F6C_DD1Du64;
        let mut random = move |n: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % n
        };
        for _ in 0..5000 {
            let mut known = binding();
            let mut answers = 0;
            let mut clock = 0;
            for _ in 0..60 {
                clock += random(4) as i64;
                known = restarted(&known);
                match due(&known, &policy(), 0, at(clock)) {
                    Due::Expired(next) => {
                        answers += 1;
                        known = next;
                    }
                    Due::Directive(next) | Due::Trim(next) => known = next,
                    Due::Nothing | Due::Forget => {}
                }
                if random(3) == 0
                    && let Announced::Reissued(next) =
                        announce(Some(&known), &request(known.attempt + random(2) as u32), 2, Vec::new())
                {
                    known = next;
                }
                if matching(Some(&known), "ci.job_status", known.attempt, &[1; 32]).is_err() {
                    continue;
                }
                let verdict = match random(6) {
                    0 => Verdict::Accepted,
                    1 => Verdict::Failed(&FailureCode::NotFound),
                    2 => Verdict::Refused(Reason::SchemaViolation),
                    3 | 4 => Verdict::Failed(&FailureCode::UpstreamUnavailable),
                    _ => continue,
                };
                let transition = settle_at(&known, verdict, clock);
                answers += usize::from(transition.answer != Answer::Nothing);
                known = transition.next;
            }
            if clock >= 60 {
                let expired = matches!(due(&known, &policy(), 0, at(clock)), Due::Expired(_));
                assert_eq!(answers + usize::from(expired), 1);
            }
            assert!(answers <= 1);
        }
    }
}
