//! The JSON envelope around the rows of a response: schema, freshness, warnings, cursor and plan.

use assay_node_btql::bound::Note;
use assay_node_btql::schema::{Column, json_schema};
use assay_storage_model::Xact;
use serde_json::json;

use super::{Format, FormatError, RenderError, RowWriter};

/// Everything in a response besides its rows. Formats other than JSON and columns have rows only.
#[derive(Debug)]
pub struct Envelope {
    pub format: Format,
    pub columns: Vec<Column>,
    pub notes: Vec<Note>,
    pub plan: Option<String>,
    /// Whether the request asked for the most recent rows.
    pub realtime: bool,
}

impl Envelope {
    pub(super) fn writer(&self) -> Result<RowWriter, FormatError> {
        RowWriter::new(self.format, &self.columns)
    }

    /// Returns the bytes before the rows.
    pub(super) fn head(&self) -> Vec<u8> {
        if self.format.has_envelope() { b"{\"data\":".to_vec() } else { Vec::new() }
    }

    /// Returns the bytes after the rows. No later write than `version` is visible in the rows.
    pub(super) fn tail(&self, version: Xact, cursor: Option<&str>) -> Result<Vec<u8>, RenderError> {
        if !self.format.has_envelope() {
            return Ok(Vec::new());
        }
        let last = version.to_string();
        let warning = |note: &Note| json!({"code": note.code, "message": note.message, "stage": "optimizer", "severity": "warning"});
        let mut envelope = json!({
            "schema": json_schema(&self.columns),
            // Recent rows are read like all others, so there are no extra bytes.
            "realtime_state": {
                "type": if self.realtime { "on" } else { "off" },
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
        let mut text = serde_json::to_vec(&envelope).map_err(RenderError::Envelope)?;
        text[0] = b',';
        Ok(text)
    }
}
