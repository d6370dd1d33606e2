//! History of writes to an object, and its replay to another object.
//!
//! An operation is a line of JSON with its documents as stored, because parsing and printing would change some numbers.

use std::fmt;

use assay_storage_model::command::{Action, RequestId};
use assay_storage_model::event::{ID_BYTES_MAX, PreparedRow, ROW_BYTES_MAX};
use assay_storage_model::merge::doc_fields;
use assay_storage_model::{ObjectKey, Xact};
use assay_storage_shard::{View, WrittenOp};
use bytes::Bytes;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::read_path::fetch::{self, Reading, explain};
use crate::read_path::page::PAGE_BYTES_MAX;
use crate::write_path::deliver::deliver;
use crate::write_path::outcomes::Acknowledged;
use crate::write_path::prepare::Prepared;
use crate::write_path::work::Work;
use crate::{FetchPage, Objects, Patience, ReadError, RowHome, WriteError, together};

/// Number of operations in the first read, and upper bound of later reads.
const OPS_READ_FIRST: usize = 16;
const OPS_READ_MAX: usize = 1024;
/// Intended size of one read.
const READ_BYTES: usize = 2 << 20;
/// Upper bound of the bytes of a line without its documents and ids.
const FRAME_BYTES: usize = 256;

/// Position in the history: after this many operations of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryPosition {
    pub xact: Xact,
    pub done: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryRequest {
    pub from: HistoryPosition,
    /// Version to read at. `None` includes every write acknowledged before the call.
    pub version: Option<Xact>,
}

/// Page of operations in the order of the writes. A write may continue on the next page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryPage {
    /// Lines without line breaks; see [`HistoryOp::parse`].
    pub lines: Vec<Bytes>,
    pub next: Option<HistoryPosition>,
    pub version: Xact,
}

/// Operation of a write.
#[derive(Clone, PartialEq, Eq)]
pub struct HistoryOp {
    /// Id of the write.
    pub xact: Xact,
    pub row: PreparedRow,
}

impl fmt::Debug for HistoryOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HistoryOp({} {:?} {})", self.xact, self.row.action, self.row.id)
    }
}

impl HistoryOp {
    pub fn parse(line: &[u8]) -> Result<HistoryOp, String> {
        let fields = doc_fields(line).map_err(|why| why.to_string())?;
        let raw = |name: &str| {
            let found = fields.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
            found.ok_or_else(|| format!("an operation has no `{name}`"))
        };
        let xact: String = plain(raw("xact")?, "xact")?;
        let id: String = plain(raw("id")?, "id")?;
        let created: String = plain(raw("created")?, "created")?;
        let text = |name: &str| raw(name).map_or(Vec::new(), <[u8]>::to_vec);
        let row = PreparedRow {
            index: 0,
            row_id: String::new(),
            id,
            action: plain(raw("action")?, "action")?,
            span_id: plain(raw("span_id")?, "span_id")?,
            root_span_id: plain(raw("root_span_id")?, "root_span_id")?,
            is_root: plain(raw("is_root")?, "is_root")?,
            created: created.parse().map_err(|_| "`created` is not a number of microseconds".to_owned())?,
            doc: raw("doc")?.to_vec(),
            rules: text("rules"),
            audit: text("audit"),
        };
        check(&row)?;
        Ok(HistoryOp { xact: Xact::parse(&xact).map_err(|why| why.to_string())?, row })
    }

    /// Returns the approximate size of the operation in memory and in a command.
    pub fn bytes(&self) -> usize {
        let PreparedRow { id, span_id, root_span_id, doc, rules, audit, .. } = &self.row;
        FRAME_BYTES + id.len() + span_id.len() + root_span_id.len() + doc.len() + rules.len() + audit.len()
    }
}

fn plain<'t, T: Deserialize<'t>>(text: &'t [u8], name: &str) -> Result<T, String> {
    serde_json::from_slice(text).map_err(|why| format!("`{name}` of an operation: {why}"))
}

