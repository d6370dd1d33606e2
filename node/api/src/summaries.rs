//! Handlers for summaries of experiments and datasets, including the paths of older clients.

use assay_node_auth::Permission;
use assay_node_btql::values::Value as Cell;
use assay_node_comparison::{KeyHasher, METRIC, SCORE, Tally, TooManyNumbers};
use assay_node_http::requests::caller::Call;
use assay_node_http::requests::error_texts::shortened;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::{HandlerResult, json};
use assay_node_query::{Home, QueryAnswer, Question};
use assay_node_query_http::masks::masks;
use assay_node_records::{Kind as RecordKind, ListRequest, kinds};
use assay_storage_model::ObjectKind;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use assay_node_http::requests::origin::origin_of;

/// Default of the key that pairs traces.
const COMPARISON_KEY: &str = "input";
/// Number of newest experiments to read for a base. One of them may be the compared experiment itself.
const NEWEST_MAX: u64 = 2;

/// Handles `GET /v1/experiment/{id}/summarize`.
pub async fn experiment(call: Call) -> HandlerResult {
    let asked = call.query()?;
    let id = call.id()?;
    let named = uuid(&asked, "comparison_experiment_id")?;
    let found = ExperimentRecord::experiment(&call, id).await?;
    let mut said = json!({
        "project_name": found.project_name, "experiment_name": found.name, "project_url": found.project_url,
        "experiment_url": format!("{}/experiments/{}", found.project_url, encoded(&found.name)),
        "comparison_experiment_name": null, "scores": null, "metrics": null,
    });
    if flag(&asked, "summarize_scores")? {
        let base = base_of(&call, &found, named).await?;
        let sums = sums(&call, &found, base.as_ref()).await?;
        said["comparison_experiment_name"] = base.map(|base| base.name).into();
        (said["scores"], said["metrics"]) = sums;
    }
    json(&said)
}

/// Handles `GET /experiment-comparison2`.
pub async fn comparison(call: Call) -> HandlerResult {
    let asked = call.query()?;
    let id = uuid(&asked, "experiment_id")?.ok_or_else(|| Refusal::bad("`experiment_id` is missing"))?;
    let found = ExperimentRecord::experiment(&call, id).await?;
    let base = base_of(&call, &found, uuid(&asked, "base_experiment_id")?).await?;
    let (scores, metrics) = sums(&call, &found, base.as_ref()).await?;
    let mut said = json!({"scores": scores, "metrics": metrics});
    if let Some(base) = base {
        said["base_experiment_name"] = base.name.into();
    }
    json(&said)
}

/// Handles `GET /v1/dataset/{id}/summarize`.
pub async fn dataset(call: Call) -> HandlerResult {
    let asked = call.query()?;
    let id = call.id()?;
    let record = call.edge.records.get(&call.principal, &kinds::DATASET, id).await?;
    let project = uuid_in(&record, "project_id")?;
    let (project_name, project_url) = project_of(&call, project).await?;
    let name = record["name"].as_str().unwrap_or_default();
    let summary =
        if flag(&asked, "summarize_data")? { json!({"total_records": total(&call, id).await?}) } else { Value::Null };
    json(&json!({
        "project_name": project_name, "dataset_name": name, "project_url": project_url,
        "dataset_url": format!("{project_url}/datasets/{}", encoded(name)), "data_summary": summary,
    }))
}

/// Handles `GET /dataset-summary`.
pub async fn dataset_total(call: Call) -> HandlerResult {
    let asked = call.query()?;
    let id = uuid(&asked, "dataset_id")?.ok_or_else(|| Refusal::bad("`dataset_id` is missing"))?;
    json(&json!({"total_records": total(&call, id).await?}))
}

/// Experiment that the caller may read.
struct ExperimentRecord {
    id: Uuid,
    name: String,
    project: Uuid,
    project_name: String,
    project_url: String,
    record: Value,
}

