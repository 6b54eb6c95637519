//! Stage 3 of 10: match.
//!
//! Finds the outstanding request that a response claims to answer, by id, tool and attempt, and
//! hands both to the stages after it. A response that matches nothing never reaches an agent and
//! never ends a request. What the response says is not looked at here.

use super::audit::{self, Judged};
use super::settlement::{Effects, Outcome, Scheduled, agent_headers};
use super::{AgentMessage, Around, Blocked, FALLBACK_POLICY, PartitionState, Settlement, is_retryable};
use crate::contract::{Contract, Lookup};
use crate::gate::decode::{RawResponse, decode_response};
use crate::gate::select::AgentResult;
use crate::gate::{self, Bench, Case, Diagnosis, FailureCode, Reason, Request, RpcId, Stage, Stop};
use crate::log::partitioner::partition_of;
use crate::log::{Offset, Record};
use crate::request::machine::{self, Answer, Settling, Verdict};
use crate::request::{Binding, State};
use crate::time::Timestamp;
use crate::wire::cloudevents::EventType;
use std::sync::Arc;

impl PartitionState {
    /// Judges waiting responses in order, until one has to wait for its request. `applied` is the
    /// next request offset: everything below it has been taken in.
    pub fn respond(&mut self, around: &Around, applied: Offset, now: Timestamp, effects: &mut Effects) -> Blocked {
        while let Some(front) = self.waiting.pop_front() {
            let until = front.until;
            let is_proof = until.is_some_and(|until| applied >= until);
            if !self.judge(&front.record, is_proof, around, now, effects) {
                self.waiting.push_front(front);
                return until.map_or(Blocked::AskEnd, Blocked::Until);
            }
        }
        Blocked::No
    }

    /// Judges one response; false where its request may still be on its way.
    fn judge(
        &mut self,
        record: &Record,
        is_proof: bool,
        around: &Around,
        now: Timestamp,
        effects: &mut Effects,
    ) -> bool {
        let headers = record.headers.iter().map(|header| (header.name.as_str(), header.value.as_deref()));
        let response = match decode_response(around.responses, record.key.as_deref(), record.value.as_deref(), headers)
        {
            Ok(response) => response,
            Err(error) => {
                effects.settlements.push(audit::undecodable(record, &around.responses_topic, error, around, now));
                return true;
            }
        };
        let Some(known) = self.current(response.request_id(), around, now, effects) else {
            if !is_proof {
                return false;
            }
            let (reason, detail) = self.absence(record, around);
            effects.settlements.push(self.unmatched(record, &response, None, reason, detail, around, now));
            return true;
        };
        let digest = *response.body().digest().as_bytes();
        match machine::matching(Some(&known), response.tool(), response.attempt(), &digest) {
            // The announcement of a later attempt may still be on its way, as that of a request may.
            Err((Reason::UnknownRequest, _)) if !is_proof => return false,
            Err((reason, detail)) => {
                let settlement =
                    self.unmatched(record, &response, Some(&known), reason, Diagnosis::of(detail), around, now);
                effects.settlements.push(settlement);
            }
            Ok(()) => self.settle(record, &response, &known, around, now, effects),
        }
        true
    }

    /// The request's record as of now: a deadline that has passed is settled before the response is looked at.
    fn current(&mut self, request_id: &str, around: &Around, now: Timestamp, effects: &mut Effects) -> Option<Binding> {
        let known = self.table.get(request_id)?;
        if self.due_for(&known, around, now, effects) { self.table.get(request_id) } else { Some(known) }
    }

    fn absence(&self, record: &Record, around: &Around) -> (Reason, Diagnosis) {
        let expected = partition_of(record.key.as_deref().unwrap_or_default(), around.partitions);
        if expected == self.id {
            return (
                Reason::UnknownRequest,
                Diagnosis::of("no request of this id was announced before the response arrived"),
            );
        }
        let diagnosis = Diagnosis {
            keyword: "partition".into(),
            expected: format!("partition {expected}, where the key belongs; it came on {}", self.id),
            ..Diagnosis::of("the record's key belongs to another partition")
        };
        (Reason::Misrouted, diagnosis)
    }

