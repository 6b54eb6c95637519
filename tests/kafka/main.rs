//! The Kafka log, on a real Apache Kafka. Without Java and Maven these tests say so and pass; under CI they fail.

mod faults;
mod group;
mod history;
mod kills;
mod load;
mod log;
mod proxy;
mod rebalance;
mod restore;
mod support;
mod topics;
