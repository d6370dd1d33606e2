//! Datasets and their items.

use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::web::Payload;
use assay_node_langfuse::{
    NewItem, NumberedPage, RowFilter, dataset_fields, dataset_view, item_row, item_view, page_meta,
};
use assay_node_records::{ListRequest, kinds};
use assay_storage_model::ObjectKind;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::rows::{by_ids, deletion, page_of, read, write};
use crate::wire::{WireCall, bad, not_found};

/// Source of the rows of datasets.
pub(crate) const DATASET: &str = "dataset";
/// Upper bound of the datasets of a project in one request.
const DATASETS_MAX: u64 = 1_000;
/// Upper bound of the datasets of one query.
const DATASETS_AT_ONCE: usize = 100;

/// Returns the records of the datasets of the project, or of the one with a name.
async fn records(call: &WireCall, name: Option<&str>) -> Result<Vec<Value>, Refusal> {
    let mut filters = vec![("project_id".to_owned(), call.project_text())];
    filters.extend(name.map(|name| ("name".to_owned(), name.to_owned())));
    let request = ListRequest { limit: Some(DATASETS_MAX), filters, ..ListRequest::default() };
    Ok(call.edge.records.list(&call.principal, &kinds::DATASET, &request).await?)
}

/// Returns the record of a dataset of the project.
pub(crate) async fn named(call: &WireCall, name: &str) -> Result<Value, Refusal> {
    records(call, Some(name)).await?.into_iter().next().ok_or_else(|| not_found("the dataset"))
}

pub(crate) fn id_of(record: &Value) -> Result<Uuid, Refusal> {
    let id = record["id"].as_str().and_then(|id| Uuid::parse_str(id).ok());
    id.ok_or_else(|| Refusal::internal("a record has no id"))
}

pub(crate) async fn list(call: &WireCall) -> HandlerResult {
    let page = NumberedPage::of(&call.query()?).map_err(bad)?;
    let all = records(call, None).await?;
    let total = all.len() as u64;
    let data: Vec<Value> = page.of_items(all).iter().map(dataset_view).collect();
    json(&json!({"data": data, "meta": page_meta(page, total)}))
}

/// Handles `POST /v2/datasets`: creates a dataset, or changes the one of the name.
pub(crate) async fn create(call: &WireCall, payload: Payload) -> HandlerResult {
    let body = call.object(payload).await?;
    let mut fields = dataset_fields(&body, &call.project_text()).map_err(bad)?;
    let made = call.edge.records.create(&call.principal, &kinds::DATASET, fields.clone()).await?;
    if !made.found_existing {
        return json(&dataset_view(&made.object));
    }
    fields.retain(|name, _| name == "description" || name == "metadata");
    let id = id_of(&made.object)?;
    let record = match fields.is_empty() {
        true => made.object,
        false => call.edge.records.patch(&call.principal, &kinds::DATASET, id, fields).await?,
    };
    json(&dataset_view(&record))
}

pub(crate) async fn get(call: &WireCall, name: &str) -> HandlerResult {
    json(&dataset_view(&named(call, name).await?))
}

/// Returns an item with the record of its dataset.
pub(crate) async fn found_item(call: &WireCall, id: &str) -> Result<(Value, Value), Refusal> {
    let datasets = records(call, None).await?;
    for part in datasets.chunks(DATASETS_AT_ONCE) {
        let ids = part.iter().map(id_of).collect::<Result<Vec<_>, _>>()?;
        let query = RowFilter::of_ids(&[id.to_owned()]).rows(DATASET, &ids, 1);
        let Some(row) = read(&call.call, query).await?.into_iter().next() else { continue };
        let dataset = part.iter().find(|record| record["id"] == row["dataset_id"]);
        let dataset = dataset.ok_or_else(|| Refusal::internal("a row of a dataset does not name it"))?;
        return Ok((row, dataset.clone()));
    }
    Err(not_found("the dataset item"))
}

/// Handles `GET /dataset-items`: a page of the items of a dataset, or of all datasets of the project.
pub(crate) async fn items(call: &WireCall) -> HandlerResult {
    let pairs = call.query()?;
    let page = NumberedPage::of(&pairs).map_err(bad)?;
    let known = ["page", "limit", "datasetName", "sourceTraceId", "sourceObservationId"];
    if let Some((name, _)) = pairs.iter().find(|(name, value)| !value.is_empty() && !known.contains(&name.as_str())) {
        return Err(Refusal::bad(format!("the parameter `{name}` is not supported by this server")));
    }
    let name = pairs.iter().find(|(name, value)| name == "datasetName" && !value.is_empty());
    let datasets = match name {
        Some((_, name)) => vec![named(call, name).await?],
        None => records(call, None).await?,
    };
    if datasets.len() > DATASETS_AT_ONCE {
        let why = format!("the project has more than {DATASETS_AT_ONCE} datasets: name one with `datasetName`");
        return Err(Refusal::bad(why));
    }
    let ids = datasets.iter().map(id_of).collect::<Result<Vec<_>, _>>()?;
    let filter = RowFilter::default().with_item_parameters(&pairs).map_err(bad)?;
    let (rows, total) = match ids.is_empty() {
        true => (Vec::new(), 0),
        false => page_of(&call.call, &filter, (DATASET, &ids), page).await?,
    };
    let of = |row: &Value| datasets.iter().find(|record| record["id"] == row["dataset_id"]).unwrap_or(&Value::Null);
    let data: Vec<Value> = rows.iter().map(|row| item_view(row, of(row))).collect();
    json(&json!({"data": data, "meta": page_meta(page, total)}))
}

pub(crate) async fn item(call: &WireCall, id: &str) -> HandlerResult {
    let (row, dataset) = found_item(call, id).await?;
    json(&item_view(&row, &dataset))
}

/// Handles `POST /dataset-items`: creates an item, or changes the one of the id.
pub(crate) async fn create_item(call: &WireCall, payload: Payload) -> HandlerResult {
    let new = NewItem::of_body(&call.object(payload).await?).map_err(bad)?;
    let dataset = named(call, &new.dataset).await?;
    let (object, id) = (id_of(&dataset)?, new.id.clone().unwrap_or_else(|| Uuid::new_v4().to_string()));
    let row = item_row(&new, &id, &call.project_text());
    write(&call.call, ObjectKind::Dataset, object, vec![row]).await?;
    let rows = by_ids(&call.call, (DATASET, &[object]), &[id]).await?;
    let row = rows.first().ok_or_else(|| not_found("the dataset item"))?;
    json(&item_view(row, &dataset))
}

pub(crate) async fn delete_item(call: &WireCall, id: &str) -> HandlerResult {
    let (row, dataset) = found_item(call, id).await?;
    write(&call.call, ObjectKind::Dataset, id_of(&dataset)?, vec![deletion(&row["id"])]).await?;
    json(&json!({"message": "Dataset item successfully deleted"}))
}
