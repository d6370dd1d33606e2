//! Answers of sources in the shapes of their public APIs, as items.

use std::collections::HashSet;

use assay_node_importers::{
    BraintrustSource, ImportSource, ImportWindow, ItemHome, LangsmithExport, LangsmithSource, MlflowSource,
    NeutralItem, NeutralScore, NeutralSpan, PhoenixSource, Planner, ScoreValue, SourceAnswer, SourcePage,
    SourceRequest, SourceTask, Tally, TargetStep,
};
use serde_json::{Value, json};

fn window() -> ImportWindow {
    ImportWindow { since: Some("2026-01-01T00:00:00.000Z".into()), until: "2026-11-30T00:00:00.000Z".into() }
}

fn page(source: &dyn ImportSource, task: &SourceTask, body: &Value) -> SourcePage {
    source.page(task, &SourceAnswer::of_json(body)).expect("a page")
}

fn path(source: &dyn ImportSource, task: &SourceTask) -> String {
    match source.request(task) {
        SourceRequest::Get(path) => path,
        SourceRequest::Search { path, .. } => path,
        other => panic!("{other:?}"),
    }
}

fn spans(page: &SourcePage) -> Vec<&NeutralSpan> {
    page.items.iter().filter_map(|item| if let NeutralItem::Span(span) = item { Some(&**span) } else { None }).collect()
}

fn scores(page: &SourcePage) -> Vec<&NeutralScore> {
    page.items.iter().filter_map(|item| if let NeutralItem::Score(score) = item { Some(score) } else { None }).collect()
}

/// Rows that a page writes.
fn rows(source: &dyn ImportSource, page: SourcePage) -> Vec<(ItemHome, Value)> {
    let planner = Planner::new(source.name(), &source.identity(), HashSet::new());
    let (planned, _) = planner.plan(page, &Tally::default()).expect("a plan");
    let rows = planned.steps.into_iter().filter_map(|step| match step {
        TargetStep::Rows { object, rows } => {
            Some(rows.into_iter().map(move |row| (object.clone(), Value::Object(row))))
        }
        _ => None,
    });
    rows.flatten().collect()
}

fn phoenix() -> PhoenixSource {
    PhoenixSource { url: "http://p".into(), window: window(), source_project: None }
}

