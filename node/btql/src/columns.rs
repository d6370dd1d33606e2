//! Columns of each source (btql.md, sections 6 and 8.1), in the order in which `SELECT *` gives them.

/// Kind of the rows of a source.
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

/// Way in which the arguments of a source name objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// Each names one: a project for its logs, an experiment, a dataset, a prompt.
    Each,
    /// Names of projects, with all of their records.
    OfProjects,
    /// Names of organizations, with all of their records.
    OfOrganizations,
    /// A project and a dataset in it.
    InProject,
}

/// Sources, as bits of a column's set of sources.
const LOGS: u16 = 1 << 0;
const EXPERIMENT: u16 = 1 << 1;
const PLAYGROUND: u16 = 1 << 2;
const DATASET: u16 = 1 << 3;
const PROMPT: u16 = 1 << 4;
const FUNCTION: u16 = 1 << 5;
const AUDIT_LOG: u16 = 1 << 6;
const VIEW: u16 = 1 << 7;
const SPANS: u16 = LOGS | EXPERIMENT | PLAYGROUND;
const EVENTS: u16 = SPANS | DATASET;
const FUNCTIONS: u16 = PROMPT | FUNCTION;
const ALL: u16 = EVENTS | FUNCTIONS | AUDIT_LOG | VIEW;

/// Facts about a column, as bits.
const PLAIN: u8 = 0;
/// The row of a trace takes the column from its root; without a root it is null. Other columns are the first span's then.
const ROOT_ONLY: u8 = 1;
/// The column is cut to a preview where it is selected as it is (D-41).
const PREVIEWED: u8 = 2;
/// No path leads into the column.
const NO_MEMBERS: u8 = 4;

/// All columns by name, with the sources that have them and the facts about them.
const COLUMNS: [(&str, u16, u8); 51] = [
    ("_async_scoring_state", EVENTS, ROOT_ONLY),
    ("_pagination_key", ALL, NO_MEMBERS),
    ("_xact_id", ALL, NO_MEMBERS),
    ("action", AUDIT_LOG, PLAIN),
    ("actor", AUDIT_LOG, PLAIN),
    ("audit_data", EVENTS | FUNCTIONS, ROOT_ONLY),
    ("classifications", EVENTS, ROOT_ONLY),
    ("comments", EVENTS | FUNCTIONS, ROOT_ONLY),
    ("context", SPANS, ROOT_ONLY),
    ("created", ALL, PLAIN),
    ("dataset_id", DATASET, PLAIN),
    ("deleted_at", VIEW, PLAIN),
    ("description", FUNCTIONS, PLAIN),
    ("details", AUDIT_LOG, PLAIN),
    ("error", SPANS, ROOT_ONLY | PREVIEWED),
    ("expected", EVENTS, ROOT_ONLY | PREVIEWED),
    ("experiment_id", EXPERIMENT, PLAIN),
    ("facets", EVENTS, ROOT_ONLY),
    ("function_data", FUNCTION, PLAIN),
    ("function_schema", FUNCTION, PLAIN),
    ("function_type", FUNCTIONS, PLAIN),
    ("hash", AUDIT_LOG, PLAIN),
    ("id", ALL, ROOT_ONLY),
    ("input", EVENTS, ROOT_ONLY | PREVIEWED),
    ("is_root", EVENTS, ROOT_ONLY),
    ("log_id", FUNCTIONS | LOGS | PLAYGROUND, PLAIN),
    ("metadata", EVENTS | FUNCTIONS, ROOT_ONLY | PREVIEWED),
    ("metrics", SPANS, PLAIN),
    ("name", FUNCTIONS | VIEW, PLAIN),
    ("object_id", AUDIT_LOG | VIEW, PLAIN),
    ("object_name", AUDIT_LOG, PLAIN),
    ("object_type", AUDIT_LOG | VIEW, PLAIN),
    ("options", VIEW, PLAIN),
    ("org_id", FUNCTIONS | LOGS | PLAYGROUND | AUDIT_LOG, PLAIN),
    ("origin", EVENTS | FUNCTION, ROOT_ONLY),
    ("output", SPANS, ROOT_ONLY | PREVIEWED),
    ("previous_hash", AUDIT_LOG, PLAIN),
    ("project_id", EVENTS | FUNCTIONS, PLAIN),
    ("prompt_data", FUNCTIONS, PLAIN),
    ("prompt_session_id", PLAYGROUND, PLAIN),
    ("root_span_id", EVENTS, PLAIN),
    ("scores", SPANS, PLAIN),
    ("sequence", AUDIT_LOG, PLAIN),
    ("slug", FUNCTIONS, PLAIN),
    ("span_attributes", SPANS, ROOT_ONLY),
    ("span_id", EVENTS, ROOT_ONLY),
    ("span_parents", SPANS, ROOT_ONLY),
    ("tags", EVENTS | FUNCTIONS, NO_MEMBERS),
    ("user_id", VIEW, PLAIN),
    ("view_data", VIEW, PLAIN),
    ("view_type", VIEW, PLAIN),
];

