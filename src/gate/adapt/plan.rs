//! An adapter table, compiled: total, linear in the document, and closed over the contract's own names.

use crate::contract::raw::Convert;
use crate::gate::cond::Cond;
use crate::gate::parse::Pointer;
use crate::gate::refusal::FailureCode;
use regex::Regex;
use serde_json::Value;

/// The shapes of a vendor document that the contract still supports.
#[derive(Debug)]
pub struct Adapter {
    pub shapes: Vec<Shape>,
}

/// One upstream version: exactly one shape's `when` must hold.
#[derive(Debug)]
pub struct Shape {
    pub name: Box<str>,
    pub when: Vec<Cond>,
    pub fields: Vec<Field>,
}

#[derive(Debug)]
pub struct Field {
    pub name: Box<str>,
    pub spec: Spec,
}

/// Where a value comes from, how it is converted, and what stands in for an absent or null one.
#[derive(Debug)]
pub struct Spec {
    pub origin: Origin,
    pub steps: Steps,
    pub if_missing: Fallback,
    pub if_null: Fallback,
}

#[derive(Debug)]
pub enum Origin {
    From(Pointer),
    /// A fact that the body does not name: it is bound by correlation with our own request.
    Request(Pointer),
    Const(Value),
    Header(Box<str>),
    Count {
        at: Pointer,
        filter: Vec<Cond>,
    },
    EachItem {
        at: Pointer,
        filter: Vec<Cond>,
        item: Box<Spec>,
        distinct: bool,
    },
    EachObject {
        at: Pointer,
        filter: Vec<Cond>,
        fields: Vec<Field>,
    },
    FindScalar {
        at: Pointer,
        filter: Vec<Cond>,
        take: Pointer,
    },
    FindObject {
        at: Pointer,
        filter: Vec<Cond>,
        fields: Vec<Field>,
    },
    Object(Vec<Field>),
    Sum(Vec<Pointer>),
}

/// The transforms of one scalar, in the order in which they apply.
#[derive(Debug, Default)]
pub struct Steps {
    pub capture: Option<Regex>,
    pub replace: Vec<(Box<str>, Box<str>)>,
    pub map: Option<Vec<(Box<str>, Value)>>,
    pub convert: Option<Convert>,
}

/// What stands in for an absent or null value.
#[derive(Debug, Default, PartialEq)]
pub enum Fallback {
    #[default]
    Refuse,
    Omit,
    Value(Value),
}

/// An in-band failure: a flag or list in a document that the transport called a success.
#[derive(Debug)]
pub struct InBandError {
    pub when: Vec<Cond>,
    pub code: FailureCode,
    pub by: Option<Refinement>,
}

/// Where the vendor's own code stands, and what it means in the contract's vocabulary.
#[derive(Debug)]
pub struct Refinement {
    pub at: Pointer,
    pub codes: Vec<(Box<str>, FailureCode)>,
}
