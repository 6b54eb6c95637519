//! Draws contracts from the result of MCP's `tools/list` (2025-06-18 and later: `outputSchema`).

use super::flat::{escape, list};
use super::sketch::{Argument, Sketch};
use super::source::Source;
use super::{Asked, ImportError, tighten, tool_name};
use crate::contract::raw::SourceKind;
use serde_json::Value;

/// A tool of the list, and whether it says what it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The server's own name.
    pub name: String,
    /// Pointer to the tool.
    pub at: String,
    pub has_output: bool,
}

/// The tools of a `tools/list` result: bare, in its JSON-RPC response, or the list alone.
///
/// # Errors
/// There is no list of tools.
pub fn tools(source: &Source) -> Result<Vec<Listed>, ImportError> {
    let at = ["/tools", "/result/tools", ""]
        .into_iter()
        .find(|at| source.value.pointer(at).is_some_and(Value::is_array))
        .ok_or_else(|| ImportError::new("", "no list of tools", "give the result of tools/list: {\"tools\": [...]}"))?;
    let tools = source.value.pointer(at).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut listed: Vec<Listed> = Vec::new();
    for (i, tool) in tools.iter().enumerate() {
        let at = format!("{at}/{i}");
        let Some(name) = tool.get("name").and_then(Value::as_str) else {
            return Err(ImportError::new(&at, "the tool has no name", "give the result of tools/list as it came"));
        };
        if listed.iter().any(|known| known.name == name) {
            return Err(ImportError::new(
                &at,
                "two tools have this name",
                "a client can't tell them apart; ask the server's author",
            ));
        }
        listed.push(Listed {
            name: name.into(),
            at,
            has_output: tool.get("outputSchema").is_some_and(Value::is_object),
        });
    }
    Ok(listed)
}

/// Draws the contract of one tool.
///
/// # Errors
/// Its schema can't be drawn tightly.
pub fn sketch(source: &Source, listed: &Listed, file: &str, asked: &Asked) -> Result<Sketch, ImportError> {
    let at = format!("{}/outputSchema", listed.at);
    let Some(tool) = tool_name(&listed.name) else {
        return Err(ImportError::new(&listed.at, "no name of a contract can be made of the tool's", "rename the tool"));
    };
    // References of the schema are relative to the schema, which is a document of its own.
    let schema = source.value.pointer(&at).cloned().unwrap_or(Value::Null);
    let (part, decisions) = tighten(&schema, "", asked).map_err(|error| within(&at, error))?;
    let Some((part, is_list, mut decisions)) = Sketch::wrap(part, decisions) else {
        return Err(ImportError::new(&at, "the structured content is no object", "MCP demands an object"));
    };
    decisions.iter_mut().for_each(|decision| decision.source = format!("{at}{}", decision.source));
    let mut sketch = Sketch {
        tool,
        kind: SourceKind::Mcp,
        origin: vec![
            format!("Drawn from the outputSchema of the MCP tool {} in {file}, {at}", listed.name),
            format!("source {}", source.digest),
        ],
        media_type: None,
        success: None,
        part,
        is_list,
        bind: Vec::new(),
        fresh: None,
        text: Vec::new(),
        decisions,
    };
    sketch.bind_by_name(&arguments(source.value.pointer(&format!("{}/inputSchema", listed.at))));
    Ok(sketch)
}

fn within(at: &str, error: ImportError) -> ImportError {
    ImportError { pointer: format!("{at}{}", error.pointer), ..error }
}

fn arguments(schema: Option<&Value>) -> Vec<Argument> {
    let Some(members) = schema.and_then(Value::as_object) else { return Vec::new() };
    let required = list(members, "required");
    let named = members.get("properties").and_then(Value::as_object).into_iter().flatten();
    named
        .map(|(name, _)| Argument { name: name.clone(), required: required.iter().any(|r| r.as_str() == Some(name)) })
        .filter(|argument| escape(&argument.name) == argument.name)
        .collect()
}
