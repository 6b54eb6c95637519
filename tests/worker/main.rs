//! The worker over a log in memory, on a virtual clock: what happens to requests, responses,
//! deadlines and retries, and what a commit that does not go through leaves behind.
#![allow(clippy::unwrap_used, reason = "tests")]

mod faults;
mod laws;
mod lives;
mod model;
mod parked;
mod promises;
mod random;
mod retries;
mod scenes;
mod spread;
mod stage;
mod stories;
mod support;
mod transcript;
mod world;
