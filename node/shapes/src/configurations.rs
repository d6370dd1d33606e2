//! Shapes of configurations that records keep: of automations and rules, and of their parts.

use crate::{MOST_POSITIVE, Member, Shape};

/// Shape of descriptions and messages.
pub const PROSE: Shape = Shape::Text { bytes_min: 0, bytes_max: 64 << 10 };
/// Shape of labels, versions and paths.
pub const LINE: Shape = Shape::Text { bytes_min: 0, bytes_max: 4 << 10 };
/// Shape of a list of texts.
pub const TEXTS: Shape = Shape::Texts { items_max: 1000, bytes_max: 64 << 10 };
/// Shape of an address.
pub const URL: Shape = Shape::Text { bytes_min: 1, bytes_max: 8 << 10 };
/// Shape of a stored or global function, as configurations name it.
pub const SAVED_FUNCTION: Shape = Shape::Tagged(
    "type",
    &[
        ("function", &[Member::required("id", LINE), Member::optional("version", LINE)]),
        ("global", &[Member::required("name", LINE), Member::optional("function_type", FUNCTION_TYPE)]),
    ],
);

const FUNCTION_TYPE: Shape = Shape::Word(&[
    "llm",
    "scorer",
    "task",
    "tool",
    "custom_view",
    "preprocessor",
    "facet",
    "classifier",
    "tag",
    "parameters",
    "sandbox",
]);

/// Shape of the scope of a rule.
pub const SCOPE: Shape = Shape::Tagged(
    "type",
    &[
        ("span", &[]),
        ("trace", &[Member::optional("idle_seconds", SECONDS)]),
        (
            "group",
            &[
                Member::required("group_by", LINE),
                Member::optional("interval_seconds", Shape::Number { min: 1.0, max: MOST_POSITIVE }),
                Member::optional("max_traces", Shape::Whole { min: 1, max: 64 }),
                Member::required("placement", Shape::Word(&["first", "each"])),
                Member::optional("idle_seconds", SECONDS),
            ],
        ),
    ],
);
const SECONDS: Shape = Shape::Number { min: 0.0, max: MOST_POSITIVE };

/// Configuration of an automation of a project.
pub const AUTOMATION: Shape = Shape::Tagged(
    "event_type",
    &[
        ("logs", LOGS),
        ("btql_export", EXPORT),
        ("async_query", ASYNC_QUERY),
        ("retention", RETENTION),
        ("environment_update", ENVIRONMENT_UPDATE),
        ("topic", TOPIC),
        ("topic_digest", TOPIC_DIGEST),
    ],
);

const LOGS: &[Member] = &[
    Member::required("btql_filter", PROSE),
    Member::required("interval_seconds", INTERVAL),
    Member::required("action", ACTION),
];

const EXPORT: &[Member] = &[
    Member::optional("status", STATUS),
    Member::required(
        "export_definition",
        Shape::Tagged(
            "type",
            &[("log_traces", &[]), ("log_spans", &[]), ("btql_query", &[Member::required("btql_query", PROSE)])],
        ),
    ),
    Member::optional("scope", SCOPE),
    Member::required("export_path", LINE),
    Member::required("format", Shape::Word(&["jsonl", "parquet"])),
    Member::required("interval_seconds", INTERVAL),
    Member::required("credentials", CREDENTIALS),
    Member::optional("batch_size", Shape::Number { min: 1.0, max: MOST_POSITIVE }),
];

const ASYNC_QUERY: &[Member] = &[
    Member::optional("status", STATUS),
    Member::required("created_by_user_id", Shape::Uuid),
    Member::required("object_type", Shape::Word(&["project_logs", "experiment", "dataset", "playground_logs"])),
    Member::required("object_id", LINE),
    Member::required("query", PROSE),
    Member::required("format", Shape::Word(&["jsonl"])),
    Member::optional("batch_size", Shape::Whole { min: 1, max: 100_000 }),
];

/// Configuration of an automation that deletes old rows.
pub const RETENTION: &[Member] = &[
    Member::required("object_type", Shape::Word(&["project_logs", "experiment", "dataset"])),
    Member::required("retention_days", Shape::Number { min: 0.0, max: MOST_POSITIVE }),
    Member::optional("confirm", Shape::Bool),
];

const ENVIRONMENT_UPDATE: &[Member] =
    &[Member::optional("environment_filter", TEXTS), Member::required("action", ACTION)];

const TOPIC: &[Member] = &[
    Member::optional("status", STATUS),
    Member::required("sampling_rate", Shape::Number { min: 0.0, max: 1.0 }),
    Member::optional("facet_model", Shape::Word(&["brain-facet-latest", "brain-facet-1", "brain-facet-2"])),
    Member::required("facet_functions", Shape::List { of: &SAVED_FUNCTION, items_max: FUNCTIONS_MAX }),
    Member::required("topic_map_functions", Shape::List { of: &TOPIC_MAP_FUNCTION, items_max: FUNCTIONS_MAX }),
    Member::optional("scope", SCOPE),
    Member::optional("data_scope", DATA_SCOPE),
    Member::optional("btql_filter", PROSE),
    Member::optional("rerun_seconds", Shape::Number { min: 600.0, max: MOST_POSITIVE }),
    Member::optional("relabel_overlap_seconds", Shape::Number { min: 60.0, max: MOST_POSITIVE }),
    Member::optional("backfill_time_range", BACKFILL),
];

const TOPIC_DIGEST: &[Member] = &[
    Member::optional("status", STATUS),
    Member::optional("window_seconds", Shape::Whole { min: 3600, max: 2_592_000 }),
    Member::required("scheduled_time_minutes_utc", Shape::Whole { min: 0, max: 1439 }),
    Member::required("action", Shape::Tagged("type", &[("slack", SLACK)])),
    Member::optional("topic_map_function_ids", Shape::Texts { items_max: 10, bytes_max: 4 << 10 }),
];

const FUNCTIONS_MAX: usize = 1000;
const STATUS: Shape = Shape::Word(&["active", "paused"]);
const INTERVAL: Shape = Shape::Number { min: 1.0, max: 2_592_000.0 };
const ACTION: Shape = Shape::Tagged("type", &[("webhook", &[Member::required("url", URL)]), ("slack", SLACK)]);
const SLACK: &[Member] = &[
    Member::required("workspace_id", LINE),
    Member::required("channel", LINE),
    Member::optional("message_template", PROSE),
];
const CREDENTIALS: Shape = Shape::Tagged(
    "type",
    &[
        ("aws_iam", &[Member::required("role_arn", LINE), Member::required("external_id", LINE)]),
        ("gcp_service_account", &[Member::required("service_account_email", LINE)]),
    ],
);
const TOPIC_MAP_FUNCTION: Shape =
    Shape::Closed(&[Member::required("function", SAVED_FUNCTION), Member::optional("btql_filter", PROSE)]);
const DATA_SCOPE: Shape = Shape::Tagged(
    "type",
    &[("project_logs", &[]), ("project_experiments", &[]), ("experiment", &[Member::required("experiment_id", LINE)])],
);
const BACKFILL: Shape =
    Shape::Either(&[LINE, Shape::Closed(&[Member::required("from", LINE), Member::required("to", LINE)])]);
