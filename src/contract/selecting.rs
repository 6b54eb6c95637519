//! Compiles `select:`: the members that get out, in order, with the shape of each.

use super::compile::Draft;
use super::findings::Findings;
use super::raw::RawSelect;
use super::shape::{Shapes, escape};
use crate::gate::select::{Member, Selected, Selection, Shape};

const RESULT_BYTES_MAX: u64 = 8192;

pub(super) fn selection(draft: &Draft<'_>, findings: &mut Findings) -> Selection {
    let shapes = Shapes { root: &draft.schemas.data, text: draft.text };
    let Shape::Object(declared) = shapes.of(&draft.schemas.data, "") else {
        findings.file(
            &draft.raw.data,
            "the data schema declares no properties",
            "a result is an object with named facts",
        );
        return Selection { members: Vec::new(), result_bytes_max: 0 };
    };
    let members = match &draft.raw.select {
        None => declared.into_iter().map(|member| Selected { member, as_string: false }).collect(),
        Some(entries) => chosen(draft, declared, entries, findings),
    };
    let result_bytes_max = draft.raw.limits.result_bytes_max.unwrap_or(RESULT_BYTES_MAX) as usize;
    Selection { members, result_bytes_max }
}

fn chosen(
    draft: &Draft<'_>,
    mut declared: Vec<Member>,
    entries: &[RawSelect],
    findings: &mut Findings,
) -> Vec<Selected> {
    let mut members = Vec::new();
    for (i, entry) in entries.iter().enumerate() {
        let names: Vec<(&String, bool)> = match entry {
            RawSelect::Name(name) => vec![(name, false)],
            RawSelect::Converted(fields) => fields.keys().map(|name| (name, true)).collect(),
        };
        for (name, as_string) in names {
            match declared.iter().position(|member| member.name.as_ref() == name) {
                Some(at) => members.push(Selected { member: declared.remove(at), as_string }),
                None => {
                    let message = format!("{name} is not a property of {}, or is selected twice", draft.raw.data);
                    findings.at(draft.marked, &format!("/select/{i}"), message, "select each property at most once");
                }
            }
        }
    }
    members
}

/// The selected fields that hold free text: an agent's instructions must call them untrusted.
pub(super) fn untrusted_text(draft: &Draft<'_>, selection: &Selection) -> Vec<String> {
    let selected = |pointer: &&String| {
        let below = |selected: &Selected| {
            let own = format!("/{}", escape(&selected.member.name));
            **pointer == own || pointer.starts_with(&format!("{own}/"))
        };
        selection.members.iter().any(below)
    };
    draft.text.keys().filter(selected).map(|pointer| pointer.trim_start_matches('/').to_owned()).collect()
}
