//! What single fields of a record may hold. Errors are fixed sentences.

use crate::time::Timestamp;

pub(super) const REQUEST_ID_BYTES_MAX: usize = 128;
pub(super) const TOOL_BYTES_MAX: usize = 100;
pub(super) const CONTENT_TYPE_BYTES_MAX: usize = 255;

/// `^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$`. The pattern of an agent's envelope may be narrower.
pub(super) fn request_id(text: String) -> Result<String, &'static str> {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    let Some(first) = text.bytes().next() else { return Err("the request id is missing") };
    let valid = text.len() <= REQUEST_ID_BYTES_MAX && first.is_ascii_alphanumeric() && text.bytes().all(inner);
    if valid { Ok(text) } else { Err("the request id is malformed") }
}

/// `^[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$`, at most 100 bytes.
pub(super) fn tool(text: String) -> Result<String, &'static str> {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let Some(first) = text.bytes().next() else { return Err("the tool is missing") };
    let valid = text.len() <= TOOL_BYTES_MAX
        && first.is_ascii_lowercase()
        && text.split('.').all(|part| !part.is_empty() && part.bytes().all(inner));
    if valid { Ok(text) } else { Err("the tool's name is malformed") }
}

pub(super) fn attempt(number: u32) -> Result<u32, &'static str> {
    if number == 0 { Err("the attempt is below 1") } else { Ok(number) }
}

/// The key decides the partition, so it must be the id that everything is looked up by.
pub(super) fn key(key: Option<&[u8]>, request_id: &str) -> Result<(), &'static str> {
    if key == Some(request_id.as_bytes()) { Ok(()) } else { Err("the record's key is not the request id") }
}

/// A moment from 1970-01-01T00:00:00.001Z to the end of the year 9999.
pub(super) fn time(unix_millis: i64, out_of_range: &'static str) -> Result<Timestamp, &'static str> {
    Some(unix_millis).filter(|millis| *millis > 0).and_then(Timestamp::from_unix_millis).ok_or(out_of_range)
}

/// Text of one line; may be empty.
pub(super) fn line(text: String, bytes_max: usize, malformed: &'static str) -> Result<String, &'static str> {
    let valid = text.len() <= bytes_max && !text.chars().any(char::is_control);
    if valid { Ok(text) } else { Err(malformed) }
}

/// Empty counts as absent, since many producers cannot tell the two apart.
pub(super) fn content_type(text: Option<String>) -> Result<Option<String>, &'static str> {
    let malformed = "the content type is longer than 255 bytes or holds a control character";
    text.filter(|text| !text.is_empty()).map(|text| line(text, CONTENT_TYPE_BYTES_MAX, malformed)).transpose()
}

/// W3C Trace Context, version 00: `00-<32 hex>-<16 hex>-<2 hex>` in lower case, ids not all zero.
pub(super) fn is_traceparent(text: &str) -> bool {
    let hex =
        |part: &str, len| part.len() == len && part.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'));
    let id = |part: &str, len| hex(part, len) && part.bytes().any(|byte| byte != b'0');
    let mut parts = text.split('-');
    let mut next = || parts.next().unwrap_or_default();
    let valid = next() == "00" && id(next(), 32) && id(next(), 16) && hex(next(), 2);
    valid && parts.next().is_none()
}

/// JSON-RPC 2.0, section 4: an id is a string or a number, and MCP wants whole numbers.
pub(super) fn is_rpc_id(text: &str) -> bool {
    if text.starts_with('"') && text.ends_with('"') {
        return serde_json::from_str::<String>(text).is_ok();
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let leading_zero = digits.len() > 1 && digits.starts_with('0');
    !digits.is_empty() && !leading_zero && digits.bytes().all(|byte| byte.is_ascii_digit())
}
