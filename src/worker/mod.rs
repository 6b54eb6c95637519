//! The worker: a thin loop over a log, around the pure core.

pub mod clock;
