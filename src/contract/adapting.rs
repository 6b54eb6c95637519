//! Compiles `adapt:` and `source.errors:`, and checks the table against the data schema: every
//! field that it writes is a property there, and every required property is written.

use super::compile::{Draft, known_code};
use super::findings::Findings;
use super::meaning::pointer;
use super::raw::{RawAdapt, RawCond, RawContract, RawError, RawFallback, RawShape, RawSpec, SourceKind};
use super::shape::escape;
use super::{Code, lint};
use crate::gate::adapt::Reading;
use crate::gate::adapt::plan::{Adapter, Fallback, Field, InBandError, Origin, Refinement, Shape, Spec, Steps};
use crate::gate::cond::{Cond, JsonType, Test};
use crate::gate::parse::{Pointer, anchored};
use crate::gate::refusal::FailureCode;
use regex::Regex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const DEPTH_MAX: usize = 6;

pub(super) fn reading(draft: &Draft<'_>, codes: &[Code], findings: &mut Findings) -> Option<Reading> {
    let source = &draft.raw.source;
    let mut table = Table { draft, findings };
    let errors = source.errors.iter().enumerate().filter_map(|(i, raw)| table.in_band(raw, i, codes)).collect();
    let adapter = match (&draft.raw.adapt, source.kind) {
        (None, SourceKind::Envelope) => None,
        (Some(_), SourceKind::Envelope) => {
            table.at("/adapt", "an envelope is judged as it is", "remove adapt:, or use another source.kind");
            None
        }
        (None, _) => {
            table.at(
                "",
                "this kind of source needs an adapter table",
                "add adapt: with one entry for each property of the data schema",
            );
            None
        }
        (Some(raw), _) => Some(table.adapter(raw)),
    };
    let mcp = (source.kind == SourceKind::Mcp).then_some(source.mcp.frame);
    Some(Reading { mcp, errors, adapter })
}

struct Table<'d, 'f> {
    draft: &'d Draft<'d>,
    findings: &'f mut Findings,
}

impl Table<'_, '_> {
    fn at(&mut self, pointer: &str, message: impl Into<String>, help: impl Into<String>) {
        self.findings.at(self.draft.marked, pointer, message, help);
    }

    fn pointer(&mut self, raw: &str, place: &str) -> Option<Pointer> {
        pointer(self.draft, raw, place, self.findings)
    }

    fn adapter(&mut self, raw: &RawAdapt) -> Adapter {
        let shapes: Vec<Shape> = match raw {
            RawAdapt::Fields(fields) => {
                let fields = self.top_fields(fields, "/adapt");
                vec![Shape { name: "only".into(), when: Vec::new(), fields }]
            }
            RawAdapt::Shapes(shapes) => shapes.iter().enumerate().map(|(i, raw)| self.shape(raw, i)).collect(),
        };
        if shapes.is_empty() {
            self.at("/adapt", "the list of shapes is empty", "describe at least one");
        }
        self.check_all_are_written(&shapes);
        Adapter { shapes }
    }

    fn shape(&mut self, raw: &RawShape, index: usize) -> Shape {
        let place = format!("/adapt/{index}");
        let when = self.conds(&raw.when, &format!("{place}/when"));
        Shape {
            name: raw.shape.as_str().into(),
            when,
            fields: self.top_fields(&raw.fields, &format!("{place}/fields")),
        }
    }

    /// The members of the data: each must be a property of the schema, and no required one may lack.
    fn top_fields(&mut self, raw: &BTreeMap<String, RawSpec>, place: &str) -> Vec<Field> {
        let data = &self.draft.schemas.data;
        for name in raw.keys().filter(|name| !lint::pointer_exists(data, &format!("/{}", escape(name)))) {
            let message = format!("{name} is not a property of {}", self.draft.raw.data);
            self.at(&format!("{place}/{}", escape(name)), message, "the table writes exactly the schema's properties");
        }
        for name in lint::required_at(data, "").into_iter().filter(|name| !raw.contains_key(name)) {
            let message = format!("{name} is required by {} and not written", self.draft.raw.data);
            self.at(place, message, format!("add {name}: {{from: ...}}"));
        }
        self.fields(raw, place, 0)
    }