const fn count(source: u16) -> usize {
    let (mut found, mut at) = (0, 0);
    while at < COLUMNS.len() {
        if COLUMNS[at].1 & source != 0 {
            found += 1;
        }
        at += 1;
    }
    found
}

const fn names<const N: usize>(source: u16) -> [&'static str; N] {
    let mut names = [""; N];
    let (mut found, mut at) = (0, 0);
    while at < COLUMNS.len() {
        if COLUMNS[at].1 & source != 0 {
            names[found] = COLUMNS[at].0;
            found += 1;
        }
        at += 1;
    }
    names
}

/// Defines the columns of the given sources, in their order.
macro_rules! columns {
    ($source:expr) => {{
        const NAMES: [&str; count($source)] = names($source);
        &NAMES
    }};
}

/// Columns that the row of a trace has besides (btql.md, section 7.1): always, and where a query pairs traces.
pub const SPAN_TYPE_INFO: &str = "span_type_info";
pub const COMPARISON_KEY: &str = "comparison_key";

/// Names of sources in `from`.
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
            Kind::ProjectLogs => columns!(LOGS),
            Kind::Experiment => columns!(EXPERIMENT),
            Kind::Playground => columns!(PLAYGROUND),
            Kind::Dataset => columns!(DATASET),
            Kind::Prompt => columns!(PROMPT),
            Kind::Function => columns!(FUNCTION),
            Kind::View => columns!(VIEW),
            Kind::AuditLog => columns!(AUDIT_LOG),
        }
    }

    /// Whether its rows have traces, and so more shapes than one.
    pub fn has_spans(self) -> bool {
        matches!(self, Kind::ProjectLogs | Kind::Experiment | Kind::Playground | Kind::Dataset)
    }
}

/// Whether the row of a trace has a column of its root only.
pub fn is_root_only(column: &str) -> bool {
    facts(column) & ROOT_ONLY != 0
}

/// Whether a column is cut to a preview where it is selected as it is (D-41).
pub fn is_previewed(column: &str) -> bool {
    facts(column) & PREVIEWED != 0
}

/// Whether a path may lead into a column.
pub fn has_members(column: &str) -> bool {
    column != COMPARISON_KEY && facts(column) & NO_MEMBERS == 0
}

fn facts(column: &str) -> u8 {
    COLUMNS.binary_search_by_key(&column, |(name, _, _)| name).map_or(PLAIN, |at| COLUMNS[at].2)
}

/// Returns the kind and the naming of the source with this name.
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
        assert!(COLUMNS.is_sorted());
    }

    #[test]
    fn every_source_has_its_columns() {
        let counts = SOURCES.map(|(name, kind, _)| (name, kind.columns().len()));
        for (name, count) in [
            ("project_logs", 27),
            ("experiment", 26),
            ("dataset", 19),
            ("playground_logs", 28),
            ("prompt", 16),
            ("function", 19),
            ("view", 12),
            ("org_audit_logs", 14),
        ] {
            assert!(counts.contains(&(name, count)), "{name}: {counts:?}");
        }
        assert!(Kind::Playground.columns().contains(&"prompt_session_id"));
        assert!(!Kind::ProjectLogs.columns().contains(&"prompt_session_id"));
    }

    #[test]
    fn facts_are_found_by_name() {
        assert!(is_root_only("span_parents") && !is_root_only("created") && !is_root_only("no_column"));
        assert!(is_previewed("metadata") && !is_previewed("tags"));
        assert!(has_members("metadata") && has_members("no_column"));
        assert!(!has_members("tags") && !has_members(COMPARISON_KEY));
    }
}
