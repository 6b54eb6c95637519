//! The gate: ten stages from raw bytes to evidence, in this order and no other.
//!
//! ```text
//! Record -> RawResponse -> Admitted -> Parsed -> Candidate -> Envelope -> Bound -> AgentResult
//! ```
//!
//! Each stage is a function from the type before it to its own type, whose constructor is private
//! to its file: leaving a stage out does not compile. What was not admitted can't be parsed,
//!
//! ```compile_fail
//! use toolgate::gate::parse::{Grammar, Limits, Tape, parse};
//! let grammar = Grammar { limits: Limits::default(), text: None };
//! let parsed = parse(b"{}", &grammar, &mut Tape::default());
//! ```
//!
//! what was not validated can't be bound,
//!
//! ```compile_fail
//! use toolgate::gate::{Request, bind::{Semantics, bind}, parse::Parsed};
//! fn skip(parsed: &Parsed<'_>, semantics: &Semantics, request: &Request<'_>) {
//!     let _ = bind(parsed, semantics, request, toolgate::time::Timestamp::default());
//! }
//! ```
//!
//! and nobody else can make what an agent reads:
//!
//! ```compile_fail
//! let forged = toolgate::gate::AgentResult { json: "{}" };
//! ```
//!
//! Stages 1 and 10 (`ingest`, `emit`) are the
//! log's; stage 3 (`match`) is in [`matching`](crate::request), since it needs the state.

pub mod adapt;
pub mod admit;
pub mod bind;
pub mod cond;
pub mod decimal;
pub mod decode;
pub mod json;
pub mod parse;
pub mod reason;
pub mod refusal;
pub mod select;
pub mod signature;
pub mod text_safety;
pub mod validate;

pub use adapt::RpcId;
pub use reason::{Reason, Stage};
pub use refusal::{Diagnosis, Failure, FailureCode, Refusal, Stop};
pub use select::AgentResult;

use crate::contract::Contract;
use crate::time::Timestamp;
use admit::SecretStore;
use decode::{NewRequest, RawResponse};
use parse::{Limits, Node, ParseError, Tape};

/// The outstanding request, as the stages see it: our own record, never the response's word.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub id: &'a str,
    pub tool: &'a str,
    pub issued_at: Timestamp,
    /// The request's arguments; `None` where it has none.
    pub arguments: Option<Node<'a>>,
    /// The JSON-RPC id under which the tool was called.
    pub rpc_id: RpcId<'a>,
}

impl<'a> Request<'a> {
    /// An announced request, with its arguments parsed onto `tape`.
    ///
    /// # Errors
    /// The arguments are no JSON object within the limits of a request.
    pub fn announced(request: &'a NewRequest, tape: &'a mut Tape) -> Result<Request<'a>, ParseError> {
        let rpc_id = request.rpc_id.as_deref().map_or(RpcId::RequestId(&request.request_id), RpcId::Json);
        let arguments = arguments(&request.arguments, tape)?;
        Ok(Request { id: &request.request_id, tool: &request.tool, issued_at: request.issued_at, arguments, rpc_id })
    }
}

/// Parses the arguments that are kept of a request; none where it has none.
///
/// # Errors
/// They are no JSON document within the limits of a request.
pub fn arguments<'a>(json: &'a [u8], tape: &'a mut Tape) -> Result<Option<Node<'a>>, ParseError> {
    if json.is_empty() {
        return Ok(None);
    }
    tape.parse(json, &Limits::default()).map(|document| Some(document.root()))
}

/// One judgement: a response, the request that it claims to answer, the contract, and the moment.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations, reason = "it leads to secrets and to a response")]
pub struct Case<'a> {
    pub response: &'a RawResponse,
    pub request: Request<'a>,
    pub contract: &'a Contract,
    pub secrets: &'a dyn SecretStore,
    pub now: Timestamp,
}

/// Memory that one judgement after the other uses again.
#[derive(Debug, Default)]
pub struct Bench {
    document: Tape,
    candidate: Tape,
    out: String,
}

/// Decides whether the response is admissible evidence for the request.
///
/// The same case always gives the same decision: there is no clock, no state and no I/O in here.
///
/// # Errors
/// A [`Stop`] where it is not: a refusal, or a failure that the tool reported in a way the
/// contract understands.
pub fn decide<'a>(case: &Case<'a>, bench: &'a mut Bench) -> Result<AgentResult<'a>, Stop> {
    let Case { response, request, contract, secrets, now } = case;
    let admitted = admit::admit(response, &contract.terms, *secrets, *now)?;
    let parsed = parse::parse(&admitted, &contract.grammar, &mut bench.document)?;
    let reading = &contract.reading;
    let candidate =
        adapt::adapt(&parsed, reading, &contract.terms.failures, request, response.headers(), &mut bench.candidate)?;
    let envelope = validate::validate(&candidate, &contract.envelope, request.id)?;
    let bound = bind::bind(&envelope, &contract.semantics, request, *now)?;
    select::select(&bound, &contract.selection, request, &mut bench.out)
}
