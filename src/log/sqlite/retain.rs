//! Giving room back, in steps small enough to take between two batches.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::{Connection, Row};

use super::schema::{offset_of, row_id, table};
use super::store::Store;
use super::worker::SqliteLog;
use crate::log::error::LogError;
use crate::log::record::{Cleanup, Offset, Partition, Topic};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Free pages are kept for reuse up to this part of the file; only what is above goes back to the system.
const FREE_PAGES_KEPT: i64 = 8;
/// The write-ahead log is cut above this; SQLite starts over in it after 1000 pages of 16 KiB as long as no reader
/// holds it.
const WAL_BYTES_KEPT: u64 = 32 * 1024 * 1024;

/// How long records stay, in milliseconds. For the changelog: how long a tombstone stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    ms: [i64; Topic::ALL.len()],
}

impl Retention {
    /// The same for every topic.
    #[must_use]
    pub const fn uniform(ms: i64) -> Retention {
        Retention { ms: [ms; Topic::ALL.len()] }
    }

    /// Another one for this topic.
    #[must_use]
    pub const fn with(mut self, topic: Topic, ms: i64) -> Retention {
        self.ms[topic.index()] = ms;
        self
    }

    #[must_use]
    pub const fn of(&self, topic: Topic) -> i64 {
        self.ms[topic.index()]
    }
}

/// A week; a quarter for what is kept as evidence; a day for tombstones.
impl Default for Retention {
    fn default() -> Retention {
        Retention::uniform(7 * DAY_MS)
            .with(Topic::Quarantine, 90 * DAY_MS)
            .with(Topic::Audit, 90 * DAY_MS)
            .with(Topic::Bindings, DAY_MS)
    }
}

/// What a step of maintenance did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Maintained {
    /// Records past their retention, tombstones included.
    pub expired: usize,
    /// Changelog records that a later one of the same key replaces.
    pub compacted: usize,
    /// Pages given back to the file system.
    pub pages_freed: i64,
    /// There may be more to do now: the budget ran out, or another process was writing.
    pub more: bool,
}

impl SqliteLog {
    /// Removes what retention allows, compacts the changelog and gives pages back: at most `budget_rows` records each
    /// time, and as many pages. Who comes first changes with every call. Inputs below the committed offset only: what was not read is
    /// never removed. Never waits for another process that is writing: what it keeps from being done is left for the next call.
    pub fn maintain(&mut self, now_ms: i64, retention: &Retention, budget_rows: usize) -> Result<Maintained, LogError> {
        let fail = self.store.fail("setting how long to wait");
        self.store.connection.busy_timeout(Duration::ZERO).map_err(&fail)?;
        let done = self.maintain_at_once(now_ms, retention, budget_rows);
        self.store.connection.busy_timeout(super::store::BUSY_TIMEOUT).map_err(&fail)?;
        match done {
            Err(LogError::Busy { .. }) => Ok(Maintained { more: true, ..Maintained::default() }),
            done => done,
        }
    }

    fn maintain_at_once(
        &mut self,
        now_ms: i64,
        retention: &Retention,
        budget_rows: usize,
    ) -> Result<Maintained, LogError> {
        let mut done = Maintained::default();
        let first = self.maintain_turn;
        let fail = self.store.fail("removing old records");
        let transaction = self.store.write()?;
        self.maintain_turn = first.wrapping_add(1);
        let mut step = Step { connection: &transaction, budget: budget_rows, done: &mut done };
        for index in 0..Topic::ALL.len() {
            let topic = Topic::ALL[(first + index) % Topic::ALL.len()];
            let cutoff = now_ms.saturating_sub(retention.of(topic));
            step.topic(topic, first / Topic::ALL.len(), cutoff).map_err(&fail)?;
        }
        done.more = step.budget == 0;
        transaction.commit().map_err(&fail)?;
        match self.store.vacuum(budget_rows) {
            Ok(pages_freed) => done.pages_freed = pages_freed,
            // The records are gone all the same; the pages follow with the next step.
            Err(LogError::Busy { .. }) => done.more = true,
            Err(error) => return Err(error),
        }
        self.store.cut_wal()?;
        Ok(done)
    }
}

