pub mod decode;
pub mod reason;
pub mod signature;
