//! How large a value can be, kind by kind.

use super::{Bounds, bytes};
use serde_json::Value;

/// The JSON kinds that a schema may admit. Integers are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Boolean,
    Number,
    String,
    Array,
    Object,
}

impl Kind {
    pub fn named(name: &str) -> Option<Kind> {
        Some(match name {
            "null" => Kind::Null,
            "boolean" => Kind::Boolean,
            "integer" | "number" => Kind::Number,
            "string" => Kind::String,
            "array" => Kind::Array,
            "object" => Kind::Object,
            _ => return None,
        })
    }

    pub fn of(value: &Value) -> Kind {
        match value {
            Value::Null => Kind::Null,
            Value::Bool(_) => Kind::Boolean,
            Value::Number(_) => Kind::Number,
            Value::String(_) => Kind::String,
            Value::Array(_) => Kind::Array,
            Value::Object(_) => Kind::Object,
        }
    }
}

/// The largest value of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// No such value is admitted.
    Never,
    Finite(Bounds),
    Endless,
}

impl Extent {
    /// Both apply: the smaller holds, for bytes and for characters.
    pub fn min(self, other: Extent) -> Extent {
        match (self, other) {
            (Extent::Never, _) | (_, Extent::Never) => Extent::Never,
            (Extent::Endless, rest) | (rest, Extent::Endless) => rest,
            (Extent::Finite(a), Extent::Finite(b)) => Extent::Finite(Bounds {
                result_bytes_max: a.result_bytes_max.min(b.result_bytes_max),
                free_text_chars_max: a.free_text_chars_max.min(b.free_text_chars_max),
            }),
        }
    }

    /// Either may apply.
    pub fn max(self, other: Extent) -> Extent {
        match (self, other) {
            (Extent::Endless, _) | (_, Extent::Endless) => Extent::Endless,
            (Extent::Never, rest) | (rest, Extent::Never) => rest,
            (Extent::Finite(a), Extent::Finite(b)) => Extent::Finite(Bounds {
                result_bytes_max: a.result_bytes_max.max(b.result_bytes_max),
                free_text_chars_max: a.free_text_chars_max.max(b.free_text_chars_max),
            }),
        }
    }

    /// Both stand in one text.
    pub fn and(self, other: Extent) -> Extent {
        match (self, other) {
            (Extent::Never, _) | (_, Extent::Never) => Extent::Never,
            (Extent::Endless, _) | (_, Extent::Endless) => Extent::Endless,
            (Extent::Finite(a), Extent::Finite(b)) => Extent::Finite(a.plus(b)),
        }
    }

    pub fn plus(self, more: Bounds) -> Extent {
        self.and(Extent::Finite(more))
    }

    pub fn times(self, count: u64) -> Extent {
        match self {
            Extent::Finite(one) => Extent::Finite(Bounds {
                result_bytes_max: one.result_bytes_max.saturating_mul(count),
                free_text_chars_max: one.free_text_chars_max.saturating_mul(count),
            }),
            Extent::Never | Extent::Endless => self,
        }
    }
}

impl Bounds {
    pub(super) fn plus(self, other: Bounds) -> Bounds {
        Bounds {
            result_bytes_max: self.result_bytes_max.saturating_add(other.result_bytes_max),
            free_text_chars_max: self.free_text_chars_max.saturating_add(other.free_text_chars_max),
        }
    }
}

/// The largest value of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extents(pub [Extent; 6]);

impl Extents {
    pub const NEVER: Extents = Extents([Extent::Never; 6]);
    pub const ENDLESS: Extents = Extents([
        Extent::Finite(bytes(4)),
        Extent::Finite(bytes(5)),
        Extent::Finite(bytes(super::NUMBER_BYTES)),
        Extent::Endless,
        Extent::Endless,
        Extent::Endless,
    ]);

    pub fn set(&mut self, kind: Kind, extent: Extent) {
        self.0[kind as usize] = extent;
    }

    pub fn keep(&mut self, kinds: &[Kind]) {
        let dropped = |at: usize| !kinds.iter().any(|kind| *kind as usize == at);
        self.0.iter_mut().enumerate().filter(|(at, _)| dropped(*at)).for_each(|(_, extent)| *extent = Extent::Never);
    }

    pub fn both(self, other: Extents) -> Extents {
        Extents(std::array::from_fn(|at| self.0[at].min(other.0[at])))
    }

    pub fn either(self, other: Extents) -> Extents {
        Extents(std::array::from_fn(|at| self.0[at].max(other.0[at])))
    }

    pub fn largest(self) -> Extent {
        self.0.into_iter().fold(Extent::Never, Extent::max)
    }
}
