//! Langfuse's records in the shapes of its public API, as items.

use serde_json::{Value, json};

use super::*;
use crate::item::{DatasetRow, NeutralPrompt, NeutralScore, NeutralSpan, ScoreValue, SpanRepeat};

fn source() -> LangfuseSource {
    let window = ImportWindow { since: None, until: "2026-11-30T00:00:00.000Z".into() };
    LangfuseSource { url: "http://l".into(), public_key: "pk-1".into(), window, api: None }
}

fn page(task: &SourceTask, body: &Value) -> SourcePage {
    source().page(task, &SourceAnswer::of_json(body)).unwrap()
}

fn path(task: &SourceTask) -> String {
    match source().request(task) {
        SourceRequest::Get(path) => path,
        other => panic!("{other:?}"),
    }
}

fn spans(page: &SourcePage) -> Vec<&NeutralSpan> {
    page.items.iter().filter_map(|item| if let NeutralItem::Span(span) = item { Some(&**span) } else { None }).collect()
}

fn steps(page: &SourcePage) -> Vec<&str> {
    page.next.iter().map(|task| task.step.as_str()).collect()
}

#[test]
fn the_version_of_the_server_decides_on_the_endpoints() {
    let health = SourceTask::new("health");
    let first = |version: &str| page(&health, &json!({"status": "OK", "version": version})).next[0].step.clone();
    assert_eq!((first("3.160.0"), first("4.59.1")), ("traces".to_owned(), "observations_v2".to_owned()));
    let gone = SourceAnswer { status: 404, ..SourceAnswer::default() };
    let replaced = |step: &str| source().page(&SourceTask::new(step), &gone).unwrap();
    assert_eq!(steps(&replaced("observations")), ["observations_v2"]);
    assert!(replaced("traces").next.is_empty());
    let denied = SourceAnswer { status: 401, body: b"no".to_vec(), ..SourceAnswer::default() };
    let why = source().page(&SourceTask::new("traces"), &denied).unwrap_err().to_string();
    assert!(why.contains("status 401"), "{why}");
}

#[test]
fn pages_have_a_fixed_window_and_numbers_or_cursors() {
    let traces = SourceTask::new("traces");
    assert!(path(&traces).starts_with("/api/public/traces?page=1&limit=100&orderBy=timestamp.asc"));
    assert!(path(&traces).contains("toTimestamp=2026-11-30T00%3A00%3A00.000Z"));
    let next = page(&traces, &json!({"data": [], "meta": {"page": 1, "totalPages": 2}})).next;
    assert_eq!(next[0].cursor.as_deref(), Some("2"));
    assert!(page(&next[0], &json!({"data": [], "meta": {"page": 2, "totalPages": 2}})).next.is_empty());
    let scores = SourceTask::new("scores_v3");
    let next = page(&scores, &json!({"data": [], "meta": {"cursor": "a="}})).next;
    assert!(path(&next[0]).ends_with("&cursor=a%3D"));
}

