#[cfg(feature = "worker")]
pub mod config;
pub mod gate;
#[cfg(feature = "worker")]
pub mod telemetry;
pub mod time;
