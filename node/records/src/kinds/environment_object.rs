//! Environment object: the version of a prompt or a dataset in an environment.

use assay_node_shapes::Shape;
use assay_storage_model::catalog::RecordKind;

use super::LINE;
use super::dataset_snapshot::version;
use crate::kind::{Api, Export, Field, Guard, Home, Kind, Naming, OnPatch};

pub(crate) static ENVIRONMENT_OBJECT: Kind = Kind {
    name: "environment_object",
    record: RecordKind::ENVIRONMENT_OBJECT,
    naming: Naming::Whole(&["object_type", "object_id", "environment_id"]),
    api: Api::Own,
    export: Export::AfterRows,
    fields: &[
        Field::required("object_type", Shape::Word(&["dataset", "prompt"]), OnPatch::Fixed),
        Field::required("object_id", Shape::Uuid, OnPatch::Fixed),
        Field::required("environment_id", Shape::Uuid, OnPatch::Fixed),
        Field::required("object_version", LINE, OnPatch::Replaced),
    ],
    filters: &[],
    check: Some(|checked| version(checked.body, "object_version").map(drop)),
    derive: |fields| {
        if let Ok(xact) = version(fields, "object_version") {
            fields.insert("object_version".into(), xact.to_string().into());
        }
    },
    ..Kind::plain(Home::Object, Guard::Object)
};
