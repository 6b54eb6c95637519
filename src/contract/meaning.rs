//! Compiles what a contract demands beyond structure: `bind:`, `issuer:`, `fresh:`, `rules:`.

use super::cel::Rule;
use super::compile::{Draft, check_bound_by};
use super::findings::Findings;
use super::lint;
use super::raw::{RawBind, RawFresh};
use crate::gate::bind::{Bind, Fresh, Issuer, Other, Relation, Semantics};
use crate::gate::parse::Pointer;
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn semantics(draft: &Draft<'_>, findings: &mut Findings) -> Option<Semantics> {
    let mut semantics = Semantics::default();
    for (i, raw) in draft.raw.bind.iter().enumerate() {
        semantics.binds.extend(bind(draft, raw, &format!("/bind/{i}"), findings));
    }
    let to_content = semantics.binds.iter().filter(|bind| matches!(bind.other, Other::Argument(_))).count();
    check_bound_by(draft, to_content, findings);
    if let Some(raw) = &draft.raw.issuer {
        let at = data_pointer(draft, &raw.at, "/issuer/at", findings)?;
        semantics.issuer = Some(Issuer { at, one_of: raw.one_of.iter().map(|name| name.as_str().into()).collect() });
    }
    for (i, raw) in draft.raw.fresh.iter().enumerate() {
        semantics.fresh.extend(fresh(draft, raw, i, findings));
    }
    for (i, raw) in draft.raw.rules.iter().enumerate() {
        match Rule::compile(&raw.id, &raw.cel) {
            Ok(rule) => semantics.rules.push(rule),
            Err(error) => {
                let help = "bind: and fresh: express most conditions without CEL";
                findings.at(draft.marked, &format!("/rules/{i}/cel"), error.to_string(), help);
            }
        }
    }
    Some(semantics)
}

/// A pointer of the contract that must lead somewhere in the data schema.
pub(super) fn data_pointer(draft: &Draft<'_>, raw: &str, place: &str, findings: &mut Findings) -> Option<Pointer> {
    let pointer = pointer(draft, raw, place, findings)?;
    if !lint::pointer_exists(&draft.schemas.data, raw) {
        let message = format!("{raw} is not a place in {}", draft.raw.data);
        findings.at(draft.marked, place, message, "name a property of the data schema");
        return None;
    }
    Some(pointer)
}

pub(super) fn pointer(draft: &Draft<'_>, raw: &str, place: &str, findings: &mut Findings) -> Option<Pointer> {
    Pointer::parse(raw)
        .map_err(|error| {
            findings.at(draft.marked, place, error.to_string(), "RFC 6901: /member/0/other, with ~1 for / and ~0 for ~")
        })
        .ok()
}

fn bind(draft: &Draft<'_>, raw: &RawBind, place: &str, findings: &mut Findings) -> Option<Bind> {
    let data = data_pointer(draft, &raw.data, &format!("{place}/data"), findings)?;
    let relations = [
        (Relation::Equals, "equals", &raw.equals),
        (Relation::In, "in", &raw.member_of),
        (Relation::Prefix, "prefix", &raw.prefix),
        (Relation::AtLeast, "at_least", &raw.at_least),
    ];
    let mut given = relations.into_iter().filter_map(|(relation, key, target)| Some((relation, key, target.as_ref()?)));
    let (Some((relation, key, target)), None) = (given.next(), given.next()) else {
        findings.at(draft.marked, place, "a bind has exactly one relation", "use one of equals, in, prefix, at_least");
        return None;
    };
    let place = format!("{place}/{key}");
    let other = match (target.strip_prefix("/arguments"), target.strip_prefix("/data")) {
        (Some(rest), _) => Other::Argument(pointer(draft, rest, &place, findings)?),
        (None, Some(rest)) => Other::Data(data_pointer(draft, rest, &place, findings)?),
        (None, None) => {
            findings.at(
                draft.marked,
                &place,
                format!("{target} is neither an argument nor a data field"),
                "write /arguments/... or /data/...",
            );
            return None;
        }
    };
    Some(Bind { data, relation, other, optional: raw.optional })
}

fn fresh(draft: &Draft<'_>, raw: &RawFresh, index: usize, findings: &mut Findings) -> Option<Fresh> {
    let one = format!("/fresh/{index}/at");
    let place = if draft.marked.value.pointer(&one).is_some() { one } else { "/fresh/at".to_owned() };
    let at = data_pointer(draft, &raw.at, &place, findings)?;
    let is_time = lint::schemas_at(&draft.schemas.data, &raw.at)
        .iter()
        .any(|schema| schema.get("format").and_then(Value::as_str) == Some("date-time"));
    if !is_time {
        findings.at(
            draft.marked,
            &place,
            format!("{} is not of format date-time", raw.at),
            "freshness needs a time with an offset",
        );
    }
    if raw.max_age.is_none() && raw.not_before_request.is_none() {
        findings.at(draft.marked, &place, "no age is demanded", "add max_age, or not_before_request");
    }
    Some(Fresh {
        at,
        max_age_ms: raw.max_age.map(|age| age.0),
        max_skew_ms: raw.max_skew.0,
        not_before_request_ms: raw.not_before_request.map(|tolerance| tolerance.0),
    })
}

/// The top-level arguments that the contract compares with or copies: only these are kept of a request.
pub(super) fn arguments(draft: &Draft<'_>) -> BTreeSet<String> {
    let raw = draft.raw;
    let targets =
        raw.bind.iter().flat_map(|bind| [&bind.equals, &bind.member_of, &bind.prefix, &bind.at_least]).flatten();
    let mut names: BTreeSet<String> =
        targets.filter_map(|target| first_token(target.strip_prefix("/arguments")?)).collect();
    super::adapting::for_each_request_pointer(raw, &mut |pointer| names.extend(first_token(pointer)));
    for rule in &raw.rules {
        names.extend(
            Rule::compile(&rule.id, &rule.cel).ok().into_iter().flat_map(|rule| rule.arguments().collect::<Vec<_>>()),
        );
    }
    names
}

fn first_token(pointer: &str) -> Option<String> {
    let token = pointer.strip_prefix('/')?.split('/').next()?;
    Some(token.replace("~1", "/").replace("~0", "~"))
}
