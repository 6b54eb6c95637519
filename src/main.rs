//! The program: reads the command line, runs one command, says how it ended.

use clap::Parser;
use std::process::ExitCode;
use toolgate::ops::{self, args::Cli};

fn main() -> ExitCode {
    ops::report(ops::run(Cli::parse()))
}
