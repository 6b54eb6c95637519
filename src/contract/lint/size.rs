//! What holds before the walk: the file is small, and one pointer means one place in it.

use super::{LintFinding, escape};
use serde_json::Value;

/// JSON values in a schema file.
const VALUES_MAX: usize = 5000;
/// Nesting of the file itself.
const DEPTH_MAX: usize = 64;

/// Members that move the place which `#/...` starts from, or name places in another way.
const RENAMING: [&str; 6] = ["$id", "$schema", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef"];

/// Bounds the file, and refuses names inside it: `$id` below the root would make the validator
/// resolve `#/$defs/x` in another document than this lint does.
///
/// # Errors
/// What is wrong; the walk must not start.
pub(super) fn check(schema: &Value) -> Result<(), LintFinding> {
    let mut pending = vec![(schema, String::new(), 0)];
    let mut values = 0;
    while let Some((value, pointer, depth)) = pending.pop() {
        values += 1;
        if values > VALUES_MAX || depth > DEPTH_MAX {
            return Err(LintFinding {
                rule: "size",
                pointer: if depth > DEPTH_MAX { pointer } else { String::new() },
                message: format!("the file has more than {VALUES_MAX} values or {DEPTH_MAX} levels"),
                help: "a compact result needs a fraction of that: select less, or split the tool",
            });
        }
        match value {
            Value::Object(members) => {
                let renaming =
                    RENAMING.iter().find(|name| depth > 0 && members.get(**name).is_some_and(Value::is_string));
                if let Some(name) = renaming {
                    return Err(LintFinding {
                        rule: "ref",
                        pointer: format!("{pointer}/{name}"),
                        message: format!("{name} inside the schema changes what references mean"),
                        help: "keep $schema and $id at the root alone, and refer by pointer: #/$defs/...",
                    });
                }
                pending.extend(
                    members.iter().map(|(name, child)| (child, format!("{pointer}/{}", escape(name)), depth + 1)),
                );
            }
            Value::Array(items) => {
                pending.extend(items.iter().enumerate().map(|(i, item)| (item, format!("{pointer}/{i}"), depth + 1)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    Ok(())
}
