//! Tasks and scorers in code: forms of results, hooks, and scorers that read the trace of their case.
//!
//! Without an interpreter or a sandbox the test reports "not covered" and passes, unless ASSAY_REQUIRE=all.

use std::io::Write;

use serde_json::{Value, json};

use super::bundles;
use super::fixture::{EvalNode, EvalProject, echo, names, of_type, with};

#[test]
fn code_is_task_and_scorer() {
    let node = EvalNode::start();
    let project = &node.project;
    if !runs_code(project) {
        return;
    }
    forms_of_results(project);
    hooks(project);
    traces(project);
    pinned_versions(project);
    bundles::check(project);
}

fn code(text: &str, more: &Value) -> Value {
    with(&json!({"inline_context": {"runtime": "node", "version": "20"}, "code": text}), more)
}

fn python(text: &str, more: &Value) -> Value {
    with(&json!({"inline_context": {"runtime": "python", "version": "3.11"}, "code": text}), more)
}

fn runs_code(project: &EvalProject) -> bool {
    let rows = rows_of(project, &code("const handler = () => 1", &json!({})), &json!([]), &json!({}));
    let root = of_type(&rows, "eval")[0].clone();
    if root["output"] == 1 {
        return true;
    }
    assert_ne!(std::env::var("ASSAY_REQUIRE").as_deref(), Ok("all"), "{root}");
    // To the stream itself: what a passing test prints is not shown.
    let _ = writeln!(std::io::stderr(), "NOT COVERED: evaluations with code: {}", root["error"]);
    false
}

/// Runs a task over one case, and returns the rows.
fn rows_of(project: &EvalProject, task: &Value, scores: &Value, more: &Value) -> Vec<Value> {
    let data = json!([{"input": {"a": 1}, "expected": 2, "metadata": {"m": 3}, "tags": ["t"]}]);
    let body = json!({"project_id": project.id, "data": {"data": data}, "task": task, "scores": scores});
    let summary = project.run(&with(&body, more));
    project.rows(&project.experiment(summary["experiment_name"].as_str().expect("a name")))
}

/// Forms of functions.md 7.1, and those that are no scores.
fn forms_of_results(project: &EvalProject) {
    let scorer = |name: &str, value: &str| {
        code(&format!("const handler = () => ({value})"), &json!({"name": name, "function_type": "scorer"}))
    };
    let scores = json!([
        scorer("number", "0.25"),
        scorer("boolean", "true"),
        scorer("skipped", "null"),
        scorer("object", "{score: 0.5, name: 'named', metadata: {why: 1}}"),
        scorer("list", "[{name: 'one', score: 0}, {name: 'two', score: 1}]"),
        scorer("text", "'high'"),
        scorer("beyond", "1.5"),
        scorer("twice", "[{name: 'x', score: 0}, {name: 'x', score: 1}]"),
        scorer("throws", "(() => { throw new Error('broken scorer') })()"),
        code(
            "const handler = ({output}) => ({name: 'kind', id: 'k' + output})",
            &json!({"name": "kind", "function_type": "classifier"})
        ),
        code("const handler = () => ['more', 't']", &json!({"name": "tags", "function_type": "tag"})),
        python(
            "def handler(input, output, expected, metadata):\n    return [input, output, expected, metadata] == [{'a': 1}, 7, 2, {'m': 3}]",
            &json!({"name": "arguments", "function_type": "scorer"})
        ),
    ]);
    let rows = rows_of(project, &code("const handler = () => 7", &json!({})), &scores, &json!({}));
    let root = of_type(&rows, "eval")[0];
    let expected = json!({"number": 0.25, "boolean": 1.0, "named": 0.5, "one": 0.0, "two": 1.0, "arguments": 1.0});
    assert_eq!(root["scores"], expected, "{root}");
    let errors = root["metadata"]["scorer_errors"].as_object().expect("errors");
    assert_eq!(names(errors), ["beyond", "text", "throws", "twice"]);
    assert!(errors["throws"].as_str().is_some_and(|why| why.contains("broken scorer")), "{errors:?}");
    assert_eq!(root["classifications"]["kind"][0]["id"], "k7");
    assert_eq!(root["tags"], json!(["t", "more"]));
    let spans = of_type(&rows, "score");
    let span = |name: &str| spans.iter().find(|row| row["span_attributes"]["name"] == name).expect("a span");
    assert_eq!(span("skipped")["scores"], json!({"skipped": null}));
    assert_eq!(span("object")["metadata"], json!({"why": 1}));
    assert_eq!((&span("text")["output"], span("text")["error"].is_string()), (&json!("high"), true));
}

