//! The slow and obvious reader: serde_json with a visitor that refuses duplicates and counts.

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A value as the reference reads it. Doubles by their bits, integers apart from them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Integer(i128),
    Double(u64),
    String(String),
    Array(Vec<Value>),
    Object(Vec<(String, Value)>),
}

pub(crate) const DEPTH_MAX: u32 = 32;
pub(crate) const ITEMS_MAX: usize = 1000;

/// Reads a document, or says which kind of offence it has.
pub(crate) fn read(document: &[u8]) -> Result<Value, &'static str> {
    let Ok(text) = std::str::from_utf8(document) else { return Err("utf8") };
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Seed { depth: 0 }.deserialize(&mut reader).map_err(kind)?;
    reader.end().map_err(|_| "trailing")?;
    Ok(value)
}

fn kind(error: serde_json::Error) -> &'static str {
    let text = error.to_string();
    ["duplicate", "deep", "many"]
        .into_iter()
        .find(|kind| text.starts_with(&kind.to_uppercase()))
        .unwrap_or_else(|| if text.starts_with("number out of range") { "range" } else { "syntax" })
}

#[derive(Clone, Copy)]
struct Seed {
    depth: u32,
}

impl<'de> DeserializeSeed<'de> for Seed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Seed {
    fn inner<E: Error>(self) -> Result<Seed, E> {
        if self.depth >= DEPTH_MAX { Err(E::custom("DEEP")) } else { Ok(Seed { depth: self.depth + 1 }) }
    }
}

impl<'de> Visitor<'de> for Seed {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Double(value.to_bits()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let seed = self.inner()?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(seed)? {
            if items.len() == ITEMS_MAX {
                return Err(A::Error::custom("MANY"));
            }
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let seed = self.inner()?;
        let mut members: Vec<(String, Value)> = Vec::new();
        while let Some(name) = access.next_key_seed(Name)? {
            let is_twice = members.iter().any(|(known, _)| *known == name);
            let value = access.next_value_seed(seed)?;
            if is_twice {
                return Err(A::Error::custom("DUPLICATE"));
            }
            members.push((name, value));
        }
        Ok(Value::Object(members))
    }
}

struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        String::deserialize(deserializer)
    }
}
