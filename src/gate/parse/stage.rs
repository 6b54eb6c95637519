//! The stage itself: an admitted body in, a parsed document out.

use super::{Document, Limits, ParseError, Tape, TextPattern};
use crate::gate::admit::Admitted;
use crate::gate::reason::Stage;
use crate::gate::refusal::{Diagnosis, Stop};

/// How a contract's bodies are read.
#[derive(Debug)]
pub struct Grammar {
    pub limits: Limits,
    /// For text sources: the pattern of the whole output. `None` reads JSON.
    pub text: Option<TextPattern>,
}

/// A document that was read whole, by the contract's grammar and within its limits.
#[derive(Debug)]
pub struct Parsed<'t> {
    document: Document<'t>,
}

impl<'t> Parsed<'t> {
    pub(in crate::gate) fn document(&self) -> Document<'t> {
        self.document
    }
}

/// Parses the whole body. A body that the contract declares to be empty reads as `null`, so that
/// an adapter table can only take facts from the request.
///
/// # Errors
/// The parser's reasons: see [`ParseError`].
pub fn parse<'t>(admitted: &Admitted<'t>, grammar: &Grammar, tape: &'t mut Tape) -> Result<Parsed<'t>, Stop> {
    let body = if admitted.is_declared_empty() { b"null" } else { admitted.body() };
    let document = match &grammar.text {
        Some(pattern) if !admitted.is_declared_empty() => pattern.read(body, &grammar.limits, tape),
        Some(_) | None => tape.parse(body, &grammar.limits),
    };
    document.map(|document| Parsed { document }).map_err(stop)
}

fn stop(error: ParseError) -> Stop {
    let diagnosis = Diagnosis {
        keyword: "parse".into(),
        offset: Some(error.offset as u64),
        expected: error.what.into(),
        ..Diagnosis::of(error.reason.summary())
    };
    Stop::refuse(Stage::Parse, error.reason, diagnosis)
}
