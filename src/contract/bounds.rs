//! The largest result that a schema admits: a context budget that is proven, not hoped for.
//!
//! Each subschema is measured once, so the work is linear in the schema however its references
//! fork. Where a keyword says nothing, a kind of value is endless; where several schemas apply,
//! each is an upper bound and the smallest holds; alternatives take the largest. Conditions and
//! `not` only ever admit less, and are left out. Sums saturate.

mod extent;
#[cfg(test)]
mod tests;

use super::lint::{declared_types, string_facts};
use crate::time::Timestamp;
use extent::{Extent, Extents, Kind};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// What a contract's results are at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of JSON text.
    pub result_bytes_max: u64,
    /// Characters of declared free text.
    pub free_text_chars_max: u64,
}

/// A place that has no bound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} has no bound")]
pub struct BoundsError(pub String);

const DEPTH_MAX: usize = 128;
/// The longest RFC 3339 time, read or written normalised, with its quotation marks.
const TIME_BYTES: u64 = 37;
/// The parser refuses longer number lexemes.
const NUMBER_BYTES: u64 = 64;
const QUOTES: u64 = 2;
/// Quotation marks, colon and comma of a member.
const MEMBER_BYTES: u64 = 4;

/// The largest object that holds the selected members of this data schema.
///
/// # Errors
/// A selected member is not declared, or admits values of any size.
pub fn bounds(schema: &Value, selected: &[&str]) -> Result<Bounds, BoundsError> {
    let mut measure = Measure { root: schema, known: HashMap::new(), depth: 0 };
    let closed = !matches!(measure.extents(schema).0[Kind::Object as usize], Extent::Endless);
    let parts = measure.in_place(schema);
    let mut total = bytes(2);
    for name in selected {
        // A number that is selected as a string has quotation marks around its digits.
        let value = measure.member(name, &parts, closed).plus(bytes(QUOTES));
        match value {
            Extent::Finite(value) => total = total.plus(value).plus(member_bytes(name)),
            Extent::Never => {}
            Extent::Endless => {
                return Err(BoundsError(format!("/{}", name.replace('~', "~0").replace('/', "~1"))));
            }
        }
    }
    Ok(total)
}

/// Bytes of the envelope around the data: `{"tool":...,"request_id":...,"outcome":"success","data":}`.
pub fn envelope_overhead(tool: &str, request_id_max: usize) -> u64 {
    let fixed = r#"{"tool":"","request_id":"","outcome":"success","data":}"#.len();
    (fixed + tool.len() + request_id_max) as u64
}

const fn bytes(count: u64) -> Bounds {
    Bounds { result_bytes_max: count, free_text_chars_max: 0 }
}

fn member_bytes(name: &str) -> Bounds {
    bytes(text_bytes(name) + MEMBER_BYTES)
}

/// Bytes of a text as JSON, as toolgate writes it, without the quotation marks.
fn text_bytes(text: &str) -> u64 {
    let mut out = String::new();
    crate::gate::json::write_string(text, &mut out);
    out.len() as u64 - QUOTES
}

/// A subschema that applies to the same value, and whether it always does.
#[derive(Clone, Copy)]
struct Part<'s> {
    schema: &'s Value,
    always: bool,
}

struct Measure<'s> {
    root: &'s Value,
    known: HashMap<*const Value, Extents>,
    /// Subschemas that are being measured inside one another. A cycle comes to this limit, and what
    /// has been measured on the way is known: it costs no more than a long chain.
    depth: usize,
}

