//! Patience with a broker. Time-outs of network calls are the only use this log has for a clock.

use std::time::{Duration, Instant};

/// A moment after which waiting is pointless.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    started: Instant,
    patience: Duration,
}

impl Deadline {
    #[allow(clippy::disallowed_methods, reason = "the time-out of a call to a broker is not the time of a decision")]
    pub(super) fn after(patience: Duration) -> Deadline {
        Deadline { started: Instant::now(), patience }
    }

    /// What is left; zero once it has passed.
    pub(super) fn left(self) -> Duration {
        self.patience.saturating_sub(self.started.elapsed())
    }

    pub(super) fn has_passed(self) -> bool {
        self.left().is_zero()
    }

    pub(super) fn elapsed(self) -> Duration {
        self.started.elapsed()
    }
}
