//! Project score: a score that people or scorers give to rows of a project.

use assay_node_shapes::{MOST_NEGATIVE, MOST_POSITIVE, Member, Shape};
use assay_storage_model::catalog::RecordKind;

use super::project::SAVED_FUNCTION;
use super::{LINE, NAME, PROSE, SCOPE, TEXTS, inactive};
use crate::kind::{Api, Changes, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch, made_by};

pub static PROJECT_SCORE: Kind = Kind {
    name: "project_score",
    record: RecordKind::PROJECT_SCORE,
    naming: Naming::Unique,
    api: Api::Shared("/v1/project_score", Changes::ByPatchAndPut),
    export: Export::AfterRows,
    fields: &[
        Field::required("project_id", Shape::Uuid, OnPatch::Fixed),
        Field::ours("user_id", Shape::Uuid, OnPatch::Fixed),
        Field::required("name", NAME, OnPatch::Replaced),
        Field::optional("description", PROSE, OnPatch::Replaced),
        Field::required("score_type", TYPE, OnPatch::Replaced),
        Field::optional("categories", CATEGORIES, OnPatch::Replaced),
        Field::optional("config", CONFIG, OnPatch::Merged),
        Field::optional("position", LINE, OnPatch::Replaced),
    ],
    filters: &[
        ("project_score_name", Filter::Name),
        ("name", Filter::Name),
        ("project_name", Filter::ProjectName),
        ("project_id", Filter::ProjectId),
        ("score_type", Filter::Field("score_type")),
    ],
    check: Some(inactive::check_score),
    complete: made_by,
    join: Some(|_, object| inactive::say_of_score(object)),
    ..Kind::plain(Home::Project, Guard::Project)
};

const ITEMS_MAX: usize = 1000;

const TYPE: Shape = Shape::Word(&["slider", "categorical", "weighted", "minimum", "maximum", "online", "free-form"]);

const CATEGORIES: Shape = Shape::Either(&[
    Shape::Texts { items_max: ITEMS_MAX, bytes_max: 4 << 10 },
    Shape::Values { of: &Shape::Number { min: MOST_NEGATIVE, max: MOST_POSITIVE }, items_max: ITEMS_MAX },
    Shape::List { of: &CATEGORY, items_max: ITEMS_MAX },
]);
const CATEGORY: Shape =
    Shape::Closed(&[Member::required("name", NAME), Member::required("value", Shape::Number { min: 0.0, max: 1.0 })]);

const CONFIG: Shape = Shape::Closed(&[
    Member::optional("multi_select", Shape::Bool),
    Member::optional("destination", LINE),
    Member::optional("visibility", VISIBILITY),
    Member::optional("online", ONLINE),
    Member::optional("condition", CONDITION),
    Member::optional(
        "object_types",
        Shape::List { of: &Shape::Word(&["project_logs", "dataset", "experiment"]), items_max: 3 },
    ),
]);
const VISIBILITY: Shape = Shape::Closed(&[Member::optional("users", TEXTS), Member::optional("groups", TEXTS)]);
const ONLINE: Shape = Shape::Closed(&[
    Member::required("sampling_rate", Shape::Number { min: 0.0, max: 1.0 }),
    Member::required("scorers", Shape::List { of: &SAVED_FUNCTION, items_max: ITEMS_MAX }),
    Member::optional("btql_filter", PROSE),
    Member::optional("apply_to_root_span", Shape::Bool),
    Member::optional("apply_to_span_names", TEXTS),
    Member::optional("skip_logging", Shape::Bool),
    Member::optional("scope", SCOPE),
]);
const CONDITION: Shape = Shape::Closed(&[
    Member::required(
        "when",
        Shape::Closed(&[
            Member::optional("clauses", TEXTS),
            Member::optional("subspan_clauses", TEXTS),
            Member::optional("trace_clauses", TEXTS),
        ]),
    ),
    Member::optional("behavior", Shape::Word(&["hidden"])),
]);
