//! Tools over rows: queries, and the fields of an object.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::arguments::{Argument, ArgumentKind, Arguments, NAME_BYTES_MAX};
use crate::bounds::{CONTENT_BYTES_MAX, cut, cut_members, fitting, shrink};
use crate::data::{RecordKindName, RecordRequest, RowBatch, RowQuery, ToolData, ToolFailure};
use crate::tools::{Tool, ToolKind, ToolOutput, cursor_schema, notes_schema, object_schema, objects_schema};

/// Upper bound of a query text.
const QUERY_BYTES_MAX: usize = 64 << 10;
/// Upper bound of the rows of one answer.
const ROWS_MAX: u64 = 1000;
const ROWS_DEFAULT: u64 = 50;
/// Upper bound of the bytes of one value, which agents may choose up to the larger one.
pub(crate) const VALUE_BYTES: ArgumentKind = ArgumentKind::Number { least: 64, most: 32 << 10, default: Some(1000) };
/// Explanation of that argument.
pub(crate) const VALUE_BYTES_ABOUT: &str =
    "Longer values are cut to this many bytes. Raise it together with a smaller `limit`.";
/// Length beyond the bound at which the engine cuts values, so that a cut is noticed.
pub(crate) const PREVIEW_SLACK: u64 = 64;
/// Smallest bound of values before whole rows are shortened.
const VALUE_BYTES_MIN: usize = 64;
/// Bytes of an answer that belong to no row.
const HEAD_BYTES: usize = 4 << 10;
/// Upper bound of the fields of one answer.
const FIELDS_MAX: u64 = 300;
/// Upper bound of the frequent values that are shown of a field, and of each of them.
const TOP_VALUES: usize = 3;
const TOP_VALUE_BYTES: usize = 100;
/// Upper bound of the candidates that a message lists.
const CANDIDATES_MAX: u64 = 5;

/// Sources of rows that agents name.
pub(crate) const SOURCES: &[&str] =
    &["project_logs", "experiment", "dataset", "playground_logs", "project_prompts", "project_functions"];
/// Explanation of the argument `object`.
pub(crate) const OBJECT_ABOUT: &str =
    "Id or name: of the project for project_logs, or of the experiment, dataset or playground.";
/// Explanation of the argument `project`.
pub(crate) const PROJECT_ABOUT: &str = "Id or name of the project, if `object` is a name that several projects use.";
pub(crate) const NAME: ArgumentKind = ArgumentKind::Text { bytes_max: NAME_BYTES_MAX };
pub(crate) const EXPRESSION: ArgumentKind = ArgumentKind::Text { bytes_max: QUERY_BYTES_MAX };

pub(crate) const SQL_QUERY: Tool = Tool {
    kind: ToolKind::SqlQuery,
    name: "sql_query",
    title: "Query rows",
    about: "Runs a read-only query over logs, experiments, datasets or prompts, in SQL or BTQL. Sources are \
            functions: project_logs('project'), experiment('id'), dataset('id'), project_prompts('project'). \
            Arguments are ids or names. Logs have one row per span, with the columns id, created, input, output, \
            expected, error, scores, metadata, metrics, tags, span_attributes, span_id, root_span_id, is_root. \
            Example: SELECT input, metrics.duration FROM project_logs('support') WHERE is_root AND error IS NOT \
            NULL AND created > now() - interval 1 day ORDER BY created DESC. Aggregates: SELECT metadata.model, \
            count(1), avg(scores.helpful) FROM ... GROUP BY 1. Full text: input MATCH 'refund'. Select few columns, \
            and use search_docs for the language.",
    arguments: &[
        Argument::required("query", EXPRESSION, "Query in SQL or BTQL."),
        Argument::optional(
            "limit",
            ArgumentKind::Number { least: 1, most: ROWS_MAX, default: Some(ROWS_DEFAULT) },
            "Upper bound of the rows.",
        ),
        Argument::optional("cursor", NAME, "Cursor of the previous answer to the same query."),
        Argument::optional("value_bytes", VALUE_BYTES, VALUE_BYTES_ABOUT),
    ],
    output: || {
        object_schema(json!({
            "rows": objects_schema(), "row_count": {"type": "integer"}, "cursor": cursor_schema(),
            "notes": notes_schema(),
        }))
    },
};

