//! `toolgate contract new`: drafts a contract from example responses, and proves it by them.
//!
//! The examples are as hostile as responses: they are read by the gate's own parser within a contract's limits, and
//! nothing of them is printed.

use super::contract_import::read_bounded;
use super::contract_proof::{Example, prove};
use super::{Exit, out};
use crate::contract::import::infer::{Inference, identities, is_time, scalar_text};
use crate::contract::import::sketch::{Bind, Fresh, Sketch};
use crate::contract::import::{Decision, Part, PartKind, Topic, shown, tool_name};
use crate::contract::raw::SourceKind;
use crate::gate::json::write_node;
use crate::gate::parse::{Limits, Node, Tape};
use crate::time::Timestamp;
use crate::wire::json;
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct NewArgs {
    /// Name of the tool, as requests carry it.
    pub tool: String,
    /// An example of a good response; several show what varies.
    #[arg(long, value_name = "FILE", required = true)]
    pub response: Vec<PathBuf>,
    /// The request that the first example answers, as for vet.
    #[arg(long, value_name = "FILE")]
    pub request: Option<PathBuf>,
    /// How responses reach the gate; an MCP result is recognised.
    #[arg(long, value_enum, default_value = "http-json")]
    pub kind: Kind,
    /// Folder of the contracts; the draft is tools/<tool>/v1 below it.
    #[arg(long, value_name = "DIR", default_value = "schemas")]
    pub out: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    HttpJson,
    Webhook,
    CliJson,
}

/// A fixture's file is read up to this size.
const EXAMPLE_BYTES_MAX: usize = 1 << 20;
/// A field this close to the request says when the fact was observed.
const CLOSE_MS: i64 = 5 * 60_000;
/// Names of fields that say when a fact was observed, where no request tells.
const OBSERVED: [&str; 8] =
    ["observed_at", "updated_at", "as_of", "timestamp", "checked_at", "generated_at", "fetched_at", "time"];
/// Where an MCP result keeps what counts: bare, and in its JSON-RPC response.
const STRUCTURED: [&str; 2] = ["/structuredContent", "/result/structuredContent"];
const MADE_UP_MOMENT: &str = "2026-01-01T00:00:00Z";

/// Drafts a contract.
///
/// # Errors
/// An example can't be read, or there is something where the draft would be written.
pub(super) fn new(args: &NewArgs) -> Result<Exit> {
    if tool_name(&args.tool).as_deref() != Some(args.tool.as_str()) {
        let near = tool_name(&args.tool).map(|name| format!("; try {name}")).unwrap_or_default();
        bail!("{}: a tool's name has lower-case letters, digits, _ and dots{near}", shown(&args.tool));
    }
    let bodies: Vec<Vec<u8>> =
        args.response.iter().map(|file| read_bounded(file, EXAMPLE_BYTES_MAX)).collect::<Result<_>>()?;
    let mut tapes: Vec<Tape> = bodies.iter().map(|_| Tape::default()).collect();
    let mut roots = Vec::new();
    for ((tape, body), file) in tapes.iter_mut().zip(&bodies).zip(&args.response) {
        roots.push(parse(tape, body, file)?);
    }
    let mut request_tape = Tape::default();
    let request_text = args.request.as_ref().map(|file| read_request(file)).transpose()?;
    let request = match (&args.request, &request_text) {
        (Some(file), Some(text)) => Some(parse_request(text, &mut request_tape, file, &args.tool)?),
        _ => None,
    };
    let base = STRUCTURED.into_iter().find(|at| roots.iter().all(|root| down(*root, at).is_some())).unwrap_or_default();
    let nodes: Vec<Node<'_>> = roots.iter().filter_map(|root| down(*root, base)).collect();
    let mut sketch = draw(args, &nodes, !base.is_empty())?;
    let issued = request.and_then(|request| request.get("issued_at")?.as_str()).and_then(Timestamp::parse_rfc3339);
    tie(&mut sketch, nodes[0], request);
    let seen = observed(&mut sketch, nodes[0], issued);
    let now = [seen, issued].into_iter().flatten().max().or_else(|| Timestamp::parse_rfc3339(MADE_UP_MOMENT));
    let now = now.unwrap_or_default();
    let example = Example { base, now, default: default_case(args, request, roots[0], now) };
    let names: Vec<String> = args.response.iter().map(|file| fixture_name(file)).collect();
    let proof = prove(&sketch, &example, &names, &bodies, roots[0])?;
    let pack = Written::plan(&args.out, &sketch.tool, proof.files)?;
    write_pack(&args.out, &pack)?;
    print(&sketch, &pack.dir, &proof.missing)?;
    Ok(Exit::Ok)
}

