//! toolgate: a gate between tools and AI agents.
//!
//! Without the feature `worker` this crate is the pure core: it judges, and touches nothing.

#[cfg(feature = "worker")]
pub mod config;
pub mod contract;
pub mod gate;
pub mod log;
#[cfg(feature = "worker")]
pub mod ops;
pub mod partition;
pub mod request;
#[cfg(feature = "worker")]
pub mod telemetry;
pub mod time;
pub mod wire;
#[cfg(feature = "worker")]
pub mod worker;
