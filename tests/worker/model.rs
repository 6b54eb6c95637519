//! What ought to come of events, as simply as it can be said: no log, no commits, no records, no bytes.

use std::collections::{BTreeMap, BTreeSet};

/// A request by its simplest description. Times in seconds.
#[derive(Clone, Debug)]
struct Asked {
    attempt: u32,
    attempts: u32,
    deadline: i64,
    state: Is,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    Open,
    /// Failed at that moment; another attempt is to come.
    Failed(i64),
    Answered(i64),
    Expired(i64),
}

pub(crate) const SKEW: i64 = 2;
const RETENTION: i64 = 172_800;
const ATTEMPTS_MAX: u32 = 3;
/// The longest that a retry of the first two attempts is put off.
const BACKOFF_MAX: i64 = 2;

/// All requests, and what agents were told.
#[derive(Default)]
pub(crate) struct Model {
    asked: BTreeMap<String, Asked>,
    /// Terminal messages in the agent's words, by request.
    pub told: BTreeMap<String, Vec<&'static str>>,
    /// Retries that were scheduled, and those of them that the dispatcher must have heard of.
    pub scheduled: BTreeSet<(String, u32)>,
    pub due: BTreeSet<(String, u32)>,
}

impl Model {
    /// The attempt that an answer to this request should name.
    pub(crate) fn attempt(&self, id: &str) -> u32 {
        self.asked.get(id).map_or(1, |asked| asked.attempt)
    }

    pub(crate) fn announce(&mut self, id: &str, attempt: u32, deadline: i64, now: i64) {
        self.settle_due(id, now, false);
        match self.asked.get_mut(id) {
            None => {
                let asked = Asked { attempt, attempts: 1, deadline, state: Is::Open };
                self.asked.insert(id.to_owned(), asked);
            }
            Some(asked) if attempt > asked.attempt && matches!(asked.state, Is::Open | Is::Failed(_)) => {
                *asked = Asked { attempt, attempts: asked.attempts + 1, deadline, state: Is::Open };
            }
            Some(_) => {}
        }
    }

    /// Everything that time alone brings.
    pub(crate) fn tick(&mut self, now: i64) {
        for id in self.asked.keys().cloned().collect::<Vec<_>>() {
            self.settle_due(&id, now, true);
        }
    }

    fn settle_due(&mut self, id: &str, now: i64, is_timer: bool) {
        let Some(asked) = self.asked.get_mut(id) else { return };
        match asked.state {
            Is::Open | Is::Failed(_) if now >= asked.deadline + SKEW => {
                asked.state = Is::Expired(now);
                self.told.entry(id.to_owned()).or_default().push("EXPIRED");
            }
            Is::Failed(at) if is_timer && now >= at + BACKOFF_MAX => {
                self.due.insert((id.to_owned(), asked.attempt + 1));
            }
            Is::Answered(at) | Is::Expired(at) if now >= at + RETENTION => drop(self.asked.remove(id)),
            Is::Open | Is::Failed(_) | Is::Answered(_) | Is::Expired(_) => {}
        }
    }

    /// The reason that a response is refused or failed for; empty where it is evidence.
    pub(crate) fn respond(&mut self, id: &str, attempt: u32, body: &str, now: i64) -> &'static str {
        let Some(asked) = self.asked.get_mut(id) else { return "UNKNOWN_REQUEST" };
        match asked.state {
            Is::Expired(_) => return "LATE_RESPONSE",
            Is::Answered(_) => return "DUPLICATE_RESPONSE",
            Is::Open | Is::Failed(_) if attempt < asked.attempt => return "STALE_ATTEMPT",
            Is::Open | Is::Failed(_) if attempt > asked.attempt => return "UNKNOWN_REQUEST",
            Is::Failed(_) => return "STALE_ATTEMPT",
            Is::Open => {}
        }
        let (reason, code) = match body {
            "foreign" => ("BINDING_MISMATCH", "INVALID_RESPONSE"),
            "prose" => ("INVALID_JSON", "INVALID_RESPONSE"),
            "not-found" => ("UPSTREAM_ERROR", "NOT_FOUND"),
            "unavailable" => ("UPSTREAM_ERROR", "UPSTREAM_UNAVAILABLE"),
            _ => ("", ""),
        };
        let in_time = now + BACKOFF_MAX < asked.deadline;
        if code == "UPSTREAM_UNAVAILABLE" && asked.attempts < ATTEMPTS_MAX && in_time {
            asked.state = Is::Failed(now);
            self.scheduled.insert((id.to_owned(), asked.attempt + 1));
        } else {
            asked.state = Is::Answered(now);
            self.told.entry(id.to_owned()).or_default().push(code);
        }
        reason
    }
}
