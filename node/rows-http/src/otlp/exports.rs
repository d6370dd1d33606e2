//! Storage of OpenTelemetry exports from both protocols.
//!
//! Spans become rows of the object that the request or the span names as the parent. The response lists spans that
//! cannot be stored. A retry sends the same spans and creates no duplicates. Logs and metrics are not stored, and the
//! responses say so.

use std::collections::{BTreeMap, HashMap};

use assay_node_http::requests::body::Body;
use assay_node_http::requests::caller::Caller;
use assay_node_http::requests::error_texts::shortened;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_objects::{ObjectWrite, WriteError};
use assay_node_otel::{
    Encoding, Export, Limits, Mapped, Parent, ParentObject, Rejected, Rows, Signal, count, decode, encode_not_stored,
};
use assay_node_records::kinds;
use assay_storage_model::ObjectKind;
use assay_storage_model::event::SentItem;
use serde_json::Map;
use uuid::Uuid;

use crate::files::Attachments;
use crate::rows::{send, write_to};

pub const PARENT: &str = "x-bt-parent";
/// Header with the project of Phoenix's clients.
pub const PHOENIX_PROJECT_HEADER: &str = "x-project-name";
/// Upper bound of the rows in one write. Larger exports are written in parts, in order.
const ROWS_AT_ONCE: usize = 2_000;
/// Approximate upper bound of the bytes in one write.
const BYTES_AT_ONCE: usize = 4 << 20;
/// Upper bound of spans that the store refuses. An export with more of them is refused as a whole.
const UNSTORABLE_MAX: usize = 20;
/// Upper bound of objects that the spans of one export name.
const PARENTS_MAX: usize = 100;

/// Returns the response to an export of logs or metrics.
pub async fn not_stored(body: Body, encoding: Encoding, signal: Signal) -> Result<Vec<u8>, Refusal> {
    let counted = body.decoded(move |bytes| count(bytes, encoding, signal).map_err(malformed)).await?;
    Ok(encode_not_stored(signal, counted.value, encoding))
}

fn malformed(why: impl std::fmt::Display) -> Refusal {
    Refusal::bad(why.to_string())
}

/// Turns a refusal for a full disk into one that exporters retry. Exporters retry fewer statuses than other clients.
pub fn again(mut refusal: Refusal) -> Refusal {
    if refusal.kind == ErrorKind::NoSpace {
        refusal.retry_after_seconds = refusal.retry_after_seconds.or(ErrorKind::NoSpace.retry_after_seconds());
        refusal.kind = ErrorKind::Unavailable;
    }
    refusal
}

/// Destination that the headers of an export name.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportHeaders<'h> {
    /// Parent of all spans.
    pub parent: Option<&'h [u8]>,
    /// Project of Phoenix's clients.
    pub phoenix_project: Option<&'h [u8]>,
}

/// Writes the spans that can be stored, and returns those that cannot.
pub async fn take(
    caller: &Caller,
    headers: ExportHeaders<'_>,
    body: Body,
    encoding: Encoding,
) -> Result<Vec<Rejected>, Refusal> {
    let parent = parent_of(headers.parent)?;
    let is_phoenix = caller.edge.speaks_phoenix();
    let project = headers.phoenix_project.and_then(|name| str::from_utf8(name).ok()).map(str::to_owned);
    take_as(caller, body, encoding, move |export| {
        let rows = export.rows(parent.clone());
        if is_phoenix { rows.with_phoenix_projects(project.as_deref()) } else { rows }
    })
    .await
}

