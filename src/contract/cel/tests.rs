//! What rules can say, what they can't, and that nothing they are given makes them grow.

use super::*;
use crate::gate::parse::{Limits, Tape};
use proptest::prelude::*;

const DATA: &str = r#"{"state":"succeeded","ended":"2026-12-01T11:58:00Z","count":3,"id":18446744073709551617,
    "share":0.5,"jobs":[{"ok":true,"n":1},{"ok":false,"n":2}],"sizes":[1,2.5],"big":[1,18446744073709551617],
    "tiny":0.1000000000000000055511151231257827,"least":-9223372036854775808,"nothing":null,"data":{"id":1}}"#;

fn judge(source: &str, data: &str, args: Option<&str>) -> Result<bool, RuleFailure> {
    let (mut data_tape, mut args_tape) = (Tape::default(), Tape::default());
    let data = data_tape.parse(data.as_bytes(), &Limits::default()).unwrap().root();
    let args = args.map(|args| args_tape.parse(args.as_bytes(), &Limits::default()).unwrap().root());
    Rule::compile("rule", source).unwrap().holds(data, args)
}

#[track_caller]
fn check(source: &str, expect: Result<bool, RuleFailure>) {
    let args = r#"{"min":2,"state":"failed","other":18446744073709551617}"#;
    assert_eq!(judge(source, DATA, Some(args)), expect, "{source}");
}

#[track_caller]
fn refused(source: &str, part: &str) {
    let error = Rule::compile("rule", source).unwrap_err().to_string();
    assert!(error.contains(part), "{source}: {error}");
}

#[test]
fn rules_over_data_and_arguments() {
    check("data.state != 'running' || !has(data.ended)", Ok(true));
    check("has(data.ended) && data.count >= args.min", Ok(true));
    check("data.jobs.exists(j, j.ok) && !data.jobs.all(j, j.ok)", Ok(true));
    check("data.jobs.all(j, j.n <= data.count && j.n in [1, 2])", Ok(true));
    check("size(data.jobs) == 2 && data.state.startsWith('succ')", Ok(true));
    check("data.state.endsWith('ed') && data.state.contains('ee')", Ok(true));
    check("data.share < 1.0 && data.count + 1 == 4", Ok(true));
    check("data.state in ['failed', 'cancelled']", Ok(false));
    check("data.state == args.state ? data.count == 0 : true", Ok(true));
    check("[data.state, args.state].exists(s, s == 'failed')", Ok(true));
    check("'state' in data && data['count'] == 3", Err(RuleFailure::Number));
    check("data.data.id == 1", Ok(true));
    check("data.nothing == null", Ok(true));
    check("data.sizes[1] == 2.5 && data.sizes[0] == 1", Ok(true));
    check("-data.count == -3 && data.count % 2 == 1 && data.count * 2 - 1 == 5", Ok(true));
}

#[test]
fn what_cannot_be_decided_does_not_hold() {
    check("data.missing == 1", Err(RuleFailure::Evaluation));
    check("data.count", Err(RuleFailure::NotBoolean));
    check("data.state", Err(RuleFailure::NotBoolean));
    check("data.count / 0 == 1", Err(RuleFailure::Evaluation));
    check("data.count % 0 == 1", Err(RuleFailure::Evaluation));
    check("data.count + 9223372036854775807 > 0", Err(RuleFailure::Evaluation));
    check("-data.least > 0", Err(RuleFailure::Evaluation));
    check("data.state > 1", Err(RuleFailure::Evaluation));
    check("data.jobs[7].ok", Err(RuleFailure::Evaluation));
    check("data.jobs.all(j, j.missing)", Err(RuleFailure::Evaluation));
}

