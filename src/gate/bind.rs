//! Stage 8 of 10: bind.
//!
//! A schema cannot know what was asked, by whom, or what time it is. This stage compares the
//! validated data with the outstanding request and with `now`: equality, membership, prefixes,
//! lower bounds, issuer, freshness and the contract's rules. Afterwards the result speaks of what
//! was asked for. It does not prove that the source tells the truth, nor permit any action.

use super::Request;
use super::decimal::{Decimal, same_number};
use super::parse::{Kind, Node, Pointer};
use super::reason::{Reason, Stage};
use super::refusal::{Diagnosis, Stop};
use super::validate::Envelope;
use crate::contract::cel::Rule;
use crate::time::Timestamp;
use std::cmp::Ordering;

/// A result that belongs to the request and is as fresh as the contract demands.
#[derive(Debug)]
pub struct Bound<'a> {
    data: Node<'a>,
}

impl<'a> Bound<'a> {
    pub(super) fn data(&self) -> Node<'a> {
        self.data
    }
}

/// All that a contract demands beyond structure.
#[derive(Debug, Default)]
pub struct Semantics {
    pub binds: Vec<Bind>,
    pub issuer: Option<Issuer>,
    pub fresh: Vec<Fresh>,
    pub rules: Vec<Rule>,
}

/// One comparison of a data field with what the request, or another field, says.
#[derive(Debug)]
pub struct Bind {
    pub data: Pointer,
    pub relation: Relation,
    pub other: Other,
    /// Where the request lacks the argument: nothing to compare, instead of a mismatch.
    pub optional: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    Equals,
    In,
    Prefix,
    AtLeast,
}

#[derive(Debug)]
pub enum Other {
    Argument(Pointer),
    Data(Pointer),
}

#[derive(Debug)]
pub struct Issuer {
    pub at: Pointer,
    pub one_of: Vec<Box<str>>,
}

/// How old, and how far ahead, a time in the data may be. Milliseconds.
#[derive(Debug)]
pub struct Fresh {
    pub at: Pointer,
    pub max_age_ms: Option<i64>,
    pub max_skew_ms: i64,
    /// The time must not be earlier than the request, less this tolerance.
    pub not_before_request_ms: Option<i64>,
}

/// Holds a valid envelope against the request and the clock.
///
/// # Errors
/// `BINDING_MISMATCH`, `STALE`, `FUTURE_DATED`, `ISSUER_MISMATCH`, `RULE_FAILED`.
pub fn bind<'a>(
    envelope: &Envelope<'a>,
    semantics: &Semantics,
    request: &Request<'_>,
    now: Timestamp,
) -> Result<Bound<'a>, Stop> {
    let data = envelope.data();
    semantics.binds.iter().try_for_each(|bind| bind.check(data, request))?;
    semantics.issuer.iter().try_for_each(|issuer| issuer.check(data))?;
    semantics.fresh.iter().try_for_each(|fresh| fresh.check(data, request, now))?;
    semantics.rules.iter().try_for_each(|rule| check_rule(rule, data, request))?;
    Ok(Bound { data })
}

fn refuse(reason: Reason, keyword: &str, at: &Pointer, expected: String, detail: &'static str) -> Stop {
    let instance_path = format!("/data{at}");
    let diagnosis = Diagnosis { keyword: keyword.into(), instance_path, expected, detail, ..Diagnosis::default() };
    Stop::refuse(Stage::Bind, reason, diagnosis)
}

impl Bind {
    fn check(&self, data: Node<'_>, request: &Request<'_>) -> Result<(), Stop> {
        let (other, root) = match &self.other {
            Other::Argument(at) => (request.arguments.and_then(|args| args.pointer(at)), "/arguments"),
            Other::Data(at) => (data.pointer(at), "/data"),
        };
        if other.is_none() && self.optional {
            return Ok(());
        }
        let holds = match (data.pointer(&self.data), other) {
            (Some(field), Some(other)) => self.relation.holds(field, other),
            (None, _) | (_, None) => false,
        };
        if holds {
            return Ok(());
        }
        let (reason, detail) = match self.relation {
            Relation::AtLeast => (Reason::Stale, "the evidence lies below the lower bound"),
            Relation::Equals | Relation::In | Relation::Prefix => {
                (Reason::BindingMismatch, Reason::BindingMismatch.summary())
            }
        };
        let (Other::Argument(at) | Other::Data(at)) = &self.other;
        Err(refuse(reason, self.relation.keyword(), &self.data, format!("{root}{at}"), detail))
    }
}

