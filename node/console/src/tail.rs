//! `/v1/project_logs/{id}/tail` and the same of experiments: rows as they arrive, as server-sent events.
//!
//! A reader that was cut off goes on behind the last transaction id that it saw. The caller is authenticated again for
//! every read, so that a stream ends soon after its credential.

use std::time::Duration;

use assay_node_http::requests::caller::Call;
use assay_node_http::requests::error_texts::shortened;
use assay_node_http::requests::wait::Wait;
use assay_node_http::responses::HandlerResult;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::response_body::{Part, Sending};
use assay_node_http::web::{Bytes, HttpRequest, HttpResponse, header};
use assay_node_query_http::{QueryOptions, rows_of};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::query_trees::{all_of, select_from};

/// Time between two reads.
const READ_EVERY: Duration = Duration::from_millis(500);
/// Silence after which a comment is sent, so that proxies keep the connection.
const COMMENT_AFTER: Duration = Duration::from_secs(15);
/// Upper bound of the streams of one node. Each reads twice a second.
const STREAMS_MAX: usize = 500;
/// Lifetime of one stream. Its reader continues with another one.
const STREAM_MAX: Duration = Duration::from_secs(600);
/// Rows of one event, unless one transaction has more.
const ROWS_MAX: usize = 500;
/// Upper bound of the rows of one transaction that are sent.
const TRANSACTION_ROWS_MAX: usize = 50_000;
/// Upper bound of the bytes of the rows of one event.
const ROWS_BYTES_MAX: usize = 16 << 20;
const COLUMNS: [&str; 14] = [
    "id",
    "span_id",
    "root_span_id",
    "is_root",
    "span_parents",
    "created",
    "_xact_id",
    "span_attributes",
    "metrics",
    "scores",
    "tags",
    "input",
    "output",
    "error",
];
/// Letters of contents of a row.
const PREVIEW_LETTERS: u64 = 160;

/// Places of streams on this node.
static STREAMS: Semaphore = Semaphore::const_new(STREAMS_MAX);

/// Kind of the object whose rows arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailOf {
    ProjectLogs,
    Experiment,
}

impl TailOf {
    fn source(self) -> &'static str {
        match self {
            TailOf::ProjectLogs => "project_logs",
            TailOf::Experiment => "experiment",
        }
    }
}

/// Position of a stream.
struct Tail {
    request: HttpRequest,
    of: TailOf,
    id: Uuid,
    filter: Option<String>,
    /// Last transaction id that was sent.
    after: u64,
    began: Instant,
    sent: Instant,
    /// Rows that were read when the stream was opened.
    first: Option<Vec<Value>>,
    is_over: bool,
    _place: SemaphorePermit<'static>,
}

/// Streams rows behind `after`, a transaction id; without it those that arrive from now on.
pub async fn tail(of: TailOf, call: Call) -> HandlerResult {
    let id = call.id()?;
    let asked = call.query()?;
    let value = |name: &str| asked.iter().rev().find(|(known, value)| known == name && !value.is_empty());
    let filter = value("filter").map(|(_, filter)| filter.clone());
    let after = match value("after") {
        Some((_, text)) => text.parse().map_err(|_| {
            Refusal::bad(format!("`after` is `{}`; it should be a transaction id, as in `_xact_id`", shortened(text)))
        })?,
        None => newest(&call, of, id).await?,
    };
    let place = STREAMS.try_acquire().map_err(|_| {
        let why = format!("{STREAMS_MAX} streams of rows are open on this node: close one, or ask another node");
        Refusal::new(ErrorKind::Busy, why)
    })?;
    let now = Instant::now();
    let request = call.request.clone();
    let mut tail =
        Tail { request, of, id, filter, after, began: now, sent: now, first: None, is_over: false, _place: place };
    // an error of the filter is the response, and not an event
    tail.first = Some(tail.read(&call).await?);
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CONTENT_TYPE, "text/event-stream"));
    response.insert_header((header::CACHE_CONTROL, "no-cache"));
    response.insert_header(("x-accel-buffering", "no"));
    let parts = stream::unfold(tail, async |mut tail| {
        let text = tail.next().await?;
        Some((Ok(Part { bytes: Bytes::from(text), reservation: None }), tail))
    });
    Ok(response.body(Sending::streamed(&call, parts.boxed_local())))
}

