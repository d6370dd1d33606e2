//! Experiments for summaries: their project, their base, and the entries of their scores and metrics.

use assay_node_auth::Permission;
use assay_node_btql::values::Value as Cell;
use assay_node_comparison::{KeyHasher, METRIC, SCORE, Tally, TooManyNumbers};
use assay_node_http::requests::caller::Caller;
use assay_node_http::requests::error_texts::shortened;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_query::{Home, QueryAnswer, Question};
use assay_node_query_http::masks::masks;
use assay_node_records::{Kind as RecordKind, ListRequest, kinds};
use assay_storage_model::ObjectKind;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// Default of the key that pairs traces.
const COMPARISON_KEY: &str = "input";
/// Number of newest experiments to read for a base. One of them may be the compared experiment itself.
const NEWEST_MAX: u64 = 2;

/// Experiment that the caller may read.
#[derive(Clone, Debug)]
pub struct ExperimentRecord {
    pub id: Uuid,
    pub name: String,
    pub project: ProjectName,
    record: Value,
}

/// Project of experiments or datasets, with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectName {
    pub id: Uuid,
    /// Name, or the id if the caller may not see the project.
    pub name: String,
    org_name: String,
}

impl ProjectName {
    pub async fn of(caller: &Caller, id: Uuid) -> Result<ProjectName, Refusal> {
        let found = visible(caller, &kinds::PROJECT, id).await?;
        let name = found.as_ref().and_then(|project| project["name"].as_str()).map(str::to_owned);
        let name = name.unwrap_or_else(|| id.to_string());
        Ok(ProjectName { id, name, org_name: caller.principal.org_name.clone() })
    }

    /// Returns the address of the project in the console.
    pub fn url(&self, origin: &str) -> String {
        format!("{origin}/app/{}/p/{}", encoded(&self.org_name), encoded(&self.name))
    }
}

impl ExperimentRecord {
    pub async fn of(caller: &Caller, id: Uuid) -> Result<ExperimentRecord, Refusal> {
        let record = caller.edge.records.get(&caller.principal, &kinds::EXPERIMENT, id).await?;
        let project = ProjectName::of(caller, uuid_in(&record, "project_id")?).await?;
        let name = record["name"].as_str().unwrap_or_default().to_owned();
        Ok(ExperimentRecord { id, name, project, record })
    }

    /// Returns the address of the experiment in the console.
    pub fn url(&self, origin: &str) -> String {
        format!("{}/experiments/{}", self.project.url(origin), encoded(&self.name))
    }
}

/// Returns a record, or `None` if the caller may not see it.
pub async fn visible(caller: &Caller, kind: &'static RecordKind, id: Uuid) -> Result<Option<Value>, Refusal> {
    match caller.edge.records.get(&caller.principal, kind, id).await.map_err(Refusal::from) {
        Ok(found) => Ok(Some(found)),
        Err(refusal) if matches!(refusal.kind, ErrorKind::NotFound | ErrorKind::Forbidden) => Ok(None),
        Err(other) => Err(other),
    }
}

/// Returns the id and name of the base experiment.
pub async fn base(caller: &Caller, id: Uuid) -> Result<Option<(Uuid, String)>, Refusal> {
    let found = ExperimentRecord::of(caller, id).await?;
    Ok(base_of(caller, &found, None).await?.map(|base| (base.id, base.name)))
}

/// Returns the base experiment.
///
/// The request names it, or else the experiment, or else the project. The default is the newest other experiment.
pub async fn base_of(
    caller: &Caller,
    of: &ExperimentRecord,
    named: Option<Uuid>,
) -> Result<Option<ExperimentRecord>, Refusal> {
    if let Some(named) = named {
        return ExperimentRecord::of(caller, named).await.map(Some);
    }
    let id = |value: &Value| value.as_str().and_then(|id| Uuid::parse_str(id).ok());
    let project = visible(caller, &kinds::PROJECT, of.project.id).await?.unwrap_or_default();
    let chosen = [id(&of.record["base_exp_id"]), id(&project["settings"]["baseline_experiment_id"])];
    for chosen in chosen.into_iter().flatten().filter(|chosen| *chosen != of.id) {
        if visible(caller, &kinds::EXPERIMENT, chosen).await?.is_some() {
            return ExperimentRecord::of(caller, chosen).await.map(Some);
        }
    }
    let newest = ListRequest {
        limit: Some(NEWEST_MAX),
        filters: vec![("project_id".into(), of.project.id.to_string())],
        ..ListRequest::default()
    };
    let newest = caller.edge.records.list(&caller.principal, &kinds::EXPERIMENT, &newest).await?;
    let others = newest.iter().filter_map(|record| uuid_in(record, "id").ok());
    match others.into_iter().find(|id| *id != of.id) {
        Some(id) => ExperimentRecord::of(caller, id).await.map(Some),
        None => Ok(None),
    }
}

