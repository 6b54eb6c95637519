//! One connection to the file, as worker and clients both use it.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior};

use super::schema::{self, Content};
use crate::log::error::LogError;
use crate::log::record::{Offset, Partition, Topic};

/// How long a writer waits for another one. Every write of ours takes milliseconds.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one attempt to open waits, and how many there are: about as long as a writer waits altogether.
const OPEN_TIMEOUT: Duration = Duration::from_millis(50);
const OPEN_ATTEMPTS: usize = 100;
/// How often a waiting reader looks whether the file has changed; reading the counter costs microseconds.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Page cache in KiB (negative by SQLite's convention).
const CACHE_KIB: i64 = -32_000;

#[derive(Debug)]
pub(super) struct Store {
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
    pub(super) partitions: i32,
    /// The file's change counter when it was last waited for.
    seen: i64,
}

impl Store {
    /// Opens a log, creating it with `create` partitions if there is none.
    ///
    /// Where several create a log at once, SQLite refuses all but one of those that switch it to a write-ahead log, and does
    /// so without waiting, however long it was told to. A new connection finds the log that the first has made.
    pub(super) fn open(path: &Path, create: Option<i32>) -> Result<Store, LogError> {
        check_directory(path)?;
        for _ in 1..OPEN_ATTEMPTS {
            match Store::attempt(path, create) {
                Err(LogError::Busy { .. }) => thread::sleep(LOOK_EVERY),
                opened => return opened,
            }
        }
        Store::attempt(path, create)
    }

    fn attempt(path: &Path, create: Option<i32>) -> Result<Store, LogError> {
        if create.is_none() && !path.exists() {
            return Err(LogError::Missing { path: path.to_owned() });
        }
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, create.is_some());
        let fail = failure(path, "opening the file");
        let mut connection = Connection::open_with_flags(path, flags).map_err(&fail)?;
        connection.busy_timeout(OPEN_TIMEOUT).map_err(&fail)?;
        // One snapshot, or a log that is just being created would look like neither.
        let content = connection.transaction().map_err(&fail).and_then(|snapshot| schema::inspect(&snapshot, path))?;
        let partitions = match (content, create) {
            (Content::Log { partitions }, _) => partitions,
            (Content::Empty, Some(partitions)) => schema::create(&mut connection, path, partitions)?,
            (Content::Empty, None) => return Err(LogError::NotALog { path: path.to_owned(), what: "an empty file" }),
        };
        enable_wal(&connection, path)?;
        connection.pragma_update(None, "synchronous", "FULL").map_err(&fail)?;
        connection.pragma_update(None, "cache_size", CACHE_KIB).map_err(&fail)?;
        let mut store = Store { connection, path: path.to_owned(), partitions, seen: 0 };
        store.seen = store.change_counter()?;
        store.connection.busy_timeout(BUSY_TIMEOUT).map_err(&fail)?;
        Ok(store)
    }

    /// What turns an error of SQLite into ours.
    pub(super) fn fail(&self, what: &'static str) -> impl Fn(rusqlite::Error) -> LogError + use<> {
        failure(&self.path, what)
    }

    /// Takes the write lock, so that nothing read in the transaction can change before it ends.
    pub(super) fn write(&mut self) -> Result<Transaction<'_>, LogError> {
        let fail = failure(&self.path, "starting a write");
        self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)
    }

    /// Bounds the file: beyond this many bytes writing fails with [`LogError::Full`].
    pub(super) fn set_bytes_max(&self, bytes: u64) -> Result<(), LogError> {
        let fail = self.fail("bounding the file");
        let page: u64 =
            self.connection.pragma_query_value(None, "page_size", |row| row.get::<_, i64>(0)).map_err(&fail)? as u64;
        let pages = i64::try_from(bytes / page.max(1)).unwrap_or(i64::MAX).clamp(1, i64::from(u32::MAX) - 1);
        self.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).map_err(&fail)
    }

    pub(super) fn end_offset(&self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        self.partition_column("next_offset", topic, partition)
    }

    pub(super) fn start_offset(&self, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        self.partition_column("start_offset", topic, partition)
    }

    fn partition_column(&self, column: &str, topic: Topic, partition: Partition) -> Result<Offset, LogError> {
        let sql = format!("SELECT {column} FROM partitions WHERE topic = ?1 AND partition = ?2");
        let found = self
            .connection
            .prepare_cached(&sql)
            .and_then(|mut query| query.query_row((topic.name(), partition.0), |row| row.get(0)).optional())
            .map_err(self.fail("reading the offsets"))?;
        found.map(Offset).ok_or(LogError::UnknownPartition { topic, partition, partitions: self.partitions })
    }

    /// Waits until another connection has committed something since the last call, at most `left`, which
    /// is reduced by the time waited. Counts its own pauses instead of asking a clock.
    pub(super) fn wait_for_change(&mut self, left: &mut Duration) -> Result<bool, LogError> {
        loop {
            let counter = self.change_counter()?;
            if counter != self.seen {
                self.seen = counter;
                return Ok(true);
            }
            let pause = LOOK_EVERY.min(*left);
            if pause.is_zero() {
                return Ok(false);
            }
            thread::sleep(pause);
            *left -= pause;
        }
    }

    fn change_counter(&self) -> Result<i64, LogError> {
        self.connection
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut query| query.query_row([], |row| row.get(0)))
            .map_err(self.fail("looking for changes"))
    }
}

fn check_directory(path: &Path) -> Result<(), LogError> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    if directory.is_dir() {
        return Ok(());
    }
    Err(LogError::NoDirectory { path: path.to_owned(), directory: directory.to_owned() })
}

/// Readers beside a writer need the write-ahead log; it needs shared memory, which network file systems lack.
pub(super) fn enable_wal(connection: &Connection, path: &Path) -> Result<(), LogError> {
    let fail = failure(path, "switching to a write-ahead log");
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)).map_err(fail)?;
    if mode.eq_ignore_ascii_case("wal") {
        return Ok(());
    }
    let what = "a write-ahead log cannot be kept here; put the file on a local disk";
    Err(LogError::Unsupported { path: path.to_owned(), what })
}

/// Tells the errors of SQLite that an operator can act on from the rest.
pub(super) fn failure(path: &Path, what: &'static str) -> impl Fn(rusqlite::Error) -> LogError + use<> {
    let path = path.to_owned();
    move |source| {
        let path = path.clone();
        let Some(code) = source.sqlite_error_code() else { return LogError::Store { path, what, source } };
        if code == ErrorCode::DiskFull {
            LogError::Full { path }
        } else if code == ErrorCode::DatabaseBusy || code == ErrorCode::DatabaseLocked {
            LogError::Busy { path }
        } else if code == ErrorCode::NotADatabase {
            LogError::NotALog { path, what: "not a SQLite file" }
        } else if code == ErrorCode::DatabaseCorrupt {
            LogError::Damaged { path, what: source.to_string() }
        } else {
            LogError::Store { path, what, source }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_durable_and_can_shrink_whoever_opens_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.log");
        for create in [Some(1), None] {
            let store = Store::open(&path, create).expect("opens");
            // synchronous 2 is FULL, auto_vacuum 2 is INCREMENTAL.
            for (name, expected) in [("synchronous", 2), ("auto_vacuum", 2), ("page_size", 16_384)] {
                let value: i64 = store.connection.pragma_query_value(None, name, |row| row.get(0)).expect(name);
                assert_eq!(value, expected, "{name}");
            }
            let mode: String =
                store.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).expect("a mode");
            assert_eq!(mode, "wal");
        }
    }
}
