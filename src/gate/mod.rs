pub mod reason;
