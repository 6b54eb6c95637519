//! One-line JSON objects for `--json`, written member by member so that embedded results keep their own digits.

use crate::gate::json::write_string;

/// An object under construction.
#[derive(Debug)]
pub struct Object {
    out: String,
}

impl Object {
    pub fn new() -> Object {
        Object { out: String::from("{") }
    }

    fn name(&mut self, name: &str) -> &mut String {
        if self.out.len() > 1 {
            self.out.push(',');
        }
        write_string(name, &mut self.out);
        self.out.push(':');
        &mut self.out
    }

    pub fn text(&mut self, name: &str, value: &str) {
        write_string(value, self.name(name));
    }

    /// A string, or null where there is none.
    pub fn optional_text(&mut self, name: &str, value: Option<&str>) {
        match value {
            Some(value) => self.text(name, value),
            None => self.raw(name, "null"),
        }
    }

    pub fn number(&mut self, name: &str, value: u64) {
        self.raw(name, &value.to_string());
    }

    pub fn bool(&mut self, name: &str, value: bool) {
        self.raw(name, if value { "true" } else { "false" });
    }

    /// JSON text that is known to be valid.
    pub fn raw(&mut self, name: &str, json: &str) {
        self.name(name).push_str(json);
    }

    pub fn texts(&mut self, name: &str, values: impl Iterator<Item = String>) {
        let out = self.name(name);
        out.push('[');
        for (i, value) in values.enumerate() {
            if i > 0 {
                out.push(',');
            }
            write_string(&value, out);
        }
        out.push(']');
    }

    pub fn end(mut self) -> String {
        self.out.push('}');
        self.out
    }
}

impl Default for Object {
    fn default() -> Self {
        Self::new()
    }
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        use std::fmt::Write;
        let _ = write!(out, "{byte:02x}");
        out
    })
}
