//! Handlers for rows of objects: insert, fetch and feedback, and the writes to many objects.

pub mod bodies;
pub mod bulk;
pub mod restore;
pub mod reviews;

use std::fmt::Display;
use std::time::SystemTime;

use assay_node_auth::Permission;
use assay_node_functions::Admitted;
use assay_node_http::requests::body::{Body, RowsAt, object, parse};
use assay_node_http::requests::caller::{Call, Caller};
use assay_node_http::requests::idempotency_key::IdempotencyKey;
use assay_node_http::requests::limits::admit_writes;
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::response_body::Sending;
use assay_node_http::responses::{HandlerResult, json, json_builder};
use assay_node_http::web::{Bytes, BytesMut, Payload};
use assay_node_objects::ingest::Group;
use assay_node_objects::{FetchPage, FetchRequest, ObjectWrite, RowHome, WriteError, feedback, ingest};
use assay_node_query_http::masks::masks;
use assay_node_records::ObjectHome;
use assay_node_reviews::Blindness;
use assay_storage_model::event::{RowError, SentItem};
use assay_storage_model::{NotWritten, ObjectKind};
use futures::future::join;
use serde_json::{Map, Value, json};
use tracing::Span;
use uuid::Uuid;

use crate::files;
use crate::files::Attachments;

/// Header with the version of a page.
const VERSION: &str = "x-bt-version";

/// Kinds of `_async_scoring_control` that need an executor, also in logs without rules.
const SCORING_DEMANDS: [&str; 3] = ["trigger_functions", "state_force_reselect", "state_enabled_force_rescore"];

/// Rows with the result of the search for attachments.
pub type SearchedRows = (Vec<SentItem>, Attachments);

pub async fn insert(kind: ObjectKind, call: Call, payload: Payload) -> HandlerResult {
    let id = call.id()?;
    let body = call.body_of_rows(payload).await?;
    let repeat = repeat_of(&call, &body)?;
    let mut parsed = body.parsed(RowsAt::List, |bytes| Ok(searched(bodies::rows(bytes, "events")?))).await?;
    let write = write_to(&call, kind, id, std::mem::take(&mut parsed.value), repeat.as_ref()).await?;
    let row_ids = send(&call, vec![write]).await?.pop().unwrap_or_default();
    json(&json!({ "row_ids": row_ids }))
}

pub async fn feedback(kind: ObjectKind, call: Call, payload: Payload) -> HandlerResult {
    let id = call.id()?;
    let body = call.body_of_rows(payload).await?;
    let repeat = repeat_of(&call, &body)?;
    let now = now_micros();
    // An item makes several rows, so large bodies are converted during parsing, outside of this worker.
    let made = move |bytes: &[u8]| Ok(searched(sent(feedback::rows(bodies::feedback_items(bytes)?, now)?)));
    let mut parsed = body.parsed(RowsAt::List, made).await?;
    let write = write_to(&call, kind, id, std::mem::take(&mut parsed.value), repeat.as_ref()).await?;
    send(&call, vec![write]).await?;
    json(&json!({"status": "success"}))
}

pub async fn fetch_by_query(kind: ObjectKind, call: Call) -> HandlerResult {
    let request = bodies::fetch_query(&call.query()?)?;
    fetch(kind, call, request).await
}

/// Returns a page of rows. A request without a body gets the first page.
pub async fn fetch_by_body(kind: ObjectKind, call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?;
    let fields = if body.is_blank() { Map::new() } else { body.object().await? };
    let request = bodies::fetch_body(&fields)?;
    fetch(kind, call, request).await
}

async fn fetch(kind: ObjectKind, call: Call, request: FetchRequest) -> HandlerResult {
    let home = call.edge.records.object(&call.principal, kind, call.id()?, Permission::Read).await?;
    record_home(&home);
    let home = RowHome { object: home.key, org: home.org, project_id: home.project_id };
    let (objects, any_age) = ([home.object], request.stale);
    let still = async {
        if any_age { Ok(()) } else { call.edge.records.still(&call.principal, &objects, Permission::Read).await }
    };
    let (page, still) = join(call.objects().fetch(&home, request), still).await;
    still?;
    let mut page = page?;
    let masks = masks(&call.edge.records, &call.principal, [(home.org, home.project_id)])?;
    if let Some(mask) = masks.get(&home.project_id) {
        page.events = masked(mask, &page.events)?;
    }
    let mut answer = json_builder();
    answer.insert_header((VERSION, page.version.to_string()));
    let held = call.applicant().reserve(&call.edge.budgets.answers, page_bytes(&page) as u64).await?;
    Ok(answer.body(Sending::new(&call, page_body(&page)?, held)))
}

/// Masks the events of a page, and omits hidden events.
fn masked(mask: &Blindness, events: &[Bytes]) -> Result<Vec<Bytes>, Refusal> {
    let mut shown = Vec::with_capacity(events.len());
    for event in events {
        let row: Map<String, Value> = serde_json::from_slice(event).map_err(Refusal::internal)?;
        if let Some(row) = mask.masked(row) {
            shown.push(serde_json::to_vec(&row).map_err(Refusal::internal)?.into());
        }
    }
    Ok(shown)
}

