//! The walk: every subschema in its place of the data, with what the schemas around it guarantee.

use super::keywords::{KEYWORDS, LEFT_OUT, nearest};
use super::{LintFinding, escape};
use crate::gate::text_safety::TextRule;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Levels of the data. Few results need three.
const PLACE_DEPTH_MAX: usize = 8;
/// References and combinators in a row at one place.
const COMBINATOR_DEPTH_MAX: usize = 8;
/// Subschemas that are met, each as often as it is referred to.
const VISITS_MAX: usize = 5000;
const FINDINGS_MAX: usize = 100;

/// What a subschema owes to the place where it stands.
#[derive(Clone)]
pub(super) enum Role<'s> {
    /// Nothing else bounds the value: it must do so itself.
    Bounds,
    /// A sibling bounds the value and nothing can be added to it.
    Narrows,
    /// A sibling bounds the value, but is closed by `unevaluatedProperties`: a property that is
    /// declared here is admitted by that alone, and only these ones are bounded elsewhere.
    NarrowsOnly(Rc<BTreeSet<&'s str>>),
}

/// What is known about the place of a subschema.
#[derive(Clone)]
pub(super) struct Context<'s> {
    /// Pointer into the data.
    pub place: String,
    pub role: Role<'s>,
    /// The composition around is closed by `unevaluatedProperties`.
    pub closed_outside: bool,
    place_depth: usize,
    combinator_depth: usize,
}

impl<'s> Context<'s> {
    pub fn bounds(&self) -> bool {
        matches!(self.role, Role::Bounds)
    }

    /// The context of a property, or of the items, of the value at this place.
    pub fn below(&self, token: &str, name: Option<&str>) -> Context<'s> {
        let role = match &self.role {
            Role::Bounds => Role::Bounds,
            Role::NarrowsOnly(bounded) if name.is_some_and(|name| !bounded.contains(name)) => Role::Bounds,
            Role::Narrows | Role::NarrowsOnly(_) => Role::Narrows,
        };
        Context {
            place: format!("{}/{token}", self.place),
            role,
            closed_outside: false,
            place_depth: self.place_depth + 1,
            combinator_depth: 0,
        }
    }

    fn beside(&self, role: Role<'s>, closed_outside: bool) -> Context<'s> {
        Context { role, closed_outside, combinator_depth: self.combinator_depth + 1, ..self.clone() }
    }
}

pub(super) struct Lint<'s> {
    pub root: &'s Value,
    pub text: &'s BTreeMap<String, TextRule>,
    /// Declared text that the schema has.
    pub met_text: BTreeSet<String>,
    findings: Vec<LintFinding>,
    /// Targets of the references that lead here.
    followed: Vec<&'s Value>,
    visits: usize,
}

pub(super) fn walk<'s>(schema: &'s Value, text: &'s BTreeMap<String, TextRule>) -> Vec<LintFinding> {
    let mut lint =
        Lint { root: schema, text, met_text: BTreeSet::new(), findings: Vec::new(), followed: Vec::new(), visits: 0 };
    let top = Context {
        place: String::new(),
        role: Role::Bounds,
        closed_outside: false,
        place_depth: 0,
        combinator_depth: 0,
    };
    lint.subschema(schema, "", &top);
    lint.unmet_text();
    lint.findings
}

impl<'s> Lint<'s> {
    pub fn add(&mut self, rule: &'static str, pointer: &str, message: impl Into<String>, help: &'static str) {
        let finding = LintFinding { rule, pointer: pointer.into(), message: message.into(), help };
        if self.findings.len() < FINDINGS_MAX && !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    pub fn subschema(&mut self, schema: &'s Value, pointer: &str, context: &Context<'s>) {
        self.visits += 1;
        if self.visits > VISITS_MAX {
            let help = "refer to a definition less often, or select less";
            return self.add("size", "", format!("the schema expands to more than {VISITS_MAX} parts"), help);
        }
        if context.place_depth > PLACE_DEPTH_MAX {
            let message = format!("the data nests deeper than {PLACE_DEPTH_MAX} levels");
            return self.add("depth", pointer, message, "flatten the result");
        }
        if context.combinator_depth > COMBINATOR_DEPTH_MAX {
            let message = format!("more than {COMBINATOR_DEPTH_MAX} references and combinators inside one another");
            return self.add("depth", pointer, message, "say it in fewer steps");
        }
        match schema {
            Value::Object(members) => {
                self.keywords(members, pointer);
                self.types(members, pointer, context);
                self.object(members, pointer, context);
                self.array(members, pointer, context);
                self.string(members, pointer, context);
                self.number(members, pointer, context);
                self.combinators(members, pointer, context);
                self.reference(members, pointer, context);
            }
            Value::Bool(true) if context.bounds() => {
                self.add("open", pointer, "true admits everything", "say what is admitted");
            }
            Value::Bool(_) => {}
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                self.add("schema", pointer, "this is no schema", "a schema is an object");
            }
        }
    }