pub(crate) const INFER_SCHEMA: Tool = Tool {
    kind: ToolKind::InferSchema,
    name: "infer_schema",
    title: "Infer fields",
    about: "Lists the fields that the rows of an object really have: path, type, number of rows, and frequent \
            values. Use it before you write a query.",
    arguments: &[
        Argument::required("object_type", ArgumentKind::Choice(SOURCES), "Kind of the rows."),
        Argument::required("object", NAME, OBJECT_ABOUT),
        Argument::optional("project", NAME, PROJECT_ABOUT),
        Argument::optional("filter", EXPRESSION, "Condition on the rows, such as: is_root AND error IS NOT NULL."),
        Argument::optional(
            "limit",
            ArgumentKind::Number { least: 1, most: FIELDS_MAX, default: Some(100) },
            "Upper bound of the fields.",
        ),
    ],
    output: || object_schema(json!({"fields": objects_schema(), "notes": notes_schema()})),
};

/// Rows of an answer, cut to its size.
struct ShownRows {
    rows: Vec<Value>,
    was_cut: bool,
}

impl ShownRows {
    /// Cuts values, and leaves out the last rows if they do not fit.
    fn of(batch: &RowBatch, value_bytes: usize) -> ShownRows {
        let room = CONTENT_BYTES_MAX - HEAD_BYTES;
        let mut was_cut = false;
        let rows: Vec<Value> = batch.rows.iter().map(|row| cut_members(row, value_bytes, &mut was_cut)).collect();
        let count = fitting(&rows, room);
        if count > 0 || rows.is_empty() {
            return ShownRows { rows: rows.into_iter().take(count).collect(), was_cut };
        }
        match value_bytes > VALUE_BYTES_MIN {
            true => ShownRows::of(batch, (value_bytes / 2).max(VALUE_BYTES_MIN)),
            // The first row has very many columns.
            false => ShownRows { rows: vec![shrink(&rows[0], room - 2).0], was_cut: true },
        }
    }
}

pub(crate) async fn sql_query<D: ToolData>(data: &D, arguments: Arguments<'_>) -> Result<ToolOutput, ToolFailure> {
    let value_bytes = arguments.number("value_bytes");
    let query = RowQuery {
        query: arguments.required("query").into(),
        limit: arguments.number("limit"),
        is_whole: false,
        preview: Some(value_bytes + PREVIEW_SLACK),
        cursor: arguments.text("cursor").map(str::to_owned),
        version: None,
    };
    let value_bytes = usize::try_from(value_bytes).unwrap_or(usize::MAX);
    let mut batch = data.rows(&query).await?;
    let mut shown = ShownRows::of(&batch, value_bytes);
    let found = batch.rows.len();
    let omitted = found - shown.rows.len();
    if omitted > 0 {
        // The same rows again, but fewer: then the cursor follows the last row of the answer.
        let fewer = RowQuery { limit: shown.rows.len() as u64, version: Some(batch.version.clone()), ..query };
        batch = data.rows(&fewer).await?;
        shown = ShownRows::of(&batch, value_bytes);
    }
    let mut notes = batch.warnings.clone();
    let is_all_shown = shown.rows.len() == batch.rows.len();
    let cursor = batch.cursor.filter(|_| is_all_shown);
    if omitted > 0 && cursor.is_some() {
        notes.push(format!("{omitted} rows did not fit: pass `cursor`, or select fewer columns"));
    } else if omitted > 0 {
        notes.push(format!("{omitted} rows did not fit: select fewer columns, lower `value_bytes`, or filter more"));
    }
    if shown.was_cut {
        notes.push(
            "values that end with …[cut] are longer: raise `value_bytes`, or select a part such as input.messages[0]"
                .into(),
        );
    }
    Ok(ToolOutput::recorded(json!({
        "rows": shown.rows, "row_count": shown.rows.len(), "cursor": cursor, "notes": notes,
    })))
}

