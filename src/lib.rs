pub mod gate;
pub mod time;