/// Checks the invariants that the state machine and readers rely on.
fn check(row: &PreparedRow) -> Result<(), String> {
    let PreparedRow { id, span_id, root_span_id, doc, rules, audit, action, .. } = row;
    let long = [id, span_id, root_span_id].into_iter().any(|id| id.len() > ID_BYTES_MAX);
    if long || id.is_empty() {
        return Err(format!("an id of an operation is empty or longer than {ID_BYTES_MAX} bytes"));
    }
    if doc.len() + rules.len() + audit.len() > ROW_BYTES_MAX {
        return Err(format!("the operation on row {id} is larger than {ROW_BYTES_MAX} bytes"));
    }
    for (name, text) in [("doc", doc), ("rules", rules), ("audit", audit)] {
        let is_given = name == "doc" || !text.is_empty();
        let is_object = || text.starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(text).is_ok();
        if is_given && !is_object() {
            return Err(format!("`{name}` of the operation on row {id} is not a JSON object"));
        }
    }
    if is_empty(doc) && matches!(action, Action::Upsert | Action::Comment) {
        return Err(format!("the operation on row {id} writes nothing"));
    }
    Ok(())
}

/// Returns whether a valid JSON object has no members. Readers cannot show a row without any.
fn is_empty(object: &[u8]) -> bool {
    object.strip_prefix(b"{").is_some_and(|rest| rest.trim_ascii_start().starts_with(b"}"))
}