/// The offsets that maintenance of a partition goes by.
struct Extent {
    partition: Partition,
    start: Offset,
    end: Offset,
    compacted_to: Offset,
    /// Everybody has read what is below; the end of a topic that is no input.
    read_to: Offset,
}

/// The partitions of a topic, in two queries however many they are.
fn extents(connection: &Connection, topic: Topic) -> rusqlite::Result<Vec<Extent>> {
    let mut query =
        connection.prepare_cached("SELECT partition, min(next) FROM offsets WHERE topic = ?1 GROUP BY 1")?;
    let committed: BTreeMap<i32, i64> =
        query.query_map([topic.name()], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    let mut query = connection.prepare_cached(
        "SELECT partition, start_offset, next_offset, compacted_to FROM partitions WHERE topic = ?1 ORDER BY partition",
    )?;
    let extent = |row: &Row<'_>| {
        let (partition, end) = (row.get(0)?, row.get(2)?);
        let read_to = if topic.is_input() { committed.get(&partition).copied().unwrap_or(0) } else { end };
        Ok(Extent {
            partition: Partition(partition),
            start: Offset(row.get(1)?),
            end: Offset(end),
            compacted_to: Offset(row.get(3)?),
            read_to: Offset(read_to.min(end)),
        })
    };
    query.query_map([topic.name()], extent)?.collect()
}

/// One transaction of maintenance.
struct Step<'a> {
    connection: &'a Connection,
    /// Rows that may still be looked at.
    budget: usize,
    done: &'a mut Maintained,
}

impl Step<'_> {
    fn limit(&self) -> i64 {
        i64::try_from(self.budget).unwrap_or(i64::MAX)
    }

    /// The partitions of a topic, beginning with another one each time, until the budget is used up.
    fn topic(&mut self, topic: Topic, turn: usize, cutoff: i64) -> rusqlite::Result<()> {
        if self.budget == 0 {
            return Ok(());
        }
        let mut extents = extents(self.connection, topic)?;
        let turn = turn % extents.len().max(1);
        extents.rotate_left(turn);
        for extent in &extents {
            if self.budget == 0 {
                break;
            }
            match topic.cleanup() {
                Cleanup::Compact => self.compact(topic, extent, cutoff)?,
                Cleanup::Delete => self.expire(topic, extent, cutoff)?,
            }
        }
        Ok(())
    }

    /// Removes records from the start of a partition up to the first that is young enough or not read yet.
    fn expire(&mut self, topic: Topic, extent: &Extent, cutoff: i64) -> rusqlite::Result<()> {
        let &Extent { partition, start, read_to, .. } = extent;
        if start >= read_to {
            return Ok(());
        }
        let mut start_new = start;
        let sql = format!("SELECT id, ts FROM {} WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3", table(topic));
        let mut query = self.connection.prepare_cached(&sql)?;
        let mut rows = query.query((row_id(partition, start), row_id(partition, read_to), self.limit()))?;
        while let Some(row) = rows.next()? {
            if row.get::<_, i64>(1)? >= cutoff {
                break;
            }
            self.budget -= 1;
            start_new = offset_of(row.get(0)?).next();
        }
        if start_new == start {
            return Ok(());
        }
        let sql = format!("DELETE FROM {} WHERE id >= ?1 AND id < ?2", table(topic));
        let range = (row_id(partition, start), row_id(partition, start_new));
        self.done.expired += self.connection.prepare_cached(&sql)?.execute(range)?;
        self.advance(topic, partition, "start_offset", start_new)
    }

    /// Looks at the records written since the last compaction, each once, and removes what they replace.
    /// Then the tombstones among what has been compacted, when their time has come.
    fn compact(&mut self, topic: Topic, extent: &Extent, cutoff: i64) -> rusqlite::Result<()> {
        let &Extent { partition, compacted_to: from, end, .. } = extent;
        if end == Offset(0) {
            return Ok(());
        }
        let sql = format!("SELECT id, key FROM {} WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3", table(topic));
        let mut query = self.connection.prepare_cached(&sql)?;
        let fresh: Vec<(i64, Option<Vec<u8>>)> = query
            .query_map((row_id(partition, from), row_id(partition, end), self.limit()), key_of)?
            .collect::<rusqlite::Result<_>>()?;
        let sql = format!("DELETE FROM {} WHERE key = ?1 AND id >= ?2 AND id < ?3", table(topic));
        let mut replace = self.connection.prepare_cached(&sql)?;
        self.budget -= fresh.len();
        for (id, key) in &fresh {
            self.done.compacted += replace.execute((key, row_id(partition, Offset(0)), id))?;
        }
        // The index knows of records that were replaced within this step; only those left were read.
        let compacted_to = fresh.last().map_or(from, |(id, _)| offset_of(*id).next());
        if compacted_to > from {
            self.advance(topic, partition, "compacted_to", compacted_to)?;
        }
        self.expire_tombstones(topic, partition, compacted_to, cutoff)
    }

    /// Removes tombstones, oldest first, up to the first that is young enough.
    fn expire_tombstones(
        &mut self,
        topic: Topic,
        partition: Partition,
        below: Offset,
        cutoff: i64,
    ) -> rusqlite::Result<()> {
        let table = table(topic);
        let sql =
            format!("SELECT id, ts FROM {table} WHERE value IS NULL AND id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3");
        let mut query = self.connection.prepare_cached(&sql)?;
        let mut rows = query.query((row_id(partition, Offset(0)), row_id(partition, below), self.limit()))?;
        let mut old: Vec<i64> = Vec::new();
        while let Some(row) = rows.next()? {
            if row.get::<_, i64>(1)? >= cutoff {
                break;
            }
            old.push(row.get(0)?);
        }
        drop(rows);
        self.budget -= old.len();
        let mut delete = self.connection.prepare_cached(&format!("DELETE FROM {table} WHERE id = ?1"))?;
        for id in old {
            self.done.expired += delete.execute([id])?;
        }
        Ok(())
    }

    fn advance(&self, topic: Topic, partition: Partition, column: &str, to: Offset) -> rusqlite::Result<()> {
        let sql = format!("UPDATE partitions SET {column} = ?3 WHERE topic = ?1 AND partition = ?2");
        self.connection.prepare_cached(&sql)?.execute((topic.name(), partition.0, to.0)).map(drop)
    }
}

