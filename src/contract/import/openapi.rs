//! Draws contracts from the responses of an OpenAPI 3.0 or 3.1 document.

use super::flat::escape;
use super::sketch::{Argument, Sketch};
use super::source::Source;
use super::{Asked, ImportError, shown, tighten, tool_name};
use crate::contract::raw::SourceKind;
use serde_json::{Map, Value};

const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
/// Operations that an error lists.
const LISTED_MAX: usize = 20;

/// What the person asked for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// An operationId, or `METHOD /path`.
    pub operation: String,
    pub status: u16,
}

struct Operation<'s> {
    at: String,
    method: &'s str,
    path: &'s str,
    id: Option<&'s str>,
    value: &'s Value,
}

/// Draws the contract of one operation's response.
///
/// # Errors
/// The document is none of these versions, has no such response, or one that can't be drawn tightly.
pub fn sketch(source: &Source, wanted: &Wanted, file: &str, asked: &Asked) -> Result<Sketch, ImportError> {
    check_version(&source.value)?;
    let operation = find(&source.value, &wanted.operation)?;
    let (response_at, response) = response(&source.value, &operation, wanted.status)?;
    let (media_type, schema_at) = content(&response_at, response)?;
    let named =
        operation.id.and_then(tool_name).or_else(|| tool_name(&format!("{} {}", operation.method, operation.path)));
    let Some(tool) = named else {
        return Err(ImportError::new(
            &operation.at,
            "no name of a contract can be made of the operation's",
            "give it an operationId",
        ));
    };
    let (part, decisions) = tighten(&source.value, &schema_at, asked)?;
    let Some((part, is_list, decisions)) = Sketch::wrap(part, decisions) else {
        return Err(ImportError::new(
            &schema_at,
            "the response is neither an object nor a list",
            "a scalar is no evidence",
        ));
    };
    let what = format!("{} {}", operation.method.to_ascii_uppercase(), operation.path);
    let mut sketch = Sketch {
        tool,
        kind: SourceKind::HttpJson,
        origin: vec![
            format!("Drawn from the {} response of {what} in {file}, {schema_at}", wanted.status),
            format!("source {}", source.digest),
        ],
        media_type: (media_type != "application/json").then_some(media_type),
        success: Some(wanted.status),
        part,
        is_list,
        bind: Vec::new(),
        fresh: None,
        text: Vec::new(),
        decisions,
    };
    sketch.bind_by_name(&parameters(&source.value, &operation));
    Ok(sketch)
}

fn check_version(document: &Value) -> Result<(), ImportError> {
    let version = document.get("openapi").and_then(Value::as_str);
    if version.is_some_and(|version| version.starts_with("3.0.") || version.starts_with("3.1.")) {
        return Ok(());
    }
    let help = "convert it to OpenAPI 3.0 or 3.1 first";
    Err(match version {
        Some(version) => ImportError::new("/openapi", format!("version {} is not read", shown(version)), help),
        None => ImportError::new("/openapi", "this is no OpenAPI 3 document", help),
    })
}

fn operations(document: &Value) -> Vec<Operation<'_>> {
    let mut found = Vec::new();
    for (path, item) in document.get("paths").and_then(Value::as_object).into_iter().flatten() {
        for method in METHODS {
            if let Some(value) = item.get(method) {
                let at = format!("/paths/{}/{method}", escape(path));
                found.push(Operation { at, method, path, id: value.get("operationId").and_then(Value::as_str), value });
            }
        }
    }
    found
}

fn find<'s>(document: &'s Value, wanted: &str) -> Result<Operation<'s>, ImportError> {
    let by_place = wanted.split_once(' ');
    let is_it = |operation: &Operation<'_>| match by_place {
        Some((method, path)) => operation.method.eq_ignore_ascii_case(method) && operation.path == path.trim(),
        None => operation.id == Some(wanted),
    };
    let mut all = operations(document);
    if let Some(index) = all.iter().position(is_it) {
        return Ok(all.swap_remove(index));
    }
    let names: Vec<String> = all
        .iter()
        .take(LISTED_MAX)
        .map(|operation| match operation.id {
            Some(id) => shown(id),
            None => format!("\"{} {}\"", operation.method.to_ascii_uppercase(), shown(operation.path)),
        })
        .collect();
    let more = if all.len() > LISTED_MAX { format!(", and {} more", all.len() - LISTED_MAX) } else { String::new() };
    let help = format!("it has: {}{more}", names.join(", "));
    Err(ImportError::new("/paths", format!("there is no operation {}", shown(wanted)), help))
}

