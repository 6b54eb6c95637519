//! The configuration of this process: file, environment and flags, all mistakes at once.

use crate::config::{Config, Explained, Sources};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Flags that stand for settings, by `section.key`.
pub(super) type Flags = BTreeMap<String, String>;

/// Everything that is wrong with the configuration, a line each.
#[derive(Debug)]
pub(super) struct BadConfiguration(pub Vec<String>);

impl fmt::Display for BadConfiguration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for BadConfiguration {}

const DEFAULT_FILE: &str = "toolgate.toml";

/// The texts that settings come from.
struct Texts {
    name: String,
    toml: Option<String>,
    env: BTreeMap<String, String>,
}

impl Texts {
    /// The file that was named, or `toolgate.toml` where there is one.
    fn read(file: Option<&Path>) -> Result<Texts> {
        let path = file.map_or_else(|| PathBuf::from(DEFAULT_FILE), Path::to_owned);
        let toml = if file.is_some() || path.exists() {
            Some(std::fs::read_to_string(&path).with_context(|| format!("{}: can't be read", path.display()))?)
        } else {
            None
        };
        // A variable that is not UTF-8 can't be one of ours.
        let env =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        // TOOLGATE_CONFIG names the file and is no setting.
        let env = env.filter(|(name, _)| name != "TOOLGATE_CONFIG").collect();
        Ok(Texts { name: path.display().to_string(), toml, env })
    }

    fn sources<'a>(&'a self, flags: &'a Flags) -> Sources<'a> {
        Sources { toml: self.toml.as_deref(), file_name: &self.name, env: &self.env, flags }
    }
}

/// Loads the configuration.
///
/// # Errors
/// [`BadConfiguration`] with every mistake, or an unreadable file.
pub(super) fn load(file: Option<&Path>, flags: &Flags) -> Result<Config> {
    let texts = Texts::read(file)?;
    Config::from_sources(texts.sources(flags)).map_err(bad)
}

/// Every setting with its value and where it comes from.
///
/// # Errors
/// As [`load`].
pub(super) fn explain(file: Option<&Path>, flags: &Flags) -> Result<Vec<Explained>> {
    let texts = Texts::read(file)?;
    Config::explain(texts.sources(flags)).map_err(bad)
}

fn bad(mistakes: Vec<crate::config::Mistake>) -> anyhow::Error {
    BadConfiguration(mistakes.iter().map(ToString::to_string).collect()).into()
}

/// Adds a flag where it was given.
pub(super) fn flag(flags: &mut Flags, name: &str, value: Option<impl fmt::Display>) {
    if let Some(value) = value {
        flags.insert(name.to_owned(), value.to_string());
    }
}
