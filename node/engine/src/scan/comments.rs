//! Comments and origins of writes, which are stored apart from rows and read for many rows at once.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, StringArray};
use assay_storage_shard::Notes;

use crate::EngineError;
use crate::scan::source::Source;

/// Returns the JSON texts of the comments on these rows. Rows without comments have null.
pub(crate) fn comments(source: &Source, ids: &StringArray) -> Result<ArrayRef, EngineError> {
    texts(source, ids, Notes::put_comments)
}

/// Returns the JSON texts of the origins of writes to these rows. Rows without a known origin have null.
pub(crate) fn audit_data(source: &Source, ids: &StringArray) -> Result<ArrayRef, EngineError> {
    texts(source, ids, Notes::put_audits)
}

type Put = fn(&Notes, &mut Vec<u8>) -> Result<(), assay_storage_model::merge::MergeError>;

fn texts(source: &Source, ids: &StringArray, put: Put) -> Result<ArrayRef, EngineError> {
    let all: Vec<&str> = ids.iter().flatten().collect();
    let notes = source.view.notes(&source.object, &all, source.at)?;
    let mut texts = StringBuilder::new();
    let mut text = Vec::new();
    for id in ids {
        text.clear();
        if let Some(notes) = id.and_then(|id| notes.get(id)) {
            put(notes, &mut text).map_err(|_| EngineError::Damaged)?;
        }
        match text.as_slice() {
            b"" | b"null" => texts.append_null(),
            text => texts.append_value(String::from_utf8_lossy(text)),
        }
    }
    Ok(Arc::new(texts.finish()))
}
