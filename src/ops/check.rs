//! `toolgate check`: loads contracts, runs their fixtures, and says what each one guarantees.

use super::out::{self, Paint};
use super::{Exit, json::Object};
use crate::contract::pack::{self, Pack};
use crate::contract::{Contract, Registry, mutate};
use anyhow::{Result, anyhow};
use std::path::Path;

/// Checks every contract version below `dir`.
///
/// # Errors
/// The folder can't be read, or output can't be written.
pub fn check(dir: &Path, json: bool) -> Result<Exit> {
    let paint = Paint::stdout();
    let dirs = pack::find(dir).map_err(|why| anyhow!(why))?;
    let (mut sound, mut fixtures, mut problems) = (0, 0, 0);
    let mut registry = Registry::default();
    for folder in &dirs {
        let mut pack = pack::prove(folder);
        join_registry(&mut registry, &mut pack);
        fixtures += pack.fixtures.len();
        problems += problem_count(&pack);
        sound += usize::from(pack.contract.is_ok() && pack.failures.is_empty());
        if json { out::line(&as_json(&pack))? } else { print(&pack, paint)? }
    }
    if !json {
        let verdict = if problems == 0 { paint.green("ok") } else { paint.red("failed") };
        out::line(&format!(
            "\n{verdict}: {sound} of {} contracts sound, {fixtures} fixtures run, {problems} problems",
            dirs.len()
        ))?;
    }
    Ok(if problems == 0 { Exit::Ok } else { Exit::ContractFailed })
}

/// Two versions can each be sound and still not be served together.
fn join_registry(registry: &mut Registry, pack: &mut Pack) {
    if !pack.is_sound() {
        return;
    }
    if let Ok(contract) = pack::load_dir(&pack.dir)
        && let Err(message) = registry.insert(contract)
    {
        pack.failures.push(pack::FixtureFailure { name: "contract.yaml".into(), message });
    }
}

fn problem_count(pack: &Pack) -> usize {
    let holes = pack.contract.as_ref().map_or(0, |contract| mutate::score(contract, &pack.fixtures).survivors.len());
    pack.failures.len() + pack.contract.as_ref().err().map_or(0, Vec::len) + holes
}

fn print(pack: &Pack, paint: Paint) -> Result<()> {
    let place = pack.dir.display();
    match &pack.contract {
        Err(findings) => {
            out::line(&format!("{} {place}", paint.red("refused")))?;
            for finding in findings {
                out::line(&format!("  {place}/{finding}"))?;
            }
        }
        Ok(contract) => {
            let state = if pack.failures.is_empty() { paint.green("sound  ") } else { paint.red("failed ") };
            out::line(&format!("{state} {}  {}", paint.bold(&contract.label), guarantees(contract, pack)))?;
        }
    }
    for failure in &pack.failures {
        out::line(&format!("  {place}/fixtures/{}: {}", failure.name, failure.message))?;
    }
    if let Ok(contract) = &pack.contract {
        for survivor in mutate::score(contract, &pack.fixtures).survivors {
            out::line(&format!("  {place}/fixtures/{survivor} was not refused"))?;
        }
    }
    Ok(())
}

/// The context budget that the contract proves, and how its fixtures prove it, in one line.
fn guarantees(contract: &Contract, pack: &Pack) -> String {
    let score = mutate::score(contract, &pack.fixtures);
    format!(
        "result <= {} bytes, free text <= {} characters, {} fixtures, {} of {} near-misses refused",
        contract.bounds.result_bytes_max,
        contract.bounds.free_text_chars_max,
        pack.fixtures.len(),
        score.refused,
        score.total
    )
}

fn as_json(pack: &Pack) -> String {
    let mut object = Object::new();
    object.text("dir", &pack.dir.display().to_string());
    object.bool("sound", pack.is_sound());
    if let Ok(contract) = &pack.contract {
        object.text("contract", &contract.label);
        object.number("result_bytes_max", contract.bounds.result_bytes_max);
        object.number("free_text_chars_max", contract.bounds.free_text_chars_max);
    }
    object.number("fixtures", pack.fixtures.len() as u64);
    let findings = pack.contract.as_ref().err().into_iter().flatten().map(ToString::to_string);
    let failures = pack.failures.iter().map(|failure| format!("fixtures/{}: {}", failure.name, failure.message));
    object.texts("problems", findings.chain(failures));
    object.end()
}