    fn keywords(&mut self, members: &Map<String, Value>, pointer: &str) {
        for name in members.keys().filter(|name| !KEYWORDS.contains(&name.as_str())) {
            let pointer = format!("{pointer}/{}", escape(name));
            if let Some((_, instead)) = LEFT_OUT.iter().find(|(left_out, _)| left_out == name) {
                self.add("keyword", &pointer, format!("{name} is not admitted in a contract"), instead);
                continue;
            }
            let message = match nearest(name) {
                Some(nearest) => format!("{name} is not a keyword; did you mean {nearest}?"),
                None => format!("{name} is not a keyword"),
            };
            self.add("keyword", &pointer, message, "a validator ignores unknown keywords in silence");
        }
    }

    /// A reference stays in the file, leads somewhere, and never back to itself.
    fn reference(&mut self, members: &'s Map<String, Value>, pointer: &str, context: &Context<'s>) {
        let Some(reference) = members.get("$ref") else { return };
        let pointer = format!("{pointer}/$ref");
        let text = reference.as_str().unwrap_or_default();
        let Some(local) = text.strip_prefix('#') else {
            let help = "copy the definition into $defs and refer to it by #/$defs/...; nothing is fetched";
            return self.add("ref", &pointer, format!("{reference} leads out of this file"), help);
        };
        if local.contains('%') {
            return self.add("ref", &pointer, "an escaped reference is read in two ways", "use plain names in $defs");
        }
        let Some(target) = self.root.pointer(local) else {
            return self.add("ref", &pointer, format!("{text} leads nowhere"), "define it under $defs");
        };
        if std::ptr::eq(target, self.root) || self.followed.iter().any(|known| std::ptr::eq(*known, target)) {
            let help = "a result has a bounded size; unroll the recursion";
            return self.add("ref", &pointer, format!("{text} leads back to itself"), help);
        }
        let closed = context.closed_outside || closed_by(members, "unevaluatedProperties");
        self.followed.push(target);
        self.subschema(target, local, &context.beside(context.role.clone(), closed));
        self.followed.pop();
    }

    /// Branches either bound the value each on its own, or narrow what this schema itself bounds.
    fn combinators(&mut self, members: &'s Map<String, Value>, pointer: &str, context: &Context<'s>) {
        let by_unevaluated = context.closed_outside || closed_by(members, "unevaluatedProperties");
        let adds = by_unevaluated && !closed_by(members, "additionalProperties");
        let narrowing = |bounded: BTreeSet<&'s str>| match &context.role {
            Role::Bounds if adds => Role::NarrowsOnly(Rc::new(bounded)),
            Role::Bounds => Role::Narrows,
            Role::Narrows => Role::Narrows,
            Role::NarrowsOnly(outer) => Role::NarrowsOnly(outer.clone()),
        };
        let has_own = ["type", "properties", "$ref"].iter().any(|keyword| members.contains_key(*keyword));
        let own = || narrowing(self.declared(members, false, 0));
        let all = || narrowing(self.declared(members, true, 0));
        let (in_all, in_any) = if has_own { (own(), all()) } else { (context.role.clone(), context.role.clone()) };
        // What every branch bounds for itself is bounded for a condition, too.
        let composed = ["allOf", "anyOf", "oneOf"].iter().any(|keyword| members.contains_key(*keyword));
        let in_condition = if has_own || composed { all() } else { context.role.clone() };

        for (keyword, role) in [("allOf", in_all), ("anyOf", in_any.clone()), ("oneOf", in_any)] {
            let inner = context.beside(role, by_unevaluated);
            for (i, branch) in members.get(keyword).and_then(Value::as_array).into_iter().flatten().enumerate() {
                self.subschema(branch, &format!("{pointer}/{keyword}/{i}"), &inner);
            }
        }
        for (keyword, role) in [
            ("if", in_condition.clone()),
            ("then", in_condition.clone()),
            ("else", in_condition),
            ("not", Role::Narrows),
        ] {
            if let Some(branch) = members.get(keyword) {
                self.subschema(branch, &format!("{pointer}/{keyword}"), &context.beside(role, by_unevaluated));
            }
        }
    }

    /// Properties that are bounded whatever else holds: declared here, by a reference or, where
    /// `branches`, in `allOf`.
    fn declared(&self, members: &'s Map<String, Value>, branches: bool, depth: usize) -> BTreeSet<&'s str> {
        let properties = members.get("properties").and_then(Value::as_object);
        let mut names: BTreeSet<&str> = properties.into_iter().flat_map(|own| own.keys()).map(String::as_str).collect();
        if depth > COMBINATOR_DEPTH_MAX {
            return names;
        }
        let target =
            members.get("$ref").and_then(Value::as_str).and_then(|text| self.root.pointer(text.strip_prefix('#')?));
        let branches = members.get("allOf").filter(|_| branches).and_then(Value::as_array);
        for part in target.into_iter().chain(branches.into_iter().flatten()).filter_map(Value::as_object) {
            names.extend(self.declared(part, true, depth + 1));
        }
        names
    }

    /// Declared text that the schema does not have is a typing mistake in the contract.
    fn unmet_text(&mut self) {
        let unmet: Vec<String> = self.text.keys().filter(|place| !self.met_text.contains(*place)).cloned().collect();
        for place in unmet {
            let message = format!("text: declares {place}, which is no string of this schema");
            self.add("text", "", message, "correct the name, or remove it");
        }
    }
}

pub(super) fn closed_by(members: &Map<String, Value>, keyword: &str) -> bool {
    members.get(keyword) == Some(&Value::Bool(false))
}
