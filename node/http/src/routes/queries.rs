//! `POST /btql`: a question over rows, in any of the three forms, and its answer in any of four.

mod streaming;

use actix_web::HttpResponseBuilder;
use actix_web::http::header::{self, HeaderMap};
use actix_web::web::{Bytes, Payload};
use assay_node_answers::cursor::{self, Cursor, Object, Secret};
use assay_node_answers::{AnswerError, Format, Writer};
use assay_node_auth::{Permission, Principal};
use assay_node_btql::bound::Note;
use assay_node_btql::columns::{Kind as SourceKind, Named};
use assay_node_btql::schema::{Column, json_schema};
use assay_node_btql::values::Value;
use assay_node_identity::Identity;
use assay_node_limits::Reservation;
use assay_node_query::{
    Answer as Rows, AskError, Bounded, EngineError, Executor, Home, Position, Table, Watch, columns_of, value_bytes,
};
use assay_node_records::{Kind as RecordKind, ObjectHome, Records, RecordsError, kinds};
use assay_node_secrets::SigningSecrets;
use assay_storage_model::{ObjectKind, OrgId};
use serde_json::json;
use tokio::time::Instant;
use uuid::Uuid;

use self::streaming::{Streaming, part_bytes};
use super::Answer;
use crate::asked::{Asked, asked};
use crate::call::Call;
use crate::packing::{PACKED_BYTES_MIN, Packing};
use crate::refusal::{Kind, Refusal};
use crate::sending::Sending;

const CURSOR: &str = "x-bt-cursor";
const FRESHNESS: &str = "x-bt-freshness-state";
const DURATION: &str = "x-bt-api-duration-ms";
const PLAN: &str = "x-bt-query-plan";
const PLAN_BYTES_MAX: usize = 8 << 10;
/// Objects of one query.
const OBJECTS_MAX: usize = 1000;
/// What cursors are signed with is derived for this alone.
const CURSOR_CONTEXT: &str = "assay 2026-11 cursors of queries";

pub async fn btql(call: Call, payload: Payload) -> Answer {
    let began = Instant::now();
    let body = call.small_body(payload).await?.object().await?;
    let asked = asked(body, call.edge.queries.now())?;
    let bounded = asked.question.clone().read()?;
    let sources = sources(&call.edge.identity, &call.principal, &bounded).await?;
    let homes = &sources.homes;
    let (is_endless, is_short) = (bounded.is_endless(), bounded.is_by_key() && homes.len() == 1);
    let secrets = secrets(&call.edge.records)?;
    let after = bounded.cursor().map(|text| position(text, is_short, &secrets)).transpose()?;
    let secret = secrets.sign;
    let plan = asked.include_plan.then(|| call.edge.queries.plan(&bounded, homes));
    let notes = bounded.notes().to_vec();
    let columns = bounded.columns();
    let mut rows = call.queries().ask(call.who(), bounded, homes, after, asked.seconds);
    if is_endless {
        // Held before anything is read, so that an answer that is not taken keeps none but its own memory.
        let room = call.applicant().reserve(&call.edge.budgets.answers, part_bytes(&call.edge)).await?;
        let first = rows.next().await?.unwrap_or_default();
        sources.still(&call.edge.records, &call.principal).await?;
        let reply = Reply { asked, columns: columns_of(columns, &first), notes, plan, began, secret, is_short };
        return reply.streamed(&call, rows, first, room);
    }
    let first = rows.next().await?.unwrap_or_default();
    sources.still(&call.edge.records, &call.principal).await?;
    let reply = Reply { asked, columns: columns_of(columns, &first), notes, plan, began, secret, is_short };
    reply.whole(&call, rows, first).await
}

/// Values of rows that are written on a thread that serves, in bytes: some hundred microseconds.
const WRITTEN_HERE_MAX: usize = 64 << 10;
/// Values of rows that are written in one step, in bytes: others may have their turn between two.
const WRITTEN_AT_ONCE: usize = 512 << 10;