#[test]
fn spans_of_phoenix_keep_their_ids_and_get_their_annotations() {
    let source = phoenix();
    let projects =
        page(&source, &source.first_tasks()[0], &json!({"data": [{"id": "UHJvamVjdDox", "name": "default"}]}));
    let spans_task = &projects.next[0];
    assert!(path(&source, spans_task).starts_with("/v1/projects/UHJvamVjdDox/spans?limit=100&end_time=2026-11-30"));
    let body = json!({"next_cursor": "c", "data": [{
        "name": "ChatCompletion", "span_kind": "LLM", "parent_id": null,
        "context": {"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7"},
        "start_time": "2026-01-01T00:00:00+00:00", "end_time": "2026-01-01T00:00:01.500000+00:00",
        "status_code": "ERROR", "status_message": "boom", "events": [],
        "attributes": {"llm.model_name": "gpt-4o", "llm.token_count.prompt": 5, "llm.token_count.completion": 7,
            "llm.cost.total": 0.25, "metadata.team": ["a"], "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "hi", "output.value": "ho"}
    }]});
    let found = page(&source, spans_task, &body);
    let span = spans(&found)[0];
    assert_eq!(span.row_id.as_deref(), Some("4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"));
    assert_eq!(span.fields["span_attributes"], json!({"name": "ChatCompletion", "type": "llm"}));
    let metrics = &span.fields["metrics"];
    assert_eq!(
        (&metrics["prompt_tokens"], &metrics["estimated_cost"], &metrics["end"]),
        (&json!(5), &json!(0.25), &json!(1_767_225_601.5))
    );
    assert_eq!(span.fields["metadata"]["team"], json!(["a"]));
    assert!(span.fields["error"].as_str().is_some_and(|error| error.contains("boom")), "{:?}", span.fields);
    let steps: Vec<&str> = found.next.iter().map(|task| task.step.as_str()).collect();
    assert_eq!(steps, ["annotations", "spans"]);
    assert!(path(&source, &found.next[0]).contains("span_ids=00f067aa0ba902b7"));
    let annotations = json!({"data": [{"id": "a1", "name": "helpful", "annotator_kind": "HUMAN",
        "span_id": "00f067aa0ba902b7", "result": {"label": "good", "score": 1.0, "explanation": "because"}},
        {"id": "a2", "name": "tone", "span_id": "00f067aa0ba902b7", "result": {"label": "rude"}}]});
    let annotated = page(&source, &found.next[0], &annotations);
    let values: Vec<&ScoreValue> = scores(&annotated).iter().map(|score| &score.value).collect();
    assert_eq!(values, [&ScoreValue::Number(1.0), &ScoreValue::Text("rude".into())]);
    assert_eq!(scores(&annotated)[0].row_id, span.row_id);
    assert_eq!(scores(&annotated)[0].details["comment"], "because");
}

#[test]
fn experiments_and_prompts_of_phoenix_are_whole() {
    let source = phoenix();
    let task = SourceTask::about("experiments", json!({"name": "qa", "id": "D1"}));
    let list =
        json!({"data": [{"id": "E1", "name": "first", "metadata": {}, "dataset_id": "D1"}], "next_cursor": null});
    let experiments = page(&source, &task, &list);
    assert_eq!(path(&source, &experiments.next[0]), "/v1/experiments/E1/json");
    let runs = json!([{"example_id": "X1", "repetition_number": 1, "input": {"q": 1}, "reference_output": {"a": 2},
        "output": "three", "error": null, "start_time": "2026-01-01T00:00:00Z", "end_time": "2026-01-01T00:00:01Z",
        "annotations": [{"name": "exact", "score": 0.0, "label": "no"}, {"name": "length", "score": 12.0}]}]);
    let found = rows(&source, page(&source, &experiments.next[0], &runs));
    let (home, row) = &found[0];
    assert_eq!(*home, ItemHome::Experiment("first E1".into()));
    assert_eq!((&row["expected"], &row["scores"]), (&json!({"a": 2}), &json!({"exact": 0})));
    assert_eq!(row["metadata"]["imported_scores"]["length"]["value"], 12);
    assert_eq!(row["origin"]["dataset_name"], "qa");
    let versions = SourceTask::about("versions", json!({"name": "greet", "id": "P1", "description": "d"}));
    let version = |id: &str| {
        json!({"id": id, "model_provider": "OPENAI", "model_name": "gpt-4o", "template_type": "CHAT",
        "template_format": "MUSTACHE", "template": {"type": "chat", "messages": [{"role": "ai",
            "content": [{"type": "text", "text": "Hello {{name}}"}]}]},
        "invocation_parameters": {"type": "openai", "openai": {"temperature": 0.5}}})
    };
    let listed = page(&source, &versions, &json!({"data": [version("V2"), version("V1")], "next_cursor": null}));
    assert_eq!(path(&source, &listed.next[0]), "/v1/prompt_versions/V1/tags?limit=100", "the oldest comes first");
    let tags = page(&source, &listed.next[0], &json!({"data": [{"id": "T", "name": "production"}]}));
    let NeutralItem::Prompt(prompt) = &tags.items[0] else { panic!("a prompt") };
    assert_eq!(prompt.labels, ["production"]);
    assert_eq!(
        prompt.prompt_data,
        json!({"prompt": {"type": "chat", "messages": [{"role": "assistant", "content": "Hello {{name}}"}]},
            "template_format": "mustache", "options": {"model": "gpt-4o", "params": {"temperature": 0.5}}})
    );
}

fn mlflow() -> MlflowSource {
    MlflowSource { url: "http://m".into(), window: window(), source_project: None }
}

#[test]
fn traces_of_mlflow_are_read_in_both_forms() {
    let source = mlflow();
    let experiments =
        page(&source, &source.first_tasks()[0], &json!({"experiments": [{"experiment_id": "1", "name": "e"}]}));
    let SourceRequest::Search { path: place, body } = source.request(&experiments.next[0]) else { panic!("a search") };
    assert_eq!(place, "/api/3.0/mlflow/traces/search");
    assert_eq!(body["locations"][0]["mlflow_experiment"]["experiment_id"], "1");
    assert_eq!(body["filter"], "trace.timestamp_ms < 1795996800000 AND trace.timestamp_ms >= 1767225600000");
    let info = json!({"trace_id": "tr-1", "state": "OK", "request_time": "2026-01-01T00:00:00Z",
        "trace_location": {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "1"}},
        "trace_metadata": {"mlflow.trace.user": "u"}, "tags": {"team": "a", "mlflow.traceName": "x"},
        "assessments": [
            {"assessment_id": "a-1", "assessment_name": "ok", "feedback": {"value": true}, "rationale": "fine"},
            {"assessment_id": "a-2", "assessment_name": "truth", "expectation": {"value": "42"}}]});
    let listed = page(&source, &experiments.next[0], &json!({"traces": [info], "next_page_token": "n"}));
    assert_eq!(path(&source, &listed.next[0]), "/api/3.0/mlflow/traces/batchGet?trace_ids=tr-1");
    assert_eq!(listed.next[1].cursor.as_deref(), Some("n"));
    let span = json!({"trace_id": "S/kvNXezTaajzpKdDg5HNg==", "span_id": "APBnqgupArc=", "parent_span_id": "",
        "name": "chat", "start_time_unix_nano": "1767225600000000000", "end_time_unix_nano": "1767225601500000000",
        "status": {"code": "STATUS_CODE_OK"},
        "attributes": [{"key": "mlflow.spanType", "value": {"string_value": "CHAT_MODEL"}},
            {"key": "mlflow.spanInputs", "value": {"string_value": "{\"q\": 1}"}},
            {"key": "mlflow.chat.tokenUsage", "value": {"kvlist_value": {"values": [
                {"key": "input_tokens", "value": {"int_value": "3"}},
                {"key": "output_tokens", "value": {"int_value": "4"}}]}}}]});
    let whole = page(&source, &listed.next[0], &json!({"traces": [{"trace_info": info, "spans": [span]}]}));
    let made = spans(&whole)[0];
    assert_eq!((made.trace.as_str(), made.span.as_str()), ("tr-1", "00f067aa0ba902b7"));
    assert_eq!((&made.fields["input"], &made.fields["span_attributes"]["type"]), (&json!({"q": 1}), &json!("llm")));
    assert_eq!(
        made.fields["metrics"],
        json!({"start": 1_767_225_600, "end": 1_767_225_601.5, "prompt_tokens": 3, "completion_tokens": 4})
    );
    assert_eq!(made.fields["metadata"]["user_id"], "u");
    assert_eq!(made.fields["metadata"]["mlflow"]["tags"], json!({"team": "a"}));
    assert_eq!(scores(&whole)[0].value, ScoreValue::Number(1.0));
    assert_eq!(scores(&whole)[0].target, made.key);
    // A server that keeps spans as artifacts.
    let gone = SourceAnswer { status: 404, ..SourceAnswer::default() };
    let artifacts = source.page(&listed.next[0], &gone).expect("a page");
    assert!(path(&source, &artifacts.next[0]).ends_with("get-trace-artifact?request_id=tr-1"));
    let old = json!({"spans": [{"name": "chat", "context": {"span_id": "0x00f067aa0ba902b7", "trace_id": "0x1"},
        "parent_id": null, "start_time": 1_767_225_600_000_000_000_i64, "end_time": 1_767_225_601_000_000_000_i64,
        "status_code": "ERROR", "status_message": "boom", "attributes": {"mlflow.spanInputs": "\"hi\""}}]});
    let old = page(&source, &artifacts.next[0], &old);
    assert_eq!(spans(&old)[0].key, made.key, "both forms are the same span");
    assert_eq!((&spans(&old)[0].fields["input"], &spans(&old)[0].fields["error"]), (&json!("hi"), &json!("boom")));
}

