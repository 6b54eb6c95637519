//! The largest result that a schema admits: a context budget that is proven, not hoped for.

use super::lint::{pattern_json_bytes_max, schemas_at};
use serde_json::Value;

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

const DEPTH_MAX: usize = 24;
/// A character in JSON text is at most four bytes of UTF-8; the escaped quotation mark and reverse
/// solidus are two, and controls have been refused.
const BYTES_PER_CHAR: u64 = 4;
const DATE_TIME_BYTES: u64 = 35;
const NUMBER_BYTES: u64 = 64;

/// The largest object that holds the selected members of this data schema.
///
/// # Errors
/// A selected place admits values of any size.
pub fn bounds(schema: &Value, selected: &[&str]) -> Result<Bounds, BoundsError> {
    let mut total = Bounds { result_bytes_max: 2, free_text_chars_max: 0 };
    for name in selected {
        let place = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        let value = largest(schema, &place, 0)?;
        total = total.plus(value).plus(bytes(text_bytes(name) + 4));
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

impl Bounds {
    fn plus(self, other: Bounds) -> Bounds {
        Bounds {
            result_bytes_max: self.result_bytes_max.saturating_add(other.result_bytes_max),
            free_text_chars_max: self.free_text_chars_max.saturating_add(other.free_text_chars_max),
        }
    }

    fn times(self, count: u64) -> Bounds {
        Bounds {
            result_bytes_max: self.result_bytes_max.saturating_mul(count),
            free_text_chars_max: self.free_text_chars_max.saturating_mul(count),
        }
    }

    fn max(self, other: Bounds) -> Bounds {
        Bounds {
            result_bytes_max: self.result_bytes_max.max(other.result_bytes_max),
            free_text_chars_max: self.free_text_chars_max.max(other.free_text_chars_max),
        }
    }
}

/// The largest value at a place of the data. Where several schemas apply, each is an upper bound
/// of its own and the smallest one holds; alternatives only widen one another.
fn largest(root: &Value, place: &str, depth: usize) -> Result<Bounds, BoundsError> {
    if depth > DEPTH_MAX {
        return Err(BoundsError(place.to_owned()));
    }
    let parts = schemas_at(root, place);
    let listed: Option<Bounds> = parts.iter().filter_map(|part| listed_bytes(part)).reduce(Bounds::max);
    if let Some(listed) = listed {
        return Ok(listed);
    }
    let kinds: Vec<&str> = parts.iter().flat_map(|part| types(part)).collect();
    let mut most: Option<Bounds> = None;
    for kind in kinds {
        let bound = match kind {
            "null" => bytes(4),
            "boolean" => bytes(5),
            "integer" => number(&parts).unwrap_or(bytes(NUMBER_BYTES)),
            "number" => bytes(NUMBER_BYTES),
            "string" => string(&parts).ok_or_else(|| BoundsError(place.to_owned()))?,
            "array" => array(root, &parts, place, depth)?,
            "object" => object(root, &parts, place, depth)?,
            _ => return Err(BoundsError(place.to_owned())),
        };
        most = Some(most.map_or(bound, |known| known.max(bound)));
    }
    most.ok_or_else(|| BoundsError(place.to_owned()))
}

fn types(part: &Value) -> Vec<&str> {
    match part.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        Some(_) | None => Vec::new(),
    }
}

fn listed_bytes(part: &Value) -> Option<Bounds> {
    let constant = part.get("const").into_iter();
    let values = part.get("enum").and_then(Value::as_array).into_iter().flatten();
    constant.chain(values).map(|value| bytes(value.to_string().len() as u64)).reduce(Bounds::max)
}

fn number(parts: &[&Value]) -> Option<Bounds> {
    let limit = |keywords: [&str; 2]| {
        let values = parts.iter().flat_map(|part| keywords.iter().filter_map(|keyword| part.get(*keyword)));
        values.map(|value| value.to_string().len() as u64).min()
    };
    let (low, high) = (limit(["minimum", "exclusiveMinimum"])?, limit(["maximum", "exclusiveMaximum"])?);
    // A negative number may be longer than both limits are: -9 lies between -10 and 5.
    Some(bytes(low.max(high) + 1))
}

fn string(parts: &[&Value]) -> Option<Bounds> {
    let quotes = 2;
    let is_time = parts.iter().any(|part| part.get("format").and_then(Value::as_str) == Some("date-time"));
    if is_time {
        return Some(bytes(DATE_TIME_BYTES + quotes));
    }
    let chars = parts.iter().filter_map(|part| part.get("maxLength").and_then(Value::as_u64)).min();
    let patterns = parts.iter().filter_map(|part| part.get("pattern").and_then(Value::as_str));
    let by_pattern = patterns.filter_map(pattern_json_bytes_max).min();
    let is_closed = parts.iter().any(|part| part.get("pattern").is_some() || part.get("format").is_some());
    match (by_pattern, chars) {
        (Some(most), None) => Some(bytes(most.saturating_add(quotes))),
        (Some(most), Some(chars)) => Some(bytes(most.min(chars.saturating_mul(BYTES_PER_CHAR)) + quotes)),
        (None, Some(chars)) => Some(Bounds {
            result_bytes_max: chars.saturating_mul(BYTES_PER_CHAR).saturating_add(quotes),
            free_text_chars_max: if is_closed { 0 } else { chars },
        }),
        (None, None) => None,
    }
}

fn array(root: &Value, parts: &[&Value], place: &str, depth: usize) -> Result<Bounds, BoundsError> {
    let most = parts.iter().filter_map(|part| part.get("maxItems").and_then(Value::as_u64)).min();
    let count = most.ok_or_else(|| BoundsError(place.to_owned()))?;
    if count == 0 {
        return Ok(bytes(2));
    }
    let item = largest(root, &format!("{place}/*"), depth + 1)?;
    Ok(item.plus(bytes(1)).times(count).plus(bytes(2)))
}

fn object(root: &Value, parts: &[&Value], place: &str, depth: usize) -> Result<Bounds, BoundsError> {
    let mut names: Vec<&String> = parts
        .iter()
        .filter_map(|part| part.get("properties").and_then(Value::as_object))
        .flat_map(|members| members.keys())
        .collect();
    names.sort();
    names.dedup();
    let mut total = bytes(2);
    for name in names {
        let member = largest(root, &format!("{place}/{}", name.replace('~', "~0").replace('/', "~1")), depth + 1)?;
        total = total.plus(member).plus(bytes(text_bytes(name) + 4));
    }
    Ok(total)
}

fn text_bytes(name: &str) -> u64 {
    let mut out = String::new();
    crate::gate::json::write_string(name, &mut out);
    out.len() as u64 - 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(property: Value, expect: Result<(u64, u64), &str>) {
        let schema = json!({"type": "object", "properties": {"a": property}, "additionalProperties": false});
        let found =
            bounds(&schema, &["a"]).map(|b| (b.result_bytes_max, b.free_text_chars_max)).map_err(|error| error.0);
        // {"a":,} around the value: the comma of a last member is counted and not written.
        assert_eq!(found, expect.map(|(bytes, chars)| (bytes + 7, chars)).map_err(str::to_owned));
    }

    #[test]
    fn each_kind_of_value_has_its_largest_text() {
        check(json!({"const": "abc"}), Ok((5, 0)));
        check(json!({"enum": ["a", "failed", 10]}), Ok((8, 0)));
        check(json!({"type": "boolean"}), Ok((5, 0)));
        check(json!({"type": "integer", "minimum": 0, "maximum": 999}), Ok((4, 0)));
        check(json!({"type": "string", "format": "date-time", "maxLength": 35}), Ok((37, 0)));
        check(json!({"type": "string", "pattern": "^[a-z]{1,10}$"}), Ok((12, 0)));
        check(json!({"type": "string", "maxLength": 10}), Ok((42, 10)));
        check(json!({"type": "array", "maxItems": 3, "items": {"type": "boolean"}}), Ok((20, 0)));
        check(json!({"type": ["string", "null"], "maxLength": 1}), Ok((6, 1)));
    }

    #[test]
    fn what_has_no_bound_is_named() {
        check(json!({"type": "string"}), Err("/a"));
        check(json!({"type": "array", "items": {"type": "boolean"}}), Err("/a"));
        check(json!({"type": "array", "maxItems": 2, "items": {"type": "string"}}), Err("/a/*"));
        check(json!({}), Err("/a"));
    }

    #[test]
    fn huge_bounds_saturate() {
        let nested = (0..10).fold(
            json!({"type": "boolean"}),
            |inner, _| json!({"type": "array", "maxItems": 4_000_000_000u64, "items": inner}),
        );
        check_saturated(nested);
    }

    fn check_saturated(property: Value) {
        let schema = json!({"type": "object", "properties": {"a": property}});
        assert_eq!(bounds(&schema, &["a"]).unwrap().result_bytes_max, u64::MAX);
    }
}
