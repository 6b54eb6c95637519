//! The record that is kept for a request, and its form on the changelog topic.

use crate::gate::decode::NewRequest;
use crate::time::Timestamp;
use crate::wire::v1;
use std::fmt;

/// What is kept for a request. Of its arguments only those that its contract compares with.
#[derive(Clone, PartialEq)]
pub struct Binding {
    pub request_id: Box<str>,
    pub tool: Box<str>,
    /// Version of the contract that judges; 0 where none was loaded when the request was announced.
    pub contract_version: u32,
    /// The current attempt, from 1: only its evidence counts.
    pub attempt: u32,
    /// Attempts announced so far. They are part of the state, so a restart refills no budget.
    pub attempts: u32,
    pub issued_at: Timestamp,
    pub first_issued_at: Timestamp,
    pub deadline: Timestamp,
    /// One JSON object, or nothing.
    pub arguments: Box<[u8]>,
    pub route: v1::Route,
    pub traceparent: Option<Box<str>>,
    pub rpc_id: Option<Box<str>>,
    /// Digest of the current attempt's announcement: tells a repetition from a conflict.
    pub announcement: [u8; 8],
    /// Inadmissible responses set aside while the request was held open.
    pub held: u32,
    pub state: State,
}

/// Where a request stands.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Waiting for evidence of the current attempt.
    Outstanding,
    /// The current attempt has failed and another is to follow.
    AwaitingRetry {
        /// When the dispatcher is told; `None` once it has been.
        due: Option<Timestamp>,
        /// The failure code and reason of the attempt that failed.
        code: Box<str>,
        reason: Box<str>,
    },
    /// The agent has its one terminal message.
    Closed {
        how: Closed,
        at: Timestamp,
        /// Digest of the response that closed it; none where its deadline did.
        digest: Option<[u8; 32]>,
        /// The failure code that the agent was given.
        code: Option<Box<str>>,
        /// When the record shrinks to id and digest; `None` once it has.
        trim_at: Option<Timestamp>,
        forget_at: Timestamp,
    },
}

/// How a request was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    Accepted,
    Failed,
    Refused,
    Expired,
}

impl Binding {
    /// The first record of a request. `arguments` are those that its contract compares with.
    pub fn of(request: &NewRequest, contract_version: u32, arguments: Vec<u8>) -> Binding {
        Binding {
            request_id: request.request_id.as_str().into(),
            tool: request.tool.as_str().into(),
            contract_version,
            attempt: request.attempt,
            attempts: 1,
            issued_at: request.issued_at,
            first_issued_at: request.issued_at,
            deadline: request.deadline,
            arguments: arguments.into(),
            route: request.route.clone(),
            traceparent: request.traceparent.as_deref().map(Box::from),
            rpc_id: request.rpc_id.as_deref().map(Box::from),
            announcement: announcement(request),
            held: 0,
            state: State::Outstanding,
        }
    }

    /// The key of the records that the agent reads.
    pub fn reply_key(&self) -> &str {
        if self.route.reply_key.is_empty() { &self.request_id } else { &self.route.reply_key }
    }

    /// The record's form on the changelog topic, and inside an audit record.
    pub fn to_message(&self) -> v1::Binding {
        let mut message = v1::Binding {
            request_id: self.request_id.to_string(),
            tool: self.tool.to_string(),
            contract_version: self.contract_version,
            attempt: self.attempt,
            attempts: self.attempts,
            issued_at_unix_ms: self.issued_at.unix_millis(),
            first_issued_at_unix_ms: self.first_issued_at.unix_millis(),
            deadline_unix_ms: self.deadline.unix_millis(),
            bound_arguments: self.arguments.to_vec(),
            route: (self.route != v1::Route::default()).then(|| self.route.clone()),
            traceparent: self.traceparent.as_deref().unwrap_or_default().to_owned(),
            rpc_id: self.rpc_id.as_deref().unwrap_or_default().to_owned(),
            announcement_sha256: self.announcement.to_vec(),
            held_refusals: self.held,
            ..v1::Binding::default()
        };
        self.state.write(&mut message);
        message
    }

