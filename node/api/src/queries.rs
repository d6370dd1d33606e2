//! `POST /btql`: a query over rows in any of the three forms, and its response in any of four formats.

mod body;
pub mod jobs;

use assay_node_auth::{Permission, Principal};
use assay_node_btql::columns::{Kind as SourceKind, Named};
use assay_node_http::requests::admission::Applicant;
use assay_node_http::requests::caller::{Call, Caller};
use assay_node_http::requests::error_texts::shortened;
use assay_node_http::responses::HandlerResult;
use assay_node_http::responses::compression::{PACKED_BYTES_MIN, Packing};
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::response_body::{Part, Sending};
use assay_node_http::server::edge::Edge;
use assay_node_http::web::{Bytes, Data, HeaderMap, HttpResponse, HttpResponseBuilder, Payload, header};
use assay_node_identity::Identity;
use assay_node_limits::{Budget, Holder, Reservation};
use assay_node_query::render::{
    Envelope, Format, RenderError, RenderedEnd, ResponseMemory, StreamedResponse, WholeResponse, page_cursor,
    page_position, part_bytes,
};
use assay_node_query::{AskError, Bounded, Home, Position, QueryAnswer, Question, Table, columns_of};
use assay_node_records::{Kind as RecordKind, ObjectHome, Records, RecordsError, kinds};
use assay_node_secrets::SigningSecrets;
use assay_storage_model::{ObjectKind, OrgId};
use futures::StreamExt;
use serde_json::{Map, Value};
use tokio::time::Instant;
use uuid::Uuid;

use crate::queries::body::query_request;

const CURSOR: &str = "x-bt-cursor";
const FRESHNESS: &str = "x-bt-freshness-state";
const DURATION: &str = "x-bt-api-duration-ms";
const PLAN: &str = "x-bt-query-plan";
const PLAN_BYTES_MAX: usize = 8 << 10;
/// Objects of one query.
const OBJECTS_MAX: usize = 1000;
/// Context that the key of cursors is derived for.
const CURSOR_CONTEXT: &str = "assay 2026-11 cursors of queries";

pub async fn btql(call: Call, payload: Payload) -> HandlerResult {
    let began = Instant::now();
    let body = call.small_body(payload).await?.object().await?;
    let asked = query_request(body, call.edge.queries.now())?;
    let bounded = asked.question.clone().read()?;
    let sources = sources(&call.edge.identity, &call.principal, &bounded).await?;
    let homes = &sources.homes;
    let (is_endless, is_short) = (bounded.is_endless(), bounded.is_by_key() && homes.len() == 1);
    let secrets = secrets(&call.edge.records)?;
    let after = bounded.cursor().map(|text| position(text, is_short, &secrets)).transpose()?;
    let plan = asked.include_plan.then(|| call.edge.queries.plan(&bounded, homes));
    let notes = bounded.notes().to_vec();
    let columns = bounded.columns();
    let mut rows = call.queries().ask(call.who(), bounded, homes, after, asked.seconds);
    // An endless answer reserves its memory before anything is read, so that one that is not taken holds nothing else.
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
        Some(reservation) => streamed(&call, envelope, began, rows, (first, reservation)),
        None => {
            let cursor = |end: &Position| page_cursor(end, is_short, &secrets.sign);
            whole(&call, envelope, began, rows, first, cursor).await
        }
    }
}

/// An answer without its end, and the memory that it takes.
struct RenderedRows {
    response: WholeResponse,
    body: Vec<u8>,
    reservation: Reservation,
}

/// Renders all rows of an answer, of at most so many bytes.
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

/// Sends an answer as one body.
async fn whole(
    call: &Call,
    envelope: Envelope,
    began: Instant,
    mut rows: QueryAnswer,
    first: Table,
    cursor: impl Fn(&Position) -> String,
) -> HandlerResult {
    let RenderedRows { response, mut body, reservation } =
        rendered(&call.caller, envelope, (&mut rows, first), usize::MAX).await?;
    let cursor = rows.end().map(|end| cursor(&end));
    let end: RenderedEnd = response.end(rows.version(), cursor.as_deref()).await?;
    body.extend_from_slice(&end.bytes);
    let mut answer = builder(call, &end.envelope, began, cursor.as_deref());
    let packing = packing(call, end.envelope.format);
    if let Some(name) = packing.name().filter(|_| body.len() >= PACKED_BYTES_MIN) {
        answer.insert_header((header::CONTENT_ENCODING, name));
        body = end.compress(packing, body).await?;
    }
    Ok(answer.body(Sending::new(call, Bytes::from(body), reservation)))
}