/// Writes the rows that `convert` makes of an export, and returns the spans that cannot be stored.
pub async fn take_as(
    caller: &Caller,
    body: Body,
    encoding: Encoding,
    convert: impl Fn(Export) -> Rows + Clone + Send + 'static,
) -> Result<Vec<Rejected>, Refusal> {
    let bytes = body.bytes.clone();
    let mut unstorable: BTreeMap<usize, String> = BTreeMap::new();
    let mut places = HashMap::new();
    let read = move |bytes: &[u8]| {
        let export = decode(bytes, encoding, Limits::default()).map_err(malformed)?;
        Ok(convert(export))
    };
    let mut rows = body.decoded(read.clone()).await?;
    loop {
        let mut rejected = std::mem::take(&mut rows.value.rejected);
        let taken = std::mem::take(&mut rows.value.taken);
        let taken = taken.into_iter().filter(|one| !unstorable.contains_key(&one.index)).collect();
        let refused = match write(caller, taken, &mut places, &mut rejected).await {
            Ok(()) => {
                rejected.extend(unstorable.into_iter().map(|(index, why)| Rejected { index, why }));
                rejected.sort_by_key(|one| one.index);
                return Ok(rejected);
            }
            Err(Failed::Row { index, why }) => (index, why),
            Err(Failed::Whole(refusal)) => return Err(refusal),
        };
        if unstorable.len() == UNSTORABLE_MAX {
            return Err(Refusal::bad(format!("span {}: {}", refused.0, refused.1)));
        }
        unstorable.insert(refused.0, refused.1);
        // This is rare, so all rows are made and written again. Repeated writes create no duplicates.
        rows = rows.decoded_again(bytes.clone(), read.clone()).await?;
    }
}

enum Failed {
    /// The store refused the row of this span.
    Row {
        index: usize,
        why: String,
    },
    Whole(Refusal),
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Failed {
        Failed::Whole(refusal)
    }
}

/// Objects that spans name, or the reasons why they are unavailable.
type Places = HashMap<ParentObject, Result<(ObjectKind, Uuid), String>>;

async fn write(
    caller: &Caller,
    taken: Vec<Mapped>,
    places: &mut Places,
    rejected: &mut Vec<Rejected>,
) -> Result<(), Failed> {
    let mut groups: Vec<((ObjectKind, Uuid), Vec<Mapped>)> = Vec::new();
    let (mut found, mut first_refusal) = (HashMap::new(), None);
    for one in taken {
        let Some(parent) = &one.parent else {
            let said = "the spans have no destination: send the header `x-bt-parent`, such as `project_name:<name>`. The \
                        projects of Phoenix's clients count only if the setting `wires.phoenix` allows them";
            return Err(Refusal::bad(said).into());
        };
        if !places.contains_key(&parent.object) {
            if places.len() == PARENTS_MAX {
                return Err(Refusal::bad(format!("the spans name more than {PARENTS_MAX} objects")).into());
            }
            let place = match object_of(caller, &parent.object).await {
                Ok(place) => Ok(place),
                Err(refusal) if is_final(&refusal) => {
                    let why = refusal.message.clone();
                    first_refusal.get_or_insert(refusal);
                    Err(why)
                }
                Err(refusal) => return Err(refusal.into()),
            };
            places.insert(parent.object.clone(), place);
        }
        match &places[&parent.object] {
            Ok(place) => {
                let group = *found.entry(*place).or_insert_with(|| {
                    groups.push((*place, Vec::new()));
                    groups.len() - 1
                });
                groups[group].1.push(one);
            }
            Err(why) => rejected.push(Rejected { index: one.index, why: why.clone() }),
        }
    }
    let mut is_any_written = false;
    for ((kind, id), rows) in groups {
        match write_group(caller, kind, id, rows, rejected).await? {
            None => is_any_written = true,
            Some(refusal) => drop(first_refusal.get_or_insert(refusal)),
        }
    }
    // If nothing was stored, the status reports the failure, because many exporters ignore the response body.
    match first_refusal {
        Some(refusal) if !is_any_written => Err(refusal.into()),
        _ => Ok(()),
    }
}

/// Returns whether a retry would fail again.
fn is_final(refusal: &Refusal) -> bool {
    matches!(refusal.kind, ErrorKind::BadRequest | ErrorKind::Forbidden | ErrorKind::NotFound | ErrorKind::Conflict)
}

