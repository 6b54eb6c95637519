//! RFC 6901 pointers, parsed once when a contract is loaded.

use std::fmt;

/// A JSON Pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    raw: Box<str>,
    tokens: Box<[Token]>,
}

/// One step: a member name, and the array index that it is where it is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    name: Box<str>,
    index: Option<usize>,
}

impl Token {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// RFC 6901, section 4: digits without a leading zero. `-` names no item.
    pub fn index(&self) -> Option<usize> {
        self.index
    }
}

/// What is wrong with a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    #[error("a pointer is empty or starts with /")]
    NoSlash,
    #[error("~ must be followed by 0 or 1")]
    BadEscape,
}

impl Pointer {
    /// Parses a pointer.
    ///
    /// # Errors
    /// It does not follow RFC 6901, section 3.
    pub fn parse(raw: &str) -> Result<Pointer, PointerError> {
        let tokens = match raw.strip_prefix('/') {
            None if raw.is_empty() => Box::default(),
            None => return Err(PointerError::NoSlash),
            Some(rest) => rest.split('/').map(token).collect::<Result<_, _>>()?,
        };
        Ok(Pointer { raw: raw.into(), tokens })
    }

    pub fn as_str(&self) -> &str {
        &self.raw
    }

    pub fn tokens(&self) -> impl Iterator<Item = &Token> {
        self.tokens.iter()
    }
}

fn token(raw: &str) -> Result<Token, PointerError> {
    let escapes_are_valid = raw.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    if !escapes_are_valid {
        return Err(PointerError::BadEscape);
    }
    let name = raw.replace("~1", "/").replace("~0", "~");
    let is_index = name.bytes().all(|b| b.is_ascii_digit()) && (name == "0" || !name.starts_with('0'));
    let index = if is_index { name.parse().ok() } else { None };
    Ok(Token { name: name.into(), index })
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::parse::{Limits, Tape};

    #[test]
    fn the_examples_of_rfc_6901_section_5_lead_where_it_says() {
        let text = r#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}"#;
        let mut tape = Tape::default();
        let root = tape.parse(text.as_bytes(), &Limits::default()).unwrap().root();
        let at =
            |raw: &str| root.pointer(&Pointer::parse(raw).unwrap()).and_then(|node| node.lexeme().or(node.as_str()));
        assert_eq!(at("/foo/0"), Some("bar"));
        for (raw, value) in [
            ("/", "0"),
            ("/a~1b", "1"),
            ("/c%d", "2"),
            ("/e^f", "3"),
            ("/g|h", "4"),
            ("/i\\j", "5"),
            ("/k\"l", "6"),
            ("/ ", "7"),
            ("/m~0n", "8"),
        ] {
            assert_eq!(at(raw), Some(value), "{raw}");
        }
        for raw in ["/foo/00", "/foo/2", "/foo/-", "/foo/0/x", "/nothing"] {
            assert_eq!(at(raw), None, "{raw}");
        }
        assert_eq!(root.pointer(&Pointer::parse("").unwrap()).unwrap().len(), 10);
    }

    #[test]
    fn bad_pointers_are_errors() {
        assert_eq!(Pointer::parse("foo"), Err(PointerError::NoSlash));
        assert_eq!(Pointer::parse("/a~2"), Err(PointerError::BadEscape));
        assert_eq!(Pointer::parse("/a~"), Err(PointerError::BadEscape));
    }
}
