//! The parser against RFC 8259, document by document, and against a slow and obvious reference.
#![allow(clippy::unwrap_used, reason = "tests")]

mod agreement;
mod conformance;
mod generator;
mod reference;
