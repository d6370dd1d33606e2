//! Datasets with their items, and runs as experiments.

use serde_json::{Map, Value, json};

use crate::fields::{BadField, given, needed, text};
use crate::metadata::{self, OWN, own};
use crate::observation::checked_id;

/// Key in the metadata of records for metadata that is no object.
const WHOLE: &str = "langfuse_metadata";

fn record_metadata(sent: Option<&Value>) -> Option<Value> {
    match sent? {
        Value::Object(map) => Some(Value::Object(map.clone())),
        other => Some(json!({WHOLE: other})),
    }
}

fn read_record_metadata(record: &Value) -> Value {
    match record.get("metadata") {
        Some(Value::Object(map)) => map.get(WHOLE).cloned().unwrap_or_else(|| Value::Object(map.clone())),
        _ => Value::Null,
    }
}

/// Returns the fields of a dataset's record.
pub fn dataset_fields(body: &Map<String, Value>, project: &str) -> Result<Map<String, Value>, BadField> {
    for name in ["inputSchema", "expectedOutputSchema"] {
        if given(body, name).is_some() {
            return Err(BadField(format!("`{name}` is not supported: datasets of this server have no schemas")));
        }
    }
    let mut fields =
        Map::from_iter([("project_id".to_owned(), project.into()), ("name".to_owned(), needed(body, "name")?.into())]);
    fields.extend(text(body, "description")?.map(|text| ("description".to_owned(), text.into())));
    fields.extend(record_metadata(given(body, "metadata")).map(|metadata| ("metadata".to_owned(), metadata)));
    Ok(fields)
}

/// Returns a dataset as an answer has it, from its record.
pub fn dataset_view(record: &Value) -> Value {
    json!({
        "id": record["id"], "name": record["name"], "description": record["description"],
        "metadata": read_record_metadata(record), "inputSchema": null, "expectedOutputSchema": null,
        "projectId": record["project_id"], "createdAt": record["created"], "updatedAt": record["created"],
    })
}

/// Item of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct NewItem {
    pub dataset: String,
    pub id: Option<String>,
    fields: Map<String, Value>,
}

impl NewItem {
    pub fn of_body(body: &Map<String, Value>) -> Result<NewItem, BadField> {
        let dataset = needed(body, "datasetName")?.to_owned();
        let id = text(body, "id")?.map(|id| checked_id("id", id)).transpose()?.map(str::to_owned);
        match text(body, "status")? {
            None | Some("ACTIVE" | "ARCHIVED") => {}
            Some(_) => return Err(BadField("`status` has to be ACTIVE or ARCHIVED".into())),
        }
        for name in ["sourceTraceId", "sourceObservationId"] {
            text(body, name)?;
        }
        Ok(NewItem { dataset, id, fields: body.clone() })
    }
}

/// Returns the row of an item. `project` is that of the trace from which the item is made.
pub fn item_row(new: &NewItem, id: &str, project: &str) -> Value {
    let get = |name: &str| given(&new.fields, name).cloned();
    let mut own = Map::from_iter([("kind".to_owned(), json!("item"))]);
    for (name, key) in
        [("status", "status"), ("sourceTraceId", "source_trace_id"), ("sourceObservationId", "source_observation_id")]
    {
        own.extend(get(name).map(|value| (key.to_owned(), value)));
    }
    let mut fields = Map::new();
    metadata::put(&mut fields, &mut own, get("metadata").unwrap_or(Value::Null));
    fields.insert(OWN.into(), Value::Object(own));
    let mut row = Map::from_iter([("id".to_owned(), id.into()), ("_is_merge".to_owned(), true.into())]);
    row.insert("metadata".into(), Value::Object(fields));
    row.extend(get("input").map(|input| ("input".to_owned(), input)));
    row.extend(get("expectedOutput").map(|expected| ("expected".to_owned(), expected)));
    // A part that is replaced must not keep keys of the old one.
    row.insert("_merge_paths".into(), json!([["input"], ["expected"], ["metadata"]]));
    if let Some(trace) = get("sourceTraceId").as_ref().and_then(Value::as_str) {
        let observation = get("sourceObservationId");
        let source = match observation.as_ref().and_then(Value::as_str) {
            Some(observation) => format!("{trace}-{observation}"),
            None => trace.to_owned(),
        };
        row.insert("origin".into(), json!({"object_type": "project_logs", "object_id": project, "id": source}));
    }
    Value::Object(row)
}

