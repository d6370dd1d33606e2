//! Data of an evaluation: rows of a dataset or of another experiment at a pinned version, or the list of the request.

use assay_node_evaluations::{
    EVAL_CASES_MAX, EVAL_DATA_BYTES_MAX, EvalData, EvalDataset, EvalDatasetName, EvalDatasetVersion, EvalDatum,
    EvalDatumError, EvalExperimentName, EvalRequest, EvalSourceExperiment,
};
use assay_node_http::requests::caller::Caller;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_query_http::{QueryOptions, rows_of, rows_page};
use assay_node_records::{Kind, ListRequest, Pinned, RecordsError, kinds};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// Rows in one page.
const PAGE_ROWS: u64 = 1_000;
/// Upper bound of the bytes of one page.
const PAGE_BYTES_MAX: usize = 128 << 20;

/// Members of a query that the evaluation determines.
const TAKEN_MEMBERS: [&str; 6] = ["from", "select", "dimensions", "measures", "unpivot", "pivot"];

/// Data of an evaluation in memory.
#[derive(Debug)]
pub struct LoadedData {
    pub data: Vec<EvalDatum>,
    /// Estimated memory of the data.
    pub bytes: usize,
    /// Object that the rows are from, or `None` for the list of a request.
    pub source: Option<DataSource>,
}

/// Object with the rows of an evaluation, and their version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSource {
    pub is_dataset: bool,
    pub id: Uuid,
    pub version: String,
}

/// Rows to read.
struct SourceRows<'r> {
    is_dataset: bool,
    id: Uuid,
    version: Option<String>,
    query: Option<&'r Map<String, Value>>,
}

impl LoadedData {
    /// Takes the list of a request, or reads the rows of its source. `version` is the pinned version of a source.
    pub async fn load(
        caller: &Caller,
        request: &mut EvalRequest,
        version: Option<String>,
    ) -> Result<LoadedData, Refusal> {
        let project = request.project_id;
        match std::mem::replace(&mut request.data, EvalData::Inline(Vec::new())) {
            EvalData::Inline(items) => LoadedData::of_list(items),
            EvalData::Dataset(dataset) => {
                let id = dataset_id(caller, &dataset.name).await?;
                let version = match version {
                    Some(version) => Some(version),
                    None => version_of(caller, id, &dataset).await?,
                };
                LoadedData::read(caller, SourceRows { is_dataset: true, id, version, query: dataset.query.as_ref() })
                    .await
            }
            EvalData::Experiment(EvalSourceExperiment { name, query }) => {
                let id = experiment_id(caller, project, &name).await?;
                LoadedData::read(caller, SourceRows { is_dataset: false, id, version, query: query.as_ref() }).await
            }
        }
    }

    fn of_list(items: Vec<Value>) -> Result<LoadedData, Refusal> {
        let mut loaded = LoadedData { data: Vec::with_capacity(items.len()), bytes: 0, source: None };
        for (position, item) in (0..).zip(items) {
            loaded.push(EvalDatum::of_inline(position, item))?;
        }
        Ok(loaded)
    }

    /// Reads all pages at the version of the first one.
    async fn read(caller: &Caller, source: SourceRows<'_>) -> Result<LoadedData, Refusal> {
        let SourceRows { is_dataset, id, mut version, query } = source;
        let mut loaded = LoadedData { data: Vec::new(), bytes: 0, source: None };
        let mut left = limit_of(query)?.unwrap_or(u64::MAX);
        if query.is_some_and(|query| query.contains_key("sort")) {
            // A sorted query has no pages.
            let newest = rows_page(caller, tree(is_dataset, id, query, 1)?, &options(version.clone())).await?;
            let options = QueryOptions { bytes_max: EVAL_DATA_BYTES_MAX, ..options(Some(newest.version.clone())) };
            let rows = rows_of(caller, tree(is_dataset, id, query, left.min(EVAL_CASES_MAX))?, &options).await?;
            loaded.push_rows(is_dataset, id, rows)?;
            loaded.source = Some(DataSource { is_dataset, id, version: newest.version });
            return Ok(loaded);
        }
        let mut cursor: Option<String> = None;
        loop {
            let mut page = tree(is_dataset, id, query, PAGE_ROWS.min(left))?;
            if let Some(cursor) = &cursor {
                page["cursor"] = cursor.as_str().into();
            }
            let page = rows_page(caller, page, &options(version.clone())).await?;
            let version = version.get_or_insert(page.version).clone();
            let count = page.rows.len() as u64;
            loaded.push_rows(is_dataset, id, page.rows)?;
            left = left.saturating_sub(count);
            match page.cursor.filter(|_| count > 0 && left > 0) {
                Some(next) => cursor = Some(next),
                None => {
                    loaded.source = Some(DataSource { is_dataset, id, version });
                    return Ok(loaded);
                }
            }
        }
    }

