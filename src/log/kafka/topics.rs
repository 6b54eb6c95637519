//! What the seven topics should be like, what they are like, and the difference.

use std::time::Duration;

use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, ConfigResource, ConfigSource, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::admin::wait_for;
use super::group::Plain;
use super::options::KafkaOptions;
use super::rights::{self, Resource};
use super::{LogError, connect, hello};
use crate::log::api::RECORD_BYTES_MAX;
use crate::log::record::{Cleanup, Topic};

/// What a topic should be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub topic: Topic,
    pub name: String,
    pub partitions: i32,
    pub replicas: i32,
    /// Settings of the topic, by their names on the broker.
    pub settings: Vec<(&'static str, String)>,
}

/// What a cluster is asked for beyond the names of its topics.
#[derive(Clone, Debug)]
pub struct Shape {
    pub partitions: i32,
    pub replicas: i32,
    pub min_insync_replicas: i32,
    /// How long records are kept, in the order of [`Topic::ALL`]; that of the changelog is not used.
    pub retention: [Duration; 7],
}

/// How bad a difference is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; the promises hold.
    Advice,
    /// A promise would break: a worker must not start on this.
    Fatal,
}

/// What is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub topic: Topic,
    pub name: String,
    pub severity: Severity,
    pub what: String,
    pub change: Change,
}

/// What `apply` would do about a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Create(Wanted),
    Set(&'static str, String),
    /// Nothing that can be done without moving records or keys; a person has to decide.
    Nothing,
}

/// What a topic is like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Found {
    partitions: i32,
    replicas: i32,
    settings: Vec<(String, String)>,
}

/// The topics as they should be.
#[must_use]
pub fn wanted(options: &KafkaOptions, shape: &Shape) -> Vec<Wanted> {
    let one = |topic: Topic| {
        let mut settings = match topic.cleanup() {
            Cleanup::Compact => vec![("cleanup.policy", "compact".to_owned())],
            Cleanup::Delete => vec![
                ("cleanup.policy", "delete".to_owned()),
                ("retention.ms", shape.retention[topic.index()].as_millis().to_string()),
            ],
        };
        settings.push(("min.insync.replicas", shape.min_insync_replicas.to_string()));
        settings.push(("max.message.bytes", (RECORD_BYTES_MAX + 64 * 1024).to_string()));
        let (name, partitions, replicas) = (options.name(topic).to_owned(), shape.partitions, shape.replicas);
        Wanted { topic, name, partitions, replicas, settings }
    };
    Topic::ALL.into_iter().map(one).collect()
}

/// Looks at the cluster and says what is not as it should be, the fatal first.
///
/// # Errors
/// No broker can be reached, or it refuses us.
pub fn findings(options: &KafkaOptions, shape: &Shape) -> Result<Vec<Finding>, LogError> {
    let client = hello::greet(options)?;
    let admin = sees_settings(options).then(|| admin(options)).transpose()?;
    let mut all = Vec::new();
    let mut inputs = Vec::new();
    for wanted in wanted(options, shape) {
        let found = look(options, &client, admin.as_ref(), wanted.topic)?;
        let keeps_keys = matches!(wanted.topic, Topic::Requests | Topic::Responses | Topic::Bindings);
        inputs.extend(found.as_ref().filter(|_| keeps_keys).map(|found| (wanted.topic, found.partitions)));
        all.extend(compare(wanted, found));
    }
    if let Some(&(first, count)) = inputs.first() {
        for (topic, other) in inputs.into_iter().filter(|(_, other)| *other != count) {
            let name = options.name(topic).to_owned();
            let what = format!(
                "has {other} partitions but `{}` has {count}: they must be equal, or a response does not meet its request; make one of the two anew",
                options.name(first)
            );
            all.push(Finding { topic, name, severity: Severity::Fatal, what, change: Change::Nothing });
        }
    }
    all.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Ok(all)
}

