//! Pure parsing of the bodies of requests for rows.
//!
//! Unknown fields are ignored, because clients send many.

use assay_node_http::requests::body::{ROWS_MAX, no_object, parse_as, too_many_rows};
use assay_node_http::requests::error_texts::{kind_of, shortened};
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_objects::FetchRequest;
use assay_storage_model::command::{ROWS_PER_WRITE_MAX, TooLarge};
use assay_storage_model::event::{BodyOfList, ListUnder, SentItem};
use assay_storage_model::{ObjectKind, Xact};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use uuid::Uuid;

/// Kinds of objects in `POST /v1/insert`, in the order of their writes.
const CROSS_KINDS: [ObjectKind; 3] = [ObjectKind::Experiment, ObjectKind::Dataset, ObjectKind::ProjectLogs];

/// Upper bound of the objects in one `POST /v1/insert`, the same as in one `POST /logs3`.
pub const OBJECTS_MAX: usize = assay_node_objects::ingest::GROUPS_MAX;

/// Part of `POST /v1/insert` for one object.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossPart {
    pub kind: ObjectKind,
    /// Id as the caller wrote it, which is the key in the response.
    pub name: String,
    pub id: Uuid,
    pub events: Option<Vec<Value>>,
    pub feedback: Option<Vec<Value>>,
}

fn missing(name: &str) -> Refusal {
    Refusal::bad(format!("`{name}` is missing; it should be an array"))
}

fn no_array(path: &str, found: &Value) -> Refusal {
    Refusal::bad(format!("`{path}` is {}; it should be an array", kind_of(found)))
}

fn optional_array(body: &mut Map<String, Value>, name: &str, path: &str) -> Result<Option<Vec<Value>>, Refusal> {
    match body.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(no_array(path, &other)),
    }
}

/// Body of `POST /logs3`.
#[derive(Debug)]
pub enum Logs3 {
    Rows(Vec<SentItem>),
    /// Key of uploaded rows.
    Uploaded(String),
}

impl Default for Logs3 {
    fn default() -> Logs3 {
        Logs3::Rows(Vec::new())
    }
}

/// Returns the rows of `POST /logs3`, or the key of their upload.
pub fn logs3_rows(body: &[u8]) -> Result<Logs3, Refusal> {
    match parse_as(body, ListUnder::new("rows", ROWS_MAX))? {
        BodyOfList::Other(Value::Object(reference)) => {
            let text = |name: &str| reference.get(name).and_then(Value::as_str);
            match (text("type"), text("key")) {
                (Some("logs3_overflow"), Some(key)) => Ok(Logs3::Uploaded(key.to_owned())),
                (Some("logs3_overflow"), None) => Err(Refusal::bad("`rows.key` is missing; it should be a string")),
                _ => Err(Refusal::bad(
                    "`rows` is an object; it should be an array, or an object with the type `logs3_overflow` and the \
                     key of an upload",
                )),
            }
        }
        found => Ok(Logs3::Rows(required(found, "rows", too_many_rows)?)),
    }
}

/// Returns the rows of one object from the field `name`.
pub fn rows(body: &[u8], name: &str) -> Result<Vec<SentItem>, Refusal> {
    of_one_object(body, name)
}

/// Returns the feedback about rows of one object.
pub fn feedback_items(body: &[u8]) -> Result<Vec<Value>, Refusal> {
    of_one_object(body, "feedback")
}

fn of_one_object<T: DeserializeOwned>(body: &[u8], name: &str) -> Result<Vec<T>, Refusal> {
    required(parse_as(body, ListUnder::new(name, ROWS_PER_WRITE_MAX))?, name, too_many_of_one)
}

/// Returns the same refusal as the object for a write that is too large.
fn too_many_of_one(rows: usize) -> Refusal {
    Refusal::new(ErrorKind::TooLarge, TooLarge::Rows(rows).to_string())
}

