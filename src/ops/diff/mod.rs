//! `toolgate contract diff`: what changed between two contracts, who can tell, and whether it needs a version.

mod report;

use super::args::DiffArgs;
use super::{Exit, out, vet};
use crate::contract::diff::judge::{Sample, Tally, tally};
use crate::contract::diff::{Change, Side, changes, traffic};
use crate::contract::fixture::Secrets;
use crate::contract::{Finding, Status, pack};
use anyhow::Result;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// A line may be as large as a record of the log.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// Compares what the arguments name.
///
/// # Errors
/// Output can't be written.
pub(super) fn diff(args: &DiffArgs) -> Result<Exit> {
    match compared(args) {
        Ok(comparisons) => {
            out::text(&report::write(&comparisons, args))?;
            let breaks = comparisons.iter().any(Comparison::breaks);
            Ok(if breaks { Exit::BreakingChange } else { Exit::Ok })
        }
        Err(stopped) => {
            eprint!("toolgate: {}", stopped.message);
            Ok(stopped.exit)
        }
    }
}

/// Why nothing was compared.
struct Stopped {
    exit: Exit,
    message: String,
}

impl Stopped {
    fn new(exit: Exit, message: impl Display) -> Stopped {
        Stopped { exit, message: printable(&format!("{message}\n")) }
    }
}

/// Names in files from elsewhere may hold anything; a terminal gets lines of plain characters.
fn printable(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", report::plain(line))).collect()
}

/// A contract version with what proves it.
struct Loaded {
    side: Side,
    samples: Vec<Sample>,
    secrets: Secrets,
}

/// One contract before and after.
pub(super) struct Comparison {
    pub tool: String,
    /// `None` where the tool or version is new.
    pub old: Option<u32>,
    /// `None` where it is gone.
    pub new: Option<u32>,
    pub changes: Vec<Change>,
    pub tally: Tally,
    /// A version that is gone while requests may still pin it.
    pub gone_in_use: bool,
}

impl Comparison {
    /// What differs can be told by an agent or by a verdict.
    pub fn needs_version(&self) -> bool {
        self.gone_in_use || self.changes.iter().any(|change| change.class.needs_version()) || self.tally.needs_version()
    }

    /// It has a version of its own, above the one that it is compared with.
    pub fn is_stepped(&self) -> bool {
        match (self.old, self.new) {
            (Some(old), Some(new)) => new > old && !self.changes.iter().any(|change| change.id.starts_with("tool.")),
            (None, Some(_)) => true,
            (_, None) => false,
        }
    }

    pub fn breaks(&self) -> bool {
        self.needs_version() && !self.is_stepped()
    }
}

fn compared(args: &DiffArgs) -> Result<Vec<Comparison>, Stopped> {
    let traffic = recorded(&args.traffic)?;
    let given = match &args.secrets {
        Some(dir) => Some(vet::read_secrets(dir).map_err(|why| Stopped::new(Exit::Usage, format!("{why:#}")))?),
        None => None,
    };
    let is_single = |dir: &Path| dir.join("contract.yaml").is_file();
    let (old_dirs, new_dirs) = (found(&args.old)?, found(&args.new)?);
    if is_single(&args.old) != is_single(&args.new) {
        let message = "one is a contract version and the other a folder of contracts; give two of a kind";
        return Err(Stopped::new(Exit::Usage, message));
    }
    let (old, new) = (loaded(&old_dirs, false)?, loaded(&new_dirs, true)?);
    let is_known = |sample: &&Sample| new.iter().any(|new| new.side.contract.tool.as_ref() == sample.request.tool);
    let strange = traffic.len() - traffic.iter().filter(is_known).count();
    if strange > 0 {
        eprintln!("toolgate: {strange} lines of traffic are of tools that are not compared");
    }
    let judged = |old: &Loaded, new: &Loaded| compare(old, new, &traffic, given.as_ref());
    if is_single(&args.old) {
        return Ok(old.iter().zip(&new).map(|(old, new)| judged(old, new)).collect());
    }
    Ok(pairs(&old, &new, judged))
}

fn found(dir: &Path) -> Result<Vec<PathBuf>, Stopped> {
    pack::find(dir).map_err(|why| Stopped::new(Exit::Usage, why))
}

/// All versions, or everything that is wrong with them. Fixtures must hold on the new side, as a
/// worker serves it otherwise not at all; an old side is history.
fn loaded(dirs: &[PathBuf], must_hold: bool) -> Result<Vec<Loaded>, Stopped> {
    let (mut all, mut problems) = (Vec::new(), String::new());
    for dir in dirs {
        let proven = pack::prove(dir);
        let failures: Vec<String> = proven
            .failures
            .iter()
            .map(|failure| format!("{}/fixtures/{}: {}", dir.display(), failure.name, failure.message))
            .collect();
        if must_hold && proven.contract.is_ok() && !failures.is_empty() {
            problems.push_str(&format!("{}\n", failures.join("\n")));
        } else if !failures.is_empty() {
            eprint!("{}", printable(&format!("toolgate: warning: {}\n", failures.join("\n"))));
        }
        match pack::load_side(dir) {
            Ok(side) => {
                let secrets = proven.fixtures.iter().flat_map(|fixture| fixture.secrets.0.clone()).collect();
                let samples = proven.fixtures.iter().map(Sample::of_fixture).collect();
                all.push(Loaded { side, samples, secrets: Secrets(secrets) });
            }
            Err(findings) => problems.push_str(&told(dir, &findings)),
        }
    }
    if problems.is_empty() {
        return Ok(all);
    }
    let message = format!("a contract does not load, so nothing was compared:\n{problems}run `toolgate check` on it");
    Err(Stopped::new(Exit::ContractFailed, message))
}

