//! Handler of `POST /btql`, which runs a query over rows and responds in the requested format.

use assay_node_http::requests::admission::Applicant;
use assay_node_http::requests::caller::{Call, Caller};
use assay_node_http::responses::HandlerResult;
use assay_node_http::responses::compression::{PACKED_BYTES_MIN, Packing};
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::response_body::{Part, Sending};
use assay_node_http::server::edge::Edge;
use assay_node_http::web::{Bytes, Data, HeaderMap, HttpResponse, HttpResponseBuilder, Payload, header};
use assay_node_limits::{Budget, Holder, Reservation};
use assay_node_query::render::{
    Envelope, Format, RenderError, RenderedEnd, ResponseMemory, StreamedResponse, WholeResponse, page_cursor,
    page_position, part_bytes,
};
use assay_node_query::{Position, QueryAnswer, QueryKind, Question, Table, Who, columns_of};
use assay_node_records::Records;
use assay_node_secrets::SigningSecrets;
use futures::StreamExt;
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::body::{QueryRequest, query_request};
use crate::sources::sources;

const CURSOR: &str = "x-bt-cursor";
const FRESHNESS: &str = "x-bt-freshness-state";
const DURATION: &str = "x-bt-api-duration-ms";
const PLAN: &str = "x-bt-query-plan";
const PLAN_BYTES_MAX: usize = 8 << 10;
/// Upper bound of the bytes of rows that the request's thread parses, since it also serves other requests.
const PARSED_HERE_BYTES_MAX: usize = 1 << 20;
/// Derivation context of the key that signs cursors.
const CURSOR_CONTEXT: &str = "assay 2026-11 cursors of queries";

/// Handles `POST /btql`: runs a query and returns its rows.
pub async fn btql(call: Call, payload: Payload) -> HandlerResult {
    let began = Instant::now();
    let body = call.small_body(payload).await?.object().await?;
    let asked = query_request(body, call.edge.queries.now())?;
    answer(&ResponseTo { call: &call, began, attachment: None }, asked).await
}

/// Inputs for the headers of a response.
pub(crate) struct ResponseTo<'c> {
    pub call: &'c Call,
    pub began: Instant,
    /// `Content-Disposition` header of a response that the browser saves as a file.
    pub attachment: Option<String>,
}

/// Runs a query and returns the response with its rows.
pub(crate) async fn answer(to: &ResponseTo<'_>, asked: QueryRequest) -> HandlerResult {
    let call = to.call;
    let bounded = asked.question.clone().read()?;
    let sources = sources(&call.edge.identity, &call.principal, &bounded).await?;
    let homes = &sources.homes;
    let (is_endless, is_short) = (bounded.is_endless(), bounded.is_by_key() && homes.len() == 1);
    let secrets = secrets(&call.edge.records)?;
    let after = bounded.cursor().map(|text| position(text, is_short, &secrets)).transpose()?;
    let plan = asked.include_plan.then(|| call.edge.queries.plan(&bounded, homes));
    let notes = bounded.notes().to_vec();
    let columns = bounded.columns();
    let masks = sources.masks(&call.edge.records, &call.principal)?;
    let mut rows = call.queries().ask(call.who(), bounded, homes, after, asked.seconds).masked(homes, &masks);
    // A streamed response reserves its memory before it reads any rows. A request that waits for the reservation then
    // holds nothing else.
    let reservation = match is_endless {
        true => {
            Some(call.applicant().reserve(&call.edge.budgets.answers, part_bytes(&call.edge.budgets.answers)).await?)
        }
        false => None,
    };
    let first = rows.next().await?.unwrap_or_default();
    sources.still(&call.edge.records, &call.principal).await?;
    let columns = columns_of(columns, &first);
    let envelope = Envelope { format: asked.format, columns, notes, plan, realtime: asked.realtime };
    match reservation {
        Some(reservation) => streamed(to, envelope, rows, (first, reservation)),
        None => {
            let cursor = |end: &Position| page_cursor(end, is_short, &secrets.sign);
            whole(to, envelope, rows, first, cursor).await
        }
    }
}

/// Rendered response without its end, and the reservation of its memory.
struct RenderedRows {
    response: WholeResponse,
    body: Vec<u8>,
    reservation: Reservation,
}

/// Renders all rows of a response, up to `bytes_max` bytes.
async fn rendered(
    caller: &Caller,
    envelope: Envelope,
    (rows, first): (&mut QueryAnswer, Table),
    bytes_max: usize,
) -> Result<RenderedRows, Refusal> {
    let mut response = WholeResponse::new(envelope, rows.executor())?;
    let mut body = response.head();
    let (applicant, budget) = (caller.applicant(), &caller.edge.budgets.answers);
    let mut reservation = applicant.reserve(budget, 0).await?;
    let mut table = Some(first);
    while let Some(next) = table {
        let more;
        (response, more) = response.table(next).await?;
        applicant.grow(budget, &mut reservation, more.len() as u64).await?;
        body.extend_from_slice(&more);
        if body.len() > bytes_max {
            return Err(Refusal::new(ErrorKind::TooLarge, format!("the rows have more than {bytes_max} bytes")));
        }
        table = rows.next().await?;
    }
    Ok(RenderedRows { response, body, reservation })
}

