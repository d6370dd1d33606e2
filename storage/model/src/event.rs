//! One event row: its fields, their limits, and the conversion of a client's JSON into row operations.
//!
//! `prepare` is the only gate: rows that pass it are stored, replicated and replayed, so it refuses everything that
//! apply could not take. It uses no clock and makes no ids; both are inputs. Unknown fields are dropped, since clients
//! send many. Known fields are checked, and an error names row and field.
//!
//! Stored fields of a row:
//!
//! | row | document |
//! |---|---|
//! | replace | the whole row, `id`, `created`, `span_id`, `root_span_id`, `span_parents`, `is_root` first |
//! | merge | the fields as sent; ids and `created` travel in the operation, `span_parents` here where given |
//! | delete | `{}` |
//! | comment | `id`, `created`, `origin`, `comment`; the operation's id is the row it hangs on |

mod control;
mod fields;
mod sent;
mod time;

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};
use thiserror::Error;

pub use self::sent::{BodyOfList, ListUnder, SentItem, SentRow};
pub use self::time::{civil_from_days, days_from_civil, days_of_month, format_micros, parse_created};

use self::control::Control;
use self::fields::Identity;
use crate::command::{Action, RowOp};
use crate::ids::ObjectKind;

/// Levels of nesting of a row, the row itself being the first.
pub const DEPTH_MAX: usize = 64;
/// One row as it is stored, with its rules and its audit record.
pub const ROW_BYTES_MAX: usize = 10 << 20;
/// Any of a row's ids.
pub const ID_BYTES_MAX: usize = 1024;
/// A key of any object inside a row.
pub const KEY_BYTES_MAX: usize = 16 << 10;
/// Merge paths of one row: each is held against every key that is merged.
pub const MERGE_PATHS_MAX: usize = 100;
/// Field of a project's log with the state of online scoring. Writers set it, never clients; a merge replaces it whole.
pub const SCORING_STATE: &str = "_async_scoring_state";
/// Items of `_array_delete` of one row: each walks the document.
pub const ARRAY_DELETES_MAX: usize = 32;

/// Context in which the edge prepares rows.
pub struct PrepareContext<'a> {
    /// Microseconds since the epoch, UTC.
    pub now_micros: i64,
    /// A new row id, unlike any other.
    pub new_id: &'a mut dyn FnMut() -> String,
}

impl fmt::Debug for PrepareContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrepareContext").field("now_micros", &self.now_micros).finish_non_exhaustive()
    }
}

/// Why a row is refused: which, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct RowError {
    /// The row's place in the request, from 0.
    pub row: usize,
    /// Field names joined by dots; empty where it is the row itself.
    pub path: String,
    pub problem: String,
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return write!(f, "row {} {}", self.row, self.problem);
        }
        write!(f, "row {}: `{}` {}", self.row, self.path, self.problem)
    }
}

/// One row of a request, checked: an owned `RowOp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedRow {
    /// Its place in the request, from 0.
    pub index: usize,
    /// Id returned to the client: a comment's own id, else `id`.
    pub row_id: String,
    /// The row that is written, or that a comment hangs on.
    pub id: String,
    pub action: Action,
    /// A comment's own id. Empty, like `root_span_id`, where a delete names none.
    pub span_id: String,
    pub root_span_id: String,
    pub is_root: bool,
    /// Microseconds since the epoch, UTC.
    pub created: i64,
    pub doc: Vec<u8>,
    pub rules: Vec<u8>,
    pub audit: Vec<u8>,
}

impl PreparedRow {
    pub fn as_op(&self) -> RowOp<'_> {
        RowOp {
            id: &self.id,
            action: self.action,
            span_id: &self.span_id,
            root_span_id: &self.root_span_id,
            is_root: self.is_root,
            created: self.created,
            doc: &self.doc,
            rules: &self.rules,
            audit: &self.audit,
        }
    }
}

/// Defect of a row, before the row's number is known.
#[derive(Debug)]
struct Problem {
    path: String,
    problem: String,
}

impl Problem {
    fn new(path: impl Into<String>, problem: impl Into<String>) -> Problem {
        Problem { path: path.into(), problem: problem.into() }
    }

    /// "`path` is 1.5; a score is .."
    fn unlike(path: impl Into<String>, found: &Value, right: &str) -> Problem {
        Problem::new(path, format!("is {}; {right}", described(found)))
    }
}

/// A client's row as what will be stored of it.
pub fn prepare(
    kind: ObjectKind,
    index: usize,
    row: impl Into<SentItem>,
    context: &mut PrepareContext<'_>,
) -> Result<PreparedRow, RowError> {
    prepared(kind, index, row.into(), context).map_err(|Problem { path, problem }| RowError {
        row: index,
        path: shortened(&path),
        problem,
    })
}