/// Writes the rows of one object in parts. After a final refusal, rejects the remaining spans and returns the refusal.
async fn write_group(
    caller: &Caller,
    kind: ObjectKind,
    id: Uuid,
    rows: Vec<Mapped>,
    rejected: &mut Vec<Rejected>,
) -> Result<Option<Refusal>, Failed> {
    let mut rows = rows.into_iter().peekable();
    while rows.peek().is_some() {
        let (mut part, mut indexes, mut bytes) = (Vec::new(), Vec::new(), 0);
        while let Some(one) = rows.next_if(|_| part.len() < ROWS_AT_ONCE && bytes < BYTES_AT_ONCE) {
            bytes += bytes_about(&one.row);
            indexes.push(one.index);
            part.push(SentItem::from(one.row));
        }
        let write: ObjectWrite = match write_to(caller, kind, id, (part, Attachments::Unknown), None).await {
            Ok(write) => write,
            Err(refusal) if is_final(&refusal) => {
                let left = rows.map(|one| one.index);
                let why = &refusal.message;
                rejected.extend(indexes.into_iter().chain(left).map(|index| Rejected { index, why: why.clone() }));
                return Ok(Some(refusal));
            }
            Err(refusal) => return Err(refusal.into()),
        };
        send(caller, vec![write]).await.map_err(|error| match error {
            WriteError::Row { error, .. } => {
                let index = indexes.get(error.row).copied().unwrap_or_default();
                Failed::Row { index, why: error.to_string() }
            }
            other => Failed::Whole(other.into()),
        })?;
    }
    Ok(None)
}

/// Returns the approximate bytes of the large texts in a row.
fn bytes_about(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::String(text) => text.len(),
        serde_json::Value::Array(items) => items.iter().map(bytes_about).sum(),
        serde_json::Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + 4 + bytes_about(value)).sum()
        }
        _ => 8,
    }
}

/// Returns the parent that the header `x-bt-parent` names.
fn parent_of(said: Option<&[u8]>) -> Result<Option<Parent>, Refusal> {
    let Some(said) = said else { return Ok(None) };
    let text = str::from_utf8(said).map_err(|_| Refusal::bad("`x-bt-parent` is not valid UTF-8"))?.trim();
    if text.is_empty() {
        return Ok(None);
    }
    Parent::parse(text).map(Some).map_err(|why| Refusal::bad(format!("`x-bt-parent`: {why}")))
}

/// Returns the object that a parent names.
pub async fn object_of(caller: &Caller, object: &ParentObject) -> Result<(ObjectKind, Uuid), Refusal> {
    let uuid = |text: &str| {
        Uuid::parse_str(text).map_err(|_| Refusal::bad(format!("the parent's id `{}` is not a UUID", shortened(text))))
    };
    match object {
        ParentObject::Project(id) => Ok((ObjectKind::ProjectLogs, uuid(id)?)),
        ParentObject::Experiment(id) => Ok((ObjectKind::Experiment, uuid(id)?)),
        ParentObject::Playground(id) => Ok((ObjectKind::PlaygroundLogs, uuid(id)?)),
        ParentObject::ExperimentNamed { project, name, dataset } => {
            let mut fields = Map::from_iter([
                ("project_id".to_owned(), project.to_string().into()),
                ("name".to_owned(), name.as_str().into()),
            ]);
            fields.extend(dataset.map(|dataset| ("dataset_id".to_owned(), dataset.to_string().into())));
            let made = caller.edge.records.create(&caller.principal, &kinds::EXPERIMENT, fields).await?;
            let id = made.object["id"].as_str().and_then(|id| Uuid::parse_str(id).ok());
            Ok((ObjectKind::Experiment, id.ok_or_else(|| Refusal::internal("a new experiment has no id"))?))
        }
        ParentObject::ProjectNamed(name) => {
            let project = caller.edge.records.project_by_name(&caller.principal, name, true).await?;
            Ok((ObjectKind::ProjectLogs, project.id))
        }
    }
}
