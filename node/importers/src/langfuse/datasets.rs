//! Datasets of Langfuse with their items and runs. A run becomes an experiment with the whole trace of each item.

use serde_json::{Value, json};

use super::id_of;
use super::mapping::{is_root, observation_span, score, trace_key, trace_span};
use crate::fields::{id, list, object, parsed, seconds, text, time};
use crate::item::{DatasetRow, ItemHome, NeutralDataset, NeutralExperiment, NeutralItem, NeutralSpan};
use crate::source::{SourcePage, SourceTask, encoded};

const RUN_ITEMS_MAX: usize = 50;

/// Returns the path of a task with its query.
pub(super) fn path(task: &SourceTask, paged: &str, all_time: &str, cursor: &str) -> String {
    let name = encoded(task.text("name"));
    let dataset = match task.text("id") {
        "" => String::new(),
        id => format!("&datasetId={}", encoded(id)),
    };
    match task.step.as_str() {
        "dataset_items" => format!("dataset-items?datasetName={name}&{paged}"),
        "runs" => format!("datasets/{name}/runs?{paged}"),
        "run_items" => {
            let run = encoded(task.text("run"));
            format!("dataset-run-items?runName={run}{dataset}&page={}&limit={RUN_ITEMS_MAX}", task.number(1))
        }
        "run_item" => format!("dataset-items/{}", encoded(task.text("item"))),
        "run_trace" => format!("traces/{}", encoded(task.text("trace"))),
        "experiments" => format!("experiments?fields=core%2Cmetadata&limit=100&{all_time}{dataset}{cursor}"),
        "experiment_items" => {
            let id = encoded(task.text("experiment_id"));
            format!("experiment-items?fields={EXPERIMENT_FIELDS}&limit=100&{all_time}&experimentId={id}{cursor}")
        }
        "experiment_trace" => {
            let trace = encoded(task.text("trace"));
            format!("v2/observations?limit=100&fields={}&traceId={trace}{cursor}", super::OBSERVATION_FIELDS)
        }
        _ => format!("v2/datasets?{paged}"),
    }
}

const EXPERIMENT_FIELDS: &str = "core%2Cdataset%2Cio%2Cmetadata%2CitemMetadata%2Cscores";

/// Converts the answer of a task about datasets.
pub(super) fn page(task: &SourceTask, body: &Value, page: &mut SourcePage) {
    match task.step.as_str() {
        "datasets" | "datasets_v4" => {
            let runs = if task.step == "datasets" { "runs" } else { "experiments" };
            list(body, "data").iter().for_each(|one| dataset(one, runs, page));
        }
        "dataset_items" => {
            let rows = list(body, "data").iter().map(|item| row(task.text("name"), item));
            page.items.extend(rows.map(NeutralItem::DatasetRow));
        }
        "runs" => list(body, "data").iter().for_each(|one| run(task, one, page)),
        "run_items" => {
            for item in list(body, "data") {
                let mut object = task.object.clone();
                object["item"] = Value::from(id_of(item, "datasetItemId"));
                object["trace"] = Value::from(id_of(item, "traceId"));
                page.next.push(SourceTask::about("run_item", object));
            }
        }
        "run_item" => {
            let mut object = task.object.clone();
            object["input"] = body.get("input").cloned().unwrap_or_default();
            object["expected"] = body.get("expectedOutput").cloned().unwrap_or_default();
            page.next.push(SourceTask::about("run_trace", object));
        }
        "run_trace" => run_trace(task, body, page),
        "experiments" => list(body, "data").iter().for_each(|one| experiment(task, one, page)),
        "experiment_items" => list(body, "data").iter().for_each(|one| experiment_item(task, one, page)),
        "experiment_trace" => {
            let home = ItemHome::Experiment(task.text("experiment").to_owned());
            for observation in list(body, "data") {
                let mut span = observation_span(home.clone(), observation);
                if is_root(observation) {
                    span.parents = vec![task.text("root").to_owned()];
                }
                page.items.push(NeutralItem::Span(Box::new(span)));
            }
        }
        other => page.note(format!("the unknown step {other}")),
    }
}