fn required<T>(found: BodyOfList<T>, name: &str, too_many: fn(usize) -> Refusal) -> Result<Vec<T>, Refusal> {
    match found {
        BodyOfList::List(list) => Ok(list),
        BodyOfList::TooMany(items) => Err(too_many(items)),
        BodyOfList::Missing => Err(missing(name)),
        BodyOfList::Other(found) => Err(no_array(name, &found)),
        BodyOfList::NoObject(found) => Err(no_object(&found)),
    }
}

/// Returns the parts of `POST /v1/insert`.
pub fn cross_parts(body: &mut Map<String, Value>) -> Result<Vec<CrossPart>, Refusal> {
    let mut parts: Vec<CrossPart> = Vec::new();
    for kind in CROSS_KINDS {
        let objects = match body.remove(kind.name()) {
            None | Some(Value::Null) => continue,
            Some(Value::Object(objects)) => objects,
            Some(other) => {
                let found = kind_of(&other);
                return Err(Refusal::bad(format!("`{}` is {found}; it should be an object by id", kind.name())));
            }
        };
        for (name, part) in objects {
            let part = cross_part(kind, name, part)?;
            if parts.iter().any(|other| other.kind == kind && other.id == part.id) {
                return Err(Refusal::bad(format!("`{}.{}` is repeated", kind.name(), part.name)));
            }
            if parts.len() == OBJECTS_MAX {
                return Err(Refusal::bad(format!("a request writes to at most {OBJECTS_MAX} objects")));
            }
            parts.push(part);
        }
    }
    Ok(parts)
}

fn cross_part(kind: ObjectKind, name: String, part: Value) -> Result<CrossPart, Refusal> {
    let path = format!("{}.{}", kind.name(), shortened(&name));
    let Value::Object(mut part) = part else {
        let found = kind_of(&part);
        return Err(Refusal::bad(format!("`{path}` is {found}; it should be an object with `events` or `feedback`")));
    };
    let id = Uuid::parse_str(&name).map_err(|_| Refusal::bad(format!("`{path}`: the id is not a UUID")))?;
    let events = optional_array(&mut part, "events", &format!("{path}.events"))?;
    let feedback = optional_array(&mut part, "feedback", &format!("{path}.feedback"))?;
    let items = events.as_ref().map_or(0, Vec::len) + feedback.as_ref().map_or(0, Vec::len);
    if items > ROWS_PER_WRITE_MAX {
        return Err(too_many_of_one(items));
    }
    Ok(CrossPart { kind, name, id, events, feedback })
}

/// Reads the body of `POST .../fetch`.
pub fn fetch_body(body: &Map<String, Value>) -> Result<FetchRequest, Refusal> {
    let limit = match body.get("limit") {
        None | Some(Value::Null) => None,
        Some(value) => Some(value.as_u64().ok_or_else(|| not_a_limit(&value.to_string()))?),
    };
    let text = |name: &str| match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        Some(other) => Err(Refusal::bad(format!("`{name}` is {}; it should be a string", kind_of(other)))),
    };
    fetch_request(limit, text)
}

/// Reads the query of `GET .../fetch`. Empty values count as absent.
pub fn fetch_query(pairs: &[(String, String)]) -> Result<FetchRequest, Refusal> {
    let last = |name: &str| {
        let found = pairs.iter().rev().find(|(found, value)| found == name && !value.is_empty());
        found.map(|(_, value)| value.clone())
    };
    let limit = last("limit").map(|text| text.parse::<u64>().map_err(|_| not_a_limit(&text))).transpose()?;
    fetch_request(limit, |name| Ok(last(name)))
}

fn fetch_request(
    limit: Option<u64>,
    text: impl Fn(&str) -> Result<Option<String>, Refusal>,
) -> Result<FetchRequest, Refusal> {
    let xact = |name: &str| {
        let parse = |text: String| {
            Xact::parse(&text).map_err(|error| Refusal::new(ErrorKind::BadRequest, format!("{name}: {error}")))
        };
        text(name)?.map(parse).transpose()
    };
    Ok(FetchRequest {
        limit,
        cursor: text("cursor")?,
        version: xact("version")?,
        max_xact_id: xact("max_xact_id")?,
        max_root_span_id: text("max_root_span_id")?,
        stale: stale(text("staleness")?)?,
    })
}

