//! The parser: one pass, no recursion, no allocation once the tape has grown to the document's size.

use super::document::{Document, Entry, Kind};
use super::keys::{self, Key};
use super::number::number_end;
use super::scan::{skip_space, string_end};
use super::{Limits, ParseError};
use crate::gate::reason::Reason;

/// Memory for one document at a time, used again for the next.
#[derive(Debug, Default)]
pub struct Tape {
    pub(super) entries: Vec<Entry>,
    /// Text that does not stand in the input as it is: unescaped strings, and what a writer adds.
    pub(super) scratch: String,
    keys: Vec<Key>,
    open: Vec<Open>,
    /// A writer's open containers, kept for its memory.
    pub(super) writing: Vec<u32>,
}

/// An array or object that is not closed yet.
#[derive(Clone, Copy, Debug)]
struct Open {
    entry: u32,
    /// Where its names start among `keys`.
    first_key: u32,
    is_object: bool,
}

impl Tape {
    /// Parses a whole body.
    ///
    /// # Errors
    /// The first offence, in the order: size, UTF-8, then by place in the text.
    pub fn parse<'t>(&'t mut self, body: &'t [u8], limits: &Limits) -> Result<Document<'t>, ParseError> {
        if body.len() > limits.body_bytes_max || body.len() > u32::MAX as usize - 1 {
            return Err(ParseError::new(Reason::TooLarge, limits.body_bytes_max, "the body is larger than the limit"));
        }
        let input = utf8(body)?;
        self.clear();
        Parser { tape: self, input, bytes: input.as_bytes(), at: 0, limits }.document()?;
        Ok(Document { input, scratch: &self.scratch, entries: &self.entries })
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.scratch.clear();
        self.keys.clear();
        self.open.clear();
    }

    pub(super) fn push(&mut self, kind: Kind, scratch: bool, at: usize, len: usize) {
        let next = self.entries.len() as u32 + 1;
        self.entries.push(Entry { kind, scratch, at: at as u32, len: len as u32, next });
    }
}

/// The body as text: checked whole and first, so that no later message can be about half a character.
pub(super) fn utf8(body: &[u8]) -> Result<&str, ParseError> {
    simdutf8::basic::from_utf8(body).map_err(|_| {
        let valid = std::str::from_utf8(body).err().map_or(0, |error| error.valid_up_to());
        ParseError::new(Reason::InvalidUtf8, valid, "the bytes are not UTF-8 from here on")
    })
}

struct Parser<'p> {
    tape: &'p mut Tape,
    input: &'p str,
    bytes: &'p [u8],
    at: usize,
    limits: &'p Limits,
}

/// What follows in the text.
enum Step {
    Value,
    AfterValue,
}

