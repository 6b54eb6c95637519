//! One partition: its requests, and what an event does to them.
//!
//! Pure: records in, [`Effects`] out. Memory changes as a batch is worked through and is undone as
//! a whole where the batch does not become durable. Stage 3 (`match`) happens here, because it is
//! the one stage that needs the state; the stages after it see a request and a contract.

mod audit;
mod respond;
mod settlement;

pub use settlement::{AgentMessage, Effects, Outcome, Scheduled, Settlement};

use crate::contract::fixture::Secrets;
use crate::contract::{Contract, Lookup, Payload, Policy, Registry};
use crate::gate::decode::{Encoding, NewRequest, decode_request};
use crate::gate::json::write_members;
use crate::gate::parse::{Limits, Tape};
use crate::gate::{Bench, FailureCode};
use crate::log::{Offset, Partition, Record};
use crate::request::machine::{self, Announced, Due};
use crate::request::{Binding, RetryBudget, State, Table, Timers};
use crate::time::Timestamp;
use crate::wire::v1;
use prost::Message;
use std::collections::VecDeque;
use std::sync::Arc;

/// What all partitions of a worker share.
#[derive(Debug)]
pub struct Around {
    pub registry: Registry,
    pub secrets: Secrets,
    /// Encoding of the response topic.
    pub responses: Encoding,
    /// Names of the input topics, as operators know them.
    pub requests_topic: String,
    pub responses_topic: String,
    pub partitions: i32,
    pub group: String,
    /// Name of this worker.
    pub worker: String,
    /// What a dispatcher's clock may be off, in milliseconds.
    pub skew_ms: i64,
}

/// The state of one partition.
#[derive(Debug)]
pub struct PartitionState {
    pub id: Partition,
    table: Table,
    timers: Timers,
    budget: RetryBudget,
    waiting: VecDeque<Waiting>,
    bench: Bench,
    shadow: Bench,
    arguments: Tape,
    jitter: u64,
}

/// A response that was read and not judged yet.
#[derive(Debug)]
struct Waiting {
    record: Record,
    /// The end of the request topic when the request was missed: absence below it is proof.
    until: Option<Offset>,
}

/// Why the next response can't be judged yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// All responses are judged.
    No,
    /// Its request is unknown: the caller must say where the request topic ends now.
    AskEnd,
    /// Requests must be applied up to this offset first.
    Until(Offset),
}

impl PartitionState {
    /// An empty partition. `seed` makes hashes and jitter unpredictable to those who choose ids.
    pub fn new(id: Partition, seed: u64) -> PartitionState {
        PartitionState {
            id,
            table: Table::new(seed),
            timers: Timers::default(),
            budget: RetryBudget::default(),
            waiting: VecDeque::new(),
            bench: Bench::default(),
            shadow: Bench::default(),
            arguments: Tape::default(),
            jitter: seed | 1,
        }
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }

    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Responses that wait for their request.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// When a timer is due next, in milliseconds since the epoch.
    pub fn next_due_ms(&self) -> Option<i64> {
        self.timers.next_due_ms()
    }

    pub fn binding(&self, request_id: &str) -> Option<Binding> {
        self.table.get(request_id)
    }

    pub fn bindings(&self) -> impl Iterator<Item = Binding> {
        self.table.iter()
    }

    /// Applies one record of the changelog.
    ///
    /// # Errors
    /// The record is none that this program writes.
    pub fn restore(&mut self, record: &Record) -> Result<(), String> {
        let at = record.position;
        let key = record
            .key
            .as_deref()
            .and_then(|key| std::str::from_utf8(key).ok())
            .ok_or(format!("{at}: the key is no request id"))?;
        match &record.value {
            None => self.table.forget(key),
            Some(value) => {
                let message = v1::Binding::decode(value.as_slice()).map_err(|error| format!("{at}: {error}"))?;
                let known = Binding::from_message(message).map_err(|why| format!("{at}: {why}"))?;
                self.table.put(&known);
            }
        }
        Ok(())
    }

    /// Rebuilds timers and budgets, after the last record of the changelog.
    pub fn restored(&mut self, around: &Around) {
        self.timers = Timers::default();
        self.budget = RetryBudget::default();
        for known in self.table.iter() {
            self.timers.set(machine::next_due(&known, around.skew_ms), self.table.hash(&known.request_id));
            self.budget.restore(&known);
        }
    }

    /// Starts a batch.
    pub fn begin(&mut self) {
        self.table.begin();
        self.timers.begin();
        self.budget.begin();
    }

    /// The batch is durable.
    pub fn commit(&mut self) {
        self.table.commit();
        self.timers.commit();
        self.budget.commit();
    }

    /// The batch is not durable: the state is what it was before, and unjudged responses will be read again.
    pub fn rollback(&mut self) {
        self.table.rollback();
        self.timers.rollback();
        self.budget.rollback();
        self.waiting.clear();
    }

