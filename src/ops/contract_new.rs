//! `toolgate contract new`: drafts a contract from example responses.

use super::Exit;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct NewArgs {
    /// Name of the tool, as requests carry it.
    pub tool: String,
}

pub(super) fn new(_args: &NewArgs) -> Result<Exit> {
    bail!("later")
}

/// The files of a draft, and where they go.
#[derive(Debug)]
pub(super) struct Written {
    pub dir: PathBuf,
    pub files: Vec<(String, Vec<u8>)>,
}

/// The schema of contract.yaml, which editors find from its first line.
const CONTRACT_SCHEMA: &str = include_str!("../../schemas/contract.schema.json");

impl Written {
    /// Plans `tools/<tool>/v1` below `out`.
    ///
    /// # Errors
    /// There is something already.
    pub(super) fn plan(out: &Path, tool: &str, files: Vec<(String, Vec<u8>)>) -> Result<Written> {
        let dir = out.join("tools").join(tool).join("v1");
        let Ok(entries) = fs::read_dir(&dir) else {
            if dir.exists() {
                bail!("{}: there is a file of this name", dir.display());
            }
            return Ok(Written { dir, files });
        };
        let mut names: Vec<String> =
            entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())).collect();
        names.sort();
        let holds = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        bail!(
            "{}: exists and holds {holds}; nothing was written\n    help: move it away, or draft into another folder with --out and compare",
            dir.display()
        )
    }
}

/// Writes a planned draft. No file is ever written over.
pub(super) fn write_pack(out: &Path, pack: &Written) -> Result<()> {
    fs::create_dir_all(&pack.dir).with_context(|| format!("{}: can't be made", pack.dir.display()))?;
    let schema = out.join("contract.schema.json");
    if !schema.exists() {
        create(&schema, CONTRACT_SCHEMA.as_bytes())?;
    }
    pack.files.iter().try_for_each(|(name, bytes)| create(&pack.dir.join(name), bytes))
}

fn create(path: &Path, bytes: &[u8]) -> Result<()> {
    use std::io::Write;
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(|| format!("{}: can't be made", parent.display()))?;
    }
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .with_context(|| format!("{}: can't be written", path.display()))?;
    file.write_all(bytes).with_context(|| format!("{}: can't be written", path.display()))
}
