//! Slugs of exported spans: the position of a span, as text that services exchange. Four versions are read, and the two
//! newest are written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::error::OtelError;
use crate::json::{BASE64, from_hex, to_hex};

/// Upper bound of a slug, which contains a few ids and sometimes an event to merge into spans.
pub const SLUG_BYTES_MAX: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectType {
    Experiment,
    ProjectLogs,
    PlaygroundLogs,
}

impl ObjectType {
    fn of(byte: u8) -> Result<ObjectType, OtelError> {
        match byte {
            1 => Ok(ObjectType::Experiment),
            2 => Ok(ObjectType::ProjectLogs),
            3 => Ok(ObjectType::PlaygroundLogs),
            _ => Err(OtelError::slug(format!("has the object type {byte}, which is not 1, 2 or 3"))),
        }
    }

    fn byte(self) -> u8 {
        match self {
            ObjectType::Experiment => 1,
            ObjectType::ProjectLogs => 2,
            ObjectType::PlaygroundLogs => 3,
        }
    }
}

/// Object that contains the span: its id, or the arguments to find it.
#[derive(Clone, Debug, PartialEq)]
pub enum SlugObject {
    Id(String),
    Args(Map<String, Value>),
}

/// Ids of the span itself. A slug has all of them or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanIds {
    pub row_id: String,
    pub span_id: String,
    pub root_span_id: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Slug {
    pub object_type: ObjectType,
    pub object: SlugObject,
    pub span: Option<SpanIds>,
    /// Event that is merged into every span below this one.
    pub propagated_event: Option<Map<String, Value>>,
}

/// Names of the packed fields. Their bytes begin at 1.
const FIELDS: [&str; 4] = ["object_id", "row_id", "span_id", "root_span_id"];
const ARGS: &str = "compute_object_metadata_args";
const EVENT: &str = "propagated_event";

impl Slug {
    pub fn decode(text: &str) -> Result<Slug, OtelError> {
        if text.len() > SLUG_BYTES_MAX {
            return Err(OtelError::slug(format!("has more than {SLUG_BYTES_MAX} bytes")));
        }
        let bytes = BASE64.decode(text.trim()).map_err(|why| OtelError::slug(format!("is not base64: {why}")))?;
        let mut reader = Reader { rest: &bytes, length: bytes.len() };
        match reader.byte()? {
            1 => read_first(&mut reader),
            2 => read_second(&mut reader),
            3 => read_packed(&mut reader, |_| 16, |_, bytes| uuid_of(bytes)),
            // Writers pack no object or row ids, but readers accept sixteen bytes of them.
            4 => read_packed(&mut reader, |field| if field == 3 { 8 } else { 16 }, |_, bytes| Ok(to_hex(bytes))),
            version => Err(OtelError::slug(format!("has the version {version}, which is not 1 to 4"))),
        }
    }

    /// Encodes the slug in version 3, which packs ids that are canonical UUIDs.
    pub fn encode_v3(&self) -> Result<String, OtelError> {
        self.encode(3, |_, id| {
            let uuid = Uuid::try_parse(id).ok().filter(|uuid| uuid.hyphenated().to_string() == id)?;
            Some(uuid.into_bytes().to_vec())
        })
    }

    /// Encodes the slug in version 4, which packs span ids of 16 digits and root span ids of 32 digits.
    pub fn encode_v4(&self) -> Result<String, OtelError> {
        self.encode(4, |field, id| {
            let digits = [0, 0, 16, 32][field];
            let bytes = from_hex(id).filter(|_| id.len() == digits)?;
            (to_hex(&bytes) == id).then_some(bytes)
        })
    }