impl Parser<'_> {
    fn document(mut self) -> Result<(), ParseError> {
        self.space();
        let mut step = Step::Value;
        loop {
            step = match step {
                Step::Value => self.value()?,
                Step::AfterValue if self.tape.open.is_empty() => break,
                Step::AfterValue => self.after_value()?,
            };
        }
        self.space();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(ParseError::new(Reason::TrailingData, self.at, "something follows the document")),
        }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    fn space(&mut self) {
        self.at = skip_space(self.bytes, self.at);
    }

    fn unexpected(&self, wanted: &'static str) -> ParseError {
        let what = if self.at >= self.bytes.len() { "the document ends too early" } else { wanted };
        ParseError::syntax(self.at, what)
    }

    #[inline]
    fn value(&mut self) -> Result<Step, ParseError> {
        match self.peek() {
            Some(b'"') => self.string().map(|_| Step::AfterValue),
            Some(b'{') => self.open(Kind::Object, b'}'),
            Some(b'[') => self.open(Kind::Array, b']'),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true", Kind::True),
            Some(b'f') => self.literal("false", Kind::False),
            Some(b'n') => self.literal("null", Kind::Null),
            Some(_) | None => Err(self.unexpected("a value must stand here")),
        }
    }

    fn literal(&mut self, word: &str, kind: Kind) -> Result<Step, ParseError> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.unexpected("a value must stand here"));
        }
        self.tape.push(kind, false, 0, 0);
        self.at += word.len();
        Ok(Step::AfterValue)
    }

    fn number(&mut self) -> Result<Step, ParseError> {
        let end = number_end(self.input, self.at)?;
        self.tape.push(Kind::Number, false, self.at, end - self.at);
        self.at = end;
        Ok(Step::AfterValue)
    }

    fn open(&mut self, kind: Kind, closing: u8) -> Result<Step, ParseError> {
        if self.tape.open.len() >= self.limits.depth_max as usize {
            return Err(ParseError::new(
                Reason::TooDeep,
                self.at,
                "arrays and objects are nested deeper than the limit",
            ));
        }
        let entry = self.tape.entries.len() as u32;
        self.tape.push(kind, false, self.at, 0);
        self.at += 1;
        self.space();
        if self.peek() == Some(closing) {
            self.at += 1;
            return Ok(Step::AfterValue);
        }
        let is_object = kind == Kind::Object;
        self.tape.open.push(Open { entry, first_key: self.tape.keys.len() as u32, is_object });
        if is_object {
            self.name(1)?;
        }
        Ok(Step::Value)
    }

    /// Between two values of an array or object, or at its end.
    #[inline]
    fn after_value(&mut self) -> Result<Step, ParseError> {
        let Some(&open) = self.tape.open.last() else { return Ok(Step::AfterValue) };
        let entry = &mut self.tape.entries[open.entry as usize];
        entry.len += 1;
        let count = entry.len;
        self.space();
        match (self.peek(), open.is_object) {
            (Some(b','), true) => {
                self.at += 1;
                self.space();
                self.name(count + 1)?;
                Ok(Step::Value)
            }
            (Some(b','), false) if count >= self.limits.items_max => {
                Err(ParseError::new(Reason::TooMany, self.at, "an array has more items than limits.items_max"))
            }
            (Some(b','), false) => {
                self.at += 1;
                self.space();
                Ok(Step::Value)
            }
            (Some(b'}'), true) => self.close(open),
            (Some(b']'), false) => self.close(open),
            (Some(_) | None, _) => Err(self.unexpected("a comma or the closing bracket must stand here")),
        }
    }

    fn close(&mut self, open: Open) -> Result<Step, ParseError> {
        let end = self.tape.entries.len() as u32;
        let entry = &mut self.tape.entries[open.entry as usize];
        entry.next = end;
        if open.is_object && entry.len as usize > keys::SMALL {
            self.check_many_names(open)?;
        }
        self.tape.keys.truncate(open.first_key as usize);
        self.tape.open.pop();
        self.at += 1;
        Ok(Step::AfterValue)
    }

    /// Reads a member's name and its colon. `count` is the number of members including it.
    #[inline]
    fn name(&mut self, count: u32) -> Result<(), ParseError> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("a member name must stand here"));
        }
        if count > self.limits.members_max {
            return Err(ParseError::new(
                Reason::TooMany,
                self.at,
                "an object has more members than limits.members_max",
            ));
        }
        let start = self.at;
        let entry = self.tape.entries.len() as u32;
        self.string()?;
        self.check_name(entry, start)?;
        self.space();
        if self.peek() != Some(b':') {
            return Err(self.unexpected("a colon must stand here"));
        }
        self.at += 1;
        self.space();
        Ok(())
    }

    /// Compares a new name with those of a small object; larger ones wait for their end.
    #[inline]
    fn check_name(&mut self, entry: u32, start: usize) -> Result<(), ParseError> {
        let Tape { entries, scratch, keys, open, .. } = &mut *self.tape;
        let name = text_of(&entries[entry as usize], self.input, scratch);
        let hash = keys::hash(name);
        let first = open.last().map_or(0, |open| open.first_key as usize);
        let earlier = &keys[first..];
        let is_twice = earlier.len() < keys::SMALL
            && earlier
                .iter()
                .any(|key| key.hash == hash && text_of(&entries[key.entry as usize], self.input, scratch) == name);
        if is_twice {
            return Err(ParseError::new(
                Reason::DuplicateMember,
                start,
                "a member of this name stands in the object already",
            ));
        }
        keys.push(Key { hash, entry });
        Ok(())
    }

    #[cold]
    fn check_many_names(&mut self, open: Open) -> Result<(), ParseError> {
        let Tape { entries, scratch, keys, .. } = &mut *self.tape;
        let (entries, scratch, input) = (&*entries, &*scratch, self.input);
        let name_of = |entry: u32| text_of(&entries[entry as usize], input, scratch);
        match keys::find_duplicate(&mut keys[open.first_key as usize..], name_of) {
            None => Ok(()),
            Some(_) => {
                let what = "two members of this object have the same name";
                Err(ParseError::new(Reason::DuplicateMember, entries[open.entry as usize].at as usize, what))
            }
        }
    }

    #[inline]
    fn string(&mut self) -> Result<(), ParseError> {
        let start = self.at + 1;
        let end = string_end(self.bytes, start);
        if self.bytes.get(end) == Some(&b'"') {
            self.check_length(end - start, start)?;
            self.tape.push(Kind::String, false, start, end - start);
            self.at = end + 1;
            return Ok(());
        }
        self.escaped_string(start, end)
    }

    fn check_length(&self, bytes: usize, start: usize) -> Result<(), ParseError> {
        if bytes > self.limits.string_bytes_max as usize {
            return Err(ParseError::new(
                Reason::TooMany,
                start,
                "a string has more bytes than limits.string_bytes_max",
            ));
        }
        Ok(())
    }

    /// A string with escapes is unescaped into the scratch text. `end` is the first stop after `start`.
    #[cold]
    fn escaped_string(&mut self, start: usize, mut end: usize) -> Result<(), ParseError> {
        let from = self.tape.scratch.len();
        let mut plain = start;
        loop {
            self.tape.scratch.push_str(&self.input[plain..end]);
            self.at = end;
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                Some(_) => return Err(ParseError::syntax(end, "a control character must be escaped")),
                None => return Err(self.unexpected("")),
            }
            plain = self.at;
            end = string_end(self.bytes, plain);
        }
        let len = self.tape.scratch.len() - from;
        self.check_length(len, start)?;
        self.tape.push(Kind::String, true, from, len);
        self.at = end + 1;
        Ok(())
    }

    /// One escape sequence; afterwards `at` is behind it.
    fn escape(&mut self) -> Result<(), ParseError> {
        let plain = match self.bytes.get(self.at + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            Some(_) => return Err(ParseError::syntax(self.at, "this is no escape sequence")),
            None => return Err(ParseError::syntax(self.at, "the document ends too early")),
        };
        self.tape.scratch.push(plain);
        self.at += 2;
        Ok(())
    }

    /// RFC 8259, section 7. A surrogate must have its other half: alone it is no character, and
    /// readers differ on what they make of it.
    fn unicode_escape(&mut self) -> Result<(), ParseError> {
        let lone = ParseError::syntax(self.at, "a surrogate must be followed by its other half");
        let first = self.four_hex(self.at + 2)?;
        let (code, length) = match first {
            0xD800..=0xDBFF => {
                if !self.bytes[self.at + 6..].starts_with(b"\\u") {
                    return Err(lone);
                }
                let second = self.four_hex(self.at + 8)?;
                if !(0xDC00..=0xDFFF).contains(&second) {
                    return Err(lone);
                }
                (0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00), 12)
            }
            code => (code, 6),
        };
        let character = char::from_u32(code).ok_or(lone)?;
        self.tape.scratch.push(character);
        self.at += length;
        Ok(())
    }

    fn four_hex(&self, at: usize) -> Result<u32, ParseError> {
        let digits = self.bytes.get(at..at + 4).ok_or(ParseError::syntax(at, "the document ends too early"))?;
        digits.iter().try_fold(0, |code, byte| {
            let digit = char::from(*byte).to_digit(16);
            digit.map(|digit| code << 4 | digit).ok_or(ParseError::syntax(at, "four hexadecimal digits must follow"))
        })
    }
}

fn text_of<'a>(entry: &Entry, input: &'a str, scratch: &'a str) -> &'a [u8] {
    let source = if entry.scratch { scratch } else { input };
    &source.as_bytes()[entry.at as usize..(entry.at + entry.len) as usize]
}
