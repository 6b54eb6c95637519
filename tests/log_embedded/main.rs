//! The embedded log from outside: what it refuses, what it keeps, and what survives a kill.
#![cfg(feature = "worker")]

mod beside;
mod commits;
mod kill;
mod opening;
mod retention;
mod support;
