//! Contracts: what a tool's answers must be like to become evidence.
//!
//! A contract is a folder of data: `contract.yaml`, a JSON Schema and fixtures. [`load`] reads it
//! through a [`Folder`], so that nothing in here touches a disk; [`Registry`] holds the versions
//! that are served side by side. Everything that can be known about a contract is checked when
//! it is loaded, never when a response is judged.

mod adapting;
pub mod bounds;
pub mod cel;
mod compile;
pub mod diff;
mod findings;
pub mod fixture;
pub mod import;
pub mod lint;
mod meaning;
pub mod mutate;
#[cfg(feature = "worker")]
pub mod pack;
pub mod raw;
mod registry;
mod schemas;
mod selecting;
mod shape;
mod sourcing;
pub mod yaml;

pub use bounds::Bounds;
pub use compile::{Folder, load};
pub use findings::Finding;
pub use raw::{Owner, Payload, Status};
pub use registry::{Lookup, Registry};

use crate::gate::adapt::Reading;
use crate::gate::admit::Terms;
use crate::gate::bind::Semantics;
use crate::gate::parse::Grammar;
use crate::gate::refusal::FailureCode;
use crate::gate::select::Selection;
use crate::gate::validate::EnvelopeSchema;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A compiled contract: one plan for each stage, and the policy around them.
#[derive(Debug)]
pub struct Contract {
    pub tool: Arc<str>,
    pub version: u32,
    /// `tool@version`.
    pub label: Arc<str>,
    pub status: Status,
    pub about: String,
    pub owner: Owner,
    /// SHA-256 over the files that make up the contract, fixtures excluded.
    pub digest: [u8; 32],
    pub terms: Terms,
    pub grammar: Grammar,
    pub reading: Reading,
    pub envelope: EnvelopeSchema,
    pub semantics: Semantics,
    pub selection: Selection,
    pub policy: Policy,
    pub codes: Vec<Code>,
    pub bounds: Bounds,
    /// The top-level arguments of a request that this contract compares with; the others are not kept.
    pub arguments: BTreeSet<String>,
    /// Names of the selected fields that hold free text.
    pub untrusted_text: Vec<String>,
    /// Names of the secrets that signatures need.
    pub secrets: Vec<String>,
}

/// A failure code that the contract can report, and what it means to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    pub code: FailureCode,
    pub about: String,
    /// Whether a new request for the same thing may succeed.
    pub retryable: bool,
}

/// What happens around a judgement. Durations in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    pub retry: Option<Retry>,
    /// How many inadmissible responses are set aside while waiting for a good one; 0 closes at once.
    pub hold: u32,
    pub payload: Payload,
    pub quarantine_retention_ms: i64,
    pub deliver_late: bool,
    pub replay_window_ms: i64,
    pub retention_ms: i64,
}

/// When the dispatcher is asked to call again.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    pub on: Vec<FailureCode>,
    pub attempts_max: u32,
    pub budget_ms: i64,
    pub backoff_initial_ms: i64,
    pub backoff_max_ms: i64,
    /// Retries as a share of first attempts, over the tool.
    pub share_max: f64,
}

impl Contract {
    /// Whether an agent is told that asking again is sensible. One place decides it: the codes that
    /// the contract retries, and those of its own that it calls retryable.
    pub fn is_retryable(&self, code: &FailureCode) -> bool {
        self.codes.iter().any(|entry| entry.code == *code && entry.retryable)
    }
}
