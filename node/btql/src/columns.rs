//! The columns of each source (btql.md, sections 6 and 8.1), in the order in which `SELECT *` gives them.

/// What the rows of a source are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    ProjectLogs,
    Experiment,
    Dataset,
    Playground,
    Prompt,
    Function,
    View,
    AuditLog,
}

/// How the arguments of a source name objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// Each names one: a project for its logs, an experiment, a dataset, a prompt.
    Each,
    /// Each names a project, all of whose records are meant.
    OfProjects,
    /// Each names an organization, all of whose records are meant.
    OfOrganizations,
    /// A project and a dataset in it.
    InProject,
}

const LOGS: [&str; 27] = [
    "_async_scoring_state",
    "_pagination_key",
    "_xact_id",
    "audit_data",
    "classifications",
    "comments",
    "context",
    "created",
    "error",
    "expected",
    "facets",
    "id",
    "input",
    "is_root",
    "log_id",
    "metadata",
    "metrics",
    "org_id",
    "origin",
    "output",
    "project_id",
    "root_span_id",
    "scores",
    "span_attributes",
    "span_id",
    "span_parents",
    "tags",
];
const EXPERIMENT: [&str; 26] = [
    "_async_scoring_state",
    "_pagination_key",
    "_xact_id",
    "audit_data",
    "classifications",
    "comments",
    "context",
    "created",
    "error",
    "expected",
    "experiment_id",
    "facets",
    "id",
    "input",
    "is_root",
    "metadata",
    "metrics",
    "origin",
    "output",
    "project_id",
    "root_span_id",
    "scores",
    "span_attributes",
    "span_id",
    "span_parents",
    "tags",
];
const PLAYGROUND: [&str; 28] = [
    "_async_scoring_state",
    "_pagination_key",
    "_xact_id",
    "audit_data",
    "classifications",
    "comments",
    "context",
    "created",
    "error",
    "expected",
    "facets",
    "id",
    "input",
    "is_root",
    "log_id",
    "metadata",
    "metrics",
    "org_id",
    "origin",
    "output",
    "project_id",
    "prompt_session_id",
    "root_span_id",
    "scores",
    "span_attributes",
    "span_id",
    "span_parents",
    "tags",
];
const DATASET: [&str; 19] = [
    "_async_scoring_state",
    "_pagination_key",
    "_xact_id",
    "audit_data",
    "classifications",
    "comments",
    "created",
    "dataset_id",
    "expected",
    "facets",
    "id",
    "input",
    "is_root",
    "metadata",
    "origin",
    "project_id",
    "root_span_id",
    "span_id",
    "tags",
];
const PROMPT: [&str; 16] = [
    "_pagination_key",
    "_xact_id",
    "audit_data",
    "comments",
    "created",
    "description",
    "function_type",
    "id",
    "log_id",
    "metadata",
    "name",
    "org_id",
    "project_id",
    "prompt_data",
    "slug",
    "tags",
];
const FUNCTION: [&str; 19] = [
    "_pagination_key",
    "_xact_id",
    "audit_data",
    "comments",
    "created",
    "description",
    "function_data",
    "function_schema",
    "function_type",
    "id",
    "log_id",
    "metadata",
    "name",
    "org_id",
    "origin",
    "project_id",
    "prompt_data",
    "slug",
    "tags",
];
const AUDIT_LOG: [&str; 14] = [
    "_pagination_key",
    "_xact_id",
    "action",
    "actor",
    "created",
    "details",
    "hash",
    "id",
    "object_id",
    "object_name",
    "object_type",
    "org_id",
    "previous_hash",
    "sequence",
];
const VIEW: [&str; 12] = [
    "_pagination_key",
    "_xact_id",
    "created",
    "deleted_at",
    "id",
    "name",
    "object_id",
    "object_type",
    "options",
    "user_id",
    "view_data",
    "view_type",
];

/// What the row of a trace has besides (btql.md, section 7.1): always, and where a query says what pairs traces.
pub const SPAN_TYPE_INFO: &str = "span_type_info";
pub const COMPARISON_KEY: &str = "comparison_key";

/// What a `from` may name.
pub const SOURCES: [(&str, Kind, Named); 14] = [
    ("project_logs", Kind::ProjectLogs, Named::Each),
    ("experiment", Kind::Experiment, Named::Each),
    ("dataset", Kind::Dataset, Named::Each),
    ("project_dataset", Kind::Dataset, Named::InProject),
    ("playground_logs", Kind::Playground, Named::Each),
    ("prompt_session", Kind::Playground, Named::Each),
    ("prompt", Kind::Prompt, Named::Each),
    ("project_prompts", Kind::Prompt, Named::OfProjects),
    ("org_prompts", Kind::Prompt, Named::OfOrganizations),
    ("function", Kind::Function, Named::Each),
    ("project_functions", Kind::Function, Named::OfProjects),
    ("org_functions", Kind::Function, Named::OfOrganizations),
    ("view", Kind::View, Named::Each),
    ("org_audit_logs", Kind::AuditLog, Named::OfOrganizations),
];

impl Kind {
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            Kind::ProjectLogs => &LOGS,
            Kind::Experiment => &EXPERIMENT,
            Kind::Playground => &PLAYGROUND,
            Kind::Dataset => &DATASET,
            Kind::Prompt => &PROMPT,
            Kind::Function => &FUNCTION,
            Kind::View => &VIEW,
            Kind::AuditLog => &AUDIT_LOG,
        }
    }

    /// Whether its rows have traces, and so more shapes than one.
    pub fn has_spans(self) -> bool {
        matches!(self, Kind::ProjectLogs | Kind::Experiment | Kind::Playground | Kind::Dataset)
    }
}

/// What a source's name means.
pub fn source(name: &str) -> Option<(Kind, Named)> {
    SOURCES.into_iter().find(|(known, _, _)| *known == name).map(|(_, kind, named)| (kind, named))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_in_the_order_of_their_names() {
        for (name, kind, _) in SOURCES {
            assert!(kind.columns().is_sorted(), "{name}");
        }
    }
}