impl ExperimentRecord {
    async fn experiment(call: &Call, id: Uuid) -> Result<ExperimentRecord, Refusal> {
        let record = call.edge.records.get(&call.principal, &kinds::EXPERIMENT, id).await?;
        let project = uuid_in(&record, "project_id")?;
        let (project_name, project_url) = project_of(call, project).await?;
        let name = record["name"].as_str().unwrap_or_default().to_owned();
        Ok(ExperimentRecord { id, name, project, project_name, project_url, record })
    }
}

/// Returns the name and URL of a project. If the caller may not see the project, its id serves as the name.
async fn project_of(call: &Call, project: Uuid) -> Result<(String, String), Refusal> {
    let found = visible(call, &kinds::PROJECT, project).await?;
    let name = found.as_ref().and_then(|project| project["name"].as_str()).map(str::to_owned);
    let name = name.unwrap_or_else(|| project.to_string());
    let org = encoded(&call.principal.org_name);
    let url = format!("{}/app/{org}/p/{}", origin_of(call)?, encoded(&name));
    Ok((name, url))
}

pub(crate) async fn visible(call: &Call, kind: &'static RecordKind, id: Uuid) -> Result<Option<Value>, Refusal> {
    match call.edge.records.get(&call.principal, kind, id).await.map_err(Refusal::from) {
        Ok(found) => Ok(Some(found)),
        Err(refusal) if matches!(refusal.kind, ErrorKind::NotFound | ErrorKind::Forbidden) => Ok(None),
        Err(other) => Err(other),
    }
}

/// Returns the id and name of the base experiment.
pub(crate) async fn base(call: &Call, id: Uuid) -> Result<Option<(Uuid, String)>, Refusal> {
    let found = ExperimentRecord::experiment(call, id).await?;
    Ok(base_of(call, &found, None).await?.map(|base| (base.id, base.name)))
}

/// Returns the base experiment.
///
/// The request names it, or else the experiment, or else the project. The default is the newest other experiment.
async fn base_of(call: &Call, of: &ExperimentRecord, named: Option<Uuid>) -> Result<Option<ExperimentRecord>, Refusal> {
    if let Some(named) = named {
        return ExperimentRecord::experiment(call, named).await.map(Some);
    }
    let id = |value: &Value| value.as_str().and_then(|id| Uuid::parse_str(id).ok());
    let project = visible(call, &kinds::PROJECT, of.project).await?.unwrap_or_default();
    let chosen = [id(&of.record["base_exp_id"]), id(&project["settings"]["baseline_experiment_id"])];
    for chosen in chosen.into_iter().flatten().filter(|chosen| *chosen != of.id) {
        if visible(call, &kinds::EXPERIMENT, chosen).await?.is_some() {
            return ExperimentRecord::experiment(call, chosen).await.map(Some);
        }
    }
    let newest = ListRequest {
        limit: Some(NEWEST_MAX),
        filters: vec![("project_id".into(), of.project.to_string())],
        ..ListRequest::default()
    };
    let newest = call.edge.records.list(&call.principal, &kinds::EXPERIMENT, &newest).await?;
    let others = newest.iter().filter_map(|record| uuid_in(record, "id").ok());
    match others.into_iter().find(|id| *id != of.id) {
        Some(id) => ExperimentRecord::experiment(call, id).await.map(Some),
        None => Ok(None),
    }
}

/// Returns the entries of the scores and metrics of an experiment.
async fn sums(call: &Call, of: &ExperimentRecord, base: Option<&ExperimentRecord>) -> Result<(Value, Value), Refusal> {
    let settings = visible(call, &kinds::PROJECT, of.project).await?;
    let key = settings.as_ref().and_then(|project| project.pointer("/settings/comparison_key")?.as_str());
    let key = key.filter(|key| !key.trim().is_empty()).unwrap_or(COMPARISON_KEY);
    let hasher = base.map(|_| KeyHasher::default());
    let (scores, metrics) = tallies(call, of.id, key, hasher.as_ref()).await?;
    let Some(base) = base else {
        return Ok((scores.entries(SCORE, None), metrics.entries(METRIC, None)));
    };
    let (before, metrics_before) = tallies(call, base.id, key, hasher.as_ref()).await?;
    Ok((scores.entries(SCORE, Some(&before)), metrics.entries(METRIC, Some(&metrics_before))))
}

