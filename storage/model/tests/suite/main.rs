//! Guarantees of the model's public interface: frozen bytes, merge rules, refused rows.

mod commands;
mod histories;
mod merging;
mod naive;
mod rows;
mod sent;

use assay_storage_model::ObjectKind;
use assay_storage_model::event::{PrepareContext, PreparedRow, RowError, SentItem, prepare};
use serde_json::Value;

/// 2026-11-21T05:44:00.123456Z
const NOW_MICROS: i64 = 1_795_239_840_123_456;
const NOW_TEXT: &str = "2026-11-21T05:44:00.123Z";

/// Prepares a row at place 3 of a request; new ids are `new-id`. It is the same whether the row comes as a tree or is read
/// from its text.
fn prepared(kind: ObjectKind, row: Value) -> Result<PreparedRow, RowError> {
    let read: SentItem = serde_json::from_str(&row.to_string()).expect("JSON");
    let (from_tree, from_text) = (prepared_one(kind, row), prepared_one(kind, read));
    assert_eq!(from_tree, from_text);
    from_tree
}

fn prepared_one(kind: ObjectKind, row: impl Into<SentItem>) -> Result<PreparedRow, RowError> {
    let mut new_id = || "new-id".to_owned();
    prepare(kind, 3, row, &mut PrepareContext { now_micros: NOW_MICROS, new_id: &mut new_id })
}

/// Prepares a row of a log that nothing is wrong with.
fn log_row(row: Value) -> PreparedRow {
    prepared(ObjectKind::ProjectLogs, row).expect("a good row")
}

fn text(doc: &[u8]) -> &str {
    std::str::from_utf8(doc).expect("JSON is UTF-8")
}
