//! What can go wrong with a log, told so that an operator knows what to do next.

use std::path::PathBuf;

use super::record::{Offset, Partition, Position, Topic};

/// An error of the log. Every message says what happened, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error(
        "{topic}-{partition}: the committed offset is {committed} but the log starts at {start}, so {} records are gone \
         unread; find out what removed them, then start once with --accept-gap to go on at {start}",
        start.0.saturating_sub(committed.0)
    )]
    Gap { topic: Topic, partition: Partition, committed: Offset, start: Offset },

    #[error(
        "{path}: no room to write, nothing of this batch was stored; free disk space or shorten the retention, then start again"
    )]
    Full { path: PathBuf },

    #[error(
        "{path}: in use by {}; one worker owns a log at a time, so stop that one or give this worker another file",
        owner(*.pid)
    )]
    Locked { path: PathBuf, pid: Option<u32> },

    #[error(
        "{path}: written in format {found}, this toolgate reads format {supported}; run the version that wrote it, or start a new file"
    )]
    Version { path: PathBuf, found: i64, supported: i64 },

    #[error("{path}: not a toolgate log ({what}); check the path, nothing was changed")]
    NotALog { path: PathBuf, what: &'static str },

    #[error("{path}: there is no such log; start a worker first, or say how many partitions to create it with")]
    Missing { path: PathBuf },

    #[error("{path}: the directory {directory} does not exist; create it or correct the path", directory = .directory.display())]
    NoDirectory { path: PathBuf, directory: PathBuf },

    #[error(
        "{path}: has {found} partitions but {wanted} are configured; keys would move, so correct the configuration or start a new file"
    )]
    Partitions { path: PathBuf, found: i32, wanted: i32 },

    #[error("{count} partitions: a log has 1 to {max}; correct the configuration")]
    PartitionCount { count: i32, max: i32 },

    #[error(
        "{path}: its state belongs to group `{found}`, not `{wanted}`; correct the group or give this one another file"
    )]
    Group { path: PathBuf, found: String, wanted: String },

    #[error("{topic}-{partition}: no such partition, the log has {partitions}; correct the partition or the producer")]
    UnknownPartition { topic: Topic, partition: Partition, partitions: i32 },

    #[error(
        "{topic}: a record of {bytes} bytes is over the {bytes_max} a log takes; send it smaller, nothing of this batch was stored"
    )]
    TooLarge { topic: Topic, bytes: usize, bytes_max: usize },

    #[error(
        "{topic}-{partition}: offset {offset} cannot be committed, the log ends at {end}; this is a defect, please report it"
    )]
    BeyondEnd { topic: Topic, partition: Partition, offset: Offset, end: Offset },

    #[error(
        "the last commit did not go through and the log was not rewound before {what}; this is a defect, please report it"
    )]
    NotRewound { what: &'static str },

    #[error("{position}: the state kept there cannot be restored: {what}; run the version that wrote it")]
    Restore { position: Position, what: String },

    #[error("{path}: another process held the write lock for too long; look for a stuck toolgate command on this file")]
    Busy { path: PathBuf },

    #[error("{path}: damaged ({what}); stop the worker, keep a copy, and restore the file from a backup")]
    Damaged { path: PathBuf, what: String },

    #[error("{path}: {what}")]
    Unsupported { path: PathBuf, what: &'static str },

    #[error("{path}: {what} failed; check the disk and the permissions of the file and its directory")]
    Io { path: PathBuf, what: &'static str, source: std::io::Error },

    #[error("{path}: {what} failed; check the disk and the permissions of the file and its directory")]
    Store { path: PathBuf, what: &'static str, source: rusqlite::Error },

    #[error("kafka property `{name}` cannot be passed through: {why}")]
    Property { name: String, why: &'static str },

    #[error("{setting} = {path:?}: cannot be read; correct the path or its permissions")]
    File { setting: &'static str, path: PathBuf, source: std::io::Error },

    #[error("{setting} = {path:?}: {what}")]
    Content { setting: &'static str, path: PathBuf, what: &'static str },

    #[error("kafka {servers}: {what}")]
    Connect { servers: String, what: String },

    #[error("kafka {servers}: no broker can be reached ({what}); check kafka.bootstrap_servers and the network")]
    Unreachable { servers: String, what: String },

    #[error("kafka: no right to use {kind} `{name}`; grant {operations} on {kind} `{name}` to this worker's user")]
    Forbidden { kind: &'static str, name: String, operations: String },

    #[error("kafka topic `{name}`: {what}")]
    TopicUnfit { name: String, what: String },

    #[error(
        "another worker runs as instance `{instance}` of group `{group}` and has taken over; give every worker a name of its own"
    )]
    Fenced { group: String, instance: String },

    #[error(
        "{topic}-{partition}: a transaction has been open behind its end for {waited_s} s; look for a producer that hangs"
    )]
    Unstable { topic: Topic, partition: Partition, waited_s: u64 },

    #[error("kafka: {what} failed; look at the brokers and the network between")]
    Kafka { what: &'static str, source: rdkafka::error::KafkaError },
}

/// Whose business an error is: it decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Somebody has to change a setting, a file, a topic or a right.
    Configuration,
    /// The same start may well succeed later.
    Temporary,
    /// Anything else.
    Failure,
}

impl LogError {
    /// Whose business this is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            LogError::File { .. }
            | LogError::Content { .. }
            | LogError::Property { .. }
            | LogError::Connect { .. }
            | LogError::Forbidden { .. }
            | LogError::TopicUnfit { .. } => Fault::Configuration,
            LogError::Full { .. } | LogError::Unreachable { .. } | LogError::Unstable { .. } => Fault::Temporary,
            LogError::Kafka { source, .. } if is_passing(source) => Fault::Temporary,
            LogError::Kafka { .. }
            | LogError::Gap { .. }
            | LogError::Locked { .. }
            | LogError::Version { .. }
            | LogError::NotALog { .. }
            | LogError::Missing { .. }
            | LogError::NoDirectory { .. }
            | LogError::Partitions { .. }
            | LogError::PartitionCount { .. }
            | LogError::Group { .. }
            | LogError::UnknownPartition { .. }
            | LogError::TooLarge { .. }
            | LogError::BeyondEnd { .. }
            | LogError::NotRewound { .. }
            | LogError::Restore { .. }
            | LogError::Busy { .. }
            | LogError::Damaged { .. }
            | LogError::Unsupported { .. }
            | LogError::Io { .. }
            | LogError::Store { .. }
            | LogError::Fenced { .. } => Fault::Failure,
        }
    }
}

