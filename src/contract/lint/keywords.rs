//! What Draft 2020-12 knows, less what this project leaves out.

/// Keywords that a contract's schema may use. `$dynamicRef`, `$anchor`, `patternProperties`,
/// `propertyNames`, `dependentSchemas`, `prefixItems`, `contains` and content keywords are left
/// out: open maps, hidden references, and shapes that no compact result needs.
pub(super) const KEYWORDS: [&str; 43] = [
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
    "unevaluatedItems",
];

/// Formats that the validator asserts (JSON Schema Validation, section 7.3).
pub(super) const FORMATS: [&str; 16] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "uuid",
    "json-pointer",
    "relative-json-pointer",
    "regex",
    "iri",
    "uri-template",
];

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