/// Returns an item as an answer has it, from its row and the record of its dataset.
pub fn item_view(row: &Value, dataset: &Value) -> Value {
    let field = |name: &str| own(row).and_then(|own| own.get(name)).cloned().unwrap_or(Value::Null);
    let has_metadata =
        row.get("metadata").is_some_and(|metadata| metadata.as_object().is_some_and(|map| map.len() > 1));
    let metadata = metadata::read(row);
    let is_empty = metadata.as_object().is_some_and(Map::is_empty) && !has_metadata;
    let status = field("status");
    json!({
        "id": row["id"], "status": if status.is_null() { json!("ACTIVE") } else { status },
        "input": row.get("input"), "expectedOutput": row.get("expected"),
        "metadata": if is_empty { Value::Null } else { metadata },
        "sourceTraceId": field("source_trace_id"), "sourceObservationId": field("source_observation_id"),
        "datasetId": dataset["id"], "datasetName": dataset["name"], "createdAt": row["created"],
        "updatedAt": row["created"], "mediaReferences": [],
    })
}

/// Item of a run in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRunItem {
    pub run: String,
    pub item: String,
    pub trace: String,
    pub observation: Option<String>,
    description: Option<String>,
    metadata: Option<Value>,
}

impl NewRunItem {
    pub fn of_body(body: &Map<String, Value>) -> Result<NewRunItem, BadField> {
        let trace = text(body, "traceId")?.map(|id| checked_id("traceId", id)).transpose()?;
        let missing =
            || BadField("`traceId` is missing: this server finds an observation by its trace and its id".into());
        let observation = text(body, "observationId")?.map(|id| checked_id("observationId", id)).transpose()?;
        Ok(NewRunItem {
            run: needed(body, "runName")?.to_owned(),
            item: needed(body, "datasetItemId")?.to_owned(),
            trace: trace.ok_or_else(missing)?.to_owned(),
            observation: observation.map(str::to_owned),
            description: text(body, "runDescription")?.map(str::to_owned),
            metadata: record_metadata(given(body, "metadata")),
        })
    }

    /// Returns the fields of the experiment's record.
    pub fn experiment(&self, project: &str, dataset: &str) -> Map<String, Value> {
        let mut fields = Map::from_iter([
            ("project_id".to_owned(), project.into()),
            ("name".to_owned(), self.run.as_str().into()),
            ("dataset_id".to_owned(), dataset.into()),
        ]);
        fields.extend(self.description.clone().map(|text| ("description".to_owned(), text.into())));
        fields.extend(self.metadata.clone().map(|metadata| ("metadata".to_owned(), metadata)));
        fields
    }
}

/// Returns the row of a run's item: the item's input and expected output, and the output of the trace if it is known.
///
/// The id is that of the trace, so that the spans of the trace add their fields to the same row in any order.
pub fn run_item_row(new: &NewRunItem, item: &Value, dataset: &str, output: Option<&Value>) -> Value {
    let own = json!({
        "kind": "observation", "trace_id": new.trace, "observation_id": new.observation, "dataset_item_id": new.item,
    });
    let mut row = json!({
        "id": new.trace, "root_span_id": new.trace, "span_id": new.observation.as_ref().unwrap_or(&new.trace),
        "span_parents": null, "_is_merge": true, "input": item["input"], "metadata": {OWN: own},
        "span_attributes": {"type": "eval"},
        "origin": {"object_type": "dataset", "object_id": dataset, "id": new.item},
    });
    if let Some(expected) = item.get("expected").filter(|expected| !expected.is_null()) {
        row["expected"] = expected.clone();
    }
    if let Some(output) = output {
        row["output"] = output.clone();
    }
    row
}

