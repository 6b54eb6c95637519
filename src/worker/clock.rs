//! The one place that reads the clock.

use crate::time::Timestamp;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The time by the system's clock, in whole milliseconds: what an audit record can repeat.
#[allow(clippy::disallowed_methods, reason = "this is the edge that hands time to everything else")]
pub fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_unix_millis(millis).unwrap_or_default()
}

/// A monotonic moment, for durations.
#[allow(clippy::disallowed_methods, reason = "this is the edge that hands time to everything else")]
pub fn instant() -> Instant {
    Instant::now()
}