impl<'s> Measure<'s> {
    fn extents(&mut self, schema: &'s Value) -> Extents {
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(false) => return Extents::NEVER,
            Value::Null | Value::Bool(true) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Extents::ENDLESS;
            }
        };
        if let Some(known) = self.known.get(&std::ptr::from_ref(schema)) {
            return *known;
        }
        if self.depth > DEPTH_MAX {
            return Extents::ENDLESS;
        }
        self.depth += 1;
        let mut extents = self.own(schema, members);
        if let Some(target) = self.target(members) {
            extents = extents.both(self.extents(target));
        }
        for branch in branches(members, "allOf") {
            extents = extents.both(self.extents(branch));
        }
        for keyword in ["anyOf", "oneOf"].iter().filter(|keyword| members.contains_key(**keyword)) {
            let any = branches(members, keyword).fold(Extents::NEVER, |any, branch| any.either(self.extents(branch)));
            extents = extents.both(any);
        }
        self.depth -= 1;
        self.known.insert(schema, extents);
        extents
    }

    /// What the keywords of one schema say by themselves.
    fn own(&mut self, schema: &'s Value, members: &'s Map<String, Value>) -> Extents {
        let mut extents = Extents::ENDLESS;
        let finite = |count| Extent::Finite(bytes(count));
        extents.set(Kind::Null, finite(4));
        extents.set(Kind::Boolean, finite(5));
        extents.set(Kind::Number, finite(number(members)));
        extents.set(Kind::String, string(members));
        extents.set(Kind::Array, self.array(members));
        extents.set(Kind::Object, self.object(schema, members));
        let listed = members.get("const").into_iter().chain(branches(members, "enum"));
        if members.contains_key("const") || members.contains_key("enum") {
            extents = extents.both(listed.fold(Extents::NEVER, |all, value| all.either(exactly(value))));
        }
        if members.contains_key("type") {
            let kinds: Vec<Kind> = declared_types(members).into_iter().filter_map(Kind::named).collect();
            extents.keep(&kinds);
        }
        extents
    }

    fn array(&mut self, members: &'s Map<String, Value>) -> Extent {
        let most = members.get("maxItems").and_then(Value::as_u64);
        let item = members.get("items").map(|items| self.extents(items).largest());
        match (most, item) {
            (Some(0), _) | (_, Some(Extent::Never)) if !members.contains_key("prefixItems") => Extent::Finite(bytes(2)),
            (Some(most), Some(item)) if !members.contains_key("prefixItems") => {
                item.plus(bytes(1)).times(most).plus(bytes(2))
            }
            (_, _) => Extent::Endless,
        }
    }

    fn object(&mut self, schema: &'s Value, members: &'s Map<String, Value>) -> Extent {
        let closed_by = |keyword: &str| members.get(keyword) == Some(&Value::Bool(false));
        let parts = if closed_by("additionalProperties") {
            vec![Part { schema, always: true }]
        } else if closed_by("unevaluatedProperties") {
            self.in_place(schema)
        } else {
            return Extent::Endless;
        };
        if parts.iter().any(|part| admits_unnamed(part.schema)) {
            return Extent::Endless;
        }
        let mut names: Vec<&str> =
            parts.iter().flat_map(|part| properties(part.schema)).map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().fold(Extent::Finite(bytes(2)), |total, name| match self.member(name, &parts, true) {
            Extent::Never => total,
            value @ (Extent::Finite(_) | Extent::Endless) => total.and(value).plus(member_bytes(name)),
        })
    }

    /// The largest value of a member to which these parts speak. Parts that always apply each bound
    /// it; of the others one does, where the object is `closed` and the member thus declared by one.
    fn member(&mut self, name: &str, parts: &[Part<'s>], closed: bool) -> Extent {
        let mut always = None;
        let mut sometimes = None;
        for part in parts {
            let Some(schema) = part.schema.get("properties").and_then(|properties| properties.get(name)) else {
                continue;
            };
            let value = self.extents(schema).largest();
            if part.always {
                always = Some(always.map_or(value, |known: Extent| known.min(value)));
            } else {
                sometimes = Some(sometimes.map_or(value, |known: Extent| known.max(value)));
            }
        }
        always.or(sometimes.filter(|_| closed)).unwrap_or(Extent::Endless)
    }

    /// The schema and all that applies to the same value.
    fn in_place(&self, schema: &'s Value) -> Vec<Part<'s>> {
        let mut parts: Vec<Part<'s>> = Vec::new();
        let mut at: HashMap<*const Value, usize> = HashMap::new();
        let mut pending = vec![Part { schema, always: true }];
        while let Some(part) = pending.pop() {
            match at.get(&std::ptr::from_ref(part.schema)) {
                Some(known) if parts[*known].always || !part.always => continue,
                Some(known) => parts[*known].always = true,
                None => {
                    at.insert(part.schema, parts.len());
                    parts.push(part);
                }
            }
            let Some(members) = part.schema.as_object() else { continue };
            let beside = |schema, always| Part { schema, always: part.always && always };
            pending.extend(self.target(members).map(|target| beside(target, true)));
            pending.extend(branches(members, "allOf").map(|branch| beside(branch, true)));
            pending.extend(branches(members, "anyOf").map(|branch| beside(branch, false)));
            pending.extend(branches(members, "oneOf").map(|branch| beside(branch, false)));
            let conditions = ["if", "then", "else"].into_iter().filter_map(|keyword| members.get(keyword));
            pending.extend(conditions.map(|branch| beside(branch, false)));
        }
        parts
    }

    fn target(&self, members: &Map<String, Value>) -> Option<&'s Value> {
        self.root.pointer(members.get("$ref")?.as_str()?.strip_prefix('#')?)
    }
}

