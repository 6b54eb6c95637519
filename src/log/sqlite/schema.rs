//! The file: one table per topic, the partitions, the committed offsets.
//!
//! A record's row id is `partition << 48 | offset`, so a partition is one contiguous range of its topic's table
//! and appends go to the end of it. The next offset is stored, never derived from the rows: retention may
//! remove them all, and offsets are not used again.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::store;
use crate::log::error::LogError;
use crate::log::record::{Offset, Partition, Topic};

/// `tgLG`: tells our files from other SQLite databases (`file` prints it).
pub(super) const APPLICATION_ID: i64 = 0x7467_4c47;
/// Raised with every change of the tables.
pub(super) const FORMAT: i64 = 1;
/// A row id has 15 bits for the partition and 48 for the offset; far more partitions than one file can use.
pub(super) const PARTITIONS_MAX: i32 = 1024;
const OFFSET_BITS: u32 = 48;

/// The table of a topic.
pub(super) const fn table(topic: Topic) -> &'static str {
    match topic {
        Topic::Requests => "records_requests",
        Topic::Responses => "records_responses",
        Topic::Results => "records_results",
        Topic::Quarantine => "records_quarantine",
        Topic::Retries => "records_retries",
        Topic::Audit => "records_audit",
        Topic::Bindings => "records_bindings",
    }
}

/// The row id of a record.
pub(super) fn row_id(partition: Partition, offset: Offset) -> i64 {
    (i64::from(partition.0) << OFFSET_BITS) | offset.0
}

/// The offset in a row id.
pub(super) fn offset_of(row_id: i64) -> Offset {
    Offset(row_id & ((1 << OFFSET_BITS) - 1))
}

/// What is in a file that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Nothing at all; the tables may be created.
    Empty,
    Log {
        partitions: i32,
    },
}

/// Looks whether the file is a log of our format.
pub(super) fn inspect(connection: &Connection, path: &Path) -> Result<Content, LogError> {
    let fail = store::failure(path, "reading the file's header");
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(&fail);
    let (application, format) = (pragma("application_id")?, pragma("user_version")?);
    if application == APPLICATION_ID && format != FORMAT {
        return Err(LogError::Version { path: path.to_owned(), found: format, supported: FORMAT });
    }
    if application == APPLICATION_ID {
        let partitions = meta(connection, "partitions").map_err(&fail)?.and_then(|text| text.parse().ok());
        return match partitions {
            Some(partitions) if (1..=PARTITIONS_MAX).contains(&partitions) => Ok(Content::Log { partitions }),
            found => Err(LogError::Damaged { path: path.to_owned(), what: format!("partitions: {found:?}") }),
        };
    }
    let objects: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(&fail)?;
    if application != 0 || format != 0 || objects != 0 {
        return Err(LogError::NotALog { path: path.to_owned(), what: "a SQLite database of something else" });
    }
    Ok(Content::Empty)
}

/// Creates the tables unless another process was faster; returns the number of partitions the log has then.
pub(super) fn create(connection: &mut Connection, path: &Path, partitions: i32) -> Result<i32, LogError> {
    if !(1..=PARTITIONS_MAX).contains(&partitions) {
        return Err(LogError::PartitionCount { count: partitions, max: PARTITIONS_MAX });
    }
    let fail = store::failure(path, "creating the tables");
    // These two must come before the first page is written; in a file that has pages they do nothing.
    connection.pragma_update(None, "page_size", 16_384).map_err(&fail)?;
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(&fail)?;
    store::enable_wal(connection, path)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&fail)?;
    if let Content::Log { partitions } = inspect(&transaction, path)? {
        return Ok(partitions);
    }
    create_tables(&transaction, partitions).map_err(&fail)?;
    transaction.commit().map_err(&fail)?;
    Ok(partitions)
}

fn create_tables(connection: &Connection, partitions: i32) -> rusqlite::Result<()> {
    for topic in Topic::ALL {
        // The value is last: what is before it can be read without following overflow pages.
        connection.execute_batch(&format!(
            "CREATE TABLE {} (id INTEGER PRIMARY KEY, ts INTEGER NOT NULL, key BLOB, headers BLOB, value BLOB)",
            table(topic)
        ))?;
    }
    // Compaction looks for the older records of a key, and for tombstones whose time has come.
    connection.execute_batch(
        "CREATE INDEX bindings_by_key ON records_bindings (key);
         CREATE INDEX bindings_tombstones ON records_bindings (id) WHERE value IS NULL;
         CREATE TABLE partitions (
             topic TEXT NOT NULL, partition INTEGER NOT NULL,
             start_offset INTEGER NOT NULL DEFAULT 0,
             next_offset INTEGER NOT NULL DEFAULT 0,
             compacted_to INTEGER NOT NULL DEFAULT 0,
             PRIMARY KEY (topic, partition)) WITHOUT ROWID;
         CREATE TABLE offsets (
             group_name TEXT NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL,
             next INTEGER NOT NULL,
             PRIMARY KEY (group_name, topic, partition)) WITHOUT ROWID;
         CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;",
    )?;
    let mut insert = connection.prepare("INSERT INTO partitions (topic, partition) VALUES (?1, ?2)")?;
    for topic in Topic::ALL {
        for partition in 0..partitions {
            insert.execute((topic.name(), partition))?;
        }
    }
    set_meta(connection, "partitions", &partitions.to_string())?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", FORMAT)
}

pub(super) fn meta(connection: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    connection.query_row("SELECT value FROM meta WHERE name = ?1", [name], |row| row.get(0)).optional()
}

pub(super) fn set_meta(connection: &Connection, name: &str, value: &str) -> rusqlite::Result<()> {
    connection.execute("INSERT INTO meta (name, value) VALUES (?1, ?2)", (name, value)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_id_keeps_partition_and_offset_apart() {
        for partition in [0, 1, PARTITIONS_MAX - 1] {
            for offset in [0, 1, (1 << OFFSET_BITS) - 1] {
                let id = row_id(Partition(partition), Offset(offset));
                assert!(id >= 0);
                assert_eq!((id >> OFFSET_BITS, offset_of(id)), (i64::from(partition), Offset(offset)));
            }
        }
    }
}
