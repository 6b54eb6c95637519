//! Retry budgets: of what a tool was asked in the last minutes, only a share is asked again.
//!
//! As in Finagle and Linkerd, every first attempt earns a fraction of a retry, so that an outage
//! adds a bounded share of load instead of a multiple. A first attempt counts when it is made, a
//! retry when it is due: that is when each of them reaches the tool. Nothing is stored, as both
//! can be read from the requests' own records: a restart rebuilds them and refills nothing.

use super::binding::{Binding, State};
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

const WINDOW_MINUTES: i64 = 10;
/// A tool that is hardly used may still retry now and then.
const RETRIES_FREE: u64 = 10;

/// First attempts and retries by tool and minute.
#[derive(Clone, Debug, Default)]
pub struct RetryBudget {
    tools: BTreeMap<Arc<str>, BTreeMap<i64, Minute>>,
    /// The minute for which what is over was last removed.
    swept: i64,
    /// What the open batch has counted; `None` outside a batch.
    journal: Option<Vec<(Arc<str>, i64, Minute)>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Minute {
    firsts: u64,
    retries: u64,
}

impl RetryBudget {
    /// Counts a record as it is restored, where in doubt to the tool's disadvantage: retries that
    /// were made as if all had been made with the last, and one of which the dispatcher was told
    /// as if it came as late as it may. A retry that was never made, because the deadline came
    /// first, has cost the tool nothing and is not known any more.
    pub fn restore(&mut self, known: &Binding) {
        self.first(&known.tool, known.first_issued_at);
        let made = u64::from(known.attempts.saturating_sub(1));
        self.count(&known.tool, known.issued_at, Minute { firsts: 0, retries: made });
        if let State::AwaitingRetry { due, .. } = known.state {
            self.retry(&known.tool, due.unwrap_or(known.deadline));
        }
    }

    /// A request's first attempt was announced.
    pub fn first(&mut self, tool: &str, at: Timestamp) {
        self.count(tool, at, Minute { firsts: 1, retries: 0 });
    }

    /// A retry of a request was scheduled, for this moment.
    pub fn retry(&mut self, tool: &str, due: Timestamp) {
        self.count(tool, due, Minute { firsts: 0, retries: 1 });
    }

    /// May one more retry of this tool be scheduled, at this share of its first attempts?
    ///
    /// First attempts from the future earn nothing yet, or a dispatcher whose clock is ahead would
    /// earn for as long as it is; scheduled retries count although they lie ahead.
    pub fn allows(&mut self, tool: &str, share_max: f64, now: Timestamp) -> bool {
        let this = minute_of(now);
        self.sweep(this);
        let recent = self.tools.get(tool).into_iter().flat_map(|minutes| minutes.range(oldest(this)..));
        let (firsts, retries) = recent.fold((0, 0), |(firsts, retries), (minute, counted)| {
            let earned = if *minute <= this { counted.firsts } else { 0 };
            (firsts + earned, retries + counted.retries)
        });
        (retries as f64) < RETRIES_FREE as f64 + firsts as f64 * share_max.max(0.0)
    }

    /// Starts a batch: from here on counts can be undone.
    pub fn begin(&mut self) {
        self.journal = Some(Vec::new());
    }

    /// The batch is durable.
    pub fn commit(&mut self) {
        self.journal = None;
    }

    /// Undoes what the batch has counted.
    pub fn rollback(&mut self) {
        for (tool, minute, counted) in self.journal.take().unwrap_or_default() {
            if let Some(kept) = self.tools.get_mut(&tool).and_then(|minutes| minutes.get_mut(&minute)) {
                kept.firsts = kept.firsts.saturating_sub(counted.firsts);
                kept.retries = kept.retries.saturating_sub(counted.retries);
            }
        }
    }

    fn count(&mut self, tool: &str, at: Timestamp, counted: Minute) {
        let tool = match self.tools.get_key_value(tool) {
            Some((known, _)) => known.clone(),
            None => Arc::from(tool),
        };
        let minute = minute_of(at);
        let kept = self.tools.entry(tool.clone()).or_default().entry(minute).or_default();
        kept.firsts += counted.firsts;
        kept.retries += counted.retries;
        if let Some(journal) = &mut self.journal {
            journal.push((tool, minute, counted));
        }
    }