    fn check_all_are_written(&mut self, shapes: &[Shape]) {
        let written: BTreeSet<&str> =
            shapes.iter().flat_map(|shape| &shape.fields).map(|field| field.name.as_ref()).collect();
        let unwritten: Vec<String> = lint::properties_at(&self.draft.schemas.data, "")
            .into_iter()
            .filter(|name| !written.contains(name.as_str()))
            .collect();
        for name in unwritten {
            let message = format!("the property {name} of {} is never written", self.draft.raw.data);
            self.at("/adapt", message, format!("add {name}: {{from: ...}}, or remove it from the schema"));
        }
    }

    fn fields(&mut self, raw: &BTreeMap<String, RawSpec>, place: &str, depth: usize) -> Vec<Field> {
        if depth > DEPTH_MAX {
            self.at(place, "the table is nested too deep", format!("at most {DEPTH_MAX} levels"));
            return Vec::new();
        }
        let field = |(name, raw): (&String, &RawSpec)| {
            let spec = self.spec(raw, &format!("{place}/{}", escape(name)), depth)?;
            Some(Field { name: name.as_str().into(), spec })
        };
        raw.iter().filter_map(field).collect()
    }

    fn spec(&mut self, raw: &RawSpec, place: &str, depth: usize) -> Option<Spec> {
        let origin = self.origin(raw, place, depth)?;
        let steps = self.steps(raw, place)?;
        let walks = matches!(
            origin,
            Origin::Count { .. }
                | Origin::EachItem { .. }
                | Origin::EachObject { .. }
                | Origin::FindObject { .. }
                | Origin::Object(_)
                | Origin::Const(_)
        );
        let has_steps = raw.capture.is_some() || !raw.replace.is_empty() || raw.map.is_some() || raw.convert.is_some();
        if walks && has_steps {
            self.at(place, "capture, replace, map and as apply to one scalar", "put them on the item or the fields");
        }
        Some(Spec {
            origin,
            steps,
            if_missing: self.fallback(raw.if_missing.as_ref(), &format!("{place}/if_missing")),
            if_null: self.fallback(raw.if_null.as_ref(), &format!("{place}/if_null")),
        })
    }

    fn origin(&mut self, raw: &RawSpec, place: &str, depth: usize) -> Option<Origin> {
        let given = [
            raw.from.is_some(),
            raw.request.is_some(),
            raw.constant.is_some(),
            raw.header.is_some(),
            raw.count.is_some(),
            raw.each.is_some(),
            raw.find.is_some(),
            raw.sum.is_some(),
        ];
        let origins = given.iter().filter(|given| **given).count();
        let nested_only = origins == 0 && raw.fields.is_some();
        if origins != 1 && !nested_only {
            self.at(
                place,
                "a field has exactly one origin",
                "use one of from, request, const, header, count, each, find, sum, fields",
            );
            return None;
        }
        self.check_companions(raw, place);
        if let Some(at) = &raw.from {
            return Some(Origin::From(self.pointer(at, &format!("{place}/from"))?));
        }
        if let Some(at) = &raw.request {
            return Some(Origin::Request(self.pointer(at, &format!("{place}/request"))?));
        }
        if let Some(value) = &raw.constant {
            return Some(Origin::Const(value.clone()));
        }
        if let Some(name) = &raw.header {
            return Some(Origin::Header(name.to_ascii_lowercase().into()));
        }
        if let Some(parts) = &raw.sum {
            let parts = parts.iter().map(|at| self.pointer(at, &format!("{place}/sum"))).collect::<Option<Vec<_>>>()?;
            return Some(Origin::Sum(parts));
        }
        self.list_origin(raw, place, depth)
    }