    fn push_rows(&mut self, is_dataset: bool, id: Uuid, rows: Vec<Value>) -> Result<(), Refusal> {
        let id = id.to_string();
        for row in rows {
            let Value::Object(row) = row else { return Err(Refusal::internal("a row of a query is no object")) };
            self.push(match is_dataset {
                true => EvalDatum::of_dataset_row(&id, row),
                false => EvalDatum::of_experiment_row(&id, row),
            })?;
        }
        Ok(())
    }

    fn push(&mut self, datum: Result<EvalDatum, EvalDatumError>) -> Result<(), Refusal> {
        let datum = datum.map_err(|why| Refusal::bad(why.to_string()))?;
        self.bytes += datum.bytes();
        // The plan checks the exact bounds, but only after everything is read.
        if self.bytes > EVAL_DATA_BYTES_MAX || self.data.len() as u64 >= EVAL_CASES_MAX {
            let why = format!(
                "the data of the evaluation have more than {EVAL_CASES_MAX} rows or {EVAL_DATA_BYTES_MAX} bytes: use a \
                 filter or a limit"
            );
            return Err(Refusal::new(ErrorKind::TooLarge, why));
        }
        self.data.push(datum);
        Ok(())
    }
}

fn options(version: Option<String>) -> QueryOptions {
    QueryOptions { version, ..QueryOptions::newest(PAGE_BYTES_MAX) }
}

/// Returns the limit of a query in its JSON form.
fn limit_of(query: Option<&Map<String, Value>>) -> Result<Option<u64>, Refusal> {
    match query.and_then(|query| query.get("limit")) {
        None | Some(Value::Null) => Ok(None),
        Some(limit) => match limit.as_u64() {
            Some(limit) => Ok(Some(limit)),
            None => Err(Refusal::bad("`data._internal_btql.limit` has to be a whole number")),
        },
    }
}

/// Returns the query for at most `limit` rows. The filter of the request applies in addition.
fn tree(is_dataset: bool, id: Uuid, query: Option<&Map<String, Value>>, limit: u64) -> Result<Value, Refusal> {
    let ident = |name: &str| json!({"op": "ident", "name": [name]});
    let mut members = query.cloned().unwrap_or_default();
    members.remove("cursor");
    for taken in TAKEN_MEMBERS {
        if members.remove(taken).is_some_and(|value| !value.is_null()) {
            return Err(Refusal::bad(format!(
                "`data._internal_btql.{taken}` is not allowed; valid are `filter`, `sort` and `limit`"
            )));
        }
    }
    let source = if is_dataset { "dataset" } else { "experiment" };
    let mut from =
        json!({"op": "function", "name": ident(source), "args": [{"op": "literal", "value": id.to_string()}]});
    if !is_dataset {
        from["shape"] = "spans".into();
        let root = json!({"op": "eq", "left": ident("is_root"), "right": {"op": "literal", "value": true}});
        let filter = match members.remove("filter").filter(|filter| !filter.is_null()) {
            Some(filter) => json!({"op": "and", "left": root, "right": filter}),
            None => root,
        };
        members.insert("filter".to_owned(), filter);
    }
    members.insert("select".to_owned(), json!([{"op": "star"}]));
    members.insert("from".to_owned(), from);
    members.insert("limit".to_owned(), limit.into());
    Ok(Value::Object(members))
}