fn parse<'t>(tape: &'t mut Tape, body: &'t [u8], file: &Path) -> Result<Node<'t>> {
    let document = tape.parse(body, &Limits::default()).map_err(|error| {
        let before = &body[..error.offset.min(body.len())];
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        anyhow!(
            "{}:{line}: {}: {}\n    help: an example is one JSON document within the default limits, as it came",
            file.display(),
            error.reason,
            error.what
        )
    })?;
    Ok(document.root())
}

fn down<'t>(root: Node<'t>, at: &str) -> Option<Node<'t>> {
    at.split('/').skip(1).try_fold(root, |node, name| node.get(name))
}

fn read_request(file: &Path) -> Result<String> {
    String::from_utf8(read_bounded(file, EXAMPLE_BYTES_MAX)?).map_err(|_| anyhow!("{}: is not UTF-8", file.display()))
}

fn parse_request<'t>(text: &'t str, tape: &'t mut Tape, file: &Path, tool: &str) -> Result<Node<'t>> {
    let node = json::parse(text, tape).map_err(|why| anyhow!("{}: {why}", file.display()))?;
    let request = json::request(node).map_err(|why| anyhow!("{}: {why}", file.display()))?;
    if request.tool != tool {
        bail!("{}: tool: the request is for {}, not for {tool}", file.display(), shown(&request.tool));
    }
    Ok(node)
}

fn draw(args: &NewArgs, nodes: &[Node<'_>], is_mcp: bool) -> Result<Sketch> {
    let mut inference = Inference::new(nodes.len());
    let part = inference.part("", nodes, "", 0);
    let Some((part, is_list, decisions)) = part.and_then(|part| Sketch::wrap(part, inference.decisions)) else {
        bail!(
            "{}: nothing can be drawn from this: a result is made of the members of an object or a list",
            args.response[0].display()
        );
    };
    let kind = match args.kind {
        _ if is_mcp => SourceKind::Mcp,
        Kind::HttpJson => SourceKind::HttpJson,
        Kind::Webhook => SourceKind::Webhook,
        Kind::CliJson => SourceKind::CliJson,
    };
    let below = if is_list { "/items" } else { "" };
    Ok(Sketch {
        tool: args.tool.clone(),
        kind,
        origin: vec![format!("Drawn from {} of the tool's responses; every guess is marked.", nodes.len())],
        media_type: None,
        success: None,
        part,
        is_list,
        bind: Vec::new(),
        fresh: None,
        text: inference.text.into_iter().map(|(place, chars)| (format!("{below}{place}"), chars)).collect(),
        decisions,
    })
}

/// Arguments whose value the example repeats.
fn tie(sketch: &mut Sketch, node: Node<'_>, request: Option<Node<'_>>) {
    let facts = if sketch.is_list { Vec::new() } else { identities(&sketch.part, node) };
    let arguments = request.and_then(|request| request.get("arguments"));
    for (name, value) in arguments.iter().flat_map(|arguments| arguments.members()) {
        let Some(text) = scalar_text(value).filter(|text| text.len() >= 2) else { continue };
        let is_named = |place: &String| place.rsplit('/').next() == Some(name);
        let equal: Vec<&String> = facts.iter().filter(|(_, fact)| *fact == text).map(|(place, _)| place).collect();
        if let Some(place) = equal.iter().find(|place| is_named(place)).or(equal.first()) {
            let why = "the argument and the field have the same value".to_owned();
            sketch.bind.push(Bind { data: (*place).clone(), argument: name.into(), optional: false, why });
        }
    }
    if sketch.bind.is_empty() {
        let hint = if request.is_some() {
            "no argument has a value of the example"
        } else {
            "give the request with --request"
        };
        let message =
            format!("nothing ties the result to its request ({hint}); add bind:, or say bound_by: correlation");
        sketch.decisions.push(Decision { topic: Topic::Bind, place: String::new(), source: String::new(), message });
    }
}

/// The time that says how old the example is, and its value.
fn observed(sketch: &mut Sketch, node: Node<'_>, issued: Option<Timestamp>) -> Option<Timestamp> {
    let mut found: Vec<(String, Timestamp)> = Vec::new();
    for (place, text) in if sketch.is_list { Vec::new() } else { identities(&sketch.part, node) } {
        if let Some(time) =
            Timestamp::parse_rfc3339(&text).filter(|_| part_at(&sketch.part, &place).is_some_and(is_time))
        {
            found.push((place, time));
        }
    }
    let rank = |place: &str| OBSERVED.iter().position(|name| place.rsplit('/').next() == Some(name));
    let close = |time: &Timestamp| issued.is_none_or(|issued| time.millis_since(issued).abs() <= CLOSE_MS);
    let best = found
        .iter()
        .filter(|(place, time)| close(time) && (issued.is_some() || rank(place).is_some()))
        .min_by_key(|(place, time)| (rank(place).unwrap_or(OBSERVED.len()), std::cmp::Reverse(*time)))?;
    let why = if issued.is_some() { "its time is close to the request's" } else { "by its name" };
    sketch.fresh = Some(Fresh { at: best.0.clone(), why: why.into() });
    Some(best.1)
}

fn part_at<'p>(part: &'p Part, place: &str) -> Option<&'p Part> {
    place.split('/').skip(1).try_fold(part, |part, name| match &part.kind {
        PartKind::Object(fields) => fields.iter().find(|field| field.name == name).map(|field| &field.part),
        PartKind::Scalar | PartKind::Array(_) => None,
    })
}

