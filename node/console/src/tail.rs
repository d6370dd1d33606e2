//! Handler of `/v1/project_logs/{id}/tail` and of its counterpart for experiments, which stream new rows as events.
//!
//! A disconnected reader resumes after the last transaction id that it received. Every read authenticates the caller
//! again, so a stream ends soon after its credential.

use std::collections::BTreeMap;
use std::time::Duration;

use assay_node_http::requests::caller::Call;
use assay_node_http::requests::error_texts::shortened;
use assay_node_http::requests::wait::Wait;
use assay_node_http::responses::HandlerResult;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::response_body::{Part, Sending};
use assay_node_http::server::edge::Edge;
use assay_node_http::web::{Bytes, Data, HttpRequest, HttpResponse, header};
use assay_node_query_http::{QueryOptions, rows_of};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::query_trees::{all_of, select_from};

/// Interval between two reads.
const READ_EVERY: Duration = Duration::from_millis(500);
/// Idle time after which a comment is sent, so that proxies keep the connection open.
const COMMENT_AFTER: Duration = Duration::from_secs(15);
/// Upper bound of the number of streams on one node, each of which reads twice a second.
const STREAMS_MAX: usize = 500;
/// Upper bound of the number of streams of one user on one node, whatever credentials open them.
const STREAMS_OF_USER_MAX: usize = 50;
/// Maximum lifetime of a stream, after which its reader opens another one.
const STREAM_MAX: Duration = Duration::from_secs(600);
/// Upper bound of the number of rows in one event, unless a single transaction has more.
const ROWS_MAX: usize = 500;
/// Lower bound of the number of rows in one read. A read whose rows are too large is repeated with fewer rows.
const ROWS_MIN: usize = 5;
/// Upper bound of the number of rows that are sent of one transaction.
const TRANSACTION_ROWS_MAX: usize = 50_000;
/// Upper bound of the size of the rows in one event, in bytes.
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
/// Number of characters to which contents of a row are shortened.
const PREVIEW_LETTERS: u64 = 160;

/// Streams on this node.
static STREAMS: OpenStreams = OpenStreams(Mutex::new(BTreeMap::new()));

/// Number of open streams by user.
#[derive(Debug)]
struct OpenStreams(Mutex<BTreeMap<Uuid, usize>>);

/// Place of one stream, which is free again after a drop.
struct StreamPlace {
    streams: &'static OpenStreams,
    user: Uuid,
}

impl OpenStreams {
    fn take(&'static self, user: Uuid) -> Result<StreamPlace, Refusal> {
        let mut open = self.0.lock();
        if open.get(&user).is_some_and(|streams| *streams >= STREAMS_OF_USER_MAX) {
            let why = format!(
                "this user has {STREAMS_OF_USER_MAX} open streams of rows on this node, which is the maximum: close one"
            );
            return Err(Refusal::new(ErrorKind::Busy, why));
        }
        if open.values().sum::<usize>() >= STREAMS_MAX {
            let why = format!("{STREAMS_MAX} streams of rows are open on this node: close one, or ask another node");
            return Err(Refusal::new(ErrorKind::Busy, why));
        }
        *open.entry(user).or_default() += 1;
        Ok(StreamPlace { streams: self, user })
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut open = self.streams.0.lock();
        if let Some(streams) = open.get_mut(&self.user) {
            *streams -= 1;
            if *streams == 0 {
                open.remove(&self.user);
            }
        }
    }
}

/// Kind of the object whose rows are streamed.
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

/// State of a stream.
struct Tail {
    edge: Data<Edge>,
    request: HttpRequest,
    of: TailOf,
    id: Uuid,
    filter: Option<String>,
    /// Transaction id of the last sent row.
    after: u64,
    began: Instant,
    sent: Instant,
    /// Rows that were read before the response started.
    first: Option<Vec<Value>>,
    is_over: bool,
    _place: StreamPlace,
}

