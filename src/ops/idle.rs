//! What `run --until-idle` waits for.

use crate::log::{LogError, Offset, Partition, Topic};
use std::collections::BTreeMap;

/// Where the inputs of each partition ended when it became ours.
#[derive(Debug, Default)]
pub(super) struct Goal {
    ends: BTreeMap<Partition, [Offset; 2]>,
}

impl Goal {
    /// Takes in what is ours now: notes the ends of what is new, forgets what somebody else has.
    pub(super) fn take_in(
        &mut self,
        owned: &[Partition],
        mut end_of: impl FnMut(Topic, Partition) -> Result<Offset, LogError>,
    ) -> Result<(), LogError> {
        self.ends.retain(|partition, _| owned.contains(partition));
        for &partition in owned.iter().filter(|partition| !self.ends.contains_key(partition)).collect::<Vec<_>>() {
            let [requests, responses] = Topic::INPUTS;
            self.ends.insert(partition, [end_of(requests, partition)?, end_of(responses, partition)?]);
        }
        Ok(())
    }

    /// Whether there is a share, and all of it has been read to those ends. Before the group has given a worker
    /// partitions there is nothing to do either, but much to come.
    pub(super) fn is_reached(
        &self,
        mut has_read_to: impl FnMut(Topic, Partition, Offset) -> Result<bool, LogError>,
    ) -> Result<bool, LogError> {
        let mut is_reached = !self.ends.is_empty();
        for (partition, ends) in &self.ends {
            for (topic, end) in Topic::INPUTS.into_iter().zip(ends) {
                // Each is asked: a log may have to be told where to look.
                is_reached &= has_read_to(topic, *partition, *end)?;
            }
        }
        Ok(is_reached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_goal_without_a_share_and_each_partition_has_its_own() {
        let mut goal = Goal::default();
        assert!(!goal.is_reached(|_, _, _| Ok(true)).unwrap(), "nothing is ours yet");
        goal.take_in(&[Partition(0)], |_, _| Ok(Offset(5))).unwrap();
        goal.take_in(&[Partition(0), Partition(1)], |_, _| Ok(Offset(9))).unwrap();
        let read_to = |zero: i64, one: i64| {
            move |_: Topic, partition: Partition, end: Offset| {
                Ok(end <= Offset(if partition == Partition(0) { zero } else { one }))
            }
        };
        assert!(goal.is_reached(read_to(5, 9)).unwrap(), "what came later is no part of it");
        assert!(!goal.is_reached(read_to(5, 8)).unwrap());
        goal.take_in(&[Partition(0)], |_, _| Ok(Offset(9))).unwrap();
        assert!(goal.is_reached(read_to(5, 0)).unwrap(), "what somebody else has is his");
        goal.take_in(&[], |_, _| Ok(Offset(9))).unwrap();
        assert!(!goal.is_reached(|_, _, _| Ok(true)).unwrap(), "nothing is left to speak for");
    }
}