    fn list_origin(&mut self, raw: &RawSpec, place: &str, depth: usize) -> Option<Origin> {
        let filter = self.conds(&raw.filter, &format!("{place}/where"));
        let nested = raw.fields.as_ref().map(|fields| self.fields(fields, &format!("{place}/fields"), depth + 1));
        if let Some(at) = &raw.count {
            return Some(Origin::Count { at: self.pointer(at, &format!("{place}/count"))?, filter });
        }
        if let Some(at) = &raw.each {
            let at = self.pointer(at, &format!("{place}/each"))?;
            return match (nested, &raw.item) {
                (Some(fields), None) => Some(Origin::EachObject { at, filter, fields }),
                (None, Some(item)) => {
                    let item = Box::new(self.spec(item, &format!("{place}/item"), depth + 1)?);
                    Some(Origin::EachItem { at, filter, item, distinct: raw.distinct })
                }
                (Some(_), Some(_)) | (None, None) => {
                    self.at(place, "each needs either fields or item", "fields: for objects, item: for scalars");
                    None
                }
            };
        }
        if let Some(at) = &raw.find {
            let at = self.pointer(at, &format!("{place}/find"))?;
            return match (nested, &raw.take) {
                (Some(fields), None) => Some(Origin::FindObject { at, filter, fields }),
                (None, Some(take)) => {
                    Some(Origin::FindScalar { at, filter, take: self.pointer(take, &format!("{place}/take"))? })
                }
                (Some(_), Some(_)) | (None, None) => {
                    self.at(place, "find needs either take or fields", "take: for a scalar, fields: for an object");
                    None
                }
            };
        }
        nested.map(Origin::Object)
    }

    /// Keys that mean nothing beside the chosen origin are mistakes, not decoration.
    fn check_companions(&mut self, raw: &RawSpec, place: &str) {
        let lists = raw.count.is_some() || raw.each.is_some() || raw.find.is_some();
        let table = [
            (!raw.filter.is_empty() && !lists, "where", "count, each and find"),
            (raw.find.is_some() && raw.filter.is_empty(), "find without where", "a condition that names one item"),
            (raw.item.is_some() && raw.each.is_none(), "item", "each"),
            (raw.take.is_some() && raw.find.is_none(), "take", "find"),
            (raw.distinct && raw.item.is_none(), "distinct", "each with item"),
            (raw.fields.is_some() && (raw.from.is_some() || raw.count.is_some()), "fields", "each, find, or alone"),
        ];
        for (wrong, key, wants) in table {
            if wrong {
                self.at(place, format!("{key} goes with {wants}"), "see docs/contracts.md");
            }
        }
    }

    fn steps(&mut self, raw: &RawSpec, place: &str) -> Option<Steps> {
        let capture = match &raw.capture {
            None => None,
            Some(pattern) => {
                let regex = self.regex(pattern, &format!("{place}/capture"))?;
                if regex.captures_len() != 2 {
                    self.at(
                        &format!("{place}/capture"),
                        "the pattern must have exactly one capture group",
                        "write (?:...) for the other groups",
                    );
                }
                Some(regex)
            }
        };
        let map = raw.map.as_ref().map(|map| {
            map.iter().map(|(from, to)| (from.as_str().into(), to.clone())).collect::<Vec<(Box<str>, Value)>>()
        });
        if map.iter().flatten().any(|(_, to)| to.is_array() || to.is_object()) {
            self.at(
                &format!("{place}/map"),
                "a table maps scalars to scalars",
                "lists and objects can't be written this way",
            );
        }
        let replace = raw.replace.iter().map(|(from, to)| (from.as_str().into(), to.as_str().into())).collect();
        if raw.replace.contains_key("") {
            self.at(&format!("{place}/replace"), "an empty text can't be replaced", "name the text to replace");
        }
        Some(Steps { capture, replace, map, convert: raw.convert })
    }

