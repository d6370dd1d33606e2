//! Project: a group of experiments, datasets and one log. A patch replaces its settings as a whole.

use assay_node_auth::ObjectType;
use assay_node_shapes::configurations::SAVED_FUNCTION;
use assay_node_shapes::{Member, Shape};
use assay_storage_model::ObjectKind;
use assay_storage_model::catalog::RecordKind;

use super::guardrails::{GATEWAY_GUARDRAILS, check_project};
use super::{LINE, NAME, PROSE};
use crate::kind::{Api, Changes, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch, made_by};

/// Upper bound of the elements of a list in the settings, which people write by hand.
const SETTINGS_ITEMS_MAX: usize = 1000;

pub static PROJECT: Kind = Kind {
    name: "project",
    record: RecordKind::PROJECT,
    naming: Naming::Unique,
    api: Api::Shared("/v1/project", Changes::ByPatch),
    export: Export::BeforeRows,
    fields: &[
        Field::required("name", NAME, OnPatch::Replaced),
        Field::optional("description", PROSE, OnPatch::Replaced),
        Field::ours("user_id", Shape::Uuid, OnPatch::Replaced),
        Field::ours("settings", SETTINGS, OnPatch::Replaced),
    ],
    filters: &[("project_name", Filter::Name), ("name", Filter::Name)],
    rows: &[ObjectKind::ProjectLogs, ObjectKind::ProjectPrompts],
    has_deleted_at: true,
    check: Some(check_project),
    complete: made_by,
    ..Kind::plain(Home::Organization, Guard::Own(ObjectType::Project))
};

const SETTINGS: Shape = Shape::Closed(&[
    Member::optional("comparison_key", LINE),
    Member::optional("baseline_experiment_id", Shape::Uuid),
    Member::optional("spanFieldOrder", Shape::List { of: &SPAN_FIELD, items_max: SETTINGS_ITEMS_MAX }),
    Member::optional("remote_eval_sources", Shape::List { of: &REMOTE_EVAL_SOURCE, items_max: SETTINGS_ITEMS_MAX }),
    Member::optional("disable_realtime_queries", Shape::Bool),
    Member::optional("monitor_charts_use_metrics_start", Shape::Bool),
    Member::optional("coding_agent_insights_dashboard", Shape::Bool),
    Member::optional("blind_reviews", Shape::Bool),
    Member::optional("require_all_human_review_scores", Shape::Bool),
    Member::optional("default_preprocessor", SAVED_FUNCTION),
    Member::optional("gateway_guardrails", GATEWAY_GUARDRAILS),
]);

const SPAN_FIELD: Shape = Shape::Closed(&[
    Member::required("object_type", LINE),
    Member::required("column_id", LINE),
    Member::required("position", LINE),
    Member::optional("layout", Shape::Word(&["full", "two_column"])),
]);

const REMOTE_EVAL_SOURCE: Shape = Shape::Closed(&[
    Member::required("url", LINE),
    Member::optional("name", LINE),
    Member::optional("description", PROSE),
]);