/// Returns the newest transaction id of an object; 0 if it has no row.
async fn newest(call: &Call, of: TailOf, id: Uuid) -> Result<u64, Refusal> {
    let query = format!("select: _xact_id | from: {}('{id}') spans | sort: _xact_id desc | limit: 1", of.source());
    let rows = rows_of(call, query, &QueryOptions::newest(ROWS_BYTES_MAX)).await?;
    Ok(rows.first().map_or(0, xact_of))
}

fn xact_of(row: &Value) -> u64 {
    match &row["_xact_id"] {
        Value::String(text) => text.parse().unwrap_or_default(),
        other => other.as_u64().unwrap_or_default(),
    }
}

fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

impl Tail {
    /// Returns the next events; none behind the end.
    async fn next(&mut self) -> Option<String> {
        if self.is_over {
            return None;
        }
        if let Some(first) = self.first.take() {
            self.sent = Instant::now();
            return Some(format!(
                "event: start\ndata: {}\n\n{}",
                json!({"after": self.after.to_string()}),
                self.said(first)
            ));
        }
        loop {
            sleep(READ_EVERY).await;
            let call = match self.authenticated().await {
                Ok(call) => call,
                Err(refusal) => return Some(self.end(&refusal)),
            };
            if call.edge.is_draining() || self.began.elapsed() > STREAM_MAX {
                self.is_over = true;
                return Some(event("end", &json!({"after": self.after.to_string()})));
            }
            match self.read(&call).await {
                Ok(rows) if !rows.is_empty() => return Some(self.said(rows)),
                Ok(_) => {}
                // another node or the next moment may have room
                Err(refusal) if matches!(refusal.kind, ErrorKind::Busy | ErrorKind::Unavailable) => {}
                Err(refusal) => return Some(self.end(&refusal)),
            }
            if self.sent.elapsed() > COMMENT_AFTER {
                self.sent = Instant::now();
                return Some(": still here\n\n".to_owned());
            }
        }
    }

    /// Authenticates the caller again, with the time of a new request.
    async fn authenticated(&self) -> Result<Call, Refusal> {
        let mut call = Call::of(self.request.clone()).await?;
        call.caller.wait = Wait::of_request(Instant::now(), self.request.path(), None);
        Ok(call)
    }

    /// Reads the next rows, the oldest first.
    async fn read(&self, call: &Call) -> Result<Vec<Value>, Refusal> {
        let mut rows = self.rows(call, &format!("_xact_id > '{}'", self.after), ROWS_MAX).await?;
        if rows.len() < ROWS_MAX {
            return Ok(rows);
        }
        let last = rows.last().map_or(self.after, xact_of);
        if rows.first().map(xact_of) == Some(last) {
            return self.rows(call, &format!("_xact_id = '{last}'"), TRANSACTION_ROWS_MAX).await;
        }
        // the last transaction may have more rows than were read: they come with the next read
        rows.retain(|row| xact_of(row) != last);
        Ok(rows)
    }

    async fn rows(&self, call: &Call, condition: &str, limit: usize) -> Result<Vec<Value>, Refusal> {
        let filter = self.filter.as_deref().into_iter().chain([condition]).collect::<Vec<_>>();
        let mut query = select_from(self.of.source(), &[self.id], "spans", &COLUMNS.map(|column| (column, column)));
        query["filter"] = all_of(&filter).unwrap_or_default();
        query["sort"] = json!([{"expr": {"op": "ident", "name": ["_xact_id"]}, "dir": "asc"}]);
        query["limit"] = limit.into();
        query["preview_length"] = PREVIEW_LETTERS.into();
        rows_of(call, query, &QueryOptions::newest(ROWS_BYTES_MAX)).await
    }

    /// Returns the event of rows, and goes on behind them.
    fn said(&mut self, rows: Vec<Value>) -> String {
        if rows.is_empty() {
            return String::new();
        }
        self.after = rows.last().map_or(self.after, xact_of);
        self.sent = Instant::now();
        event("rows", &json!({"after": self.after.to_string(), "rows": rows}))
    }

    fn end(&mut self, refusal: &Refusal) -> String {
        self.is_over = true;
        event("error", &json!({"status": refusal.kind.status().as_u16(), "message": refusal.message}))
    }
}
