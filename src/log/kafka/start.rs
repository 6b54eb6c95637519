//! Where an owner of a partition goes on: at the committed offsets of both inputs.

use std::collections::BTreeMap;

use crate::log::error::LogError;
use crate::log::record::{Offset, Partition, Topic};

/// The next offset to read of input partitions.
pub(super) type Starts = BTreeMap<(Topic, Partition), Offset>;

/// Holds a committed offset against the range that the log still has.
pub(super) fn checked(
    name: &str,
    (topic, partition): (Topic, Partition),
    committed: Option<Offset>,
    (start, end): (Offset, Offset),
    accept_gap: bool,
) -> Result<Offset, LogError> {
    match committed {
        None => Ok(start),
        Some(committed) if committed >= start && committed <= end => Ok(committed),
        Some(committed) if committed < start && !accept_gap => {
            Err(LogError::Gap { topic, partition, committed, start })
        }
        Some(committed) if committed < start => Ok(start),
        Some(committed) => Err(LogError::TopicUnfit {
            name: name.to_owned(),
            what: format!(
                "partition {partition} ends at {end} but offset {committed} was committed: the topic was made anew or lost records; start a new group, or reset the offsets of this one"
            ),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: (Topic, Partition) = (Topic::Responses, Partition(0));
    const RANGE: (Offset, Offset) = (Offset(10), Offset(20));

    fn start(committed: Option<i64>, accept_gap: bool) -> Result<Offset, LogError> {
        checked("tool.responses", AT, committed.map(Offset), RANGE, accept_gap)
    }

    #[test]
    fn a_group_goes_on_where_it_committed_or_at_the_start_of_the_log() {
        assert_eq!(start(None, false).unwrap(), Offset(10));
        for committed in [10, 15, 20] {
            assert_eq!(start(Some(committed), false).unwrap(), Offset(committed));
        }
    }

    #[test]
    fn records_that_are_gone_unread_are_skipped_only_when_told_so() {
        assert!(matches!(start(Some(9), false), Err(LogError::Gap { .. })));
        assert_eq!(start(Some(9), true).unwrap(), Offset(10));
    }

    #[test]
    fn an_offset_beyond_the_end_is_never_read_from() {
        for accept_gap in [false, true] {
            let error = start(Some(21), accept_gap).expect_err("the topic lost records").to_string();
            assert!(error.contains("ends at 20 but offset 21 was committed"), "{error}");
        }
    }
}
