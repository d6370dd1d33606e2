//! Runs of datasets, which are experiments of the project.

use std::slice;

use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::web::Payload;
use assay_node_langfuse::{
    NewRunItem, NumberedPage, RowFilter, experiment_mark, experiment_target, page_meta, run_item_row, run_item_view,
    run_view, trace_row_of,
};
use assay_node_records::{ListRequest, kinds};
use assay_storage_model::ObjectKind;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::datasets::{found_item, id_of, named};
use crate::rows::{LOGS, by_ids, page_of, read_all, write};
use crate::wire::{WireCall, bad, not_found};

/// Source of the rows of experiments.
const EXPERIMENT: &str = "experiment";
/// Upper bound of the runs of a project in one request.
const RUNS_MAX: u64 = 1_000;

/// Returns the records of the runs of a dataset, newest first.
async fn records(call: &WireCall, dataset: &Value, name: Option<&str>) -> Result<Vec<Value>, Refusal> {
    let mut filters = vec![("project_id".to_owned(), call.project_text())];
    filters.extend(name.map(|name| ("name".to_owned(), name.to_owned())));
    let request = ListRequest { limit: Some(RUNS_MAX), filters, ..ListRequest::default() };
    let all = call.edge.records.list(&call.principal, &kinds::EXPERIMENT, &request).await?;
    Ok(all.into_iter().filter(|run| run["dataset_id"] == dataset["id"]).collect())
}

async fn run_named(call: &WireCall, dataset: &Value, name: &str) -> Result<Value, Refusal> {
    records(call, dataset, Some(name)).await?.into_iter().next().ok_or_else(|| not_found("the dataset run"))
}

/// Handles `POST /dataset-run-items`: links a trace to an item of a run, which is created if it does not exist.
pub(crate) async fn create_item(call: &WireCall, payload: Payload) -> HandlerResult {
    let body = call.object(payload).await?;
    if body.get("datasetVersion").is_some_and(|version| !version.is_null()) {
        return Err(Refusal::bad("`datasetVersion` is not supported: items are those of the newest version"));
    }
    let new = NewRunItem::of_body(&body).map_err(bad)?;
    let (item, dataset) = found_item(call, &new.item).await?;
    let dataset_id = id_of(&dataset)?.to_string();
    let fields = new.experiment(&call.project_text(), &dataset_id);
    let run = call.edge.records.create(&call.principal, &kinds::EXPERIMENT, fields).await?.object;
    if run["dataset_id"] != dataset["id"] {
        let why = format!("the project has an experiment `{}` of another dataset: choose another `runName`", new.run);
        return Err(Refusal::bad(why));
    }
    // The trace is often not there yet. Then its spans bring the output.
    let trace = by_ids(&call.call, (LOGS, &[call.project]), slice::from_ref(&new.trace)).await?;
    let output = trace_row_of(&trace).and_then(|row| row.get("output")).filter(|output| !output.is_null());
    let row = run_item_row(&new, &item, &dataset_id, output);
    let experiment = id_of(&run)?;
    write(&call.call, ObjectKind::Experiment, experiment, vec![row]).await?;
    // The mark follows the row, so that a score that finds the mark finds the row.
    let mark = experiment_mark(&new.trace, experiment);
    write(&call.call, ObjectKind::ProjectLogs, call.project, vec![mark]).await?;
    let scores = RowFilter::of_traces(slice::from_ref(&new.trace)).only_scores();
    let scores = read_all(&call.call, &scores, LOGS, &[call.project]).await?;
    let targets = scores.iter().filter_map(experiment_target).collect();
    write(&call.call, ObjectKind::Experiment, experiment, targets).await?;
    let rows = by_ids(&call.call, (EXPERIMENT, &[experiment]), &[new.trace]).await?;
    let row = rows.first().ok_or_else(|| not_found("the dataset run item"))?;
    json(&run_item_view(row, &run))
}

/// Handles `GET /dataset-run-items`: a page of the items of a run.
pub(crate) async fn items(call: &WireCall) -> HandlerResult {
    let pairs = call.query()?;
    let page = NumberedPage::of(&pairs).map_err(bad)?;
    let needed = |name: &str| {
        let found = pairs.iter().find(|(given, value)| given == name && !value.is_empty());
        found.map(|(_, value)| value.as_str()).ok_or_else(|| Refusal::bad(format!("`{name}` is missing")))
    };
    let (dataset, name) = (needed("datasetId")?, needed("runName")?);
    let dataset = Uuid::parse_str(dataset).map_err(|_| not_found("the dataset"))?;
    let run = run_named(call, &json!({"id": dataset}), name).await?;
    let (rows, total) = page_of(&call.call, &RowFilter::default(), (EXPERIMENT, &[id_of(&run)?]), page).await?;
    let data: Vec<Value> = rows.iter().map(|row| run_item_view(row, &run)).collect();
    json(&json!({"data": data, "meta": page_meta(page, total)}))
}

pub(crate) async fn list(call: &WireCall, dataset: &str) -> HandlerResult {
    let page = NumberedPage::of(&call.query()?).map_err(bad)?;
    let dataset = named(call, dataset).await?;
    let all = records(call, &dataset, None).await?;
    let total = all.len() as u64;
    let data: Vec<Value> = page.of_items(all).iter().map(|run| run_view(run, &dataset)).collect();
    json(&json!({"data": data, "meta": page_meta(page, total)}))
}

/// Handles `GET /datasets/{name}/runs/{run}`: a run with its items.
pub(crate) async fn get(call: &WireCall, dataset: &str, name: &str) -> HandlerResult {
    let dataset = named(call, dataset).await?;
    let run = run_named(call, &dataset, name).await?;
    let rows = read_all(&call.call, &RowFilter::default(), EXPERIMENT, &[id_of(&run)?]).await?;
    let mut view = run_view(&run, &dataset);
    view["datasetRunItems"] = rows.iter().map(|row| run_item_view(row, &run)).collect();
    json(&view)
}

pub(crate) async fn delete(call: &WireCall, dataset: &str, name: &str) -> HandlerResult {
    let dataset = named(call, dataset).await?;
    let run = run_named(call, &dataset, name).await?;
    call.edge.records.delete(&call.principal, &kinds::EXPERIMENT, id_of(&run)?).await?;
    json(&json!({"message": "Dataset run deleted successfully"}))
}
