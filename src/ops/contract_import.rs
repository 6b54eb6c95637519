//! `toolgate contract import`: drafts contracts from what somebody publishes about a tool.

use super::contract_new::{Written, write_pack};
use super::{Exit, json::Object, out};
use crate::contract::import::mcp::{self, Listed};
use crate::contract::import::openapi::{self, Wanted};
use crate::contract::import::sketch::Sketch;
use crate::contract::import::source::{self, Source};
use crate::contract::import::{Asked, ImportError, shown, write};
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, Subcommand};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    /// From the result of an MCP server's tools/list: each tool with an outputSchema.
    Mcp {
        /// The result of tools/list, as JSON.
        file: PathBuf,
        /// Only this tool.
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        #[command(flatten)]
        draft: DraftArgs,
    },
    /// From one response of an OpenAPI 3.0 or 3.1 document.
    Openapi {
        /// The document, as JSON or YAML.
        file: PathBuf,
        /// The operation: its operationId, or "METHOD /path".
        #[arg(long, value_name = "ID")]
        operation: String,
        /// The response to draw from.
        #[arg(long, value_name = "N", default_value_t = 200)]
        status: u16,
        #[command(flatten)]
        draft: DraftArgs,
    },
}

#[derive(Debug, Args)]
pub struct DraftArgs {
    /// Folder of the contracts; drafts are tools/<tool>/v1 below it.
    #[arg(long, value_name = "DIR", default_value = "schemas")]
    pub out: PathBuf,
    /// A place of the result to leave out, such as /comments/*/author; may be given several times.
    #[arg(long, value_name = "POINTER")]
    pub without: Vec<String>,
    /// Print one JSON object a draft.
    #[arg(long)]
    pub json: bool,
}

/// Drafts what the command names.
///
/// # Errors
/// The source can't be read or drawn from, or there is something where a draft would be written.
pub(super) fn import(command: &ImportCommand) -> Result<Exit> {
    match command {
        ImportCommand::Mcp { file, tool, draft } => import_mcp(file, tool.as_deref(), draft),
        ImportCommand::Openapi { file, operation, status, draft } => {
            let source = read(file)?;
            let wanted = Wanted { operation: operation.clone(), status: *status };
            let sketch =
                openapi::sketch(&source, &wanted, &name_of(file), &asked(draft)).map_err(|why| in_file(file, &why))?;
            finish(&[sketch], draft)
        }
    }
}

fn import_mcp(file: &Path, only: Option<&str>, draft: &DraftArgs) -> Result<Exit> {
    let source = read(file)?;
    let tools = mcp::tools(&source).map_err(|why| in_file(file, &why))?;
    let wanted: Vec<&Listed> = tools.iter().filter(|tool| only.is_none_or(|only| only == tool.name)).collect();
    if wanted.is_empty() {
        let names: Vec<String> = tools.iter().map(|tool| shown(&tool.name)).collect();
        bail!("{}: there is no such tool; it has: {}", file.display(), names.join(", "));
    }
    let (with, without): (Vec<&Listed>, Vec<&Listed>) = wanted.into_iter().partition(|tool| tool.has_output);
    for tool in &without {
        eprintln!(
            "{}: {}: {} has no outputSchema, so its answer may be anything\n    help: record an answer and start from it: toolgate contract new TOOL --response FILE",
            file.display(),
            tool.at,
            shown(&tool.name)
        );
    }
    if with.is_empty() {
        bail!("{}: no tool here says what it answers", file.display());
    }
    let mut sketches = Vec::new();
    for tool in with {
        sketches.push(mcp::sketch(&source, tool, &name_of(file), &asked(draft)).map_err(|why| in_file(file, &why))?);
    }
    finish(&sketches, draft)
}

fn asked(draft: &DraftArgs) -> Asked {
    Asked { without: draft.without.iter().cloned().collect() }
}

fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn in_file(file: &Path, error: &ImportError) -> anyhow::Error {
    anyhow!("{}: {error}", file.display())
}

fn read(file: &Path) -> Result<Source> {
    Source::read(&read_bounded(file, source::BYTES_MAX)?).map_err(|why| in_file(file, &why))
}

/// Reads a file that is no larger than `bytes_max`, whatever it claims to be.
pub(super) fn read_bounded(file: &Path, bytes_max: usize) -> Result<Vec<u8>> {
    let opened = File::open(file).with_context(|| format!("{}: can't be read", file.display()))?;
    let mut bytes = Vec::new();
    opened
        .take(bytes_max as u64 + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("{}: can't be read", file.display()))?;
    if bytes.len() > bytes_max {
        bail!("{}: the file is larger than {bytes_max} bytes; cut it down to what is needed", file.display());
    }
    Ok(bytes)
}

/// Writes all drafts or none, and says what is to be decided.
fn finish(sketches: &[Sketch], draft: &DraftArgs) -> Result<Exit> {
    let packs: Vec<(&Sketch, Written)> = sketches
        .iter()
        .map(|sketch| {
            let files = vec![
                ("contract.yaml".to_owned(), write::contract(sketch).into_bytes()),
                ("data.schema.json".to_owned(), write::data_schema(&sketch.part).into_bytes()),
            ];
            Ok((sketch, Written::plan(&draft.out, &sketch.tool, files)?))
        })
        .collect::<Result<_>>()?;
    let mut folders: Vec<&Path> = packs.iter().map(|(_, pack)| pack.dir.as_path()).collect();
    folders.sort_unstable();
    if let Some(twice) = folders.windows(2).find(|pair| pair[0] == pair[1]) {
        bail!("{}: two tools would become this contract; import one of them with --tool", twice[0].display());
    }
    for (sketch, pack) in &packs {
        write_pack(&draft.out, pack)?;
        if draft.json { out::line(&as_json(sketch, &pack.dir))? } else { print(sketch, &pack.dir)? }
    }
    Ok(Exit::Ok)
}

fn print(sketch: &Sketch, dir: &Path) -> Result<()> {
    let blocking = sketch.decisions.iter().filter(|decision| decision.topic.blocks()).count();
    out::line(&format!(
        "{}: drafted, {} decisions, {blocking} before it loads",
        dir.display(),
        sketch.decisions.len()
    ))?;
    for decision in &sketch.decisions {
        let place = if decision.place.is_empty() { "the result".to_owned() } else { shown(&decision.place) };
        let mark = if decision.topic.blocks() { "must decide" } else { "decide" };
        out::line(&format!("  {mark}: {place}: {} [{}]", shown(&decision.message), decision.topic.name()))?;
    }
    out::line("  next: add fixtures/accept and fixtures/reject from recorded answers, then run toolgate check")
}

fn as_json(sketch: &Sketch, dir: &Path) -> String {
    let decisions: Vec<String> = sketch
        .decisions
        .iter()
        .map(|decision| {
            let mut object = Object::new();
            object.text("topic", decision.topic.name());
            object.bool("blocks", decision.topic.blocks());
            object.text("place", &decision.place);
            object.text("source", &decision.source);
            object.text("message", &decision.message);
            object.end()
        })
        .collect();
    let mut object = Object::new();
    object.text("dir", &dir.display().to_string());
    object.text("tool", &sketch.tool);
    object.raw("decisions", &format!("[{}]", decisions.join(",")));
    object.end()
}
