//! The commands. Each serves one step of the day of the people who run this.

pub mod args;
mod cases;
mod check;
mod explain;
mod json;
mod out;
mod vet;

use anyhow::{Result, bail};
use args::{Cli, Command};
use std::process::ExitCode;

/// How a command ended, as the shell sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Ok,
    Failure,
    ContractFailed,
    Temporary,
    BadConfiguration,
}

impl Exit {
    /// The exit code; 75 and 78 are those of `sysexits.h`.
    pub const fn code(self) -> u8 {
        match self {
            Exit::Ok => 0,
            Exit::Failure => 1,
            Exit::ContractFailed => 3,
            Exit::Temporary => 75,
            Exit::BadConfiguration => 78,
        }
    }
}

/// Runs the command that was given.
///
/// # Errors
/// What a person should read; the caller prints it.
pub fn run(cli: Cli) -> Result<Exit> {
    match cli.command {
        Command::Check(args) => check::check(&args.dir, args.json),
        Command::Explain(args) => explain::explain(args.reason.as_deref()).map(|()| Exit::Ok),
        Command::Vet(args) => vet::vet(&args),
        _ => bail!("not here"),
    }
}

/// Prints an error and gives the exit code for it. A reader that went away is no error.
pub fn report(result: Result<Exit>) -> ExitCode {
    match result {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) if out::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("toolgate: {error:#}");
            ExitCode::from(Exit::Failure.code())
        }
    }
}