/// Writes rows step by step, and packs them.
fn written(
    (writer, packing): (&mut Writer, &mut Packing),
    rows: &[Vec<Value<'_>>],
    watch: &Watch,
) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    let mut rest = rows;
    while !rest.is_empty() {
        watch.check().map_err(AskError::from)?;
        let (mut ahead, mut count) = (0, 0);
        while count < rest.len() && ahead < WRITTEN_AT_ONCE {
            ahead += rest[count].iter().map(value_bytes).sum::<usize>();
            count += 1;
        }
        let (next, later) = rest.split_at(count);
        let more = packing.put(writer.rows(next).map_err(unwritten)?).map_err(Refusal::internal)?;
        bytes.extend_from_slice(&more);
        rest = later;
    }
    Ok(bytes)
}

/// How an answer is written.
struct Reply {
    asked: Asked,
    columns: Vec<Column>,
    notes: Vec<Note>,
    plan: Option<String>,
    began: Instant,
    secret: Secret,
    /// Of one object in the order of its keys, which say where a page ended.
    is_short: bool,
}

impl Reply {
    async fn whole(self, call: &Call, mut rows: Rows, first: Table) -> Answer {
        let mut writer = Writer::new(self.asked.format, &self.columns).map_err(unwritten)?;
        let mut body = self.head();
        let (applicant, budget) = (call.applicant(), &call.edge.budgets.answers);
        let mut room = applicant.reserve(budget, 0).await?;
        let executor = rows.executor();
        let mut table = Some(first);
        while let Some(next) = table {
            let more;
            (writer, more) = written_beside(&executor, writer, next).await?;
            applicant.grow(budget, &mut room, more.len() as u64).await?;
            body.extend_from_slice(&more);
            table = rows.next().await?;
        }
        // Parquet is encoded only now, as far as a row group was not full.
        let end = match self.asked.format {
            Format::Parquet => executor.run(move |_| writer.finish()).await?,
            Format::Json | Format::JsonLines | Format::Csv => writer.finish(),
        };
        body.extend_from_slice(&end.map_err(unwritten)?);
        let cursor = rows.end().map(|end| self.cursor(&end));
        body.extend_from_slice(&self.tail(&rows, cursor.as_deref())?);
        let mut answer = self.builder(call, cursor.as_deref());
        let packing = self.packing(call);
        if let Some(name) = packing.name().filter(|_| body.len() >= PACKED_BYTES_MIN) {
            answer.insert_header((header::CONTENT_ENCODING, name));
            body = match body.len() < WRITTEN_HERE_MAX {
                true => packed(packing, &body, || Ok(()))?,
                false => executor.run(move |watch| packed(packing, &body, || watch.check())).await??,
            };
        }
        Ok(answer.body(Sending::new(call, Bytes::from(body), room)))
    }

    /// Part after part. None is made before its reader took half of the one before.
    fn streamed(self, call: &Call, rows: Rows, first: Table, room: Reservation) -> Answer {
        let writer = Writer::new(self.asked.format, &self.columns).map_err(unwritten)?;
        let mut answer = self.builder(call, None);
        let packing = self.packing(call);
        if let Some(name) = packing.name() {
            answer.insert_header((header::CONTENT_ENCODING, name));
        }
        let streaming = Streaming::new(call, self, (writer, packing), rows, (first, room));
        Ok(answer.body(Sending::streamed(call, streaming.parts())))
    }

    /// A table in Parquet is packed already.
    fn packing(&self, call: &Call) -> Packing {
        match self.asked.format {
            Format::Parquet => Packing::Plain,
            Format::Json | Format::JsonLines | Format::Csv => Packing::of(call.request.headers()),
        }
    }

    fn builder(&self, call: &Call, cursor: Option<&str>) -> HttpResponseBuilder {
        let accept = header_of(call.request.headers(), header::ACCEPT.as_str());
        let mut answer = actix_web::HttpResponse::Ok();
        answer.insert_header((header::CONTENT_TYPE, self.asked.format.content_type(accept)));
        answer.append_header((header::VARY, "Accept-Encoding"));
        answer.insert_header((FRESHNESS, "complete"));
        answer.insert_header((DURATION, self.began.elapsed().as_millis().to_string()));
        if let Some(cursor) = cursor {
            answer.insert_header((CURSOR, cursor));
        }
        if let Some(plan) = &self.plan {
            let mut plan = plan.replace('\n', "; ");
            plan.truncate(plan.floor_char_boundary(PLAN_BYTES_MAX));
            answer.insert_header((PLAN, plan));
        }
        answer
    }

