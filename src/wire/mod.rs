//! The formats of our own topics, and the few conversions that need no judgement.
//!
//! `proto/toolgate/v1` is the source; nothing here is written by hand twice. Generated messages
//! are what was *sent*: no field of theirs is trusted before `gate::decode` has looked at it.

pub mod cloudevents;
pub mod digest;
pub mod headers;
pub mod json;
mod redact;

pub use digest::Digest;
pub use headers::Headers;

/// The generated messages of `proto/toolgate/v1`.
#[allow(clippy::all, missing_debug_implementations, unreachable_pub, rustdoc::all)]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/toolgate.v1.rs"));
}