/// Brokers come and go.
fn is_passing(error: &rdkafka::error::KafkaError) -> bool {
    use rdkafka::error::RDKafkaErrorCode as Code;
    const PASSING: [Code; 8] = [
        Code::BrokerTransportFailure,
        Code::AllBrokersDown,
        Code::OperationTimedOut,
        Code::RequestTimedOut,
        Code::CoordinatorNotAvailable,
        Code::CoordinatorLoadInProgress,
        Code::LeaderNotAvailable,
        Code::NotEnoughReplicas,
    ];
    error.rdkafka_error_code().is_some_and(|code| PASSING.contains(&code))
}

fn owner(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another worker".to_owned(), |pid| format!("another worker (process {pid})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_says_where_and_how_much() {
        let gap = LogError::Gap {
            topic: Topic::Responses,
            partition: Partition(2),
            committed: Offset(10),
            start: Offset(15),
        };
        let text = gap.to_string();
        assert!(text.starts_with("responses-2: the committed offset is 10 but the log starts at 15, so 5 records"));
        assert!(text.contains("--accept-gap"));
    }

    #[test]
    fn a_locked_log_names_the_process_when_it_is_known() {
        let locked = |pid| LogError::Locked { path: "a.log".into(), pid }.to_string();
        assert!(locked(Some(7)).contains("(process 7)"));
        assert!(locked(None).contains("in use by another worker;"));
    }
}