pub(crate) async fn infer_schema<D: ToolData>(data: &D, arguments: Arguments<'_>) -> Result<ToolOutput, ToolFailure> {
    let source = arguments.required("object_type");
    let object = source_id(data, source, arguments.required("object"), arguments.text("project")).await?;
    let mut query = json!({"infer": [{"op": "star"}], "from": source_tree(source, &object)});
    if let Some(filter) = arguments.text("filter") {
        query["filter"] = json!({"btql": filter});
    }
    let limit = arguments.number("limit");
    let query = RowQuery { query, limit, is_whole: true, preview: None, cursor: None, version: None };
    let batch = data.rows(&query).await?;
    let fields: Vec<Value> = batch.rows.iter().map(field_of).collect();
    let count = fitting(&fields, CONTENT_BYTES_MAX - HEAD_BYTES);
    let mut notes = batch.warnings;
    if count < fields.len() || fields.len() as u64 == limit {
        notes.push("there may be more fields: raise `limit`, or add a `filter`".into());
    }
    Ok(ToolOutput::recorded(json!({"fields": fields[..count], "notes": notes})))
}

/// Returns a field as agents write it in queries.
fn field_of(row: &Value) -> Value {
    let parts = row["name"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_word = |part: &str| {
        !part.is_empty()
            && !part.starts_with(|first: char| first.is_ascii_digit())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let part = |part: &Value| match part.as_str() {
        Some(text) if is_word(text) => text.to_owned(),
        _ => format!("\"{}\"", part.as_str().map_or_else(|| part.to_string(), str::to_owned).replace('"', "\"\"")),
    };
    let path = parts.iter().map(part).collect::<Vec<_>>().join(".");
    let top = row["top_values"].as_array().map(Vec::as_slice).unwrap_or_default();
    let top: Vec<Value> = top
        .iter()
        .take(TOP_VALUES)
        .map(|one| json!({"value": cut(&one["value"], TOP_VALUE_BYTES).0, "count": one["count"]}))
        .collect();
    json!({"path": cut(&path.into(), 500).0, "type": row["type"], "rows": row["count"], "top_values": top})
}

/// Returns the tree of a source with one object.
pub(crate) fn source_tree(source: &str, object: &str) -> Value {
    json!({
        "op": "function", "name": {"op": "ident", "name": [source]}, "args": [{"op": "literal", "value": object}],
    })
}

/// Returns the argument of a source: the id of the object, or the name of a project.
pub(crate) async fn source_id<D: ToolData>(
    data: &D,
    source: &str,
    object: &str,
    project: Option<&str>,
) -> Result<String, ToolFailure> {
    let kind = match source {
        "experiment" => RecordKindName::Experiment,
        "dataset" => RecordKindName::Dataset,
        "playground_logs" => RecordKindName::Playground,
        _ => return Ok(object.to_owned()),
    };
    Ok(object_id(data, kind, object, project).await?.to_string())
}

/// Returns the id of an object that agents name by its id or its name.
pub(crate) async fn object_id<D: ToolData>(
    data: &D,
    kind: RecordKindName,
    object: &str,
    project: Option<&str>,
) -> Result<Uuid, ToolFailure> {
    if let Ok(id) = Uuid::parse_str(object) {
        return Ok(id);
    }
    let request = RecordRequest {
        name: Some(object.to_owned()),
        project: project.map(str::to_owned),
        ..RecordRequest::of(kind, CANDIDATES_MAX)
    };
    let found = data.records(&request).await?;
    let id = |record: &Value| record["id"].as_str().and_then(|id| Uuid::parse_str(id).ok());
    let ids: Vec<Uuid> = found.iter().filter_map(id).collect();
    let (what, shown) = (kind.name(), object.chars().take(80).collect::<String>());
    match ids.as_slice() {
        [one] => Ok(*one),
        [] => Err(ToolFailure::Refused(format!(
            "no {what} `{shown}` exists, or this credential may not see it; list_recent_objects lists those it may see"
        ))),
        several => {
            let several: Vec<String> = several.iter().map(Uuid::to_string).collect();
            let why = format!("several {what}s have the name `{shown}`: use one of the ids {}", several.join(", "));
            Err(ToolFailure::Refused(why))
        }
    }
}