/// Tasks receive their case through hooks.
fn hooks(project: &EvalProject) {
    let task = code(
        "const handler = (input, hooks) => [input, hooks.expected, hooks.metadata, hooks.tags, hooks.parameters, hooks.trialIndex]",
        &json!({"function_type": "task"}),
    );
    let more = json!({"parameters": {"p": "q"}, "trial_count": 2});
    let rows = rows_of(project, &task, &json!([]), &more);
    let mut outputs: Vec<String> = of_type(&rows, "eval").iter().map(|row| row["output"].to_string()).collect();
    outputs.sort();
    let expected = |trial: usize| json!([{"a": 1}, 2, {"m": 3}, ["t"], {"p": "q"}, trial]).to_string();
    assert_eq!(outputs, [expected(0), expected(1)]);
    // A Python function takes the members of its input by name.
    let rows = rows_of(project, &python("def handler(a):\n    return a + 1", &json!({})), &json!([]), &json!({}));
    assert_eq!(of_type(&rows, "eval")[0]["output"], 2);
}

/// Scorers read the spans of their case, of which those of the task are written.
fn traces(project: &EvalProject) {
    let scorer = code(
        "const handler = async ({trace}) => { const spans = await trace.getSpans(); \
         const types = spans.map((span) => span.span_attributes.type).sort(); \
         return {score: types.includes('eval') && types.includes('task') ? 1 : 0, metadata: {types}} }",
        &json!({"name": "reads", "function_type": "scorer"}),
    );
    let rows = rows_of(project, &echo(), &json!([scorer]), &json!({}));
    let root = of_type(&rows, "eval")[0];
    assert_eq!(root["scores"], json!({"reads": 1.0}), "{root}");
    let types = &of_type(&rows, "score")[0]["metadata"]["types"];
    assert!(types.as_array().is_some_and(|types| types.contains(&json!("llm"))), "{types}");
}

/// A run keeps the version of a function that it began with.
fn pinned_versions(project: &EvalProject) {
    let data = json!({"type": "inline", "runtime_context": {"runtime": "node", "version": "20"},
        "code": "const handler = () => 'first'"});
    let function = json!({"project_id": project.id, "name": "stored", "slug": "stored", "function_type": "task",
        "function_data": {"type": "code", "data": data}});
    let stored = project.api("POST", "/v1/function", &function);
    let task = json!({"project_name": "evaluations", "slug": "stored"});
    let rows = rows_of(project, &task, &json!([]), &json!({}));
    assert_eq!(of_type(&rows, "eval")[0]["output"], "first");
    let task = json!({"function_id": stored["id"], "version": stored["_xact_id"]});
    let rows = rows_of(project, &task, &json!([]), &json!({}));
    assert_eq!(of_type(&rows, "task")[0]["output"], "first");
    // Rows of a playground are functions too.
    let session = project.api("POST", "/v1/prompt_session", &json!({"project_id": project.id, "name": "play"}));
    let write = |output: &str| {
        let data = json!({"type": "inline", "code": format!("const handler = () => '{output}'"),
            "runtime_context": {"runtime": "node", "version": "20"}});
        let row = json!({"id": "a", "prompt_session_id": session["id"], "log_id": "x",
            "function_data": {"type": "code", "data": data}});
        project.api("POST", "/logs3", &json!({"rows": [row], "api_version": 2}));
    };
    write("older");
    let query = format!("select: _xact_id | from: playground_logs('{}')", session["id"].as_str().expect("an id"));
    let older = project.api("POST", "/btql", &json!({"query": query, "fmt": "json"}))["data"][0]["_xact_id"].take();
    write("newer");
    let row = json!({"prompt_session_id": session["id"], "prompt_session_function_id": "a"});
    for (task, expected) in [(row.clone(), "newer"), (with(&row, &json!({"version": older})), "older")] {
        let rows = rows_of(project, &task, &json!([]), &json!({}));
        let root = of_type(&rows, "eval")[0];
        assert_eq!(root["output"], expected, "{root}");
    }
}