fn dataset(dataset: &Value, runs: &str, page: &mut SourcePage) {
    let Some(name) = text(dataset, "name") else { return };
    let mut metadata = object(dataset, "metadata").cloned().unwrap_or_default();
    metadata.insert("langfuse".to_owned(), json!({"id": id_of(dataset, "id")}));
    for schema in ["inputSchema", "expectedOutputSchema"] {
        if dataset.get(schema).is_some_and(|schema| !schema.is_null()) {
            metadata.insert(schema.to_owned(), dataset[schema].clone());
            page.note("schemas of datasets, which are in their metadata");
        }
    }
    let description = text(dataset, "description").map(str::to_owned);
    page.items.push(NeutralItem::Dataset(NeutralDataset { name: name.to_owned(), description, metadata }));
    let about = json!({"name": name, "id": id_of(dataset, "id")});
    page.next.push(SourceTask::about("dataset_items", about.clone()));
    page.next.push(SourceTask::about(runs, about));
}

fn item_key(item: &str) -> String {
    format!("dataset-item/{item}")
}

fn row(dataset: &str, item: &Value) -> DatasetRow {
    let id = id(item, "id").unwrap_or_default();
    let mut row = DatasetRow { dataset: dataset.to_owned(), key: item_key(&id), ..DatasetRow::default() };
    let mut metadata = match item.get("metadata").map(parsed) {
        Some(Value::Object(map)) => map,
        Some(Value::Null) | None => serde_json::Map::new(),
        Some(other) => serde_json::Map::from_iter([("value".to_owned(), other)]),
    };
    let mut kept = json!({"id": id});
    for key in ["sourceTraceId", "sourceObservationId", "status"] {
        if let Some(value) = text(item, key).filter(|value| *value != "ACTIVE") {
            kept[key] = Value::from(value);
        }
    }
    metadata.insert("langfuse".to_owned(), kept);
    row.fields.insert("input".to_owned(), item.get("input").cloned().unwrap_or_default());
    row.fields.insert("expected".to_owned(), item.get("expectedOutput").cloned().unwrap_or_default());
    row.fields.insert("metadata".to_owned(), Value::Object(metadata));
    if text(item, "status") == Some("ARCHIVED") {
        row.fields.insert("tags".to_owned(), json!(["archived"]));
    }
    if let Some(created) = time(item, "createdAt") {
        row.fields.insert("created".to_owned(), Value::from(created));
    }
    row
}

/// Returns the name of the experiment of a run. Runs of other datasets may have the same name.
fn experiment_name(run: &str, dataset: &str) -> String {
    if dataset.is_empty() { run.to_owned() } else { format!("{run} on {dataset}") }
}

fn run(task: &SourceTask, run: &Value, page: &mut SourcePage) {
    let Some(name) = text(run, "name") else { return };
    let dataset = task.text("name");
    let experiment = experiment_name(name, dataset);
    page.items.push(NeutralItem::Experiment(NeutralExperiment {
        name: experiment.clone(),
        description: text(run, "description").map(str::to_owned),
        metadata: metadata_of(run),
        dataset: Some(dataset.to_owned()),
    }));
    let about = json!({"name": dataset, "id": task.text("id"), "run": name, "experiment": experiment});
    page.next.push(SourceTask::about("run_items", about));
}

fn metadata_of(of: &Value) -> serde_json::Map<String, Value> {
    let mut metadata = object(of, "metadata").cloned().unwrap_or_default();
    metadata.insert("langfuse".to_owned(), json!({"id": id_of(of, "id")}));
    metadata
}

