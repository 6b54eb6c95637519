//! A log in one SQLite file, for a laptop, continuous integration and small installations.
//!
//! One worker owns the file ([`SqliteLog`]); other processes read and append beside it ([`SqliteClient`]). SQLite is
//! asked for durability at every commit (`synchronous=FULL`): what was committed survives a power cut.

mod client;
mod commit;
mod headers;
mod lock;
mod read;
mod retain;
mod schema;
mod store;
mod worker;

use std::path::Path;

pub use client::SqliteClient;
pub use retain::{Maintained, Retention};
pub use worker::{SqliteLog, WorkerOptions};

use super::error::LogError;

impl SqliteLog {
    /// Opens the log beside a worker that may be running. If there is none it is created with `partitions`;
    /// without a number that is [`LogError::Missing`]. The partitions of an existing log stay as they are.
    pub fn open_client(path: &Path, partitions: Option<i32>) -> Result<SqliteClient, LogError> {
        SqliteClient::open(path, partitions)
    }
}
