//! What a worker must be allowed to do on its cluster, as one table: `toolgate topics rights` prints it, messages about a
//! missing right are made from it, and the tests take each of its rows away.

use rdkafka::error::RDKafkaErrorCode;

use super::options::KafkaOptions;
use crate::log::error::LogError;
use crate::log::record::Topic;

/// What a right is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    Topic(Topic),
    Group,
    TransactionalId,
}

/// A right, by the names that brokers use. READ and WRITE bring DESCRIBE with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    pub resource: Resource,
    pub operations: &'static [&'static str],
    pub why: &'static str,
}

const fn right(resource: Resource, operations: &'static [&'static str], why: &'static str) -> Right {
    Right { resource, operations, why }
}

/// Everything a worker needs, and nothing more.
pub const RIGHTS: [Right; 9] = [
    right(Resource::Topic(Topic::Requests), &["READ"], "what was asked"),
    right(Resource::Topic(Topic::Responses), &["READ"], "what tools answered"),
    right(Resource::Topic(Topic::Results), &["WRITE"], "what agents read"),
    right(Resource::Topic(Topic::Quarantine), &["WRITE"], "what was refused"),
    right(Resource::Topic(Topic::Retries), &["WRITE"], "what the dispatcher is to ask again"),
    right(Resource::Topic(Topic::Audit), &["WRITE"], "every decision"),
    right(Resource::Topic(Topic::Bindings), &["READ", "WRITE"], "the state of requests, and its restoration"),
    right(Resource::Group, &["READ"], "a share of the partitions, and offsets"),
    right(Resource::TransactionalId, &["WRITE"], "all or nothing"),
];

impl Resource {
    /// The type and the name, as brokers and their tools know them.
    #[must_use]
    pub fn named(self, options: &KafkaOptions) -> (&'static str, String) {
        match self {
            Resource::Topic(topic) => ("topic", options.name(topic).to_owned()),
            Resource::Group => ("group", options.group.clone()),
            Resource::TransactionalId => ("transactional-id", options.transactional_id()),
        }
    }
}

/// That a right is missing, and what to grant.
pub(super) fn forbidden(options: &KafkaOptions, resource: Resource) -> LogError {
    let operations = RIGHTS.iter().find(|right| right.resource == resource).map_or(&[][..], |right| right.operations);
    let (kind, name) = resource.named(options);
    LogError::Forbidden { kind, name, operations: operations.join(" and ") }
}

/// What a broker's refusal is about, where the code says it. A refusal of a topic has to be told which one was asked for.
pub(super) fn refused(options: &KafkaOptions, error: LogError, asked: Option<Topic>) -> LogError {
    let LogError::Kafka { source, .. } = &error else { return error };
    let resource = match source.rdkafka_error_code() {
        Some(RDKafkaErrorCode::TopicAuthorizationFailed) => asked.map(Resource::Topic),
        Some(RDKafkaErrorCode::GroupAuthorizationFailed) => Some(Resource::Group),
        Some(RDKafkaErrorCode::TransactionalIdAuthorizationFailed) => Some(Resource::TransactionalId),
        _ => None,
    };
    resource.map_or(error, |resource| forbidden(options, resource))
}

/// The same for commands beside a worker, which need a right of their own on one topic.
pub(super) fn needs(options: &KafkaOptions, topic: Topic, operation: &str, error: LogError) -> LogError {
    let code = if let LogError::Kafka { source, .. } = &error { source.rdkafka_error_code() } else { None };
    // Whoever may write to no topic gets no producer id, and that is a matter of the cluster.
    const DENIED: [RDKafkaErrorCode; 2] =
        [RDKafkaErrorCode::TopicAuthorizationFailed, RDKafkaErrorCode::ClusterAuthorizationFailed];
    let is_denied = code.is_some_and(|code| DENIED.contains(&code));
    if !is_denied && !matches!(error, LogError::Forbidden { .. }) {
        return error;
    }
    LogError::Forbidden { kind: "topic", name: options.name(topic).to_owned(), operations: operation.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_says_what_to_grant() {
        let options = KafkaOptions::new("127.0.0.1:1", "g", "i");
        let said = forbidden(&options, Resource::Topic(Topic::Bindings)).to_string();
        assert!(said.contains("grant READ and WRITE on topic `toolgate.g.bindings`"), "{said}");
        let said = forbidden(&options, Resource::TransactionalId).to_string();
        assert!(said.contains("grant WRITE on transactional-id `toolgate.g.i`"), "{said}");
    }

    #[test]
    fn the_page_has_the_same_table() {
        let options = KafkaOptions::new("127.0.0.1:1", "<group>", "<instance>");
        for right in RIGHTS {
            let (kind, name) = right.resource.named(&options);
            let row = format!("| {} | {kind} `{name}` | {} |", right.operations.join(", "), right.why);
            assert!(include_str!("../../../docs/kafka.md").contains(&row), "{row}");
        }
    }

    #[test]
    fn every_topic_is_in_the_table() {
        for topic in Topic::ALL {
            assert!(RIGHTS.iter().any(|right| right.resource == Resource::Topic(topic)), "{topic}");
        }
    }
}
