//! Bodies of records, without side effects: creates, merges of patches, and responses.

use assay_node_shapes::{Shape, take};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{Record, RecordKind};
use assay_storage_model::event::format_micros;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::error::RecordsError;
use crate::kind::{Field, Home, Kind, OnCreate, OnPatch};

pub type Body = Map<String, Value>;

/// Field of an API key for all organizations of its user. Such a key has no `org_id`.
pub const EVERY_ORG: &str = "every_org";
/// Field with the organizations that the user of such a key has left.
pub const CLOSED_ORGS: &str = "closed_orgs";

/// Returns whether the body contains a text, as a quick filter before decoding.
pub fn mentions(record: &Record, text: &str) -> bool {
    std::str::from_utf8(&record.body).is_ok_and(|body| body.contains(text))
}

/// Validates the fields of a create. Null means "not given".
pub fn created(kind: &Kind, sent: Body) -> Result<Body, RecordsError> {
    taken(kind.fields, sent)
}

/// Validates fields that do not belong to a record.
pub(crate) fn taken(fields: &[Field], mut sent: Body) -> Result<Body, RecordsError> {
    let mut kept = Body::new();
    for field in fields.iter().filter(|field| field.create != OnCreate::Ours) {
        match sent.remove(field.name).filter(|value| !value.is_null()) {
            Some(value) => {
                kept.insert(field.name.to_owned(), take(&field.shape, field.name, value)?);
            }
            None if field.create == OnCreate::Required => {
                return Err(RecordsError::BadRequest(format!("`{}` is missing", field.name)));
            }
            None => {}
        }
    }
    Ok(kept)
}

/// Validates the fields of a patch that are not null, for a later merge.
pub(crate) fn changes(fields: &[Field], mut sent: Body) -> Result<Body, RecordsError> {
    let mut kept = Body::new();
    for field in fields.iter().filter(|field| field.patch != OnPatch::Fixed) {
        if let Some(value) = sent.remove(field.name).filter(|value| !value.is_null()) {
            kept.insert(field.name.to_owned(), take(&field.shape, field.name, value)?);
        }
    }
    Ok(kept)
}

/// Merges a patch into a stored body; `None` if nothing changes. Fields cannot be removed, so null means "not given".
pub(crate) fn patched(kind: &Kind, stored: &Body, mut sent: Body) -> Result<Option<Body>, RecordsError> {
    let mut kept = stored.clone();
    for field in kind.fields.iter().filter(|field| field.patch != OnPatch::Fixed) {
        let Some(value) = sent.remove(field.name).filter(|value| !value.is_null()) else {
            if field.patch == OnPatch::Said {
                return Err(RecordsError::BadRequest(format!("`{}` is missing", field.name)));
            }
            continue;
        };
        let value = take(&field.shape, field.name, value)?;
        let value = match kept.remove(field.name) {
            Some(mut before) if field.patch == OnPatch::Merged => {
                merge(&mut before, value);
                take(&field.shape, field.name, before)?
            }
            _ => value,
        };
        kept.insert(field.name.to_owned(), value);
    }
    (kind.derive)(&mut kept);
    Ok((kept != *stored).then_some(kept))
}

/// Checks the shape of `remove_members` and similar fields, whose invalid elements the merge would ignore.
pub(crate) fn check_taken_out(kind: &Kind, sent: &Body) -> Result<(), RecordsError> {
    let lists = kind.fields.iter().filter(|field| matches!(field.shape, Shape::List { .. }));
    for field in lists.filter(|_| kind.fold.is_some()) {
        let name = format!("remove_{}", field.name);
        if let Some(value) = sent.get(&name).filter(|value| !value.is_null()) {
            take(&field.shape, &name, value.clone())?;
        }
    }
    Ok(())
}

/// Merges objects member by member and replaces other values. The shapes of both limit the depth.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                match into.get_mut(&name) {
                    Some(before) => merge(before, value),
                    None => {
                        into.insert(name, value);
                    }
                }
            }
        }
        (into, from) => *into = from,
    }
}

/// Parts of a response other than the body.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub id: Uuid,
    pub org: Option<OrgId>,
    /// Microseconds since the epoch, UTC.
    pub created: i64,
    pub deleted: Option<i64>,
}

impl Frame {
    pub fn of(record: &Record) -> Frame {
        Frame { id: record.id, org: record.org, created: record.created, deleted: None }
    }
}

/// Returns the response with every field of the kind, null if it was never set.
pub fn shown(kind: &Kind, frame: &Frame, mut body: Body) -> Body {
    let mut object = Body::new();
    object.insert("id".into(), frame.id.to_string().into());
    if kind.record == RecordKind::ACL {
        object.insert("_object_org_id".into(), frame.org.map(|org| org.to_string()).into());
    }
    if kind.home == Home::Organization {
        let every = body.get(EVERY_ORG).and_then(Value::as_bool).unwrap_or(false);
        let org = frame.org.filter(|_| !every).map(|org| org.to_string());
        object.insert("org_id".into(), org.into());
    }
    for field in kind.fields.iter().filter(|field| !matches!(field.shape, Shape::Secret { .. })) {
        object.insert(field.name.into(), body.remove(field.name).unwrap_or(Value::Null));
    }
    object.insert("created".into(), format_micros(frame.created).into());
    if kind.has_deleted_at || frame.deleted.is_some() {
        object.insert("deleted_at".into(), frame.deleted.map(format_micros).into());
    }
    object
}

/// Returns the body of a record. A body that cannot be decoded is damaged.
pub fn read(record: &Record) -> Result<Body, RecordsError> {
    let unreadable =
        |error| RecordsError::Internal(format!("{} {} cannot be decoded: {error}", record.kind, record.id));
    serde_json::from_slice(&record.body).map_err(unreadable)
}

/// Returns a text of a request that is not a field of the record. Null and empty mean "not given".
pub fn text_of<'a>(sent: &'a Body, name: &str) -> Result<Option<&'a str>, RecordsError> {
    match sent.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err(RecordsError::BadRequest(format!("`{name}` has to be a string"))),
    }
}

/// Returns an id of a request that is not a field of the record.
pub fn uuid_of(sent: &Body, name: &str) -> Result<Option<Uuid>, RecordsError> {
    let wrong = |_| RecordsError::BadRequest(format!("`{name}` has to be a UUID, not another string"));
    text_of(sent, name)?.map(|text| Uuid::parse_str(text).map_err(wrong)).transpose()
}

/// Returns a flag of a request that is not a field of the record.
pub(crate) fn flag_of(sent: &Body, name: &str) -> Result<bool, RecordsError> {
    match sent.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(on)) => Ok(*on),
        Some(_) => Err(RecordsError::BadRequest(format!("`{name}` has to be true or false"))),
    }
}

/// Returns the text of a field, which is empty if it is missing.
pub fn text_in(body: &Body, name: &str) -> String {
    body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Returns the id in a field.
pub fn id_in(body: &Body, name: &str) -> Option<Uuid> {
    body.get(name).and_then(Value::as_str).and_then(|text| Uuid::parse_str(text).ok())
}

#[cfg(test)]
mod tests;
