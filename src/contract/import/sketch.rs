//! Everything that becomes of a source before it is written: parts, ties to the request, and open decisions.

use super::{Decision, Field, Part, PartKind, Topic, shown};
use crate::contract::raw::SourceKind;
use serde_json::{Map, Value, json};

/// A draft of a contract.
#[derive(Debug)]
pub struct Sketch {
    pub tool: String,
    pub kind: SourceKind,
    /// Where it was drawn from, one comment line each.
    pub origin: Vec<String>,
    pub media_type: Option<String>,
    /// The HTTP status that stands for a result.
    pub success: Option<u16>,
    /// An object, always.
    pub part: Part,
    /// The vendor's document is a list, which became the member `items`.
    pub is_list: bool,
    pub bind: Vec<Bind>,
    pub fresh: Option<Fresh>,
    /// Declared free text: place and characters.
    pub text: Vec<(String, u64)>,
    pub decisions: Vec<Decision>,
}

/// A field of the result that equals an argument of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    /// Pointer into the data.
    pub data: String,
    /// Name of the argument.
    pub argument: String,
    pub optional: bool,
    /// What the guess rests on.
    pub why: String,
}

/// The time that says how old the result is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fresh {
    pub at: String,
    pub why: String,
}

/// The member that a list at the top becomes.
pub const LIST: &str = "items";

/// An argument of the tool, as its own description has it.
#[derive(Clone, Debug)]
pub struct Argument {
    pub name: String,
    pub required: bool,
}

impl Sketch {
    /// A list at the top is no result: it becomes the one member of an object.
    pub fn wrap(part: Part, mut decisions: Vec<Decision>) -> Option<(Part, bool, Vec<Decision>)> {
        match part.kind {
            PartKind::Object(_) => Some((part, false, decisions)),
            PartKind::Scalar => None,
            PartKind::Array(_) => {
                for decision in &mut decisions {
                    decision.place = format!("/{LIST}{}", decision.place);
                }
                let field = Field { name: LIST.into(), required: true, nullable: false, part };
                let mut keywords = Map::new();
                keywords.insert("type".into(), json!("object"));
                Some((Part { kind: PartKind::Object(vec![field]), keywords, convert: None }, true, decisions))
            }
        }
    }

    /// Arguments and fields of the same name are probably the same fact.
    pub fn bind_by_name(&mut self, arguments: &[Argument]) {
        let fields: Vec<String> =
            self.fields().iter().filter(|field| is_identity(field)).map(|f| f.name.clone()).collect();
        for argument in arguments.iter().filter(|argument| fields.contains(&argument.name)) {
            self.bind.push(Bind {
                data: format!("/{}", argument.name),
                argument: argument.name.clone(),
                optional: !argument.required,
                why: "the argument and the field have the same name".into(),
            });
        }
        if self.bind.is_empty() {
            let names: Vec<String> = arguments.iter().map(|argument| shown(&argument.name)).collect();
            let known = if names.is_empty() { "none are known".to_owned() } else { names.join(", ") };
            let message = format!(
                "nothing ties the result to its request; add bind: (arguments: {known}), or say bound_by: correlation"
            );
            self.decisions.push(Decision { topic: Topic::Bind, place: String::new(), source: String::new(), message });
        }
    }

    pub fn fields(&self) -> &[Field] {
        match &self.part.kind {
            PartKind::Object(fields) => fields,
            PartKind::Scalar | PartKind::Array(_) => &[],
        }
    }
}

/// A string or an integer at the top can name what was asked for.
fn is_identity(field: &Field) -> bool {
    let is_typed = |kind: &str| field.part.keywords.get("type").and_then(Value::as_str) == Some(kind);
    matches!(field.part.kind, PartKind::Scalar) && (is_typed("string") || is_typed("integer"))
}
