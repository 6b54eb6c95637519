//! The program as a person uses it: files in, text and exit codes out.
#![allow(clippy::unwrap_used, reason = "tests")]

mod ci;
mod diff;
mod errors;
mod support;
mod vet;
mod worker;