#[test]
fn numbers_are_exact_or_refuse_and_only_where_they_are_read() {
    check("data.count == 3", Ok(true));
    check("data.id > 1", Err(RuleFailure::Number));
    check("data.big.exists(b, b == 1)", Err(RuleFailure::Number));
    check("data.tiny > 0.0", Err(RuleFailure::Number));
    check("args.other > 1", Err(RuleFailure::Number));
    check("data == {}", Err(RuleFailure::Number));
    for (number, expect) in [
        ("9223372036854775807", Ok(true)),
        ("9223372036854775808", Err(RuleFailure::Number)),
        ("1e2", Ok(true)),
        ("0.1", Ok(true)),
        ("9007199254740993.0", Err(RuleFailure::Number)),
        ("1e300", Err(RuleFailure::Number)),
        ("-0", Ok(false)),
    ] {
        assert_eq!(judge("data.n > 0", &format!("{{\"n\":{number}}}"), None), expect, "{number}");
    }
    assert_eq!(judge("data.n == 9223372036854775807", r#"{"n":9223372036854775807}"#, None), Ok(true));
    assert_eq!(judge("data.n == 9223372036854775807", r#"{"n":9223372036854775806}"#, None), Ok(false));
}

#[test]
fn a_request_without_arguments_has_none_of_them() {
    assert_eq!(judge("has(args.min)", DATA, None), Ok(false));
    assert_eq!(judge("args.min == 1", DATA, None), Err(RuleFailure::Evaluation));
    assert_eq!(judge("has(args.min) && args.min == 2", DATA, Some(r#"{"min":2}"#)), Ok(true));
}

#[test]
fn the_subset_leaves_out_what_has_no_bound() {
    refused("data.state.matches('a')", "the function matches at character");
    refused("data.jobs.all(a, data.jobs.all(b, a.ok == b.ok))", "inside another");
    refused("data.jobs.all(a, [1].exists(b, b == a.n))", "inside another");
    refused("data.jobs.map(j, j.ok) == []", "adding, concatenating");
    refused("data.jobs.filter(j, j.ok).size() > 0", "adding, concatenating");
    refused("data.jobs.exists_one(j, j.ok)", "adding, concatenating");
    refused("data.jobs.exists(j, j.n + 1 == 2)", "adding, concatenating");
    refused("data.jobs.all(j, [data.jobs, data.jobs] == [])", "adding, concatenating or listing");
    refused("data.jobs.all(j, {'a': data.jobs} == {})", "adding, concatenating or listing");
    refused("data.jobs.all(j, data == data)", "the whole of data inside");
    refused(&format!("{}data.state == ''", "data.state + ".repeat(17)), "more than 16 additions");
    refused(&format!("[{}1] == []", "data.state, ".repeat(17)), "more than 16 additions and computed items");
}

#[test]
fn the_subset_has_two_names_and_a_list_of_functions() {
    refused("now > 1", "the name now at character 0");
    refused("data.count > 0 && now > 1", "at character 18");
    refused("args == {}", "args without a member");
    refused("data.jobs.all(j, size(args) > 0)", "args without a member");
    refused("data.jobs.all(data, data.ok)", "another meaning of data");
    refused("data.jobs.all(args, args.ok)", "another meaning of args");
    refused("int == type(1)", "the name int");
    refused("type(data.count) == int", "the function type");
    for call in
        ["timestamp(data.ended)", "duration('1s')", "string(data.count)", "dyn(1)", "bytes('a')", "optional.of(1)"]
    {
        refused(&format!("{call} == 1"), "the function");
    }
    refused("google.protobuf.Timestamp{seconds: 1} == 1", "a message");
    refused("data.?state == 1", "no CEL expression");
    refused("j.ok", "the name j");
}

#[test]
fn the_source_and_the_tree_are_limited() {
    refused("data.count == ", "no CEL expression: line 1, column");
    refused(&format!("data.count in [{}1]", "1, ".repeat(300)), "more than 200 parts");
    refused(&format!("data.count == {}", "1 * ".repeat(300) + "1"), "nesting this deep");
    refused(&"(".repeat(500), "nesting");
    refused(&"x".repeat(3000), "3000 bytes");
    assert!(Rule::compile("r", &"!".repeat(1000)).is_err());
    let listed = (0..40).map(|i| format!("'in-progress-{i}'")).collect::<Vec<_>>().join(", ");
    check(&format!("data.state in [{listed}]"), Ok(false));
    for bad in ["\n\u{1}", "'", "`a`", "é", "data.count == 1 2", "a ? b", "{", "[1", "data.", "has(data)", "has(1)"] {
        let error = Rule::compile("r", bad).unwrap_err().to_string();
        assert!(!error.contains(char::is_control) && error.len() < 800, "{bad:?}: {error:?}");
    }
}

/// Each is at most 2 KiB long and nests without a bracket, or beyond the parser's own limit.
#[test]
fn no_source_overflows_a_small_stack() {
    let sources = [
        "(".repeat(2048),
        "[".repeat(2048),
        "{1:".repeat(680),
        "!(".repeat(1024),
        "-".repeat(2047) + "1",
        "a?b:".repeat(500) + "a",
        "a?".repeat(1000) + "a",
        "1*".repeat(1000) + "1",
        format!("data{}", ".a".repeat(1000)),
        format!("data{}", "[0]".repeat(650)),
        format!("data{}", ".size()".repeat(290)),
        "a in ".repeat(400) + "a",
        format!("')))))))))))'{}", "+(".repeat(900)),
    ];
    let compile = move || sources.iter().map(|source| Rule::compile("r", source)).filter(Result::is_ok).count();
    let admitted = std::thread::Builder::new().stack_size(1 << 20).spawn(compile).unwrap().join().unwrap();
    // The run of signs is one node to the parser.
    assert_eq!(admitted, 1);
}

/// Twenty-four doublings of two characters are 32 MiB, and took 830 MiB to evaluate.
#[test]
fn a_string_cannot_be_doubled_24_times() {
    let by_map = (0..24).fold("'ab'".to_owned(), |inner, i| format!("[{inner}].map(x{i}, x{i} + x{i})[0]"));
    let by_all = (0..24).fold("s == s".to_owned(), |inner, _| format!("[s + s].all(s, {inner})"));
    let by_list = (0..24).fold("data.state".to_owned(), |inner, _| format!("[{inner}, {inner}]"));
    let flat = format!("['ab'].all(s, {} == 'a')", vec!["s"; 24].join(" + "));
    for bomb in [by_map, by_all.replacen("[s + s]", "['ab']", 1), by_list, flat] {
        assert!(Rule::compile("bomb", &bomb).is_err(), "{bomb:.100}");
    }
    let two = "[['ab'].map(x, x + x)[0]].map(x, x + x)[0] == 'abababab'";
    refused(two, "adding, concatenating");
}

#[test]
fn the_arguments_of_a_rule_are_known() {
    let source = "data.count >= args.min && data.jobs.all(j, j.n == args.n) && has(args.state)";
    let rule = Rule::compile("r", source).unwrap();
    assert_eq!(rule.arguments().collect::<Vec<_>>(), ["min", "n", "state"]);
    assert_eq!(rule.id(), "r");
}

#[test]
fn a_failure_tells_no_value() {
    for source in ["data.state > 1", "data.count / 0 == 1", "data[data.state]", "data.jobs[data.state]"] {
        let failure = judge(
            source,
            &DATA.replace("18446744073709551617", "1").replace("0.1000000000000000055511151231257827", "1"),
            None,
        );
        let failure = failure.unwrap_err();
        assert!(!format!("{failure:?} {}", failure.detail()).contains("succeeded"));
    }
}

const TOKENS: [&str; 42] = [
    "data",
    "args",
    "x",
    ".",
    "state",
    "count",
    "jobs",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "?",
    "&&",
    "||",
    "!",
    "-",
    "+",
    "*",
    "/",
    "%",
    "==",
    "!=",
    "<",
    ">=",
    "in",
    "1",
    "0",
    "-1",
    "9223372036854775807",
    "1.5",
    "'a'",
    "true",
    "null",
    "size(",
    ".all(x,",
    ".exists(x,",
    "has(data.",
    ".contains(",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_source_is_compiled_or_refused_and_any_rule_ends(tokens in prop::collection::vec(prop::sample::select(&TOKENS[..]), 1..24)) {
        if let Ok(rule) = Rule::compile("r", &tokens.join(" ")) {
            let mut tape = Tape::default();
            let data = tape.parse(DATA.as_bytes(), &Limits::default()).unwrap().root();
            let _ = rule.holds(data, None);
        }
    }
}