    #[allow(clippy::too_many_arguments, reason = "the facts of one refusal")]
    fn unmatched(
        &self,
        record: &Record,
        response: &RawResponse,
        known: Option<&Binding>,
        reason: Reason,
        diagnosis: Diagnosis,
        around: &Around,
        now: Timestamp,
    ) -> Settlement {
        let judged = Judged {
            record,
            response,
            known,
            contract: known.and_then(|known| self.contract(known, around)),
            around,
            now,
        };
        judged.settlement(Outcome::Refused, Some(reason), Stage::Match, Some(diagnosis), None, None)
    }

    /// Decides a matching response and settles its request.
    fn settle(
        &mut self,
        record: &Record,
        response: &RawResponse,
        known: &Binding,
        around: &Around,
        now: Timestamp,
        effects: &mut Effects,
    ) {
        let lookup = around.registry.look_up(&known.tool, known.contract_version);
        let contract = match &lookup {
            Lookup::Found(contract) => Some(contract.clone()),
            Lookup::UnknownTool | Lookup::UnknownVersion => None,
        };
        let decision = match &lookup {
            Lookup::Found(contract) => {
                decide(&mut self.bench, &mut self.arguments, response, known, contract, around, now)
            }
            Lookup::UnknownTool => Err(unserved(Reason::UnknownTool)),
            Lookup::UnknownVersion => Err(unserved(Reason::UnknownContract)),
        };
        self.shadows(response, known, &decision, around, now, effects);
        let judged = Judged { record, response, known: Some(known), contract: contract.clone(), around, now };
        // A JSON-RPC id of another call: the response answers something else and ends nothing.
        if let Err(Stop::Refused(refusal)) = &decision
            && refusal.reason.stage() == Stage::Match
        {
            let diagnosis = Some(refusal.diagnosis.clone());
            let settlement =
                judged.settlement(Outcome::Refused, Some(refusal.reason), refusal.stage, diagnosis, None, None);
            return effects.settlements.push(settlement);
        }
        let verdict = match &decision {
            Ok(_) => Verdict::Accepted,
            Err(Stop::Failed(failure)) => Verdict::Failed(&failure.code),
            Err(Stop::Refused(refusal)) => Verdict::Refused(refusal.reason),
        };
        let policy = contract.as_deref().map_or(&FALLBACK_POLICY, |contract| &contract.policy);
        let share = policy.retry.as_ref().map_or(0.0, |retry| retry.share_max);
        let may_retry = self.budget.allows(&known.tool, share, now);
        let digest = *response.body().digest().as_bytes();
        let settling = Settling { policy, digest, may_retry, jitter: self.next_jitter(), now };
        let transition = machine::settle(known, verdict, &settling);
        effects.settlements.push(judged.settled(&decision, &transition.answer, &transition.next));
        self.put(transition.next, around, effects);
    }

    /// Lets the tool's shadow versions judge the same response; they publish nothing.
    fn shadows(
        &mut self,
        response: &RawResponse,
        known: &Binding,
        published: &Result<String, Stop>,
        around: &Around,
        now: Timestamp,
        effects: &mut Effects,
    ) {
        for contract in around.registry.shadows(&known.tool) {
            let own = decide(&mut self.shadow, &mut self.arguments, response, known, contract, around, now);
            let differs = match (&own, published) {
                (Ok(own), Ok(published)) => own != published,
                (Err(own), Err(published)) => own != published,
                (Ok(_), Err(_)) | (Err(_), Ok(_)) => true,
            };
            if differs {
                let line = own.map_or_else(|stop| crate::contract::fixture::describe(&stop), |_| "accepted".to_owned());
                effects.disagreements.push((contract.clone(), line));
            }
        }
    }
}

fn unserved(reason: Reason) -> Stop {
    Stop::refuse(Stage::Decode, reason, Diagnosis::of(reason.summary()))
}