/// Returns the rows of a query of this server on the caller's behalf, of at most so many bytes.
pub(crate) async fn rows_of(caller: &Caller, query: &str, bytes_max: usize) -> Result<Vec<Value>, Refusal> {
    let body = Map::from_iter([("query".to_owned(), Value::from(query))]);
    let asked = query_request(body, caller.edge.queries.now())?;
    let bounded = Question { whole: true, ..asked.question }.read()?;
    let sources = sources(&caller.edge.identity, &caller.principal, &bounded).await?;
    let columns = bounded.columns();
    let mut rows = caller.queries().ask(caller.who(), bounded, &sources.homes, None, None);
    let first = rows.next().await?.unwrap_or_default();
    sources.still(&caller.edge.records, &caller.principal).await?;
    let columns = columns_of(columns, &first);
    let envelope = Envelope { format: Format::Json, columns, notes: Vec::new(), plan: None, realtime: true };
    // the reservation is held until the rows are parsed
    let RenderedRows { response, mut body, reservation: _reservation } =
        rendered(caller, envelope, (&mut rows, first), bytes_max).await?;
    body.extend_from_slice(&response.end(rows.version(), None).await?.bytes);
    let mut answer: Value = serde_json::from_slice(&body).map_err(Refusal::internal)?;
    match answer["data"].take() {
        Value::Array(rows) => Ok(rows),
        _ => Err(Refusal::internal("the answer to a query has no rows")),
    }
}

