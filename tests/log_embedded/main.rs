//! The embedded log from outside: what it refuses, what it keeps, and what survives a kill.
#![cfg(feature = "worker")]

mod beside;
mod commits;
mod kill;
mod model;
mod opening;
mod random;
mod records;
mod retention;
mod support;