/// Returns the item of a run as an answer has it, from its row and the record of the experiment.
pub fn run_item_view(row: &Value, run: &Value) -> Value {
    let field = |name: &str| own(row).and_then(|own| own.get(name)).cloned().filter(|value| !value.is_null());
    json!({
        "id": row["id"], "datasetRunId": run["id"], "datasetRunName": run["name"],
        "datasetItemId": field("dataset_item_id").unwrap_or_else(|| row["origin"]["id"].clone()),
        "traceId": field("trace_id").unwrap_or_else(|| row["root_span_id"].clone()),
        "observationId": field("observation_id").unwrap_or_else(|| row["span_id"].clone()),
        "createdAt": row["created"], "updatedAt": row["created"],
    })
}

/// Returns a run as an answer has it, from the records of the experiment and the dataset.
pub fn run_view(run: &Value, dataset: &Value) -> Value {
    json!({
        "id": run["id"], "name": run["name"], "description": run["description"], "metadata": read_record_metadata(run),
        "datasetId": dataset["id"], "datasetName": dataset["name"], "createdAt": run["created"],
        "updatedAt": run["created"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn a_dataset_keeps_metadata_of_any_type() {
        for metadata in [json!({"a": 1}), json!("text"), json!([1])] {
            let fields = dataset_fields(&body(json!({"name": "d", "metadata": metadata})), "p").expect("fields");
            assert_eq!(dataset_view(&Value::Object(fields))["metadata"], metadata);
        }
        assert!(dataset_fields(&body(json!({})), "p").is_err());
        assert!(dataset_fields(&body(json!({"name": "d", "inputSchema": {}})), "p").is_err());
    }

    #[test]
    fn an_item_reads_back_as_it_was_sent() {
        let sent = json!({"datasetName": "d", "input": {"q": 1}, "expectedOutput": "a", "metadata": {"model": "m"},
            "sourceTraceId": "t", "sourceObservationId": "o", "status": "ARCHIVED"});
        let new = NewItem::of_body(&body(sent)).expect("an item");
        let row = item_row(&new, "i", "p");
        assert_eq!(row["origin"]["id"], "t-o");
        let view = item_view(&row, &json!({"id": "x", "name": "d"}));
        assert_eq!((&view["input"], &view["expectedOutput"]), (&json!({"q": 1}), &json!("a")));
        assert_eq!((&view["metadata"], &view["status"]), (&json!({"model": "m"}), &json!("ARCHIVED")));
        assert_eq!((&view["datasetName"], &view["sourceTraceId"]), (&json!("d"), &json!("t")));
    }

    #[test]
    fn an_item_without_metadata_has_none() {
        let new = NewItem::of_body(&body(json!({"datasetName": "d"}))).expect("an item");
        let view = item_view(&item_row(&new, "i", "p"), &json!({}));
        assert_eq!(
            (&view["metadata"], &view["input"], &view["status"]),
            (&Value::Null, &Value::Null, &json!("ACTIVE"))
        );
    }

    #[test]
    fn an_item_of_a_run_is_a_row_of_its_trace() {
        let sent = body(
            json!({"runName": "r", "datasetItemId": "i", "traceId": "t", "observationId": "o", "metadata": {"a": 1}}),
        );
        let new = NewRunItem::of_body(&sent).expect("an item");
        let row = run_item_row(&new, &json!({"input": 1, "expected": 2}), "d", Some(&json!(3)));
        assert_eq!((&row["id"], &row["expected"], &row["output"]), (&json!("t"), &json!(2), &json!(3)));
        let view = run_item_view(&row, &json!({"id": "x", "name": "r"}));
        assert_eq!((&view["datasetItemId"], &view["observationId"]), (&json!("i"), &json!("o")));
        assert_eq!(new.experiment("p", "d")["metadata"], json!({"a": 1}));
        assert!(NewRunItem::of_body(&body(json!({"runName": "r", "datasetItemId": "i"}))).is_err());
    }
}
