//! Stage 9 of 10: select.
//!
//! Builds the agent's result anew, member by member, from the names that the contract selects.
//! Nothing is forwarded: a value gets out only because the contract's shape names its member and
//! the schema has closed its type. The other constructor of an [`AgentResult`] writes the fixed
//! failure from our own request record; there is no third.

use super::Request;
use super::bind::Bound;
use super::json::write_string;
use super::parse::{Kind, Node};
use super::reason::{Reason, Stage};
use super::refusal::{Diagnosis, FailureCode, Stop};
use super::text_safety::TextRule;
use crate::time::Timestamp;
use std::fmt::Write;

/// The only bytes that may reach an agent.
#[derive(Debug, PartialEq, Eq)]
pub struct AgentResult<'o> {
    json: &'o str,
}

impl<'o> AgentResult<'o> {
    pub fn as_str(&self) -> &'o str {
        self.json
    }

    /// The fixed failure: tool, request id, code and whether asking again is sensible. All four are ours.
    pub fn failure(request: &Request<'_>, code: &FailureCode, retryable: bool, out: &'o mut String) -> AgentResult<'o> {
        begin(request, "failure", out);
        out.push_str(",\"error\":{\"code\":");
        write_string(code.as_str(), out);
        out.push_str(if retryable { ",\"retryable\":true}}" } else { ",\"retryable\":false}}" });
        AgentResult { json: out }
    }
}

/// The declared shape of the data: what is walked, checked and written. It comes from the schema
/// and the contract, so nothing that a response adds can extend it.
#[derive(Debug)]
pub enum Shape {
    Object(Vec<Member>),
    Array(Box<Shape>),
    /// A string of format date-time, written in one form whatever its spelling was.
    Time,
    /// Declared free text.
    Text(TextRule),
    Scalar,
}

#[derive(Debug)]
pub struct Member {
    pub name: Box<str>,
    pub shape: Shape,
}

/// What of the data gets out, in the contract's order.
#[derive(Debug)]
pub struct Selection {
    pub members: Vec<Selected>,
    pub result_bytes_max: usize,
}

#[derive(Debug)]
pub struct Selected {
    pub member: Member,
    /// Write a number's own digits as a string: readers whose numbers are doubles keep the id.
    pub as_string: bool,
}

/// Writes the success envelope from the selected members of bound data.
///
/// # Errors
/// `RESULT_TOO_LARGE`, where the schema admits more than the contract's limit.
pub fn select<'o>(
    bound: &Bound<'_>,
    selection: &Selection,
    request: &Request<'_>,
    out: &'o mut String,
) -> Result<AgentResult<'o>, Stop> {
    begin(request, "success", out);
    out.push_str(",\"data\":{");
    let mut first = true;
    for selected in &selection.members {
        let Some(value) = bound.data().get(&selected.member.name) else { continue };
        separate(&mut first, out);
        write_string(&selected.member.name, out);
        out.push(':');
        match value.lexeme().filter(|_| selected.as_string) {
            Some(digits) => write_string(digits, out),
            None => write_value(value, &selected.member.shape, out),
        }
    }
    out.push_str("}}");
    if out.len() > selection.result_bytes_max {
        let expected = format!("at most {} bytes", selection.result_bytes_max);
        let diagnosis = Diagnosis {
            keyword: "limits.result_bytes_max".into(),
            expected,
            ..Diagnosis::of(Reason::ResultTooLarge.summary())
        };
        return Err(Stop::refuse(Stage::Select, Reason::ResultTooLarge, diagnosis));
    }
    Ok(AgentResult { json: out })
}

fn begin(request: &Request<'_>, outcome: &str, out: &mut String) {
    out.clear();
    out.push_str("{\"tool\":");
    write_string(request.tool, out);
    out.push_str(",\"request_id\":");
    write_string(request.id, out);
    out.push_str(",\"outcome\":\"");
    out.push_str(outcome);
    out.push('"');
}

fn separate(first: &mut bool, out: &mut String) {
    if !*first {
        out.push(',');
    }
    *first = false;
}

fn write_value(value: Node<'_>, shape: &Shape, out: &mut String) {
    match shape {
        Shape::Object(members) => write_members(value, members, out),
        Shape::Array(item) => {
            out.push('[');
            let mut first = true;
            for value in value.items() {
                separate(&mut first, out);
                write_value(value, item, out);
            }
            out.push(']');
        }
        Shape::Time => match value.as_str().and_then(Timestamp::parse_rfc3339) {
            Some(time) => {
                let _ = write!(out, "\"{time}\"");
            }
            None => write_scalar(value, out),
        },
        Shape::Text(_) | Shape::Scalar => write_scalar(value, out),
    }
}

fn write_members(value: Node<'_>, members: &[Member], out: &mut String) {
    out.push('{');
    let mut first = true;
    for member in members {
        let Some(value) = value.get(&member.name) else { continue };
        separate(&mut first, out);
        write_string(&member.name, out);
        out.push(':');
        write_value(value, &member.shape, out);
    }
    out.push('}');
}

/// Writes one scalar. A container where the shape has none cannot pass the schema; were it to
/// come, null is written instead of it.
fn write_scalar(value: Node<'_>, out: &mut String) {
    match value.kind() {
        Kind::True => out.push_str("true"),
        Kind::False => out.push_str("false"),
        Kind::String => write_string(value.as_str().unwrap_or_default(), out),
        Kind::Number => out.push_str(value.lexeme().unwrap_or("null")),
        Kind::Null | Kind::Array | Kind::Object => out.push_str("null"),
    }
}