#[test]
fn a_generation_of_the_first_api_has_its_tokens_costs_and_times() {
    let body = json!({"data": [{
        "id": "o1", "traceId": "t1", "type": "GENERATION", "name": "answer", "parentObservationId": null,
        "startTime": "2026-01-01T00:00:00.000Z", "endTime": "2026-01-01T00:00:02.000Z",
        "completionStartTime": "2026-01-01T00:00:00.500Z", "model": "gpt-4o", "modelParameters": {"temperature": 0.2},
        "input": [{"role": "user", "content": "hi"}], "output": {"role": "assistant", "content": "ho"},
        "metadata": {"team": "a"}, "level": "ERROR", "statusMessage": "too slow",
        "usage": {"input": 10, "output": 5, "total": 15, "unit": "TOKENS", "inputCost": 0.1},
        "usageDetails": {"input": 8, "input_cached_tokens": 2, "output": 5, "total": 15},
        "costDetails": {"input": 0.001, "output": 0.002, "total": 0.003}, "promptName": "greet", "promptVersion": 3
    }], "meta": {"page": 1, "totalPages": 1}});
    let page = page(&SourceTask::new("observations"), &body);
    let span = spans(&page)[0];
    assert_eq!((span.trace.as_str(), span.span.as_str(), span.parents[0].as_str()), ("t1", "o1", "trace-t1"));
    assert_eq!(span.fields["span_attributes"], json!({"name": "answer", "type": "llm"}));
    assert_eq!(
        span.fields["metrics"],
        json!({"start": 1_767_225_600, "end": 1_767_225_602, "time_to_first_token": 0.5, "prompt_tokens": 10,
            "completion_tokens": 5, "tokens": 15, "prompt_cached_tokens": 2, "estimated_cost": 0.003})
    );
    assert_eq!(span.fields["error"], "too slow");
    let metadata = &span.fields["metadata"];
    assert_eq!(
        (&metadata["model"], &metadata["temperature"], &metadata["team"]),
        (&json!("gpt-4o"), &json!(0.2), &json!("a"))
    );
    assert_eq!((&metadata["prompt_name"], &metadata["prompt_version"]), (&json!("greet"), &json!(3)));
}

#[test]
fn a_trace_is_a_root_with_its_user_and_session() {
    let body = json!({"data": [{"id": "t1", "timestamp": "2026-01-01T00:00:00.000Z", "name": "chat", "input": "q",
        "output": "a", "sessionId": "s", "userId": "u", "release": null, "version": null, "metadata": null,
        "tags": ["x"], "public": false, "environment": "default", "latency": 1.5, "totalCost": 9.0}],
        "meta": {"totalPages": 1}});
    let page = page(&SourceTask::new("traces"), &body);
    let span = spans(&page)[0];
    assert!(span.parents.is_empty() && span.fields["tags"] == json!(["x"]));
    assert_eq!(span.fields["metadata"]["user_id"], "u");
    assert_eq!(span.fields["metadata"]["session_id"], "s");
    assert_eq!(span.fields["metrics"], json!({"start": 1_767_225_600, "end": 1_767_225_601.5}), "no cost twice");
}

#[test]
fn observations_of_the_second_api_bring_their_trace() {
    let observation = json!({"id": "o1", "traceId": "t1", "startTime": "2026-01-01T00:00:00Z", "projectId": "p",
        "parentObservationId": null, "type": "SPAN", "name": "root", "userId": "u", "traceName": "chat",
        "isRootObservation": true, "input": "{\"q\": 1}", "output": "plain", "metadata": {"k": "short"}});
    let child = json!({"id": "o2", "traceId": "t1", "startTime": "2026-01-01T00:00:00Z", "projectId": "p",
        "parentObservationId": "o1", "type": "GENERATION", "totalCost": 0.5});
    let body = json!({"data": [child, observation], "meta": {}});
    let page = page(&SourceTask::new("observations_v2"), &body);
    let spans = spans(&page);
    assert_eq!(
        spans.iter().map(|span| span.key.as_str()).collect::<Vec<_>>(),
        ["trace/t1", "observation/o2", "trace/t1", "observation/o1"]
    );
    assert_eq!((spans[0].repeat, spans[2].repeat), (SpanRepeat::Implied, SpanRepeat::Added));
    assert_eq!(spans[2].fields["input"], json!({"q": 1}));
    assert_eq!(spans[2].fields["span_attributes"]["name"], "chat");
    assert_eq!(spans[1].fields["metrics"]["estimated_cost"], 0.5);
}

#[test]
fn cut_metadata_is_asked_for_in_full() {
    let long = "x".repeat(METADATA_SHOWN_CHARS);
    let body = json!({"data": [{"id": "o", "traceId": "t", "startTime": "2026-01-01T00:00:00Z",
        "metadata": {"long": long, "short": "y"}}], "meta": {"cursor": "c2"}});
    let first = page(&SourceTask::new("observations_v2"), &body);
    assert!(first.items.is_empty() && first.next.len() == 1);
    assert!(path(&first.next[0]).contains("&expandMetadata=long"));
    let second = page(&first.next[0], &body);
    assert_eq!((second.items.len(), second.next.len()), (2, 1));
    assert!(path(&second.next[0]).contains("cursor=c2") && !path(&second.next[0]).contains("expandMetadata"));
}

