//! Masks for rows and scores that a reviewer may not see yet. They are applied before anything else reads the rows.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringArray, make_array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use assay_node_btql::ast::Step;
use assay_node_expressions::Type;
use assay_node_expressions::aggregates::value_at;
use assay_node_reviews::{ASSIGNMENTS, Blindness, SUBMITTERS};
use assay_storage_segments::{Form, Want};
use assay_storage_shard::Unit;
use serde_json::{Map, Value};

use crate::EngineError;
use crate::scan::source::{Shared, Source};

/// Returns the path of the list of submitters of a row.
fn submitters_path() -> Want {
    path("metadata", SUBMITTERS)
}

fn type_path() -> Want {
    path("span_attributes", "type")
}

fn reviewer_path() -> Want {
    path("metadata", "reviewer_id")
}

/// Returns the path of the list of a row's assignees.
pub(crate) fn assignees_path() -> Want {
    path("metadata", ASSIGNMENTS)
}

fn path(column: &str, key: &str) -> Want {
    Want::Path(vec![Step::Key(column.to_owned()), Step::Key(key.to_owned())], Form::Json)
}

/// Returns the rows of a unit that the reader of a source may see.
pub(crate) fn visible(unit: &Unit, source: &Source, shared: &Shared) -> Result<BooleanBuffer, EngineError> {
    let visible = unit.visible()?;
    let Some(blind) = &source.blind else { return Ok(visible) };
    if visible.count_set_bits() == 0 {
        return Ok(visible);
    }
    let wants = [type_path(), reviewer_path(), submitters_path()];
    let columns = unit.read(&shared.cache, 0..visible.len(), None, &wants)?;
    let [types, reviewers, submitters] = [0, 1, 2].map(|nth| columns[nth].as_string::<i32>());
    let shown = BooleanBuffer::collect_bool(visible.len(), |row| {
        let list = submitters.is_valid(row).then(|| submitters.value(row));
        !blind.hides(text_at(types, row).as_deref(), text_at(reviewers, row).as_deref(), list)
    });
    Ok(&visible & &shown)
}

/// Returns the columns that decide whether a reader sees the human scores of a row.
pub(crate) fn deciding() -> [Want; 3] {
    [submitters_path(), type_path(), reviewer_path()]
}

/// Returns for each row whether the reader may see its human scores.
///
/// The reader may see them after submitting a review of the row, and in the reader's own review. The columns are those
/// of [`deciding`].
pub(crate) fn shown(blind: &Blindness, columns: [&ArrayRef; 3]) -> BooleanBuffer {
    let [lists, types, reviewers] = columns.map(|column| column.as_string::<i32>());
    BooleanBuffer::collect_bool(lists.len(), |row| {
        let list = lists.is_valid(row).then(|| lists.value(row));
        blind.is_own_review(text_at(types, row).as_deref(), text_at(reviewers, row).as_deref())
            || blind.has_submitted(list)
    })
}

/// Returns a text of a column of JSON texts.
fn text_at(texts: &StringArray, row: usize) -> Option<String> {
    let json = texts.is_valid(row).then(|| texts.value(row))?;
    serde_json::from_str(json).ok()
}

/// Masks a column of one human score. It becomes null in rows that the reader did not review.
pub(crate) fn masked_score(scores: &ArrayRef, shown: &BooleanBuffer) -> Result<ArrayRef, EngineError> {
    let nulls = scores.logical_nulls().map_or_else(|| shown.clone(), |nulls| nulls.inner() & shown);
    let data = scores.to_data().into_builder().nulls(Some(NullBuffer::new(nulls)));
    Ok(make_array(data.build().map_err(|_| EngineError::Damaged)?))
}

/// Masks a column of whole score objects. Human scores are removed in rows that the reader did not review.
pub(crate) fn masked_scores(blind: &Blindness, scores: &ArrayRef, ty: Type, shown: &BooleanBuffer) -> ArrayRef {
    let mut all = StringBuilder::new();
    for row in 0..scores.len() {
        let text = value_at(scores, ty, row);
        if text.is_null() {
            all.append_null();
            continue;
        }
        let text = text.to_json();
        let masked = if shown.value(row) { None } else { without_human(blind, &text) };
        all.append_value(masked.unwrap_or(text));
    }
    Arc::new(all.finish())
}

/// Returns the JSON text of an object of scores without its human scores, or `None` for another value.
pub(crate) fn without_human(blind: &Blindness, scores: &str) -> Option<String> {
    let mut object: Map<String, Value> = serde_json::from_str(scores).ok()?;
    blind.without_human(&mut object);
    Some(Value::Object(object).to_string())
}

/// Masks a column of comments or of write origins. Those of others are removed in rows that the reader did not review.
pub(crate) fn masked_notes(blind: &Blindness, notes: &ArrayRef, shown: &BooleanBuffer) -> ArrayRef {
    let texts = notes.as_string::<i32>();
    let mut all = StringBuilder::new();
    for row in 0..texts.len() {
        match texts.is_valid(row).then(|| texts.value(row)) {
            None => all.append_null(),
            Some(text) if shown.value(row) => all.append_value(text),
            Some(text) => match own_notes(blind, text) {
                Some(own) => all.append_value(own),
                None => all.append_null(),
            },
        }
    }
    Arc::new(all.finish())
}

fn own_notes(blind: &Blindness, text: &str) -> Option<String> {
    let mut notes: Vec<Value> = serde_json::from_str(text).ok()?;
    notes.retain(|note| blind.is_own_note(note));
    (!notes.is_empty()).then(|| Value::Array(notes).to_string())
}
