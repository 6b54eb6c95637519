//! Lets `jsonschema` validate a tape directly, without a second tree.
//!
//! One deliberate difference from Draft 2020-12: an integer must be *written* as one. The draft
//! calls 4200.0 an integer, readers of a result do not agree, and the disagreement is a refusal.

use super::document::{Document, Entry, Items, Kind, Members, Node};
use crate::gate::cond::{equals, is_integer_lexeme, same_value};
use jsonschema::JsonType;
use jsonschema::json::{self, Json, JsonNumber, NodeIdentity};
use serde_json::Value;
use std::borrow::Cow;

/// The tape as a representation of JSON.
#[derive(Clone, Copy, Debug)]
pub struct TapeJson;

impl Json for TapeJson {
    type Node<'a> = Node<'a>;
    type PreparedKey = Box<str>;
    type StringBuffer = ();

    /// A lookup walks the members, so one pass over them pays from the second lookup on.
    const KEYS_PER_LOOKUP: usize = 2;
    const ACYCLIC: bool = true;

    fn prepare_key(key: &str) -> Box<str> {
        key.into()
    }

    fn with_string_node<T>(_: &mut (), string: &str, f: impl FnOnce(Node<'_>) -> T) -> T {
        let entries = [Entry { kind: Kind::String, scratch: false, at: 0, len: string.len() as u32, next: 1 }];
        f(Document { input: string, scratch: "", entries: &entries }.root())
    }
}

/// A number by its digits.
#[derive(Clone, Copy, Debug)]
pub struct Digits<'t>(&'t str);

impl JsonNumber for Digits<'_> {
    fn as_u64(&self) -> Option<u64> {
        if self.0 == "-0" { Some(0) } else { self.0.parse().ok() }
    }

    fn as_i64(&self) -> Option<i64> {
        self.0.parse().ok()
    }

    /// The nearest double, save that an integer just below the least of 64 bits must not be rounded up
    /// into the range, where `minimum` would let it pass.
    fn as_f64(&self) -> Option<f64> {
        const LEAST: f64 = i64::MIN as f64;
        let value: f64 = self.0.parse().ok()?;
        let is_rounded_up = value == LEAST && self.is_integer() && self.as_i64().is_none();
        Some(if is_rounded_up { LEAST.next_down() } else { value })
    }

    fn as_str(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.0)
    }

    fn to_number(&self) -> Cow<'_, serde_json::Number> {
        Cow::Owned(number_value(self.0))
    }

    fn is_integer(&self) -> bool {
        is_integer_lexeme(self.0)
    }

    fn is_written_as_integer(&self) -> bool {
        is_integer_lexeme(self.0)
    }
}

fn number_value(digits: &str) -> serde_json::Number {
    let double = || digits.parse().ok().and_then(serde_json::Number::from_f64);
    let integer = digits.parse::<u64>().map(Into::into).or_else(|_| digits.parse::<i64>().map(Into::into));
    integer.ok().or_else(double).unwrap_or_else(|| 0.into())
}

