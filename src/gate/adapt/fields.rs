//! Reads a document by an adapter table and writes the candidate's members.
//!
//! The walk follows the contract's table, whose depth the loader bounds; the document is only
//! looked up. What the table does not name is never read.

use super::plan::{Fallback, Field, Origin, Spec};
use super::scalar::{Misfit, Scalar, apply};
use crate::gate::cond::all_hold;
use crate::gate::decimal::Decimal;
use crate::gate::parse::{Kind, Node, Pointer, TapeWriter};
use crate::gate::refusal::Diagnosis;
use crate::wire::Headers;
use serde_json::Value;

/// What an adapter table may read beside the document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around<'a> {
    pub arguments: Option<Node<'a>>,
    pub headers: &'a Headers,
}

/// A document that the table cannot read.
pub(super) type Mismatch = Box<Diagnosis>;

pub(super) struct FieldWriter<'a, 'o, 'w> {
    pub around: Around<'a>,
    pub out: &'o mut TapeWriter<'w>,
    /// Where `base` stands in the document: the part before a list item's own pointers.
    pub prefix: String,
}

/// A value that is ready to be written, or left out.
enum Found<'a> {
    Node(Node<'a>),
    Scalar(Scalar<'a>),
    /// The value that the contract declares for an absent or null one.
    Stand(&'a Value),
    Omitted,
}

impl<'a> FieldWriter<'a, '_, '_> {
    /// Writes the members of one object, in the table's order.
    pub(super) fn members(&mut self, base: Node<'a>, fields: &'a [Field]) -> Result<(), Mismatch> {
        fields.iter().try_for_each(|field| self.member(base, field))
    }

    fn member(&mut self, base: Node<'a>, field: &'a Field) -> Result<(), Mismatch> {
        let spec = &field.spec;
        if let Origin::Object(fields) = &spec.origin {
            self.out.key(&field.name);
            return self.object(base, fields);
        }
        let found = self.find(base, spec)?;
        if matches!(found, Found::Omitted) {
            return Ok(());
        }
        self.out.key(&field.name);
        self.value(found, spec)
    }

    fn object(&mut self, base: Node<'a>, fields: &'a [Field]) -> Result<(), Mismatch> {
        self.out.begin_object();
        self.members(base, fields)?;
        self.out.end();
        Ok(())
    }

    /// Looks the value up and settles absence and null by what the contract declares for them.
    fn find(&self, base: Node<'a>, spec: &'a Spec) -> Result<Found<'a>, Mismatch> {
        let looked_up = match &spec.origin {
            Origin::From(at) => base.pointer(at).map(Found::Node),
            Origin::Request(at) => self.around.arguments.and_then(|args| args.pointer(at)).map(Found::Node),
            Origin::Const(value) => return Ok(Found::Stand(value)),
            Origin::Header(name) => self.header(name).map(|text| Found::Scalar(Scalar::Text(text.into()))),
            Origin::Count { at, .. } | Origin::EachItem { at, .. } | Origin::EachObject { at, .. } => {
                base.pointer(at).map(Found::Node)
            }
            Origin::FindScalar { at, filter, take } => {
                self.find_one(base, at, filter)?.and_then(|item| item.pointer(take)).map(Found::Node)
            }
            Origin::FindObject { at, filter, .. } => self.find_one(base, at, filter)?.map(Found::Node),
            Origin::Sum(parts) => {
                self.sum(base, parts)?.map(|sum| Found::Scalar(Scalar::Number(sum.to_string().into())))
            }
            Origin::Object(_) => Some(Found::Node(base)),
        };
        let fallback = match &looked_up {
            None => &spec.if_missing,
            Some(Found::Node(node)) if node.is_null() => match &spec.if_null {
                // A table that names null, as in `map: {"null": none}`, reads it as a value.
                Fallback::Refuse if spec.steps.map.is_some() => return Ok(Found::Scalar(Scalar::Null)),
                declared @ (Fallback::Refuse | Fallback::Omit | Fallback::Value(_)) => declared,
            },
            Some(_) => return Ok(looked_up.unwrap_or(Found::Omitted)),
        };
        match fallback {
            Fallback::Omit => Ok(Found::Omitted),
            Fallback::Value(value) => Ok(Found::Stand(value)),
            Fallback::Refuse => {
                let found = if looked_up.is_some() { "null" } else { "nothing" };
                Err(self.mismatch(origin_pointer(&spec.origin), "adapt", "a value", found))
            }
        }
    }

    fn value(&mut self, found: Found<'a>, spec: &'a Spec) -> Result<(), Mismatch> {
        let node = match found {
            Found::Stand(value) => {
                write_contract_value(self.out, value);
                return Ok(());
            }
            Found::Scalar(scalar) => return self.scalar(scalar, spec),
            Found::Node(node) => node,
            Found::Omitted => return Ok(()),
        };
        match &spec.origin {
            Origin::Count { at, filter } => {
                self.expect(node, Kind::Array, at)?;
                let count = node.items().filter(|item| all_hold(filter, *item)).count();
                self.out.number(&count.to_string());
                Ok(())
            }
            Origin::EachItem { at, filter, item, distinct } => self.each_item(node, at, filter, item, *distinct),
            Origin::EachObject { at, filter, fields } => self.each_object(node, at, filter, fields),
            Origin::FindObject { fields, .. } => self.object(node, fields),
            origin @ (Origin::From(_)
            | Origin::Request(_)
            | Origin::Const(_)
            | Origin::Header(_)
            | Origin::FindScalar { .. }
            | Origin::Object(_)
            | Origin::Sum(_)) => match Scalar::of(node) {
                Some(scalar) => self.scalar(scalar, spec),
                None => Err(self.mismatch(origin_pointer(origin), "adapt", "a scalar", node.kind().name())),
            },
        }
    }

    fn scalar(&mut self, scalar: Scalar<'a>, spec: &'a Spec) -> Result<(), Mismatch> {
        let kind = scalar.kind_name();
        let ready = apply(scalar, &spec.steps).map_err(|Misfit { keyword, expected }| {
            self.mismatch(origin_pointer(&spec.origin), keyword, expected, kind)
        })?;
        ready.write(self.out);
        Ok(())
    }

    fn each_item(
        &mut self,
        list: Node<'a>,
        at: &Pointer,
        filter: &[crate::gate::cond::Cond],
        spec: &'a Spec,
        distinct: bool,
    ) -> Result<(), Mismatch> {
        self.expect(list, Kind::Array, at)?;
        self.out.begin_array();
        let mut seen: Vec<Scalar<'a>> = Vec::new();
        for (index, item) in list.items().enumerate().filter(|(_, item)| all_hold(filter, *item)) {
            let outer = self.enter(at, index);
            match self.find(item, spec)? {
                Found::Omitted => {}
                Found::Node(node) if distinct => {
                    let scalar =
                        Scalar::of(node).ok_or_else(|| self.mismatch("", "adapt", "a scalar", node.kind().name()))?;
                    if !seen.contains(&scalar) {
                        seen.push(scalar.clone());
                        self.scalar(scalar, spec)?;
                    }
                }
                found @ (Found::Node(_) | Found::Scalar(_) | Found::Stand(_)) => self.value(found, spec)?,
            }
            self.prefix.truncate(outer);
        }
        self.out.end();
        Ok(())
    }

    fn each_object(
        &mut self,
        list: Node<'a>,
        at: &Pointer,
        filter: &[crate::gate::cond::Cond],
        fields: &'a [Field],
    ) -> Result<(), Mismatch> {
        self.expect(list, Kind::Array, at)?;
        self.out.begin_array();
        for (index, item) in list.items().enumerate().filter(|(_, item)| all_hold(filter, *item)) {
            let outer = self.enter(at, index);
            self.object(item, fields)?;
            self.prefix.truncate(outer);
        }
        self.out.end();
        Ok(())
    }

    /// The one item that the filter names: two are as bad as a wrong one, none is absence.
    fn find_one(
        &self,
        base: Node<'a>,
        at: &Pointer,
        filter: &[crate::gate::cond::Cond],
    ) -> Result<Option<Node<'a>>, Mismatch> {
        let Some(list) = base.pointer(at).filter(|list| !list.is_null()) else { return Ok(None) };
        self.expect(list, Kind::Array, at)?;
        let mut matching = list.items().filter(|item| all_hold(filter, *item));
        let first = matching.next();
        if matching.next().is_some() {
            return Err(self.mismatch(at.as_str(), "find", "exactly one item that matches", "array"));
        }
        Ok(first)
    }

    fn sum(&self, base: Node<'a>, parts: &[Pointer]) -> Result<Option<Decimal>, Mismatch> {
        let mut sum = Decimal::ZERO;
        for at in parts {
            let Some(node) = base.pointer(at) else { return Ok(None) };
            let part = node.lexeme().and_then(Decimal::parse).and_then(|part| sum.checked_add(part));
            sum = part.ok_or_else(|| self.mismatch(at.as_str(), "sum", "a number", node.kind().name()))?;
        }
        Ok(Some(sum))
    }

    fn header(&self, name: &str) -> Option<&'a str> {
        // A header that stands twice has no one value.
        self.around.headers.only(name).ok().flatten()
    }

    fn expect(&self, node: Node<'a>, kind: Kind, at: &Pointer) -> Result<(), Mismatch> {
        if node.kind() == kind {
            return Ok(());
        }
        Err(self.mismatch(at.as_str(), "adapt", kind.name(), node.kind().name()))
    }

    fn enter(&mut self, at: &Pointer, index: usize) -> usize {
        let outer = self.prefix.len();
        self.prefix.push_str(at.as_str());
        self.prefix.push('/');
        self.prefix.push_str(&index.to_string());
        outer
    }

    fn mismatch(&self, at: &str, keyword: &'static str, expected: &str, found: &'static str) -> Mismatch {
        Box::new(Diagnosis {
            keyword: keyword.into(),
            instance_path: format!("{}{at}", self.prefix),
            expected: expected.into(),
            found,
            detail: "the document does not have the shape that the adapter table reads",
            ..Diagnosis::default()
        })
    }
}

fn origin_pointer(origin: &Origin) -> &str {
    match origin {
        Origin::From(at)
        | Origin::Request(at)
        | Origin::Count { at, .. }
        | Origin::EachItem { at, .. }
        | Origin::EachObject { at, .. }
        | Origin::FindScalar { at, .. }
        | Origin::FindObject { at, .. } => at.as_str(),
        Origin::Sum(parts) => parts.first().map_or("", Pointer::as_str),
        Origin::Const(_) | Origin::Header(_) | Origin::Object(_) => "",
    }
}

/// Writes a value of the contract: a scalar, or the empty list that stands for null.
fn write_contract_value(out: &mut TapeWriter<'_>, value: &Value) {
    match value {
        Value::Null => out.null(),
        Value::Bool(value) => out.bool(*value),
        Value::Number(number) => out.number(&number.to_string()),
        Value::String(text) => out.string(text),
        Value::Array(items) => {
            out.begin_array();
            items.iter().for_each(|item| write_contract_value(out, item));
            out.end();
        }
        Value::Object(members) => {
            out.begin_object();
            for (name, member) in members {
                out.key(name);
                write_contract_value(out, member);
            }
            out.end();
        }
    }
}
