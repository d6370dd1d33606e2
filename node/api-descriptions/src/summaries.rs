//! Description of summaries for the OpenAPI document.

use assay_node_http::openapi::{Operation, reference, text, uuid};
use assay_node_http::responses::refusal::ErrorKind;
use serde_json::{Value, json};

/// Adds the entries of scores and metrics to the schemas of an operation.
pub(crate) fn with_entries(operation: Operation) -> Operation {
    let count = json!({"type": "integer", "minimum": 0});
    let entry = |mean: &str, bounds: Value, diff: Value, unit: Option<Value>| {
        let mut schema = json!({"type": "object", "required": ["name", mean, "improvements", "regressions"],
            "properties": {"name": text(), mean: bounds, "diff": diff, "improvements": count, "regressions": count}});
        if let Some(unit) = unit {
            schema["properties"]["unit"] = unit;
            schema["required"] = json!(["name", mean, "unit", "improvements", "regressions"]);
        }
        schema
    };
    let number = json!({"type": "number"});
    let score = entry(
        "score",
        json!({"type": "number", "minimum": 0, "maximum": 1}),
        json!({"type": "number", "minimum": -1, "maximum": 1}),
        None,
    );
    let metric = entry("metric", number.clone(), number, Some(text()));
    operation.with("ScoreSummary", score).with("MetricSummary", metric)
}

fn each(name: &str, nullable: bool) -> Value {
    json!({"type": "object", "nullable": nullable, "additionalProperties": reference(name)})
}

/// Describes the summary of an experiment.
pub(crate) fn of_experiment() -> Value {
    let (maybe, url) = (json!({"type": "string", "nullable": true}), json!({"type": "string", "format": "uri"}));
    json!({"type": "object",
    "required": ["project_name", "experiment_name", "project_url", "experiment_url"],
    "properties": {
        "project_name": text(), "experiment_name": text(), "project_url": url, "experiment_url": url,
        "comparison_experiment_name": maybe, "scores": each("ScoreSummary", true), "metrics": each("MetricSummary", true),
        "statistics": statistics(),
    }})
}

/// Describes the changes against the base, with their intervals at 95 %.
fn statistics() -> Value {
    let (count, number) = (json!({"type": "integer", "minimum": 0}), json!({"type": "number"}));
    let maybe_number = json!({"type": "number", "nullable": true});
    let interval = json!({"type": "array", "nullable": true, "items": number, "minItems": 2, "maxItems": 2});
    let change = json!({"type": "object", "nullable": true, "properties": {
        "rows": count, "up": count, "down": count, "same": count, "base_mean": number, "difference": number,
        "interval": interval, "verdict": {"type": "string", "enum": ["up", "down", "undecided"]},
        "rows_to_settle": {},
    }});
    let trial = json!({"type": "object",
        "properties": {"key": text(), "trials": count, "low": number, "high": number}});
    let one = json!({"type": "object", "properties": {
        "name": text(), "rows": count, "mean": maybe_number, "incomplete": count, "change": change,
        "disagreeing": count, "disagreements": {"type": "array", "items": trial},
    }});
    let listed = json!({"type": "array", "items": one});
    json!({"type": "object", "nullable": true, "properties": {
        "scores": listed, "metrics": listed, "rows": count, "errors": count, "only_here": count, "only_base": count,
    }})
}

/// Describes the routes.
pub fn operations() -> Vec<Operation> {
    let count = json!({"type": "integer", "minimum": 0});
    let url = json!({"type": "string", "format": "uri"});
    let data = json!({"type": "object", "required": ["total_records"], "properties": {"total_records": count}});
    let mut data_or_null = data.clone();
    data_or_null["nullable"] = true.into();
    let of_dataset = json!({"type": "object", "required": ["project_name", "dataset_name", "project_url", "dataset_url"],
    "properties": {
        "project_name": text(), "dataset_name": text(), "project_url": url, "dataset_url": url, "data_summary": data_or_null,
    }});
    let comparison = json!({"type": "object", "required": ["scores", "metrics"], "properties": {
        "scores": each("ScoreSummary", false), "metrics": each("MetricSummary", false), "base_experiment_name": text(),
    }});
    let (experiments, datasets) = ("Experiments", "Datasets");
    let switch = json!({"type": "boolean", "nullable": true});
    let get = |path: &str, tag: &str, summary: &str| Operation::new("get", path, tag, summary);
    vec![
        with_entries(get(
            "/v1/experiment/{id}/summarize",
            experiments,
            "Summarize the scores and metrics of an experiment",
        ))
        .of("experiment")
        .asks("summarize_scores", switch.clone())
        .asks("comparison_experiment_id", uuid())
        .answers(of_experiment())
        .also_refuses(&[ErrorKind::TooLarge]),
        get("/v1/dataset/{id}/summarize", datasets, "Count the rows of a dataset")
            .of("dataset")
            .asks("summarize_data", switch)
            .answers(of_dataset),
        with_entries(get("/experiment-comparison2", experiments, "Compare the scores and metrics of two experiments"))
            .must_ask("experiment_id", uuid())
            .asks("base_experiment_id", uuid())
            .answers(comparison)
            .also_refuses(&[ErrorKind::TooLarge]),
        get("/dataset-summary", datasets, "Count the rows of a dataset").must_ask("dataset_id", uuid()).answers(data),
    ]
}
