//! `schemas/contract.schema.json` and the loader know the same keys, and refuse the same mistakes.

use crate::examples::root;
use crate::support::{toolgate, write};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use toolgate::contract::yaml::Marked;

fn schema() -> Value {
    serde_json::from_str(&std::fs::read_to_string(root().join("schemas/contract.schema.json")).unwrap()).unwrap()
}

fn validator() -> jsonschema::Validator {
    jsonschema::options().offline().build(&schema()).unwrap()
}

/// The keys of each struct of `src/contract/raw.rs`, as serde names them.
fn loader_keys() -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(root().join("src/contract/raw.rs")).unwrap();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let (mut current, mut renamed, mut strict) = (None, None, false);
    for line in text.lines().map(str::trim) {
        strict |= line.contains("deny_unknown_fields");
        if let Some(name) = line.strip_prefix("#[serde(").and_then(|rest| rest.split("rename = \"").nth(1)) {
            renamed = name.split('"').next().map(str::to_owned);
        }
        if line.contains("struct ") && line.ends_with('{') {
            let name = line.split("struct ").nth(1).unwrap().trim_end_matches(" {").to_owned();
            assert!(strict, "{name} admits unknown keys");
            current = Some(name);
        } else if line == "}" {
            (current, strict) = (None, false);
        } else if let (Some(of), Some((name, _))) =
            (&current, line.strip_prefix("pub ").and_then(|rest| rest.split_once(':')))
        {
            found.entry(of.clone()).or_default().insert(renamed.take().unwrap_or_else(|| name.to_owned()));
        }
    }
    found
}

/// Where the schema describes each struct.
const PLACES: [(&str, &str); 24] = [
    ("RawContract", ""),
    ("Owner", "/properties/owner"),
    ("RawSource", "/$defs/source"),
    ("RawError", "/$defs/error"),
    ("RawBy", "/$defs/error/properties/by"),
    ("RawMcp", "/$defs/source/properties/mcp"),
    ("RawSignature", "/$defs/source/properties/signature"),
    ("RawPattern", "/$defs/source/properties/text"),
    ("RawLimits", "/$defs/limits"),
    ("RawShape", "/$defs/adapt/then/items"),
    ("RawSpec", "/$defs/spec"),
    ("RawValue", "/$defs/fallback/then"),
    ("RawCond", "/$defs/cond_one"),
    ("RawBind", "/$defs/bind"),
    ("RawIssuer", "/properties/issuer"),
    ("RawFresh", "/$defs/fresh"),
    ("RawRule", "/properties/rules/items"),
    ("RawText", "/properties/text/additionalProperties"),
    ("RawCode", "/properties/codes/additionalProperties"),
    ("RawRetry", "/$defs/retry"),
    ("RawBackoff", "/$defs/retry/properties/backoff"),
    ("RawHold", "/properties/refusal/then"),
    ("RawQuarantine", "/properties/quarantine"),
    ("RawReplay", "/properties/replay"),
];

#[test]
fn every_key_of_the_loader_is_in_the_schema_and_the_other_way_round() {
    let (schema, mut keys) = (schema(), loader_keys());
    for (name, at) in PLACES {
        let part = schema.pointer(at).unwrap_or_else(|| panic!("{at}"));
        let known: BTreeSet<String> =
            part["properties"].as_object().unwrap_or_else(|| panic!("{at}")).keys().cloned().collect();
        assert_eq!(keys.remove(name).unwrap_or_else(|| panic!("{name}")), known, "{name} and {at}");
        assert_eq!(part["additionalProperties"], json!(false), "{at} is open");
    }
    assert!(keys.is_empty(), "without a place in the schema: {:?}", keys.keys());
}

#[test]
fn every_shipped_contract_is_valid() {
    let validator = validator();
    let mut count = 0;
    for folder in toolgate::contract::pack::find(&root().join("schemas")).unwrap() {
        let text = std::fs::read_to_string(folder.join("contract.yaml")).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&Marked::parse(&text).unwrap().value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", folder.display());
        let path = text.lines().find_map(|line| line.strip_prefix("# yaml-language-server: $schema="));
        let leads = path.is_some_and(|path| folder.join(path).is_file());
        assert!(leads, "{}: no editor finds the schema: {path:?}", folder.display());
        count += 1;
    }
    assert!(count > 40);
}

/// One change away from the example of kind http_json: what is written instead of what.
const BROKEN: [(&str, &str); 14] = [
    ("tool: ci.run", "tool: CI Run"),
    ("version: 1", "version: 0"),
    ("version: 1", "versoin: 1"),
    ("status: active", "status: live"),
    ("about: State", "abuot: State"),
    ("contact: \"#examples\"", "contact: \"\""),
    ("kind: http_json", "kind: http"),
    ("kind: http_json", "kind: http_json\n  succes: [200]"),
    ("{from: /id}", "{form: /id}"),
    ("{from: /id}", "{from: id}"),
    ("as: timestamp", "as: time"),
    ("max_age: 5m", "max_age: 5 minutes"),
    ("equals: /arguments/run_id", "equals: /data/run_id"),
    ("equals: /arguments/run_id", "equal: /arguments/run_id"),
];

#[test]
fn a_broken_contract_is_refused_by_the_schema_and_by_the_loader() {
    let validator = validator();
    let good = std::fs::read_to_string(root().join("examples/contracts/http_json/contract.yaml")).unwrap();
    let data = std::fs::read_to_string(root().join("examples/contracts/http_json/data.schema.json")).unwrap();
    assert!(validator.is_valid(&Marked::parse(&good).unwrap().value));
    for (from, to) in BROKEN {
        assert!(good.contains(from), "{from}");
        let broken = good.replacen(from, to, 1);
        assert!(!validator.is_valid(&Marked::parse(&broken).unwrap().value), "the schema admits {to}");
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "contract.yaml", &broken);
        write(dir.path(), "data.schema.json", &data);
        let run = toolgate(dir.path(), &["check", "."]);
        assert!(run.code == 3 && run.stdout.contains("contract.yaml:"), "{to}: {}", run.stdout);
    }
}

/// Editors show descriptions while one writes.
#[test]
fn every_key_is_described() {
    let schema = schema();
    for (name, at) in PLACES {
        for (key, part) in schema.pointer(at).unwrap()["properties"].as_object().unwrap() {
            let target = part["$ref"].as_str().and_then(|reference| schema.pointer(&reference[1..]));
            let is_described = [Some(part), target].into_iter().flatten().any(|part| part["description"].is_string());
            assert!(is_described, "{name}: {key}");
        }
    }
}