    fn fallback(&mut self, raw: Option<&RawFallback>, place: &str) -> Fallback {
        match raw {
            None => Fallback::Refuse,
            Some(RawFallback::Word(_)) => Fallback::Omit,
            Some(RawFallback::Value(value)) => {
                let fills = value.value.is_object() || value.value.as_array().is_some_and(|items| !items.is_empty());
                if fills {
                    self.at(place, "only a scalar or [] can stand in for a value", "use omit, or a scalar");
                }
                Fallback::Value(value.value.clone())
            }
        }
    }

    /// A pattern over the whole string: anchored here, linear by the engine, bounded in size.
    fn regex(&mut self, pattern: &str, place: &str) -> Option<Regex> {
        anchored(pattern)
            .map_err(|error| {
                self.at(place, format!("the pattern does not compile: {error}"), "toolgate anchors it at both ends")
            })
            .ok()
    }

    fn conds(&mut self, raw: &[RawCond], place: &str) -> Vec<Cond> {
        raw.iter().filter_map(|cond| self.cond(cond, place)).collect()
    }

    fn cond(&mut self, raw: &RawCond, place: &str) -> Option<Cond> {
        let at = self.pointer(&raw.at, place)?;
        let mut tests = Vec::new();
        tests.extend(raw.equals.clone().map(|value| Test::Equals(value.into())));
        tests.extend(raw.one_of.clone().map(|values| Test::OneOf(values.into_iter().map(Into::into).collect())));
        if let Some(pattern) = &raw.matches {
            tests.push(Test::Matches(self.regex(pattern, place)?));
        }
        if let Some(name) = &raw.kind {
            match JsonType::named(name) {
                Some(kind) => tests.push(Test::Type(kind)),
                None => self.at(
                    place,
                    format!("{name} is not a JSON type"),
                    "use null, boolean, integer, number, string, array or object",
                ),
            }
        }
        tests.extend(raw.present.map(Test::Present));
        tests.extend(raw.not_empty.map(Test::NotEmpty));
        tests.extend(raw.is_null.map(Test::Null));
        if tests.is_empty() {
            self.at(
                place,
                "the condition tests nothing",
                "add equals, one_of, matches, type, present, not_empty or is_null",
            );
        }
        Some(Cond { at, tests })
    }

    fn in_band(&mut self, raw: &RawError, index: usize, codes: &[Code]) -> Option<InBandError> {
        let place = format!("/source/errors/{index}");
        let when = self.conds(&raw.when, &format!("{place}/when"));
        let code = known_code(self.draft, codes, &raw.code, &format!("{place}/code"), self.findings)?;
        let by = match &raw.by {
            None => None,
            Some(by) => {
                let at = self.pointer(&by.at, &format!("{place}/by/at"))?;
                let mut table: Vec<(Box<str>, FailureCode)> = Vec::new();
                for (vendor, name) in &by.map {
                    let entry = format!("{place}/by/map/{}", escape(vendor));
                    table.extend(
                        known_code(self.draft, codes, name, &entry, self.findings)
                            .map(|code| (vendor.as_str().into(), code)),
                    );
                }
                Some(Refinement { at, codes: table })
            }
        };
        Some(InBandError { when, code, by })
    }
}

/// Visits every pointer into the request's arguments that the table copies from.
pub(super) fn for_each_request_pointer(raw: &RawContract, visit: &mut dyn FnMut(&str)) {
    let tables: Vec<&BTreeMap<String, RawSpec>> = match &raw.adapt {
        None => Vec::new(),
        Some(RawAdapt::Fields(fields)) => vec![fields],
        Some(RawAdapt::Shapes(shapes)) => shapes.iter().map(|shape| &shape.fields).collect(),
    };
    let mut pending: Vec<&RawSpec> = tables.into_iter().flat_map(BTreeMap::values).collect();
    while let Some(spec) = pending.pop() {
        spec.request.iter().for_each(|at| visit(at));
        pending.extend(spec.fields.iter().flat_map(BTreeMap::values));
        pending.extend(spec.item.as_deref());
    }
}
