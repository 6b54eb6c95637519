//! Sources that cannot be drawn from: what is wrong, where, and what to do.

use crate::support::{Run, toolgate, write};

fn mcp(schema: &str, more: &[&str]) -> Run {
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        "tools.json",
        &format!("{{\"tools\": [{{\"name\": \"t\", \"outputSchema\": {schema}}}, {{\"name\": \"bare\"}}]}}"),
    );
    let run = toolgate(dir.path(), &[&["contract", "import", "mcp", "tools.json", "--out", "c"], more].concat());
    assert_eq!(run.code == 0, dir.path().join("c").exists());
    run
}

#[test]
fn a_reference_out_of_the_document_is_never_fetched() {
    mcp(r#"{"type": "object", "properties": {"a": {"$ref": "https://evil.example/x.json"}}}"#, &[]).fails(
        1,
        &[
            "tools.json: /tools/0/outputSchema/properties/a/$ref: the reference leads out of this document",
            "nothing is fetched",
        ],
    );
    mcp(r#"{"type": "object", "properties": {"a": {"$ref": "file.json#/x"}}}"#, &[])
        .fails(1, &["leads out of this document"]);
    mcp(r##"{"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}}"##, &[])
        .fails(1, &["the reference leads nowhere"]);
}

#[test]
fn a_schema_that_contains_itself_names_the_way_out() {
    let schema = r##"{"type": "object", "properties": {"id": {"type": "boolean"}, "reply": {"$ref": "#/$defs/c"}, "also": {"$ref": "#/$defs/c"}}, "required": ["reply", "also"],
        "$defs": {"c": {"type": "object", "required": ["n"], "properties": {"n": {"type": "boolean"}, "replies": {"type": "array", "items": {"$ref": "#/$defs/c"}}}}}}"##;
    mcp(schema, &[]).fails(
        1,
        &["the schema contains itself: /reply/replies/* leads back to #/$defs/c", "--without /reply/replies/*"],
    );
    // The same definition twice, side by side, is no circle.
    mcp(schema, &["--without", "/reply/replies", "--without", "/also/replies"]).works();
    mcp(r##"{"$ref": "#"}"##, &[]).fails(1, &["/tools/0/outputSchema"]);
}

#[test]
fn what_cannot_be_said_is_named() {
    mcp(r#"{"type": "object", "properties": {"a": {"type": "boolean"}}, "not": {}}"#, &[])
        .fails(1, &["not cannot be said in a contract"]);
    mcp("{}", &[]).fails(1, &["the source admits every type here", "toolgate contract new"]);
    let run = mcp(
        r#"{"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"if": {}, "type": "string"}, "c": {"type": "string", "maxLenght": 3}}}"#,
        &[],
    );
    let said = run.works();
    assert!(said.contains("/b: if cannot be said in a contract [left_out]"), "{said}");
    assert!(said.contains("/c: maxLenght is no keyword; it was ignored [ignored]"), "{said}");
    assert!(said.contains("must decide: /c: the source does not bound this string"), "{said}");
}

#[test]
fn a_tool_that_does_not_say_what_it_answers_is_listed() {
    let run = mcp(r#"{"type": "object", "properties": {"a": {"type": "boolean"}}}"#, &[]);
    run.works();
    assert!(
        run.stderr.contains("/tools/1: bare has no outputSchema") && run.stderr.contains("toolgate contract new"),
        "{}",
        run.stderr
    );
    mcp("{}", &["--tool", "bare"]).fails(1, &["no tool here says what it answers"]);
    mcp("{}", &["--tool", "other"]).fails(1, &["there is no such tool; it has: t, bare"]);
}

#[test]
fn the_machine_reads_the_decisions() {
    let run = mcp(r#"{"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}"#, &["--json"]);
    let draft: serde_json::Value = serde_json::from_str(run.works()).unwrap();
    let decision = &draft["decisions"][0];
    assert_eq!(decision["topic"], "string_bound");
    assert_eq!(decision["blocks"], true);
    assert_eq!(decision["place"], "/a");
    assert_eq!(decision["source"], "/tools/0/outputSchema/properties/a");
}

#[test]
fn an_openapi_document_says_what_it_has() {
    let dir = tempfile::tempdir().unwrap();
    let import = |text: &str, operation: &str, status: &str| {
        write(dir.path(), "api.yaml", text);
        toolgate(
            dir.path(),
            &["contract", "import", "openapi", "api.yaml", "--operation", operation, "--status", status, "--out", "c"],
        )
    };
    let api = "openapi: 3.0.3\npaths:\n  /a:\n    get:\n      operationId: getA\n      responses:\n        '200': {description: x}\n        '204': {$ref: 'https://evil.example/r'}\n  /b:\n    post: {responses: {}}\n";
    import(api, "getB", "200").fails(1, &["api.yaml: /paths: there is no operation getB", "it has: getA, \"POST /b\""]);
    import(api, "getA", "404").fails(1, &["/paths/~1a/get/responses: there is no response 404", "it has: 200, 204"]);
    import(api, "get /a", "200").fails(1, &["the response has no JSON body"]);
    import(api, "getA", "204").fails(1, &["leads out of this document", "nothing is fetched"]);
    import("swagger: '2.0'\n", "x", "200").fails(1, &["/openapi: this is no OpenAPI 3 document"]);
    import("openapi: 3.0.0\nopenapi: 3.1.0\n", "x", "200").fails(1, &["api.yaml: 2:"]);
}
