//! Organization automation: the retention time of rows in all projects without a rule of their own.

use assay_node_shapes::Shape;
use assay_node_shapes::configurations::RETENTION;
use assay_storage_model::catalog::RecordKind;

use super::{NAME, PROSE, inactive};
use crate::kind::{Api, Changes, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch, made_by};

pub static ORG_AUTOMATION: Kind = Kind {
    name: "org_automation",
    record: RecordKind::ORG_AUTOMATION,
    naming: Naming::Unique,
    api: Api::Shared("/v1/org_automation", Changes::ByPatchAndPut),
    export: Export::Never,
    fields: &[
        Field::ours("user_id", Shape::Uuid, OnPatch::Fixed),
        Field::required("name", NAME, OnPatch::Replaced),
        Field::optional("description", PROSE, OnPatch::Replaced),
        Field::required("config", Shape::Tagged("event_type", &[("retention", RETENTION)]), OnPatch::Replaced),
    ],
    filters: &[("org_automation_name", Filter::Name), ("name", Filter::Name)],
    check: Some(inactive::check_retention),
    complete: made_by,
    ..Kind::plain(Home::Organization, Guard::Organization)
};
