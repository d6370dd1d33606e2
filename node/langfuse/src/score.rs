//! Scores: each is a row of its own, and a value on the row of its trace or observation.
//!
//! A number from 0 to 1 and a boolean are in `scores` of the target. Other values are in `metadata.langfuse.scores` of
//! the target, because scores of this server are from 0 to 1.

use serde_json::{Map, Number, Value, json};

use crate::fields::{BadField, given, iso, needed, number_of, text, time};
use crate::metadata::{OWN, own};
use crate::observation::{checked_id, row_id, trace_frame};

/// Types of scores.
const TYPES: [&str; 5] = ["NUMERIC", "BOOLEAN", "CATEGORICAL", "TEXT", "CORRECTION"];
/// Prefix of the id of the row of a score.
const ROW_PREFIX: &str = "score-";

/// Score of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct NewScore {
    pub id: String,
    fields: Map<String, Value>,
    at: i64,
}

/// Rows of a score.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoreRows {
    /// Row of the score.
    pub score: Value,
    /// Change of the row of the trace or observation.
    pub target: Option<Value>,
    /// Row that has to exist before its change is written, because the first write of a row fixes its position.
    pub awaits: Option<String>,
}

/// Form of a score in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreShape {
    /// Versions 1 and 2 of the API.
    Older,
    /// Version 3, with the subject of the score.
    V3,
}

impl NewScore {
    /// Reads a score. `id` is that of a score without one, and `at` its time in microseconds.
    pub fn of_body(body: &Map<String, Value>, id: &str, at: i64) -> Result<NewScore, BadField> {
        let id = checked_id("id", text(body, "id")?.unwrap_or(id))?.to_owned();
        let name = needed(body, "name")?;
        let sent = given(body, "value").ok_or_else(|| BadField("`value` is missing".into()))?;
        let kind = match text(body, "dataType")? {
            Some(kind) if TYPES.contains(&kind) => kind,
            Some(_) => return Err(BadField(format!("`dataType` has to be one of {}", TYPES.join(", ")))),
            None if sent.is_string() => "CATEGORICAL",
            None if sent.is_boolean() => "BOOLEAN",
            None => "NUMERIC",
        };
        let (value, string) = values(kind, sent)?;
        let mut fields = Map::from_iter([
            ("kind".to_owned(), json!("score")),
            ("score_id".to_owned(), id.as_str().into()),
            ("name".to_owned(), name.into()),
            ("data_type".to_owned(), kind.into()),
            ("environment".to_owned(), text(body, "environment")?.unwrap_or("default").into()),
            ("source".to_owned(), text(body, "source")?.unwrap_or("API").into()),
        ]);
        fields.extend(value.map(|value| ("value".to_owned(), Value::Number(value))));
        fields.extend(string.map(|text| ("string_value".to_owned(), text.into())));
        let subject = [("traceId", "trace_id"), ("observationId", "observation_id"), ("sessionId", "session_id")];
        let others =
            [("datasetRunId", "run_id"), ("comment", "comment"), ("configId", "config_id"), ("queueId", "queue_id")];
        for (name, key) in subject.into_iter().chain(others) {
            fields.extend(text(body, name)?.map(|text| (key.to_owned(), text.into())));
        }
        fields.extend(given(body, "metadata").map(|metadata| ("metadata".to_owned(), metadata.clone())));
        for name in ["traceId", "observationId", "sessionId"] {
            checked_id(name, text(body, name)?.unwrap_or_default())?;
        }
        if !["trace_id", "session_id", "run_id"].iter().any(|key| fields.contains_key(*key)) {
            let said = "the score has no target: it needs `traceId`, `sessionId` or `datasetRunId`";
            return Err(BadField(said.into()));
        }
        Ok(NewScore { id, fields, at: time(body, "timestamp")?.unwrap_or(at) })
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(Value::as_str)
    }

    /// Returns the rows of the score.
    pub fn rows(self) -> ScoreRows {
        let owner = self.field("session_id").or_else(|| self.field("run_id")).unwrap_or_default();
        let trace = self.field("trace_id").unwrap_or(owner);
        let parent = self.field("observation_id").unwrap_or(trace);
        let row = format!("{ROW_PREFIX}{}", self.id);
        let score = json!({
            "id": row, "span_id": row, "root_span_id": trace, "span_parents": [parent], "created": iso(self.at),
            "span_attributes": {"name": self.field("name"), "type": "score"}, "metadata": {OWN: self.fields},
        });
        let target = score_target(&score);
        let awaits = target.as_ref().and_then(|_| observation_row(&score));
        ScoreRows { score, target, awaits }
    }
}

fn in_range(fields: &Map<String, Value>) -> Option<f64> {
    let is_number = matches!(fields.get("data_type").and_then(Value::as_str), Some("NUMERIC" | "BOOLEAN"));
    let value = fields.get("value").and_then(Value::as_f64);
    value.filter(|value| is_number && (0.0..=1.0).contains(value))
}

