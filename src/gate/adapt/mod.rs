//! Stage 6 of 10: adapt.
//!
//! Turns a vendor document into a candidate of the contract's closed envelope, by the contract's
//! table and nothing else. The vendor's side is open: members that the table does not name are
//! never read. In-band failures (flags, error lists, MCP's `isError`) are looked at before the
//! shape, so that a failure is reported as one. Afterwards there is a candidate; nothing about it
//! is known to be true or even well-formed: that is for `validate` and `bind`.

mod fields;
mod mcp;
pub mod plan;
mod scalar;

pub use mcp::RpcId;

use self::fields::{Around, FieldWriter};
use self::mcp::Mcp;
use self::plan::{Adapter, InBandError, Shape};
use super::Request;
use super::admit::{Ending, Failures};
use super::cond::all_hold;
use super::parse::{Document, Node, Parsed, Tape, TapeWriter};
use super::reason::{Reason, Stage};
use super::refusal::{Diagnosis, Stop};
use crate::contract::raw::Frame;
use crate::wire::Headers;

/// A document in the envelope's shape, not validated.
#[derive(Debug)]
pub struct Candidate<'a> {
    document: Document<'a>,
}

impl<'a> Candidate<'a> {
    pub(super) fn root(&self) -> Node<'a> {
        self.document.root()
    }
}

/// What a contract says about reading its vendor's documents.
#[derive(Debug, Default)]
pub struct Reading {
    /// Unwrap a CallToolResult first.
    pub mcp: Option<Frame>,
    pub errors: Vec<InBandError>,
    /// `None`: the source sends the envelope itself and is judged as it is.
    pub adapter: Option<Adapter>,
}

/// Builds the candidate, or ends the way with what the document reports or lacks.
///
/// # Errors
/// `ADAPTER_MISMATCH`, `UNKNOWN_REQUEST` (a JSON-RPC id of another request), or the failure that the document reports.
pub fn adapt<'a>(
    parsed: &Parsed<'a>,
    reading: &'a Reading,
    failures: &Failures,
    request: &Request<'a>,
    headers: &'a Headers,
    tape: &'a mut Tape,
) -> Result<Candidate<'a>, Stop> {
    let document = parsed.document();
    let (base, prefix) = match reading.mcp {
        None => (document.root(), ""),
        Some(frame) => unwrap_mcp(document.root(), frame, failures, request)?,
    };
    reading.errors.iter().try_for_each(|error| in_band(error, base))?;
    match &reading.adapter {
        None => Ok(Candidate { document }),
        Some(adapter) => {
            let around = Around { arguments: request.arguments, headers };
            build(adapter, base, prefix, request, around, tape)
        }
    }
}

fn unwrap_mcp<'a>(
    root: Node<'a>,
    frame: Frame,
    failures: &Failures,
    request: &Request<'a>,
) -> Result<(Node<'a>, &'static str), Stop> {
    let ending = match mcp::unwrap(root, frame, request.rpc_id) {
        Ok(Mcp::Structured(base)) => return Ok((base, mcp::base_pointer(root))),
        Ok(Mcp::ToolError) => Ending::ToolError,
        Ok(Mcp::RpcError(code)) => Ending::Rpc(code),
        Err((reason, diagnosis)) => return Err(Stop::refuse(Stage::Adapt, reason, *diagnosis)),
    };
    let diagnosis = Diagnosis { keyword: "mcp".into(), ..Diagnosis::of(Reason::UpstreamError.summary()) };
    Err(failures.stop(Stage::Adapt, ending, diagnosis))
}

fn in_band(error: &InBandError, base: Node<'_>) -> Result<(), Stop> {
    if !all_hold(&error.when, base) {
        return Ok(());
    }
    let refined = error.by.as_ref().and_then(|by| {
        let vendor_code = base.pointer(&by.at).and_then(|node| node.as_str().or_else(|| node.lexeme()))?;
        by.codes.iter().find(|(name, _)| name.as_ref() == vendor_code)
    });
    let code = refined.map_or(&error.code, |(_, code)| code);
    let diagnosis = Diagnosis {
        keyword: "source.errors".into(),
        instance_path: error.when.first().map(|cond| cond.at.to_string()).unwrap_or_default(),
        ..Diagnosis::of("the document itself reports a failure")
    };
    Err(Stop::fail(Stage::Adapt, code.clone(), diagnosis))
}

fn build<'a>(
    adapter: &'a Adapter,
    base: Node<'a>,
    prefix: &str,
    request: &Request<'a>,
    around: Around<'a>,
    tape: &'a mut Tape,
) -> Result<Candidate<'a>, Stop> {
    let shape = choose(adapter, base)?;
    let mut out = TapeWriter::new(tape);
    out.begin_object();
    for (name, value) in [("tool", request.tool), ("request_id", request.id), ("outcome", "success")] {
        out.key(name);
        out.string(value);
    }
    out.key("data");
    out.begin_object();
    let mut writer = FieldWriter { around, out: &mut out, prefix: prefix.to_owned() };
    writer
        .members(base, &shape.fields)
        .map_err(|diagnosis| Stop::refuse(Stage::Adapt, Reason::AdapterMismatch, *diagnosis))?;
    out.end();
    out.end();
    Ok(Candidate { document: out.finish() })
}

/// The one shape whose condition holds: none is drift, two are an ambiguous contract.
fn choose<'a>(adapter: &'a Adapter, base: Node<'_>) -> Result<&'a Shape, Stop> {
    let mut holding = adapter.shapes.iter().filter(|shape| all_hold(&shape.when, base));
    match (holding.next(), holding.next()) {
        (Some(shape), None) => Ok(shape),
        (first, _) => {
            let detail = match first {
                None => "no shape of the adapter table applies to the document",
                Some(_) => "more than one shape of the adapter table applies to the document",
            };
            let names: Vec<&str> = adapter.shapes.iter().map(|shape| shape.name.as_ref()).collect();
            let diagnosis = Diagnosis {
                keyword: "adapt.when".into(),
                expected: format!("exactly one of {}", names.join(", ")),
                ..Diagnosis::of(detail)
            };
            Err(Stop::refuse(Stage::Adapt, Reason::AdapterMismatch, diagnosis))
        }
    }
}
