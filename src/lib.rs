pub mod gate;
pub mod time;
pub mod wire;
