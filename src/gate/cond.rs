//! Conditions of a contract over a vendor document: `when` of shapes and in-band errors, `where` of lists.

use super::decimal::same_number;
use super::parse::{Kind, Node, Pointer};
use regex::Regex;
use serde_json::Value;

/// All tests of a condition hold at one place of the document.
#[derive(Clone, Debug)]
pub struct Cond {
    pub at: Pointer,
    pub tests: Vec<Test>,
}

#[derive(Clone, Debug)]
pub enum Test {
    Equals(Literal),
    OneOf(Vec<Literal>),
    Matches(Regex),
    Type(JsonType),
    Present(bool),
    /// A string, array or object with something in it. Absent and null count as empty.
    NotEmpty(bool),
    Null(bool),
}

/// A value of the contract; a number has its digits beside it, so that comparing writes nothing.
#[derive(Clone, Debug)]
pub struct Literal {
    value: Value,
    digits: Option<Box<str>>,
}

impl From<Value> for Literal {
    fn from(value: Value) -> Literal {
        let digits = value.is_number().then(|| value.to_string().into());
        Literal { value, digits }
    }
}

impl Literal {
    fn is(&self, node: Node<'_>) -> bool {
        match &self.digits {
            Some(digits) => node.lexeme().is_some_and(|lexeme| same_number(lexeme, digits)),
            None => equals(node, &self.value),
        }
    }
}

/// JSON Schema's type names, as a condition asks for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonType {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl JsonType {
    pub fn named(name: &str) -> Option<JsonType> {
        Some(match name {
            "null" => JsonType::Null,
            "boolean" => JsonType::Boolean,
            "integer" => JsonType::Integer,
            "number" => JsonType::Number,
            "string" => JsonType::String,
            "array" => JsonType::Array,
            "object" => JsonType::Object,
            _ => return None,
        })
    }

    fn admits(self, node: &Node<'_>) -> bool {
        match node.kind() {
            Kind::Null => self == JsonType::Null,
            Kind::False | Kind::True => self == JsonType::Boolean,
            Kind::Number => self == JsonType::Number || (self == JsonType::Integer && written_as_integer(node)),
            Kind::String => self == JsonType::String,
            Kind::Array => self == JsonType::Array,
            Kind::Object => self == JsonType::Object,
        }
    }
}

fn written_as_integer(node: &Node<'_>) -> bool {
    node.lexeme().is_some_and(is_integer_lexeme)
}

/// Is the number written without fraction and exponent? `4200.0` is not an integer here.
pub fn is_integer_lexeme(lexeme: &str) -> bool {
    !lexeme.bytes().any(|b| matches!(b, b'.' | b'e' | b'E'))
}

/// Do all conditions hold on the document or list item `base`?
pub fn all_hold(conds: &[Cond], base: Node<'_>) -> bool {
    conds.iter().all(|cond| {
        let found = base.pointer(&cond.at);
        cond.tests.iter().all(|test| test.holds(found))
    })
}

impl Test {
    fn holds(&self, found: Option<Node<'_>>) -> bool {
        match self {
            Test::Equals(value) => found.is_some_and(|node| value.is(node)),
            Test::OneOf(values) => found.is_some_and(|node| values.iter().any(|value| value.is(node))),
            Test::Matches(regex) => found.and_then(|node| node.as_str()).is_some_and(|text| regex.is_match(text)),
            Test::Type(kind) => found.is_some_and(|node| kind.admits(&node)),
            Test::Present(wanted) => found.is_some() == *wanted,
            Test::NotEmpty(wanted) => found.is_some_and(|node| !is_empty(&node)) == *wanted,
            Test::Null(wanted) => found.is_some_and(|node| node.is_null()) == *wanted,
        }
    }
}

fn is_empty(node: &Node<'_>) -> bool {
    match node.kind() {
        Kind::Null => true,
        Kind::False | Kind::True | Kind::Number => false,
        Kind::String => node.as_str() == Some(""),
        Kind::Array | Kind::Object => node.len() == 0,
    }
}

/// Is `node` this value of the contract? Recurses over the contract's value, never over the input alone.
pub fn equals(node: Node<'_>, value: &Value) -> bool {
    match value {
        Value::Null => node.is_null(),
        Value::Bool(wanted) => node.as_bool() == Some(*wanted),
        Value::String(wanted) => node.as_str() == Some(wanted),
        Value::Number(wanted) => node.lexeme().is_some_and(|lexeme| same_number(lexeme, &wanted.to_string())),
        Value::Array(wanted) => {
            node.kind() == Kind::Array
                && node.len() == wanted.len()
                && node.items().zip(wanted).all(|(item, wanted)| equals(item, wanted))
        }
        Value::Object(wanted) => {
            node.kind() == Kind::Object
                && node.len() == wanted.len()
                && wanted.iter().all(|(name, wanted)| node.get(name).is_some_and(|member| equals(member, wanted)))
        }
    }
}

/// Are these the same JSON value, as JSON Schema means it: numbers by value, members in any order?
/// The parser has bounded the depth.
pub fn same_value(a: Node<'_>, b: Node<'_>) -> bool {
    match (a.kind(), b.kind()) {
        (Kind::Number, Kind::Number) => same_number(a.lexeme().unwrap_or_default(), b.lexeme().unwrap_or_default()),
        (Kind::Array, Kind::Array) => a.len() == b.len() && a.items().zip(b.items()).all(|(a, b)| same_value(a, b)),
        (Kind::Object, Kind::Object) => {
            a.len() == b.len() && a.members().all(|(name, a)| b.get(name).is_some_and(|b| same_value(a, b)))
        }
        (a_kind, b_kind) => a_kind == b_kind && a.as_str() == b.as_str(),
    }
}
