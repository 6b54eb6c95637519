//! Contract packs on disk: finds the versions below a folder, loads each, and proves it by its fixtures.

use super::diff::Side;
use super::fixture::{self, Fixture};
use super::{Contract, Finding, Folder, Registry, load};
use crate::contract::yaml::Place;
use std::fs;
use std::path::{Path, PathBuf};

/// One folder `tools/<tool>/v<N>` and what came of it.
#[derive(Debug)]
pub struct Pack {
    pub dir: PathBuf,
    pub contract: Result<Contract, Vec<Finding>>,
    pub fixtures: Vec<Fixture>,
    /// What is wrong with the fixtures themselves: unreadable, or with a different outcome.
    pub failures: Vec<FixtureFailure>,
}

/// A fixture that did not come out as it says.
#[derive(Debug)]
pub struct FixtureFailure {
    pub name: String,
    pub message: String,
}

impl Pack {
    /// The contract compiles, and every fixture has its outcome.
    pub fn is_sound(&self) -> bool {
        self.contract.is_ok() && self.failures.is_empty()
    }
}

/// Files are read up to this size; a larger schema or contract is a mistake.
const FILE_BYTES_MAX: u64 = 1 << 20;

struct Disk<'a> {
    dir: &'a Path,
}

impl Folder for Disk<'_> {
    fn read(&self, name: &str) -> Result<String, String> {
        let plain = !name.is_empty() && !name.contains(['/', '\\']) && name != "..";
        if !plain {
            return Err("the name must be a file of the contract's own folder".into());
        }
        read_text(&self.dir.join(name))
    }
}