    /// Reads the changelog's form.
    ///
    /// # Errors
    /// A sentence, where the message is none that this program writes.
    pub fn from_message(message: v1::Binding) -> Result<Binding, &'static str> {
        let state = State::read(&message)?;
        let announcement = message
            .announcement_sha256
            .as_slice()
            .try_into()
            .map_err(|_| "the announcement's digest has not 8 bytes")?;
        if message.request_id.is_empty() || message.tool.is_empty() || message.attempt == 0 {
            return Err("request id, tool or attempt is missing");
        }
        Ok(Binding {
            request_id: message.request_id.into(),
            tool: message.tool.into(),
            contract_version: message.contract_version,
            attempt: message.attempt,
            attempts: message.attempts,
            issued_at: time(message.issued_at_unix_ms)?,
            first_issued_at: time(message.first_issued_at_unix_ms)?,
            deadline: time(message.deadline_unix_ms)?,
            arguments: message.bound_arguments.into(),
            route: message.route.unwrap_or_default(),
            traceparent: text(message.traceparent),
            rpc_id: text(message.rpc_id),
            announcement,
            held: message.held_refusals,
            state,
        })
    }
}

/// Arguments may hold what a user typed; they are not for logs.
impl fmt::Debug for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binding")
            .field("request_id", &self.request_id)
            .field("tool", &self.tool)
            .field("contract_version", &self.contract_version)
            .field("attempt", &self.attempt)
            .field("attempts", &self.attempts)
            .field("issued_at", &self.issued_at)
            .field("deadline", &self.deadline)
            .field("arguments_bytes", &self.arguments.len())
            .field("held", &self.held)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// What tells one announcement of an attempt from another.
pub(super) fn announcement(request: &NewRequest) -> [u8; 8] {
    let digest = request.announcement_digest();
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_bytes()[..8]);
    first
}

impl State {
    fn write(&self, message: &mut v1::Binding) {
        match self {
            State::Outstanding => message.set_state(v1::BindingState::Outstanding),
            State::AwaitingRetry { due, code, reason } => {
                message.set_state(v1::BindingState::AwaitingRetry);
                message.retry_due_unix_ms = due.map_or(0, Timestamp::unix_millis);
                message.failure_code = code.to_string();
                message.retry_reason = reason.to_string();
            }
            State::Closed { how, at, digest, code, trim_at, forget_at } => {
                message.set_state(v1::BindingState::Closed);
                message.set_closed_as(how.to_message());
                message.closed_at_unix_ms = at.unix_millis();
                message.closed_by_sha256 = digest.map(|digest| digest.to_vec()).unwrap_or_default();
                message.failure_code = code.as_deref().unwrap_or_default().to_owned();
                message.trim_at_unix_ms = trim_at.map_or(0, Timestamp::unix_millis);
                message.forget_at_unix_ms = forget_at.unix_millis();
            }
        }
    }

    fn read(message: &v1::Binding) -> Result<State, &'static str> {
        match message.state() {
            v1::BindingState::Unspecified => Err("the binding has no state"),
            v1::BindingState::Outstanding => Ok(State::Outstanding),
            v1::BindingState::AwaitingRetry => Ok(State::AwaitingRetry {
                due: optional_time(message.retry_due_unix_ms)?,
                code: message.failure_code.as_str().into(),
                reason: message.retry_reason.as_str().into(),
            }),
            v1::BindingState::Closed => Ok(State::Closed {
                how: Closed::from_message(message.closed_as())?,
                at: time(message.closed_at_unix_ms)?,
                digest: match message.closed_by_sha256.as_slice() {
                    [] => None,
                    bytes => Some(bytes.try_into().map_err(|_| "the closing digest has not 32 bytes")?),
                },
                code: text(message.failure_code.clone()),
                trim_at: optional_time(message.trim_at_unix_ms)?,
                forget_at: time(message.forget_at_unix_ms)?,
            }),
        }
    }
}

impl Closed {
    fn to_message(self) -> v1::ClosedAs {
        match self {
            Closed::Accepted => v1::ClosedAs::Accepted,
            Closed::Failed => v1::ClosedAs::Failed,
            Closed::Refused => v1::ClosedAs::Refused,
            Closed::Expired => v1::ClosedAs::Expired,
        }
    }

    fn from_message(message: v1::ClosedAs) -> Result<Closed, &'static str> {
        match message {
            v1::ClosedAs::Unspecified => Err("the binding is closed and does not say how"),
            v1::ClosedAs::Accepted => Ok(Closed::Accepted),
            v1::ClosedAs::Failed => Ok(Closed::Failed),
            v1::ClosedAs::Refused => Ok(Closed::Refused),
            v1::ClosedAs::Expired => Ok(Closed::Expired),
        }
    }
}

fn time(millis: i64) -> Result<Timestamp, &'static str> {
    Timestamp::from_unix_millis(millis).ok_or("a time is out of range")
}

/// Zero means "not set" on the wire.
fn optional_time(millis: i64) -> Result<Option<Timestamp>, &'static str> {
    if millis == 0 { Ok(None) } else { time(millis).map(Some) }
}

fn text(text: String) -> Option<Box<str>> {
    if text.is_empty() { None } else { Some(text.into()) }
}
