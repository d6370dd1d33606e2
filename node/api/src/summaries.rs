//! Handlers for summaries of datasets, including the paths of older clients.

use assay_node_evaluations_http::experiments::{ProjectName, ask, encoded, home, still, uuid_in};
use assay_node_evaluations_http::summaries::{flag, uuid};
use assay_node_http::requests::caller::Call;
use assay_node_http::requests::origin::origin_of;
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_records::kinds;
use assay_storage_model::ObjectKind;
use serde_json::{Value, json};
use uuid::Uuid;

/// Handles `GET /v1/dataset/{id}/summarize`.
pub async fn dataset(call: Call) -> HandlerResult {
    let asked = call.query()?;
    let id = call.id()?;
    let record = call.edge.records.get(&call.principal, &kinds::DATASET, id).await?;
    let project = uuid_in(&record, "project_id")?;
    let project = ProjectName::of(&call, project).await?;
    let project_url = project.url(&origin_of(&call)?);
    let name = record["name"].as_str().unwrap_or_default();
    let summary =
        if flag(&asked, "summarize_data")? { json!({"total_records": total(&call, id).await?}) } else { Value::Null };
    json(&json!({
        "project_name": project.name, "dataset_name": name, "project_url": project_url,
        "dataset_url": format!("{project_url}/datasets/{}", encoded(name)), "data_summary": summary,
    }))
}

/// Handles `GET /dataset-summary`.
pub async fn dataset_total(call: Call) -> HandlerResult {
    let asked = call.query()?;
    let id = uuid(&asked, "dataset_id")?.ok_or_else(|| Refusal::bad("`dataset_id` is missing"))?;
    json(&json!({"total_records": total(&call, id).await?}))
}

/// Returns the number of rows in a dataset.
async fn total(call: &Call, id: Uuid) -> Result<u64, Refusal> {
    let query = json!({
        "measures": [{"alias": "n", "expr": {"op": "function", "name": {"op": "ident", "name": ["count"]},
            "args": [{"op": "literal", "value": 1}]}}],
        "from": {"op": "function", "name": {"op": "ident", "name": ["dataset"]},
            "args": [{"op": "literal", "value": id.to_string()}]},
    });
    let home = home(call, ObjectKind::Dataset, id).await?;
    let mut rows = ask(call, query, home).await?;
    let table = rows.next().await?.unwrap_or_default();
    still(call, home).await?;
    let counted = table.rows().next().and_then(|row| row.first()?.as_whole());
    let counted = counted.and_then(|number| u64::try_from(number).ok());
    counted.ok_or_else(|| Refusal::internal("a count is not a number"))
}