/// Adds the trace of an item of a run. Without its trace, only the input and the expected output are left.
fn run_trace(task: &SourceTask, trace: &Value, page: &mut SourcePage) {
    let home = ItemHome::Experiment(task.text("experiment").to_owned());
    let trace_id = task.text("trace");
    let mut root = if trace.is_null() {
        page.note("traces of dataset runs that are gone");
        let (key, span) = (trace_key(trace_id), trace_id.to_owned());
        NeutralSpan { home: home.clone(), key, trace: span.clone(), span, ..NeutralSpan::default() }
    } else {
        trace_span(home.clone(), trace)
    };
    let name = text(trace, "name").unwrap_or("eval");
    root.set("span_attributes", json!({"name": name, "type": "eval"}));
    root.set("input", task.object.get("input").cloned().unwrap_or_default());
    root.set("expected", task.object.get("expected").cloned().unwrap_or_default());
    root.origin = Some((task.text("name").to_owned(), item_key(task.text("item"))));
    page.items.push(NeutralItem::Span(Box::new(root)));
    for observation in list(trace, "observations") {
        page.items.push(NeutralItem::Span(Box::new(observation_span(home.clone(), observation))));
    }
    list(trace, "scores").iter().for_each(|one| score(&home, one, page));
}

fn experiment(task: &SourceTask, experiment: &Value, page: &mut SourcePage) {
    let (Some(name), Some(id)) = (text(experiment, "name"), id(experiment, "id")) else { return };
    let dataset = task.text("name");
    // The list of all experiments also has those of datasets, which come with their datasets.
    if dataset.is_empty() && text(experiment, "datasetId").is_some() {
        return;
    }
    let target = experiment_name(name, dataset);
    page.items.push(NeutralItem::Experiment(NeutralExperiment {
        name: target.clone(),
        description: text(experiment, "description").map(str::to_owned),
        metadata: metadata_of(experiment),
        dataset: (!dataset.is_empty()).then(|| dataset.to_owned()),
    }));
    let about = json!({"name": dataset, "experiment_id": id, "experiment": target});
    page.next.push(SourceTask::about("experiment_items", about));
}

fn experiment_item(task: &SourceTask, item: &Value, page: &mut SourcePage) {
    let (Some(id), Some(trace)) = (id(item, "id"), text(item, "traceId")) else { return };
    let home = ItemHome::Experiment(task.text("experiment").to_owned());
    let root = format!("item-{id}");
    let mut span = NeutralSpan {
        home: home.clone(),
        key: trace_key(trace),
        trace: trace.to_owned(),
        span: root.clone(),
        ..NeutralSpan::default()
    };
    span.set("span_attributes", json!({"name": "eval", "type": "eval"}));
    for (field, key) in [("input", "input"), ("output", "output"), ("expected", "expectedOutput")] {
        span.set(field, item.get(key).map(parsed).unwrap_or_default());
    }
    let metadata = object(item, "experimentItemMetadata").or_else(|| object(item, "metadata"));
    span.set("metadata", metadata.cloned().unwrap_or_default());
    span.set_in("metadata", "langfuse", json!({"id": id}));
    span.set("created", time(item, "startTime"));
    for (key, field) in [("start", "startTime"), ("end", "endTime")] {
        let at = time(item, field).as_deref().and_then(seconds);
        span.set_in("metrics", key, at.map_or(Value::Null, crate::fields::json_number));
    }
    if text(item, "level") == Some("ERROR") {
        span.set("error", "error");
    }
    let of_dataset = Some(task.text("name")).filter(|name| !name.is_empty());
    span.origin = of_dataset.map(|name| (name.to_owned(), item_key(&id_of(item, "experimentItemId"))));
    page.items.push(NeutralItem::Span(Box::new(span)));
    for one in list(item, "scores") {
        let mut one = one.clone();
        // Scores of an item are of its trace, also where the answer leaves out the subject.
        if one.get("subject").is_none_or(Value::is_null) {
            one["traceId"] = Value::from(trace);
        }
        score(&home, &one, page);
    }
    let about = json!({"experiment": task.text("experiment"), "trace": trace, "root": root});
    page.next.push(SourceTask::about("experiment_trace", about));
}
