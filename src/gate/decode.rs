//! Stage 2 of 10: decode.
//!
//! Turns a record into a [`RawResponse`] or a [`NewRequest`]. The encoding is configured per topic
//! and never sniffed. Afterwards ids, names, times and headers are well formed and bounded, and
//! the record's key is its request's id.
//!
//! Deliberately not checked: the body, which stays bytes until stage 5; whether tool, contract or
//! request exist (stage 3); whether the arguments are JSON, which is found out where they are
//! projected.

mod fields;
mod request;

use std::fmt;

use prost::Message;

pub use request::{NewRequest, decode_request};

use super::reason::Reason;
use crate::time::Timestamp;
use crate::wire::cloudevents::{self, RecordHeader};
use crate::wire::v1::{ToolResponse, TransportOutcome, transport_outcome::Outcome};
use crate::wire::{Digest, Headers};

/// How the response topic is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// `toolgate.v1.ToolResponse`.
    #[default]
    Protobuf,
    /// CloudEvents 1.0, binary mode.
    CloudEvents,
}

/// Why a record could not be decoded: one fixed sentence, nothing of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    pub detail: &'static str,
}

impl DecodeError {
    /// Always the same: what an agent or a metric sees does not depend on the sentence.
    pub const fn reason(self) -> Reason {
        Reason::UndecodableEvent
    }
}

impl From<&'static str> for DecodeError {
    fn from(detail: &'static str) -> Self {
        Self { detail }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.detail)
    }
}

/// Decodes a record of the response topic. `headers` are the record's own, and matter to
/// CloudEvents only.
pub fn decode_response<'a>(
    encoding: Encoding,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: impl IntoIterator<Item = RecordHeader<'a>>,
) -> Result<RawResponse, DecodeError> {
    let value = value.ok_or("the record has no value")?;
    let message = match encoding {
        Encoding::Protobuf => ToolResponse::decode(value).map_err(|_| "the value is not a ToolResponse")?,
        Encoding::CloudEvents => cloudevents::read_binary(headers, value)?,
    };
    let response = RawResponse::from_message(message)?;
    fields::key(key, &response.request_id)?;
    Ok(response)
}

/// How a call ended, as the connector saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// An HTTP status, 100 to 599.
    Http(u16),
    /// The exit code of a command.
    Exit(i32),
    /// The error code of an RPC layer.
    RpcError(i64),
    /// No complete answer in the connector's own time limit.
    Timeout,
    /// No connection, or one that broke before the answer was complete.
    Connection,
    /// The connector did not say.
    None,
}

impl Transport {
    fn from_message(message: Option<TransportOutcome>) -> Result<Self, DecodeError> {
        let Some(outcome) = message.and_then(|message| message.outcome) else { return Ok(Transport::None) };
        match outcome {
            Outcome::HttpStatus(status) => match u16::try_from(status) {
                Ok(status @ 100..=599) => Ok(Transport::Http(status)),
                Ok(_) | Err(_) => Err("the HTTP status is not within 100 to 599".into()),
            },
            Outcome::ExitCode(code) => Ok(Transport::Exit(code)),
            Outcome::RpcErrorCode(code) => Ok(Transport::RpcError(code)),
            Outcome::Timeout(true) => Ok(Transport::Timeout),
            Outcome::ConnectionFailed(true) => Ok(Transport::Connection),
            Outcome::Timeout(false) | Outcome::ConnectionFailed(false) => Err("a transport failure says false".into()),
        }
    }

    /// As records carry it; `None` where the connector did not say.
    pub fn to_message(self) -> Option<TransportOutcome> {
        let outcome = match self {
            Transport::Http(status) => Outcome::HttpStatus(status.into()),
            Transport::Exit(code) => Outcome::ExitCode(code),
            Transport::RpcError(code) => Outcome::RpcErrorCode(code),
            Transport::Timeout => Outcome::Timeout(true),
            Transport::Connection => Outcome::ConnectionFailed(true),
            Transport::None => return None,
        };
        Some(TransportOutcome { outcome: Some(outcome) })
    }
}

/// A body as it came. It can be digested, measured, verified and parsed, and on purpose it cannot
/// be printed, compared, serialised or used as a slice by accident.
#[derive(Clone)]
pub struct RawBytes {
    bytes: Vec<u8>,
    digest: Digest,
}

impl RawBytes {
    pub fn new(bytes: Vec<u8>) -> Self {
        let digest = Digest::of(&bytes);
        Self { bytes, digest }
    }

    /// The bytes, for the parser, signatures and quarantine: nobody else asks for them.
    pub fn expose(&self) -> &[u8] {
        &self.bytes
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// SHA-256 of the bytes.
    pub const fn digest(&self) -> Digest {
        self.digest
    }
}

impl fmt::Debug for RawBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawBytes({} bytes, {})", self.len(), self.digest)
    }
}

/// A response whose frame is well formed and whose body nobody has looked at.
#[derive(Clone)]
pub struct RawResponse {
    request_id: String,
    tool: String,
    attempt: u32,
    body: RawBytes,
    content_type: Option<String>,
    transport: Transport,
    received_at: Option<Timestamp>,
    endpoint: String,
    connector: String,
    connector_version: String,
    headers: Headers,
}

impl RawResponse {
    /// Checks a message that did not come through a log: `toolgate vet` and fixtures take this way.
    pub fn from_message(message: ToolResponse) -> Result<Self, DecodeError> {
        let received_at = match message.received_at_unix_ms {
            0 => None,
            millis => Some(fields::time(millis, "received_at is out of range")?),
        };
        let headers = Headers::new(message.headers.into_iter().map(|header| (header.name, header.value)))?;
        Ok(Self {
            request_id: fields::request_id(message.request_id)?,
            tool: fields::tool(message.tool)?,
            attempt: fields::attempt(message.attempt)?,
            body: RawBytes::new(message.body),
            content_type: fields::content_type(message.content_type)?,
            transport: Transport::from_message(message.outcome)?,
            received_at,
            endpoint: fields::line(message.endpoint, 512, "the endpoint is too long or holds a control character")?,
            connector: fields::line(message.connector, 256, "the connector is too long or holds a control character")?,
            connector_version: fields::line(
                message.connector_version,
                64,
                "the connector's version is too long or holds a control character",
            )?,
            headers,
        })
    }

    pub fn request_id(&self) -> &str {
        &self.request_id
    }

    /// The tool as the response names it; stage 3 compares it with the request's.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The attempt that this answers, from 1.
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    pub const fn body(&self) -> &RawBytes {
        &self.body
    }

    /// The media type with its parameters, as the upstream wrote it; at most 255 bytes.
    pub fn content_type(&self) -> Option<&str> {
        self.content_type.as_deref()
    }

    pub const fn transport(&self) -> Transport {
        self.transport
    }

    /// When the connector had the body, by its clock.
    pub const fn received_at(&self) -> Option<Timestamp> {
        self.received_at
    }

    /// URL or command; for operators. At most 512 bytes without control characters.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// At most 256 bytes without control characters.
    pub fn connector(&self) -> &str {
        &self.connector
    }

    /// At most 64 bytes without control characters.
    pub fn connector_version(&self) -> &str {
        &self.connector_version
    }

    /// Allow-listed upstream headers.
    pub const fn headers(&self) -> &Headers {
        &self.headers
    }
}

/// Media type, endpoint and header text are the upstream's and stay out.
impl fmt::Debug for RawResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawResponse")
            .field("request_id", &self.request_id)
            .field("tool", &self.tool)
            .field("attempt", &self.attempt)
            .field("body", &self.body)
            .field("transport", &self.transport)
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
