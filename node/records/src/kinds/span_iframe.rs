//! Span iframe: an external page that displays a span.

use assay_node_shapes::Shape;
use assay_storage_model::catalog::RecordKind;

use super::{NAME, PROSE, URL};
use crate::kind::{Api, Changes, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch, made_by, nothing_derived};

pub static SPAN_IFRAME: Kind = Kind {
    name: "span_iframe",
    record: RecordKind::SPAN_IFRAME,
    home: Home::Project,
    naming: Naming::Unique,
    guard: Guard::Project,
    api: Api::Shared("/v1/span_iframe", Changes::ByPatchAndPut),
    export: Export::AfterRows,
    fields: &[
        Field::required("project_id", Shape::Uuid, OnPatch::Fixed),
        Field::ours("user_id", Shape::Uuid, OnPatch::Fixed),
        Field::required("name", NAME, OnPatch::Replaced),
        Field::optional("description", PROSE, OnPatch::Replaced),
        Field::required("url", URL, OnPatch::Replaced),
        Field::optional("post_message", Shape::Bool, OnPatch::Replaced),
    ],
    filters: &[
        ("span_iframe_name", Filter::Name),
        ("name", Filter::Name),
        ("project_name", Filter::ProjectName),
        ("project_id", Filter::ProjectId),
    ],
    list_default: None,
    rows: &[],
    has_deleted_at: true,
    builtin: Vec::new,
    fold: None,
    check: None,
    complete: made_by,
    derive: nothing_derived,
    join: None,
};
