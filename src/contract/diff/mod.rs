//! What changed between two versions of a contract, and whether anyone can tell.
//!
//! Both sides are reduced to [`facts`]: what the files *mean*, with defaults filled in, references
//! followed and annotations set aside, so that a reordered key, a moved definition or `300s` for `5m`
//! is no difference. Each fact that differs is looked up in one table, [`rules`], which says who can
//! see it and what to do. [`judge`] then asks the gate itself, over fixtures and recorded traffic:
//! a table can be wrong about a change, two judgements of one response can't.

mod facts;
pub mod judge;
pub mod rules;
mod schema;
pub mod traffic;

use super::compile::{FILE, Folder, load, text_rules};
use super::findings::Findings;
use super::raw::RawContract;
use super::schemas::Schemas;
use super::yaml::Marked;
use super::{Contract, Finding};
pub use facts::Turn;
pub use rules::{Class, Rule};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One version of a contract: compiled, and as its files say it.
#[derive(Debug)]
pub struct Side {
    pub contract: Contract,
    file: Value,
    data: Value,
    own_envelope: Option<Value>,
}

impl Side {
    /// Loads a contract and keeps what its files say beside it.
    ///
    /// # Errors
    /// All findings; what does not load can't be compared.
    pub fn load(folder: &dyn Folder) -> Result<Side, Vec<Finding>> {
        let contract = load(folder)?;
        Self::reread(contract, folder).ok_or_else(|| {
            vec![Finding {
                file: FILE.into(),
                place: super::yaml::Place::default(),
                pointer: String::new(),
                message: "the file changed while it was read".into(),
                help: "run the command again".into(),
            }]
        })
    }

    /// The files that `load` has just accepted.
    fn reread(contract: Contract, folder: &dyn Folder) -> Option<Side> {
        let marked = Marked::parse(&folder.read(FILE).ok()?).ok()?;
        let raw: RawContract = serde_json::from_value(marked.value.clone()).ok()?;
        let text = text_rules(&raw);
        let schemas = Schemas::read(folder, &raw, &marked, &text, &mut Findings::default())?;
        Some(Side { contract, file: marked.value, data: schemas.data, own_envelope: schemas.own_envelope })
    }
}

/// One difference between two contracts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// `schema.enum.narrowed`: what changed, and how.
    pub id: String,
    /// `contract.yaml` or the data schema.
    pub file: &'static str,
    /// Where: a pointer into that file, as if every `$ref` were written out.
    pub pointer: String,
    pub class: Class,
    /// Why it is of this class, in one sentence.
    pub why: &'static str,
    /// What to do about it.
    pub todo: &'static str,
}

/// All differences, those that need a version first.
pub fn changes(old: &Side, new: &Side) -> Vec<Change> {
    let renames = facts::renamed_shapes(&old.file, &new.file);
    let (before, after) = (facts::of(old, &BTreeMap::new()), facts::of(new, &renames));
    let selected: BTreeSet<&str> =
        [old, new].iter().flat_map(|side| &side.contract.selection.members).map(|s| s.member.name.as_ref()).collect();
    let mut changes: Vec<Change> =
        facts::differences(&before, &after).into_iter().map(|found| change(&found, &selected)).collect();
    changes.extend(renames.values().map(|name| {
        let at = format!("/adapt/{}/shape", super::shape::escape(name));
        change(&facts::Difference { key: "adapt.shape_name".into(), at, turn: Turn::Changed }, &selected)
    }));
    changes.extend(
        facts::reordered(old, new)
            .map(|at| change(&facts::Difference { key: "result.order".into(), at, turn: Turn::Changed }, &selected)),
    );
    changes.sort_by(|a, b| (a.class, &a.pointer, &a.id).cmp(&(b.class, &b.pointer, &b.id)));
    changes
}

fn change(found: &facts::Difference, selected: &BTreeSet<&str>) -> Change {
    let rule = rules::rule(&found.key, found.turn);
    let is_schema = found.key.starts_with("schema.");
    let hidden = is_schema && facts::top_property(&found.at).is_some_and(|name| !selected.contains(name.as_str()));
    // What is not selected never reaches the agent: it only decides about admission.
    let class = if hidden && rule.class == Class::Agent { Class::Acceptance } else { rule.class };
    // A difference without a rule says so in its id, so that nobody takes it for one that was thought about.
    let unknown = if rule.key == rules::UNKNOWN.key { "unknown." } else { "" };
    Change {
        id: format!("{unknown}{}.{}", found.key, found.turn.name()),
        file: if is_schema { "data schema" } else { FILE },
        pointer: found.at.clone(),
        class,
        why: rule.why,
        todo: rule.todo,
    }
}