impl<'t> json::Node<'t, TapeJson> for Node<'t> {
    type Object = ObjectNode<'t>;
    type Array = ArrayNode<'t>;
    type Number = Digits<'t>;

    #[inline]
    fn as_object(&self) -> Option<ObjectNode<'t>> {
        (self.kind() == Kind::Object).then_some(ObjectNode(*self))
    }

    #[inline]
    fn as_array(&self) -> Option<ArrayNode<'t>> {
        (self.kind() == Kind::Array).then_some(ArrayNode(*self))
    }

    #[inline]
    fn as_string(&self) -> Option<Cow<'t, str>> {
        self.as_str().map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<Digits<'t>> {
        self.lexeme().map(Digits)
    }

    fn as_boolean(&self) -> Option<bool> {
        self.as_bool()
    }

    fn is_null(&self) -> bool {
        self.kind() == Kind::Null
    }

    fn is_number(&self) -> bool {
        self.kind() == Kind::Number
    }

    fn is_string(&self) -> bool {
        self.kind() == Kind::String
    }

    fn json_type(&self) -> JsonType {
        match self.kind() {
            Kind::Null => JsonType::Null,
            Kind::False | Kind::True => JsonType::Boolean,
            Kind::Number => JsonType::Number,
            Kind::String => JsonType::String,
            Kind::Array => JsonType::Array,
            Kind::Object => JsonType::Object,
        }
    }

    fn string_length_within(&self, min: u64, max: u64) -> Option<bool> {
        let text = self.as_str()?;
        let (most, least) = (text.len() as u64, text.len().div_ceil(4) as u64);
        if min <= least && most <= max {
            return Some(true);
        }
        Some((min..=max).contains(&(text.chars().count() as u64)))
    }

    fn equals_value(&self, expected: &Value) -> bool {
        equals(*self, expected)
    }

    /// Only messages of errors ask for this, equality and uniqueness being answered above and
    /// below. They get null: nobody may print a response's values, and copies would cost time.
    fn to_value(&self) -> Cow<'t, Value> {
        Cow::Owned(Value::Null)
    }

    /// No identity: the lint refuses recursive schemas, so there is no cycle to detect, and a tape
    /// is used again for the next document at the same address.
    fn identity(&self) -> Option<NodeIdentity> {
        None
    }
}

/// An object of a tape.
#[derive(Clone, Copy, Debug)]
pub struct ObjectNode<'t>(Node<'t>);

impl<'t> json::Object<'t, TapeJson> for ObjectNode<'t> {
    type Node = Node<'t>;
    type MemberName = &'t str;
    type MembersIter = Members<'t>;

    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn get(&self, key: &Box<str>) -> Option<Node<'t>> {
        self.0.get(key)
    }

    #[inline]
    fn members(&self) -> Members<'t> {
        self.0.members()
    }
}

/// An array of a tape.
#[derive(Clone, Copy, Debug)]
pub struct ArrayNode<'t>(Node<'t>);

impl<'t> json::Array<'t, TapeJson> for ArrayNode<'t> {
    type Node = Node<'t>;
    type ElementsIter = Items<'t>;

    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn elements(&self) -> Items<'t> {
        self.0.items()
    }

    /// Every pair is compared; `maxItems`, which the lint demands, bounds how many there are.
    fn is_unique(&self) -> bool {
        let items: Vec<Node<'t>> = self.0.items().collect();
        items.iter().enumerate().all(|(i, a)| items[..i].iter().all(|b| !same_value(*a, *b)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Limits, Tape};
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(schema: Value, body: &str, expect: bool) {
        let validator = jsonschema::options_for::<TapeJson>().build(&schema).unwrap();
        let mut tape = Tape::default();
        let root = tape.parse(body.as_bytes(), &Limits::default()).unwrap().root();
        assert_eq!(validator.is_valid(root), expect, "{schema} against {body}");
    }

    #[test]
    fn integers_are_written_as_integers() {
        for body in ["4200", "-0", "18446744073709551617"] {
            check(json!({"type": "integer"}), body, true);
        }
        for body in ["4200.0", "42e2", "1e20", "-0.0"] {
            check(json!({"type": "integer"}), body, false);
        }
        check(json!({"type": "number"}), "4200.0", true);
    }

    #[test]
    fn bounds_hold_for_integers_beyond_64_bits() {
        check(json!({"maximum": i64::MAX}), "18446744073709551617", false);
        check(json!({"maximum": u64::MAX}), "18446744073709551616", false);
        check(json!({"minimum": i64::MIN}), "-9223372036854775808", true);
        check(json!({"minimum": i64::MIN}), "-9223372036854775809", false);
        check(json!({"exclusiveMinimum": i64::MIN}), "-9223372036854775809", false);
        check(json!({"multipleOf": 10}), "18446744073709551617", false);
    }

    #[test]
    fn constants_equal_by_digits() {
        for schema in
            [json!({"const": 653_247_040_368_672_768_u64}), json!({"enum": [653_247_040_368_672_768_u64, "x"]})]
        {
            check(schema.clone(), "653247040368672768", true);
            check(schema, "653247040368672800", false);
        }
    }
}
