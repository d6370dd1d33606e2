//! Tests of requests.

use serde_json::{Map, Value, json};

use super::*;

const ID: &str = "11111111-2222-4333-8444-555555555555";

fn body() -> Map<String, Value> {
    let body = json!({"project_id": ID, "data": {"dataset_id": ID}, "task": {"function_id": "f"}, "scores": []});
    body.as_object().cloned().expect("an object")
}

fn read(members: Value) -> Result<EvalRequest, String> {
    let Value::Object(members) = members else { panic!("an object") };
    let mut body = body();
    body.extend(members);
    EvalRequest::read(body).map_err(|error| error.to_string())
}

fn uuid() -> Uuid {
    Uuid::parse_str(ID).expect("a UUID")
}

#[test]
fn a_minimal_request_has_the_defaults() {
    let request = read(json!({})).expect("a request");
    assert_eq!(request.project_id, uuid());
    assert_eq!(request.limits, EvalLimits { max_concurrency: 10, trial_count: 1, timeout_ms: None });
    assert_eq!(request.options, EvalCallOptions::default());
    assert_eq!(request.experiment, EvalExperiment::default());
    assert_eq!((request.parent, request.name, request.stop_token, request.is_stream), (None, None, None, false));
    assert!(request.scores.is_empty() && request.parameters.is_empty());
}

#[test]
fn null_and_empty_members_count_as_absent() {
    let absent = json!({"name": "", "parameters": null, "experiment_name": "", "metadata": null, "parent": "",
        "stream": null, "trial_count": null, "is_public": null, "timeout": null, "base_experiment_name": null,
        "base_experiment_id": "", "git_metadata_settings": null, "repo_info": null, "strict": null, "stop_token": null,
        "extra_messages": "", "tags": null, "mcp_auth": null, "unknown": 1});
    assert_eq!(read(absent), read(json!({})));
    assert_eq!(read(json!({"parent": "  "})).expect("a request").parent, None);
}

#[test]
fn all_members_are_read() {
    let request = read(json!({
        "name": "my eval", "parameters": {"a": 1}, "scores": [{"global_function": "ExactMatch"}],
        "experiment_name": "e", "metadata": {"m": 1}, "tags": ["x", "y", "x"], "is_public": true,
        "base_experiment_id": ID, "base_experiment_name": "old", "repo_info": {"commit": "c", "dirty": true, "tag": null},
        "git_metadata_settings": {"collect": "some", "fields": ["commit", "dirty"]}, "stream": true, "trial_count": 3,
        "timeout": 1000.0, "max_concurrency": 20, "strict": true, "stop_token": "s", "endpoint_name": "n",
        "extra_messages": "input.messages", "mcp_auth": {"https://m": {"oauth_token": "t"}, "https://n": {}},
    }));
    let request = request.expect("a request");
    assert_eq!((request.name.as_deref(), request.stop_token.as_deref()), (Some("my eval"), Some("s")));
    assert_eq!((request.parameters["a"].clone(), request.scores.len(), request.is_stream), (json!(1), 1, true));
    assert_eq!(request.limits, EvalLimits { max_concurrency: 20, trial_count: 3, timeout_ms: Some(1000) });
    let experiment = request.experiment;
    assert_eq!((experiment.name.as_deref(), experiment.is_public), (Some("e"), true));
    assert_eq!((experiment.tags, experiment.base), (vec!["x".into(), "y".into()], Some(EvalBase::Id(uuid()))));
    assert!(experiment.metadata.is_some() && experiment.repo_info.is_some());
    assert!(experiment.git_metadata_settings.is_some());
    let options = request.options;
    assert!(options.is_strict && options.extra_messages == MessagePath::parse("input.messages"));
    assert_eq!((options.mcp_auth.len(), options.endpoint_name.as_deref()), (2, Some("n")));
    let named = read(json!({"base_experiment_name": "old"})).expect("a request").experiment.base;
    assert_eq!(named, Some(EvalBase::Name("old".into())));
}

#[test]
fn concurrency_has_an_upper_bound() {
    let concurrency = |value: Value| read(json!({"max_concurrency": value})).expect("a request").limits.max_concurrency;
    assert_eq!(concurrency(Value::Null), 256);
    assert_eq!((concurrency(json!(1)), concurrency(json!(256)), concurrency(json!(100_000))), (1, 256, 256));
}