fn values(kind: &str, sent: &Value) -> Result<(Option<Number>, Option<String>), BadField> {
    let text = || sent.as_str().map(str::to_owned);
    match kind {
        "NUMERIC" => match number_of(sent).filter(|_| sent.is_number()) {
            Some(number) => Ok((Some(number), None)),
            None => Err(BadField("`value` of a numeric score has to be a number".into())),
        },
        "BOOLEAN" => {
            let is = match sent {
                Value::Bool(is) => Some(*is),
                other => other.as_f64().filter(|value| *value == 0.0 || *value == 1.0).map(|value| value == 1.0),
            };
            let is = is.ok_or_else(|| BadField("`value` of a boolean score has to be 0 or 1".into()))?;
            Ok((Some(u64::from(is).into()), Some(if is { "True" } else { "False" }.into())))
        }
        _ => {
            let text = text().ok_or_else(|| {
                BadField(format!("`value` of a {} score has to be a string", kind.to_ascii_lowercase()))
            })?;
            let number = (kind != "TEXT").then(|| 0.into());
            Ok((number, Some(text)))
        }
    }
}

fn target_frame(trace: &str, observation: Option<&str>) -> Map<String, Value> {
    match observation {
        None => trace_frame(trace),
        Some(observation) => Map::from_iter([
            ("id".to_owned(), row_id(trace, observation).into()),
            ("span_id".to_owned(), observation.into()),
            ("root_span_id".to_owned(), trace.into()),
            ("_is_merge".to_owned(), true.into()),
        ]),
    }
}

/// Returns the fields of a target with the value of a score.
fn target_values(name: &str, in_range: Option<f64>, fields: &Map<String, Value>) -> Map<String, Value> {
    let other = fields.get("string_value").or_else(|| fields.get("value")).cloned().unwrap_or_default();
    match in_range {
        // The mark tells rows of this wire apart, also if nothing but a score has arrived.
        Some(value) => Map::from_iter([
            ("scores".to_owned(), json!({name: value})),
            ("metadata".to_owned(), json!({OWN: {"scored": true}})),
        ]),
        None => Map::from_iter([("metadata".to_owned(), json!({OWN: {"scores": {name: other}}}))]),
    }
}

/// Returns the id of the row of the observation that a score is about, given the row of the score.
pub fn observation_row(score: &Value) -> Option<String> {
    let fields = own(score)?;
    let field = |name: &str| fields.get(name).and_then(Value::as_str);
    Some(row_id(field("trace_id")?, field("observation_id")?))
}

/// Returns the change of the target's row that a score makes, given the row of the score.
pub fn score_target(score: &Value) -> Option<Value> {
    let fields = own(score)?;
    let field = |name: &str| fields.get(name).and_then(Value::as_str);
    let mut row = target_frame(field("trace_id")?, field("observation_id"));
    row.extend(score.get("created").map(|created| ("created".to_owned(), created.clone())));
    row.extend(target_values(field("name")?, in_range(fields), fields));
    Some(Value::Object(row))
}

/// Returns the change that a score makes to the row of its trace in an experiment, given the row of the score.
pub fn experiment_target(score: &Value) -> Option<Value> {
    let fields = own(score)?;
    let field = |name: &str| fields.get(name).and_then(Value::as_str);
    let mut row = trace_frame(field("trace_id")?);
    row.extend(target_values(field("name")?, in_range(fields), fields));
    Some(Value::Object(row))
}

/// Returns the change of the target's row after the deletion of a score, given the row of the score.
pub fn score_removal(score: &Value) -> Option<Value> {
    let fields = own(score)?;
    let field = |name: &str| fields.get(name).and_then(Value::as_str);
    let mut row = target_frame(field("trace_id")?, field("observation_id"));
    let name = field("name")?;
    row.extend(match in_range(fields) {
        Some(_) => [("scores".to_owned(), json!({name: null}))],
        None => [("metadata".to_owned(), json!({OWN: {"scores": {name: null}}}))],
    });
    Some(Value::Object(row))
}

/// Returns a score as an answer has it, from its row.
pub fn score_view(row: &Value, project: &str, shape: ScoreShape) -> Option<Value> {
    let fields = own(row).filter(|own| own.get("kind").is_some_and(|kind| kind == "score"))?;
    let get = |name: &str| fields.get(name).cloned().unwrap_or(Value::Null);
    let at = row.get("created").cloned().unwrap_or(Value::Null);
    let mut view = json!({
        "id": get("score_id"), "name": get("name"), "source": get("source"), "timestamp": at, "createdAt": at,
        "updatedAt": at, "authorUserId": null, "comment": get("comment"), "metadata": object_or_empty(&get("metadata")),
        "configId": get("config_id"), "queueId": get("queue_id"), "environment": get("environment"),
        "dataType": get("data_type"), "projectId": project,
    });
    let (value, string) = (get("value"), get("string_value"));
    match shape {
        ScoreShape::Older => {
            for (name, key) in [
                ("traceId", "trace_id"),
                ("observationId", "observation_id"),
                ("sessionId", "session_id"),
                ("datasetRunId", "run_id"),
            ] {
                view[name] = get(key);
            }
            view["value"] = value;
            if !string.is_null() {
                view["stringValue"] = string;
            }
        }
        ScoreShape::V3 => {
            view["value"] = match fields.get("data_type").and_then(Value::as_str) {
                Some("NUMERIC") => value,
                Some("BOOLEAN") => Value::Bool(value.as_f64() == Some(1.0)),
                _ => string,
            };
            view["subject"] = subject(fields);
        }
    }
    Some(view)
}