fn scores(body: &Value) -> (Vec<NeutralScore>, SourcePage) {
    let page = page(&SourceTask::new("scores_v2"), &json!({"data": body, "meta": {"totalPages": 1}}));
    let score = |item: &NeutralItem| if let NeutralItem::Score(score) = item { Some(score.clone()) } else { None };
    (page.items.iter().filter_map(score).collect(), page)
}

#[test]
fn scores_of_all_types_find_their_rows() {
    let (found, page) = scores(&json!([
        {"id": "1", "traceId": "t", "observationId": "o", "name": "a", "value": 0.5, "dataType": "NUMERIC",
            "comment": "fine", "source": "API"},
        {"id": "2", "traceId": "t", "name": "b", "value": 1, "stringValue": "True", "dataType": "BOOLEAN"},
        {"id": "3", "traceId": "t", "name": "c", "value": 0, "stringValue": "bad", "dataType": "CATEGORICAL"},
        {"id": "4", "sessionId": "s", "name": "d", "value": 1, "dataType": "NUMERIC"},
        {"id": "5", "name": "e", "value": true, "dataType": "BOOLEAN", "subject": {"kind": "observation", "id": "o"}}
    ]));
    let targets: Vec<(&str, &ScoreValue)> = found.iter().map(|one| (one.target.as_str(), &one.value)).collect();
    assert_eq!(
        targets,
        [
            ("observation/o", &ScoreValue::Number(0.5)),
            ("trace/t", &ScoreValue::Number(1.0)),
            ("trace/t", &ScoreValue::Text("bad".into())),
            ("observation/o", &ScoreValue::Number(1.0)),
        ]
    );
    assert_eq!(found[0].details["comment"], "fine");
    assert_eq!(page.unmapped["scores of sessions"], 1);
}

#[test]
fn a_run_becomes_an_experiment_with_the_trace_of_each_item() {
    let datasets = page(
        &SourceTask::new("datasets"),
        &json!({"data": [{"id": "d1", "name": "qa", "description": null, "metadata": {"a": 1}}],
            "meta": {"totalPages": 1}}),
    );
    assert_eq!(steps(&datasets), ["dataset_items", "runs"]);
    let runs = page(&datasets.next[1], &json!({"data": [{"id": "r1", "name": "first"}], "meta": {"totalPages": 1}}));
    let NeutralItem::Experiment(experiment) = &runs.items[0] else { panic!("an experiment") };
    assert_eq!((experiment.name.as_str(), experiment.dataset.as_deref()), ("first on qa", Some("qa")));
    let items = json!({"data": [{"id": "ri", "datasetItemId": "i1", "traceId": "t1"}], "meta": {"totalPages": 1}});
    let items = page(&runs.next[0], &items);
    assert_eq!(path(&items.next[0]), "/api/public/dataset-items/i1");
    let item = page(&items.next[0], &json!({"id": "i1", "input": {"q": 1}, "expectedOutput": {"a": 2}}));
    let trace = json!({"id": "t1", "name": "run", "timestamp": "2026-01-01T00:00:00Z", "output": {"a": 3},
        "observations": [{"id": "o1", "traceId": "t1", "type": "GENERATION", "startTime": "2026-01-01T00:00:00Z"}],
        "scores": [{"id": "s1", "traceId": "t1", "name": "ok", "value": 1, "dataType": "NUMERIC"}]});
    let trace = page(&item.next[0], &trace);
    let made = spans(&trace);
    assert_eq!((&made[0].fields["input"], &made[0].fields["expected"]), (&json!({"q": 1}), &json!({"a": 2})));
    assert_eq!(made[0].origin, Some(("qa".into(), "dataset-item/i1".into())));
    assert_eq!(made[1].home, ItemHome::Experiment("first on qa".into()));
    assert_eq!(trace.items.len(), 3);
}