fn prepared(
    kind: ObjectKind,
    index: usize,
    row: SentItem,
    context: &mut PrepareContext<'_>,
) -> Result<PreparedRow, Problem> {
    let sent = match row {
        SentItem::Row(sent) => sent,
        SentItem::Other(other) => return Err(Problem::unlike("", &other, "a row is a JSON object")),
    };
    check_shape(&sent.fields)?;
    let control = Control::of(&sent.fields)?;
    let identity = Identity::of(&sent.fields)?;
    let row = if control.delete {
        deletion(index, identity, &control, context)?
    } else if sent.get("comment").is_some_and(|comment| !comment.is_null()) {
        comment(index, &sent.fields, identity, &control, context)?
    } else {
        event(kind, index, sent, identity, &control, context)?
    };
    let bytes = row.doc.len() + row.rules.len() + row.audit.len();
    if bytes > ROW_BYTES_MAX {
        return Err(Problem::new("", format!("has {bytes} bytes; a row has at most {ROW_BYTES_MAX}")));
    }
    Ok(row)
}

fn event(
    kind: ObjectKind,
    index: usize,
    mut sent: SentRow,
    identity: Identity,
    control: &Control,
    context: &mut PrepareContext<'_>,
) -> Result<PreparedRow, Problem> {
    let parents = identity.parents.or_else(|| control.parent.clone().map(|parent| vec![parent]));
    let id = identity.id.unwrap_or_else(|| (context.new_id)());
    let mut row = PreparedRow {
        index,
        row_id: id.clone(),
        action: if control.merge { Action::Merge } else { Action::Upsert },
        span_id: identity.span_id.unwrap_or_else(|| id.clone()),
        root_span_id: identity.root_span_id.unwrap_or_else(|| id.clone()),
        id,
        is_root: parents.is_none(),
        created: identity.created.unwrap_or_else(|| now(context)),
        doc: Vec::new(),
        rules: Vec::new(),
        audit: control.audit.clone(),
    };
    let mut doc = DocWriter::with_capacity(sent.bytes_about());
    if control.merge {
        if let Some(parents) = &parents {
            doc.put("span_parents", parents);
        }
    } else {
        // A replacing row is what a merge makes where there is no row.
        doc.put("id", &row.id);
        doc.put("created", &format_micros(row.created));
        doc.put("span_id", &row.span_id);
        doc.put("root_span_id", &row.root_span_id);
        doc.put("span_parents", &parents);
        doc.put("is_root", &row.is_root);
    }
    let has_state = kind == ObjectKind::ProjectLogs && sent.fields.contains_key(SCORING_STATE);
    for (name, value) in std::mem::take(&mut sent.fields) {
        match sent.text(&name) {
            Some(text) if fields::takes_text(kind, &name, text) => doc.put_text(&name, text),
            Some(text) => {
                let value = serde_json::from_slice(text).unwrap_or_default(); // it was written by the same library
                fields::checked(kind, control.merge, &name, value)?;
            }
            None => {
                if let Some(value) = fields::checked(kind, control.merge, &name, value)? {
                    doc.put(&name, &value);
                }
            }
        }
    }
    row.doc = doc.finish();
    if control.merge {
        let mut rules = control.rules.clone();
        if has_state {
            rules.merge_paths.push(vec![SCORING_STATE.to_owned()]);
        }
        row.rules = rules.to_bytes();
    } else {
        let whole = control.rules.without_deleted(std::mem::take(&mut row.doc));
        row.doc = whole.map_err(|error| Problem::new("", format!("does not fold: {error}")))?;
    }
    Ok(row)
}

/// Writes a document member by member.
struct DocWriter(Vec<u8>);

impl DocWriter {
    fn with_capacity(bytes: usize) -> DocWriter {
        const HEAD_BYTES: usize = 256;
        let mut text = Vec::with_capacity(bytes + HEAD_BYTES);
        text.push(b'{');
        DocWriter(text)
    }

    fn put(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        self.key(name);
        self.write(value);
    }

    /// A value that is JSON text already.
    fn put_text(&mut self, name: &str, text: &[u8]) {
        self.key(name);
        self.0.extend_from_slice(text);
    }

    fn key(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        self.write(name);
        self.0.push(b':');
    }

    fn write(&mut self, value: &(impl Serialize + ?Sized)) {
        // Memory takes what is written, and JSON values and texts have a form.
        serde_json::to_writer(&mut self.0, value).expect("a value that can be written");
    }

    fn finish(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }
}

fn deletion(
    index: usize,
    identity: Identity,
    control: &Control,
    context: &PrepareContext<'_>,
) -> Result<PreparedRow, Problem> {
    let id = identity.id.ok_or_else(|| Problem::new("id", "is missing; a delete names its row"))?;
    Ok(PreparedRow {
        index,
        row_id: id.clone(),
        id,
        action: Action::Delete,
        span_id: identity.span_id.unwrap_or_default(),
        root_span_id: identity.root_span_id.unwrap_or_default(),
        is_root: false,
        created: identity.created.unwrap_or_else(|| now(context)),
        doc: b"{}".to_vec(),
        rules: Vec::new(),
        audit: control.audit.clone(),
    })
}