/// Returns the bytes of the events of a page, including commas.
fn page_bytes(page: &FetchPage) -> usize {
    page.events.iter().map(|event| event.len() + 1).sum()
}

/// Returns the response body of a page. The events are already JSON.
fn page_body(page: &FetchPage) -> Result<Bytes, Refusal> {
    const AROUND: &[&[u8]] = &[b"{\"events\":[", b"],\"cursor\":", b"}"];
    let cursor = serde_json::to_vec(&page.cursor).map_err(Refusal::internal)?;
    let around: usize = AROUND.iter().map(|part| part.len()).sum();
    let mut body = BytesMut::with_capacity(page_bytes(page) + around + cursor.len());
    body.extend_from_slice(AROUND[0]);
    for (place, event) in page.events.iter().enumerate() {
        if place > 0 {
            body.extend_from_slice(b",");
        }
        body.extend_from_slice(event);
    }
    body.extend_from_slice(AROUND[1]);
    body.extend_from_slice(&cursor);
    body.extend_from_slice(AROUND[2]);
    Ok(body.freeze())
}

/// Handles `POST /v1/insert`: makes one write for each object, with its events before its feedback.
pub async fn cross_insert(call: Call, payload: Payload) -> HandlerResult {
    let body = call.body_of_rows(payload).await?;
    let repeat = repeat_of(&call, &body)?;
    let now = now_micros();
    let mut parsed = body.parsed(RowsAt::ListsByObject, move |bytes| cross_rows(bytes, now)).await?;
    let (mut writes, mut answers) = (Vec::new(), Vec::new());
    for part in std::mem::take(&mut parsed.value) {
        answers.push((part.kind, part.name, part.events));
        writes.push(write_to(&call, part.kind, part.id, part.rows, repeat.as_ref()).await?);
    }
    let sent = send(&call, writes).await.map_err(|error| match &error {
        WriteError::Row { write, error } => {
            let at = answers.get(*write).map(|(kind, name, _)| format!("`{}.{name}`: ", kind.name()));
            Refusal::bad(format!("{}{error}", at.unwrap_or_default()))
        }
        _ => error.into(),
    })?;
    let mut answer = Map::new();
    for ((kind, name, events), mut row_ids) in answers.into_iter().zip(sent) {
        row_ids.truncate(events);
        let by_id = answer.entry(kind.name()).or_insert_with(|| Value::Object(Map::new()));
        by_id[name] = json!({ "row_ids": row_ids });
    }
    json(&answer)
}

/// Part of a cross insert for one object.
struct CrossRows {
    kind: ObjectKind,
    name: String,
    id: Uuid,
    /// Number of rows that are events; the others are feedback.
    events: usize,
    rows: SearchedRows,
}

fn cross_rows(body: &[u8], now_micros: i64) -> Result<Vec<CrossRows>, Refusal> {
    let parts = bodies::cross_parts(&mut object(parse(body)?)?)?;
    let each = parts.into_iter().map(|part| {
        let mut rows = part.events.unwrap_or_default();
        let events = rows.len();
        rows.extend(feedback::rows(part.feedback.unwrap_or_default(), now_micros)?);
        Ok(CrossRows { kind: part.kind, name: part.name, id: part.id, events, rows: searched(sent(rows)) })
    });
    each.collect()
}

fn searched(rows: Vec<SentItem>) -> SearchedRows {
    let attachments = Attachments::in_rows(&rows);
    (rows, attachments)
}

fn searched_logs3(body: &[u8]) -> Result<(bodies::Logs3, Attachments), Refusal> {
    let found = bodies::logs3_rows(body)?;
    let attachments = match &found {
        bodies::Logs3::Rows(rows) => Attachments::in_rows(rows),
        bodies::Logs3::Uploaded(_) => Attachments::Unknown,
    };
    Ok((found, attachments))
}

fn sent(rows: Vec<Value>) -> Vec<SentItem> {
    rows.into_iter().map(SentItem::from).collect()
}

