//! Writing JSON text: strings by RFC 8259, numbers by their own digits.

use super::parse::{Kind, Node};
use std::fmt::Write;

/// A JSON string by RFC 8259, section 7: quotation mark, reverse solidus and controls are escaped.
pub fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut plain_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escaped = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            0..=0x1f => "",
            _ => continue,
        };
        out.push_str(&text[plain_from..at]);
        out.push_str(escaped);
        if escaped.is_empty() {
            let _ = write!(out, "\\u{byte:04x}");
        }
        plain_from = at + 1;
    }
    out.push_str(&text[plain_from..]);
    out.push('"');
}

/// Writes a whole value with its numbers as they were spelled. The parser has bounded its depth.
pub fn write_node(node: Node<'_>, out: &mut String) {
    match node.kind() {
        Kind::Null => out.push_str("null"),
        Kind::True => out.push_str("true"),
        Kind::False => out.push_str("false"),
        Kind::Number => out.push_str(node.lexeme().unwrap_or("null")),
        Kind::String => write_string(node.as_str().unwrap_or_default(), out),
        Kind::Array => {
            out.push('[');
            for (i, item) in node.items().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_node(item, out);
            }
            out.push(']');
        }
        Kind::Object => write_members(node.members(), out),
    }
}

/// Writes an object of these members.
pub fn write_members<'a>(members: impl Iterator<Item = (&'a str, Node<'a>)>, out: &mut String) {
    out.push('{');
    for (i, (name, value)) in members.enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_string(name, out);
        out.push(':');
        write_node(value, out);
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::parse::{Limits, Tape};

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let mut out = String::new();
        write_string(text, &mut out);
        assert_eq!(out, expect);
    }

    #[test]
    fn strings_are_escaped_as_json_wants() {
        check("", r#""""#);
        check("plain", r#""plain""#);
        check("a\"b\\c\n\u{1}", r#""a\"b\\c\u000a\u0001""#);
        check("Größe 🙂", r#""Größe 🙂""#);
    }

    #[test]
    fn a_value_keeps_the_digits_of_its_numbers() {
        let text = r#"{"id":18446744073709551617,"amount":4200.0,"list":[1e2,null,true,false,"x\"y"],"empty":{}}"#;
        let mut tape = Tape::default();
        let mut out = String::new();
        write_node(tape.parse(text.as_bytes(), &Limits::default()).unwrap().root(), &mut out);
        assert_eq!(out, text);
    }
}
