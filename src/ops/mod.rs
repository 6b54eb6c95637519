//! The commands. Each serves one step of the day of the people who run this.

pub mod args;
mod cases;
mod check;
mod contract_import;
mod contract_new;
mod contract_proof;
mod demo;
mod describe;
mod diff;
mod explain;
mod idle;
mod json;
mod logs;
mod out;
mod run;
mod send;
mod settings;
mod tail;
mod topics;
mod vet;

use crate::log::{Fault, LogError};
use anyhow::Result;
use args::{Cli, Command, ConfigCommand, ContractCommand};
use clap::CommandFactory;
use std::process::ExitCode;

/// How a command ended, as the shell sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Ok,
    Failure,
    Usage,
    ContractFailed,
    BreakingChange,
    Temporary,
    BadConfiguration,
}

impl Exit {
    const fn of(fault: Fault) -> Exit {
        match fault {
            Fault::Configuration => Exit::BadConfiguration,
            Fault::Temporary => Exit::Temporary,
            Fault::Failure => Exit::Failure,
        }
    }

    /// The exit code; 75 and 78 are those of `sysexits.h`.
    pub const fn code(self) -> u8 {
        match self {
            Exit::Ok => 0,
            Exit::Failure => 1,
            Exit::Usage => 2,
            Exit::ContractFailed => 3,
            Exit::BreakingChange => 4,
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
    let config = cli.config.as_deref();
    match cli.command {
        Command::Run(args) => run::run(config, &args),
        Command::Demo(args) => demo::demo(&args),
        Command::Check(args) => check::check(&args.dir, args.json),
        Command::Vet(args) => vet::vet(&args),
        Command::Send(args) => send::send(config, &args),
        Command::Tail(args) => tail::tail(config, &args),
        Command::Explain(args) => explain::explain(args.reason.as_deref()).map(|()| Exit::Ok),
        Command::Config(ConfigCommand::Check) => run::config_check(config),
        Command::Contract(ContractCommand::Describe { tool, schemas }) => describe::describe(&tool, &schemas),
        Command::Contract(ContractCommand::New(args)) => contract_new::new(&args),
        Command::Contract(ContractCommand::Import(command)) => contract_import::import(&command),
        Command::Contract(ContractCommand::Diff(args)) => diff::diff(&args),
        Command::Topics(command) => topics::topics(config, &command),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "toolgate", &mut std::io::stdout());
            Ok(Exit::Ok)
        }
        Command::Man => {
            clap_mangen::Man::new(Cli::command()).render(&mut std::io::stdout())?;
            Ok(Exit::Ok)
        }
    }
}

/// Prints an error and gives the exit code for it. A reader that went away is no error.
pub fn report(result: Result<Exit>) -> ExitCode {
    match result {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) if out::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if error.is::<settings::BadConfiguration>() => {
            eprintln!("{error}");
            ExitCode::from(Exit::BadConfiguration.code())
        }
        Err(error) => {
            eprintln!("toolgate: {error:#}");
            let exit = error.downcast_ref::<LogError>().map_or(Exit::Failure, |error| Exit::of(error.fault()));
            ExitCode::from(exit.code())
        }
    }
}
