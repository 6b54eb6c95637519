//! The command line, as clap reads it.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Stands between tools and AI agents: admits tool responses as evidence, or refuses them.
///
/// Data goes to standard output, talk to standard error. Exit codes: 0 ok, 1 failure, 2 usage,
/// 3 a contract, fixture or case failed, 4 breaking change, 75 temporary failure, 78 bad configuration.
#[derive(Debug, Parser)]
#[command(name = "toolgate", version, max_term_width = 100)]
pub struct Cli {
    /// Configuration file; without it `toolgate.toml` is read where it exists.
    #[arg(long, global = true, env = "TOOLGATE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,

    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs the worker until it is told to stop (SIGTERM or SIGINT drain it).
    Run(RunArgs),
    /// Plays a bundled day through a worker on a fresh embedded log and shows what happened.
    Demo(DemoArgs),
    /// Loads contracts, prints what they guarantee, and runs their fixtures.
    Check(CheckArgs),
    /// Judges one response, or a folder of cases, without any log.
    Vet(Box<VetArgs>),
    /// Appends requests or responses to the log, one JSON object a line.
    Send(SendArgs),
    /// Prints the records of a topic; on Kafka the committed ones.
    Tail(TailArgs),
    /// Explains a reason code: what happened, what the agent saw, what to do.
    Explain(ExplainArgs),
    /// Checks the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Works with single contracts.
    #[command(subcommand)]
    Contract(ContractCommand),
    /// Works with the topics on a Kafka cluster.
    #[command(subcommand)]
    Topics(TopicsCommand),
    /// Prints a completion script for a shell.
    Completions {
        /// The shell to complete for.
        shell: clap_complete::Shell,
    },
    /// Prints the manual page (roff).
    Man,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// Stop once everything is judged and committed that was in the log when the worker became ready, no response waits for
    /// its request, and nothing new is there. On Kafka that means the partitions that this worker owns, up to their ends
    /// when it got them; without a share it waits for one. Retries and deadlines that are yet to come are not waited for.
    #[arg(long)]
    pub until_idle: bool,
    /// Go on although retention has removed records that were not judged.
    #[arg(long)]
    pub accept_gap: bool,
    /// Log file of the embedded log.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Folder of the contracts.
    #[arg(long, value_name = "DIR")]
    pub schemas: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Keep the log and files of the demo in this folder, instead of a temporary one.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// The day to play.
    #[arg(long, value_name = "FILE", default_value = "examples/day/day.json")]
    pub day: PathBuf,
    /// Folder of the contracts.
    #[arg(long, value_name = "DIR", default_value = "schemas")]
    pub schemas: PathBuf,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Folder of contracts, or of one contract version.
    #[arg(default_value = "schemas")]
    pub dir: PathBuf,
    /// Print one JSON object a contract.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct VetArgs {
    /// The outstanding request: {tool, request_id, issued_at, deadline, arguments, attempt?, contract_version?}.
    #[arg(long, value_name = "FILE", required_unless_present = "cases")]
    pub request: Option<PathBuf>,
    /// The response's body, read as bytes; `-` for standard input.
    #[arg(long, value_name = "FILE", required_unless_present = "cases")]
    pub response: Option<PathBuf>,
    /// Media type of the response; taken as the contract's first one where it is not given.
    #[arg(long, value_name = "TYPE")]
    pub content_type: Option<String>,
    /// HTTP status of the response.
    #[arg(long, value_name = "N", group = "ending")]
    pub status: Option<u16>,
    /// Exit code of the command.
    #[arg(long, value_name = "N", group = "ending", allow_negative_numbers = true)]
    pub exit_code: Option<i32>,
    /// The call brought no response.
    #[arg(long, value_name = "HOW", group = "ending")]
    pub failed: Option<FailedCall>,
    /// An upstream header; may be given several times.
    #[arg(long = "header", value_name = "NAME:VALUE")]
    pub headers: Vec<String>,
    /// The clock of the judgement; the machine's clock where it is not given.
    #[arg(long, value_name = "RFC3339")]
    pub now: Option<String>,
    /// Folder of the contracts.
    #[arg(long, value_name = "DIR", default_value = "schemas")]
    pub schemas: PathBuf,
    /// Folder with one file for each secret that signatures are checked with.
    #[arg(long, value_name = "DIR")]
    pub secrets: Option<PathBuf>,
    /// A folder of cases with a manifest.json, instead of one response.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["request", "response", "ending", "content_type", "headers", "now"])]
    pub cases: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailedCall {
    Timeout,
    Connection,
}

#[derive(Debug, Args)]
pub struct SendArgs {
    /// What to send.
    pub what: Sent,
    /// A file of JSON objects, one a line; `-` for standard input.
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// Log file of the embedded log.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sent {
    Requests,
    Responses,
}

#[derive(Debug, Args)]
pub struct TailArgs {
    /// The topic: requests, responses, results, quarantine, retries, audit, bindings, or its configured name.
    pub topic: String,
    /// Print one JSON object a record.
    #[arg(long)]
    pub json: bool,
    /// Wait for more records, until SIGINT or SIGTERM.
    #[arg(long, short)]
    pub follow: bool,
    /// Where to begin: with the oldest record that is left, or with what is written from now on.
    #[arg(long, value_enum, default_value = "start", value_name = "WHERE")]
    pub from: Begin,
    /// Log file of the embedded log.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

/// Where `tail` begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Begin {
    Start,
    End,
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A reason code such as DUPLICATE_MEMBER; without one, all are listed.
    pub reason: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Reads the configuration, reports every mistake, and prints what is in force.
    Check,
}

#[derive(Debug, PartialEq, Eq, Subcommand)]
pub enum TopicsCommand {
    /// Says what `apply` would do, and does nothing.
    Plan,
    /// Makes missing topics and corrects settings; never moves records or changes a number of partitions.
    Apply,
    /// Explains every mismatch; fails where a promise would break.
    Verify,
    /// Lists what to grant to the worker's user; asks no broker.
    Rights,
}

#[derive(Debug, Subcommand)]
pub enum ContractCommand {
    /// Says what an agent's instructions should say about a contract's results.
    Describe {
        /// The tool, or tool@version.
        tool: String,
        /// Folder of the contracts.
        #[arg(long, value_name = "DIR", default_value = "schemas")]
        schemas: PathBuf,
    },
    /// Drafts a contract from example responses; every guess is marked.
    New(super::contract_new::NewArgs),
    /// Drafts contracts from a published schema, never looser than it.
    #[command(subcommand)]
    Import(super::contract_import::ImportCommand),
    /// Says what changed between two contracts, or two folders of them, and whether it needs a new version.
    Diff(DiffArgs),
}

#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The version before: a folder with contract.yaml, or a folder of contracts.
    pub old: PathBuf,
    /// The version after: the same kind of folder.
    pub new: PathBuf,
    /// Recorded traffic that both judge: {"request", "response", "now"} a line; may be given several times.
    #[arg(long, value_name = "FILE")]
    pub traffic: Vec<PathBuf>,
    /// Folder with one file for each secret that signatures are checked with; the fixtures' secrets without it.
    #[arg(long, value_name = "DIR")]
    pub secrets: Option<PathBuf>,
    /// Responses that are named for each kind of difference.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub examples: usize,
    /// Print one JSON object a comparison.
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Print a report for a pull request.
    #[arg(long)]
    pub markdown: bool,
}