fn compare(wanted: Wanted, found: Option<Found>) -> Vec<Finding> {
    let (topic, name) = (wanted.topic, wanted.name.clone());
    let finding = |severity, what: String, change| Finding { topic, name: name.clone(), severity, what, change };
    let Some(found) = found else {
        return vec![finding(Severity::Fatal, "is missing".to_owned(), Change::Create(wanted))];
    };
    let mut all = Vec::new();
    if found.replicas < wanted.replicas {
        let what = format!(
            "has {} replicas, {} are wanted: reassign its partitions, or lower kafka.replication_factor",
            found.replicas, wanted.replicas
        );
        all.push(finding(Severity::Advice, what, Change::Nothing));
    }
    for (setting, value) in wanted.settings {
        let Some((_, is)) = found.settings.iter().find(|(name, _)| name == setting) else { continue };
        if let Some((severity, why)) = judge(setting, is, &value) {
            let what = format!("{setting} is {is}, {value} is wanted: {why}");
            all.push(finding(severity, what, Change::Set(setting, value)));
        }
    }
    all
}

/// Whether a setting that differs matters, and why.
fn judge(setting: &str, is: &str, wanted: &str) -> Option<(Severity, &'static str)> {
    let numbers = is.parse::<i64>().ok().zip(wanted.parse::<i64>().ok());
    let is_less = numbers.is_none_or(|(is, wanted)| is < wanted);
    match setting {
        "cleanup.policy" if is != wanted => Some((
            Severity::Fatal,
            if wanted == "compact" {
                "the state of open requests would be deleted by age"
            } else {
                "records with the same key would be removed unread"
            },
        )),
        // Minus one means without end.
        "retention.ms" if is != "-1" && is_less => {
            Some((Severity::Advice, "records go earlier than the configuration says"))
        }
        "min.insync.replicas" if is_less => {
            Some((Severity::Advice, "what was committed can be lost with fewer brokers than meant"))
        }
        "max.message.bytes" if is_less => {
            Some((Severity::Advice, "a large quarantine record would be refused and stop the worker"))
        }
        _ => None,
    }
}

fn admin(options: &KafkaOptions) -> Result<AdminClient<Plain>, LogError> {
    options
        .client()?
        .create_with_context(connect::context(options))
        .map_err(|source| LogError::Kafka { what: "making an administrator", source })
}

fn patience() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(Duration::from_secs(15))).operation_timeout(Some(Duration::from_secs(15)))
}

/// Whether settings of topics can be seen and changed at all. The library's administrator never asks for a bearer token.
#[must_use]
pub fn sees_settings(options: &KafkaOptions) -> bool {
    options.security.token_file.is_none()
}

/// `None` where there is no such topic.
fn look(
    options: &KafkaOptions,
    client: &BaseConsumer<Plain>,
    admin: Option<&AdminClient<Plain>>,
    topic: Topic,
) -> Result<Option<Found>, LogError> {
    let name = options.name(topic);
    let failed = |source| LogError::Kafka { what: "asking about a topic", source };
    hello::serve(client);
    let metadata = client.fetch_metadata(Some(name), Duration::from_secs(15)).map_err(failed)?;
    let Some(found) = metadata.topics().first() else { return Ok(None) };
    match found.error().map(RDKafkaErrorCode::from) {
        None => {}
        Some(RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic) => return Ok(None),
        Some(RDKafkaErrorCode::TopicAuthorizationFailed) => {
            return Err(rights::forbidden(options, Resource::Topic(topic)));
        }
        Some(code) => return Err(failed(KafkaError::MetadataFetch(code))),
    }
    let partitions = found.partitions();
    let replicas = partitions.iter().map(|partition| partition.replicas().len()).min().unwrap_or_default();
    let entries = admin.map(|admin| describe(admin, name)).transpose()?.map_or_else(Vec::new, |config| config.entries);
    let settings = entries.into_iter().filter_map(|entry| Some((entry.name, entry.value?))).collect();
    Ok(Some(Found { partitions: partitions.len() as i32, replicas: replicas as i32, settings }))
}

