//! CloudEvents 1.0 in the binary mode of its Kafka protocol binding: the value is the body, the
//! attributes are record headers with the prefix `ce_`, the media type is `content-type`.
//!
//! | record header | meaning |
//! |---|---|
//! | `ce_specversion`, `ce_id`, `ce_source`, `ce_type` | required by CloudEvents; `ce_source` is the connector |
//! | `ce_requestid`, else `ce_subject` | the request's id |
//! | `ce_tool`, `ce_attempt` | required: the tool and the attempt that this answers |
//! | `ce_httpstatus`, `ce_exitcode`, `ce_rpcerror` or `ce_failure` (`timeout`, `connection`) | transport outcome, at most one |
//! | `ce_time` | when the connector had the body |
//! | `ce_endpoint`, `ce_connectorversion` | for operators |
//! | `content-type` | media type of the body |
//! | `upstream-<name>` | the upstream's header `<name>`, as signatures need it |
//!
//! Every other header is ignored and none is copied onward. This module only finds the fields;
//! what they may hold is checked by `gate::decode`, in one place for both encodings. A record in
//! structured mode is refused by its media type.

use super::headers::{HEADERS_MAX, VALUE_BYTES_MAX};
use super::v1::{Header, ToolResponse, TransportOutcome, transport_outcome::Outcome};
use crate::time::Timestamp;

/// A record header as the log hands it out.
pub type RecordHeader<'a> = (&'a str, Option<&'a [u8]>);

/// Record headers looked at, twice the headers that a response may carry.
const RECORD_HEADERS_MAX: usize = 2 * HEADERS_MAX;
const UPSTREAM_PREFIX: &str = "upstream-";

/// Reads a binary-mode event into the message of the other encoding. The error is a fixed sentence.
pub fn read_binary<'a>(
    headers: impl IntoIterator<Item = RecordHeader<'a>>,
    value: &[u8],
) -> Result<ToolResponse, &'static str> {
    let (attributes, upstream) = collect(headers)?;
    let required = |name, missing| attributes.get(name).ok_or(missing);
    let content_type = attributes.get("content-type");
    if content_type.is_some_and(|media| starts_without_case(media, "application/cloudevents")) {
        return Err("structured and batched CloudEvents are not read");
    }
    if required("ce_specversion", "ce_specversion is missing")? != "1.0" {
        return Err("ce_specversion is not 1.0");
    }
    required("ce_id", "ce_id is missing")?;
    required("ce_type", "ce_type is missing")?;
    let connector = required("ce_source", "ce_source is missing")?;
    let request_id = attributes.get("ce_requestid").or_else(|| attributes.get("ce_subject"));
    let attempt = required("ce_attempt", "ce_attempt is missing")?;
    let time = attributes.get("ce_time").map(|text| Timestamp::parse_rfc3339(text).ok_or("ce_time is not RFC 3339"));
    Ok(ToolResponse {
        request_id: request_id.ok_or("neither ce_requestid nor ce_subject is given")?.into(),
        tool: required("ce_tool", "ce_tool is missing")?.into(),
        attempt: whole(attempt).ok_or("ce_attempt is not a whole number")?,
        body: value.to_vec(),
        content_type: content_type.map(Into::into),
        outcome: outcome(&attributes)?,
        received_at_unix_ms: time.transpose()?.map_or(0, Timestamp::unix_millis),
        endpoint: attributes.get("ce_endpoint").unwrap_or_default().into(),
        connector: connector.into(),
        connector_version: attributes.get("ce_connectorversion").unwrap_or_default().into(),
        headers: upstream,
    })
}

/// The record headers of a response; its value is the body. `id` is the event's own, unique with its source. Reads back
/// as the same message where its texts are not empty.
pub fn write_binary(response: &ToolResponse, id: &str) -> Vec<(String, String)> {
    let source = if response.connector.is_empty() { "/toolgate/send" } else { &response.connector };
    let time = Timestamp::from_unix_millis(response.received_at_unix_ms).map(|time| time.to_string());
    let (ending, ended) = match response.outcome.and_then(|outcome| outcome.outcome) {
        Some(Outcome::HttpStatus(status)) => ("ce_httpstatus", status.to_string()),
        Some(Outcome::ExitCode(code)) => ("ce_exitcode", code.to_string()),
        Some(Outcome::RpcErrorCode(code)) => ("ce_rpcerror", code.to_string()),
        Some(Outcome::Timeout(_)) => ("ce_failure", "timeout".to_owned()),
        Some(Outcome::ConnectionFailed(_)) => ("ce_failure", "connection".to_owned()),
        None => ("ce_failure", String::new()),
    };
    let attributes = [
        ("content-type", response.content_type.clone().unwrap_or_default()),
        ("ce_specversion", "1.0".to_owned()),
        ("ce_id", id.to_owned()),
        ("ce_source", source.to_owned()),
        ("ce_type", "dev.toolgate.response.v1".to_owned()),
        ("ce_requestid", response.request_id.clone()),
        ("ce_tool", response.tool.clone()),
        ("ce_attempt", response.attempt.to_string()),
        (ending, ended),
        ("ce_time", time.unwrap_or_default()),
        ("ce_endpoint", response.endpoint.clone()),
        ("ce_connectorversion", response.connector_version.clone()),
    ];
    // An attribute without a value is not written: a reader refuses it.
    let given = attributes.into_iter().filter(|(_, value)| !value.is_empty());
    let upstream = response.headers.iter().map(|one| (format!("{UPSTREAM_PREFIX}{}", one.name), one.value.clone()));
    given.map(|(name, value)| (name.to_owned(), value)).chain(upstream).collect()
}