async fn dataset_id(caller: &Caller, name: &EvalDatasetName) -> Result<Uuid, Refusal> {
    match name {
        EvalDatasetName::Id(id) => {
            caller.edge.records.get(&caller.principal, &kinds::DATASET, *id).await?;
            Ok(*id)
        }
        EvalDatasetName::Name { project_name, dataset_name } => {
            let filters = [("project_name", project_name.as_str()), ("dataset_name", dataset_name.as_str())];
            let missing = || Refusal::not_found(format!("the dataset `{dataset_name}` in `{project_name}`"));
            found_by(caller, &kinds::DATASET, &filters).await?.ok_or_else(missing)
        }
    }
}

async fn experiment_id(caller: &Caller, project: Uuid, name: &EvalExperimentName) -> Result<Uuid, Refusal> {
    match name {
        EvalExperimentName::Id(id) => {
            caller.edge.records.get(&caller.principal, &kinds::EXPERIMENT, *id).await?;
            Ok(*id)
        }
        EvalExperimentName::Name { project_name, experiment_name } => {
            let id = project.to_string();
            let place = match project_name {
                Some(project_name) => ("project_name", project_name.as_str()),
                None => ("project_id", id.as_str()),
            };
            let found = found_by(caller, &kinds::EXPERIMENT, &[place, ("experiment_name", experiment_name)]).await?;
            found.ok_or_else(|| Refusal::not_found(format!("the experiment `{experiment_name}`")))
        }
    }
}

/// Returns the id of the record that these filters select.
async fn found_by(caller: &Caller, kind: &'static Kind, filters: &[(&str, &str)]) -> Result<Option<Uuid>, Refusal> {
    let mut pairs: Vec<(String, String)> =
        filters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    pairs.push(("limit".to_owned(), "1".to_owned()));
    let found = caller.edge.records.list(&caller.principal, kind, &ListRequest::from_query(pairs)?).await?;
    Ok(found.first().and_then(|record| Uuid::parse_str(record["id"].as_str()?).ok()))
}

/// Returns the version of a dataset that a request names, or `None` for the newest one.
async fn version_of(caller: &Caller, id: Uuid, dataset: &EvalDataset) -> Result<Option<String>, Refusal> {
    match &dataset.version {
        EvalDatasetVersion::Newest => Ok(None),
        EvalDatasetVersion::Version(version) => Ok(Some(version.clone())),
        EvalDatasetVersion::Environment(slug) => {
            let pinned = caller.edge.records.pin(&caller.principal, &Pinned::of("dataset", id)?, slug).await;
            let pinned = pinned.map_err(|why| match why {
                // The environment does not exist, or names no version.
                RecordsError::BadRequest(why) => Refusal::new(ErrorKind::NotFound, why),
                other => other.into(),
            })?;
            Ok(pinned["object_version"].as_str().map(str::to_owned))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_of_the_request_narrows_the_rows() {
        let id = Uuid::from_u128(7);
        let sent = json!({"filter": {"op": "literal", "value": true}, "limit": 5});
        let found = tree(true, id, sent.as_object(), 3).expect("a query");
        assert_eq!((&found["filter"], &found["limit"]), (&sent["filter"], &json!(3)));
        assert_eq!(found["from"]["args"][0]["value"], id.to_string());
        let found = tree(false, id, sent.as_object(), 3).expect("a query");
        assert_eq!((&found["filter"]["op"], &found["filter"]["right"]), (&json!("and"), &sent["filter"]));
        assert!(tree(true, id, json!({"select": [1]}).as_object(), 3).is_err());
        assert_eq!(limit_of(sent.as_object()).ok(), Some(Some(5)));
        assert!(limit_of(json!({"limit": "x"}).as_object()).is_err());
    }

    #[test]
    fn items_of_a_list_are_data() {
        let loaded = LoadedData::of_list(vec![json!({"input": 1, "expected": 2}), json!("text")]).expect("data");
        assert_eq!((loaded.data.len(), loaded.source), (2, None));
        assert!(loaded.bytes > 0);
        assert!(LoadedData::of_list(vec![json!({"input": 1, "tags": 5})]).is_err());
    }
}