fn langsmith() -> LangsmithSource {
    LangsmithSource { url: "http://s".into(), window: window(), source_project: None }
}

fn run(id: &str, parent: Option<&str>, kind: &str) -> Value {
    json!({"id": id, "trace_id": "r1", "parent_run_id": parent, "name": kind, "run_type": kind, "session_id": "s1",
        "start_time": "2026-01-01T00:00:00.000000", "end_time": "2026-01-01T00:00:02.000000", "inputs": {"q": 1},
        "outputs": {"a": 2}, "tags": ["t"], "extra": {"metadata": {"ls_model_name": "gpt-4o", "k": "v"}},
        "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, "total_cost": "0.25",
        "reference_example_id": "x1"})
}

#[test]
fn runs_of_langsmith_have_their_costs_once() {
    let source = langsmith();
    let sessions = page(
        &source,
        &SourceTask::new("sessions"),
        &json!([{"id": "s1", "name": "prod"},
        {"id": "s2", "name": "exp", "reference_dataset_id": "d1"}]),
    );
    let steps: Vec<&str> = sessions.next.iter().map(|task| task.step.as_str()).collect();
    assert_eq!(steps, ["runs", "session_dataset"]);
    let SourceRequest::Search { path: place, body } = source.request(&sessions.next[0]) else { panic!("a search") };
    assert_eq!((place.as_str(), &body["session"]), ("/api/v1/runs/query", &json!(["s1"])));
    assert_eq!(body["filter"], "lt(start_time, \"2026-11-30T00:00:00.000Z\")");
    let runs = json!({"runs": [run("r1", None, "chain"), run("r2", Some("r1"), "llm")], "cursors": {"next": "c"}});
    let found = page(&source, &sessions.next[0], &runs);
    let made = spans(&found);
    assert!(made[0].fields["metrics"].get("estimated_cost").is_none() && made[0].parents.is_empty());
    assert_eq!(made[1].fields["metrics"]["estimated_cost"], 0.25);
    assert_eq!((made[1].parents[0].as_str(), &made[1].fields["metadata"]["model"]), ("r1", &json!("gpt-4o")));
    assert!(path(&source, &found.next[0]).starts_with("/api/v1/feedback?run=r1&run=r2"));
    let feedback = page(
        &source,
        &found.next[0],
        &json!([{"id": "f1", "run_id": "r1", "key": "ok", "score": true,
        "comment": "yes"}, {"id": "f2", "run_id": "r2", "key": "stars", "score": 4.0}]),
    );
    assert_eq!(scores(&feedback)[0].value, ScoreValue::Number(1.0));
    assert_eq!(scores(&feedback)[1].target, "run/r2");
    // A session of an experiment.
    let dataset = page(&source, &sessions.next[1], &json!({"id": "d1", "name": "qa"}));
    let experiment = page(&source, &dataset.next[0], &json!({"runs": [run("r9", None, "chain")], "cursors": {}}));
    let made = spans(&experiment)[0];
    assert_eq!(made.home, ItemHome::Experiment("exp".into()));
    assert_eq!(made.origin, Some(("qa".into(), "example/x1".into())));
    assert_eq!(made.fields["span_attributes"]["type"], "eval");
}

