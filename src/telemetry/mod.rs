//! What people see of the worker: metrics, log lines and health.
//!
//! Nothing of a response may show up here. Metrics take typed values from closed sets, and the
//! only text in a label is the name of a loaded contract.

pub mod catalog;
pub mod http;
pub mod logging;
mod metrics;

pub use metrics::{Build, CommitOutcome, ContractKey, ContractName, ContractStatus, Metrics, Outcome, RequestOutcome};
