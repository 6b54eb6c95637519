//! A dispatcher's announcement of a call.

use std::fmt;

use prost::Message;

use super::{DecodeError, fields};
use crate::time::Timestamp;
use crate::wire::Digest;
use crate::wire::v1::{Route, ToolRequest};

const ARGUMENTS_BYTES_MAX: usize = 16 * 1024;
const ROUTE_BYTES_MAX: usize = 128;
const RPC_ID_BYTES_MAX: usize = 256;

/// A request whose fields are well formed. It comes from our own side of the gate, so its fields
/// are open; the arguments are still unparsed.
#[derive(Clone, PartialEq)]
pub struct NewRequest {
    /// `^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$`
    pub request_id: String,
    /// `^[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$`, at most 100 bytes.
    pub tool: String,
    /// 0 means the active version.
    pub contract_version: u32,
    /// JSON text, at most 16 KiB; `{}` where the dispatcher sent none.
    pub arguments: Vec<u8>,
    pub issued_at: Timestamp,
    /// Not before `issued_at`.
    pub deadline: Timestamp,
    /// From 1.
    pub attempt: u32,
    /// Each part at most 128 bytes without control characters.
    pub route: Route,
    /// W3C trace context; a malformed one is dropped, since tracing is no reason to lose a request.
    pub traceparent: Option<String>,
    /// The id in a JSON-RPC frame as JSON text; `None` means the request id as a string.
    pub rpc_id: Option<String>,
}

/// Decodes a record of the request topic.
pub fn decode_request(key: Option<&[u8]>, value: Option<&[u8]>) -> Result<NewRequest, DecodeError> {
    let value = value.ok_or("the record has no value")?;
    let message = ToolRequest::decode(value).map_err(|_| "the value is not a ToolRequest")?;
    let request = NewRequest::from_message(message)?;
    fields::key(key, &request.request_id)?;
    Ok(request)
}

impl NewRequest {
    /// Checks a message that did not come through a log: `toolgate vet` and fixtures take this way.
    pub fn from_message(message: ToolRequest) -> Result<Self, DecodeError> {
        if message.arguments.len() > ARGUMENTS_BYTES_MAX {
            return Err("the arguments are larger than 16 KiB".into());
        }
        let issued_at = fields::time(message.issued_at_unix_ms, "issued_at is missing or out of range")?;
        let deadline = fields::time(message.deadline_unix_ms, "the deadline is missing or out of range")?;
        if deadline < issued_at {
            return Err("the deadline is before issued_at".into());
        }
        Ok(Self {
            request_id: fields::request_id(message.request_id)?,
            tool: fields::tool(message.tool)?,
            contract_version: message.contract_version,
            arguments: if message.arguments.is_empty() { b"{}".to_vec() } else { message.arguments },
            issued_at,
            deadline,
            attempt: fields::attempt(message.attempt)?,
            route: route(message.route.unwrap_or_default())?,
            traceparent: Some(message.traceparent).filter(|text| fields::is_traceparent(text)),
            rpc_id: rpc_id(message.rpc_id)?,
        })
    }

    /// The message that decodes to this request.
    pub fn to_message(&self) -> ToolRequest {
        ToolRequest {
            request_id: self.request_id.clone(),
            tool: self.tool.clone(),
            contract_version: self.contract_version,
            arguments: self.arguments.clone(),
            issued_at_unix_ms: self.issued_at.unix_millis(),
            deadline_unix_ms: self.deadline.unix_millis(),
            attempt: self.attempt,
            route: Some(self.route.clone()),
            traceparent: self.traceparent.clone().unwrap_or_default(),
            rpc_id: self.rpc_id.clone().unwrap_or_default(),
        }
    }

    /// Digest of the announcement: equal for a repetition, different for a conflicting one. The
    /// trace context is left out, since a producer's retry may carry another.
    pub fn announcement_digest(&self) -> Digest {
        Digest::of(&ToolRequest { traceparent: String::new(), ..self.to_message() }.encode_to_vec())
    }
}

/// Arguments may hold what a user typed; they are not for logs.
impl fmt::Debug for NewRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewRequest")
            .field("request_id", &self.request_id)
            .field("tool", &self.tool)
            .field("contract_version", &self.contract_version)
            .field("arguments_bytes", &self.arguments.len())
            .field("issued_at", &self.issued_at)
            .field("deadline", &self.deadline)
            .field("attempt", &self.attempt)
            .field("route", &self.route)
            .finish_non_exhaustive()
    }
}

fn route(route: Route) -> Result<Route, &'static str> {
    let line =
        |text| fields::line(text, ROUTE_BYTES_MAX, "a part of the route is too long or holds a control character");
    Ok(Route { agent: line(route.agent)?, session: line(route.session)?, reply_key: line(route.reply_key)? })
}

fn rpc_id(text: String) -> Result<Option<String>, &'static str> {
    if text.is_empty() {
        return Ok(None);
    }
    let valid = text.len() <= RPC_ID_BYTES_MAX && fields::is_rpc_id(&text);
    if valid { Ok(Some(text)) } else { Err("the RPC id is neither a JSON string nor a whole number") }
}
