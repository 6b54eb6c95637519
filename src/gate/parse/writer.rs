//! Builds a document on a tape: the adapter's candidate, and the captures of a text source.

use super::document::{Document, Kind};
use super::tape::Tape;
use std::fmt::{Display, Write};

/// Writes one value after the other. The caller's table decides the structure, so that an unequal
/// number of `begin` and `end` is a mistake of this program and not of any input.
#[derive(Debug)]
pub struct TapeWriter<'t> {
    tape: &'t mut Tape,
    /// Entries of the containers that are open.
    open: Vec<u32>,
}

impl<'t> TapeWriter<'t> {
    /// Starts a new document; what the tape held before is gone.
    pub fn new(tape: &'t mut Tape) -> TapeWriter<'t> {
        tape.clear();
        let open = std::mem::take(&mut tape.writing);
        TapeWriter { tape, open }
    }

    pub fn begin_object(&mut self) {
        self.begin(Kind::Object);
    }

    pub fn begin_array(&mut self) {
        self.begin(Kind::Array);
    }

    /// A member's name; its value must follow.
    pub fn key(&mut self, name: &str) {
        self.text(Kind::String, name);
    }

    pub fn string(&mut self, text: &str) {
        self.count();
        self.text(Kind::String, text);
    }

    /// A number by its digits, which must follow the grammar of JSON.
    pub fn number(&mut self, lexeme: &str) {
        self.count();
        self.text(Kind::Number, lexeme);
    }

    /// A string by its `Display`, without building it first.
    pub fn display(&mut self, value: &dyn Display) {
        self.count();
        let from = self.tape.scratch.len();
        // Writing to a String cannot fail.
        let _ = write!(self.tape.scratch, "{value}");
        self.tape.push(Kind::String, true, from, self.tape.scratch.len() - from);
    }

    pub fn bool(&mut self, value: bool) {
        self.count();
        self.tape.push(if value { Kind::True } else { Kind::False }, false, 0, 0);
    }

    pub fn null(&mut self) {
        self.count();
        self.tape.push(Kind::Null, false, 0, 0);
    }

    /// Closes the innermost array or object.
    pub fn end(&mut self) {
        if let Some(entry) = self.open.pop() {
            self.tape.entries[entry as usize].next = self.tape.entries.len() as u32;
        }
    }

    /// The finished document.
    pub fn finish(mut self) -> Document<'t> {
        while !self.open.is_empty() {
            self.end();
        }
        self.tape.writing = self.open;
        Document { input: "", scratch: &self.tape.scratch, entries: &self.tape.entries }
    }

    fn begin(&mut self, kind: Kind) {
        self.count();
        self.open.push(self.tape.entries.len() as u32);
        self.tape.push(kind, false, 0, 0);
    }

    /// Counts a value into its container. A member counts once, by its value.
    fn count(&mut self) {
        if let Some(entry) = self.open.last() {
            self.tape.entries[*entry as usize].len += 1;
        }
    }

    fn text(&mut self, kind: Kind, text: &str) {
        let from = self.tape.scratch.len();
        self.tape.scratch.push_str(text);
        self.tape.push(kind, true, from, text.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::json::write_node;

    #[test]
    fn what_is_written_reads_back() {
        let mut tape = Tape::default();
        for _ in 0..2 {
            let mut out = TapeWriter::new(&mut tape);
            out.begin_object();
            out.key("id");
            out.number("18446744073709551617");
            out.key("list");
            out.begin_array();
            out.string("a\"b");
            out.null();
            out.bool(true);
            out.begin_object();
            out.end();
            out.end();
            out.key("at");
            out.display(&crate::time::Timestamp::default());
            out.end();
            let document = out.finish();
            assert_eq!(document.root().len(), 3);
            let mut text = String::new();
            write_node(document.root(), &mut text);
            assert_eq!(text, r#"{"id":18446744073709551617,"list":["a\"b",null,true,{}],"at":"1970-01-01T00:00:00Z"}"#);
        }
    }
}
