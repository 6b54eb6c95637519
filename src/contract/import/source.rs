//! Reads the document that a contract is drawn from: JSON by the product's own parser, or YAML.

use super::ImportError;
use crate::contract::yaml::Marked;
use crate::gate::parse::{Kind, Limits, Node, Tape};
use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};

/// Bytes of a source; the larger public descriptions of APIs have about half of it.
pub const BYTES_MAX: usize = 16 << 20;

/// Limits of a source document. Nesting bounds the recursion below.
pub const LIMITS: Limits = Limits {
    body_bytes_max: BYTES_MAX,
    depth_max: 64,
    members_max: 20_000,
    items_max: 20_000,
    string_bytes_max: 1 << 20,
};

/// A source and the digest that pins it.
#[derive(Debug)]
pub struct Source {
    pub value: Value,
    /// `sha256:<hex>` over the bytes of the file.
    pub digest: String,
}

impl Source {
    /// Reads JSON; or YAML, where the text starts like no JSON document.
    ///
    /// # Errors
    /// Where reading stopped, as `line:column`, and why.
    pub fn read(bytes: &[u8]) -> Result<Source, ImportError> {
        let starts_as_json = bytes.iter().find(|b| !b.is_ascii_whitespace()).is_some_and(|b| matches!(b, b'{' | b'['));
        let value = if starts_as_json { json(bytes)? } else { yaml(bytes)? };
        Ok(Source { value, digest: digest(bytes) })
    }
}

/// `sha256:<hex>` of some bytes.
pub fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

fn json(bytes: &[u8]) -> Result<Value, ImportError> {
    let mut tape = Tape::default();
    match tape.parse(bytes, &LIMITS) {
        Ok(document) => Ok(value(document.root())),
        Err(error) => {
            let before = &bytes[..error.offset.min(bytes.len())];
            let line = before.iter().filter(|b| **b == b'\n').count() + 1;
            let column = before.len() - before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1) + 1;
            let message = format!("{line}:{column}: {}: {}", error.reason, error.what);
            Err(ImportError::new("", message, "the file must be one JSON document that has one meaning"))
        }
    }
}

fn yaml(bytes: &[u8]) -> Result<Value, ImportError> {
    let help = "the file must be one JSON or YAML document; convert a larger YAML file to JSON";
    let text = std::str::from_utf8(bytes).map_err(|_| ImportError::new("", "the file is not UTF-8", help))?;
    let marked = Marked::parse(text).map_err(|(place, why)| {
        // The reader's message may quote the document.
        ImportError::new("", format!("{}:{}: {}", place.line, place.column, super::shown(&why)), help)
    })?;
    Ok(marked.value)
}

/// A node as a plain value, without the detours by which member names get a meaning of their own.
pub fn value(node: Node<'_>) -> Value {
    match node.kind() {
        Kind::Null => Value::Null,
        Kind::True => Value::Bool(true),
        Kind::False => Value::Bool(false),
        Kind::String => Value::String(node.as_str().unwrap_or_default().to_owned()),
        Kind::Number => Value::Number(number(node.lexeme().unwrap_or("0"))),
        Kind::Array => node.items().map(value).collect(),
        Kind::Object => {
            let members = node.members().map(|(name, member)| (name.to_owned(), value(member)));
            Value::Object(members.collect::<Map<_, _>>())
        }
    }
}

fn number(lexeme: &str) -> Number {
    let whole = lexeme.parse::<i64>().map(Number::from).or_else(|_| lexeme.parse::<u64>().map(Number::from));
    let read = whole.ok().or_else(|| lexeme.parse::<f64>().ok().and_then(Number::from_f64));
    read.unwrap_or_else(|| Number::from(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_and_yaml_are_read_and_pinned() {
        let json = Source::read(b" {\"a\": [1, 2.5, null, true, \"x\"]}").unwrap();
        assert_eq!(json.value, json!({"a": [1, 2.5, null, true, "x"]}));
        assert_eq!(Source::read(b"a: [1, 2.5]\n").unwrap().value, json!({"a": [1, 2.5]}));
        assert_eq!(digest(b""), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[test]
    fn a_document_of_two_meanings_is_refused_with_its_place() {
        for (bytes, said) in [
            (&b"{\"a\": 1,\n \"\\u0061\": 2}"[..], "2:2: DUPLICATE_MEMBER"),
            (b"{\"a\": 1} x", "1:10: TRAILING_DATA"),
            (b"a: 1\na: 2\n", "2:"),
            (b"{\"a\": \xff}", "INVALID_UTF8"),
        ] {
            let error = Source::read(bytes).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
        assert!(Source::read("[".repeat(100_000).as_bytes()).is_err());
    }
}