    /// Takes in an announcement.
    pub fn request(&mut self, record: &Record, around: &Around, now: Timestamp, effects: &mut Effects) {
        let request = match decode_request(record.key.as_deref(), record.value.as_deref()) {
            Ok(request) => request,
            Err(error) => {
                return effects.settlements.push(audit::undecodable(
                    record,
                    &around.requests_topic,
                    error,
                    around,
                    now,
                ));
            }
        };
        let existing = self.announced(&request.request_id, around, now, effects);
        // One contract judges all attempts: its arguments are kept, whatever has become active since the first.
        let judged_by = existing.as_ref().map(|known| known.contract_version).filter(|version| *version != 0);
        let lookup = around.registry.look_up(&request.tool, judged_by.unwrap_or(request.contract_version));
        let (version, arguments) = match &lookup {
            Lookup::Found(contract) => (contract.version, project(&request, contract)),
            // Judged by whatever is loaded when the response comes; all arguments are kept until then.
            Lookup::UnknownTool | Lookup::UnknownVersion => (request.contract_version, request.arguments.clone()),
        };
        match machine::announce(existing.as_ref(), &request, version, arguments) {
            Announced::Ignored => {}
            Announced::New(known) => {
                self.budget.first(&known.tool, now);
                effects.announced.push((known.tool.clone(), version));
                self.put(known, around, effects);
            }
            Announced::Reissued(known) => self.put(known, around, effects),
            Announced::Refused(reason, detail) => {
                let settlement = audit::odd_request(record, &request, existing.as_ref(), (reason, detail), around, now);
                effects.settlements.push(settlement);
            }
        }
    }

    /// The request's record as an announcement finds it: a deadline that has passed is settled first, so that no
    /// attempt revives the request, and an id whose retention is over is free. A retry that is due stays so,
    /// because the announcement may be that of the very attempt.
    fn announced(
        &mut self,
        request_id: &str,
        around: &Around,
        now: Timestamp,
        effects: &mut Effects,
    ) -> Option<Binding> {
        let known = self.table.get(request_id)?;
        let waits = matches!(known.state, State::AwaitingRetry { .. });
        let is_over = now >= known.deadline.saturating_add_millis(around.skew_ms);
        let is_changed = (!waits || is_over) && self.due_for(&known, around, now, effects);
        if is_changed { self.table.get(request_id) } else { Some(known) }
    }

    /// Queues a response; [`respond`](Self::respond) judges in this order.
    pub fn receive(&mut self, record: Record) {
        self.waiting.push_back(Waiting { record, until: None });
    }

    /// The next offset to commit for the responses, where any were judged or wait.
    pub fn first_waiting(&self) -> Option<Offset> {
        self.waiting.front().map(|waiting| waiting.record.position.offset)
    }

    /// Tells the front response, whose request is unknown, where the request topic ends now.
    pub fn set_end(&mut self, end: Offset) {
        if let Some(front) = self.waiting.front_mut() {
            front.until = Some(end);
        }
    }

    /// Works through timers that are due, at most `max` of them.
    pub fn due(&mut self, around: &Around, now: Timestamp, max: usize, effects: &mut Effects) {
        for _ in 0..max {
            let Some(hash) = self.timers.pop_due(now) else { return };
            for known in self.table.with_hash(hash) {
                self.due_for(&known, around, now, effects);
            }
        }
    }

    /// Does what is due for one request; true where its record is another one then.
    fn due_for(&mut self, known: &Binding, around: &Around, now: Timestamp, effects: &mut Effects) -> bool {
        let contract = self.contract(known, around);
        let policy = contract.as_deref().map_or(&FALLBACK_POLICY, |contract| &contract.policy);
        match machine::due(known, policy, around.skew_ms, now) {
            Due::Nothing => return false,
            Due::Directive(next) => {
                effects.directives.push(audit::directive(known, contract.as_deref()));
                self.put(next, around, effects);
            }
            Due::Expired(next) => {
                effects.settlements.push(audit::expired(known, contract, around, now));
                self.put(next, around, effects);
            }
            Due::Trim(next) => self.put(next, around, effects),
            Due::Forget => {
                self.table.forget(&known.request_id);
                effects.bindings.push((known.request_id.to_string(), None));
            }
        }
        true
    }

    fn contract(&self, known: &Binding, around: &Around) -> Option<Arc<Contract>> {
        match around.registry.look_up(&known.tool, known.contract_version) {
            Lookup::Found(contract) => Some(contract),
            Lookup::UnknownTool | Lookup::UnknownVersion => None,
        }
    }

