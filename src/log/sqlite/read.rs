//! Reading records in the order of their offsets.

use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, Row};

use super::schema::{offset_of, row_id, table};
use super::{headers, store::Store};
use crate::log::batch::{Lane, Share};
use crate::log::error::LogError;
use crate::log::record::{Offset, Partition, Position, Record, Topic};

/// Appends to `into` what the lane holds, within the share.
pub(super) fn lane(
    connection: &Connection,
    lane: &Lane,
    mut share: Share,
    into: &mut Vec<Record>,
) -> rusqlite::Result<()> {
    let limit = i64::try_from(share.records).unwrap_or(i64::MAX);
    each(connection, lane, limit, &mut |row| {
        if !share.admit(row_bytes(row)?) {
            return Ok(false);
        }
        into.push(record(row, lane.topic, lane.partition)?);
        Ok(true)
    })
}

/// Gives `visit` the rows of a lane until it says false.
pub(super) fn each(
    connection: &Connection,
    lane: &Lane,
    limit: i64,
    visit: &mut dyn FnMut(&Row<'_>) -> rusqlite::Result<bool>,
) -> rusqlite::Result<()> {
    let sql = format!(
        "SELECT id, ts, key, headers, value FROM {} WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3",
        table(lane.topic)
    );
    let mut query = connection.prepare_cached(&sql)?;
    let mut rows = query.query((row_id(lane.partition, lane.from), row_id(lane.partition, lane.end), limit))?;
    while let Some(row) = rows.next()? {
        if !visit(row)? {
            break;
        }
    }
    Ok(())
}

/// The size of the stored columns. The lengths inside the header blob count too, so this is never below
/// [`Record::bytes`].
fn row_bytes(row: &Row<'_>) -> rusqlite::Result<usize> {
    let mut bytes = 0;
    for column in 2..5 {
        if let ValueRef::Blob(blob) = row.get_ref(column)? {
            bytes += blob.len();
        }
    }
    Ok(bytes)
}

pub(super) fn record(row: &Row<'_>, topic: Topic, partition: Partition) -> rusqlite::Result<Record> {
    let headers = match row.get_ref(3)?.as_blob_or_null()? {
        None => Vec::new(),
        Some(blob) => headers::decode(blob)
            .ok_or_else(|| rusqlite::Error::FromSqlConversionFailure(3, Type::Blob, "damaged headers".into()))?,
    };
    Ok(Record {
        position: Position { topic, partition, offset: offset_of(row.get(0)?) },
        timestamp_ms: row.get(1)?,
        key: row.get(2)?,
        value: row.get(4)?,
        headers,
    })
}

impl Store {
    /// Reads a whole partition as it is now, record by record, so that memory does not grow with it.
    pub(super) fn stream(
        &mut self,
        topic: Topic,
        partition: Partition,
        apply: &mut dyn FnMut(Record) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        let end = self.end_offset(topic, partition)?;
        let whole = Lane { topic, partition, from: Offset(0), end };
        let mut refused = None;
        each(&self.connection, &whole, -1, &mut |row| {
            refused = apply(record(row, topic, partition)?).err();
            Ok(refused.is_none())
        })
        .map_err(self.fail("reading records"))?;
        refused.map_or(Ok(()), Err)
    }

    /// Reads up to `share` from an offset on.
    pub(super) fn read_from(
        &self,
        topic: Topic,
        partition: Partition,
        from: Offset,
        share: Share,
    ) -> Result<Vec<Record>, LogError> {
        let end = self.end_offset(topic, partition)?;
        let rest = Lane { topic, partition, from: from.max(Offset(0)), end };
        let mut records = Vec::new();
        if rest.from < rest.end {
            lane(&self.connection, &rest, share, &mut records).map_err(self.fail("reading records"))?;
        }
        Ok(records)
    }
}
