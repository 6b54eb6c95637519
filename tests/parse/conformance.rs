//! Documents that must be read and documents that must be refused, with the exact reason.
#![allow(clippy::too_many_lines, reason = "tables")]

use toolgate::gate::Reason;
use toolgate::gate::Reason::{
    DuplicateMember, InvalidJson, InvalidUtf8, NumberRange, TooDeep, TooLarge, TooMany, TrailingData,
};
use toolgate::gate::parse::{Limits, Tape};

#[track_caller]
fn check(document: &[u8], expect: Result<(), Reason>) {
    let mut tape = Tape::default();
    let found = tape.parse(document, &Limits::default()).map(|_| ()).map_err(|error| error.reason);
    assert_eq!(found, expect, "{}", document.escape_ascii());
}

#[test]
fn must_accept() {
    for document in [
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1",
        "-1",
        "1.5",
        "-1.5",
        "1e5",
        "1E5",
        "1e+5",
        "1e-5",
        "0.1",
        "0e0",
        "123456789012345678901234567890",
        "\"\"",
        "\"a\"",
        "[]",
        "{}",
        "[[]]",
        "[{}]",
        "{\"a\":[]}",
        "[1]",
        "[1,2]",
        "[1, 2 ]",
        " [1] ",
        "\t[1]\n",
        "\r\n{}\r\n",
        "{\"a\":1}",
        "{\"a\":1,\"b\":2}",
        "{\"\":0}",
        "{ \"a\" : 1 , \"b\" : 2 }",
        "[null,true,false,0,\"\"]",
        r#""\"""#,
        r#""\\""#,
        r#""\/""#,
        r#""\b\f\n\r\t""#,
        r#""\u0041""#,
        r#""\u0000""#,
        r#""\uD834\udd1e""#,
        r#""\uFFFF""#,
        r#""\u2028""#,
        "\"\u{7f}\"",
        "\"\u{2028}\"",
        "\"é\"",
        "\"日本\"",
        "\"😀\"",
        "\"\u{10ffff}\"",
        "\"\u{fffe}\"",
        "\"a/b\"",
        r#"{"a":{"b":{"c":[1,[2,[3]]]}}}"#,
        r#"{"a":1,"A":2}"#,
        r#"{"a":1,"a ":2}"#,
        r#"[{"a":1},{"a":2}]"#,
        r#"{"a":{"a":{"a":1}}}"#,
        r#"{"$serde_json::private::RawValue":"1"}"#,
        r#"{"$serde_json::private::Number":"1"}"#,
        r#"{"__proto__":{"constructor":1}}"#,
    ] {
        check(document.as_bytes(), Ok(()));
    }
}

#[test]
fn must_reject_what_is_no_json() {
    for document in [
        "",
        " ",
        "\n",
        "nul",
        "True",
        "TRUE",
        "tru",
        "fals",
        "undefined",
        "NaN",
        "Infinity",
        "-Infinity",
        "-",
        "+1",
        ".5",
        "1.",
        "-.5",
        "1e",
        "1e+",
        "[0x1]",
        "- 1",
        "[",
        "]",
        "{",
        "}",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[,]",
        "[1,,2]",
        "[1 2]",
        "[1:2]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1",
        "{\"a\":1,",
        "{\"a\":1,}",
        "{,}",
        "{\"a\" 1}",
        "{a:1}",
        "{'a':1}",
        "{1:1}",
        "{null:1}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":1,,\"b\":2}",
        "[\"a\"",
        "\"",
        "\"a",
        "\"\\",
        "'a'",
        "[1}",
        "{\"a\":1]",
        "[{]}",
        "\"\\x41\"",
        "\"\\a\"",
        "\"\\u\"",
        "\"\\u00\"",
        "\"\\u00G0\"",
        "\"\\U0041\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"\\ud800\\ud800\"",
        "\"\\ud800a\"",
        "\"\\ud800\\n\"",
        "\"a\nb\"",
        "\"a\tb\"",
        "\"\u{0}\"",
        "\"\u{1f}\"",
        "/* c */1",
        "#1",
        "\u{feff}1",
        "\u{feff}{}",
        "\u{a0}1",
        "\u{2028}1",
        "\u{c}1",
        "\u{b}1",
        "[01]",
        "[-01]",
        "[1.e1]",
        "[1e1.5]",
        "[0 1]",
        "[1_000]",
        "[\u{661}]",
        ")]}'\n{}",
        "<html>",
        "data: {}",
        "[command]/x",
        "[ x ]",
        "*",
        "=1",
        "(1)",
        "{\"a\":1;\"b\":2}",
        "{\"a\"=1}",
        "[1;2]",
        "\\u0041",
    ] {
        check(document.as_bytes(), Err(InvalidJson));
    }
}

#[test]
fn must_reject_what_follows_the_document() {
    for document in [
        "1 2",
        "{} {}",
        "[][]",
        "{}x",
        "nullnull",
        "null,",
        "\"a\"\"b\"",
        "{}}",
        "[]]",
        "{}//",
        "01",
        "1x",
        "truetrue",
        "{\"a\":1}\nWaiting...\n{}",
        "{}\0",
    ] {
        check(document.as_bytes(), Err(TrailingData));
    }
}

