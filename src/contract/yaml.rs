//! YAML with line numbers: a contract file as a JSON value and, beside it, where each part stands.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;
use std::collections::BTreeMap;
use std::fmt;

/// A line and a column, both from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub line: u64,
    pub column: u64,
}

/// A parsed file: its value, and the place of every pointer in it.
#[derive(Debug)]
pub struct Marked {
    pub value: Value,
    places: BTreeMap<String, Place>,
}

/// Contract files are small; what is larger is not one.
pub const FILE_BYTES_MAX: usize = 256 * 1024;

impl Marked {
    /// Parses one YAML document. Duplicate keys, aliases beyond the library's budget and
    /// anything that JSON cannot express are errors.
    ///
    /// # Errors
    /// The parser's message, with its line and column.
    pub fn parse(text: &str) -> Result<Marked, (Place, String)> {
        if text.len() > FILE_BYTES_MAX {
            return Err((
                Place::default(),
                format!("the file has {} bytes; at most {FILE_BYTES_MAX} are read", text.len()),
            ));
        }
        let tree: Spanned<Tree> = serde_saphyr::from_str(text).map_err(|error| {
            let place = error.location().map(|at| Place { line: at.line(), column: at.column() }).unwrap_or_default();
            (place, error.without_snippet().to_string())
        })?;
        let mut places = BTreeMap::new();
        let value = flatten(tree, String::new(), &mut places);
        Ok(Marked { value, places })
    }

    /// The place of the value at `pointer`, or of its nearest parent that stands in the file.
    pub fn place(&self, pointer: &str) -> Place {
        let mut pointer = pointer;
        loop {
            if let Some(place) = self.places.get(pointer) {
                return *place;
            }
            match pointer.rfind('/') {
                Some(cut) => pointer = &pointer[..cut],
                None => return Place::default(),
            }
        }
    }
}

enum Tree {
    Scalar(Value),
    List(Vec<Spanned<Tree>>),
    Map(Vec<(String, Spanned<Tree>)>),
}

fn flatten(tree: Spanned<Tree>, pointer: String, places: &mut BTreeMap<String, Place>) -> Value {
    let at = tree.referenced;
    places.insert(pointer.clone(), Place { line: at.line(), column: at.column() });
    match tree.value {
        Tree::Scalar(value) => value,
        Tree::List(items) => {
            items.into_iter().enumerate().map(|(i, item)| flatten(item, format!("{pointer}/{i}"), places)).collect()
        }
        Tree::Map(members) => {
            let members = members.into_iter().map(|(name, value)| {
                let path = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                (name, flatten(value, path, places))
            });
            Value::Object(members.collect::<Map<_, _>>())
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tree, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON can express")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Tree, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("a number must be finite"))?;
        Ok(Tree::Scalar(Value::Number(number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        Tree::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut members = Vec::new();
        while let Some((name, value)) = access.next_entry::<Key, Spanned<Tree>>()? {
            members.push((name.0, value));
        }
        Ok(Tree::Map(members))
    }
}

/// A mapping key as text: `404:` and `"404":` are the same key, as people expect.
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        String::deserialize(deserializer).map(Key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_and_places_come_together() {
        let marked =
            Marked::parse("tool: ci.job_status\nsource:\n  failures: {404: NOT_FOUND}\nlist:\n  - a\n  - 2\n").unwrap();
        assert_eq!(
            marked.value,
            json!({"tool": "ci.job_status", "source": {"failures": {"404": "NOT_FOUND"}}, "list": ["a", 2]})
        );
        assert_eq!(marked.place("/list/1"), Place { line: 6, column: 5 });
        assert_eq!(marked.place("/source/failures/404/missing").line, 3);
    }

    #[test]
    fn duplicate_keys_and_broken_yaml_name_their_line() {
        let (place, message) = Marked::parse("tool: a\nversion: 1\ntool: b\n").unwrap_err();
        assert_eq!(place.line, 3, "{message}");
        let (place, _) = Marked::parse("tool: [a\nversion: 1\n").unwrap_err();
        assert!(place.line >= 1);
    }

    #[test]
    fn an_alias_bomb_is_refused() {
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for i in 1..12 {
            let previous = format!("*a{}, ", i - 1).repeat(10);
            bomb.push_str(&format!("a{i}: &a{i} [{}]\n", previous.trim_end_matches(", ")));
        }
        assert!(Marked::parse(&bomb).is_err());
    }
}
