pub mod contract;
pub mod gate;
pub mod time;
pub mod wire;