/// `default.json`: the request of the example, or one that is made up.
fn default_case(args: &NewArgs, request: Option<Node<'_>>, root: Node<'_>, now: Timestamp) -> String {
    let mut wanted = String::new();
    match request {
        Some(request) => write_node(request, &mut wanted),
        None => {
            let deadline = now.saturating_add_millis(60_000);
            let rpc = root.get("jsonrpc").and_then(|_| root.get("id")).map(|id| {
                let mut text = String::from(",\"rpc_id\":");
                write_node(id, &mut text);
                text
            });
            wanted = format!(
                "{{\"tool\":\"{}\",\"request_id\":\"req-example-1\",\"issued_at\":\"{now}\",\"deadline\":\"{deadline}\",\"arguments\":{{}}{}}}",
                args.tool,
                rpc.unwrap_or_default()
            );
        }
    }
    let ending = if args.kind == Kind::CliJson { "\"exit_code\": 0" } else { "\"status\": 200" };
    format!(
        "{{\n  \"now\": \"{now}\",\n  \"request\": {wanted},\n  \"transport\": {{\"content_type\": \"application/json\", {ending}}}\n}}\n"
    )
}

/// A folder's name out of a file's.
fn fixture_name(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let name: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(60).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "example".into() } else { name.into() }
}

fn print(sketch: &Sketch, dir: &Path, missing: &[String]) -> Result<()> {
    out::line(&format!("{}: drafted, {} guesses and decisions", dir.display(), sketch.decisions.len()))?;
    for decision in &sketch.decisions {
        let place = if decision.place.is_empty() { "the result".to_owned() } else { shown(&decision.place) };
        let mark = if decision.topic.blocks() { "must decide" } else { "decide" };
        out::line(&format!("  {mark}: {place}: {} [{}]", shown(&decision.message), decision.topic.name()))?;
    }
    for line in missing {
        out::line(&format!("  must decide: {line}"))?;
    }
    out::line(&format!("  next: decide, then run toolgate check {}", dir.display()))
}

/// The files of a draft, and where they go.
#[derive(Debug)]
pub(super) struct Written {
    pub dir: PathBuf,
    pub files: Vec<(String, Vec<u8>)>,
}

/// The schema of contract.yaml, which editors find from its first line.
const CONTRACT_SCHEMA: &str = include_str!("../../schemas/contract.schema.json");

impl Written {
    /// Plans `tools/<tool>/v1` below `out`.
    ///
    /// # Errors
    /// There is something already.
    pub(super) fn plan(out: &Path, tool: &str, files: Vec<(String, Vec<u8>)>) -> Result<Written> {
        let dir = out.join("tools").join(tool).join("v1");
        let Ok(entries) = fs::read_dir(&dir) else {
            if dir.exists() {
                bail!("{}: there is a file of this name", dir.display());
            }
            return Ok(Written { dir, files });
        };
        let mut names: Vec<String> =
            entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())).collect();
        names.sort();
        let holds = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        bail!(
            "{}: exists and holds {holds}; nothing was written\n    help: move it away, or draft into another folder with --out and compare",
            dir.display()
        )
    }
}

/// Writes a planned draft. No file is ever written over.
pub(super) fn write_pack(out: &Path, pack: &Written) -> Result<()> {
    fs::create_dir_all(&pack.dir).with_context(|| format!("{}: can't be made", pack.dir.display()))?;
    let schema = out.join("contract.schema.json");
    if !schema.exists() {
        create(&schema, CONTRACT_SCHEMA.as_bytes())?;
    }
    pack.files.iter().try_for_each(|(name, bytes)| create(&pack.dir.join(name), bytes))
}

fn create(path: &Path, bytes: &[u8]) -> Result<()> {
    use std::io::Write;
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(|| format!("{}: can't be made", parent.display()))?;
    }
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .with_context(|| format!("{}: can't be written", path.display()))?;
    file.write_all(bytes).with_context(|| format!("{}: can't be written", path.display()))
}