impl Relation {
    fn keyword(self) -> &'static str {
        match self {
            Relation::Equals => "bind.equals",
            Relation::In => "bind.in",
            Relation::Prefix => "bind.prefix",
            Relation::AtLeast => "bind.at_least",
        }
    }

    fn holds(self, field: Node<'_>, other: Node<'_>) -> bool {
        match self {
            Relation::Equals => same_scalar(field, other),
            Relation::In => other.kind() == Kind::Array && other.items().any(|item| same_scalar(field, item)),
            Relation::Prefix => match (field.as_str(), other.as_str()) {
                (Some(text), Some(prefix)) => !prefix.is_empty() && text.starts_with(prefix),
                _ => false,
            },
            Relation::AtLeast => matches!(compare(field, other), Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

/// Equality of identifiers: by every digit, and between a string and the integer of the same
/// digits, since one side of an interface often quotes its ids. Never through a double.
fn same_scalar(a: Node<'_>, b: Node<'_>) -> bool {
    match (a.kind(), b.kind()) {
        (Kind::String, Kind::String) => a.as_str() == b.as_str(),
        (Kind::Number, Kind::Number) => match (a.lexeme(), b.lexeme()) {
            (Some(a), Some(b)) => same_number(a, b),
            _ => false,
        },
        (Kind::String, Kind::Number) => a.as_str() == b.lexeme(),
        (Kind::Number, Kind::String) => a.lexeme() == b.as_str(),
        (a_kind, b_kind) => a_kind == b_kind && matches!(a_kind, Kind::True | Kind::False),
    }
}

/// Order of two numbers, or of two times; anything else has none.
fn compare(a: Node<'_>, b: Node<'_>) -> Option<Ordering> {
    match (a.lexeme(), b.lexeme()) {
        (Some(a), Some(b)) => Decimal::parse(a)?.compare(Decimal::parse(b)?),
        _ => {
            let (a, b) = (Timestamp::parse_rfc3339(a.as_str()?)?, Timestamp::parse_rfc3339(b.as_str()?)?);
            Some(a.cmp(&b))
        }
    }
}

impl Issuer {
    fn check(&self, data: Node<'_>) -> Result<(), Stop> {
        let issuer = data.pointer(&self.at).and_then(|node| node.as_str());
        if self.one_of.iter().any(|admitted| issuer == Some(admitted)) {
            return Ok(());
        }
        let detail = Reason::IssuerMismatch.summary();
        Err(refuse(Reason::IssuerMismatch, "issuer", &self.at, self.one_of.join(" or "), detail))
    }
}

impl Fresh {
    fn check(&self, data: Node<'_>, request: &Request<'_>, now: Timestamp) -> Result<(), Stop> {
        let Some(node) = data.pointer(&self.at) else {
            return Err(refuse(
                Reason::Stale,
                "fresh",
                &self.at,
                "a time".into(),
                "the time that freshness needs is absent",
            ));
        };
        let Some(time) = node.as_str().and_then(Timestamp::parse_rfc3339) else {
            return Err(refuse(
                Reason::Stale,
                "fresh",
                &self.at,
                "a time".into(),
                "the time that freshness needs is no time",
            ));
        };
        let age_ms = now.millis_since(time);
        if age_ms < -self.max_skew_ms {
            let expected = format!("at most {} ms ahead of the clock", self.max_skew_ms);
            return Err(refuse(
                Reason::FutureDated,
                "fresh.max_skew",
                &self.at,
                expected,
                Reason::FutureDated.summary(),
            ));
        }
        if let Some(max) = self.max_age_ms.filter(|max| age_ms > *max) {
            let expected = format!("at most {max} ms old");
            return Err(refuse(Reason::Stale, "fresh.max_age", &self.at, expected, Reason::Stale.summary()));
        }
        let tolerance = self.not_before_request_ms.filter(|ms| request.issued_at.millis_since(time) > *ms);
        if let Some(tolerance) = tolerance {
            let expected = format!("at most {tolerance} ms before the request was issued");
            return Err(refuse(Reason::Stale, "fresh.not_before_request", &self.at, expected, Reason::Stale.summary()));
        }
        Ok(())
    }
}

fn check_rule(rule: &Rule, data: Node<'_>, request: &Request<'_>) -> Result<(), Stop> {
    let detail = match rule.holds(data, request.arguments) {
        Ok(true) => return Ok(()),
        Ok(false) => Reason::RuleFailed.summary(),
        Err(failure) => failure.detail(),
    };
    let diagnosis = Diagnosis {
        keyword: "rules".into(),
        instance_path: "/data".into(),
        expected: format!("rule {}", rule.id()),
        detail,
        ..Diagnosis::default()
    };
    Err(Stop::refuse(Stage::Bind, Reason::RuleFailed, diagnosis))
}