fn line_of(op: &WrittenOp) -> Bytes {
    let text = |text: &str| serde_json::to_string(text).expect("a text has a form");
    let action = serde_json::to_string(&op.action).expect("an action has a form");
    let mut line = Vec::with_capacity(FRAME_BYTES + op.id.len() * 3 + op.doc.len() + op.rules.len() + op.audit.len());
    let head = format!(
        r#"{{"xact":"{}","action":{action},"id":{},"span_id":{},"root_span_id":{},"is_root":{},"created":"{}","doc":"#,
        op.xact,
        text(op.id.as_str()),
        text(op.span_id.as_str()),
        text(op.root_span_id.as_str()),
        op.is_root,
        op.created,
    );
    line.extend_from_slice(head.as_bytes());
    put_on_one_line(&mut line, &op.doc);
    for (name, part) in [(&br#","rules":"#[..], &op.rules), (&br#","audit":"#[..], &op.audit)] {
        if !part.is_empty() {
            line.extend_from_slice(name);
            put_on_one_line(&mut line, part);
        }
    }
    line.push(b'}');
    Bytes::from(line)
}

/// Appends a JSON text on one line. Line breaks, which occur only between tokens, become spaces.
fn put_on_one_line(line: &mut Vec<u8>, text: &[u8]) {
    line.extend(text.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
}

/// Returns the lines of a page. The cursor is the position of the next page.
pub(crate) fn past(view: &View, home: &RowHome, asked: &HistoryRequest) -> Result<FetchPage, ReadError> {
    let object = &home.object;
    let explain = |why| explain(object, why);
    let (at, from) = (asked.version.unwrap_or_else(|| view.version()), asked.from);
    let found = view.past(object, from.xact, at).map_err(explain)?;
    let is_all = found.len() < assay_storage_shard::PICKED_MAX;
    let done = found.iter().take(from.done).take_while(|op| op.xact == from.xact).count();
    let mut left = &found[done..];
    let (mut events, mut bytes, mut place): (Vec<Bytes>, usize, HistoryPosition) = (Vec::new(), 0, from);
    while !left.is_empty() && bytes < PAGE_BYTES_MAX {
        let fitting = match events.len() {
            0 => OPS_READ_FIRST,
            read => READ_BYTES / (bytes / read).max(1),
        };
        let (now, later) = left.split_at(fitting.clamp(1, OPS_READ_MAX).min(left.len()));
        for op in view.past_ops(now).map_err(explain)? {
            let line = line_of(&op);
            bytes += line.len();
            events.push(line);
            let done = if op.xact == place.xact { place.done + 1 } else { 1 };
            place = HistoryPosition { xact: op.xact, done };
        }
        left = later;
    }
    let is_over = left.is_empty() && is_all;
    let cursor = (!is_over).then(|| format!("{}.{}", place.xact, place.done));
    Ok(FetchPage { events, cursor, version: at })
}

fn place_of(cursor: &str) -> Option<HistoryPosition> {
    let (xact, done) = cursor.split_once('.')?;
    Some(HistoryPosition { xact: Xact::parse(xact).ok()?, done: done.parse().ok()? })
}

impl Objects {
    /// Returns a page of the history of an object from a position. The page includes every write acknowledged before
    /// the call. Later pages are read at the version of the first.
    pub async fn past(
        &self,
        object: ObjectKey,
        from: HistoryPosition,
        version: Option<Xact>,
    ) -> Result<HistoryPage, ReadError> {
        // The lines do not contain the project, so its id does not matter.
        let home = RowHome { object, org: object.org, project_id: Uuid::nil() };
        let reading = Reading::Past(HistoryRequest { from, version });
        let FetchPage { events: lines, cursor, version } =
            fetch::fetch(&self.shared.registry, &self.shared.readers, home, reading, &self.asker).await?;
        let broken = || ReadError::Internal("the position of the next page cannot be decoded".into());
        let next = cursor.map(|cursor| place_of(&cursor).ok_or_else(broken)).transpose()?;
        Ok(HistoryPage { lines, next, version })
    }

    /// Writes operations again as one write with an idempotency key. Their documents are stored forms, so they are not
    /// prepared again.
    pub async fn write_again(
        &self,
        object: ObjectKey,
        ops: Vec<HistoryOp>,
        request: RequestId,
    ) -> Result<Xact, WriteError> {
        let rows = ops.into_iter().map(|op| op.row).collect();
        let mut write = Prepared { object, request: Some(request), rows, expected: Vec::new(), bytes: 0 };
        write.bytes = write.checked_bytes().map_err(|why| WriteError::TooLarge { write: 0, why: why.to_string() })?;
        let rows = (0..write.rows.len()).collect();
        let works = vec![Work::Prepared(write)];
        let delivered = deliver(&self.shared.registry, works, Patience::usual(), &self.asker).await;
        let outcomes = delivered.map_err(|why| self.late(Some(object.org), why.into()))?;
        let done = together(vec![(0, object)], outcomes, &[rows]).map_err(|why| self.late(Some(object.org), why))?;
        let nothing = || WriteError::Unknown { why: "a write has no outcome".into(), written: Vec::new() };
        done.first().map(|Acknowledged { xact, .. }| *xact).ok_or_else(nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_storage_shard::Text;

    fn op(action: Action, doc: &str, rules: &str) -> WrittenOp {
        WrittenOp {
            xact: Xact::new(1_761_000_000, 3),
            id: Text::copied("a \"quoted\" é"),
            action,
            span_id: Text::copied("s"),
            root_span_id: Text::copied(""),
            is_root: true,
            created: -1,
            doc: Bytes::copy_from_slice(doc.as_bytes()),
            rules: Bytes::copy_from_slice(rules.as_bytes()),
            audit: Bytes::new(),
        }
    }

    #[test]
    fn an_operation_reads_back_from_its_line_with_the_text_of_its_document() {
        let doc = r#"{"n":123456789012345678901234567890,"x":1.50,"t":"a\nb"}"#;
        let line = line_of(&op(Action::Merge, doc, r#"{"merge_paths":[]}"#));
        let found = HistoryOp::parse(&line).expect("reads");
        assert_eq!((found.xact, found.row.action), (Xact::new(1_761_000_000, 3), Action::Merge));
        assert_eq!(found.row.id, "a \"quoted\" é");
        assert_eq!((found.row.span_id.as_str(), found.row.root_span_id.as_str()), ("s", ""));
        assert_eq!((found.row.created, found.row.is_root), (-1, true));
        assert_eq!(found.row.doc, doc.as_bytes());
        assert_eq!(found.row.rules, br#"{"merge_paths":[]}"#);
        assert!(found.row.audit.is_empty());
    }

    #[test]
    fn a_document_of_several_lines_comes_on_one() {
        let line = line_of(&op(Action::Upsert, "{\n \"x\":\r\n 1}", ""));
        assert!(!line.contains(&b'\n') && !line.contains(&b'\r'));
        let doc = HistoryOp::parse(&line).expect("reads").row.doc;
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&doc).expect("JSON"), serde_json::json!({"x": 1}));
    }

    #[test]
    fn what_no_write_could_have_made_is_refused() {
        let good = String::from_utf8(line_of(&op(Action::Upsert, r#"{"x":1}"#, "")).to_vec()).expect("text");
        assert!(HistoryOp::parse(good.as_bytes()).is_ok());
        for (from, to) in [
            (r#"{"x":1}"#, "{}"),
            (r#"{"x":1}"#, "{ }"),
            (r#"{"x":1}"#, "{\t \r}"),
            (r#"{"x":1}"#, "[1]"),
            (r#"{"x":1}"#, r#"{"x":1"#),
            (r#""upsert""#, r#""remove""#),
            (r#""xact":"1"#, r#""xact":"x"#),
            (r#""created":"-1""#, r#""created":-1"#),
            (r#""span_id":"s","#, ""),
            (r#"\"quoted\" "#, &"x".repeat(ID_BYTES_MAX)),
        ] {
            let bad = good.replacen(from, to, 1);
            assert!(bad != good && HistoryOp::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