/// Sends an answer part by part. None is made before its reader took half of the one before.
fn streamed(
    call: &Call,
    envelope: Envelope,
    began: Instant,
    rows: QueryAnswer,
    first: (Table, Reservation),
) -> HandlerResult {
    let mut answer = builder(call, &envelope, began, None);
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

/// Returns the compression of a response. A Parquet file is compressed already.
fn packing(call: &Call, format: Format) -> Packing {
    match format {
        Format::Parquet => Packing::Plain,
        _ => Packing::of(call.request.headers()),
    }
}

fn builder(call: &Call, envelope: &Envelope, began: Instant, cursor: Option<&str>) -> HttpResponseBuilder {
    let accept = header_of(call.request.headers(), header::ACCEPT.as_str());
    let mut answer = HttpResponse::Ok();
    answer.insert_header((header::CONTENT_TYPE, envelope.format.content_type(accept)));
    answer.append_header((header::VARY, "Accept-Encoding"));
    answer.insert_header((FRESHNESS, "complete"));
    answer.insert_header((DURATION, began.elapsed().as_millis().to_string()));
    if let Some(cursor) = cursor {
        answer.insert_header((CURSOR, cursor));
    }
    if let Some(plan) = &envelope.plan {
        let mut plan = plan.replace('\n', "; ");
        plan.truncate(plan.floor_char_boundary(PLAN_BYTES_MAX));
        answer.insert_header((PLAN, plan));
    }
    answer
}

/// Share of this node's budget for answers that one request applies for.
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

/// Reads the cursor of the page before.
pub(crate) fn position(text: &str, is_short: bool, secrets: &SigningSecrets) -> Result<Position, Refusal> {
    let invalid = |_| Refusal::bad("Invalid cursor: pass the cursor of the previous page, with the same query");
    page_position(text, is_short, secrets.accepted()).map_err(invalid)
}

pub(crate) fn secrets(records: &Records) -> Result<SigningSecrets, Refusal> {
    Ok(records.secrets().signing_secrets(CURSOR_CONTEXT)?)
}

/// Maps missing objects to the same refusal as objects that may not be read, as clients know it from queries.
fn unseen(why: RecordsError) -> Refusal {
    match why {
        RecordsError::NotFound(why) => Refusal::new(ErrorKind::Forbidden, why),
        other => other.into(),
    }
}

/// Sources of a query: objects, each once and in its order, and single prompts in them. The caller may read all of them.
pub(crate) struct Sources {
    pub homes: Vec<Home>,
    prompts: Vec<Uuid>,
    audited: Vec<OrgId>,
}

impl Sources {
    /// Checks once more that the caller may read everything, after the rows were read.
    pub async fn still(&self, records: &Records, who: &Principal) -> Result<(), Refusal> {
        for org in &self.audited {
            records.audit_log(who, *org).await.map_err(unseen)?;
        }
        if self.prompts.is_empty() && self.audited.is_empty() {
            let objects: Vec<_> = self.homes.iter().map(|home| home.object).collect();
            return records.still(who, &objects, Permission::Read).await.map_err(unseen);
        }
        for prompt in &self.prompts {
            records.prompt(who, *prompt, Permission::Read).await.map_err(unseen)?;
        }
        Ok(())
    }

    fn add(&mut self, home: &ObjectHome) -> Result<(), Refusal> {
        let home = Home { object: home.key, org: home.org, project_id: home.project_id };
        if !self.homes.contains(&home) {
            self.homes.push(home);
        }
        if self.homes.len() > OBJECTS_MAX {
            return Err(Refusal::bad(format!("the query names more than {OBJECTS_MAX} objects: name fewer")));
        }
        Ok(())
    }
}

pub(crate) async fn sources(identity: &Identity, who: &Principal, bounded: &Bounded) -> Result<Sources, Refusal> {
    let records = identity.records();
    let meant = bounded.sources();
    if meant.names.len() > OBJECTS_MAX + 1 {
        let said = format!("the query names {} objects; the maximum is {OBJECTS_MAX}", meant.names.len());
        return Err(Refusal::bad(said));
    }
    let mut sources = Sources { homes: Vec::new(), prompts: Vec::new(), audited: Vec::new() };
    let (kind, record): (ObjectKind, &'static RecordKind) = match meant.kind {
        SourceKind::ProjectLogs => (ObjectKind::ProjectLogs, &kinds::PROJECT),
        SourceKind::Experiment => (ObjectKind::Experiment, &kinds::EXPERIMENT),
        SourceKind::Dataset => (ObjectKind::Dataset, &kinds::DATASET),
        SourceKind::Playground => (ObjectKind::PlaygroundLogs, &kinds::PROMPT_SESSION),
        SourceKind::Prompt | SourceKind::Function => match meant.named {
            Named::Each => {
                prompts(records, who, meant.names, &mut sources).await?;
                return Ok(sources);
            }
            Named::OfOrganizations => {
                prompts_of_organizations(identity, who, meant.names, &mut sources).await?;
                return Ok(sources);
            }
            Named::OfProjects | Named::InProject => (ObjectKind::ProjectPrompts, &kinds::PROJECT),
        },
        SourceKind::AuditLog => {
            audit_logs(identity, who, meant.names, &mut sources).await?;
            return Ok(sources);
        }
        other => {
            let what =
                format!("queries over {other:?} rows are part of the API, but this server does not support them yet");
            return Err(AskError::NotServed(what).into());
        }
    };
    let (project, names) = match (meant.named, meant.names) {
        (Named::InProject, [project, names @ ..]) => {
            (Some(id_of(records, who, &kinds::PROJECT, project, None).await?), names)
        }
        (_, names) => (None, names),
    };
    for name in names {
        let id = id_of(records, who, record, name, project).await?;
        let home = records.object(who, kind, id, Permission::Read).await;
        sources.add(&home.map_err(|why| unread(record.name(), id, why))?)?;
    }
    Ok(sources)
}

fn unread(what: &str, id: Uuid, why: RecordsError) -> Refusal {
    match why {
        RecordsError::NotFound(_) => Refusal::new(
            ErrorKind::Forbidden,
            format!("Missing read access to {what} id {id}, or the {what} does not exist"),
        ),
        other => other.into(),
    }
}

/// Adds single prompts or functions by their ids; their names are not unique.
async fn prompts(records: &Records, who: &Principal, ids: &[String], sources: &mut Sources) -> Result<(), Refusal> {
    for id in ids {
        let wrong = |_| Refusal::bad(format!("`{}` is not the id of a prompt or function", shortened(id)));
        let id = Uuid::parse_str(id).map_err(wrong)?;
        let place = records.prompt(who, id, Permission::Read).await.map_err(|why| unread("prompt", id, why))?;
        sources.add(&place.home)?;
        sources.prompts.push(id);
    }
    Ok(())
}

/// Adds the prompts of all projects whose prompts the caller may read.
async fn prompts_of_organizations(
    identity: &Identity,
    who: &Principal,
    names: &[String],
    sources: &mut Sources,
) -> Result<(), Refusal> {
    for org in organizations(identity, who, names).await? {
        for home in identity.records().projects_with_prompts(who, org).await? {
            sources.add(&home)?;
        }
    }
    Ok(())
}

/// Adds the audit log of each organization.
async fn audit_logs(
    identity: &Identity,
    who: &Principal,
    names: &[String],
    sources: &mut Sources,
) -> Result<(), Refusal> {
    for org in organizations(identity, who, names).await? {
        sources.add(&identity.records().audit_log(who, org).await.map_err(unseen)?)?;
        sources.audited.push(org);
    }
    Ok(())
}

/// Returns organizations by id or name.
async fn organizations(identity: &Identity, who: &Principal, names: &[String]) -> Result<Vec<OrgId>, Refusal> {
    let own = identity.organizations(who).await?;
    let found = names.iter().map(|name| {
        let org = own.iter().find(|org| org.name == *name || org.id.to_string() == name.to_lowercase());
        let missing = || format!("no organization `{}` is visible to this credential", shortened(name));
        org.map(|org| org.id).ok_or_else(|| Refusal::new(ErrorKind::Forbidden, missing()))
    });
    found.collect()
}

/// Resolves an id or a name (D-33): a UUID is an id, anything else the name of exactly one record.
async fn id_of(
    records: &Records,
    who: &Principal,
    kind: &'static RecordKind,
    name: &str,
    project: Option<Uuid>,
) -> Result<Uuid, Refusal> {
    if let Ok(id) = Uuid::parse_str(name) {
        return Ok(id);
    }
    let found = records.named(who, kind, name, project).await?;
    let shown = shortened(name);
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(Refusal::bad(format!("no {} has the name `{shown}`, and it is not an id", kind.name()))),
        several => {
            let ids: Vec<String> = several.iter().map(Uuid::to_string).collect();
            let ids = ids.join(", ");
            Err(Refusal::bad(format!("several {}s have the name `{shown}`: use one of their ids: {ids}", kind.name())))
        }
    }
}
