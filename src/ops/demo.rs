//! `toolgate demo`.
use super::{Exit, args::DemoArgs};
use anyhow::Result;
pub(super) fn demo(_: &DemoArgs) -> Result<Exit> {
    Ok(Exit::Failure)
}
