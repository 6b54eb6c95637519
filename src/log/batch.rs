//! How a batch is shared out among partitions, for the logs that read partition by partition.
//!
//! Requests come before responses in a batch, because a response is judged against its request. So that a flood of
//! requests cannot starve responses, a quarter of the batch is theirs when they want it. Within a topic every partition
//! gets an equal share, what one leaves goes to the next, and the first to be asked changes with every batch.

use super::error::LogError;
use super::record::{Offset, Partition, Record, Topic};

/// One input partition that has something to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lane {
    pub(super) topic: Topic,
    pub(super) partition: Partition,
    /// The next offset to read.
    pub(super) from: Offset,
    /// The offset to stop before.
    pub(super) end: Offset,
}

/// How much one read may bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) records: usize,
    pub(super) bytes: usize,
    /// The first record comes whatever its size, or one larger than a batch would block its partition for good.
    pub(super) first_always: bool,
}

impl Share {
    /// Takes one record off the share; false if it does not fit and the read is over.
    pub(super) fn admit(&mut self, bytes: usize) -> bool {
        if self.records == 0 || (bytes > self.bytes && !self.first_always) {
            return false;
        }
        self.records -= 1;
        self.bytes = self.bytes.saturating_sub(bytes);
        self.first_always = false;
        true
    }
}

type Read<'a> = dyn FnMut(&Lane, Share, &mut Vec<Record>) -> Result<(), LogError> + 'a;

/// Fills a batch of at most `records_max` records and about `bytes_max` bytes (one record of each topic may exceed it).
pub(super) fn collect(
    lanes: &mut [Lane],
    turn: usize,
    records_max: usize,
    bytes_max: usize,
    read: &mut Read<'_>,
) -> Result<Vec<Record>, LogError> {
    let (mut requests, mut responses): (Vec<Lane>, Vec<Lane>) =
        lanes.iter().partition(|lane| lane.topic == Topic::Requests);
    for lanes in [&mut requests, &mut responses] {
        let turn = turn % lanes.len().max(1);
        lanes.rotate_left(turn);
    }
    let (records, bytes) = if requests.is_empty() {
        (records_max, bytes_max)
    } else {
        (records_max.div_ceil(4).min(records_max.saturating_sub(1)), bytes_max / 4)
    };
    let mut reserved = Vec::new();
    let share = Share { records, bytes, first_always: true };
    share_out(&mut responses, share, &mut reserved, read)?;

    let mut batch = Vec::new();
    let bytes = bytes_max.saturating_sub(bytes_of(&reserved));
    let share = Share { records: records_max - reserved.len(), bytes, first_always: true };
    share_out(&mut requests, share, &mut batch, read)?;

    let bytes = bytes.saturating_sub(bytes_of(&batch));
    let records = records_max - reserved.len() - batch.len();
    batch.append(&mut reserved);
    // What the requests left over.
    share_out(&mut responses, Share { records, bytes, first_always: false }, &mut batch, read)?;
    Ok(batch)
}

/// Reads the lanes in order into `batch`; each gets its part of what is left.
fn share_out(
    lanes: &mut [Lane],
    mut left: Share,
    batch: &mut Vec<Record>,
    read: &mut Read<'_>,
) -> Result<(), LogError> {
    let count = lanes.len();
    for (index, lane) in lanes.iter_mut().enumerate() {
        let waiting = count - index;
        let share = Share { records: left.records.div_ceil(waiting), bytes: left.bytes.div_ceil(waiting), ..left };
        if lane.from >= lane.end || share.records == 0 {
            continue;
        }
        let before = batch.len();
        read(lane, share, batch)?;
        let Some(last) = batch[before..].last() else { continue };
        lane.from = last.position.offset.next();
        left.records -= batch.len() - before;
        left.bytes = left.bytes.saturating_sub(bytes_of(&batch[before..]));
        left.first_always = false;
    }
    Ok(())
}

fn bytes_of(records: &[Record]) -> usize {
    records.iter().map(Record::bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::record::Position;

    fn lane(topic: Topic, partition: i32, waiting: i64) -> Lane {
        Lane { topic, partition: Partition(partition), from: Offset(0), end: Offset(waiting) }
    }

    /// Collects from lanes whose records all have `size` bytes; returns (topic, partition, offset) in order.
    fn drawn(lanes: &mut [Lane], turn: usize, records: usize, bytes: usize, size: usize) -> Vec<(Topic, i32, i64)> {
        let mut read = |lane: &Lane, mut share: Share, into: &mut Vec<Record>| {
            for offset in lane.from.0..lane.end.0 {
                if !share.admit(size) {
                    break;
                }
                let position = Position { topic: lane.topic, partition: lane.partition, offset: Offset(offset) };
                let value = Some(vec![0; size]);
                into.push(Record { position, timestamp_ms: 0, key: None, value, headers: Vec::new() });
            }
            Ok(())
        };
        let batch = collect(lanes, turn, records, bytes, &mut read).expect("the reader never fails");
        batch.iter().map(|r| (r.position.topic, r.position.partition.0, r.position.offset.0)).collect()
    }

    fn count(drawn: &[(Topic, i32, i64)], topic: Topic, partition: i32) -> usize {
        drawn.iter().filter(|(t, p, _)| (*t, *p) == (topic, partition)).count()
    }

    #[test]
    fn requests_come_first_and_responses_keep_a_quarter() {
        let mut lanes = [lane(Topic::Responses, 0, 1000), lane(Topic::Requests, 0, 1000)];
        let drawn = drawn(&mut lanes, 0, 100, usize::MAX, 10);
        assert_eq!(count(&drawn, Topic::Requests, 0), 75);
        assert_eq!(count(&drawn, Topic::Responses, 0), 25);
        assert!(drawn.is_sorted(), "requests first, offsets in order");
    }

    #[test]
    fn what_requests_leave_goes_to_responses() {
        let mut lanes = [lane(Topic::Requests, 0, 10), lane(Topic::Responses, 0, 1000)];
        let drawn = drawn(&mut lanes, 0, 100, usize::MAX, 10);
        assert_eq!((drawn.len(), count(&drawn, Topic::Responses, 0)), (100, 90));
        assert!(drawn.is_sorted());
    }

    #[test]
    fn partitions_share_alike_and_nothing_is_wasted() {
        let mut lanes = [lane(Topic::Requests, 0, 1000), lane(Topic::Requests, 1, 5), lane(Topic::Requests, 2, 1000)];
        let drawn = drawn(&mut lanes, 1, 90, usize::MAX, 10);
        let counts = [0, 1, 2].map(|partition| count(&drawn, Topic::Requests, partition));
        assert_eq!(counts, [42, 5, 43]);
    }

    #[test]
    fn a_record_larger_than_a_batch_still_comes_and_alone_of_its_topic() {
        let mut lanes = [lane(Topic::Requests, 0, 9), lane(Topic::Requests, 1, 9), lane(Topic::Responses, 0, 9)];
        let drawn = drawn(&mut lanes, 1, 100, 50, 80);
        assert_eq!(drawn, [(Topic::Requests, 1, 0), (Topic::Responses, 0, 0)]);
    }

    #[test]
    fn the_smallest_batch_is_one_request() {
        let mut lanes = [lane(Topic::Responses, 0, 9), lane(Topic::Requests, 0, 9)];
        assert_eq!(drawn(&mut lanes, 0, 1, 100, 10), [(Topic::Requests, 0, 0)]);
        let mut lanes = [lane(Topic::Responses, 0, 9)];
        assert_eq!(drawn(&mut lanes, 7, 1, 100, 10), [(Topic::Responses, 0, 0)]);
    }
}
