pub mod gate;
pub mod log;
pub mod time;
pub mod wire;