fn too_many(why: TooManyNumbers) -> Refusal {
    Refusal::new(ErrorKind::TooLarge, why.to_string())
}

async fn tallies(call: &Call, id: Uuid, key: &str, hasher: Option<&KeyHasher>) -> Result<(Tally, Tally), Refusal> {
    let column = |name: &str| json!({"alias": name, "expr": {"op": "ident", "name": [name]}});
    let mut query = json!({
        "select": [column("scores"), column("metrics")],
        "from": {"op": "function", "name": {"op": "ident", "name": ["experiment"]},
            "args": [{"op": "literal", "value": id.to_string()}], "shape": "summary"},
    });
    if hasher.is_some() {
        query["select"] = json!([column("scores"), column("metrics"), column("comparison_key")]);
        query["comparison_key"] = json!({"btql": key});
    }
    let (mut scores, mut metrics) = (Tally::default(), Tally::default());
    let home = home(call, ObjectKind::Experiment, id).await?;
    let mut rows = ask(call, query, home).await.map_err(|refusal| match refusal.kind {
        ErrorKind::BadRequest if key != COMPARISON_KEY => {
            let why = format!("the project's `comparison_key` `{}`: {}", shortened(key), refusal.message);
            Refusal::bad(why)
        }
        _ => refusal,
    })?;
    while let Some(table) = rows.next().await? {
        for row in table.rows() {
            let key = row.get(2).and_then(Cell::to_text);
            let key = hasher.map(|hasher| (hasher, key.as_deref().unwrap_or("null")));
            scores.add(&object(row.first()), key).map_err(too_many)?;
            metrics.add(&object(row.get(1)), key).map_err(too_many)?;
        }
    }
    still(call, home).await?;
    Ok((scores, metrics))
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

async fn home(call: &Call, kind: ObjectKind, id: Uuid) -> Result<Home, Refusal> {
    let home = call.edge.records.object(&call.principal, kind, id, Permission::Read).await?;
    Ok(Home { object: home.key, org: home.org, project_id: home.project_id })
}

async fn ask(call: &Call, query: Value, home: Home) -> Result<QueryAnswer, Refusal> {
    let queries = call.queries();
    let question = Question { query, disable_limit: true, now: queries.now(), ..Question::default() };
    let masks = masks(&call.edge.records, &call.principal, [(home.org, home.project_id)])?;
    Ok(queries.ask(call.who(), question.read()?, &[home], None, None).masked(&[home], &masks))
}

async fn still(call: &Call, home: Home) -> Result<(), Refusal> {
    Ok(call.edge.records.still(&call.principal, &[home.object], Permission::Read).await?)
}

/// Returns a cell as an object, which is empty if the cell is null.
fn object(cell: Option<&Cell<'_>>) -> Map<String, Value> {
    let text = cell.filter(|cell| !cell.is_null()).and_then(Cell::to_text);
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

fn uuid_in(record: &Value, field: &str) -> Result<Uuid, Refusal> {
    let id = record[field].as_str().and_then(|id| Uuid::parse_str(id).ok());
    id.ok_or_else(|| Refusal::internal(format!("a record has no {field}")))
}

/// Returns the last value of a parameter that is not empty.
fn given<'a>(asked: &'a [(String, String)], name: &str) -> Option<&'a str> {
    asked.iter().rev().find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value.as_str())
}

fn flag(asked: &[(String, String)], name: &str) -> Result<bool, Refusal> {
    match given(asked, name) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => Err(Refusal::bad(format!("`{name}` is `{}`; it should be true or false", shortened(other)))),
    }
}

fn uuid(asked: &[(String, String)], name: &str) -> Result<Option<Uuid>, Refusal> {
    let wrong = |_| Refusal::bad(format!("`{name}` has to be a UUID"));
    given(asked, name).map(|text| Uuid::parse_str(text).map_err(wrong)).transpose()
}

/// Encodes a text as a segment of a URL path.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte as char),
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_addresses_are_encoded() {
        assert_eq!(encoded("a b/c?é~1"), "a%20b%2Fc%3F%C3%A9~1");
    }
}
