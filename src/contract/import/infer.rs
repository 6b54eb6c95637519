//! Draws parts from example documents. Everything is a guess, and says so.

use super::flat::escape;
use super::strings;
use super::tighten::{FIELDS_MAX, keywords};
use super::{Decision, Field, Part, PartKind, Topic, is_field_name};
use crate::gate::parse::{Kind, Node};
use serde_json::{Value, json};

/// Levels of a result.
const DEPTH_MAX: usize = 5;
/// Larger integers lose digits in other readers: as text they keep them.
const EXACT_DIGITS: usize = 15;

/// What examples of one response have in common.
#[derive(Debug, Default)]
pub struct Inference {
    pub decisions: Vec<Decision>,
    /// Free text: place and characters.
    pub text: Vec<(String, u64)>,
    examples: usize,
}

impl Inference {
    pub fn new(examples: usize) -> Inference {
        Inference { examples, ..Inference::default() }
    }

    /// The part that all of `nodes` are values of; nothing where it is left out.
    pub fn part(&mut self, name: &str, nodes: &[Node<'_>], place: &str, depth: usize) -> Option<Part> {
        let kind = nodes.first()?.kind();
        let is_same = |node: &Node<'_>| node.kind() == kind || (node.as_bool().is_some() && is_bool(kind));
        if !nodes.iter().all(is_same) {
            return self.left_out(place, "the examples have values of different types here");
        }
        match kind {
            Kind::Null => self.left_out(place, "it is null in every example"),
            Kind::True | Kind::False => Some(Part::scalar(keywords([("type", json!("boolean"))]))),
            Kind::Number => Some(self.number(name, nodes, place)),
            Kind::String => self.string(name, nodes, place),
            Kind::Array | Kind::Object if depth >= DEPTH_MAX => {
                self.left_out(place, "it nests deeper than five levels; take single fields of it")
            }
            Kind::Array => self.list(name, nodes, place, depth),
            Kind::Object => self.object(nodes, place, depth),
        }
    }

    fn decide(&mut self, topic: Topic, place: &str, message: String) {
        self.decisions.push(Decision { topic, place: place.into(), source: String::new(), message });
    }

    fn guess(&mut self, place: &str, what: &str) {
        let from = if self.examples == 1 { "1 example".to_owned() } else { format!("{} examples", self.examples) };
        self.decide(Topic::Guess, place, format!("guessed from {from}: {what}"));
    }

    fn left_out<T>(&mut self, place: &str, why: &str) -> Option<T> {
        self.decide(Topic::LeftOut, place, why.into());
        None
    }

    fn string(&mut self, name: &str, nodes: &[Node<'_>], place: &str) -> Option<Part> {
        let values: Vec<&str> = nodes.iter().filter_map(Node::as_str).collect();
        let Some(guess) = strings::guess(name, &values) else {
            return self.left_out(place, "long text; an agent decides by facts");
        };
        self.guess(place, &guess.why);
        self.text.extend(guess.free_text.map(|chars| (place.to_owned(), chars)));
        let mut own =
            if guess.keywords.contains_key("enum") { keywords([]) } else { keywords([("type", json!("string"))]) };
        own.extend(guess.keywords);
        Some(Part { convert: guess.convert, ..Part::scalar(own) })
    }

    fn number(&mut self, name: &str, nodes: &[Node<'_>], place: &str) -> Part {
        let lexemes: Vec<&str> = nodes.iter().filter_map(Node::lexeme).collect();
        let is_whole = lexemes.iter().all(|text| text.bytes().all(|b| b.is_ascii_digit() || b == b'-'));
        let digits = lexemes
            .iter()
            .map(|text| {
                text.bytes().take_while(|b| !matches!(b, b'.' | b'e' | b'E')).filter(u8::is_ascii_digit).count()
            })
            .max()
            .unwrap_or(1);
        let is_negative = lexemes.iter().any(|text| text.starts_with('-'));
        let names_thing = name == "id" || name.ends_with("_id") || name.ends_with("Id");
        if is_whole && !is_negative && (names_thing || digits > EXACT_DIGITS) {
            self.guess(place, "an identifier, whose digits are kept as text");
            let own =
                keywords([("type", json!("string")), ("pattern", json!(format!("^[0-9]{{1,{}}}$", digits.max(20))))]);
            return Part { convert: Some("string"), ..Part::scalar(own) };
        }
        let most = 10i64.pow(digits.min(EXACT_DIGITS) as u32 + 1) - 1;
        let kind = if is_whole { "integer" } else { "number" };
        self.guess(place, &format!("{kind} with one digit more than was seen"));
        let least = if is_negative { -most } else { 0 };
        Part::scalar(keywords([("type", json!(kind)), ("minimum", json!(least)), ("maximum", json!(most))]))
    }

    fn list(&mut self, name: &str, nodes: &[Node<'_>], place: &str, depth: usize) -> Option<Part> {
        let items: Vec<Node<'_>> = nodes.iter().flat_map(Node::items).collect();
        if items.is_empty() {
            return self.left_out(place, "the list is empty in every example");
        }
        let longest = nodes.iter().map(Node::len).max().unwrap_or(0);
        let most = [10, 20, 50, 100, 200, 500, 1000].into_iter().find(|step| *step >= longest * 2).unwrap_or(1000);
        let item = self.part(name, &items, &format!("{place}/*"), depth + 1)?;
        self.guess(place, &format!("a list of at most {most}"));
        let own = keywords([("type", json!("array")), ("maxItems", json!(most))]);
        Some(Part { kind: PartKind::Array(Box::new(item)), keywords: own, convert: None })
    }

    fn object(&mut self, nodes: &[Node<'_>], place: &str, depth: usize) -> Option<Part> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in nodes.iter().flat_map(Node::members) {
            if !names.contains(&name) && names.len() <= 4 * FIELDS_MAX {
                names.push(name);
            }
        }
        let mut fields = Vec::new();
        for name in names {
            let inner = format!("{place}/{}", escape(name));
            if !is_field_name(name) || fields.len() == FIELDS_MAX {
                let _: Option<()> =
                    self.left_out(&inner, "no field of a result can have this name, or there are more than 64");
                continue;
            }
            fields.extend(self.field(name, nodes, &inner, depth));
        }
        if fields.is_empty() {
            return self.left_out(place, "nothing in it can be guessed");
        }
        Some(Part { kind: PartKind::Object(fields), keywords: keywords([("type", json!("object"))]), convert: None })
    }

    fn field(&mut self, name: &str, objects: &[Node<'_>], place: &str, depth: usize) -> Option<Field> {
        let all: Vec<Node<'_>> = objects.iter().filter_map(|object| object.get(name)).collect();
        let nullable = all.iter().any(Node::is_null);
        let values: Vec<Node<'_>> = all.iter().filter(|node| !node.is_null()).copied().collect();
        let required = values.len() == objects.len();
        if values.is_empty() {
            return self.left_out(place, "it is null in every example");
        }
        if !required && values.iter().any(|node| node.kind() == Kind::Object) {
            let why =
                "it is absent in some examples, and an object cannot be omitted as a whole; take single fields of it";
            return self.left_out(place, why);
        }
        let part = self.part(name, &values, place, depth + 1)?;
        if !required {
            self.guess(place, "it may be absent");
        }
        Some(Field { name: name.into(), required, nullable, part })
    }
}

const fn is_bool(kind: Kind) -> bool {
    matches!(kind, Kind::True | Kind::False)
}

/// The facts of `part` that name something: pointer and value as text, of the first example.
pub fn identities(part: &Part, node: Node<'_>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut pending = vec![(part, node, String::new())];
    while let Some((part, node, place)) = pending.pop() {
        let PartKind::Object(fields) = &part.kind else { continue };
        for field in fields.iter().filter(|field| field.required) {
            let Some(value) = node.get(&field.name) else { continue };
            let at = format!("{place}/{}", field.name);
            match (&field.part.kind, scalar_text(value)) {
                (PartKind::Scalar, Some(text)) => found.push((at, text)),
                (PartKind::Object(_), _) => pending.push((&field.part, value, at)),
                (PartKind::Scalar | PartKind::Array(_), _) => {}
            }
        }
    }
    found
}

/// A string, or the digits of an integer: a string equals an integer with the same digits.
pub fn scalar_text(node: Node<'_>) -> Option<String> {
    node.as_str().map(str::to_owned).or_else(|| node.as_i64().map(|number| number.to_string()))
}

/// Whether a field of the part is a time.
pub fn is_time(part: &Part) -> bool {
    part.keywords.get("format").and_then(Value::as_str) == Some("date-time")
}
