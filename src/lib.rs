#[cfg(feature = "worker")]
pub mod config;
pub mod gate;
pub mod time;