/// Returns the expression of the key that pairs the traces of a project's experiments.
pub async fn comparison_key(caller: &Caller, project: Uuid) -> Result<String, Refusal> {
    let settings = visible(caller, &kinds::PROJECT, project).await?;
    let key = settings.as_ref().and_then(|project| project.pointer("/settings/comparison_key")?.as_str());
    Ok(key.filter(|key| !key.trim().is_empty()).unwrap_or(COMPARISON_KEY).to_owned())
}

/// Returns the entries of the scores and metrics of an experiment.
pub async fn sums(
    caller: &Caller,
    of: &ExperimentRecord,
    base: Option<&ExperimentRecord>,
) -> Result<(Value, Value), Refusal> {
    let key = comparison_key(caller, of.project.id).await?;
    let hasher = base.map(|_| KeyHasher::default());
    let (scores, metrics) = tallies(caller, of.id, &key, hasher.as_ref()).await?;
    let Some(base) = base else {
        return Ok((scores.entries(SCORE, None), metrics.entries(METRIC, None)));
    };
    let (before, metrics_before) = tallies(caller, base.id, &key, hasher.as_ref()).await?;
    Ok((scores.entries(SCORE, Some(&before)), metrics.entries(METRIC, Some(&metrics_before))))
}

fn too_many(why: TooManyNumbers) -> Refusal {
    Refusal::new(ErrorKind::TooLarge, why.to_string())
}

async fn tallies(caller: &Caller, id: Uuid, key: &str, hasher: Option<&KeyHasher>) -> Result<(Tally, Tally), Refusal> {
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
    let home = home(caller, ObjectKind::Experiment, id).await?;
    let mut rows = ask(caller, query, home).await.map_err(|refusal| match refusal.kind {
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
    still(caller, home).await?;
    Ok((scores, metrics))
}

/// Returns an object that the caller may read, for a query.
pub async fn home(caller: &Caller, kind: ObjectKind, id: Uuid) -> Result<Home, Refusal> {
    let home = caller.edge.records.object(&caller.principal, kind, id, Permission::Read).await?;
    Ok(Home { object: home.key, org: home.org, project_id: home.project_id })
}

/// Starts a query over one object.
pub async fn ask(caller: &Caller, query: Value, home: Home) -> Result<QueryAnswer, Refusal> {
    let queries = caller.queries();
    let question = Question { query, disable_limit: true, now: queries.now(), ..Question::default() };
    let masks = masks(&caller.edge.records, &caller.principal, [(home.org, home.project_id)])?;
    Ok(queries.ask(caller.who(), question.read()?, &[home], None, None).masked(&[home], &masks))
}

/// Checks after a query that the caller may still read the object.
pub async fn still(caller: &Caller, home: Home) -> Result<(), Refusal> {
    Ok(caller.edge.records.still(&caller.principal, &[home.object], Permission::Read).await?)
}

/// Returns a cell as an object, which is empty if the cell is null.
fn object(cell: Option<&Cell<'_>>) -> Map<String, Value> {
    let text = cell.filter(|cell| !cell.is_null()).and_then(Cell::to_text);
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Returns the id in a field of a record.
pub fn uuid_in(record: &Value, field: &str) -> Result<Uuid, Refusal> {
    let id = record[field].as_str().and_then(|id| Uuid::parse_str(id).ok());
    id.ok_or_else(|| Refusal::internal(format!("a record has no {field}")))
}

/// Encodes a text as a segment of a URL path.
pub fn encoded(text: &str) -> String {
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
