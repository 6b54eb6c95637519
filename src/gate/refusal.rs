//! What a stage says when it does not let a response through.
//!
//! [`Refusal`] is for operators and for the quarantine; the agent sees a [`FailureCode`] and
//! nothing else. Neither holds a byte of the response: places are named by the contract's own
//! names, and a name that the contract does not know appears as a short digest of itself.

use super::reason::{Reason, Stage};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::Arc;

/// The closed vocabulary of failures that an agent can see.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FailureCode {
    NotFound,
    UpstreamUnavailable,
    InvalidResponse,
    Unauthorized,
    Expired,
    /// A code that the contract declares beside the five above.
    Declared(Arc<str>),
}

impl FailureCode {
    /// The codes that every contract has.
    pub const COMMON: [FailureCode; 5] = [
        FailureCode::NotFound,
        FailureCode::UpstreamUnavailable,
        FailureCode::InvalidResponse,
        FailureCode::Unauthorized,
        FailureCode::Expired,
    ];

    pub fn as_str(&self) -> &str {
        match self {
            FailureCode::NotFound => "NOT_FOUND",
            FailureCode::UpstreamUnavailable => "UPSTREAM_UNAVAILABLE",
            FailureCode::InvalidResponse => "INVALID_RESPONSE",
            FailureCode::Unauthorized => "UNAUTHORIZED",
            FailureCode::Expired => "EXPIRED",
            FailureCode::Declared(name) => name,
        }
    }

    /// The common code of this name, else a declared one.
    pub fn named(name: &str) -> FailureCode {
        let common = FailureCode::COMMON.into_iter().find(|code| code.as_str() == name);
        common.unwrap_or_else(|| FailureCode::Declared(name.into()))
    }
}

/// Where and how a response differed from its contract, in the contract's words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnosis {
    /// The rule that failed: a JSON Schema keyword, or the contract's own key (`bind`, `fresh`, ...).
    pub keyword: String,
    /// Where that rule stands: a pointer into the schema or the contract.
    pub schema_path: String,
    /// The place in the response or candidate, a masked RFC 6901 pointer.
    pub instance_path: String,
    /// What the contract wants there.
    pub expected: String,
    /// The JSON type that was found; never the value.
    pub found: &'static str,
    /// Byte offset in the body, where the parser stopped.
    pub offset: Option<u64>,
    /// A fixed sentence.
    pub detail: &'static str,
}

impl Diagnosis {
    /// A diagnosis that is one fixed sentence.
    pub fn of(detail: &'static str) -> Self {
        Self { detail, ..Self::default() }
    }
}

/// Why a response is inadmissible. Boxed where it travels, so that the way of an admissible one stays narrow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub reason: Reason,
    /// The stage that refused: mostly `reason.stage()`, but a signature's own time is judged in `admit`.
    pub stage: Stage,
    pub diagnosis: Diagnosis,
}

/// How a stage ends a response's way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Inadmissible: the agent gets `INVALID_RESPONSE`, people get the refusal.
    Refused(Box<Refusal>),
    /// A well-understood upstream failure with a code of the contract's vocabulary.
    Failed(Box<Failure>),
}

/// A failure that the tool itself reported in a way the contract understands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub code: FailureCode,
    pub stage: Stage,
    pub diagnosis: Diagnosis,
}

impl Stop {
    pub fn refuse(stage: Stage, reason: Reason, diagnosis: Diagnosis) -> Stop {
        Stop::Refused(Box::new(Refusal { reason, stage, diagnosis }))
    }

    pub fn fail(stage: Stage, code: FailureCode, diagnosis: Diagnosis) -> Stop {
        Stop::Failed(Box::new(Failure { code, stage, diagnosis }))
    }
}

/// A name that the contract does not know, as operators see it: `~` and eight hex digits of its
/// SHA-256. Equal names look equal, and nothing can be read from them.
pub fn masked(name: &str) -> String {
    let digest = Sha256::digest(name.as_bytes());
    digest[..4].iter().fold(String::from("~"), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_read_back() {
        for code in FailureCode::COMMON {
            assert_eq!(FailureCode::named(code.as_str()), code);
        }
        assert_eq!(FailureCode::named("CHANNEL_ARCHIVED").as_str(), "CHANNEL_ARCHIVED");
    }

    #[test]
    fn a_masked_name_tells_nothing_but_equality() {
        assert_eq!(masked("admin_override"), masked("admin_override"));
        assert_ne!(masked("admin_override"), masked("admin_overridf"));
        assert_eq!(masked("admin_override").len(), 9);
    }
}