    /// What stands before the rows.
    fn head(&self) -> Vec<u8> {
        match self.asked.format {
            Format::Json => b"{\"data\":".to_vec(),
            Format::JsonLines | Format::Csv | Format::Parquet => Vec::new(),
        }
    }

    /// What stands behind them.
    fn tail(&self, rows: &Rows, cursor: Option<&str>) -> Result<Vec<u8>, Refusal> {
        if self.asked.format != Format::Json {
            return Ok(Vec::new());
        }
        let last = rows.version().to_string();
        let warning = |note: &Note| json!({"code": note.code, "message": note.message, "stage": "optimizer", "severity": "warning"});
        let mut envelope = json!({
            "schema": json_schema(&self.columns),
            // Nothing is read twice: rows of a moment ago are rows like all others.
            "realtime_state": {
                "type": if self.asked.realtime { "on" } else { "off" },
                "minimum_xact_id": last, "actual_xact_id": last, "read_bytes": 0,
            },
            "freshness_state": {"last_processed_xact_id": last, "last_considered_xact_id": last},
            "freshness": "complete",
            "warnings": self.notes.iter().map(warning).collect::<Vec<_>>(),
        });
        if let Some(cursor) = cursor {
            envelope["cursor"] = cursor.into();
        }
        if let Some(plan) = &self.plan {
            envelope["plan"] = plan.as_str().into();
        }
        let mut text = serde_json::to_vec(&envelope).map_err(Refusal::internal)?;
        text[0] = b',';
        Ok(text)
    }

    fn cursor(&self, end: &Position) -> String {
        if self.is_short {
            return cursor::short(end.place);
        }
        let object = Object::Number(end.object.unwrap_or_default().into());
        let id = end.write.map(|write| write.to_string()).unwrap_or_default();
        let position = cursor::Position { xact: end.xact, key: end.place, object, id };
        cursor::long(&position, &self.secret)
    }
}

/// Writes a table. A long one is written on a thread for queries, since the threads that serve have other clients.
async fn written_beside(executor: &Executor, mut writer: Writer, table: Table) -> Result<(Writer, Vec<u8>), Refusal> {
    let mut values = table.rows.iter().flatten();
    let mut ahead = 0;
    let is_short = values.all(|value| {
        ahead += value_bytes(value);
        ahead < WRITTEN_HERE_MAX
    });
    if is_short {
        let bytes = writer.rows(&table.rows).map_err(unwritten)?;
        return Ok((writer, bytes));
    }
    let work = move |watch: &Watch| {
        let bytes = written((&mut writer, &mut Packing::Plain), &table.rows, watch)?;
        Ok((writer, bytes))
    };
    executor.run(work).await?
}

/// The last of an answer, or all of it, packed step by step.
fn packed(
    mut packing: Packing,
    bytes: &[u8],
    goes_on: impl Fn() -> Result<(), EngineError>,
) -> Result<Vec<u8>, Refusal> {
    let mut packed = Vec::new();
    for step in bytes.chunks(WRITTEN_AT_ONCE) {
        goes_on().map_err(AskError::from)?;
        packed.extend(packing.put(step.to_vec()).map_err(Refusal::internal)?);
    }
    packed.extend(packing.end().map_err(Refusal::internal)?);
    Ok(packed)
}

fn header_of<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// A value that is not what its column was said to be is our fault; anything else is a matter of the format.
fn unwritten(why: AnswerError) -> Refusal {
    match why {
        AnswerError::Beyond { .. } | AnswerError::TooLong { .. } => Refusal::bad(why.to_string()),
        other => Refusal::internal(other),
    }
}