#[test]
fn items_of_datasets_keep_their_source() {
    let task = SourceTask::about("dataset_items", json!({"name": "qa"}));
    let body = json!({"data": [{"id": "i1", "status": "ARCHIVED", "input": "q", "expectedOutput": null,
        "metadata": "note", "sourceTraceId": "t", "createdAt": "2026-01-01T00:00:00.000Z"}],
        "meta": {"totalPages": 1}});
    let page = page(&task, &body);
    let NeutralItem::DatasetRow(DatasetRow { key, fields, .. }) = &page.items[0] else { panic!("a row") };
    assert_eq!((key.as_str(), &fields["tags"]), ("dataset-item/i1", &json!(["archived"])));
    assert_eq!(
        fields["metadata"],
        json!({"value": "note", "langfuse": {"id": "i1", "sourceTraceId": "t", "status": "ARCHIVED"}})
    );
}

#[test]
fn prompts_come_version_by_version_with_their_labels() {
    let list =
        json!({"data": [{"name": "a b", "versions": [2, 1], "labels": ["production"]}], "meta": {"totalPages": 1}});
    let listed = page(&SourceTask::new("prompts"), &list);
    assert_eq!(path(&listed.next[0]), "/api/public/v2/prompts/a%20b?version=1");
    let body = json!({"type": "chat", "name": "a b", "version": 1, "labels": ["production", "latest"], "tags": ["t"],
        "config": {"model": "gpt-4o", "temperature": 0.5, "other": 1}, "commitMessage": "start",
        "prompt": [{"role": "system", "content": "Be {{mood}}."}, {"type": "placeholder", "name": "history"}]});
    let page = page(&listed.next[0], &body);
    let NeutralItem::Prompt(prompt) = &page.items[0] else { panic!("a prompt") };
    let NeutralPrompt { prompt_data, labels, metadata, .. } = &**prompt;
    assert_eq!(prompt_data["prompt"]["messages"][1], json!({"role": "user", "content": "{{history}}"}));
    assert_eq!(prompt_data["options"], json!({"model": "gpt-4o", "params": {"temperature": 0.5}}));
    assert_eq!((labels.as_slice(), &metadata["config"]["other"]), (&["production".to_owned()][..], &json!(1)));
    assert_eq!(page.unmapped.len(), 1);
}

#[test]
fn files_of_an_export_are_like_the_api() {
    let export = LangfuseExport { path: "/x".into() };
    let files = ["p/scores/1.jsonl", "p/traces/1.jsonl", "p/observations/1.csv", "p/other.jsonl"];
    let records = files.iter().map(|file| json!({"file": file})).collect();
    let listed = SourceAnswer { status: 200, records, ..SourceAnswer::default() };
    let page = export.page(&export.first_tasks()[0], &listed).unwrap();
    let order: Vec<&str> = page.next.iter().map(|task| task.text("file")).collect();
    assert_eq!(order, ["p/traces/1.jsonl", "p/observations/1.csv", "p/scores/1.jsonl"]);
    let record = json!({"id": "o1", "trace_id": "t1", "type": "GENERATION", "start_time": "2024-05-29 13:46:19.963000",
        "end_time": "", "parent_observation_id": "", "provided_model_name": "m", "total_cost": "0.25",
        "usage_details": "{\"input\": 3, \"output\": 1}", "input": "{\"q\": 1}"});
    let answer = SourceAnswer { status: 200, records: vec![record], ..SourceAnswer::default() };
    let page = export.page(&page.next[1], &answer).unwrap();
    let span = spans(&page)[0];
    assert_eq!(span.fields["created"], "2024-05-29T13:46:19.963000Z");
    assert_eq!(
        (&span.fields["metrics"]["prompt_tokens"], &span.fields["metrics"]["estimated_cost"]),
        (&json!(3), &json!(0.25))
    );
    assert_eq!((&span.fields["input"], &span.fields["metadata"]["model"]), (&json!({"q": 1}), &json!("m")));
}
