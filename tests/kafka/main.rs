//! The Kafka log, on a real Apache Kafka. Without Java and Maven these tests say so and pass; under CI they fail.

mod faults;
mod group;
mod kills;
mod load;
mod log;
mod owners;
mod proxy;
mod rebalance;
mod support;
mod topics;