fn key_of(row: &Row<'_>) -> rusqlite::Result<(i64, Option<Vec<u8>>)> {
    Ok((row.get(0)?, row.get(1)?))
}

impl Store {
    /// Gives back the free pages above those kept for reuse, at most `pages_max`.
    fn vacuum(&mut self, pages_max: usize) -> Result<i64, LogError> {
        let fail = self.fail("giving pages back");
        let pragma =
            |name: &str| self.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(&fail);
        let (pages, free) = (pragma("page_count")?, pragma("freelist_count")?);
        let excess = (free - pages / FREE_PAGES_KEPT).min(i64::try_from(pages_max).unwrap_or(i64::MAX));
        if excess <= 0 {
            return Ok(0);
        }
        // Every step of this statement frees one page; it must be run to its end.
        let mut query = self.connection.prepare(&format!("PRAGMA incremental_vacuum({excess})")).map_err(&fail)?;
        let mut rows = query.query([]).map_err(&fail)?;
        while rows.next().map_err(&fail)?.is_some() {}
        Ok(excess)
    }

    /// Cuts the write-ahead log if readers have let it grow; does not wait for them.
    fn cut_wal(&mut self) -> Result<(), LogError> {
        let mut wal = self.path.as_os_str().to_owned();
        wal.push("-wal");
        let bytes = std::fs::metadata(&wal).map_or(0, |file| file.len());
        if bytes <= WAL_BYTES_KEPT {
            return Ok(());
        }
        let fail = self.fail("cutting the write-ahead log");
        let cut = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        match cut.map_err(&fail) {
            // The next step tries again.
            Ok(()) | Err(LogError::Busy { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
