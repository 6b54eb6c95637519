//! Requests and responses as people write them: JSON for `vet`, `send` and fixtures.
//!
//! They become the wire's own messages and pass the same decoder as records of a topic, so there
//! is one set of rules. Members are read by name from our own strict parser; an unknown one is an
//! error, since a misspelt `deadline` must not pass for an absent one.

use super::v1;
use crate::gate::json::write_node;
use crate::gate::parse::{Kind, Limits, Node, Tape};
use crate::time::Timestamp;

/// Limits for files that operators write.
pub const LIMITS: Limits = Limits {
    body_bytes_max: 16 << 20,
    depth_max: 64,
    members_max: 10_000,
    items_max: 10_000,
    string_bytes_max: 16 << 20,
};

/// What is wrong with a request or response that a person wrote: a pointer and a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {message}")]
pub struct JsonMistake {
    pub at: String,
    pub message: String,
}

fn mistake<T>(at: &str, message: impl Into<String>) -> Result<T, JsonMistake> {
    Err(JsonMistake { at: at.into(), message: message.into() })
}

const REQUEST_MEMBERS: [&str; 10] = [
    "tool",
    "request_id",
    "issued_at",
    "deadline",
    "arguments",
    "attempt",
    "contract_version",
    "route",
    "rpc_id",
    "traceparent",
];

/// Reads `{tool, request_id, issued_at, deadline, arguments?, attempt?, contract_version?, route?,
/// rpc_id?, traceparent?}`. Times are RFC 3339. A number as `request_id` also is the JSON-RPC id.
///
/// # Errors
/// The first member that is missing, unknown or of the wrong type.
pub fn request(node: Node<'_>) -> Result<v1::ToolRequest, JsonMistake> {
    known_members(node, "request", &REQUEST_MEMBERS)?;
    let Some(id) = node.get("request_id") else { return mistake("request_id", "is missing") };
    let request_id = match (id.as_str(), id.lexeme()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(digits)) => digits.to_owned(),
        (None, None) => return mistake("request_id", "must be a string or an integer"),
    };
    let rpc_id = match node.get("rpc_id").or(id.lexeme().map(|_| id)) {
        Some(id) => text_of(id),
        None => String::new(),
    };
    Ok(v1::ToolRequest {
        request_id,
        tool: required_text(node, "tool")?,
        contract_version: small_integer(node, "contract_version", 0)?,
        arguments: match node.get("arguments") {
            Some(arguments) if arguments.kind() == Kind::Object => text_of(arguments).into_bytes(),
            Some(_) => return mistake("arguments", "must be an object"),
            None => Vec::new(),
        },
        issued_at_unix_ms: required_time(node, "issued_at")?,
        deadline_unix_ms: required_time(node, "deadline")?,
        attempt: small_integer(node, "attempt", 1)?,
        route: node.get("route").map(route).transpose()?,
        traceparent: optional_text(node, "traceparent")?.unwrap_or_default(),
        rpc_id,
    })
}

fn route(node: Node<'_>) -> Result<v1::Route, JsonMistake> {
    known_members(node, "route", &["agent", "session", "reply_key"])?;
    let text = |name| optional_text(node, name).map(Option::unwrap_or_default);
    Ok(v1::Route { agent: text("agent")?, session: text("session")?, reply_key: text("reply_key")? })
}

/// How a call ended, for `transport` of fixtures and the same members of a response line.
pub const TRANSPORT_MEMBERS: [&str; 5] = ["content_type", "status", "exit_code", "failed", "headers"];

/// Fills a response's transport members from `{content_type?, status? | exit_code? | failed?, headers?}`.
///
/// # Errors
/// The first member of the wrong type or value, or two endings at once.
pub fn transport(node: Node<'_>, response: &mut v1::ToolResponse) -> Result<(), JsonMistake> {
    use v1::transport_outcome::Outcome;
    response.content_type = optional_text(node, "content_type")?;
    let mut endings = Vec::new();
    if let Some(status) = integer(node, "status")? {
        endings
            .push(Outcome::HttpStatus(u32::try_from(status).or_else(|_| mistake("status", "must be an HTTP status"))?));
    }
    if let Some(code) = integer(node, "exit_code")? {
        endings.push(Outcome::ExitCode(i32::try_from(code).or_else(|_| mistake("exit_code", "is out of range"))?));
    }
    match optional_text(node, "failed")?.as_deref() {
        None => {}
        Some("timeout") => endings.push(Outcome::Timeout(true)),
        Some("connection") => endings.push(Outcome::ConnectionFailed(true)),
        Some(_) => return mistake("failed", "must be timeout or connection"),
    }
    if endings.len() > 1 {
        return mistake("status", "a call ends in one way: give one of status, exit_code and failed");
    }
    response.outcome = endings.pop().map(|outcome| v1::TransportOutcome { outcome: Some(outcome) });
    if let Some(headers) = node.get("headers") {
        response.headers = read_headers(headers)?;
    }
    Ok(())
}

fn read_headers(node: Node<'_>) -> Result<Vec<v1::Header>, JsonMistake> {
    if node.kind() != Kind::Object {
        return mistake("headers", "must be an object of strings");
    }
    node.members()
        .map(|(name, value)| match value.as_str() {
            Some(value) => Ok(v1::Header { name: name.to_owned(), value: value.to_owned() }),
            None => mistake(&format!("headers.{name}"), "must be a string"),
        })
        .collect()
}

