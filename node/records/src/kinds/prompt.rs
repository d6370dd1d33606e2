//! Prompt or function. Its content is a row of its project, with all versions. The record reserves its slug and maps
//! its id to the project.

use assay_node_auth::ObjectType;
use assay_node_shapes::{MOST_NEGATIVE, MOST_POSITIVE, Member, Shape};
use assay_storage_model::catalog::RecordKind;

use super::{LINE, METADATA, NAME, PROSE, TAGS, TEXTS};
use crate::kind::{Api, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch};

pub static PROMPT: Kind = Kind {
    name: "prompt",
    record: RecordKind::PROMPT,
    naming: Naming::UniqueAs("slug"),
    api: Api::Own,
    export: Export::BeforeRows,
    fields: &[
        Field::required("project_id", Shape::Uuid, OnPatch::Fixed),
        Field::required("slug", NAME, OnPatch::Replaced),
    ],
    filters: &[("slug", Filter::Name), ("project_name", Filter::ProjectName), ("project_id", Filter::ProjectId)],
    ..Kind::plain(Home::Project, Guard::Own(ObjectType::Prompt))
};

/// Fields of the row of a prompt.
pub(crate) const PROMPT_FIELDS: &[Field] = &[
    Field::required("project_id", Shape::Uuid, OnPatch::Fixed),
    Field::required("name", NAME, OnPatch::Replaced),
    Field::required("slug", NAME, OnPatch::Replaced),
    Field::optional("description", PROSE, OnPatch::Replaced),
    Field::optional("prompt_data", PROMPT_DATA, OnPatch::Merged),
    Field::optional("tags", TAGS, OnPatch::Replaced),
    Field::optional("metadata", METADATA, OnPatch::Merged),
    Field::optional("function_type", FUNCTION_TYPE, OnPatch::Fixed),
];

/// Fields of the row of a function. A prompt is a function as well.
pub(crate) const FUNCTION_FIELDS: &[Field] = &[
    Field::required("project_id", Shape::Uuid, OnPatch::Fixed),
    Field::required("name", NAME, OnPatch::Replaced),
    Field::required("slug", NAME, OnPatch::Fixed),
    Field::optional("description", PROSE, OnPatch::Replaced),
    Field::optional("prompt_data", PROMPT_DATA, OnPatch::Merged),
    Field::optional("tags", TAGS, OnPatch::Replaced),
    Field::optional("metadata", METADATA, OnPatch::Merged),
    Field::optional("function_type", FUNCTION_TYPE, OnPatch::Fixed),
    Field::required("function_data", FUNCTION_DATA, OnPatch::Merged),
    Field::optional("origin", ORIGIN, OnPatch::Fixed),
    Field::optional("function_schema", SCHEMA, OnPatch::Fixed),
];

/// Upper bound of the size of one definition with its code and texts.
const BYTES_MAX: usize = 4 << 20;
const ITEMS_MAX: usize = 10_000;

const TEXT: Shape = Shape::Text { bytes_min: 0, bytes_max: BYTES_MAX };
const OPEN: Shape = Shape::Open { bytes_max: BYTES_MAX };
const ANY: Shape = Shape::Any { bytes_max: BYTES_MAX };
const NUMBER: Shape = Shape::Number { min: MOST_NEGATIVE, max: MOST_POSITIVE };
const SHARE: Shape = Shape::Number { min: 0.0, max: 1.0 };

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

