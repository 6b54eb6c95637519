//! MCP results: the JSON-RPC frame and the CallToolResult around `structuredContent`.
//!
//! Revisions 2025-06-18, 2025-11-25 and 2026-07-28 differ, for a gate, in one member: the last
//! one adds `resultType`, whose only value that is a result is `complete`. `content` is written
//! for a model and never read here.

use crate::contract::raw::Frame;
use crate::gate::cond::same_value;
use crate::gate::parse::{Kind, Limits, Node, Tape};
use crate::gate::reason::Reason;
use crate::gate::refusal::Diagnosis;

/// What an MCP document turned out to be.
#[derive(Debug)]
pub(super) enum Mcp<'a> {
    /// `structuredContent`: any JSON value, still to be adapted and validated.
    Structured(Node<'a>),
    /// `isError: true`: a failure of the tool, whatever else the result holds.
    ToolError,
    /// A JSON-RPC error with this code.
    RpcError(i64),
}

/// The id that the dispatcher put on the wire, as it must come back: a string is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RpcId<'a> {
    /// The request id, as a string.
    RequestId(&'a str),
    /// JSON text that the dispatcher has announced: `1` or `"1"`.
    Json(&'a str),
}

impl RpcId<'_> {
    fn is(self, node: Node<'_>) -> bool {
        match self {
            RpcId::RequestId(text) => node.as_str() == Some(text),
            RpcId::Json(json) => {
                let mut tape = Tape::default();
                tape.parse(json.as_bytes(), &Limits::default()).is_ok_and(|id| same_value(id.root(), node))
            }
        }
    }
}

type Refused = (Reason, Box<Diagnosis>);

/// Unwraps the frame that the contract declares and the CallToolResult in it.
pub(super) fn unwrap<'a>(root: Node<'a>, frame: Frame, id: RpcId<'_>) -> Result<Mcp<'a>, Refused> {
    let framed = match frame {
        Frame::Jsonrpc => true,
        Frame::Bare => false,
        Frame::Either => root.get("jsonrpc").is_some(),
    };
    if !framed {
        return call_tool_result(root, "");
    }
    if root.get("jsonrpc").and_then(|version| version.as_str()) != Some("2.0") {
        return Err(mismatch("/jsonrpc", "the string 2.0", root.get("jsonrpc")));
    }
    // An answer to another id is no answer to this request, not even a refused one.
    if !root.get("id").is_some_and(|node| id.is(node)) {
        let diagnosis = Diagnosis {
            keyword: "id".into(),
            instance_path: "/id".into(),
            expected: "the id of the request, by type and value".into(),
            found: root.get("id").map_or("nothing", |node| node.kind().name()),
            detail: "the JSON-RPC id is not the request's",
            ..Diagnosis::default()
        };
        return Err((Reason::UnknownRequest, Box::new(diagnosis)));
    }
    match (root.get("result"), root.get("error")) {
        (Some(result), None) => call_tool_result(result, "/result"),
        (None, Some(error)) => match error.get("code").and_then(|code| code.as_i64()) {
            Some(code) => Ok(Mcp::RpcError(code)),
            None => Err(mismatch("/error/code", "an integer", error.get("code"))),
        },
        (Some(_), Some(error)) => Err(mismatch("/error", "nothing beside a result", Some(error))),
        (None, None) => Err(mismatch("/result", "a result or an error", None)),
    }
}

fn call_tool_result<'a>(result: Node<'a>, at: &str) -> Result<Mcp<'a>, Refused> {
    if result.kind() != Kind::Object {
        return Err(mismatch(at, "an object", Some(result)));
    }
    match result.get("isError").map(|flag| (flag.as_bool(), flag)) {
        Some((Some(true), _)) => return Ok(Mcp::ToolError),
        Some((None, flag)) => return Err(mismatch(&format!("{at}/isError"), "true or false", Some(flag))),
        Some((Some(false), _)) | None => {}
    }
    if let Some(kind) = result.get("resultType")
        && kind.as_str() != Some("complete")
    {
        return Err(mismatch(&format!("{at}/resultType"), "complete", Some(kind)));
    }
    result
        .get("structuredContent")
        .map(Mcp::Structured)
        .ok_or_else(|| mismatch(&format!("{at}/structuredContent"), "a value", None))
}

fn mismatch(at: &str, expected: &str, found: Option<Node<'_>>) -> Refused {
    let diagnosis = Diagnosis {
        keyword: "mcp".into(),
        instance_path: at.into(),
        expected: expected.into(),
        found: found.map_or("nothing", |node| node.kind().name()),
        detail: "the document is no CallToolResult that could be evidence",
        ..Diagnosis::default()
    };
    (Reason::AdapterMismatch, Box::new(diagnosis))
}

/// Where `structuredContent` stands, for diagnoses.
pub(super) fn base_pointer(root: Node<'_>) -> &'static str {
    let framed = root.get("jsonrpc").is_some();
    if framed { "/result/structuredContent" } else { "/structuredContent" }
}