/// Where the page before ended, as its cursor says.
pub(super) fn position(text: &str, is_short: bool, secrets: &SigningSecrets) -> Result<Position, Refusal> {
    let invalid = || Refusal::bad("Invalid cursor: pass the one of the page before, with the same query");
    let read = secrets.accepted().find_map(|secret| cursor::parse(text, secret).ok());
    Ok(match read.ok_or_else(invalid)? {
        Cursor::Short(key) if is_short => Position { place: key, xact: 0, object: None, write: None },
        Cursor::Long(cursor::Position { xact, key, object: Object::Number(object), id }) if !is_short => {
            // What else tells rows apart: which of the writes to a row, where those are asked for.
            let write = if id.is_empty() { None } else { Some(id.parse().map_err(|_| invalid())?) };
            Position { place: key, xact, object: Some(u32::try_from(object).map_err(|_| invalid())?), write }
        }
        Cursor::Short(_) | Cursor::Long(_) => return Err(invalid()),
    })
}

pub(super) fn secrets(records: &Records) -> Result<SigningSecrets, Refusal> {
    Ok(records.secrets().signing_secrets(CURSOR_CONTEXT)?)
}

/// The same for what is not there and for what may not be read, as clients know it of queries.
fn unseen(why: RecordsError) -> Refusal {
    match why {
        RecordsError::NotFound(why) => Refusal::new(Kind::Forbidden, why),
        other => other.into(),
    }
}

/// What a query means: objects, each once, in its order, and single prompts in them. All of it may be read.
pub(super) struct Sources {
    pub homes: Vec<Home>,
    prompts: Vec<Uuid>,
    audited: Vec<OrgId>,
}

impl Sources {
    /// Who has read meanwhile what is not theirs any more is told nothing of it.
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
            return Err(Refusal::bad(format!("the query names more than {OBJECTS_MAX} objects: ask for fewer")));
        }
        Ok(())
    }
}

pub(super) async fn sources(identity: &Identity, who: &Principal, bounded: &Bounded) -> Result<Sources, Refusal> {
    let records = identity.records();
    let meant = bounded.sources();
    if meant.names.len() > OBJECTS_MAX + 1 {
        let said = format!("the query names {} objects; at most {OBJECTS_MAX} are taken", meant.names.len());
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
            let what = format!("queries over {other:?} rows are part of the API and are not served yet");
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
            Kind::Forbidden,
            format!("Missing read access to {what} id {id}, or the {what} does not exist"),
        ),
        other => other.into(),
    }
}

/// Single prompts or functions, which have no names that tell them apart.
async fn prompts(records: &Records, who: &Principal, ids: &[String], sources: &mut Sources) -> Result<(), Refusal> {
    for id in ids {
        let wrong = |_| Refusal::bad(format!("`{}` is no id of a prompt or function", crate::shapes::shortened(id)));
        let id = Uuid::parse_str(id).map_err(wrong)?;
        let place = records.prompt(who, id, Permission::Read).await.map_err(|why| unread("prompt", id, why))?;
        sources.add(&place.home)?;
        sources.prompts.push(id);
    }
    Ok(())
}

/// Those of all projects whose prompts the caller may read.
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

/// What was done to access in each.
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

/// By id or name.
async fn organizations(identity: &Identity, who: &Principal, names: &[String]) -> Result<Vec<OrgId>, Refusal> {
    let own = identity.organizations(who).await?;
    let found = names.iter().map(|name| {
        let org = own.iter().find(|org| org.name == *name || org.id.to_string() == name.to_lowercase());
        let missing = || format!("no organization `{}` is visible to this credential", crate::shapes::shortened(name));
        org.map(|org| org.id).ok_or_else(|| Refusal::new(Kind::Forbidden, missing()))
    });
    found.collect()
}

/// D-33: a UUID is an id; anything else is a name, of one thing only.
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
    let shown = crate::shapes::shortened(name);
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(Refusal::bad(format!("no {} is named `{shown}`, and it is no id", kind.name()))),
        several => {
            let ids: Vec<String> = several.iter().map(Uuid::to_string).collect();
            let ids = ids.join(", ");
            Err(Refusal::bad(format!("several {}s are named `{shown}`: say which by its id: {ids}", kind.name())))
        }
    }
}
