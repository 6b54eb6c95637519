//! `toolgate topics`: the seven topics on the cluster, as they should be and as they are.

use super::args::TopicsCommand;
use super::settings::{self, Flags};
use super::{Exit, out};
use crate::config::{Config, LogKind};
use crate::log::kafka::topics::{self, Change, Finding, Severity, Shape};
use crate::log::kafka::{KafkaOptions, sample};
use crate::log::{LogError, Topic};
use anyhow::{Result, bail};
use std::path::Path;
use std::time::Duration;

/// Plans, applies or verifies.
///
/// # Errors
/// Bad configuration, or a cluster that refuses.
pub(super) fn topics(file: Option<&Path>, command: &TopicsCommand) -> Result<Exit> {
    let config = settings::load(file, &Flags::new())?;
    if config.log.kind != LogKind::Kafka {
        bail!("the embedded log makes its topics by itself; set log.kind = \"kafka\" to work on a cluster");
    }
    let options = KafkaOptions::from_config(&config)?;
    let shape = shape(&config);
    let findings = topics::findings(&options, &shape)?;
    match command {
        TopicsCommand::Plan => {
            findings.iter().try_for_each(|finding| out::line(&planned(finding)))?;
            eprintln!(
                "{} of {} findings would be changed by `toolgate topics apply`",
                changes(&findings),
                findings.len()
            );
            Ok(Exit::Ok)
        }
        TopicsCommand::Apply => {
            let count = topics::apply(&options, &findings)?;
            findings.iter().try_for_each(|finding| out::line(&planned(finding)))?;
            eprintln!("{count} changes made");
            verdict(&topics::findings(&options, &shape)?)
        }
        TopicsCommand::Verify => {
            let is_complete = !findings.iter().any(|finding| matches!(finding.change, Change::Create(_)));
            let misplaced = if is_complete { sample::misplaced(&options)? } else { Vec::new() };
            verdict(&[findings, misplaced].concat())
        }
    }
}

/// Before a worker starts: a fatal mismatch ends it, advice is logged.
///
/// # Errors
/// The fatal mismatches, all of them.
pub(super) fn refuse_fatal(config: &Config, options: &KafkaOptions) -> Result<()> {
    let findings = match topics::findings(options, &shape(config)) {
        Ok(findings) => findings,
        // A worker needs no right to see settings. What it cannot see it cannot check; the rest is checked on connecting.
        Err(error @ LogError::TopicUnfit { .. }) => {
            tracing::warn!(%error, "the topics' settings were not checked");
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let (fatal, advice): (Vec<_>, Vec<_>) =
        findings.into_iter().partition(|finding| finding.severity == Severity::Fatal);
    for finding in advice {
        tracing::warn!(topic = %finding.name, "{}", finding.what);
    }
    if fatal.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = fatal.iter().map(|finding| format!("{} {}", finding.name, finding.what)).collect();
    bail!("the topics are not fit for a worker; run `toolgate topics plan`:\n{}", lines.join("\n"))
}

fn changes(findings: &[Finding]) -> usize {
    findings.iter().filter(|finding| finding.change != Change::Nothing).count()
}

fn planned(finding: &Finding) -> String {
    match &finding.change {
        Change::Create(wanted) => {
            let settings: Vec<String> = wanted.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!(
                "create  {}  partitions={} replicas={} {}",
                wanted.name,
                wanted.partitions,
                wanted.replicas,
                settings.join(" ")
            )
        }
        Change::Set(setting, value) => format!("set     {}  {setting}={value}  ({})", finding.name, finding.what),
        Change::Nothing => format!("decide  {}  {}", finding.name, finding.what),
    }
}

/// Says every mismatch. Only one that would break a promise is a failure.
fn verdict(findings: &[Finding]) -> Result<Exit> {
    for finding in findings {
        let word = match finding.severity {
            Severity::Fatal => "fatal ",
            Severity::Advice => "advice",
        };
        out::line(&format!("{word}  {}  {}", finding.name, finding.what))?;
    }
    if findings.iter().any(|finding| finding.severity == Severity::Fatal) {
        return Ok(Exit::Failure);
    }
    eprintln!("the topics are fit for a worker");
    Ok(Exit::Ok)
}

fn shape(config: &Config) -> Shape {
    let kept = |topic: Topic| match topic {
        Topic::Requests => config.retention.requests,
        Topic::Responses => config.retention.responses,
        Topic::Results => config.retention.results,
        Topic::Quarantine => config.retention.quarantine,
        Topic::Retries => config.retention.retries,
        Topic::Audit => config.retention.audit,
        Topic::Bindings => Duration::ZERO,
    };
    Shape {
        partitions: config.log.partitions.into(),
        replicas: config.kafka.replication_factor.into(),
        min_insync_replicas: config.kafka.min_insync_replicas.into(),
        retention: Topic::ALL.map(kept),
    }
}
