//! `contract.yaml` as it is written, after the file's own schema has accepted it.
//!
//! Nothing here decides anything: [`compile`](super::compile) turns it into the plan that the
//! stages run. The format is described in `docs/contracts.md` and `schemas/contract.schema.json`.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawContract {
    pub tool: String,
    pub version: u32,
    pub status: Status,
    pub about: String,
    pub owner: Owner,
    pub source: RawSource,
    #[serde(default)]
    pub limits: RawLimits,
    pub adapt: Option<RawAdapt>,
    #[serde(default = "data_file")]
    pub data: String,
    pub envelope: Option<String>,
    #[serde(default)]
    pub bound_by: BoundBy,
    #[serde(default)]
    pub bind: Vec<RawBind>,
    pub issuer: Option<RawIssuer>,
    #[serde(default, deserialize_with = "one_or_many")]
    pub fresh: Vec<RawFresh>,
    #[serde(default)]
    pub rules: Vec<RawRule>,
    #[serde(default)]
    pub text: BTreeMap<String, RawText>,
    pub select: Option<Vec<RawSelect>>,
    #[serde(default)]
    pub codes: BTreeMap<String, RawCode>,
    pub retry: Option<RawRetry>,
    #[serde(default)]
    pub refusal: RawRefusal,
    #[serde(default)]
    pub quarantine: RawQuarantine,
    #[serde(default)]
    pub replay: RawReplay,
    #[serde(default = "retention")]
    pub retention: Millis,
}

fn data_file() -> String {
    "data.schema.json".into()
}

fn retention() -> Millis {
    Millis(48 * 3_600_000)
}

/// Whether a version judges for the agent, judges in silence, or is kept only for pinned requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Active,
    Shadow,
    Retired,
}