    /// Encodes the slug.
    ///
    /// `pack` receives the position of the field and its id. It returns `None` for ids that cannot be packed without
    /// loss.
    fn encode(&self, version: u8, pack: impl Fn(usize, &str) -> Option<Vec<u8>>) -> Result<String, OtelError> {
        self.check()?;
        let mut tail = Map::new();
        let mut ids = [None; FIELDS.len()];
        match &self.object {
            SlugObject::Id(id) => ids[0] = Some(id),
            SlugObject::Args(args) => drop(tail.insert(ARGS.to_owned(), Value::Object(args.clone()))),
        }
        if let Some(span) = &self.span {
            ids[1..].copy_from_slice(&[Some(&span.row_id), Some(&span.span_id), Some(&span.root_span_id)]);
        }
        if let Some(event) = &self.propagated_event {
            tail.insert(EVENT.to_owned(), Value::Object(event.clone()));
        }
        let (mut packed, mut entries) = (Vec::new(), 0);
        for (place, id) in ids.into_iter().enumerate() {
            let Some(id) = id else { continue };
            match pack(place, id) {
                Some(bytes) => {
                    entries += 1;
                    packed.push(place as u8 + 1);
                    packed.extend_from_slice(&bytes);
                }
                None => drop(tail.insert(FIELDS[place].to_owned(), Value::String(id.clone()))),
            }
        }
        let mut bytes = vec![version, self.object_type.byte(), entries];
        bytes.append(&mut packed);
        if !tail.is_empty() {
            bytes.extend_from_slice(Value::Object(tail).to_string().as_bytes());
        }
        Ok(STANDARD.encode(bytes))
    }

    /// Checks the invariants of slugs, for reading and writing.
    fn check(&self) -> Result<(), OtelError> {
        match &self.object {
            SlugObject::Id(id) if id.is_empty() => return Err(OtelError::slug("has an empty object_id")),
            SlugObject::Args(args) if args.is_empty() => return Err(OtelError::slug(format!("has empty {ARGS}"))),
            _ => {}
        }
        let ids = self.span.iter().flat_map(|span| [&span.row_id, &span.span_id, &span.root_span_id]);
        if ids.into_iter().any(String::is_empty) {
            return Err(OtelError::slug(
                "has an empty row_id, span_id or root_span_id: it must have all of them or none",
            ));
        }
        if self.propagated_event.as_ref().is_some_and(Map::is_empty) {
            return Err(OtelError::slug(format!("has an empty {EVENT}")));
        }
        Ok(())
    }
}

/// Reads version 1. All ids are UUIDs, except possibly the row id, which is the rest.
fn read_first(reader: &mut Reader<'_>) -> Result<Slug, OtelError> {
    let object_type = ObjectType::of(reader.byte()?)?;
    let (has_span, row_is_uuid) = (reader.flag()?, reader.flag()?);
    let object = SlugObject::Id(uuid_of(reader.take(16)?)?);
    read_span_at_end(reader, object_type, object, has_span, row_is_uuid)
}

/// Reads version 2, which is like version 1, but may also name the object by arguments.
fn read_second(reader: &mut Reader<'_>) -> Result<Slug, OtelError> {
    let object_type = ObjectType::of(reader.byte()?)?;
    let (has_id, has_args) = (reader.flag()?, reader.flag()?);
    let (has_span, row_is_uuid) = (reader.flag()?, reader.flag()?);
    let id = if has_id { Some(uuid_of(reader.take(16)?)?) } else { None };
    let mut args = None;
    if has_args {
        let length = reader.take(4)?.iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
        args = Some(object_of(reader.take(length)?)?);
    }
    let object = match (id, args) {
        (Some(id), _) => SlugObject::Id(id),
        (None, Some(args)) => SlugObject::Args(args),
        (None, None) => return Err(OtelError::slug(format!("has neither object_id nor {ARGS}"))),
    };
    read_span_at_end(reader, object_type, object, has_span, row_is_uuid)
}

fn read_span_at_end(
    reader: &mut Reader<'_>,
    object_type: ObjectType,
    object: SlugObject,
    has_span: bool,
    row_is_uuid: bool,
) -> Result<Slug, OtelError> {
    let mut span = None;
    if has_span {
        let (span_id, root_span_id) = (uuid_of(reader.take(16)?)?, uuid_of(reader.take(16)?)?);
        let rest = reader.take(reader.rest.len())?;
        let row_id = if row_is_uuid {
            uuid_of(rest)?
        } else {
            String::from_utf8(rest.to_vec()).map_err(|_| OtelError::slug("has a row_id that is not valid UTF-8"))?
        };
        span = Some(SpanIds { row_id, span_id, root_span_id });
    }
    let slug = Slug { object_type, object, span, propagated_event: None };
    slug.check()?;
    Ok(slug)
}

