//! What Draft 2020-12 knows, less what this project leaves out.

/// Keywords that a contract's schema may use. Others of the draft are in [`LEFT_OUT`].
pub(super) const KEYWORDS: [&str; 42] = [
    "$schema",
    "$id",
    "$ref",
    "$defs",
    "$comment",
    "title",
    "description",
    "examples",
    "deprecated",
    "default",
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "unevaluatedProperties",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "items",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "readOnly",
    "writeOnly",
];

/// Keywords of the draft that are left out, and what to write instead: open maps, hidden
/// references, and shapes that no compact result needs.
pub(super) const LEFT_OUT: [(&str, &str); 15] = [
    ("$anchor", "refer by pointer: #/$defs/..."),
    ("$dynamicAnchor", "refer by pointer: #/$defs/..."),
    ("$dynamicRef", "use $ref to a definition in this file"),
    ("$vocabulary", "remove it"),
    ("patternProperties", "name each member under properties"),
    ("propertyNames", "name each member under properties"),
    ("dependentSchemas", "use if and then"),
    ("prefixItems", "use an object with named members"),
    ("contains", "use items, and rules: in contract.yaml"),
    ("minContains", "use items, and rules: in contract.yaml"),
    ("maxContains", "use items, and rules: in contract.yaml"),
    ("unevaluatedItems", "use items"),
    ("contentEncoding", "select less: encoded content is no evidence"),
    ("contentMediaType", "select less: encoded content is no evidence"),
    ("contentSchema", "select less: encoded content is no evidence"),
];

/// A format that the validator asserts (JSON Schema Validation, section 7.3).
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    pub name: &'static str,
    /// Bytes of the longest string of this format; none where the format sets no limit.
    pub bytes_max: Option<u64>,
    /// Whether it leaves a stranger no room for words. A URI, a quoted mailbox, a JSON pointer and
    /// a regular expression hold any sentence.
    pub closed: bool,
}

const FORMATS: [Format; 16] = [
    Format { name: "date-time", bytes_max: Some(35), closed: true },
    Format { name: "date", bytes_max: Some(10), closed: true },
    Format { name: "time", bytes_max: None, closed: true },
    Format { name: "duration", bytes_max: None, closed: true },
    Format { name: "hostname", bytes_max: Some(254), closed: true },
    Format { name: "ipv4", bytes_max: Some(15), closed: true },
    Format { name: "ipv6", bytes_max: Some(45), closed: true },
    Format { name: "uuid", bytes_max: Some(36), closed: true },
    Format { name: "email", bytes_max: None, closed: false },
    Format { name: "uri", bytes_max: None, closed: false },
    Format { name: "uri-reference", bytes_max: None, closed: false },
    Format { name: "iri", bytes_max: None, closed: false },
    Format { name: "uri-template", bytes_max: None, closed: false },
    Format { name: "json-pointer", bytes_max: None, closed: false },
    Format { name: "relative-json-pointer", bytes_max: None, closed: false },
    Format { name: "regex", bytes_max: None, closed: false },
];

/// The format of this name.
pub(super) fn format(name: &str) -> Option<Format> {
    FORMATS.into_iter().find(|format| format.name == name)
}

/// The types that each keyword speaks about.
pub(super) const TYPE_OF: [(&str, &[&str]); 18] = [
    ("properties", &["object"]),
    ("required", &["object"]),
    ("additionalProperties", &["object"]),
    ("minProperties", &["object"]),
    ("maxProperties", &["object"]),
    ("items", &["array"]),
    ("minItems", &["array"]),
    ("maxItems", &["array"]),
    ("uniqueItems", &["array"]),
    ("minLength", &["string"]),
    ("maxLength", &["string"]),
    ("pattern", &["string"]),
    ("format", &["string"]),
    ("minimum", &["integer", "number"]),
    ("maximum", &["integer", "number"]),
    ("exclusiveMinimum", &["integer", "number"]),
    ("exclusiveMaximum", &["integer", "number"]),
    ("multipleOf", &["integer", "number"]),
];

/// The keyword that a misspelt one was probably meant to be.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let letters = |text: &str| {
        let mut letters: Vec<char> = text.to_ascii_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
        letters.sort_unstable();
        letters
    };
    let wanted = letters(name);
    let difference = |keyword: &&&str| {
        let have = letters(keyword);
        let common = have.iter().filter(|letter| wanted.contains(letter)).count();
        (have.len().abs_diff(wanted.len()) + have.len() - common, have.len())
    };
    KEYWORDS.iter().min_by_key(difference).filter(|keyword| difference(keyword).0 <= 2).copied()
}
