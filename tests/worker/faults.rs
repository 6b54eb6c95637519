//! Commits that do not go through, restarts, and partitions that come and go.

use crate::stage::{PARTITIONS, Stage, failure, good};
use toolgate::log::Partition;
use toolgate::log::memory::Fault;

fn check_after(fault: Fault) {
    let mut stage = Stage::new();
    stage.ask("req-0001");
    stage.run();
    stage.worker.log_mut().fail_commit(fault);
    stage.answer("req-0001");
    stage.respond(&Stage::response("req-0002", 1, 200, &good("req-0002")));
    stage.run();
    assert_eq!(stage.agent("req-0001"), [good("req-0001")], "{fault:?}");
    let mut reasons = stage.reasons();
    reasons.sort();
    assert_eq!(reasons, ["UNKNOWN_REQUEST", "ok"], "{fault:?}");
    // The state in memory is the one on the changelog: nothing more is due, nothing is told twice.
    stage.answer("req-0001");
    stage.wait(100);
    assert_eq!(stage.agent("req-0001").len(), 1, "{fault:?}");
}

#[test]
fn an_aborted_commit_is_done_again() {
    check_after(Fault::Aborted);
}

#[test]
fn an_indeterminate_commit_that_was_applied_is_not_done_again() {
    check_after(Fault::IndeterminateApplied);
}

#[test]
fn an_indeterminate_commit_that_was_lost_is_done_again() {
    check_after(Fault::IndeterminateLost);
}

#[test]
fn an_aborted_expiry_is_told_all_the_same() {
    for fault in [Fault::Aborted, Fault::IndeterminateApplied, Fault::IndeterminateLost] {
        let mut stage = Stage::new();
        stage.ask("req-0001");
        stage.run();
        stage.worker.log_mut().fail_commit(fault);
        stage.wait(60);
        stage.wait(1);
        assert_eq!(stage.agent("req-0001"), [failure("req-0001", "EXPIRED", false)], "{fault:?}");
    }
}

#[test]
fn a_partition_that_comes_back_brings_its_requests_and_timers_along() {
    let mut stage = Stage::new();
    for id in ["req-0001", "req-0002", "req-0003"] {
        stage.ask(id);
    }
    stage.run();
    let all: Vec<Partition> = (0..PARTITIONS).map(Partition).collect();
    stage.worker.log_mut().revoke(all.clone());
    stage.run();
    assert_eq!(stage.worker.states().count(), 0);
    stage.worker.log_mut().assign(all);
    stage.answer("req-0001");
    stage.wait(60);
    for id in ["req-0001", "req-0002", "req-0003"] {
        assert_eq!(stage.agent(id).len(), 1, "{id}");
    }
}

/// Random schedules with faults and restarts: one terminal answer for each request, one audit
/// record for each response.
#[test]
fn whatever_fails_in_whatever_order_every_record_is_accounted_for() {
    let mut seed = 0x1234_5678_9ABC_DEF1u64;
    let mut random = move |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    for _ in 0..20 {
        let mut stage = Stage::new();
        let (mut asked, mut answered) = (0, 0);
        for _ in 0..150 {
            match random(9) {
                0..=2 => {
                    stage.ask(&format!("req-{asked:04}"));
                    asked += 1;
                }
                3..=5 => {
                    let id = format!("req-{:04}", random(asked + 2));
                    let status = if random(4) == 0 { 503 } else { 200 };
                    let body = if random(4) == 0 { "{}".to_owned() } else { good(&id) };
                    stage.respond(&Stage::response(&id, 1, status, &body));
                    answered += 1;
                }
                6 => {
                    let faults = [Fault::Aborted, Fault::IndeterminateApplied, Fault::IndeterminateLost];
                    stage.worker.log_mut().fail_commit(faults[random(3) as usize]);
                }
                7 => stage.wait(random(30) as i64),
                _ => stage.restart(),
            }
        }
        stage.restart();
        stage.wait(200);
        for id in (0..asked).map(|i| format!("req-{i:04}")) {
            assert_eq!(stage.agent(&id).len(), 1, "{id}");
        }
        let audits = stage.audits();
        let of_responses: std::collections::BTreeSet<_> = audits
            .iter()
            .filter_map(|audit| audit.source.as_ref())
            .map(|source| (source.partition, source.offset))
            .collect();
        let count = audits.iter().filter(|audit| audit.source.is_some()).count();
        assert_eq!((of_responses.len(), count), (answered, answered));
    }
}