fn branches<'s>(members: &'s Map<String, Value>, keyword: &str) -> impl Iterator<Item = &'s Value> {
    members.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

fn properties(schema: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, schema)| (name.as_str(), schema))
}

/// Does this part evaluate members that it does not name?
fn admits_unnamed(schema: &Value) -> bool {
    let open = |keyword: &str| schema.get(keyword).is_some_and(|value| *value != Value::Bool(false));
    ["additionalProperties", "unevaluatedProperties", "patternProperties", "dependentSchemas", "$dynamicRef"]
        .into_iter()
        .any(open)
}

fn number(members: &Map<String, Value>) -> u64 {
    let only_integers = declared_types(members).contains(&"integer") && !declared_types(members).contains(&"number");
    let limit = |keywords: [&str; 2], digits: fn(&Value) -> Option<u64>| {
        keywords.iter().filter_map(|keyword| members.get(*keyword).and_then(digits)).min()
    };
    let low = limit(["minimum", "exclusiveMinimum"], |value| digits(value, true));
    let high = limit(["maximum", "exclusiveMaximum"], |value| digits(value, false));
    match (low, high) {
        // `-0` is written with two characters.
        (Some(low), Some(high)) if only_integers => low.max(high).max(2),
        (_, _) => NUMBER_BYTES,
    }
}

/// Characters of the longest integer on one side of zero that this limit admits there.
fn digits(limit: &Value, below: bool) -> Option<u64> {
    let number = limit.as_number()?;
    let text = match (number.as_i64(), number.as_u64()) {
        (Some(integer), _) => integer.to_string(),
        (None, Some(integer)) => integer.to_string(),
        // Written out: 1e16 has 17 digits.
        (None, None) => format!("{:.0}", number.as_f64()?),
    };
    let is_on_that_side = text.starts_with('-') == below;
    Some(if is_on_that_side { text.len() as u64 } else { 1 })
}

fn string(members: &Map<String, Value>) -> Extent {
    if members.get("format").and_then(Value::as_str) == Some("date-time") {
        return Extent::Finite(bytes(TIME_BYTES));
    }
    let Ok(facts) = string_facts(members) else { return Extent::Endless };
    match (facts.json_bytes_max, facts.chars_max) {
        (Some(most), Some(chars)) => Extent::Finite(Bounds {
            result_bytes_max: most.saturating_add(QUOTES),
            free_text_chars_max: if facts.closed { 0 } else { chars },
        }),
        (_, _) => Extent::Endless,
    }
}

/// The extent of one listed value. Numbers are listed by value: 10 is also written 1.0e1.
fn exactly(value: &Value) -> Extents {
    let mut extents = Extents::NEVER;
    extents.set(Kind::of(value), Extent::Finite(bytes(value_bytes(value))));
    extents
}

/// Bytes of a listed value as JSON; its nesting is the schema file's, which its parser has bounded.
fn value_bytes(value: &Value) -> u64 {
    match value {
        Value::Null => 4,
        Value::Bool(_) => 5,
        Value::Number(_) => NUMBER_BYTES,
        // A listed time is written normalised, with more digits than it may be listed with.
        Value::String(text) if Timestamp::parse_rfc3339(text).is_some() => TIME_BYTES.max(text_bytes(text) + QUOTES),
        Value::String(text) => text_bytes(text) + QUOTES,
        Value::Array(items) => items.iter().map(|item| value_bytes(item) + 1).sum::<u64>() + 2,
        Value::Object(members) => {
            members.iter().map(|(name, value)| value_bytes(value) + text_bytes(name) + MEMBER_BYTES).sum::<u64>() + 2
        }
    }
}