#[test]
fn every_source_of_data_is_read() {
    let data = |data: Value| read(json!({"data": data})).map(|request| request.data);
    let name = EvalDatasetName::Name { project_name: "p".into(), dataset_name: "d".into() };
    let newest = EvalDataset { name, version: EvalDatasetVersion::Newest, query: None };
    assert_eq!(data(json!({"project_name": "p", "dataset_name": "d"})), Ok(EvalData::Dataset(newest)));
    let query = json!({"limit": 5});
    let versioned = EvalDataset {
        name: EvalDatasetName::Id(uuid()),
        version: EvalDatasetVersion::Version("5".into()),
        query: query.as_object().cloned(),
    };
    let sent = json!({"dataset_id": ID, "dataset_version": "5", "dataset_environment": null, "_internal_btql": query});
    assert_eq!(data(sent), Ok(EvalData::Dataset(versioned)));
    let environment = data(json!({"dataset_id": ID, "dataset_environment": "prod"}));
    let Ok(EvalData::Dataset(environment)) = environment else { panic!("a dataset") };
    assert_eq!(environment.version, EvalDatasetVersion::Environment("prod".into()));
    let items = json!([{"input": 1}, "text", null]);
    assert_eq!(data(json!({"data": items})), Ok(EvalData::Inline(items.as_array().cloned().expect("a list"))));
    assert_eq!(data(json!({"data": []})), Ok(EvalData::Inline(Vec::new())));
    let experiment = |name| Ok(EvalData::Experiment(EvalSourceExperiment { name, query: None }));
    assert_eq!(data(json!({"experiment_id": ID})), experiment(EvalExperimentName::Id(uuid())));
    let named = EvalExperimentName::Name { project_name: None, experiment_name: "e".into() };
    assert_eq!(data(json!({"experiment_name": "e"})), experiment(named));
}

#[test]
fn every_form_of_a_function_is_kept_as_sent() {
    let context = json!({"runtime": "node", "version": "22"});
    for (reference, form) in [
        (json!({"function_id": "f", "version": "1", "slug": "s"}), EvalFunctionForm::Id),
        (json!({"project_name": "p", "slug": "s", "environment": "e"}), EvalFunctionForm::ProjectSlug),
        (json!({"project_id": "p", "slug": "s", "global_function": "g"}), EvalFunctionForm::ProjectSlug),
        (json!({"global_function": "g", "function_type": "scorer"}), EvalFunctionForm::Global),
        (json!({"prompt_session_id": "p", "prompt_session_function_id": "f"}), EvalFunctionForm::PromptSession),
        (json!({"inline_context": context, "code": "", "name": "n"}), EvalFunctionForm::InlineCode),
        (json!({"inline_function": {"type": "facet"}, "function_type": "facet"}), EvalFunctionForm::InlineFunction),
        (json!({"inline_function": {}, "inline_prompt": {}}), EvalFunctionForm::InlineFunction),
        (json!({"inline_prompt": {"prompt": {}}, "function_type": null}), EvalFunctionForm::InlinePrompt),
    ] {
        let request = read(json!({"task": reference, "scores": [reference]})).expect("a request");
        let expected = EvalFunction { form, reference: reference.as_object().cloned().expect("an object") };
        assert_eq!((request.task, request.scores), (expected.clone(), vec![expected]));
    }
}

#[test]
fn a_parent_is_a_slug_or_an_object() {
    let parent = |parent: Value| read(json!({"parent": parent})).expect("a request").parent;
    assert_eq!(parent(json!("AwIB")), Some(EvalParent::Slug("AwIB".into())));
    let event = json!({"span_attributes": {"purpose": "scorer"}});
    let sent = json!({"object_type": "playground_logs", "object_id": ID, "propagated_event": event,
        "row_ids": {"id": "otel", "span_id": "s", "root_span_id": "r"}});
    let span = EvalParentSpan { row_id: "otel".into(), span_id: "s".into(), root_span_id: "r".into() };
    let target = EvalTarget {
        object_type: EvalTargetType::PlaygroundLogs,
        object_id: uuid(),
        span: Some(span),
        propagated: event.as_object().cloned().expect("an object"),
    };
    assert_eq!(parent(sent), Some(EvalParent::Target(target)));
    let bare = json!({"object_type": "experiment", "object_id": ID, "row_ids": null});
    assert_eq!(parent(bare), Some(EvalParent::Target(EvalTarget::experiment(uuid()))));
}

