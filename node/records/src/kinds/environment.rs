//! Environment of prompts and datasets, such as production. Versions are pinned to it by its slug.

use assay_storage_model::catalog::RecordKind;

use super::{NAME, PROSE};
use crate::error::RecordsError;
use crate::kind::{Api, Changes, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch};

pub static ENVIRONMENT: Kind = Kind {
    name: "environment",
    record: RecordKind::ENVIRONMENT,
    naming: Naming::UniqueBy("slug"),
    api: Api::Shared("/environment", Changes::ByPatch),
    export: Export::AfterRows,
    fields: &[
        Field::required("name", NAME, OnPatch::Replaced),
        Field::required("slug", NAME, OnPatch::Replaced),
        Field::optional("description", PROSE, OnPatch::Replaced),
    ],
    filters: &[("name", Filter::Field("name")), ("slug", Filter::Field("slug"))],
    has_deleted_at: true,
    fold: Some(|_, sent| {
        if ["name", "slug", "description"].iter().any(|field| sent.get(*field).is_some_and(|value| !value.is_null())) {
            return Ok(());
        }
        Err(RecordsError::BadRequest("the request changes nothing: add `name`, `slug` or `description`".into()))
    }),
    ..Kind::plain(Home::Organization, Guard::Organization)
};