/// Attributes and media type by lower-case name, sorted, each given once and not empty.
struct Attributes<'a>(Vec<(String, &'a str)>);

impl<'a> Attributes<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok().map(|index| self.0[index].1)
    }
}

fn collect<'a>(
    headers: impl IntoIterator<Item = RecordHeader<'a>>,
) -> Result<(Attributes<'a>, Vec<Header>), &'static str> {
    let mut attributes = Vec::new();
    let mut upstream = Vec::new();
    for (count, (name, value)) in headers.into_iter().enumerate() {
        if count == RECORD_HEADERS_MAX {
            return Err("more than 128 record headers");
        }
        let name = name.to_ascii_lowercase();
        if let Some(original) = name.strip_prefix(UPSTREAM_PREFIX) {
            upstream.push(Header { name: original.into(), value: text(value)?.into() });
        } else if name.starts_with("ce_") || name == "content-type" {
            attributes.push((name, text(value)?));
        }
    }
    attributes.sort_unstable();
    if attributes.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err("a CloudEvents header was given more than once");
    }
    Ok((Attributes(attributes), upstream))
}

fn text(value: Option<&[u8]>) -> Result<&str, &'static str> {
    let bytes = value.filter(|bytes| !bytes.is_empty()).ok_or("a CloudEvents header is empty")?;
    if bytes.len() > VALUE_BYTES_MAX {
        return Err("a CloudEvents header is longer than 4096 bytes");
    }
    std::str::from_utf8(bytes).map_err(|_| "a CloudEvents header is not UTF-8")
}

fn outcome(attributes: &Attributes<'_>) -> Result<Option<TransportOutcome>, &'static str> {
    let mut found = Vec::new();
    if let Some(text) = attributes.get("ce_httpstatus") {
        found.push(Outcome::HttpStatus(whole(text).ok_or("ce_httpstatus is not a whole number")?));
    }
    if let Some(text) = attributes.get("ce_exitcode") {
        found.push(Outcome::ExitCode(whole(text).ok_or("ce_exitcode is not a whole number")?));
    }
    if let Some(text) = attributes.get("ce_rpcerror") {
        found.push(Outcome::RpcErrorCode(whole(text).ok_or("ce_rpcerror is not a whole number")?));
    }
    match attributes.get("ce_failure") {
        None => {}
        Some("timeout") => found.push(Outcome::Timeout(true)),
        Some("connection") => found.push(Outcome::ConnectionFailed(true)),
        Some(_) => return Err("ce_failure is neither timeout nor connection"),
    }
    if found.len() > 1 {
        return Err("more than one transport outcome is given");
    }
    Ok(found.pop().map(|outcome| TransportOutcome { outcome: Some(outcome) }))
}

/// A decimal integer as a producer writes one: no plus sign, no leading zero, no `-0`.
fn whole<T: std::str::FromStr + std::fmt::Display>(text: &str) -> Option<T> {
    text.parse::<T>().ok().filter(|number| number.to_string() == text)
}

fn starts_without_case(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix))
}

/// What kind of event we publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    ResultAccepted,
    ResultFailed,
    AuditDecision,
}

impl EventType {
    /// The value of `ce_type`.
    pub const fn name(self) -> &'static str {
        match self {
            EventType::ResultAccepted => "dev.toolgate.result.accepted.v1",
            EventType::ResultFailed => "dev.toolgate.result.failed.v1",
            EventType::AuditDecision => "dev.toolgate.audit.decision.v1",
        }
    }
}

/// The attributes of an event that we publish. All of it is ours: nothing comes from a response.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    pub kind: EventType,
    /// Unique with `source`: the decision's id.
    pub id: &'a str,
    /// The worker group, as a URI reference: `/toolgate/<group>`.
    pub source: &'a str,
    /// The request's id.
    pub subject: &'a str,
    pub time: Timestamp,
    /// `contract@version`; `None` where no contract judged.
    pub contract: Option<&'a str>,
    pub content_type: &'a str,
}

impl Event<'_> {
    /// Record headers in binary mode, always in this order.
    pub fn headers(&self) -> Vec<(&'static str, Vec<u8>)> {
        let mut headers = vec![
            ("content-type", self.content_type.into()),
            ("ce_specversion", b"1.0".to_vec()),
            ("ce_id", self.id.into()),
            ("ce_source", self.source.into()),
            ("ce_type", self.kind.name().into()),
            ("ce_subject", self.subject.into()),
            ("ce_time", self.time.to_string().into()),
        ];
        headers.extend(self.contract.map(|contract| ("ce_dataschema", contract.into())));
        headers
    }
}

#[cfg(test)]
mod tests;
