//! Takes one shape of several, where taking it admits nothing that the source refuses.

use super::flat::list;
use super::merge::Flat;
use super::tighten::Tightener;
use super::{ImportError, is_field_name};
use serde_json::{Map, Value};

impl Tightener<'_> {
    /// Of `anyOf` any branch may be taken. Of `oneOf` only one that no value shares with another branch: a value of
    /// two branches is refused by the source.
    pub(super) fn branch(
        &mut self,
        members: &Map<String, Value>,
        keyword: &str,
        at: &str,
        flat: &mut Flat,
        steps: usize,
    ) -> Result<(), ImportError> {
        let mut flats = Vec::new();
        let mut failure = None;
        for (i, branch) in list(members, keyword).iter().enumerate() {
            let mut alone = Flat::anything();
            alone.refs.clone_from(&flat.refs);
            match self.flatten(branch, &format!("{at}/{keyword}/{i}"), &mut alone, steps + 1) {
                Ok(()) => {
                    flats.push((i, alone));
                }
                // A branch that cannot be drawn is not taken; others may be.
                Err(error) => failure = Some(error),
            }
        }
        let all = list(members, keyword).len();
        let admits_null = flats.iter().any(|(_, alone)| alone.nullable);
        flat.nullable &= admits_null;
        let (nulls, real): (Vec<_>, Vec<_>) = flats.into_iter().partition(|(_, alone)| is_null(alone));
        if let Some(values) = listed_values(&real, keyword).filter(|_| real.len() + nulls.len() == all) {
            flat.admit_values(&values);
            return Ok(());
        }
        let is_taken = |i: usize| {
            let (_, one) = &real[i];
            let undrawn = all > real.len() + nulls.len();
            let apart = real.iter().enumerate().all(|(j, (_, other))| i == j || are_apart(one, other));
            one.unsupported.is_empty() && (keyword == "anyOf" || (apart && !undrawn))
        };
        let Some(taken) = (0..real.len()).find(|i| is_taken(*i)) else {
            if let Some(error) = failure.filter(|_| real.is_empty()) {
                return Err(error);
            }
            flat.unsupported.push(format!("{keyword} whose branches share values"));
            return Ok(());
        };
        flat.not_taken += real.len() - 1 + (all - real.len() - nulls.len());
        let (index, _) = real[taken];
        if keyword == "oneOf" {
            let others = real.iter().enumerate().filter(|(j, _)| *j != taken);
            let names = others.map(|(_, (_, other))| foreign(&real[taken].1, other));
            flat.unnamed.extend(names.filter(|names| !names.is_empty()));
        }
        let branch = list(members, keyword)[index].clone();
        let nullable = flat.nullable;
        self.flatten(&branch, &format!("{at}/{keyword}/{index}"), flat, steps + 1)?;
        flat.nullable = nullable;
        self.discriminated(members, &branch, flat);
        Ok(())
    }

    /// OpenAPI: the member that names the shape must name the one that was taken.
    fn discriminated(&self, members: &Map<String, Value>, branch: &Value, flat: &mut Flat) {
        let Some(discriminator) = members.get("discriminator").and_then(Value::as_object) else { return };
        let Some(name) = discriminator.get("propertyName").and_then(Value::as_str) else { return };
        let Some(target) = branch.get("$ref").and_then(Value::as_str) else { return };
        let short = target.rsplit('/').next().unwrap_or(target);
        let mapping = discriminator.get("mapping").and_then(Value::as_object);
        let mapped: Vec<Value> = mapping
            .into_iter()
            .flatten()
            .filter(|(_, to)| to.as_str().is_some_and(|to| to == target || to == short))
            .map(|(from, _)| Value::String(from.clone()))
            .collect();
        let values = if mapped.is_empty() { vec![Value::String(short.to_owned())] } else { mapped };
        let schema = serde_json::json!({ "type": "string", "enum": values });
        flat.property(name, &schema, String::new());
        flat.required.insert(name.to_owned());
    }
}

fn is_null(flat: &Flat) -> bool {
    flat.nullable
        && flat.properties.is_empty()
        && (flat.types.as_ref().is_some_and(Vec::is_empty) || flat.listed.as_ref().is_some_and(Vec::is_empty))
}

/// Branches that list values are one list: of `oneOf`, without those that two branches have.
fn listed_values(branches: &[(usize, Flat)], keyword: &str) -> Option<Vec<Value>> {
    let lists: Vec<&Vec<Value>> = branches.iter().map(|(_, flat)| flat.listed.as_ref()).collect::<Option<_>>()?;
    let bare = |flat: &Flat| flat.keywords.is_empty() && flat.unsupported.is_empty() && flat.format.is_none();
    if lists.is_empty() || !branches.iter().all(|(_, flat)| bare(flat)) {
        return None;
    }
    let count = |value: &Value| lists.iter().filter(|list| list.contains(value)).count();
    let mut values: Vec<Value> = Vec::new();
    for (value, (_, flat)) in lists.iter().zip(branches).flat_map(|(list, b)| list.iter().map(move |v| (v, b))) {
        let is_typed =
            flat.types.as_ref().is_none_or(|types| types.iter().any(|kind| kind == super::merge::type_of(value)));
        if is_typed && !values.contains(value) && (keyword == "anyOf" || count(value) == 1) {
            values.push(value.clone());
        }
    }
    Some(values)
}

/// Whether no value of `one`, once it is closed, is a value of `other`.
fn are_apart(one: &Flat, other: &Flat) -> bool {
    let (ones, others) = (one.kinds(), other.admitted_kinds());
    let numeric = |kind: &str| matches!(kind, "integer" | "number");
    let shares = |a: &String| others.iter().flatten().any(|b| a == b || (numeric(a) && numeric(b)));
    if !ones.is_empty() && others.is_some() && !ones.iter().any(shares) {
        return true;
    }
    if let (Some(a), Some(b)) = (&one.listed, &other.listed) {
        return !a.iter().any(|value| b.contains(value));
    }
    let named =
        |flat: &Flat, name: &str| flat.properties.iter().find(|(known, ..)| known == name).map(|(_, s, _)| s.clone());
    let foreign = !foreign(one, other).is_empty();
    let told_apart = one.required.iter().filter(|name| is_field_name(name)).any(|name| {
        let values = |flat| named(flat, name).and_then(|schema| simple_values(&schema));
        matches!((values(one), values(other)), (Some(a), Some(b)) if !a.iter().any(|value| b.contains(value)))
    });
    ones == ["object"] && (foreign || told_apart)
}

/// What `other` requires and `one` does not name: while nothing names all of it, a closed `one` is never an `other`.
fn foreign(one: &Flat, other: &Flat) -> Vec<String> {
    other.required.iter().filter(|name| !one.properties.iter().any(|(known, ..)| known == *name)).cloned().collect()
}

/// The values that a property's own `const` or `enum` lists.
fn simple_values(schema: &Value) -> Option<Vec<Value>> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => Some(vec![value.clone()]),
        (None, Some(Value::Array(values))) => Some(values.clone()),
        (None, Some(_) | None) => None,
    }
}