/// Sends a response as one body.
async fn whole(
    to: &ResponseTo<'_>,
    envelope: Envelope,
    mut rows: QueryAnswer,
    first: Table,
    cursor: impl Fn(&Position) -> String,
) -> HandlerResult {
    let RenderedRows { response, mut body, reservation } =
        rendered(&to.call.caller, envelope, (&mut rows, first), usize::MAX).await?;
    let cursor = rows.end().map(|end| cursor(&end));
    let end: RenderedEnd = response.end(rows.version(), cursor.as_deref()).await?;
    body.extend_from_slice(&end.bytes);
    let mut answer = builder(to, &end.envelope, cursor.as_deref());
    let packing = packing(to.call, end.envelope.format);
    if let Some(name) = packing.name().filter(|_| body.len() >= PACKED_BYTES_MIN) {
        answer.insert_header((header::CONTENT_ENCODING, name));
        body = end.compress(packing, body).await?;
    }
    Ok(answer.body(Sending::new(to.call, Bytes::from(body), reservation)))
}

/// Options of a query that the server runs itself.
#[derive(Clone, Debug)]
pub struct QueryOptions {
    /// Upper bound of the bytes of all rows.
    pub bytes_max: usize,
    /// Version at which the rows are read, or `None` for the newest version.
    pub version: Option<String>,
    /// Whether the query ignores the masks of blind projects, because the server itself needs all data.
    pub unmasked: bool,
    /// Cursor of the previous page of the same query.
    pub cursor: Option<String>,
    /// Upper bound of the rows in addition to the limit of the query.
    pub limit_max: Option<u64>,
    /// Preview length of a query that has none.
    pub preview_default: Option<u32>,
}

impl QueryOptions {
    /// Returns options for the newest rows, with at most `bytes_max` bytes.
    pub fn newest(bytes_max: usize) -> QueryOptions {
        QueryOptions { bytes_max, version: None, unmasked: false, cursor: None, limit_max: None, preview_default: None }
    }
}

/// Page of the rows of a query.
#[derive(Clone, Debug)]
pub struct RowsPage {
    pub rows: Vec<Value>,
    /// Cursor of the next page, or `None` for the last page and for a result without pages.
    pub cursor: Option<String>,
    /// Version at which the page was read.
    pub version: String,
    /// Warnings about the query.
    pub warnings: Vec<String>,
}

/// Returns the rows of a query that the server runs on the caller's behalf.
///
/// `query` is a text or a tree.
pub async fn rows_of(caller: &Caller, query: impl Into<Value>, options: &QueryOptions) -> Result<Vec<Value>, Refusal> {
    Ok(page_of(caller, query.into(), options, true).await?.rows)
}

/// Returns all rows of a query up to its limit, with its version and its warnings.
///
/// `query` is a text or a tree.
pub async fn whole_page(caller: &Caller, query: impl Into<Value>, options: &QueryOptions) -> Result<RowsPage, Refusal> {
    page_of(caller, query.into(), options, true).await
}

/// Returns one page of the rows of a query that the server runs on the caller's behalf.
///
/// `query` is a text or a tree.
pub async fn rows_page(caller: &Caller, query: impl Into<Value>, options: &QueryOptions) -> Result<RowsPage, Refusal> {
    page_of(caller, query.into(), options, false).await
}

async fn page_of(caller: &Caller, query: Value, options: &QueryOptions, whole: bool) -> Result<RowsPage, Refusal> {
    let version = options.version.clone().map(|version| ("version".to_owned(), version.into()));
    let cursor = options.cursor.clone().map(|cursor| ("cursor".to_owned(), cursor.into()));
    let body: Map<String, Value> = [("query".to_owned(), query)].into_iter().chain(version).chain(cursor).collect();
    let asked = query_request(body, caller.edge.queries.now())?;
    let QueryOptions { limit_max, preview_default, .. } = *options;
    let bounded = Question { whole, limit_max, preview_default, ..asked.question }.read()?;
    let warnings = bounded.notes().iter().map(|note| note.message.clone()).collect();
    let sources = sources(&caller.edge.identity, &caller.principal, &bounded).await?;
    let is_short = bounded.is_by_key() && sources.homes.len() == 1;
    let secrets = secrets(&caller.edge.records)?;
    let after = bounded.cursor().map(|text| position(text, is_short, &secrets)).transpose()?;
    let columns = bounded.columns();
    let who = Who { kind: QueryKind::Internal, ..caller.who() };
    let mut rows = caller.queries().ask(who, bounded, &sources.homes, after, None);
    if !options.unmasked {
        rows = rows.masked(&sources.homes, &sources.masks(&caller.edge.records, &caller.principal)?);
    }
    let first = rows.next().await?.unwrap_or_default();
    sources.still(&caller.edge.records, &caller.principal).await?;
    let columns = columns_of(columns, &first);
    let envelope = Envelope { format: Format::Json, columns, notes: Vec::new(), plan: None, realtime: true };
    // The reservation is held until the rows are parsed.
    let RenderedRows { response, mut body, reservation: _reservation } =
        rendered(caller, envelope, (&mut rows, first), options.bytes_max).await?;
    body.extend_from_slice(&response.end(rows.version(), None).await?.bytes);
    let (cursor, version) =
        (rows.end().map(|end| page_cursor(&end, is_short, &secrets.sign)), rows.version().to_string());
    let mut answer: Value = match body.len() > PARSED_HERE_BYTES_MAX {
        true => {
            let parsed = tokio::task::spawn_blocking(move || serde_json::from_slice(&body)).await;
            parsed.map_err(Refusal::internal)?.map_err(Refusal::internal)?
        }
        false => serde_json::from_slice(&body).map_err(Refusal::internal)?,
    };
    match answer["data"].take() {
        Value::Array(rows) => Ok(RowsPage { rows, cursor, version, warnings }),
        _ => Err(Refusal::internal("the answer to a query has no rows")),
    }
}