fn describe(admin: &AdminClient<Plain>, name: &str) -> Result<ConfigResource, LogError> {
    let failed = |source| LogError::Kafka { what: "asking about the settings of a topic", source };
    let described = wait_for(admin.describe_configs([&ResourceSpecifier::Topic(name)], &patience())).map_err(failed)?;
    let Some(config) = described.into_iter().next() else { return Err(failed(KafkaError::Canceled)) };
    config.map_err(|code| {
        if code != RDKafkaErrorCode::TopicAuthorizationFailed {
            return failed(KafkaError::AdminOp(code));
        }
        LogError::TopicUnfit {
            name: name.to_owned(),
            what: "no right to see its settings; grant DESCRIBE_CONFIGS to this user".to_owned(),
        }
    })
}

/// Does what the findings propose. Returns how many changes there were.
///
/// # Errors
/// The first change that the cluster refuses; those before it are made, and it is safe to apply again.
pub fn apply(options: &KafkaOptions, findings: &[Finding]) -> Result<usize, LogError> {
    if !sees_settings(options) {
        let what = "topics cannot be made or changed with a bearer token; apply as another user, or do by hand what `toolgate topics plan` says";
        return Err(LogError::Connect { servers: options.bootstrap_servers.clone(), what: what.to_owned() });
    }
    let admin = admin(options)?;
    let mut count = 0;
    for finding in findings {
        match &finding.change {
            Change::Create(wanted) => create(&admin, wanted)?,
            Change::Set(setting, value) => set(&admin, &finding.name, setting, value)?,
            Change::Nothing => continue,
        }
        count += 1;
    }
    Ok(count)
}

fn refused(name: &str, what: &str, code: RDKafkaErrorCode) -> LogError {
    LogError::TopicUnfit { name: name.to_owned(), what: format!("{what}: the cluster says {code}") }
}

fn create(admin: &AdminClient<Plain>, wanted: &Wanted) -> Result<(), LogError> {
    let empty = NewTopic::new(&wanted.name, wanted.partitions, TopicReplication::Fixed(wanted.replicas));
    let topic = wanted.settings.iter().fold(empty, |topic, (name, value)| topic.set(name, value));
    let made = wait_for(admin.create_topics([&topic], &patience()))
        .map_err(|source| LogError::Kafka { what: "making a topic", source })?;
    for one in made {
        match one {
            Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            Err((name, code)) => return Err(refused(&name, "cannot be made", code)),
        }
    }
    Ok(())
}

/// This call replaces all settings of a topic, so those that somebody else has set are given again.
fn set(admin: &AdminClient<Plain>, name: &str, setting: &str, value: &str) -> Result<(), LogError> {
    let existing = describe(admin, name)?;
    let mut all = AlterConfig::new(ResourceSpecifier::Topic(name));
    for entry in &existing.entries {
        if let (ConfigSource::DynamicTopic, Some(value)) = (&entry.source, &entry.value)
            && entry.name != setting
        {
            all = all.set(&entry.name, value);
        }
    }
    all = all.set(setting, value);
    let altered = wait_for(admin.alter_configs([&all], &patience()))
        .map_err(|source| LogError::Kafka { what: "changing the settings of a topic", source })?;
    for one in altered {
        one.map_err(|(_, code)| refused(name, &format!("{setting} cannot be set"), code))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_loses_records_is_fatal_and_what_is_generous_is_no_finding() {
        assert!(matches!(judge("cleanup.policy", "delete", "compact"), Some((Severity::Fatal, _))));
        assert!(matches!(judge("cleanup.policy", "compact,delete", "compact"), Some((Severity::Fatal, _))));
        assert!(matches!(judge("retention.ms", "1000", "2000"), Some((Severity::Advice, _))));
        for (setting, is) in [("retention.ms", "-1"), ("retention.ms", "3000"), ("min.insync.replicas", "2000")] {
            assert_eq!(judge(setting, is, "2000"), None, "{setting} {is}");
        }
    }
}
