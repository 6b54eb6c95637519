//! Requests: what is kept for each, and how it changes.
//!
//! The state machine is pure. [`machine`] says what comes next, [`Table`] remembers it, [`Timers`]
//! say when to look again, [`RetryBudget`] keeps an outage from becoming a storm. All of it is
//! rebuilt from the changelog, so a restart at any point changes nothing.

mod binding;
mod budget;
mod codec;
pub mod machine;
mod table;
#[cfg(test)]
mod tests;
mod timers;

pub use binding::{Binding, Closed, State};
pub use budget::RetryBudget;
pub use table::Table;
pub use timers::Timers;
