//! Reading of a project's log: the rows that writes changed, in the order of the writes, each at its newest version.
//!
//! It runs on threads that may block. A part may be read again: what follows from it depends only on the log.

use std::collections::HashMap;

use assay_node_online_scoring::{CONTROL_FIELD, ScoringState, finish_after_write};
use assay_storage_model::command::Action;
use assay_storage_model::event::SCORING_STATE;
use assay_storage_model::merge::{MergeError, doc_field, doc_fields};
use assay_storage_model::{ObjectKey, Xact};
use assay_storage_shard::{Row, ShardError, View, WrittenOp};
use serde_json::{Map, Value};

/// Operations that are read at once.
const PART_OPS_MAX: usize = 512;
const MILLIS_PER_SECOND: u64 = 1000;
/// Members of a merge that people and scoring add to a row. A merge of these alone is no activity of the trace.
const ADDED_MEMBERS: [&str; 8] =
    ["scores", "tags", "classifications", "facets", "id", "_is_merge", SCORING_STATE, CONTROL_FIELD];

/// Part of the log.
#[derive(Debug)]
pub(crate) struct LogPart {
    pub changes: Vec<RowChange>,
    /// Position behind the part.
    pub read_xact: u64,
    /// Version at which the rows are.
    pub version: Xact,
    /// Whether the part ends at the end of the log.
    pub is_last: bool,
}

/// Row that writes of a part changed.
#[derive(Debug)]
pub(crate) struct RowChange {
    pub id: String,
    pub root_span_id: String,
    /// Newest version; `None` if the row is deleted.
    pub row: Option<Box<ChangedRow>>,
    /// Newest write of the part that was an activity of the trace, with its time.
    pub activity: Option<(u64, u64)>,
}

/// Newest version of a row.
#[derive(Debug)]
pub(crate) struct ChangedRow {
    pub stored: Row,
    pub members: Map<String, Value>,
    pub state: ScoringState,
    /// Newest write of the part that finished the span.
    pub finish_xact: Option<u64>,
    /// Whether the row replaced one whose scoring was disabled.
    pub was_disabled: bool,
}

/// Reads the part of the log after a position.
pub(crate) fn read_part(view: &View, object: &ObjectKey, from_xact: u64) -> Result<LogPart, ShardError> {
    let version = view.version();
    let found = view.past(object, Xact(from_xact.saturating_add(1)), version)?;
    let mut end = found.len().min(PART_OPS_MAX);
    // a write is read as a whole, since its operations share their version
    while end > 0 && end < found.len() && found[end].xact == found[end - 1].xact {
        end += 1;
    }
    let is_last = end == found.len();
    let ops = view.past_ops(&found[..end])?;
    let read_xact = if is_last { version.0.max(from_xact) } else { ops.last().map_or(from_xact, |op| op.xact.0) };
    let mut order: Vec<Vec<&WrittenOp>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for op in ops.iter().filter(|op| op.action != Action::Comment) {
        let place = *places.entry(op.id.as_str()).or_insert_with(|| {
            order.push(Vec::new());
            order.len() - 1
        });
        order[place].push(op);
    }
    let changes = order.into_iter().map(|ops| row_change(view, object, &ops)).collect::<Result<_, _>>()?;
    Ok(LogPart { changes, read_xact, version, is_last })
}

fn row_change(view: &View, object: &ObjectKey, ops: &[&WrittenOp]) -> Result<RowChange, ShardError> {
    let id = ops.first().map(|op| op.id.as_str().to_owned()).unwrap_or_default();
    let told = ops.iter().rev().map(|op| op.root_span_id.as_str()).find(|root| !root.is_empty()).unwrap_or_default();
    let stored = view.get(object, &id, view.version())?;
    let began = stored.as_ref().map(|row| row.key.first());
    let mut fold = WriteFold { view, object, began, finish_xact: None, was_disabled: false, activity: None };
    for op in ops {
        fold.write(op)?;
    }
    let root_span_id = stored.as_ref().map_or(told, |row| row.root_span_id.as_str()).to_owned();
    let WriteFold { finish_xact, was_disabled, activity, .. } = fold;
    let row = stored.and_then(|stored| {
        let members: Map<String, Value> = serde_json::from_slice(&stored.doc).ok()?;
        let state = ScoringState::of_row(&members);
        let state = state.inspect_err(|why| tracing::warn!(%object, id, %why, "a state of online scoring is damaged"));
        let was_disabled = was_disabled && matches!(state, Ok(ScoringState::Absent));
        Some(Box::new(ChangedRow { stored, members, state: state.ok()?, finish_xact, was_disabled }))
    });
    Ok(RowChange { id, root_span_id, row, activity })
}

