//! Writing: one SQL transaction is one commit, so records and offsets stand or fall together.

use std::collections::BTreeMap;

use rusqlite::{CachedStatement, Connection};

use super::headers;
use super::schema::{row_id, table};
use super::store::Store;
use crate::log::api::place;
use crate::log::error::LogError;
use crate::log::record::{Offset, Outgoing, Partition, Position, Topic};

/// A record and the partition it goes to.
type Placed = (Partition, Outgoing);

/// How far a group has read its inputs.
pub(super) struct ReadTo<'a> {
    pub(super) group: &'a str,
    pub(super) offsets: &'a [(Topic, Partition, Offset)],
}

impl Store {
    /// Appends the records and stores how far the group has read, if it has; returns where the records are.
    pub(super) fn commit(
        &mut self,
        records: Vec<Outgoing>,
        timestamp_ms: i64,
        read: Option<ReadTo<'_>>,
    ) -> Result<Vec<Position>, LogError> {
        let partitions = self.partitions;
        let placed = records
            .into_iter()
            .map(|record| place(&record, partitions).map(|partition| (partition, record)))
            .collect::<Result<Vec<Placed>, LogError>>()?;
        let fail = self.fail("writing records");
        if let Some(read) = &read {
            self.check(read.offsets)?;
        }
        let transaction = self.write()?;
        let positions = append(&transaction, placed, timestamp_ms).map_err(&fail)?;
        if let Some(read) = read {
            store_offsets(&transaction, &read).map_err(&fail)?;
        }
        transaction.commit().map_err(&fail)?;
        Ok(positions)
    }

    /// Ends only grow, so checking them before the transaction is as good as inside.
    fn check(&self, offsets: &[(Topic, Partition, Offset)]) -> Result<(), LogError> {
        for &(topic, partition, offset) in offsets {
            let end = self.end_offset(topic, partition)?;
            if offset > end || offset < Offset(0) {
                return Err(LogError::BeyondEnd { topic, partition, offset, end });
            }
        }
        Ok(())
    }
}

/// Writes the records at the ends of their partitions, in the order given.
fn append(connection: &Connection, placed: Vec<Placed>, timestamp_ms: i64) -> rusqlite::Result<Vec<Position>> {
    let mut ends = BTreeMap::new();
    let mut inserts: [Option<CachedStatement<'_>>; Topic::ALL.len()] = Default::default();
    let mut positions = Vec::with_capacity(placed.len());
    for (partition, record) in placed {
        let topic = record.topic;
        let end = match ends.get_mut(&(topic, partition)) {
            Some(end) => end,
            None => ends.entry((topic, partition)).or_insert(end_of(connection, topic, partition)?),
        };
        let insert = match &mut inserts[topic.index()] {
            Some(insert) => insert,
            unprepared @ None => unprepared.insert(prepare_insert(connection, topic)?),
        };
        let headers = headers::encode(&record.headers);
        insert.execute((row_id(partition, *end), timestamp_ms, record.key, headers, record.value))?;
        positions.push(Position { topic, partition, offset: *end });
        *end = end.next();
    }
    let mut advance =
        connection.prepare_cached("UPDATE partitions SET next_offset = ?3 WHERE topic = ?1 AND partition = ?2")?;
    for ((topic, partition), end) in ends {
        advance.execute((topic.name(), partition.0, end.0))?;
    }
    Ok(positions)
}

fn end_of(connection: &Connection, topic: Topic, partition: Partition) -> rusqlite::Result<Offset> {
    connection
        .prepare_cached("SELECT next_offset FROM partitions WHERE topic = ?1 AND partition = ?2")?
        .query_row((topic.name(), partition.0), |row| row.get(0))
        .map(Offset)
}

fn prepare_insert(connection: &Connection, topic: Topic) -> rusqlite::Result<CachedStatement<'_>> {
    connection.prepare_cached(&format!(
        "INSERT INTO {} (id, ts, key, headers, value) VALUES (?1, ?2, ?3, ?4, ?5)",
        table(topic)
    ))
}

fn store_offsets(connection: &Connection, read: &ReadTo<'_>) -> rusqlite::Result<()> {
    let mut upsert = connection.prepare_cached(
        "INSERT INTO offsets (group_name, topic, partition, next) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (group_name, topic, partition) DO UPDATE SET next = excluded.next",
    )?;
    for (topic, partition, offset) in read.offsets {
        upsert.execute((read.group, topic.name(), partition.0, offset.0))?;
    }
    Ok(())
}