    fn put(&mut self, known: Binding, around: &Around, effects: &mut Effects) {
        self.table.put(&known);
        self.timers.set(machine::next_due(&known, around.skew_ms), self.table.hash(&known.request_id));
        if let State::AwaitingRetry { due: Some(due), .. } = known.state {
            self.budget.retry(&known.tool, due);
        }
        effects.bindings.push((known.request_id.to_string(), Some(known)));
    }

    /// The next number of a generator that needs no more than to be unlike its neighbours'.
    fn next_jitter(&mut self) -> u64 {
        self.jitter ^= self.jitter << 13;
        self.jitter ^= self.jitter >> 7;
        self.jitter ^= self.jitter << 17;
        self.jitter.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

/// What applies where no contract is loaded: nothing is retried, everything is kept.
static FALLBACK_POLICY: Policy = Policy {
    retry: None,
    hold: 0,
    payload: Payload::Plain,
    quarantine_retention_ms: 30 * 86_400_000,
    deliver_late: false,
    replay_window_ms: 86_400_000,
    retention_ms: 2 * 86_400_000,
};

/// The arguments that the contract and its shadows compare with.
fn project(request: &NewRequest, contract: &Contract) -> Vec<u8> {
    let mut tape = Tape::default();
    let Ok(document) = tape.parse(&request.arguments, &Limits::default()) else { return Vec::new() };
    let kept = document.root().members().filter(|(name, _)| contract.arguments.contains(*name));
    let mut out = String::new();
    write_members(kept, &mut out);
    if out == "{}" { Vec::new() } else { out.into_bytes() }
}

/// Whether an agent is told that asking again is sensible.
fn is_retryable(contract: Option<&Contract>, code: &FailureCode) -> bool {
    contract.is_some_and(|contract| contract.is_retryable(code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Reason;
    use crate::log::{Position, Topic};

    fn around() -> Around {
        Around {
            registry: Registry::default(),
            secrets: Secrets::default(),
            responses: Encoding::Protobuf,
            requests_topic: "tool.requests".into(),
            responses_topic: "tool.responses".into(),
            partitions: 1,
            group: "test".into(),
            worker: "test".into(),
            skew_ms: 0,
        }
    }

    fn record(topic: Topic, offset: i64, value: Vec<u8>) -> Record {
        let position = Position { topic, partition: Partition(0), offset: Offset(offset) };
        Record { position, timestamp_ms: 0, key: Some(b"req-0001".to_vec()), value: Some(value), headers: Vec::new() }
    }

    /// Timers have a bound for each step; a response must not slip in before its request's own.
    #[test]
    fn a_deadline_that_has_passed_is_settled_before_the_response_is_looked_at() {
        let (around, now) = (around(), Timestamp::from_unix_millis(10_000).unwrap());
        let mut state = PartitionState::new(Partition(0), 1);
        let mut effects = Effects::default();
        let request = v1::ToolRequest {
            request_id: "req-0001".into(),
            tool: "any.tool".into(),
            issued_at_unix_ms: 1000,
            deadline_unix_ms: 9000,
            attempt: 1,
            ..v1::ToolRequest::default()
        };
        state.request(&record(Topic::Requests, 0, request.encode_to_vec()), &around, now, &mut effects);
        let response = v1::ToolResponse {
            request_id: "req-0001".into(),
            tool: "any.tool".into(),
            attempt: 1,
            body: b"{}".to_vec(),
            ..v1::ToolResponse::default()
        };
        state.receive(record(Topic::Responses, 0, response.encode_to_vec()));
        assert_eq!(state.respond(&around, Offset(1), now, &mut effects), Blocked::No);
        let outcomes: Vec<_> = effects.settlements.iter().map(|s| (s.outcome, s.reason)).collect();
        assert_eq!(outcomes, [(Outcome::Expired, None), (Outcome::Refused, Some(Reason::LateResponse))]);
    }

    #[test]
    fn a_response_without_its_request_asks_for_the_end_of_the_requests_and_waits_for_it() {
        let (around, now) = (around(), Timestamp::from_unix_millis(10_000).unwrap());
        let mut state = PartitionState::new(Partition(0), 1);
        let mut effects = Effects::default();
        let response = v1::ToolResponse {
            request_id: "req-0001".into(),
            tool: "any.tool".into(),
            attempt: 1,
            ..v1::ToolResponse::default()
        };
        state.receive(record(Topic::Responses, 7, response.encode_to_vec()));
        assert_eq!(state.respond(&around, Offset(3), now, &mut effects), Blocked::AskEnd);
        state.set_end(Offset(5));
        assert_eq!(state.respond(&around, Offset(4), now, &mut effects), Blocked::Until(Offset(5)));
        assert_eq!((state.first_waiting(), effects.settlements.len()), (Some(Offset(7)), 0));
        assert_eq!(state.respond(&around, Offset(5), now, &mut effects), Blocked::No);
        assert_eq!(effects.settlements[0].reason, Some(Reason::UnknownRequest));
    }
}
