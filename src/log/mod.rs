//! The log the worker reads from and commits to.
//!
//! What a log holds ([`record`]) and which partition a key belongs to ([`partitioner`]) are pure. The rest does I/O:
//! [`Log`] is what the worker asks of any log, `sqlite` keeps one in a file, `kafka` is a group's share of a cluster, `memory` is for tests and simulations.

#[cfg(feature = "worker")]
mod api;
#[cfg(feature = "worker")]
mod batch;
#[cfg(feature = "worker")]
mod error;
#[cfg(feature = "worker")]
pub mod kafka;
#[cfg(feature = "worker")]
pub mod memory;
pub mod partitioner;
pub mod record;
#[cfg(feature = "worker")]
pub mod sqlite;

#[cfg(feature = "worker")]
pub use api::{Commit, Event, Log, RECORD_BYTES_MAX, Transaction};
#[cfg(feature = "worker")]
pub use error::{Fault, LogError};
pub use record::{Cleanup, Header, Offset, Outgoing, Partition, Position, Record, Topic};
