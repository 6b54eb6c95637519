//! `contract diff` is right about each change: the class that its table says agrees with what both
//! versions make of generated responses.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::wildcard_enum_match_arm,
    reason = "tests; the documents are our own JSON"
)]

mod bases;
mod documents;
mod rows;

use bases::{Base, Files};
use rows::{ROWS, Row};
use std::collections::BTreeSet;
use toolgate::contract::diff::judge::{Shift, judge, tally};
use toolgate::contract::diff::rules::RULES;
use toolgate::contract::diff::{Class, Side, changes};

fn load(files: &Files) -> Result<Side, String> {
    Side::load(files).map_err(|findings| {
        let told: Vec<String> = findings.iter().map(ToString::to_string).collect();
        format!("does not load: {}", told.join("\n"))
    })
}

/// What a row leads to: the ids of its changes, the gravest class, and what the documents show.
struct Seen {
    ids: BTreeSet<String>,
    class: Option<Class>,
    shifts: BTreeSet<Shift>,
    judged: usize,
}

fn see(row: &Row) -> Result<Seen, String> {
    let base = Base::named(row.base);
    let edited = base.files.edited(row.edit);
    let (old, new) = (load(&base.files)?, load(&edited)?);
    let changes = changes(&old, &new);
    let samples = documents::of(&base, &[&base.files, &edited]);
    let breaks = row.class.is_some_and(Class::needs_version) && !row.by_delivery;
    let (mut shifts, mut judged) = (BTreeSet::new(), 0);
    for part in samples.chunks(200) {
        let tally = tally(&old.contract, &new.contract, part, &base.secrets);
        judged += tally.judged;
        shifts.extend(tally.differing.iter().map(|example| example.shift));
        // One document is enough to show that a change breaks; that none does takes all of them.
        if breaks && tally.needs_version() {
            break;
        }
    }
    Ok(Seen {
        ids: changes.iter().map(|change| change.id.clone()).collect(),
        class: changes.iter().map(|change| change.class).min(),
        shifts,
        judged,
    })
}

fn problem(row: &Row) -> Option<String> {
    let seen = match see(row) {
        Ok(seen) => seen,
        Err(why) => return Some(format!("{}: {why}", row.what)),
    };
    let wanted: BTreeSet<String> = row.ids.split_whitespace().map(str::to_owned).collect();
    if seen.ids != wanted {
        return Some(format!("{}: wanted {wanted:?}, found {:?}", row.what, seen.ids));
    }
    if seen.class != row.class {
        return Some(format!("{}: wanted {:?}, found {:?}", row.what, row.class, seen.class));
    }
    let shown = seen.shifts.iter().any(|shift| shift.needs_version());
    let breaks = row.class.is_some_and(Class::needs_version);
    if row.by_delivery {
        return shown.then(|| format!("{}: a document shows it after all", row.what));
    }
    match (breaks, shown) {
        (true, false) => Some(format!("{}: none of {} documents shows it", row.what, seen.judged)),
        (false, true) => Some(format!("{}: called compatible, but {:?}", row.what, seen.shifts)),
        (true, true) | (false, false) => None,
    }
}

#[test]
fn each_class_agrees_with_both_versions_on_generated_documents() {
    let share = |rows: &[Row]| rows.iter().filter_map(problem).collect::<Vec<String>>();
    let problems: Vec<String> = std::thread::scope(|scope| {
        let parts: Vec<_> = ROWS.chunks(ROWS.len() / 4 + 1).map(|rows| scope.spawn(move || share(rows))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    assert!(problems.is_empty(), "{} of {} rows:\n{}", problems.len(), ROWS.len(), problems.join("\n"));
}

#[test]
fn there_are_rows_enough_and_documents_enough_for_each() {
    let breaking = ROWS.iter().filter(|row| row.class.is_some_and(Class::needs_version)).count();
    assert!(ROWS.len() >= 100 && breaking >= 60 && ROWS.len() - breaking >= 25, "{} rows", ROWS.len());
    for base in ["envelope", "http"] {
        let base = Base::named(base);
        let samples = documents::of(&base, &[&base.files]);
        let contract = load(&base.files).unwrap().contract;
        for seed in &base.seeds {
            let verdict = judge(&contract, seed, &base.secrets).unwrap();
            assert!(verdict.accepted || verdict.reason.ends_with("NOT_FOUND"), "a seed is refused: {verdict:?}");
        }
        let verdicts = samples.iter().map(|sample| judge(&contract, sample, &base.secrets).unwrap());
        let (accepted, refused): (Vec<_>, Vec<_>) = verdicts.partition(|verdict| verdict.accepted);
        assert!(accepted.len() >= 50 && refused.len() >= 500, "{} and {}", accepted.len(), refused.len());
        let reasons: BTreeSet<String> = refused.into_iter().map(|verdict| verdict.reason).collect();
        assert!(reasons.len() >= 10, "{reasons:?}");
    }
}

/// A rule that no row leads to could be wrong, or gone, and nobody would see it.
#[test]
fn each_rule_has_a_row() {
    let met: BTreeSet<&str> = ROWS.iter().flat_map(|row| row.ids.split_whitespace()).collect();
    let unmet: Vec<String> = RULES
        .iter()
        .filter(|rule| !rule.turns.iter().any(|turn| met.contains(format!("{}.{}", rule.key, turn.name()).as_str())))
        .map(|rule| format!("{} {:?}", rule.key, rule.turns))
        .collect();
    assert!(unmet.is_empty(), "rules without a row:\n{}", unmet.join("\n"));
}
