//! The log the worker reads from and commits to.
//!
//! What a log holds ([`record`]) and which partition a key belongs to ([`partitioner`]) are pure.

pub mod partitioner;
pub mod record;

pub use record::{Cleanup, Header, Offset, Outgoing, Partition, Position, Record, Topic};