/// Follows a reference to a response or parameter; these do not chain.
fn resolved<'s>(document: &'s Value, at: String, value: &'s Value) -> Result<(String, &'s Value), ImportError> {
    let Some(reference) = value.get("$ref").and_then(Value::as_str) else { return Ok((at, value)) };
    let target = reference.strip_prefix('#').and_then(|local| Some((local.to_owned(), document.pointer(local)?)));
    target.ok_or_else(|| {
        let help = "copy it into the document and refer to it by #/components/...; nothing is fetched";
        ImportError::new(&format!("{at}/$ref"), "the reference leads out of this document, or nowhere", help)
    })
}

fn response<'s>(
    document: &'s Value,
    operation: &Operation<'s>,
    status: u16,
) -> Result<(String, &'s Value), ImportError> {
    let at = format!("{}/responses", operation.at);
    let responses = operation.value.get("responses").and_then(Value::as_object);
    let class = format!("{}XX", status / 100);
    for name in [status.to_string(), class.clone(), class.to_ascii_lowercase()] {
        if let Some(response) = responses.and_then(|responses| responses.get(&name)) {
            return resolved(document, format!("{at}/{name}"), response);
        }
    }
    let names: Vec<String> = responses.into_iter().flatten().map(|(name, _)| shown(name)).collect();
    let help = format!("it has: {}; choose one with --status", names.join(", "));
    Err(ImportError::new(&at, format!("there is no response {status}"), help))
}

/// The media type and schema of a JSON body.
fn content(at: &str, response: &Value) -> Result<(String, String), ImportError> {
    let none = Map::new();
    let content = response.get("content").and_then(Value::as_object).unwrap_or(&none);
    let plain = |name: &str| name.split(';').next().unwrap_or(name).trim().to_ascii_lowercase();
    let rank = |name: &str| match plain(name).as_str() {
        "application/json" => Some(0),
        other if other.ends_with("+json") => Some(1),
        _ => None,
    };
    let best = content.iter().filter_map(|(name, body)| Some((rank(name)?, name, body))).min_by_key(|(rank, ..)| *rank);
    match best {
        Some((_, name, body)) if body.get("schema").is_some() => {
            Ok((plain(name), format!("{at}/content/{}/schema", escape(name))))
        }
        Some((_, name, _)) => {
            let place = format!("{at}/content/{}", escape(name));
            Err(ImportError::new(&place, "the body has no schema", "start from an example: toolgate contract new"))
        }
        None => Err(ImportError::new(
            &format!("{at}/content"),
            "the response has no JSON body",
            "an answer without a body is written by hand: source.empty: success",
        )),
    }
}

fn parameters(document: &Value, operation: &Operation<'_>) -> Vec<Argument> {
    let item = operation.at.rfind('/').and_then(|cut| document.pointer(&operation.at[..cut]));
    let lists =
        [item, Some(operation.value)].into_iter().flatten().filter_map(|value| value.get("parameters")?.as_array());
    let mut found: Vec<Argument> = Vec::new();
    for parameter in lists.flatten() {
        let Ok((_, parameter)) = resolved(document, String::new(), parameter) else { continue };
        let Some(name) = parameter.get("name").and_then(Value::as_str) else { continue };
        let is_path = parameter.get("in").and_then(Value::as_str) == Some("path");
        let is_query = parameter.get("in").and_then(Value::as_str) == Some("query");
        if (is_path || is_query) && !found.iter().any(|known| known.name == name) {
            let required = is_path || parameter.get("required") == Some(&Value::Bool(true));
            found.push(Argument { name: name.into(), required });
        }
    }
    found
}