const RESPONSE_MEMBERS: [&str; 15] = [
    "request_id",
    "tool",
    "attempt",
    "body",
    "body_base64",
    "body_file",
    "content_type",
    "status",
    "exit_code",
    "failed",
    "headers",
    "received_at",
    "endpoint",
    "connector",
    "connector_version",
];

/// A response line, and the file that holds its body where it names one.
#[derive(Debug)]
pub struct ResponseLine {
    pub response: v1::ToolResponse,
    pub body_file: Option<String>,
}

/// Reads one line of `send responses`: `{request_id, tool, body | body_base64 | body_file, attempt?,
/// content_type?, status? | exit_code? | failed?, headers?, received_at?, endpoint?, connector?,
/// connector_version?}`. `body` is a string of the exact bytes; a JSON value there is written anew.
///
/// # Errors
/// The first member that is missing, unknown or of the wrong type.
pub fn response(node: Node<'_>) -> Result<ResponseLine, JsonMistake> {
    known_members(node, "response", &RESPONSE_MEMBERS)?;
    let text = |name| optional_text(node, name).map(Option::unwrap_or_default);
    let mut response = v1::ToolResponse {
        request_id: required_text(node, "request_id")?,
        tool: required_text(node, "tool")?,
        attempt: small_integer(node, "attempt", 1)?,
        endpoint: text("endpoint")?,
        connector: text("connector")?,
        connector_version: text("connector_version")?,
        ..v1::ToolResponse::default()
    };
    if node.get("received_at").is_some() {
        response.received_at_unix_ms = required_time(node, "received_at")?;
    }
    transport(node, &mut response)?;
    let body_file = optional_text(node, "body_file")?;
    let sources = [node.get("body").is_some(), node.get("body_base64").is_some(), body_file.is_some()];
    if sources.iter().filter(|given| **given).count() > 1 {
        return mistake("body", "give one of body, body_base64 and body_file");
    }
    if let Some(body) = node.get("body") {
        response.body = body.as_str().map_or_else(|| text_of(body), str::to_owned).into_bytes();
    }
    if let Some(encoded) = optional_text(node, "body_base64")? {
        use base64::Engine;
        let decoded = base64::engine::general_purpose::STANDARD.decode(encoded);
        response.body = decoded.or_else(|_| mistake("body_base64", "is not base64 (RFC 4648, section 4)"))?;
    }
    Ok(ResponseLine { response, body_file })
}

/// Parses a text that an operator gives, strictly.
///
/// # Errors
/// Reason and byte offset.
pub fn parse<'t>(text: &'t str, tape: &'t mut Tape) -> Result<Node<'t>, JsonMistake> {
    match tape.parse(text.as_bytes(), &LIMITS) {
        Ok(document) => Ok(document.root()),
        Err(error) => mistake(&format!("byte {}", error.offset), format!("{}: {}", error.reason.summary(), error.what)),
    }
}

/// Refuses members beside `known`.
///
/// # Errors
/// The first unknown name, or that the value is no object.
pub fn known_members(node: Node<'_>, what: &str, known: &[&str]) -> Result<(), JsonMistake> {
    if node.kind() != Kind::Object {
        return mistake(what, "must be a JSON object");
    }
    match node.members().find(|(name, _)| !known.contains(name)) {
        None => Ok(()),
        Some((name, _)) => mistake(what, format!("unknown member {name:?}; known are {}", known.join(", "))),
    }
}

fn text_of(node: Node<'_>) -> String {
    let mut out = String::new();
    write_node(node, &mut out);
    out
}

/// The string member `name`, if it is there.
///
/// # Errors
/// It is there and no string.
pub fn optional_text(node: Node<'_>, name: &str) -> Result<Option<String>, JsonMistake> {
    match node.get(name) {
        None => Ok(None),
        Some(value) if value.is_null() => Ok(None),
        Some(value) => {
            value.as_str().map(|text| Some(text.to_owned())).map_or_else(|| mistake(name, "must be a string"), Ok)
        }
    }
}

fn required_text(node: Node<'_>, name: &str) -> Result<String, JsonMistake> {
    optional_text(node, name)?.map_or_else(|| mistake(name, "is missing"), Ok)
}

fn required_time(node: Node<'_>, name: &str) -> Result<i64, JsonMistake> {
    let text = required_text(node, name)?;
    let time = Timestamp::parse_rfc3339(&text);
    time.map(Timestamp::unix_millis)
        .map_or_else(|| mistake(name, "must be an RFC 3339 time such as 2026-12-01T12:00:00Z"), Ok)
}

fn integer(node: Node<'_>, name: &str) -> Result<Option<i64>, JsonMistake> {
    match node.get(name) {
        None => Ok(None),
        Some(value) => value.as_i64().map(Some).map_or_else(|| mistake(name, "must be an integer"), Ok),
    }
}

fn small_integer(node: Node<'_>, name: &str, default: u32) -> Result<u32, JsonMistake> {
    match integer(node, name)? {
        None => Ok(default),
        Some(value) => u32::try_from(value).or_else(|_| mistake(name, "is out of range")),
    }
}