fn subject(fields: &Map<String, Value>) -> Value {
    let get = |name: &str| fields.get(name).filter(|value| !value.is_null());
    match (get("observation_id"), get("trace_id"), get("session_id"), get("run_id")) {
        (Some(observation), trace, ..) => json!({"kind": "observation", "id": observation, "traceId": trace}),
        (None, Some(trace), ..) => json!({"kind": "trace", "id": trace}),
        (None, None, Some(session), _) => json!({"kind": "session", "id": session}),
        (None, None, None, run) => json!({"kind": "experiment", "id": run}),
    }
}

fn object_or_empty(value: &Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::Object(_) => value.clone(),
        other => json!({"metadata": other}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(body: Value) -> Result<NewScore, BadField> {
        NewScore::of_body(body.as_object().expect("an object"), "made", 1_000_000)
    }

    #[test]
    fn a_number_from_0_to_1_is_a_score_of_the_target() {
        let rows = score(json!({"id": "s", "traceId": "t", "name": "n", "value": 0.5})).expect("a score").rows();
        let target = rows.target.expect("a target");
        assert_eq!((&target["id"], &target["scores"]), (&json!("t"), &json!({"n": 0.5})));
        assert_eq!((&rows.score["id"], &rows.score["span_parents"]), (&json!("score-s"), &json!(["t"])));
        assert!(rows.score.get("scores").is_none(), "the value counts once");
    }

    #[test]
    fn other_values_are_metadata_of_the_target() {
        for (value, kept) in [(json!(7), json!(7)), (json!("good"), json!("good"))] {
            let sent = json!({"traceId": "t", "observationId": "o", "name": "n", "value": value});
            let rows = score(sent).expect("a score").rows();
            assert_eq!(rows.awaits.as_deref(), Some("t-o"), "the span fixes the position of its row");
            let target = rows.target.expect("a target");
            assert_eq!((&target["id"], target.get("scores")), (&json!("t-o"), None));
            assert_eq!(target["metadata"]["langfuse"]["scores"]["n"], kept);
        }
    }

    #[test]
    fn a_score_reads_back_in_each_form() {
        let sent = json!({"id": "s", "traceId": "t", "observationId": "o", "name": "n", "value": 1,
            "dataType": "BOOLEAN", "comment": "c", "metadata": {"a": 1}});
        let row = score(sent).expect("a score").rows().score;
        let older = score_view(&row, "p", ScoreShape::Older).expect("a score");
        assert_eq!(
            (&older["value"], &older["stringValue"], &older["traceId"]),
            (&json!(1), &json!("True"), &json!("t"))
        );
        assert_eq!((&older["comment"], &older["metadata"]), (&json!("c"), &json!({"a": 1})));
        let newer = score_view(&row, "p", ScoreShape::V3).expect("a score");
        assert_eq!(newer["value"], true);
        assert_eq!(newer["subject"], json!({"kind": "observation", "id": "o", "traceId": "t"}));
        assert_eq!(score_view(&json!({"id": "x"}), "p", ScoreShape::V3), None);
    }

    #[test]
    fn a_deleted_score_leaves_its_target() {
        let row = score(json!({"traceId": "t", "name": "n", "value": 0.5})).expect("a score").rows().score;
        let target = score_removal(&row).expect("a target");
        assert_eq!((&target["id"], &target["scores"]), (&json!("t"), &json!({"n": null})));
    }

    #[test]
    fn invalid_scores_say_why() {
        for (body, why) in [
            (json!({"traceId": "t", "value": 1}), "`name` is missing"),
            (json!({"traceId": "t", "name": "n"}), "`value` is missing"),
            (json!({"name": "n", "value": 1}), "the score has no target"),
            (json!({"traceId": "t", "name": "n", "value": 2, "dataType": "BOOLEAN"}), "`value` of a boolean"),
            (json!({"traceId": "t", "name": "n", "value": "x", "dataType": "NUMERIC"}), "`value` of a numeric"),
            (json!({"traceId": "t", "name": "n", "value": 1, "dataType": "TEXT"}), "`value` of a text"),
            (json!({"traceId": "t", "name": "n", "value": 1, "dataType": "X"}), "`dataType`"),
        ] {
            let error = score(body).expect_err(why);
            assert!(error.0.starts_with(why), "{error}");
        }
    }
}
