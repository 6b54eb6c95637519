//! What a log holds: topics, partitions, offsets, records.
//!
//! These types are pure, so the core can name a position without knowing which log it came from.

use std::fmt;

/// A partition of a topic, counted from zero as Kafka does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(pub i32);

/// The place of a record in its partition. Offsets grow and are never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(pub i64);

impl Offset {
    /// The offset after this one; what a consumer commits once it is done with this record.
    #[must_use]
    pub fn next(self) -> Offset {
        Offset(self.0.saturating_add(1))
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The topics the worker knows. The set is closed: what a topic is for decides how it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    Requests,
    Responses,
    Results,
    Quarantine,
    Retries,
    Audit,
    /// The changelog of the state: the latest binding of every request.
    Bindings,
}

/// How a topic gives room back, in the words of Kafka's `cleanup.policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cleanup {
    /// Records older than the retention go.
    Delete,
    /// Only the latest record of a key stays; a tombstone goes after its retention.
    Compact,
}

impl Topic {
    pub const ALL: [Topic; 7] = [
        Topic::Requests,
        Topic::Responses,
        Topic::Results,
        Topic::Quarantine,
        Topic::Retries,
        Topic::Audit,
        Topic::Bindings,
    ];

    /// The topics a worker consumes, requests first: a response is judged after its request is known.
    pub const INPUTS: [Topic; 2] = [Topic::Requests, Topic::Responses];

    /// A short lower-case word for metrics, tables and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Topic::Requests => "requests",
            Topic::Responses => "responses",
            Topic::Results => "results",
            Topic::Quarantine => "quarantine",
            Topic::Retries => "retries",
            Topic::Audit => "audit",
            Topic::Bindings => "bindings",
        }
    }

    /// The topic's name on a broker unless configured otherwise. Only the changelog belongs to a group.
    #[must_use]
    pub fn default_name(self, group: &str) -> String {
        match self {
            Topic::Bindings => format!("toolgate.{group}.bindings"),
            Topic::Requests | Topic::Responses | Topic::Results | Topic::Quarantine | Topic::Retries | Topic::Audit => {
                format!("tool.{}", self.name())
            }
        }
    }

    #[must_use]
    pub const fn cleanup(self) -> Cleanup {
        match self {
            Topic::Bindings => Cleanup::Compact,
            Topic::Requests | Topic::Responses | Topic::Results | Topic::Quarantine | Topic::Retries | Topic::Audit => {
                Cleanup::Delete
            }
        }
    }

    /// True for the topics a worker consumes and commits offsets of.
    #[must_use]
    pub const fn is_input(self) -> bool {
        matches!(self, Topic::Requests | Topic::Responses)
    }

    /// The place of the topic in [`Topic::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where a record is, once and for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    pub topic: Topic,
    pub partition: Partition,
    pub offset: Offset,
}

/// Printed as `requests-3@42`, the way operators of Kafka write it.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}@{}", self.topic, self.partition, self.offset)
    }
}

/// One header. A name may occur more than once; the order is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    pub name: String,
    pub value: Option<Vec<u8>>,
}

/// A record as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub position: Position,
    /// Milliseconds since the Unix epoch, as the writer gave them.
    pub timestamp_ms: i64,
    pub key: Option<Vec<u8>>,
    /// `None` is a tombstone.
    pub value: Option<Vec<u8>>,
    pub headers: Vec<Header>,
}

impl Record {
    /// The bytes that count against limits: key, value and headers.
    #[must_use]
    pub fn bytes(&self) -> usize {
        content_bytes(self.key.as_deref(), self.value.as_deref(), &self.headers)
    }
}

/// A record to be written; the log assigns its offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    pub topic: Topic,
    /// `None` lets the key decide, with the partitioner of the Java client.
    pub partition: Option<Partition>,
    pub key: Option<Vec<u8>>,
    /// `None` is a tombstone.
    pub value: Option<Vec<u8>>,
    pub headers: Vec<Header>,
}

impl Outgoing {
    /// The bytes that count against limits: key, value and headers.
    #[must_use]
    pub fn bytes(&self) -> usize {
        content_bytes(self.key.as_deref(), self.value.as_deref(), &self.headers)
    }
}

fn content_bytes(key: Option<&[u8]>, value: Option<&[u8]>, headers: &[Header]) -> usize {
    let len = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
    let headers: usize = headers.iter().map(|header| header.name.len() + len(header.value.as_deref())).sum();
    len(key) + len(value) + headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_in_the_order_of_the_indices() {
        for (index, topic) in Topic::ALL.into_iter().enumerate() {
            assert_eq!(topic.index(), index, "{topic}");
        }
    }

    #[test]
    fn only_the_changelog_is_named_after_the_group_and_compacted() {
        assert_eq!(Topic::Requests.default_name("g"), "tool.requests");
        assert_eq!(Topic::Bindings.default_name("g"), "toolgate.g.bindings");
        for topic in Topic::ALL {
            let compacted = topic.cleanup() == Cleanup::Compact;
            assert_eq!(compacted, topic == Topic::Bindings, "{topic}");
            assert_eq!(topic.is_input(), Topic::INPUTS.contains(&topic), "{topic}");
        }
    }

    #[test]
    fn a_position_prints_as_operators_write_it() {
        let position = Position { topic: Topic::Responses, partition: Partition(3), offset: Offset(42) };
        assert_eq!(position.to_string(), "responses-3@42");
        assert_eq!(position.offset.next(), Offset(43));
    }
}