fn told(dir: &Path, findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("{}/{finding}\n", dir.display())).collect()
}

/// Version with version, and each new version with the newest one before it.
fn pairs(old: &[Loaded], new: &[Loaded], judged: impl Fn(&Loaded, &Loaded) -> Comparison) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    let index = |side: &Loaded| (side.side.contract.tool.to_string(), side.side.contract.version);
    let before: BTreeMap<(String, u32), &Loaded> = old.iter().map(|loaded| (index(loaded), loaded)).collect();
    let after: BTreeMap<(String, u32), &Loaded> = new.iter().map(|loaded| (index(loaded), loaded)).collect();
    for (key, loaded) in &after {
        let (tool, version) = key;
        let earlier = before.range((tool.clone(), 0)..key.clone()).next_back().map(|(_, loaded)| loaded);
        comparisons.push(match before.get(key).or(earlier) {
            Some(old) => judged(old, loaded),
            None => alone(tool, None, Some(*version), false),
        });
    }
    for ((tool, version), loaded) in before.iter().filter(|(key, _)| !after.contains_key(key)) {
        let in_use = loaded.side.contract.status != Status::Retired;
        comparisons.push(alone(tool, Some(*version), None, in_use));
    }
    comparisons
}

fn alone(tool: &str, old: Option<u32>, new: Option<u32>, gone_in_use: bool) -> Comparison {
    Comparison { tool: tool.into(), old, new, changes: Vec::new(), tally: Tally::default(), gone_in_use }
}

fn compare(old: &Loaded, new: &Loaded, traffic: &[Sample], secrets: Option<&Secrets>) -> Comparison {
    let contract = &new.side.contract;
    let mut samples = old.samples.clone();
    let unheard = new.samples.iter().filter(|sample| !old.samples.iter().any(|known| known.is_same_case(sample)));
    samples.extend(unheard.cloned());
    samples.extend(traffic.iter().filter(|sample| sample.request.tool == contract.tool.as_ref()).cloned());
    let both = || Secrets(old.secrets.0.clone().into_iter().chain(new.secrets.0.clone()).collect());
    let secrets = secrets.cloned().unwrap_or_else(both);
    Comparison {
        tool: contract.tool.to_string(),
        old: Some(old.side.contract.version),
        new: Some(contract.version),
        changes: changes(&old.side, &new.side),
        tally: tally(&old.side.contract, contract, &samples, &secrets),
        gone_in_use: false,
    }
}

/// The recorded traffic of all files; every bad line is told.
fn recorded(files: &[PathBuf]) -> Result<Vec<Sample>, Stopped> {
    let (mut samples, mut problems) = (Vec::new(), Vec::new());
    for file in files {
        if let Err(why) = read_traffic(file, &mut samples, &mut problems) {
            problems.push(format!("{}: {why}", file.display()));
        }
    }
    if problems.is_empty() {
        return Ok(samples);
    }
    let told: Vec<&str> = problems.iter().take(20).map(String::as_str).collect();
    let rest = problems.len().saturating_sub(told.len());
    let more = if rest > 0 { format!("\nand {rest} more") } else { String::new() };
    Err(Stopped::new(Exit::Usage, format!("the traffic can't be read:\n{}{more}", told.join("\n"))))
}

fn read_traffic(file: &Path, samples: &mut Vec<Sample>, problems: &mut Vec<String>) -> std::io::Result<()> {
    let mut lines = BufReader::new(std::fs::File::open(file)?);
    let folder = file.parent().unwrap_or(Path::new(".")).to_owned();
    for number in 1.. {
        let mut bytes = Vec::new();
        if (&mut lines).take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let name = format!("{}:{number}", file.display());
        match sample(&name, &bytes, &folder) {
            Ok(sample) => samples.push(sample),
            Err(why) => problems.push(format!("{name}: {why}")),
        }
    }
    Ok(())
}

fn sample(name: &str, bytes: &[u8], folder: &Path) -> Result<Sample, String> {
    let text = std::str::from_utf8(bytes.trim_ascii()).map_err(|_| "the line is not UTF-8")?;
    let mut line = traffic::line(name, text)?;
    if let Some(body) = &line.body_file {
        let path = folder.join(body);
        line.sample.response.body = std::fs::read(path).map_err(|why| format!("body_file {body}: {why}"))?;
    }
    Ok(line.sample)
}