/// Fold over the writes of one row.
struct WriteFold<'v> {
    view: &'v View,
    object: &'v ObjectKey,
    /// Write that made the row, if it still exists.
    began: Option<Xact>,
    finish_xact: Option<u64>,
    was_disabled: bool,
    activity: Option<(u64, u64)>,
}

impl WriteFold<'_> {
    fn write(&mut self, op: &WrittenOp) -> Result<(), ShardError> {
        let xact = op.xact.0;
        if is_activity(op) {
            self.activity = Some((xact, u64::from(op.xact.seconds()) * MILLIS_PER_SECOND));
        }
        let Some(began) = self.began.filter(|_| matches!(op.action, Action::Upsert | Action::Merge)) else {
            self.finish_xact = None;
            return Ok(());
        };
        let before = if began < op.xact { self.version(op, op.xact.0.saturating_sub(1))? } else { None };
        let is_whole = op.action == Action::Upsert;
        let after = if is_whole { Some(op.doc.clone()) } else { self.version(op, xact)?.map(|row| row.doc) };
        let Some(after) = after else { return Ok(()) };
        let before_doc = before.as_ref().map(|row| &row.doc[..]);
        self.was_disabled = match is_whole {
            true => before_doc.is_some_and(|doc| matches!(state_of(doc), ScoringState::Disabled(_))),
            false => self.was_disabled,
        };
        let (ends_before, ends_after) = (before_doc.map(ends_of), ends_of(&after));
        let finished = finish_after_write(self.finish_xact, xact, is_whole, ends_before.as_ref(), &ends_after);
        let skips = marks_skip(before_doc.filter(|_| !is_whole), &op.doc);
        self.finish_xact = if skips && finished == Some(xact) { None } else { finished };
        Ok(())
    }

    fn version(&self, op: &WrittenOp, at: u64) -> Result<Option<Row>, ShardError> {
        match self.view.get(self.object, op.id.as_str(), Xact(at)) {
            // history below the floor is gone, as if the row had begun there
            Err(ShardError::Past { .. }) => Ok(None),
            found => found,
        }
    }
}

/// Returns the members of a document that tell whether its span is finished.
fn ends_of(doc: &[u8]) -> Map<String, Value> {
    let mut ends = Map::new();
    let field = |name: &str| doc_field(doc, name).ok().flatten();
    if let Some(metrics) = field("metrics").and_then(|text| serde_json::from_slice(text).ok()) {
        ends.insert("metrics".to_owned(), metrics);
    }
    for name in ["output", "error"] {
        if field(name).is_some_and(|text| text != b"null") {
            ends.insert(name.to_owned(), Value::Bool(true));
        }
    }
    ends
}

fn state_of(doc: &[u8]) -> ScoringState {
    let text = doc_field(doc, SCORING_STATE).ok().flatten();
    let value: Option<Value> = text.and_then(|text| serde_json::from_slice(text).ok());
    ScoringState::read(value.as_ref()).unwrap_or_default()
}

/// Returns whether a write asked for no rules: its own state has a new mark.
fn marks_skip(before: Option<&[u8]>, written: &[u8]) -> bool {
    let mark = |doc: &[u8]| state_of(doc).enabled().and_then(|enabled| enabled.skipped_xact);
    mark(written).is_some_and(|skipped| before.and_then(mark) != Some(skipped))
}

/// Returns whether a write is an activity of its trace, and not only a score, a tag or bookkeeping.
fn is_activity(op: &WrittenOp) -> bool {
    let adds_only = |doc: &[u8]| -> Result<bool, MergeError> {
        Ok(doc_fields(doc)?.iter().all(|(name, _)| ADDED_MEMBERS.contains(&name.as_ref())))
    };
    match op.action {
        Action::Upsert | Action::Delete => true,
        Action::Merge => !adds_only(&op.doc).unwrap_or(false),
        Action::Comment => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_document_that_finish_a_span_are_found() {
        let ends = ends_of(br#"{"input":1,"output":null,"error":"e","metrics":{"end":2}}"#);
        assert_eq!(Value::Object(ends), serde_json::json!({"metrics": {"end": 2}, "error": true}));
        assert_eq!(ends_of(b"{}").len(), 0);
    }

    #[test]
    fn a_write_skips_rules_by_its_own_mark() {
        let with = |mark: &str| format!(r#"{{"{SCORING_STATE}":{{"status":"enabled","skipped_xact_id":"{mark}"}}}}"#);
        assert!(marks_skip(None, with("7").as_bytes()));
        assert!(!marks_skip(Some(with("7").as_bytes()), with("7").as_bytes()));
        assert!(marks_skip(Some(with("7").as_bytes()), with("8").as_bytes()));
        assert!(!marks_skip(Some(with("7").as_bytes()), br#"{"output":1}"#));
    }
}
