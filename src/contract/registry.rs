//! The contracts that are served: several versions of a tool side by side.

use super::{Contract, Status};
use std::collections::BTreeMap;
use std::sync::Arc;

/// All loaded contracts, by tool and version.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    tools: BTreeMap<Arc<str>, BTreeMap<u32, Arc<Contract>>>,
}

/// The answer to "which contract judges this request?".
#[derive(Clone, Debug)]
pub enum Lookup {
    Found(Arc<Contract>),
    UnknownTool,
    UnknownVersion,
}

impl Registry {
    /// Adds a contract.
    ///
    /// # Errors
    /// A sentence, where the same version is there already or where the tool would have two active ones.
    pub fn insert(&mut self, contract: Contract) -> Result<(), String> {
        let versions = self.tools.entry(contract.tool.clone()).or_default();
        if versions.contains_key(&contract.version) {
            return Err(format!("{} is there twice", contract.label));
        }
        let active = versions.values().find(|other| other.status == Status::Active);
        if let Some(active) = active.filter(|_| contract.status == Status::Active) {
            return Err(format!("{} and {} are both active; one version of a tool is", active.label, contract.label));
        }
        versions.insert(contract.version, Arc::new(contract));
        Ok(())
    }

    /// The contract for a request: the version that it pins, or the active one where it pins none (0).
    pub fn look_up(&self, tool: &str, version: u32) -> Lookup {
        let Some(versions) = self.tools.get(tool) else { return Lookup::UnknownTool };
        let contract = match version {
            0 => versions.values().find(|contract| contract.status == Status::Active),
            pinned => versions.get(&pinned).filter(|contract| contract.status != Status::Shadow),
        };
        contract.map_or(Lookup::UnknownVersion, |contract| Lookup::Found(contract.clone()))
    }

    /// The shadow versions of a tool, which judge in silence.
    pub fn shadows(&self, tool: &str) -> impl Iterator<Item = &Arc<Contract>> {
        self.tools.get(tool).into_iter().flat_map(BTreeMap::values).filter(|c| c.status == Status::Shadow)
    }

    pub fn contracts(&self) -> impl Iterator<Item = &Arc<Contract>> {
        self.tools.values().flat_map(BTreeMap::values)
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }
}
