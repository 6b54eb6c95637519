//! What the worker counts and says. Labels come from contracts and constants, log fields from our
//! own records: no byte of a response gets into either.

use crate::log::{Commit, LogError, Partition};
use crate::partition::{Effects, Outcome, PartitionState, Settlement};
use crate::telemetry::Metrics;
use crate::telemetry::{CommitOutcome, ContractKey, Outcome as Counted, RequestOutcome};
use std::time::Duration;

pub(super) fn commit(metrics: &Metrics, commit: &Result<Commit, LogError>, records: usize, took: Duration) {
    let outcome = match commit {
        Ok(Commit::Committed) => CommitOutcome::Committed,
        Ok(Commit::Aborted) | Err(_) => CommitOutcome::Aborted,
        Ok(Commit::Indeterminate) => CommitOutcome::Indeterminate,
    };
    metrics.commit(outcome, records, took);
}

pub(super) fn states<'a>(metrics: &Metrics, states: impl Iterator<Item = &'a PartitionState>) {
    let (mut partitions, mut bindings, mut waiting) = (0, 0, 0);
    for state in states {
        partitions += 1;
        bindings += state.len();
        waiting += state.waiting();
    }
    metrics.set_partitions(partitions);
    metrics.set_bindings(bindings);
    metrics.set_parked(waiting);
}

/// Counts and logs what has become durable.
pub(super) fn effects(metrics: &Metrics, partition: Partition, effects: &Effects) {
    for (tool, version) in &effects.announced {
        metrics.request(metrics.key(tool, *version), RequestOutcome::Announced);
    }
    for settlement in &effects.settlements {
        settled(metrics, partition, settlement);
    }
    for directive in &effects.directives {
        metrics.retry(metrics.key(&directive.tool, directive.contract_version));
    }
    for (contract, own) in &effects.disagreements {
        metrics.shadow_disagreement(metrics.key(&contract.tool, contract.version));
        tracing::info!(contract = %contract.label, decision = %own, "a shadow contract disagrees");
    }
}

fn settled(metrics: &Metrics, partition: Partition, settlement: &Settlement) {
    let contract = settlement.contract.as_deref();
    let key = contract.map_or(ContractKey::UNKNOWN, |contract| metrics.key(&contract.tool, contract.version));
    let counted = match settlement.outcome {
        Outcome::Accepted => Some(Counted::Accepted),
        Outcome::Failed => Some(Counted::Failed),
        Outcome::Refused => Some(Counted::Refused),
        Outcome::Expired => None,
    };
    if let Some(counted) = counted.filter(|_| settlement.digest.is_some()) {
        metrics.response(key, counted, settlement.reason);
        metrics.body_bytes(settlement.audit.raw_bytes as usize);
    }
    if let Some(agent) = &settlement.agent {
        metrics.result_bytes(agent.json.len());
        metrics.request(key, counted.map_or(RequestOutcome::Expired, RequestOutcome::Closed));
    }
    let label = contract.map_or("none", |contract| contract.label.as_ref());
    let reason = settlement.reason.map_or("none", |reason| reason.code());
    let source = settlement.audit.source.as_ref().map_or(-1, |source| source.offset);
    if settlement.outcome == Outcome::Refused {
        tracing::info!(
            contract = label, reason, stage = settlement.stage.name(), partition = partition.0, offset = source,
            decision = %settlement.audit.decision_id, "response refused"
        );
    } else {
        tracing::debug!(
            contract = label, reason, outcome = settlement.outcome.name(), partition = partition.0, offset = source,
            decision = %settlement.audit.decision_id, "request settled"
        );
    }
}