#[test]
fn must_reject_what_is_no_utf8_first_of_all() {
    for bytes in [
        &b"\x80"[..],
        b"\"\xff\"",
        b"\"\xc3\"",
        b"\"\xc0\x80\"",
        b"\"\xc1\xbf\"",
        b"\"\xe0\x80\x80\"",
        b"\"\xe0\x9f\xbf\"",
        b"\"\xed\xa0\x80\"",
        b"\"\xed\xbf\xbf\"",
        b"\"\xf0\x80\x80\x80\"",
        b"\"\xf4\x90\x80\x80\"",
        b"\"\xf8\x88\x80\x80\x80\"",
        b"\"\xe2\x82\"",
        b"\"\xf0\x9f\x98\"",
        b"[1,\xfe]",
        b"\xff\xfe{\x00}\x00",
        b"\xac\xed\x00\x05sr",
        b"{broken \xff",
        b"\"\xe2\x28\xa1\"",
    ] {
        check(bytes, Err(InvalidUtf8));
    }
}

#[test]
fn must_reject_numbers_out_of_range() {
    for document in [
        "1e309",
        "-1e309",
        "[1e400]",
        "{\"a\":1e99999}",
        &"1".repeat(65),
        &format!("0.{}", "1".repeat(64)),
        &format!("[{}e5]", "9".repeat(63)),
    ] {
        check(document.as_bytes(), Err(NumberRange));
    }
    for document in ["1e308", "1e-400", "5e-324", &"1".repeat(64)] {
        check(document.as_bytes(), Ok(()));
    }
}

#[test]
fn must_reject_duplicates_after_unescaping_wherever_they_are() {
    let many: Vec<String> = (0..100).map(|i| format!("\"name_{i}\":{i}")).collect();
    let many_twice = format!("{{{},\"name_7\":1}}", many.join(","));
    let escaped_twice = format!("{{{},\"n\\u0061me_7\":1}}", many.join(","));
    for document in [
        r#"{"a":1,"a":2}"#,
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"\u0061":1,"a":2}"#,
        r#"{"":1,"":2}"#,
        r#"{"a":1,"b":2,"a":3}"#,
        r#"{"x":{"a":1,"a":2}}"#,
        r#"[[{"a":1,"a":2}]]"#,
        r#"{"a":{"b":1},"a":[]}"#,
        r#"{"/":1,"\/":2}"#,
        r#"{"é":1,"\u00e9":2}"#,
        r#"{"😀":1,"\ud83d\ude00":2}"#,
        &many_twice,
        &escaped_twice,
    ] {
        check(document.as_bytes(), Err(DuplicateMember));
    }
    check(format!("{{{}}}", many.join(",")).as_bytes(), Ok(()));
}

#[test]
fn limits_hold_at_their_edges() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    let items = |count: usize| format!("[{}]", vec!["1"; count].join(","));
    let members =
        |count: usize| format!("{{{}}}", (0..count).map(|i| format!("\"m{i}\":1")).collect::<Vec<_>>().join(","));
    let string = |bytes: usize| format!("\"{}\"", "x".repeat(bytes));
    let escaped = |count: usize| format!("\"{}\"", "\\n".repeat(count));
    for (document, expect) in [
        (nested(32), Ok(())),
        (nested(33), Err(TooDeep)),
        (nested(10_000), Err(TooDeep)),
        (format!("{{\"a\":{}}}", "[".repeat(10_000)), Err(TooDeep)),
        (objects(32), Ok(())),
        (objects(33), Err(TooDeep)),
        (items(1000), Ok(())),
        (items(1001), Err(TooMany)),
        (members(2000), Ok(())),
        (members(2001), Err(TooMany)),
        (string(65_536), Ok(())),
        (string(65_537), Err(TooMany)),
        (escaped(65_536), Ok(())),
        (escaped(65_537), Err(TooMany)),
        (format!("{{\"{}\":1}}", "k".repeat(65_537)), Err(TooMany)),
        (format!("{}1", " ".repeat(262_143)), Ok(())),
        (format!("{}1", " ".repeat(262_144)), Err(TooLarge)),
    ] {
        check(document.as_bytes(), expect);
    }
}

#[test]
fn names_that_collide_cost_no_more_than_a_sort() {
    // Equal length, first and last eight bytes: all these names have one hash.
    let names: Vec<String> = (0..2000).map(|i| format!("\"aaaaaaaa{i:04}bbbbbbbb\":1")).collect();
    check(format!("{{{}}}", names.join(",")).as_bytes(), Ok(()));
    check(format!("{{{},{}}}", names[..1999].join(","), names[7]).as_bytes(), Err(DuplicateMember));
}

#[test]
fn an_error_has_a_place_and_a_fixed_sentence() {
    let mut tape = Tape::default();
    let error = tape.parse(b"{\"a\": CANARY}", &Limits::default()).unwrap_err();
    assert_eq!((error.offset, error.what), (6, "a value must stand here"));
    assert!(!error.to_string().contains("CANARY"));
}
