pub mod decimal;
pub mod reason;
pub mod refusal;
