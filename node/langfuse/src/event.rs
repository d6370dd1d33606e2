//! Events of the ingestion endpoint, each as rows or as the reason why it is refused.

use serde_json::{Map, Value, json};

use crate::fields::{BadField, given, needed, object_of, shown, text, time};
use crate::observation::{checked_id, observation_row, trace_row};
use crate::score::NewScore;

/// Upper bound of the events of a batch. Clients send some hundred.
pub const EVENTS_MAX: usize = 5_000;

/// Event of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct IngestionEvent {
    pub id: String,
    kind: String,
    at: Option<i64>,
    body: Map<String, Value>,
}

/// Event that is not stored, with the status and the reason for its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventError {
    pub id: String,
    pub status: u16,
    pub message: String,
}

impl EventError {
    pub fn json(&self) -> Value {
        json!({"id": self.id, "status": self.status, "message": self.message})
    }
}

/// Content of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum EventRows {
    /// Rows of the project's log.
    Rows(Vec<Value>),
    Score(Box<NewScore>),
    /// Log line of an SDK, which is not stored.
    Log(String),
}

/// Event that is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted {
    pub id: String,
    pub rows: EventRows,
}

/// Reads a batch. Events without an id or a type are errors of their own.
pub fn events_of(body: &Map<String, Value>) -> Result<Vec<Result<IngestionEvent, EventError>>, BadField> {
    let Some(Value::Array(batch)) = body.get("batch") else {
        return Err(BadField("`batch` has to be a list of events".into()));
    };
    if batch.len() > EVENTS_MAX {
        return Err(BadField(format!("`batch` has {} events; the maximum is {EVENTS_MAX}", batch.len())));
    }
    Ok(batch.iter().map(event_of).collect())
}

fn event_of(sent: &Value) -> Result<IngestionEvent, EventError> {
    let fields = object_of(Some(sent));
    let id = text(&fields, "id").ok().flatten().unwrap_or_default().to_owned();
    let refuse = |why: BadField| EventError { id: id.clone(), status: 400, message: why.0 };
    if id.is_empty() {
        return Err(refuse(BadField("the event has no `id`".into())));
    }
    let kind = needed(&fields, "type").map_err(refuse)?.to_owned();
    let at = time(&fields, "timestamp").map_err(refuse)?;
    match given(&fields, "body") {
        Some(Value::Object(body)) => Ok(IngestionEvent { id: id.clone(), kind, at, body: body.clone() }),
        _ => Err(refuse(BadField("`body` has to be an object".into()))),
    }
}

/// Returns the rows of an event. `now` is the time of the request in microseconds.
pub fn rows_of_event(event: &IngestionEvent, now: i64) -> Result<Accepted, EventError> {
    let refuse = |why: BadField| EventError { id: event.id.clone(), status: 400, message: why.0 };
    let rows = content(event, now).map_err(refuse)?;
    Ok(Accepted { id: event.id.clone(), rows })
}

fn content(event: &IngestionEvent, now: i64) -> Result<EventRows, BadField> {
    let IngestionEvent { kind, body, at, .. } = event;
    let at = at.unwrap_or(now);
    match kind.as_str() {
        "trace-create" => {
            let id = id_of(event, "id")?;
            Ok(EventRows::Rows(vec![trace_row(body, &id, Some(at))?]))
        }
        "score-create" => Ok(EventRows::Score(Box::new(NewScore::of_body(body, &event.id, at)?))),
        "sdk-log" => Ok(EventRows::Log(shown(&body.get("log").unwrap_or(&Value::Null).to_string()))),
        "span-create" => observation(event, "SPAN", true, at),
        "span-update" => observation(event, "SPAN", false, at),
        "generation-create" => observation(event, "GENERATION", true, at),
        "generation-update" => observation(event, "GENERATION", false, at),
        "event-create" => observation(event, "EVENT", true, at),
        "observation-create" | "observation-update" => {
            let kind = needed(body, "type")?.to_ascii_uppercase();
            observation(event, &kind, kind == "EVENT" || event.kind.ends_with("-create"), at)
        }
        other => Err(BadField(format!("events of the type `{}` are not supported", shown(other)))),
    }
}