const PROMPT_DATA: Shape = Shape::Known {
    members: &[
        Member::optional("prompt", BLOCK),
        Member::optional(
            "options",
            Shape::Known {
                members: &[
                    Member::optional("model", LINE),
                    Member::optional("params", OPEN),
                    Member::optional("position", LINE),
                ],
                bytes_max: BYTES_MAX,
            },
        ),
        Member::optional(
            "parser",
            Shape::TaggedOpen(
                "type",
                &[(
                    "llm_classifier",
                    &[
                        Member::required("use_cot", Shape::Bool),
                        Member::optional("choice_scores", Shape::Values { of: &SHARE, items_max: ITEMS_MAX }),
                        Member::optional("choice", TEXTS),
                        Member::optional("allow_no_match", Shape::Bool),
                    ],
                )],
            ),
        ),
        Member::optional("tool_functions", Shape::List { of: &SAVED, items_max: ITEMS_MAX }),
        Member::optional("template_format", Shape::Word(&["mustache", "nunjucks", "none"])),
        Member::optional("mcp", Shape::Values { of: &MCP, items_max: ITEMS_MAX }),
        Member::optional("origin", OPEN),
    ],
    bytes_max: BYTES_MAX,
};
const BLOCK: Shape = Shape::TaggedOpen(
    "type",
    &[
        (
            "chat",
            &[
                Member::required("messages", Shape::List { of: &MESSAGE, items_max: ITEMS_MAX }),
                Member::optional("tools", TEXT),
            ],
        ),
        ("completion", &[Member::required("content", TEXT)]),
    ],
);
const CONTENT: &[Member] = &[Member::optional("content", ANY), Member::optional("name", LINE)];
const MESSAGE: Shape = Shape::TaggedOpen(
    "role",
    &[
        ("system", CONTENT),
        ("user", CONTENT),
        (
            "assistant",
            &[
                Member::optional("content", ANY),
                Member::optional("name", LINE),
                Member::optional("tool_calls", Shape::List { of: &OPEN, items_max: ITEMS_MAX }),
                Member::optional("function_call", OPEN),
            ],
        ),
        ("tool", &[Member::optional("content", ANY), Member::optional("tool_call_id", LINE)]),
        ("function", &[Member::optional("content", TEXT), Member::required("name", LINE)]),
        ("developer", CONTENT),
        ("model", &[Member::optional("content", TEXT)]),
    ],
);
/// Shape of a reference to a function by id, by its global name, or by project and slug.
const SAVED: Shape = Shape::TaggedOpen(
    "type",
    &[
        ("function", &[Member::required("id", LINE), Member::optional("version", LINE)]),
        ("global", &[Member::required("name", LINE), Member::optional("function_type", FUNCTION_TYPE)]),
        ("slug", &[Member::required("project_id", Shape::Uuid), Member::required("slug", NAME)]),
    ],
);
const MCP: Shape = Shape::TaggedOpen(
    "type",
    &[
        ("id", &[Member::required("id", Shape::Uuid), Member::optional("enabled_tools", TEXTS)]),
        ("url", &[Member::required("url", super::URL), Member::optional("enabled_tools", TEXTS)]),
    ],
);

const FUNCTION_DATA: Shape = Shape::TaggedOpen(
    "type",
    &[
        ("prompt", &[]),
        ("code", &[Member::required("data", CODE)]),
        ("graph", &[Member::required("nodes", OPEN), Member::required("edges", OPEN)]),
        (
            "remote_eval",
            &[
                Member::required("endpoint", super::URL),
                Member::required("eval_name", LINE),
                Member::required("parameters", OPEN),
                Member::optional("parameters_version", LINE),
            ],
        ),
        (
            "global",
            &[
                Member::required("name", LINE),
                Member::optional("function_type", FUNCTION_TYPE),
                Member::optional("config", OPEN),
            ],
        ),
        ("facet", &[Member::required("prompt", TEXT), Member::optional("model", LINE)]),
        ("batched_facet", &[Member::required("facets", Shape::List { of: &FACET, items_max: ITEMS_MAX })]),
        (
            "parameters",
            &[
                Member::required("data", OPEN),
                Member::required("__schema", Shape::TaggedOpen("type", &[("object", PARAMETERS)])),
            ],
        ),
        (
            "topic_map",
            &[
                Member::required("source_facet", LINE),
                Member::required("embedding_model", LINE),
                Member::optional("distance_threshold", NUMBER),
            ],
        ),
    ],
);
const PARAMETERS: &[Member] = &[
    Member::required("properties", Shape::Values { of: &OPEN, items_max: ITEMS_MAX }),
    Member::optional("required", TEXTS),
    Member::optional("additionalProperties", Shape::Bool),
];
const FACET: Shape =
    Shape::Known { members: &[Member::required("name", LINE), Member::required("prompt", TEXT)], bytes_max: BYTES_MAX };
const RUNTIME: Shape = Shape::Known {
    members: &[
        Member::required("runtime", Shape::Word(&["node", "python", "browser", "quickjs"])),
        Member::required("version", LINE),
    ],
    bytes_max: BYTES_MAX,
};
const CODE: Shape = Shape::TaggedOpen(
    "type",
    &[
        (
            "bundle",
            &[
                Member::required("runtime_context", RUNTIME),
                Member::required("location", LOCATION),
                Member::optional("bundle_id", LINE),
                Member::optional("preview", TEXT),
            ],
        ),
        (
            "inline",
            &[
                Member::required("runtime_context", RUNTIME),
                Member::required("code", TEXT),
                Member::optional("code_hash", LINE),
            ],
        ),
    ],
);
const LOCATION: Shape = Shape::TaggedOpen(
    "type",
    &[
        ("experiment", &[Member::required("eval_name", LINE), Member::required("position", OPEN)]),
        ("function", &[Member::required("index", Shape::Whole { min: 0, max: i64::MAX })]),
        ("sandbox", &[Member::required("sandbox_spec", OPEN), Member::required("eval_name", LINE)]),
    ],
);

const ORIGIN: Shape = Shape::Known {
    members: &[
        Member::required("object_type", Shape::Word(ObjectType::WORDS)),
        Member::required("object_id", Shape::Uuid),
        Member::optional("internal", Shape::Bool),
    ],
    bytes_max: BYTES_MAX,
};
const SCHEMA: Shape = Shape::Known {
    members: &[Member::optional("parameters", ANY), Member::optional("returns", ANY)],
    bytes_max: BYTES_MAX,
};
