//! What is wrong with a configuration, where, and what to do about it.

use std::fmt;

/// One mistake. All mistakes of a configuration are reported together, because a person who fixes
/// three of them should not need three restarts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub place: Place,
    /// The setting's full name (`worker.batch_records_max`), or what was written instead of one;
    /// empty where the text is not TOML at all.
    pub key: String,
    /// What is wrong and what to do, in one line.
    pub message: String,
}

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Line and column count from 1; the column counts characters.
    File {
        name: String,
        line: usize,
        column: usize,
    },
    /// Nothing was written: the file as a whole, or no file.
    Nowhere {
        name: String,
    },
    Environment {
        variable: String,
    },
    Flag,
}

impl Place {
    pub(super) fn in_file(name: &str, text: &str, offset: usize) -> Self {
        let before = &text[..text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        Place::File { name: name.to_owned(), line, column: before[line_start..].chars().count() + 1 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File { name, line, column } => write!(f, "{name}:{line}:{column}"),
            Place::Nowhere { name } => f.write_str(name),
            Place::Environment { variable } => write!(f, "environment {variable}"),
            Place::Flag => f.write_str("command line"),
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            return write!(f, "{}: {}", self.place, self.message);
        }
        write!(f, "{}: {}: {}", self.place, self.key, self.message)
    }
}

impl std::error::Error for Mistake {}

/// The name that `written` most likely stands for: the closest by edits, within a third of its
/// length, so that a suggestion is a help and not a guess.
pub(super) fn nearest<'n>(written: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let allowed = (written.chars().count() / 3).max(1);
    names
        .map(|name| (edits(written, name), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Levenshtein distance, one row at a time. What people mistype here is short; longer text is cut.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(128).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(128).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_are_close_or_absent() {
        let names = || ["batch_records_max", "batch_bytes_max", "poll_wait"].into_iter();
        assert_eq!(nearest("batch_record_max", names()), Some("batch_records_max"));
        assert_eq!(nearest("pol_wait", names()), Some("poll_wait"));
        assert_eq!(nearest("colour", names()), None);
        assert_eq!(nearest("", names()), None);
    }

    #[test]
    fn a_place_counts_lines_and_characters_from_one() {
        let place = Place::in_file("t.toml", "[é]\nüx = 1\n", 7);
        assert_eq!(place.to_string(), "t.toml:2:2");
        assert_eq!(Place::in_file("t.toml", "", 9).to_string(), "t.toml:1:1");
    }
}