fn not_a_limit(found: &str) -> Refusal {
    Refusal::bad(format!("`limit` is {}; it should be an integer of at least 0", shortened(found)))
}

/// Returns whether stale rows suffice. By default, a fetch reads the newest rows.
fn stale(staleness: Option<String>) -> Result<bool, Refusal> {
    match staleness.as_deref() {
        None | Some("") => Ok(false),
        Some("ok") => Ok(true),
        Some(_) => Err(Refusal::bad("`staleness` must be \"ok\"; leave it out to read the newest rows")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const A: &str = "00000000-0000-4000-8000-00000000000a";

    fn map(value: Value) -> Map<String, Value> {
        assay_node_http::requests::body::object(value).expect("an object")
    }

    #[track_caller]
    fn refused<T: std::fmt::Debug>(outcome: Result<T, Refusal>, message: &str) {
        assert_eq!(outcome.expect_err(message).message, message);
    }

    fn logs3(body: &str) -> Vec<SentItem> {
        match logs3_rows(body.as_bytes()) {
            Ok(Logs3::Rows(rows)) => rows,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn rows_come_as_an_array() {
        let read = |body: Value| feedback_items(body.to_string().as_bytes());
        assert_eq!(read(json!({"feedback": [1, 2]})).expect("an array"), [1, 2]);
        refused(read(json!({})), "`feedback` is missing; it should be an array");
        refused(read(json!({"feedback": null})), "`feedback` is missing; it should be an array");
        refused(read(json!({"feedback": {}})), "`feedback` is an object; it should be an array");
    }

    #[test]
    fn more_rows_than_are_taken_are_refused_before_they_are_held() {
        let list = |name: &str, items: usize| format!(r#"{{"{name}":[{}1]}}"#, "1,".repeat(items - 1));
        let said = "a write of 10001 rows: at most 10000 fit; send the rest in another request";
        let (most, more) = (ROWS_PER_WRITE_MAX, ROWS_PER_WRITE_MAX + 1);
        assert_eq!(rows(list("events", most).as_bytes(), "events").map(|rows| rows.len()).ok(), Some(most));
        refused(rows(list("events", more).as_bytes(), "events"), said);
        refused(feedback_items(list("feedback", more).as_bytes()), said);
        let part = json!({"events": vec![1; most], "feedback": [1]});
        refused(cross_parts(&mut map(json!({"dataset": {A: part}}))), said);
        assert_eq!(logs3(&list("rows", ROWS_MAX)).len(), ROWS_MAX);
        let refusal = logs3_rows(list("rows", ROWS_MAX + 1).as_bytes()).expect_err("too many");
        assert_eq!((refusal.kind, refusal.message.contains("50001 rows")), (ErrorKind::TooLarge, true));
    }

    #[test]
    fn rows_are_read_from_under_their_name_and_nothing_else_is() {
        let read = |text: &str| rows(text.as_bytes(), "events");
        let row = |value: Value| SentItem::from(value);
        assert_eq!(
            read(r#"{"x": [1], "events": [{"id": "a"}, 1]}"#).expect("rows"),
            [row(json!({"id": "a"})), row(json!(1))]
        );
        assert_eq!(read(r#"{"events": [1], "events": []}"#).expect("the last word").len(), 0);
        refused(read("[]"), "the body is an array; it should be a JSON object");
        refused(read("{}"), "`events` is missing; it should be an array");
        refused(read(r#"{"events": null}"#), "`events` is missing; it should be an array");
        refused(read(r#"{"events": {}}"#), "`events` is an object; it should be an array");
        for broken in [r#"{"events": []} x"#, r#"{"x": 1e400, "events": []}"#, r#"{"events": [{"input": "\ud800"}]}"#] {
            assert!(read(broken).is_err(), "{broken}");
        }
        let overflow = json!({"rows": {"type": "logs3_overflow", "key": "k"}, "api_version": 2});
        assert!(matches!(logs3_rows(overflow.to_string().as_bytes()), Ok(Logs3::Uploaded(key)) if key == "k"));
        for other in [json!({"type": "logs3_overflow"}), json!({"type": "other", "key": "k"}), json!({})] {
            assert!(logs3_rows(json!({"rows": other}).to_string().as_bytes()).is_err());
        }
        assert_eq!(logs3(r#"{"rows": [], "api_version": 2}"#).len(), 0);
    }

    #[test]
    fn parts_of_a_cross_insert_keep_the_names_that_were_sent() {
        let upper = A.to_uppercase();
        let body =
            json!({"dataset": {upper.clone(): {"events": [{}], "x": 1}}, "experiment": null, "query_source": "y"});
        let parts = cross_parts(&mut map(body)).expect("parts");
        let id = Uuid::parse_str(A).expect("a UUID");
        let expected =
            CrossPart { kind: ObjectKind::Dataset, name: upper, id, events: Some(vec![json!({})]), feedback: None };
        assert_eq!(parts, [expected]);
    }

    #[test]
    fn parts_that_cannot_be_meant_are_refused() {
        let refuse = |body: Value, message: &str| refused(cross_parts(&mut map(body)), message);
        refuse(json!({"dataset": []}), "`dataset` is an array; it should be an object by id");
        refuse(json!({"dataset": {"x": {}}}), "`dataset.x`: the id is not a UUID");
        refuse(
            json!({"dataset": {A: 1}}),
            &format!("`dataset.{A}` is a number; it should be an object with `events` or `feedback`"),
        );
        refuse(
            json!({"dataset": {A: {"events": 1}}}),
            &format!("`dataset.{A}.events` is a number; it should be an array"),
        );
        let upper = A.to_uppercase();
        refuse(json!({"dataset": {A: {}, upper.clone(): {}}}), &format!("`dataset.{upper}` is repeated"));
        let many: Map<String, Value> =
            (0..=OBJECTS_MAX as u128).map(|n| (Uuid::from_u128(n).to_string(), json!({}))).collect();
        refuse(json!({"dataset": many}), "a request writes to at most 256 objects");
    }

    #[test]
    fn a_fetch_reads_alike_from_body_and_query() {
        let body =
            json!({"limit": 0, "cursor": "c", "version": "1000192656880881099", "max_xact_id": null, "other": 1});
        let pairs = [("limit", "0"), ("cursor", "c"), ("version", "1000192656880881099"), ("max_xact_id", "")];
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let from_body = fetch_body(&map(body)).expect("a fetch");
        assert_eq!(fetch_query(&pairs).expect("a fetch"), from_body);
        assert_eq!((from_body.limit, from_body.version), (Some(0), Some(Xact(1_000_192_656_880_881_099))));
        assert_eq!(fetch_body(&Map::new()).expect("a fetch"), FetchRequest::default());
    }

    #[test]
    fn limits_and_versions_that_are_none_are_refused() {
        for limit in [json!(-1), json!(1.5), json!("3"), json!(true), json!(1e300)] {
            let refusal = fetch_body(&map(json!({"limit": limit}))).expect_err("no limit");
            assert!(refusal.message.ends_with("an integer of at least 0"), "{}", refusal.message);
        }
        for limit in ["-1", "1.5", "x", "99999999999999999999"] {
            assert!(fetch_query(&[("limit".into(), limit.into())]).is_err(), "{limit}");
        }
        assert!(fetch_body(&map(json!({"version": "yesterday"}))).is_err());
        refused(fetch_body(&map(json!({"version": 5}))), "`version` is a number; it should be a string");
    }
}