    /// Removes what has left the window, once a minute, and with it tools that nobody asks any
    /// more: their names come from dispatchers, so they must not pile up.
    fn sweep(&mut self, this: i64) {
        if self.swept == this {
            return;
        }
        self.swept = this;
        self.tools.retain(|_, minutes| {
            *minutes = minutes.split_off(&oldest(this));
            !minutes.is_empty()
        });
    }
}

const fn minute_of(at: Timestamp) -> i64 {
    at.unix_seconds().div_euclid(60)
}

const fn oldest(this: i64) -> i64 {
    this - WINDOW_MINUTES + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::machine::tests::{binding, now};

    const TOOL: &str = "ci.job_status";

    fn after(minutes: i64) -> Timestamp {
        now().saturating_add_millis(minutes * 60_000)
    }

    /// Schedules as many retries as are allowed, at most `max`.
    fn spend(budget: &mut RetryBudget, max: u64, share_max: f64, at: Timestamp) -> u64 {
        let mut grant = || budget.allows(TOOL, share_max, at).then(|| budget.retry(TOOL, at)).is_some();
        (0..max).map(|_| u64::from(grant())).sum()
    }

    #[test]
    fn an_outage_costs_a_share_and_not_a_multiple() {
        let mut budget = RetryBudget::default();
        let mut retries = 0;
        for _ in 0..10_000 {
            budget.first(TOOL, now());
            retries += spend(&mut budget, 1, 0.2, now());
        }
        assert!((2000..=2010).contains(&retries), "{retries}");
        assert!(budget.allows("release.state", 0.0, now()), "other tools are not affected");
    }

    /// Calls that take longer than the window fail long after their first attempts have left it.
    #[test]
    fn an_outage_of_slow_calls_is_no_storm_either() {
        let mut budget = RetryBudget::default();
        for _ in 0..10_000 {
            budget.first(TOOL, now());
        }
        assert_eq!(spend(&mut budget, 10_000, 0.2, after(11)), RETRIES_FREE);
    }

    #[test]
    fn retries_that_lie_ahead_count_already_and_first_attempts_do_not() {
        let mut budget = RetryBudget::default();
        for _ in 0..RETRIES_FREE {
            assert!(budget.allows(TOOL, 0.2, now()));
            budget.retry(TOOL, after(30));
        }
        for _ in 0..1000 {
            budget.first(TOOL, after(60));
        }
        assert!(!budget.allows(TOOL, 0.2, now()));
        assert!(!budget.allows(TOOL, 0.2, after(39)), "for ten minutes after they were due");
        assert!(budget.allows(TOOL, 0.2, after(40)));
    }

    #[test]
    fn a_restart_refills_nothing() {
        let mut budget = RetryBudget::default();
        let known = Binding { attempts: 4, ..binding() };
        for _ in 0..4 {
            budget.restore(&known);
        }
        assert!(!budget.allows(TOOL, 0.1, now()));
        assert!(budget.allows(TOOL, 0.1, after(11)), "the window moves on");
    }

    #[test]
    fn a_restart_knows_of_retries_that_are_to_come() {
        for due in [Some(after(1)), None] {
            let state =
                State::AwaitingRetry { due, code: "UPSTREAM_UNAVAILABLE".into(), reason: "UPSTREAM_ERROR".into() };
            let mut budget = RetryBudget::default();
            for _ in 0..RETRIES_FREE {
                budget.restore(&Binding { state: state.clone(), ..binding() });
            }
            assert!(!budget.allows(TOOL, 0.0, now()));
        }
        let damaged = Binding { attempts: u32::MAX, ..binding() };
        RetryBudget::default().restore(&damaged);
    }

    #[test]
    fn an_undone_batch_has_counted_nothing() {
        let mut budget = RetryBudget::default();
        for _ in 0..3 {
            budget.begin();
            for _ in 0..100 {
                budget.first(TOOL, now());
            }
            assert_eq!(spend(&mut budget, 100, 0.2, now()), 30);
            budget.rollback();
        }
        budget.begin();
        assert_eq!(spend(&mut budget, 100, 0.2, now()), RETRIES_FREE);
        budget.commit();
        budget.rollback();
        assert!(!budget.allows(TOOL, 0.2, now()));
    }

    #[test]
    fn names_that_dispatchers_invent_do_not_pile_up() {
        let mut budget = RetryBudget::default();
        for minute in 0..100 {
            budget.first(&format!("invented.n{minute}"), after(minute));
            budget.allows(TOOL, 0.2, after(minute));
        }
        assert_eq!(budget.tools.len(), WINDOW_MINUTES as usize);
    }
}