fn id_of(event: &IngestionEvent, name: &str) -> Result<String, BadField> {
    match text(&event.body, name)? {
        Some(id) => checked_id(name, id).map(str::to_owned),
        // A repeated event then makes no further row.
        None => checked_id("id", &event.id).map(str::to_owned),
    }
}

/// Returns the rows of an observation. An observation without a trace becomes one of its own.
fn observation(event: &IngestionEvent, kind: &str, is_new: bool, at: i64) -> Result<EventRows, BadField> {
    let mut body = event.body.clone();
    let id = match (is_new, text(&body, "id")?) {
        (_, Some(id)) => checked_id("id", id)?.to_owned(),
        (true, None) => checked_id("id", &event.id)?.to_owned(),
        (false, None) => return Err(BadField("`id` is missing: an update names its observation".into())),
    };
    let trace = match (is_new, text(&body, "traceId")?) {
        (_, Some(trace)) => checked_id("traceId", trace)?.to_owned(),
        (true, None) => id.clone(),
        (false, None) => {
            return Err(BadField(
                "`traceId` is missing: this server finds an observation by its trace and its id".into(),
            ));
        }
    };
    if is_new && given(&body, "startTime").is_none() {
        body.insert("startTime".into(), crate::fields::iso(at));
    }
    let row = observation_row(&body, (&trace, &id, kind), is_new)?;
    if !is_new {
        return Ok(EventRows::Rows(vec![row]));
    }
    // The trace exists with its first observation, even if no event creates it.
    let environment = given(&body, "environment").map(|environment| ("environment".to_owned(), environment.clone()));
    let trace = trace_row(&environment.into_iter().collect(), &trace, None)?;
    Ok(EventRows::Rows(vec![trace, row]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, body: Value) -> Result<Accepted, EventError> {
        let batch = json!({"batch": [{"id": "e", "type": kind, "timestamp": "2026-01-01T00:00:00Z", "body": body}]});
        let events = events_of(batch.as_object().expect("an object")).expect("a batch");
        rows_of_event(events[0].as_ref().expect("an event"), 0)
    }

    #[track_caller]
    fn rows(kind: &str, body: Value) -> Vec<Value> {
        match event(kind, body).expect("is stored").rows {
            EventRows::Rows(rows) => rows,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_span_brings_its_trace() {
        let rows = rows("span-create", json!({"id": "o", "traceId": "t", "name": "n"}));
        assert_eq!((&rows[0]["id"], &rows[1]["id"]), (&json!("t"), &json!("t-o")));
        assert_eq!(rows[1]["created"], "2026-01-01T00:00:00.000Z");
        assert!(rows.iter().all(|row| row["_is_merge"] == true), "{rows:?}");
    }

    #[test]
    fn a_repeated_event_without_an_id_is_the_same_row() {
        let sent = json!({"name": "n"});
        assert_eq!(rows("span-create", sent.clone()), rows("span-create", sent));
    }

    #[test]
    fn a_trace_has_its_user_and_tags() {
        let row = &rows("trace-create", json!({"id": "t", "userId": "u", "tags": ["a"], "public": true}))[0];
        assert_eq!((&row["metadata"]["user_id"], &row["tags"]), (&json!("u"), &json!(["a"])));
        assert_eq!((&row["metadata"]["langfuse"]["public"], &row["span_parents"]), (&json!(true), &Value::Null));
    }

    #[test]
    fn what_cannot_be_stored_says_why() {
        for (kind, body, why) in [
            ("span-update", json!({"traceId": "t"}), "`id` is missing"),
            ("span-update", json!({"id": "o"}), "`traceId` is missing"),
            ("dance", json!({}), "events of the type `dance`"),
            ("span-create", json!({"id": "a\n"}), "`id` has to have"),
        ] {
            let error = event(kind, body).expect_err(kind);
            assert!(error.message.starts_with(why) && error.status == 400, "{error:?}");
        }
        let batch = json!({"batch": [{"type": "x"}, 3, {"id": "a", "type": "b", "body": 3}]});
        let events = events_of(batch.as_object().expect("an object")).expect("a batch");
        assert!(events.iter().all(Result::is_err), "{events:?}");
        assert!(events_of(&Map::new()).is_err());
    }
}
