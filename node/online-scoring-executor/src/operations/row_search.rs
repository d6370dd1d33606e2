//! Search for the rows that a configuration would score, newest first.

use assay_node_btql::parse_expression;
use assay_node_http::requests::caller::Caller;
use assay_node_http::responses::refusal::Refusal;
use assay_node_online_scoring::{EXCLUDED_SPAN_TYPES, OnlineConfig, RuleScope, SCORER_PURPOSE, timestamp_text};
use assay_node_query_http::{QueryOptions, rows_of};
use assay_storage_model::ObjectKey;
use serde_json::{Map, Value};

use crate::groups::quoted;

/// Upper bound of the bytes of the ids that a search finds.
const IDS_BYTES_MAX: usize = 16 << 20;
/// Upper bound of the bytes of the rows of one trace.
const TRACE_BYTES_MAX: usize = 64 << 20;

/// Search for rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowSearch<'s> {
    pub object: ObjectKey,
    pub config: &'s OnlineConfig,
    /// Filter beside that of the rule.
    pub filter: Option<&'s str>,
    pub from_ms: Option<u64>,
    pub to_ms: Option<u64>,
    pub limit: u64,
}

impl RowSearch<'_> {
    /// Returns the ids of the rows, newest first. Traces and groups are found by their roots.
    pub async fn ids(&self, caller: &Caller) -> Result<Vec<String>, Refusal> {
        let types: Vec<String> = EXCLUDED_SPAN_TYPES.iter().map(|name| quoted(name)).collect();
        let mut conditions = vec![
            format!("(span_attributes.purpose is null or span_attributes.purpose != {})", quoted(SCORER_PURPOSE)),
            format!("(span_attributes.type is null or span_attributes.type not in [{}])", types.join(", ")),
        ];
        match &self.config.scope {
            RuleScope::Span(spans) => {
                let mut kinds: Vec<String> = spans.applies_to_root.then(|| "is_root".to_owned()).into_iter().collect();
                kinds.extend(spans.names.iter().map(|name| format!("span_attributes.name = {}", quoted(name))));
                if !kinds.is_empty() {
                    conditions.push(format!("({})", kinds.join(" or ")));
                }
            }
            RuleScope::Trace { .. } | RuleScope::Group(_) => conditions.push("is_root".to_owned()),
        }
        for filter in [self.config.filter.as_deref(), self.filter].into_iter().flatten() {
            // alone, so that the filter does not reach beyond its parentheses
            parse_expression(filter).map_err(|why| Refusal::bad(format!("`filter`: {why}")))?;
            conditions.push(format!("({filter}\n)"));
        }
        for (operator, time) in [(">=", self.from_ms), ("<", self.to_ms)] {
            conditions.extend(time.map(|time| format!("created {operator} {}", quoted(&timestamp_text(time)))));
        }
        let query = [
            "select: id".to_owned(),
            format!("from: project_logs({}) spans", quoted(&self.object.id.to_string())),
            format!("filter: {}", conditions.join(" and ")),
            "sort: created desc, _pagination_key desc".to_owned(),
            format!("limit: {}", self.limit),
        ];
        let rows = rows_of(caller, query.join(" | "), &QueryOptions::newest(IDS_BYTES_MAX)).await?;
        Ok(rows.iter().filter_map(|row| row.get("id")?.as_str().map(str::to_owned)).collect())
    }
}

/// Returns the rows of a trace.
pub(super) async fn trace_rows(
    caller: &Caller,
    object: &ObjectKey,
    root_span_id: &str,
) -> Result<Vec<Map<String, Value>>, Refusal> {
    let query = [
        "select: *".to_owned(),
        format!("from: project_logs({}) spans", quoted(&object.id.to_string())),
        format!("filter: root_span_id = {}", quoted(root_span_id)),
    ];
    let rows = rows_of(caller, query.join(" | "), &QueryOptions::newest(TRACE_BYTES_MAX)).await?;
    Ok(rows.into_iter().filter_map(|row| if let Value::Object(row) = row { Some(row) } else { None }).collect())
}