fn comment(
    index: usize,
    sent: &Map<String, Value>,
    identity: Identity,
    control: &Control,
    context: &mut PrepareContext<'_>,
) -> Result<PreparedRow, Problem> {
    let body = sent.get("comment").cloned().unwrap_or_default();
    fields::comment(&body)?;
    let origin = sent.get("origin").cloned().unwrap_or_default();
    let target = fields::id_in(origin.get("id"), "origin.id")?
        .ok_or_else(|| Problem::new("origin.id", "is missing; a comment names the row it hangs on"))?;
    let id = identity.id.unwrap_or_else(|| (context.new_id)());
    let created = identity.created.unwrap_or_else(|| now(context));
    let mut doc = Map::new();
    doc.insert("id".to_owned(), Value::from(id.as_str()));
    doc.insert("created".to_owned(), Value::from(format_micros(created)));
    doc.insert("origin".to_owned(), origin);
    doc.insert("comment".to_owned(), body);
    Ok(PreparedRow {
        index,
        row_id: id.clone(),
        id: target,
        action: Action::Comment,
        span_id: id,
        root_span_id: String::new(),
        is_root: false,
        created,
        doc: Value::Object(doc).to_string().into_bytes(),
        rules: Vec::new(),
        audit: control.audit.clone(),
    })
}

/// Whole milliseconds, as clients read them back.
fn now(context: &PrepareContext<'_>) -> i64 {
    const MICROS_PER_MILLI: i64 = 1000;
    context.now_micros.div_euclid(MICROS_PER_MILLI) * MICROS_PER_MILLI
}

/// Depth and key lengths of everything in the row, known fields or not.
fn check_shape(row: &Map<String, Value>) -> Result<(), Problem> {
    row.iter().try_for_each(|(name, value)| {
        check_key(name, name)?;
        check_value(name, value, 2)
    })
}

fn check_value(field: &str, value: &Value, level: usize) -> Result<(), Problem> {
    if level > DEPTH_MAX && (value.is_object() || value.is_array()) {
        return Err(Problem::new(field, format!("is nested too deep; a row has at most {DEPTH_MAX} levels")));
    }
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| check_value(field, item, level + 1)),
        Value::Object(members) => members.iter().try_for_each(|(key, value)| {
            check_key(field, key)?;
            check_value(field, value, level + 1)
        }),
        _ => Ok(()),
    }
}

fn check_key(field: &str, key: &str) -> Result<(), Problem> {
    if key.len() <= KEY_BYTES_MAX {
        return Ok(());
    }
    Err(Problem::new(field, format!("has a key of {} bytes; a key has at most {KEY_BYTES_MAX}", key.len())))
}

/// Text of an error: a value in few words.
fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("{:?}", shortened(text)),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn shortened(text: &str) -> String {
    const SHOWN_CHARS: usize = 100;
    let mut short: String = text.chars().take(SHOWN_CHARS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// A text nested deeper than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("nested deeper than {max} levels at byte {at}")]
pub struct TooDeep {
    pub max: usize,
    pub at: usize,
}

/// Counts the values of a JSON text before it is parsed, if it nests at most `depth_max` levels. A parser may recurse,
/// and a parsed value takes far more memory than its text. Only counts brackets and commas outside of strings, so an
/// empty list counts as one more. Invalid JSON is left to the parser.
pub fn values_within(text: &[u8], depth_max: usize) -> Result<usize, TooDeep> {
    counted_within(text, depth_max, 0).map(|counted| counted.values)
}

/// Counts of a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    pub values: usize,
    /// Objects at the requested level, which are also counted as values.
    pub objects: usize,
}

/// The same, and how many objects there are at one level, the outermost value being of level 1.
pub fn counted_within(text: &[u8], depth_max: usize, level: usize) -> Result<Counted, TooDeep> {
    let (mut depth, mut values, mut objects, mut at) = (0_usize, 1_usize, 0_usize, 0);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => at = end_of_string(text, at + 1),
            b'[' | b'{' => {
                depth += 1;
                values += 1;
                objects += usize::from(depth == level && *byte == b'{');
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' => values += 1,
            _ => {}
        }
        if depth > depth_max {
            return Err(TooDeep { max: depth_max, at });
        }
        at += 1;
    }
    Ok(Counted { values, objects })
}

/// Returns the position of the quote that ends a string, or the end of the text if there is none.
fn end_of_string(text: &[u8], mut at: usize) -> usize {
    while let Some(next) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += next;
        if text[at] == b'"' {
            return at;
        }
        at += 2; // what is escaped ends nothing
    }
    text.len()
}
