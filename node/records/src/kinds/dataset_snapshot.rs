//! Dataset snapshot: a named version of a dataset. It has no rows, because a dataset keeps all its versions.

use assay_node_shapes::Shape;
use assay_storage_model::Xact;
use assay_storage_model::catalog::RecordKind;
use serde_json::Value;

use super::{LINE, NAME, PROSE};
use crate::draft::Body;
use crate::error::RecordsError;
use crate::kind::{Api, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch};

pub static DATASET_SNAPSHOT: Kind = Kind {
    name: "dataset_snapshot",
    record: RecordKind::DATASET_SNAPSHOT,
    naming: Naming::UniqueAmong(&["dataset_id"]),
    api: Api::Own,
    export: Export::AfterRows,
    fields: &[
        Field::required("dataset_id", Shape::Uuid, OnPatch::Fixed),
        Field::required("name", NAME, OnPatch::Replaced),
        Field::optional("description", PROSE, OnPatch::Replaced),
        Field::required("xact_id", LINE, OnPatch::Fixed),
    ],
    filters: &[
        ("dataset_snapshot_name", Filter::Field("name")),
        ("name", Filter::Field("name")),
        ("dataset_id", Filter::Field("dataset_id")),
        ("xact_id", Filter::Field("xact_id")),
    ],
    check: Some(|checked| version(checked.body, "xact_id").map(drop)),
    derive: |fields| {
        if let Ok(xact) = version(fields, "xact_id") {
            fields.insert("xact_id".into(), xact.to_string().into());
        }
    },
    ..Kind::plain(Home::Object, Guard::Object)
};

/// Parses a version, which clients write as decimal digits or in the short form.
pub(crate) fn version(body: &Body, field: &str) -> Result<Xact, RecordsError> {
    let text = body.get(field).and_then(Value::as_str).unwrap_or_default();
    Xact::parse(text).map_err(|why| RecordsError::BadRequest(format!("`{field}`: {why}")))
}
