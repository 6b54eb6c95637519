//! Retry budgets: of what a tool was asked in the last minutes, only a share is asked again.
//!
//! As in Finagle and Linkerd, every first attempt earns a fraction of a retry, so that an outage
//! adds a bounded share of load instead of a multiple. Both counts come from the requests' own
//! records, by the minute in which each was first issued: a restart rebuilds them and refills
//! nothing.

use super::binding::{Binding, State};
use crate::time::Timestamp;
use std::collections::BTreeMap;

const WINDOW_MINUTES: i64 = 10;
/// A tool that is hardly used may still retry now and then.
const RETRIES_FREE: u64 = 10;

/// First attempts and retries by tool and minute.
#[derive(Clone, Debug, Default)]
pub struct RetryBudget {
    tools: BTreeMap<Box<str>, BTreeMap<i64, Minute>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Minute {
    firsts: u64,
    retries: u64,
}

impl RetryBudget {
    /// Counts a record as it is restored.
    pub fn restore(&mut self, known: &Binding) {
        self.first(&known.tool, known.first_issued_at);
        let scheduled = u32::from(matches!(known.state, State::AwaitingRetry { .. }));
        for _ in 1..known.attempts + scheduled {
            self.retry(&known.tool, known.first_issued_at);
        }
    }

    /// A request's first attempt was announced.
    pub fn first(&mut self, tool: &str, first_issued_at: Timestamp) {
        self.minute(tool, first_issued_at).firsts += 1;
    }

    /// A retry of a request was scheduled.
    pub fn retry(&mut self, tool: &str, first_issued_at: Timestamp) {
        self.minute(tool, first_issued_at).retries += 1;
    }

    fn minute(&mut self, tool: &str, at: Timestamp) -> &mut Minute {
        let minute = at.unix_seconds().div_euclid(60);
        if !self.tools.contains_key(tool) {
            self.tools.insert(tool.into(), BTreeMap::new());
        }
        let minutes = self.tools.entry(tool.into()).or_default();
        // Only what can still count is kept.
        while minutes.len() > 4 * WINDOW_MINUTES as usize {
            minutes.pop_first();
        }
        minutes.entry(minute).or_default()
    }

    /// May one more retry of this tool be scheduled, at this share of its first attempts?
    pub fn allows(&self, tool: &str, share_max: f64, now: Timestamp) -> bool {
        let this = now.unix_seconds().div_euclid(60);
        let minutes = self.tools.get(tool).into_iter().flatten();
        let recent = minutes.filter(|(minute, _)| this - **minute < WINDOW_MINUTES);
        let (firsts, retries) = recent.fold((0, 0), |(f, r), (_, m)| (f + m.firsts, r + m.retries));
        (retries as f64) < RETRIES_FREE as f64 + firsts as f64 * share_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::machine::tests::{binding, now};

    #[test]
    fn an_outage_costs_a_share_and_not_a_multiple() {
        let mut budget = RetryBudget::default();
        let mut retries = 0;
        for _ in 0..10_000 {
            budget.first("ci.job_status", now());
            if budget.allows("ci.job_status", 0.2, now()) {
                budget.retry("ci.job_status", now());
                retries += 1;
            }
        }
        assert!((2000..=2010).contains(&retries), "{retries}");
        assert!(budget.allows("release.state", 0.0, now()), "other tools are not affected");
    }

    #[test]
    fn a_restart_refills_nothing() {
        let mut budget = RetryBudget::default();
        let known = Binding { attempts: 4, ..binding() };
        for _ in 0..4 {
            budget.restore(&known);
        }
        assert!(!budget.allows("ci.job_status", 0.1, now()));
        assert!(budget.allows("ci.job_status", 0.1, now().saturating_add_millis(11 * 60_000)), "the window moves on");
    }
}
