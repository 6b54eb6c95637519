//! The formats of our own topics, and their conversions into types that say more.
//!
//! `proto/toolgate/v1` is the source; nothing here is written by hand twice. Generated messages
//! are what was *sent*: no field of theirs is trusted before `gate::decode` or a conversion in
//! this module has looked at it.

mod redact;

/// The generated messages of `proto/toolgate/v1`.
#[allow(clippy::all, missing_debug_implementations, unreachable_pub, rustdoc::all)]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/toolgate.v1.rs"));
}