/// Streams the rows of an object.
///
/// The stream begins after the transaction id `after`. Without it, the stream contains only future rows.
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
    let place = STREAMS.take(call.principal.user)?;
    let now = Instant::now();
    let request = call.request.clone();
    let mut tail = Tail {
        edge: call.edge.clone(),
        request,
        of,
        id,
        filter,
        after,
        began: now,
        sent: now,
        first: None,
        is_over: false,
        _place: place,
    };
    // The first read precedes the response, so an invalid filter gets an error status.
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

/// Returns the newest transaction id of an object, or 0 if the object has no rows.
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

/// Returns whether a later read may succeed, because the caller or the node is only busy.
fn is_passing(refusal: &Refusal) -> bool {
    matches!(refusal.kind, ErrorKind::Busy | ErrorKind::Unavailable)
}

fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

impl Tail {
    /// Returns the next events, or `None` after the end of the stream.
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
            if self.edge.is_draining() || self.began.elapsed() > STREAM_MAX {
                self.is_over = true;
                return Some(event("end", &json!({"after": self.after.to_string()})));
            }
            let rows = match self.authenticated().await {
                Ok(call) => self.read(&call).await,
                Err(refusal) => Err(refusal),
            };
            match rows {
                Ok(rows) if !rows.is_empty() => return Some(self.said(rows)),
                Ok(_) => {}
                Err(refusal) if is_passing(&refusal) => {}
                Err(refusal) => return Some(self.end(&refusal)),
            }
            if self.sent.elapsed() > COMMENT_AFTER {
                self.sent = Instant::now();
                return Some(": still here\n\n".to_owned());
            }
        }
    }

    /// Authenticates the caller again, with the time limit of a new request.
    async fn authenticated(&self) -> Result<Call, Refusal> {
        let mut call = Call::of(self.request.clone()).await?;
        call.caller.wait = Wait::of_request(Instant::now(), self.request.path(), None);
        Ok(call)
    }

    /// Reads the next rows, oldest first.
    async fn read(&self, call: &Call) -> Result<Vec<Value>, Refusal> {
        let mut limit = ROWS_MAX;
        let mut rows = loop {
            match self.rows(call, &format!("_xact_id > '{}'", self.after), limit).await {
                Err(refusal) if refusal.kind == ErrorKind::TooLarge && limit > ROWS_MIN => limit /= 10,
                rows => break rows?,
            }
        };
        if rows.len() < limit {
            return Ok(rows);
        }
        let last = rows.last().map_or(self.after, xact_of);
        if rows.first().map(xact_of) == Some(last) {
            return self.rows(call, &format!("_xact_id = '{last}'"), TRANSACTION_ROWS_MAX).await;
        }
        // The last transaction may be incomplete, so the next read returns it as a whole.
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

    /// Returns the event for the rows, and moves the position of the stream behind them.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_takes_a_share_of_the_streams_and_all_users_together_no_more_than_there_are() {
        static STREAMS: OpenStreams = OpenStreams(Mutex::new(BTreeMap::new()));
        let take = |user: usize| STREAMS.take(Uuid::from_u128(user as u128));
        let refused = |user: usize| {
            let refusal = take(user).map(drop).expect_err("full");
            assert_eq!(refusal.kind, ErrorKind::Busy);
            refusal.message
        };
        let mut own: Vec<_> = (0..STREAMS_OF_USER_MAX).map(|_| take(0).expect("a place")).collect();
        assert!(refused(0).contains("this user has 50 open streams"));
        let others =
            (STREAMS_OF_USER_MAX..STREAMS_MAX).map(|place| take(place / STREAMS_OF_USER_MAX).expect("a place"));
        let others: Vec<_> = others.collect();
        assert!(refused(99).contains("500 streams of rows"));
        own.pop();
        drop(take(99).expect("a place is free again"));
        own.push(take(0).expect("a place is free again"));
        drop((own, others));
        assert!(STREAMS.0.lock().is_empty());
    }
}
