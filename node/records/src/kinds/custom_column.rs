//! Custom column: a named expression that tables of a project show and that queries can use.

use assay_node_shapes::Shape;
use assay_storage_model::catalog::RecordKind;

use super::{NAME, PROSE};
use crate::kind::{Api, Changes, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch, made_by};

pub static CUSTOM_COLUMN: Kind = Kind {
    name: "custom_column",
    record: RecordKind::CUSTOM_COLUMN,
    naming: Naming::UniqueAmong(&["source"]),
    api: Api::Shared("/v1/custom_column", Changes::ByPatchAndPut),
    export: Export::AfterRows,
    fields: &[
        Field::required("project_id", Shape::Uuid, OnPatch::Fixed),
        Field::ours("user_id", Shape::Uuid, OnPatch::Fixed),
        Field::required("source", Shape::Word(SOURCES), OnPatch::Fixed),
        Field::required("name", NAME, OnPatch::Replaced),
        Field::optional("description", PROSE, OnPatch::Replaced),
        Field::required("expr", EXPRESSION, OnPatch::Replaced),
    ],
    filters: &[
        ("custom_column_name", Filter::Field("name")),
        ("name", Filter::Field("name")),
        ("source", Filter::Field("source")),
        ("project_name", Filter::ProjectName),
        ("project_id", Filter::ProjectId),
    ],
    complete: made_by,
    ..Kind::plain(Home::Project, Guard::Project)
};

/// Query sources whose rows have the column.
const SOURCES: &[&str] = &["project_logs", "experiment", "dataset", "playground_logs"];
/// Shape of a query expression, which is parsed only when a query uses it.
const EXPRESSION: Shape = Shape::Text { bytes_min: 1, bytes_max: 64 << 10 };