#[test]
fn a_member_that_is_not_valid_is_named_with_its_value_and_the_valid_ones() {
    let context = |context: Value| json!({"task": {"inline_context": context, "code": "x"}});
    let cases = [
        (json!({"project_id": "p"}), "`project_id` is `p`; it must be a UUID"),
        (json!({"data": null}), "`data` is missing; it must be one source: `dataset_id`"),
        (json!({"data": []}), "`data` is an array; it must be one source"),
        (json!({"data": {}}), "`data` is an object without a source; it must be"),
        (json!({"data": {"data": [], "dataset_id": ID}}), "`data` is an object with several sources; it must be"),
        (json!({"data": {"data": {}}}), "`data.data` is an object; it must be an array of cases"),
        (json!({"data": {"dataset_id": 5}}), "`data.dataset_id` is 5; it must be a UUID"),
        (
            json!({"data": {"dataset_name": "d"}}),
            "`data.project_name` is missing; it must be the name of the dataset's",
        ),
        (
            json!({"data": {"dataset_id": ID, "dataset_version": "5", "dataset_environment": "e"}}),
            "`data.dataset_version` is `5`; it must be absent beside `dataset_environment`",
        ),
        (
            json!({"data": {"dataset_id": ID, "_internal_btql": "x"}}),
            "`data._internal_btql` is `x`; it must be an object",
        ),
        (json!({"task": null}), "`task` is null; it must be a function: `function_id`"),
        (json!({"task": "f"}), "`task` is a string; it must be a function"),
        (json!({"task": {"slug": "s"}}), "`task` is an object that names no function; it must be a function"),
        (
            json!({"task": {"function_id": "f", "version": "1", "environment": "e"}}),
            "`task.version` is `1`; it must be absent beside `environment`",
        ),
        (
            context(json!({"runtime": "perl", "version": "5"})),
            "`task.inline_context.runtime` is `perl`; it must be node,",
        ),
        (context(json!({"runtime": "node"})), "`task.inline_context.version` is missing"),
        (json!({"task": {"inline_prompt": []}}), "`task.inline_prompt` is an array; it must be an object"),
        (json!({"scores": null}), "`scores` is null; it must be an array of at most 256 functions"),
        (
            json!({"scores": vec![json!({"function_id": "f"}); EVAL_SCORERS_MAX + 1]}),
            "`scores` is an array; it must be",
        ),
        (
            json!({"scores": [{"function_id": "f"}, {"function_id": "g", "function_type": "x"}]}),
            "`scores.1.function_type` is `x`; it must be llm, scorer",
        ),
    ];
    check_refusals(&cases);
}

#[test]
fn a_limit_or_an_option_that_is_not_valid_is_named_with_its_value_and_the_valid_ones() {
    let cases = [
        (json!({"max_concurrency": 0}), "`max_concurrency` is 0; it must be a whole number from 1, or null"),
        (json!({"max_concurrency": 2.5}), "`max_concurrency` is 2.5; it must be"),
        (json!({"trial_count": 101}), "`trial_count` is 101; it must be a whole number from 1 to 100"),
        (json!({"timeout": -1}), "`timeout` is -1; it must be whole milliseconds from 1 to 604800000"),
        (json!({"timeout": TIMEOUT_MS_MAX + 1}), "`timeout` is 604800001; it must be"),
        (json!({"stream": "yes"}), "`stream` is `yes`; it must be true, false or null"),
        (json!({"metadata": "m"}), "`metadata` is `m`; it must be an object or null"),
        (json!({"tags": [1]}), "`tags` is an array; it must be an array of at most 1000 strings, or null"),
        (json!({"repo_info": {"commit": 1}}), "`repo_info.commit` is 1; it must be a string or null"),
        (
            json!({"git_metadata_settings": {}}),
            "`git_metadata_settings.collect` is missing; it must be all, none or some",
        ),
        (
            json!({"git_metadata_settings": {"collect": "all", "fields": ["x"]}}),
            "`git_metadata_settings.fields` is an array",
        ),
        (json!({"parent": 1}), "`parent` is 1; it must be an exported span"),
        (
            json!({"parent": {"object_type": "dataset", "object_id": ID}}),
            "`parent.object_type` is `dataset`; it must be",
        ),
        (json!({"parent": {"object_type": "experiment"}}), "`parent.object_id` is missing; it must be a UUID"),
        (
            json!({"parent": {"object_type": "experiment", "object_id": ID, "row_ids": {"id": "i"}}}),
            "`parent.row_ids.span_id` is missing",
        ),
        (json!({"extra_messages": "a..b"}), "`extra_messages` is `a..b`; it must be a dotted path"),
        (json!({"mcp_auth": "secret"}), "`mcp_auth` is a string; it must be an object of objects"),
        (json!({"mcp_auth": {"u": {"oauth_token": 1}}}), "`mcp_auth` is an object; it must be an object of objects"),
    ];
    check_refusals(&cases);
}

fn check_refusals(cases: &[(Value, &str)]) {
    for (members, expected) in cases {
        let error = read(members.clone()).expect_err(expected);
        assert!(error.starts_with(expected), "{members}: {error}");
    }
}

#[test]
fn a_long_text_is_refused_and_shown_in_part() {
    let error = read(json!({"name": "x".repeat(EVAL_TEXT_BYTES_MAX + 1)})).expect_err("too long");
    assert_eq!(error, format!("`name` is `{}...`; it must be a string of at most 4096 bytes", "x".repeat(60)));
    assert!(read(json!({"name": "x".repeat(EVAL_TEXT_BYTES_MAX)})).is_ok());
}

#[test]
fn the_limits_in_error_texts_are_those_in_the_code() {
    assert_eq!((EVAL_TEXT_BYTES_MAX, EVAL_PARENT_BYTES_MAX, EVAL_TAGS_MAX), (4096, 65_536, 1000));
    assert_eq!((EVAL_SCORERS_MAX, TRIALS_MAX, TIMEOUT_MS_MAX, EXTRA_MESSAGES_MAX), (256, 100, 604_800_000, 1000));
}
