//! Traces of a group, found by a query over the roots of a log.

use assay_node_http::requests::caller::Caller;
use assay_node_query_http::{QueryOptions, rows_of};
use assay_storage_model::ObjectKey;
use serde_json::Value;

/// Upper bound of the bytes of the ids of a group.
const GROUP_BYTES_MAX: usize = 1 << 20;

/// Returns a text as a literal of the query language.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// Returns the root spans of the traces of a group, oldest first.
pub(crate) async fn roots_of_group(
    caller: &Caller,
    object: &ObjectKey,
    (path, value): (&str, &str),
    traces_max: usize,
) -> Result<Vec<String>, String> {
    let text = quoted(value);
    let is_plain = matches!(serde_json::from_str(value), Ok(Value::Number(_) | Value::Bool(_)));
    let condition =
        if is_plain { format!("({path} = {text} or {path} = {value})") } else { format!("{path} = {text}") };
    let query = [
        "select: root_span_id".to_owned(),
        format!("from: project_logs({}) spans", quoted(&object.id.to_string())),
        format!("filter: is_root and {condition}"),
        "sort: created asc, _pagination_key asc".to_owned(),
        format!("limit: {traces_max}"),
    ];
    let options = QueryOptions { unmasked: true, ..QueryOptions::newest(GROUP_BYTES_MAX) };
    let rows = rows_of(caller, query.join(" | "), &options).await.map_err(|why| why.to_string())?;
    Ok(rows.iter().filter_map(|row| row.get("root_span_id")?.as_str().map(str::to_owned)).collect())
}