#[test]
fn rows_of_a_bulk_export_are_runs() {
    let export = LangsmithExport { path: "/x".into() };
    let mut row = run("r2", Some("r1"), "llm");
    row["inputs"] = json!("{\"q\": 1}");
    row["extra"] = json!("{\"metadata\": {\"ls_model_name\": \"m\"}}");
    let task = SourceTask::about("records", json!({"file": "a.parquet"}));
    let answer = SourceAnswer { status: 200, records: vec![row], ..SourceAnswer::default() };
    let found = export.page(&task, &answer).expect("a page");
    let made = spans(&found)[0];
    assert_eq!((&made.fields["input"], &made.fields["metadata"]["model"]), (&json!({"q": 1}), &json!("m")));
}

#[test]
fn rows_of_braintrust_keep_their_ids() {
    let source = BraintrustSource { url: "http://b".into(), source_project: "chat".into(), window: window() };
    let project = page(&source, &source.first_tasks()[0], &json!({"objects": [{"id": "p1", "name": "chat"}]}));
    let steps: Vec<&str> = project.next.iter().map(|task| task.step.as_str()).collect();
    assert_eq!(steps, ["project_logs", "datasets", "experiments", "prompts"]);
    let SourceRequest::Search { body, .. } = source.request(&project.next[0]) else { panic!("a search") };
    assert_eq!(body["query"]["from"]["name"]["name"], json!(["project_logs"]));
    let body = json!({"data": [{"id": "row", "_xact_id": "1", "project_id": "p1", "log_id": "g", "span_id": "s",
        "root_span_id": "t", "span_parents": ["r"], "is_root": false, "input": 1, "output": null,
        "scores": {"ok": 1}, "metrics": {"estimated_cost": 0.5}, "comments": [{"text": "hm"}]}], "cursor": "next"});
    let found = page(&source, &project.next[0], &body);
    assert_eq!(found.next[0].cursor.as_deref(), Some("next"));
    assert_eq!(found.unmapped.keys().collect::<Vec<_>>(), ["`comments` of rows"]);
    assert_eq!(
        rows(&source, found)[0].1,
        json!({"id": "row", "span_id": "s", "root_span_id": "t", "span_parents": ["r"], "input": 1,
            "scores": {"ok": 1}, "metrics": {"estimated_cost": 0.5}})
    );
}