/// Reads versions 3 and 4: packed fields, then a JSON object with further fields, which take precedence.
fn read_packed(
    reader: &mut Reader<'_>,
    length_of: impl Fn(u8) -> usize,
    unpack: impl Fn(u8, &[u8]) -> Result<String, OtelError>,
) -> Result<Slug, OtelError> {
    let object_type = ObjectType::of(reader.byte()?)?;
    let mut ids: [Option<String>; FIELDS.len()] = Default::default();
    for _ in 0..reader.byte()? {
        let field = reader.byte()?;
        let Some(id) = usize::from(field).checked_sub(1).and_then(|place| ids.get_mut(place)) else {
            return Err(OtelError::slug(format!("has a field {field} at byte {}; fields are 1 to 4", reader.at() - 1)));
        };
        *id = Some(unpack(field, reader.take(length_of(field))?)?);
    }
    let mut tail = Map::new();
    if !reader.rest.is_empty() {
        tail = object_of(reader.take(reader.rest.len())?)?;
    }
    for (name, id) in FIELDS.iter().zip(&mut ids) {
        match tail.remove(*name) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => *id = Some(text),
            Some(_) => return Err(OtelError::slug(format!("has a {name} that is not text"))),
        }
    }
    let given = ids.map(|id| id.filter(|id| !id.is_empty()));
    let args = map_of(&mut tail, ARGS)?;
    let propagated_event = map_of(&mut tail, EVENT)?;
    let [object_id, row_id, span_id, root_span_id] = given;
    let object = match (object_id, args) {
        (Some(id), None) => SlugObject::Id(id),
        (None, Some(args)) => SlugObject::Args(args),
        (Some(_), Some(_)) => return Err(OtelError::slug(format!("has both object_id and {ARGS}"))),
        (None, None) => return Err(OtelError::slug(format!("has neither object_id nor {ARGS}"))),
    };
    let span = match (row_id, span_id, root_span_id) {
        (Some(row_id), Some(span_id), Some(root_span_id)) => Some(SpanIds { row_id, span_id, root_span_id }),
        (None, None, None) => None,
        _ => {
            return Err(OtelError::slug(
                "has only some of row_id, span_id and root_span_id: it must have all of them or none",
            ));
        }
    };
    Ok(Slug { object_type, object, span, propagated_event })
}

/// Takes an object from the tail. An empty object counts as absent, as with other readers.
fn map_of(tail: &mut Map<String, Value>, name: &str) -> Result<Option<Map<String, Value>>, OtelError> {
    match tail.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(map)) => Ok(Some(map).filter(|map| !map.is_empty())),
        Some(_) => Err(OtelError::slug(format!("has {name} that are not an object"))),
    }
}

fn object_of(bytes: &[u8]) -> Result<Map<String, Value>, OtelError> {
    serde_json::from_slice(bytes).map_err(|why| OtelError::slug(format!("has a part that is not a JSON object: {why}")))
}

fn uuid_of(bytes: &[u8]) -> Result<String, OtelError> {
    let uuid =
        Uuid::from_slice(bytes).map_err(|why| OtelError::slug(format!("has an id that is not a UUID: {why}")))?;
    Ok(uuid.hyphenated().to_string())
}

struct Reader<'a> {
    rest: &'a [u8],
    length: usize,
}

impl<'a> Reader<'a> {
    fn at(&self) -> usize {
        self.length - self.rest.len()
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], OtelError> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            return Err(OtelError::slug(format!("is truncated: {count} bytes are missing at byte {}", self.at())));
        };
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, OtelError> {
        self.take(1).map(|taken| taken[0])
    }

    fn flag(&mut self) -> Result<bool, OtelError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(OtelError::slug(format!("has {other} at byte {}, where only 0 or 1 is valid", self.at() - 1))),
        }
    }
}