/// Handles `POST /logs3`: writes rows that name their objects. The ids in the response have the order of the rows.
pub async fn logs3(call: Call, payload: Payload) -> HandlerResult {
    let body = call.body_of_rows(payload).await?;
    let mut repeat = repeat_of(&call, &body)?;
    let mut parsed = body.parsed(RowsAt::List, searched_logs3).await?;
    if let (bodies::Logs3::Uploaded(key), _) = &mut parsed.value {
        let key = std::mem::take(key);
        // A request that waits for a large reservation must not hold another one.
        drop(parsed);
        // A client without a response tries again with the same upload.
        repeat = repeat.or_else(|| Some(IdempotencyKey::of_upload(&key)));
        let body = files::overflowed(&call, &key).await?;
        parsed = body.parsed(RowsAt::List, searched_logs3).await?;
    }
    let (bodies::Logs3::Rows(rows), attachments) = std::mem::take(&mut parsed.value) else {
        return Err(Refusal::bad("the upload refers to another upload; it must contain the rows"));
    };
    let mut row_ids = vec![String::new(); rows.len()];
    let (mut writes, mut places): (Vec<_>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
    let mut admitted = Vec::new();
    for mut group in ingest::group(rows)? {
        if group.kind == ObjectKind::ProjectPrompts {
            admitted.push(admit(&call, &mut group).await?);
        }
        writes.push(write_to(&call, group.kind, group.id, (group.rows, attachments), repeat.as_ref()).await?);
        places.push(group.indexes);
    }
    let sent = send(&call, writes).await.map_err(|error| match error {
        WriteError::Row { write, error } => Refusal::from(at_row(&places, write, error)),
        WriteError::Forbidden { write, error } => {
            WriteError::Forbidden { write, error: at_row(&places, write, error) }.into()
        }
        other => other.into(),
    })?;
    for (places, ids) in places.into_iter().zip(sent) {
        for (place, row_id) in places.into_iter().zip(ids) {
            row_ids[place] = row_id;
        }
    }
    for admitted in admitted {
        call.edge.functions.settle(&call.principal, admitted).await?;
    }
    json(&json!({ "row_ids": row_ids }))
}

/// Returns the error of a row with its place in the request.
fn at_row(places: &[Vec<usize>], write: usize, mut error: RowError) -> RowError {
    let place = places.get(write).and_then(|places| places.get(error.row));
    error.row = place.copied().unwrap_or(error.row);
    error
}

/// Reserves the slugs of prompts and functions before their rows are written.
async fn admit(call: &Call, group: &mut Group) -> Result<Admitted, Refusal> {
    let home = call.edge.records.object(&call.principal, group.kind, group.id, Permission::Update).await?;
    Ok(call.edge.functions.admit(&home, group).await?)
}

fn repeat_of(call: &Call, body: &Body) -> Result<Option<IdempotencyKey>, Refusal> {
    IdempotencyKey::of(call.request.headers(), call.request.path(), &body.bytes)
}

/// Checks the caller's permission and returns the write.
pub async fn write_to(
    call: &Caller,
    kind: ObjectKind,
    id: Uuid,
    (rows, attachments): SearchedRows,
    repeat: Option<&IdempotencyKey>,
) -> Result<ObjectWrite, Refusal> {
    let home = call.edge.records.object(&call.principal, kind, id, Permission::Update).await?;
    record_home(&home);
    let request = repeat.map(|repeat| repeat.at(&call.principal, &home.key));
    let write = ObjectWrite { object: home.key, rows, request };
    match attachments {
        Attachments::None => Ok(write),
        Attachments::Unknown => files::refer(call, write).await,
    }
}

/// Sends the writes that have rows, and returns the row ids of each write.
pub async fn send(call: &Caller, writes: Vec<ObjectWrite>) -> Result<Vec<Vec<String>>, WriteError> {
    let (mut row_ids, mut sent, mut places) = (vec![Vec::new(); writes.len()], Vec::new(), Vec::new());
    for (place, write) in writes.into_iter().enumerate().filter(|(_, write)| !write.rows.is_empty()) {
        sent.push(write);
        places.push(place);
    }
    if sent.is_empty() {
        return Ok(row_ids);
    }
    admit_writes(&call.edge.quotas, &call.principal, &sent)?;
    for write in sent.iter().filter(|write| demands_scoring(write)) {
        let noted = call.edge.records.note_scoring_demand(write.object).await;
        noted.map_err(|why| WriteError::from(NotWritten::Failed(why.to_string())))?;
    }
    let objects: Vec<_> = sent.iter().map(|write| write.object).collect();
    let still = call.edge.records.still(&call.principal, &objects, Permission::Update);
    let (written, still) = join(call.objects().write(sent, call.patience()), still).await;
    let written = written.map_err(|error| match error {
        WriteError::Row { write, error } => WriteError::Row { write: places[write], error },
        WriteError::Forbidden { write, error } => WriteError::Forbidden { write: places[write], error },
        other => other,
    })?;
    // The object may be gone after the write, so the outcome is unknown.
    still.map_err(|why| WriteError::Unknown { why: why.to_string(), written: objects })?;
    for (place, written) in places.into_iter().zip(written) {
        record("xact", written.xact);
        row_ids[place] = written.row_ids;
    }
    Ok(row_ids)
}

/// Returns whether rows of a project's log demand that functions run on them.
fn demands_scoring(write: &ObjectWrite) -> bool {
    let demands = |row: &SentItem| match row {
        SentItem::Row(row) => row.get("_async_scoring_control").is_some_and(|control| {
            let kind = control.get("kind").and_then(Value::as_str).unwrap_or_default();
            SCORING_DEMANDS.contains(&kind)
        }),
        SentItem::Other(_) => false,
    };
    write.object.kind == ObjectKind::ProjectLogs && write.rows.iter().any(demands)
}

/// Records the object and shard in the tracing span of the request. The last of several objects remains.
fn record_home(home: &ObjectHome) {
    record("object", home.key);
    record("shard", home.shard);
}

/// Records a field in the tracing span of the request.
fn record(name: &'static str, value: impl Display) {
    Span::current().record(name, tracing::field::display(value));
}

pub fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