fn read_text(path: &Path) -> Result<String, String> {
    let bytes = read_bytes(path)?;
    String::from_utf8(bytes).map_err(|_| "the file is not UTF-8".into())
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, String> {
    let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > FILE_BYTES_MAX {
        return Err(format!("the file has {size} bytes; at most {FILE_BYTES_MAX} are read"));
    }
    fs::read(path).map_err(|error| error.to_string())
}

/// The folders of all contract versions below `root`: itself, `tools/*/v*`, or `*/v*`.
///
/// # Errors
/// A sentence, where the folder is missing, unreadable, or holds no contract.
pub fn find(root: &Path) -> Result<Vec<PathBuf>, String> {
    if root.join("contract.yaml").is_file() {
        return Ok(vec![root.to_owned()]);
    }
    let tools = if root.join("tools").is_dir() { root.join("tools") } else { root.to_owned() };
    let mut found = Vec::new();
    for tool in sorted_entries(&tools)? {
        if tool.join("contract.yaml").is_file() {
            found.push(tool);
        } else if tool.is_dir() {
            found.extend(sorted_entries(&tool)?.into_iter().filter(|version| version.join("contract.yaml").is_file()));
        }
    }
    if found.is_empty() {
        return Err(format!(
            "{}: no contract found; expected tools/<tool>/v<N>/contract.yaml below it",
            root.display()
        ));
    }
    Ok(found)
}

fn sorted_entries(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    paths.sort();
    Ok(paths)
}

/// Loads one contract version, without its fixtures.
///
/// # Errors
/// All findings.
pub fn load_dir(dir: &Path) -> Result<Contract, Vec<Finding>> {
    let contract = load(&Disk { dir })?;
    let expected = [format!("v{}", contract.version), contract.tool.to_string()];
    let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let parent = dir.parent().map(last).unwrap_or_default();
    let is_placed = last(dir) == expected[0] && parent == expected[1];
    let is_pack_layout = last(dir).starts_with('v') && last(dir)[1..].bytes().all(|b| b.is_ascii_digit());
    if is_pack_layout && !is_placed {
        let finding = Finding {
            file: "contract.yaml".into(),
            place: Place::default(),
            pointer: "/tool".into(),
            message: format!("the contract is {}, but its folder is {parent}/{}", contract.label, last(dir)),
            help: format!("move it to {}/{}", expected[1], expected[0]),
        };
        return Err(vec![finding]);
    }
    Ok(contract)
}

/// Loads one version and what its files say, to be compared with another.
///
/// # Errors
/// All findings.
pub fn load_side(dir: &Path) -> Result<Side, Vec<Finding>> {
    load_dir(dir)?;
    Side::load(&Disk { dir })
}

/// Loads one version and runs its fixtures.
pub fn prove(dir: &Path) -> Pack {
    let contract = load_dir(dir);
    let mut pack = Pack { dir: dir.to_owned(), contract, fixtures: Vec::new(), failures: Vec::new() };
    let (fixtures, unreadable) = read_fixtures(&dir.join("fixtures"));
    pack.failures = unreadable;
    if let Ok(contract) = &pack.contract {
        for fixture in &fixtures {
            if let Err(message) = fixture::run(contract, fixture) {
                pack.failures.push(FixtureFailure { name: fixture.name.clone(), message });
            }
        }
        pack.failures.extend(lacking(&fixtures));
    }
    pack.fixtures = fixtures;
    pack
}

/// A contract without an accepted and a refused example proves nothing.
fn lacking(fixtures: &[Fixture]) -> Option<FixtureFailure> {
    let has = |class: fixture::Class| fixtures.iter().any(|fixture| fixture.class == class);
    let message = match (has(fixture::Class::Accept), has(fixture::Class::Reject)) {
        (true, true) => return None,
        (false, _) => "no fixture shows what is accepted; add fixtures/accept/<name>/",
        (true, false) => "no fixture shows what is refused; add fixtures/reject/<name>/",
    };
    Some(FixtureFailure { name: "fixtures".into(), message: message.into() })
}

fn read_fixtures(dir: &Path) -> (Vec<Fixture>, Vec<FixtureFailure>) {
    let mut fixtures = Vec::new();
    let mut failures = Vec::new();
    let defaults = match read_text(&dir.join("default.json")) {
        Ok(text) => text,
        Err(_) if !dir.join("default.json").exists() => "{}".into(),
        Err(why) => {
            failures.push(FixtureFailure { name: "default.json".into(), message: why });
            return (fixtures, failures);
        }
    };
    for class in fixture::Class::ALL {
        for case in
            sorted_entries(&dir.join(class.folder())).unwrap_or_default().into_iter().filter(|path| path.is_dir())
        {
            let name = format!("{}/{}", class.folder(), case.file_name().unwrap_or_default().to_string_lossy());
            match read_fixture(&case, &name, class, &defaults) {
                Ok(fixture) => fixtures.push(fixture),
                Err(message) => failures.push(FixtureFailure { name, message }),
            }
        }
    }
    (fixtures, failures)
}

fn read_fixture(case: &Path, name: &str, class: fixture::Class, defaults: &str) -> Result<Fixture, String> {
    let text = read_text(&case.join("case.json")).map_err(|why| format!("case.json: {why}"))?;
    let bodies: Vec<PathBuf> = sorted_entries(case)?
        .into_iter()
        .filter(|path| path.file_stem().is_some_and(|stem| stem == "response"))
        .collect();
    let [body] = bodies.as_slice() else {
        return Err(format!("expected one response.json, response.txt or response.bin; found {}", bodies.len()));
    };
    let body = read_bytes(body).map_err(|why| format!("response: {why}"))?;
    Fixture::read(name, class, defaults, &text, body)
}

/// Proves every version below `root` and serves the sound ones.
///
/// # Errors
/// A sentence, where the folder can't be read at all.
pub fn load_all(root: &Path) -> Result<(Registry, Vec<Pack>), String> {
    let mut registry = Registry::default();
    let mut unsound = Vec::new();
    for dir in find(root)? {
        let mut pack = prove(&dir);
        if !pack.is_sound() {
            unsound.push(pack);
            continue;
        }
        let Ok(contract) = std::mem::replace(&mut pack.contract, Err(Vec::new())) else { continue };
        if let Err(message) = registry.insert(contract) {
            pack.failures.push(FixtureFailure { name: "contract.yaml".into(), message });
            unsound.push(pack);
        }
    }
    Ok((registry, unsound))
}
