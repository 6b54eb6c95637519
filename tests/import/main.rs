//! Contracts that people draft, import and learn from.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../cli/support.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line")]
mod support;

mod drafts;
mod errors;
mod examples;
mod generate;
mod schema;
mod sources;
mod table;
mod walkthrough;
