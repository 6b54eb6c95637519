//! The Kafka log, on a real Apache Kafka. Without Java and Maven these tests say so and pass; under CI they fail.
#![allow(clippy::unwrap_used, reason = "tests")]

mod ask;
mod commands;
mod faults;
mod group;
mod history;
mod kills;
mod load;
mod log;
mod odd;
mod owners;
mod proxy;
mod raw;
mod rebalance;
mod restore;
mod rights;
mod secured;
mod security;
mod support;
mod topics;
