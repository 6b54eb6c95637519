#[cfg(feature = "worker")]
pub mod config;
pub mod contract;
pub mod gate;
#[cfg(feature = "worker")]
pub mod telemetry;
pub mod time;
pub mod wire;