/// Who mends the adapter when the vendor drifts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    pub team: String,
    pub contact: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    HttpJson,
    Webhook,
    Mcp,
    CliJson,
    Envelope,
    Text,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSource {
    pub kind: SourceKind,
    pub media_types: Option<Vec<String>>,
    pub success: Option<Vec<i32>>,
    #[serde(default)]
    pub empty: RawEmpty,
    pub prefix: Option<String>,
    #[serde(default)]
    pub byte_order_mark: RawMark,
    pub failures: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub errors: Vec<RawError>,
    #[serde(default)]
    pub mcp: RawMcp,
    pub signature: Option<RawSignature>,
    pub text: Option<RawPattern>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RawEmpty {
    #[default]
    Refuse,
    Success,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RawMark {
    #[default]
    Refuse,
    Strip,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawError {
    #[serde(deserialize_with = "one_or_many")]
    pub when: Vec<RawCond>,
    pub code: String,
    pub by: Option<RawBy>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBy {
    pub at: String,
    pub map: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawMcp {
    #[serde(default)]
    pub frame: Frame,
}

/// How an MCP result reaches the topic: inside its JSON-RPC response, bare, or either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Frame {
    Jsonrpc,
    Bare,
    #[default]
    Either,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSignature {
    pub scheme: Scheme,
    pub header: Option<String>,
    pub secrets: Vec<String>,
    pub tolerance: Millis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Scheme {
    StandardWebhooks,
    TimestampedHmac,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPattern {
    pub pattern: String,
    #[serde(default)]
    pub counts: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLimits {
    pub body_bytes_max: Option<usize>,
    pub depth_max: Option<u32>,
    pub members_max: Option<u32>,
    pub items_max: Option<u32>,
    pub string_bytes_max: Option<u32>,
    pub result_bytes_max: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum RawAdapt {
    Shapes(Vec<RawShape>),
    Fields(BTreeMap<String, RawSpec>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawShape {
    pub shape: String,
    #[serde(deserialize_with = "one_or_many")]
    pub when: Vec<RawCond>,
    pub fields: BTreeMap<String, RawSpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawSpec {
    pub from: Option<String>,
    pub request: Option<String>,
    #[serde(rename = "const", deserialize_with = "present")]
    pub constant: Option<Value>,
    pub header: Option<String>,
    pub count: Option<String>,
    pub each: Option<String>,
    pub find: Option<String>,
    pub fields: Option<BTreeMap<String, RawSpec>>,
    pub sum: Option<Vec<String>>,
    #[serde(rename = "where", deserialize_with = "one_or_many")]
    pub filter: Vec<RawCond>,
    pub item: Option<Box<RawSpec>>,
    pub take: Option<String>,
    pub distinct: bool,
    pub capture: Option<String>,
    pub replace: BTreeMap<String, String>,
    pub map: Option<BTreeMap<String, Value>>,
    #[serde(rename = "as")]
    pub convert: Option<Convert>,
    pub if_missing: Option<RawFallback>,
    pub if_null: Option<RawFallback>,
}

/// The typed conversions of an adapter table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Convert {
    String,
    Integer,
    Number,
    Boolean,
    Timestamp,
    Iso8601,
    EpochS,
    EpochMs,
    EpochUs,
    ParseInteger,
    ParseNumber,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum RawFallback {
    Word(Omit),
    Value(RawValue),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Omit {
    Omit,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawValue {
    pub value: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawCond {
    pub at: String,
    #[serde(deserialize_with = "present")]
    pub equals: Option<Value>,
    pub one_of: Option<Vec<Value>>,
    pub matches: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub present: Option<bool>,
    pub not_empty: Option<bool>,
    pub is_null: Option<bool>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BoundBy {
    #[default]
    Content,
    Correlation,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBind {
    pub data: String,
    pub equals: Option<String>,
    #[serde(rename = "in")]
    pub member_of: Option<String>,
    pub prefix: Option<String>,
    pub at_least: Option<String>,
    #[serde(default)]
    pub optional: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawIssuer {
    pub at: String,
    pub one_of: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFresh {
    pub at: String,
    pub max_age: Option<Millis>,
    #[serde(default)]
    pub max_skew: Millis,
    pub not_before_request: Option<Millis>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRule {
    pub id: String,
    pub cel: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawText {
    pub max_chars: u32,
    #[serde(default)]
    pub emoji: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum RawSelect {
    Name(String),
    Converted(BTreeMap<String, SelectAs>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SelectAs {
    String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCode {
    pub about: String,
    #[serde(default)]
    pub retryable: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRetry {
    pub on: Vec<String>,
    pub attempts_max: u32,
    pub budget: Millis,
    pub backoff: RawBackoff,
    #[serde(default = "share_max")]
    pub share_max: f64,
}

fn share_max() -> f64 {
    0.2
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBackoff {
    pub initial: Millis,
    pub max: Millis,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RawRefusal {
    #[default]
    Close,
    #[serde(untagged)]
    Hold(RawHold),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHold {
    pub hold: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawQuarantine {
    #[serde(default)]
    pub payload: Payload,
    #[serde(default = "quarantine_retention")]
    pub retention: Millis,
}

fn quarantine_retention() -> Millis {
    Millis(30 * 86_400_000)
}

impl Default for RawQuarantine {
    fn default() -> Self {
        Self { payload: Payload::default(), retention: quarantine_retention() }
    }
}

/// What the quarantine keeps of a refused body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    #[default]
    Plain,
    Digest,
    Sealed,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawReplay {
    #[serde(default)]
    pub deliver_late: bool,
    #[serde(default = "replay_window")]
    pub window: Millis,
}

fn replay_window() -> Millis {
    Millis(24 * 3_600_000)
}

impl Default for RawReplay {
    fn default() -> Self {
        Self { deliver_late: false, window: replay_window() }
    }
}

/// A duration as people write it: `250ms`, `30s`, `5m`, `24h`, `30d`. In milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub i64);

impl Millis {
    /// Reads one whole number and one unit; at most ten years.
    pub fn parse(text: &str) -> Option<Millis> {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let unit = match &text[digits..] {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        let millis = text[..digits].parse::<i64>().ok()?.checked_mul(unit)?;
        (millis <= 3650 * 86_400_000).then_some(Millis(millis))
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Millis, D::Error> {
        let text = String::deserialize(deserializer)?;
        Millis::parse(&text).ok_or_else(|| {
            serde::de::Error::custom(format!("{text:?} is no duration; write 250ms, 30s, 5m, 24h or 30d"))
        })
    }
}

fn one_or_many<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany<T> {
        Many(Vec<T>),
        One(T),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::Many(many) => many,
        OneOrMany::One(one) => vec![one],
    })
}

/// Tells `const: null` from an absent `const`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_write_them() {
        for (text, millis) in
            [("250ms", 250), ("30s", 30_000), ("5m", 300_000), ("24h", 86_400_000), ("30d", 2_592_000_000)]
        {
            assert_eq!(Millis::parse(text), Some(Millis(millis)));
        }
        for text in ["", "5", "m", "5 m", "-5m", "5M", "99999999999999999999s", "4000d", "1.5h"] {
            assert_eq!(Millis::parse(text), None, "{text}");
        }
    }
}
