//! The worker over a log in memory and a virtual clock: what comes of requests and responses, told as stories.
#![cfg(feature = "worker")]

mod laws;
mod lives;
mod model;
mod parked;
mod promises;
mod random;
mod stories;
mod support;
mod transcript;
mod world;
