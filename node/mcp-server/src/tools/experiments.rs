//! Tools for experiments: their summary, and their comparison row by row.

use serde_json::{Map, Value, json};

use crate::arguments::{Argument, ArgumentKind, Arguments};
use crate::bounds::{CONTENT_BYTES_MAX, fitting, shrink};
use crate::data::{RecordKindName, ToolData, ToolFailure};
use crate::tools::rows::{EXPRESSION, NAME, PROJECT_ABOUT, VALUE_BYTES, VALUE_BYTES_ABOUT, object_id};
use crate::tools::{Tool, ToolKind, ToolOutput, cursor_schema, notes_schema, object_schema, objects_schema};

/// Upper bound of the compared rows of one answer.
const ROWS_MAX: u64 = 50;
/// Upper bound of the bytes of one compared row.
const ROW_BYTES_MAX: usize = 12 << 10;
/// Upper bound of the bytes of the summaries in front of the rows.
const SUMMARIES_BYTES_MAX: usize = 24 << 10;
const EXPERIMENT_ABOUT: &str = "Id or name of the experiment.";

pub(crate) const SUMMARIZE_EXPERIMENT: Tool = Tool {
    kind: ToolKind::SummarizeExperiment,
    name: "summarize_experiment",
    title: "Summarize an experiment",
    about: "Returns the scores and metrics of an experiment, their changes against a base experiment with intervals, \
            and the number of rows and errors.",
    arguments: &[
        Argument::required("experiment", NAME, EXPERIMENT_ABOUT),
        Argument::optional("base", NAME, "Id or name of the base. The default is the one that its project chooses."),
        Argument::optional("project", NAME, PROJECT_ABOUT),
    ],
    output: || object_schema(json!({"summary": {"type": "object"}, "notes": notes_schema()})),
};

pub(crate) const COMPARE_EXPERIMENTS: Tool = Tool {
    kind: ToolKind::CompareExperiments,
    name: "compare_experiments",
    title: "Compare experiments row by row",
    about: "Pairs the rows of two experiments by their input, and returns the pairs with their outputs, scores and \
            changes. The first pairs are those whose score fell most.",
    arguments: &[
        Argument::required("experiment", NAME, EXPERIMENT_ABOUT),
        Argument::required("base", NAME, "Id or name of the experiment to compare with."),
        Argument::optional("project", NAME, PROJECT_ABOUT),
        Argument::optional("score", NAME, "Score to compare by. The default is the first one."),
        Argument::optional(
            "only",
            ArgumentKind::Choice(&["up", "down", "same", "new", "missing", "errors"]),
            "Pairs to return: those whose score rose, fell or stayed, or without a partner, or with an error.",
        ),
        Argument::optional("sort", ArgumentKind::Choice(&["delta", "score", "key"]), "Order. The default is delta."),
        Argument::optional("order", ArgumentKind::Choice(&["asc", "desc"]), "Direction. The default is asc."),
        Argument::optional("filter", EXPRESSION, "Condition on the rows, such as: metadata.category = 'billing'."),
        Argument::optional(
            "limit",
            ArgumentKind::Number { least: 1, most: ROWS_MAX, default: Some(10) },
            "Upper bound of the pairs.",
        ),
        Argument::optional("cursor", NAME, "Cursor of the previous answer to the same comparison."),
        Argument::optional("value_bytes", VALUE_BYTES, VALUE_BYTES_ABOUT),
    ],
    output: || {
        object_schema(json!({
            "comparison": {"type": "object"}, "rows": objects_schema(), "total": {"type": "integer"},
            "cursor": cursor_schema(), "notes": notes_schema(),
        }))
    },
};

pub(crate) async fn summarize_experiment<D: ToolData>(
    data: &D,
    arguments: Arguments<'_>,
) -> Result<ToolOutput, ToolFailure> {
    let project = arguments.text("project");
    let experiment = object_id(data, RecordKindName::Experiment, arguments.required("experiment"), project).await?;
    let base = match arguments.text("base") {
        Some(base) => Some(object_id(data, RecordKindName::Experiment, base, project).await?),
        None => None,
    };
    let summary = data.summary(experiment, base).await?;
    let (summary, was_cut) = shrink(&summary, CONTENT_BYTES_MAX - 1024);
    let notes: &[&str] = match was_cut {
        true => &["the summary was shortened: read scores and metrics with sql_query over experiment('id')"],
        false => &[],
    };
    Ok(ToolOutput::recorded(json!({"summary": summary, "notes": notes})))
}

pub(crate) async fn compare_experiments<D: ToolData>(
    data: &D,
    arguments: Arguments<'_>,
) -> Result<ToolOutput, ToolFailure> {
    let project = arguments.text("project");
    let experiment = object_id(data, RecordKindName::Experiment, arguments.required("experiment"), project).await?;
    let base = object_id(data, RecordKindName::Experiment, arguments.required("base"), project).await?;
    if experiment == base {
        return Err(ToolFailure::refused("`experiment` and `base` are the same experiment: name two"));
    }
    let from = arguments.offset("cursor")?;
    let mut request = Map::new();
    request.insert("experiments".into(), json!([experiment, base]));
    request.insert("base".into(), json!(base));
    for name in ["score", "only", "sort", "order", "filter"] {
        if let Some(text) = arguments.text(name) {
            request.insert(name.into(), text.into());
        }
    }
    request.insert("limit".into(), arguments.number("limit").into());
    request.insert("preview_length".into(), arguments.number("value_bytes").into());
    request.insert("cursor".into(), from.to_string().into());
    let mut comparison = data.comparison(request).await?;
    let rows = comparison["rows"].take();
    let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut notes = Vec::new();
    let (summaries, was_cut) = shrink(
        &json!({
            "key": comparison["key"], "score": comparison["score"], "experiments": comparison["experiments"],
            "comparisons": comparison["comparisons"],
        }),
        SUMMARIES_BYTES_MAX,
    );
    let shorter: Vec<(Value, bool)> = rows.iter().map(|row| shrink(row, ROW_BYTES_MAX)).collect();
    let count = fitting(shorter.iter().map(|(row, _)| row), CONTENT_BYTES_MAX - SUMMARIES_BYTES_MAX - 2048);
    if was_cut || shorter[..count].iter().any(|(_, was_cut)| *was_cut) {
        notes.push("some parts were shortened: read single rows with get_trace or sql_query");
    }
    if comparison["truncated"] == true {
        notes.push("an experiment has too many rows, and only the first were compared");
    }
    let total = comparison["total"].as_u64().unwrap_or_default();
    let end = from + count;
    let cursor = ((end as u64) < total && count > 0).then(|| end.to_string());
    let rows: Vec<Value> = shorter.into_iter().take(count).map(|(row, _)| row).collect();
    Ok(ToolOutput::recorded(json!({
        "comparison": summaries, "rows": rows, "total": total, "cursor": cursor, "notes": notes,
    })))
}