/// Sends a response part by part.
///
/// A part is rendered only after the client has read half of the previous part.
fn streamed(to: &ResponseTo<'_>, envelope: Envelope, rows: QueryAnswer, first: (Table, Reservation)) -> HandlerResult {
    let call = to.call;
    let mut answer = builder(to, &envelope, None);
    let packing = packing(call, envelope.format);
    if let Some(name) = packing.name() {
        answer.insert_header((header::CONTENT_ENCODING, name));
    }
    let memory = AnswersBudget { edge: call.edge.clone(), applicant: call.applicant() };
    let parts = StreamedResponse::new(envelope, packing, memory, rows, first)?.parts();
    let sent = parts.map(|part| match part {
        Ok(part) => Ok(Part { bytes: part.bytes, reservation: Some(part.reservation) }),
        Err(why) => Err(std::io::Error::other(Refusal::from(why).message)),
    });
    Ok(answer.body(Sending::streamed(call, sent.boxed_local())))
}

/// Returns the compression of a response. A Parquet file is already compressed.
fn packing(call: &Call, format: Format) -> Packing {
    match format {
        Format::Parquet => Packing::Plain,
        _ => Packing::of(call.request.headers()),
    }
}

fn builder(to: &ResponseTo<'_>, envelope: &Envelope, cursor: Option<&str>) -> HttpResponseBuilder {
    let accept = header_of(to.call.request.headers(), header::ACCEPT.as_str());
    let mut answer = HttpResponse::Ok();
    answer.insert_header((header::CONTENT_TYPE, envelope.format.content_type(accept)));
    answer.append_header((header::VARY, "Accept, Accept-Encoding"));
    answer.insert_header((FRESHNESS, "complete"));
    answer.insert_header((DURATION, to.began.elapsed().as_millis().to_string()));
    if let Some(cursor) = cursor {
        answer.insert_header((CURSOR, cursor));
    }
    if let Some(attachment) = &to.attachment {
        answer.insert_header((header::CONTENT_DISPOSITION, attachment.as_str()));
    }
    if let Some(plan) = &envelope.plan {
        let mut plan = plan.replace('\n', "; ");
        plan.truncate(plan.floor_char_boundary(PLAN_BYTES_MAX));
        answer.insert_header((PLAN, plan));
    }
    answer
}

/// Access of one request to this node's memory budget for responses.
struct AnswersBudget {
    edge: Data<Edge>,
    applicant: Applicant,
}

impl ResponseMemory for AnswersBudget {
    fn budget(&self) -> &Budget {
        &self.edge.budgets.answers
    }

    fn holder(&self) -> Holder {
        self.applicant.holder
    }

    async fn reserve(&self, bytes: u64, until: Instant) -> Result<Reservation, RenderError> {
        self.applicant.reserve_until(self.budget(), bytes, until).await.map_err(no_memory)
    }

    async fn grow(&self, held: &mut Reservation, bytes: u64, until: Instant) -> Result<(), RenderError> {
        self.applicant.grow_until(self.budget(), held, bytes, until).await.map_err(no_memory)
    }
}

fn no_memory(refusal: Refusal) -> RenderError {
    RenderError::NoMemory(refusal.message)
}

fn header_of<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Reads the position from the cursor of the previous page.
pub(crate) fn position(text: &str, is_short: bool, secrets: &SigningSecrets) -> Result<Position, Refusal> {
    let invalid = |_| Refusal::bad("Invalid cursor: pass the cursor of the previous page, with the same query");
    page_position(text, is_short, secrets.accepted()).map_err(invalid)
}

pub(crate) fn secrets(records: &Records) -> Result<SigningSecrets, Refusal> {
    Ok(records.secrets().signing_secrets(CURSOR_CONTEXT)?)
}
