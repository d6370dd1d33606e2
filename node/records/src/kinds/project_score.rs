//! Project score: a score that people or scorers give to rows of a project.

use assay_node_online_scoring::{
    COST_PER_DAY_MAX, RUNS_PER_MINUTE_MAX, changes_rule, check_rule, is_active_rule, is_online_rule,
};
use assay_node_shapes::configurations::{SAVED_FUNCTION, SCOPE};
use assay_node_shapes::{MOST_NEGATIVE, MOST_POSITIVE, Member, Shape};
use assay_storage_model::catalog::RecordKind;

use super::{LINE, NAME, PROSE, TEXTS, inactive};
use crate::credentials::check_is_self;
use crate::error::RecordsError;
use crate::kind::{Api, Changes, Checked, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch, made_by};

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
    check: Some(check),
    complete: made_by,
    join: Some(|_, object| inactive::say(object, !is_online_rule(object) || is_active_rule(object))),
    ..Kind::plain(Home::Project, Guard::Project)
};

/// Checks a rule of online scoring. Its functions run with the rights of the author of its configuration.
fn check(checked: &Checked<'_>) -> Result<(), RecordsError> {
    if !changes_rule(checked.before, checked.body) && is_online_rule(checked.body) {
        return Ok(());
    }
    if is_online_rule(checked.body) {
        check_is_self(checked.who)?;
    }
    check_rule(checked.body).map_err(|why| RecordsError::BadRequest(why.to_string()))
}

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
    Member::optional("status", Shape::Word(&["active", "paused"])),
    Member::optional("max_runs_per_minute", Shape::Whole { min: 1, max: RUNS_PER_MINUTE_MAX as i64 }),
    Member::optional("max_cost_per_day", Shape::Number { min: 0.0, max: COST_PER_DAY_MAX }),
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