fn decide(
    bench: &mut Bench,
    tape: &mut gate::parse::Tape,
    response: &RawResponse,
    known: &Binding,
    contract: &Contract,
    around: &Around,
    now: Timestamp,
) -> Result<String, Stop> {
    let arguments = gate::arguments(&known.arguments, tape).unwrap_or(None);
    let rpc_id = known.rpc_id.as_deref().map_or(RpcId::RequestId(&known.request_id), RpcId::Json);
    let request = Request { id: &known.request_id, tool: &known.tool, issued_at: known.issued_at, arguments, rpc_id };
    let case = Case { response, request, contract, secrets: &around.secrets, now };
    gate::decide(&case, bench).map(|result| result.as_str().to_owned())
}

impl Judged<'_> {
    /// The settlement of a response that matched its request.
    fn settled(&self, decision: &Result<String, Stop>, answer: &Answer, next: &Binding) -> Settlement {
        let (outcome, reason, stage, diagnosis) = match decision {
            Ok(_) => (Outcome::Accepted, None, Stage::Emit, None),
            Err(Stop::Failed(failure)) => {
                (Outcome::Failed, Some(Reason::UpstreamError), failure.stage, Some(failure.diagnosis.clone()))
            }
            Err(Stop::Refused(refusal)) => {
                (Outcome::Refused, Some(refusal.reason), refusal.stage, Some(refusal.diagnosis.clone()))
            }
        };
        let code = match answer {
            Answer::Failure(code) => Some(code.clone()),
            Answer::Nothing | Answer::Result => None,
        };
        let agent = match (answer, decision) {
            (Answer::Result, Ok(json)) => Some(self.agent(json.clone(), EventType::ResultAccepted)),
            (Answer::Failure(code), _) => self
                .known
                .map(|known| failure(known, self.contract.as_ref(), code, self.decision_id(), self.around, self.now)),
            (Answer::Result, Err(_)) | (Answer::Nothing, _) => None,
        };
        let mut settlement = self.settlement(outcome, reason, stage, diagnosis, agent, code);
        settlement.scheduled = scheduled(next);
        settlement.audit.retry_due_unix_ms = settlement.scheduled.as_ref().map_or(0, |s| s.not_before.unix_millis());
        if let (Some(quarantine), Some(scheduled)) = (&mut settlement.quarantine, &settlement.scheduled)
            && let Some(retry) = &mut quarantine.retry
        {
            retry.next_due_unix_ms = scheduled.not_before.unix_millis();
        }
        settlement
    }

    fn agent(&self, json: String, kind: EventType) -> AgentMessage {
        let known = self.known.map(Binding::reply_key).unwrap_or_default().to_owned();
        let headers = self
            .known
            .map(|known| {
                agent_headers(
                    known,
                    &json,
                    (&self.decision_id(), kind, self.now),
                    self.contract.as_deref(),
                    &self.around.group,
                )
            })
            .unwrap_or_default();
        AgentMessage { key: known, json, headers }
    }
}

fn scheduled(next: &Binding) -> Option<Scheduled> {
    match &next.state {
        State::AwaitingRetry { due: Some(due), code, .. } => {
            Some(Scheduled { attempt: next.attempt + 1, not_before: *due, code: FailureCode::named(code) })
        }
        State::Outstanding | State::AwaitingRetry { due: None, .. } | State::Closed { .. } => None,
    }
}

/// The fixed failure: nothing in it comes from the response.
pub(super) fn failure(
    known: &Binding,
    contract: Option<&Arc<Contract>>,
    code: &FailureCode,
    decision_id: String,
    around: &Around,
    now: Timestamp,
) -> AgentMessage {
    let request = Request {
        id: &known.request_id,
        tool: &known.tool,
        issued_at: known.issued_at,
        arguments: None,
        rpc_id: RpcId::RequestId(""),
    };
    let contract = contract.map(|contract| contract.as_ref());
    let mut out = String::new();
    let json = AgentResult::failure(&request, code, is_retryable(contract, code), &mut out).as_str().to_owned();
    let headers = agent_headers(known, &json, (&decision_id, EventType::ResultFailed, now), contract, &around.group);
    AgentMessage { key: known.reply_key().to_owned(), json, headers }
}
