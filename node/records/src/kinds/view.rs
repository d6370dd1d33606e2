//! View: named display settings of a table or a chart of an object.

use assay_node_shapes::{MOST_NEGATIVE, MOST_POSITIVE, Member, Shape};
use assay_storage_model::catalog::RecordKind;

use super::{LINE, NAME, TEXTS};
use crate::kind::{Api, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch, made_by};
use assay_node_auth::ObjectType;

pub static VIEW: Kind = Kind {
    name: "view",
    record: RecordKind::VIEW,
    naming: Naming::UniqueAmong(&["object_type", "object_id", "view_type"]),
    api: Api::Own,
    export: Export::AfterRows,
    fields: &[
        Field::required("object_type", Shape::Word(ObjectType::WORDS), OnPatch::Fixed),
        Field::required("object_id", Shape::Uuid, OnPatch::Fixed),
        Field::required("view_type", Shape::Word(TYPES), OnPatch::Replaced),
        Field::required("name", NAME, OnPatch::Replaced),
        Field::optional("view_data", DATA, OnPatch::Merged),
        Field::optional("options", OPTIONS, OnPatch::Merged),
        Field::ours("user_id", Shape::Uuid, OnPatch::Replaced),
    ],
    filters: &[
        ("object_type", Filter::Field("object_type")),
        ("object_id", Filter::Field("object_id")),
        ("view_type", Filter::Field("view_type")),
        ("view_name", Filter::Field("name")),
        ("name", Filter::Field("name")),
    ],
    has_deleted_at: true,
    complete: made_by,
    ..Kind::plain(Home::Object, Guard::Object)
};

const TYPES: &[&str] = &[
    "projects",
    "experiments",
    "experiment",
    "playgrounds",
    "playground",
    "datasets",
    "dataset",
    "prompts",
    "parameters",
    "tools",
    "scorers",
    "classifiers",
    "logs",
    "monitor",
    "for_review_project_log",
    "for_review_experiments",
    "for_review_datasets",
];

const ITEMS_MAX: usize = 10_000;
const BYTES_MAX: usize = 128 << 10;

const DATA: Shape = Shape::Closed(&[
    Member::optional(
        "search",
        Shape::Closed(&[
            Member::optional("filter", CLAUSES),
            Member::optional("tag", CLAUSES),
            Member::optional("match", CLAUSES),
            Member::optional("sort", CLAUSES),
        ]),
    ),
    Member::optional("custom_charts", ANY),
]);
const ANY: Shape = Shape::Any { bytes_max: BYTES_MAX };
const CLAUSES: Shape = Shape::List { of: &ANY, items_max: ITEMS_MAX };

const OPTIONS: Shape = Shape::Either(&[MONITOR, TABLE]);
const MONITOR: Shape = Shape::Closed(&[
    Member::required("viewType", Shape::Word(&["monitor"])),
    Member::required(
        "options",
        Shape::Closed(&[
            Member::optional("spanType", Shape::Word(&["range", "frame"])),
            Member::optional("rangeValue", LINE),
            Member::optional("frameStart", LINE),
            Member::optional("frameEnd", LINE),
            Member::optional("tzUTC", Shape::Bool),
            Member::optional("chartVisibility", Shape::Values { of: &Shape::Bool, items_max: ITEMS_MAX }),
            Member::optional("projectId", LINE),
            Member::optional("type", Shape::Word(&["project", "experiment"])),
            Member::optional("groupBy", LINE),
        ]),
    ),
    Member::optional("freezeColumns", Shape::Bool),
]);
const TABLE: Shape = Shape::Closed(&[
    Member::optional("columnVisibility", Shape::Values { of: &Shape::Bool, items_max: ITEMS_MAX }),
    Member::optional("columnOrder", TEXTS),
    Member::optional("columnSizing", Shape::Values { of: &NUMBER, items_max: ITEMS_MAX }),
    Member::optional("grouping", LINE),
    Member::optional("rowHeight", LINE),
    Member::optional("tallGroupRows", Shape::Bool),
    Member::optional("layout", LINE),
    Member::optional("topicMapReportKey", LINE),
    Member::optional("chartHeight", NUMBER),
    Member::optional("excludedMeasures", Shape::List { of: &MEASURE, items_max: ITEMS_MAX }),
    Member::optional("yMetric", MEASURE),
    Member::optional("xAxis", MEASURE),
    Member::optional("symbolGrouping", MEASURE),
    Member::optional("xAxisAggregation", LINE),
    Member::optional("chartAnnotations", Shape::List { of: &ANNOTATION, items_max: ITEMS_MAX }),
    Member::optional(
        "timeRangeFilter",
        Shape::Either(&[LINE, Shape::Closed(&[Member::required("from", LINE), Member::required("to", LINE)])]),
    ),
    Member::optional("queryShape", Shape::Word(&["traces", "spans", "topics"])),
    Member::optional("cluster", LINE),
    Member::optional("freezeColumns", Shape::Bool),
]);
const NUMBER: Shape = Shape::Number { min: MOST_NEGATIVE, max: MOST_POSITIVE };
const MEASURE: Shape = Shape::Closed(&[
    Member::required("type", Shape::Word(&["none", "score", "metric", "metadata"])),
    Member::required("value", LINE),
]);
const ANNOTATION: Shape = Shape::Closed(&[Member::required("id", LINE), Member::required("text", LINE)]);
