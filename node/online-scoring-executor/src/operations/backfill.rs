//! Scoring of older rows: their triggers, which the executor of the log finds and runs.

use std::collections::HashSet;

use assay_node_auth::Permission;
use assay_node_http::requests::caller::Call;
use assay_node_http::responses::refusal::Refusal;
use assay_node_objects::{ObjectWrite, RowHome};
use assay_node_online_scoring::{
    BackfillRequest, GroupRule, InputDigest, OnlineRule, RuleScope, ScoringState, SilentInput, TriggerScope,
    is_finished, is_root, root_span_id_of, select_backfill, trigger_row,
};
use assay_node_records::{ObjectHome, RecordsError};
use assay_storage_model::event::SentItem;
use assay_storage_model::{ObjectKey, ObjectKind, Xact};
use serde_json::{Map, Value};

use super::row_search::{RowSearch, trace_rows};
use crate::groups::roots_of_group;

/// Rows that are read and written at once.
const ROWS_AT_ONCE: usize = 100;

/// Writes the triggers of older rows, and returns the number of rows that wait for their runs.
pub(super) async fn queue(call: &Call, rule: &OnlineRule, request: &BackfillRequest) -> Result<u64, Refusal> {
    let records = &call.edge.records;
    let found = log_of(call, rule).await?;
    let home = RowHome { object: found.key, org: found.org, project_id: found.project_id };
    let search = RowSearch {
        object: home.object,
        config: &rule.config,
        filter: request.filter.as_deref(),
        from_ms: request.from_ms,
        to_ms: request.to_ms,
        limit: request.limit,
    };
    let ids = search.ids(call).await?;
    let (mut queued, mut groups) = (0, HashSet::new());
    for ids in ids.chunks(ROWS_AT_ONCE) {
        let rows = call.objects().rows(&home, ids.to_vec(), None).await?;
        let mut writes = Vec::new();
        for row in rows {
            let row: Map<String, Value> = serde_json::from_slice(&row).map_err(Refusal::internal)?;
            writes.extend(trigger(call, (rule, request), (&home.object, &row), &mut groups).await?);
        }
        if writes.is_empty() {
            continue;
        }
        let rows: Vec<SentItem> = writes.into_iter().map(SentItem::from).collect();
        let count = rows.len() as u64;
        let write = ObjectWrite { object: home.object, rows, request: None };
        if call.objects().write_scoring(write, call.patience()).await?.is_some() {
            queued += count;
        }
    }
    records.still(&call.principal, &[home.object], Permission::Update).await?;
    Ok(queued)
}

/// Returns the log of a rule, whose rows the caller may read and change. Whoever cannot see the log cannot see the rule.
async fn log_of(call: &Call, rule: &OnlineRule) -> Result<ObjectHome, Refusal> {
    let (records, who) = (&call.edge.records, &call.principal);
    let log = async |permission| {
        let found = records.object(who, ObjectKind::ProjectLogs, rule.project_id, permission).await;
        found.map_err(|why| match why {
            RecordsError::NotFound(_) => {
                let why = format!("no project_score with the id {} is visible to this credential", rule.id);
                RecordsError::NotFound(why)
            }
            other => other,
        })
    };
    log(Permission::Read).await?;
    Ok(log(Permission::Update).await?)
}

/// Returns the write that triggers the functions of the rule for a row, if it changes anything.
async fn trigger(
    call: &Call,
    (rule, request): (&OnlineRule, &BackfillRequest),
    (object, row): (&ObjectKey, &Map<String, Value>),
    groups: &mut HashSet<String>,
) -> Result<Option<Value>, Refusal> {
    let (scope, found) = match &rule.config.scope {
        RuleScope::Span(_) if !is_finished(row, true) => return Ok(None),
        RuleScope::Span(_) => {
            let (digest, xact) = (InputDigest::of_row(row), version_of(row));
            (TriggerScope::Span, TraceVersion { digest, xact, root: None })
        }
        RuleScope::Trace { .. } => {
            (TriggerScope::Trace, trace_version(call, object, root_span_id_of(row).unwrap_or_default()).await?)
        }
        RuleScope::Group(group) => {
            let Some(value) = group.group_by.value(row).filter(|value| groups.insert(value.clone())) else {
                return Ok(None);
            };
            let found = group_version(call, object, (group, &value)).await?;
            (TriggerScope::Group { key: group.group_by.text().to_owned(), value }, found)
        }
    };
    // a trace and a group keep their state in their first root
    let row = found.root.as_ref().unwrap_or(row);
    let state = ScoringState::of_row(row).map_err(|error| super::refused(&error))?;
    // triggers that are stored already belong to earlier versions of the row
    let xact = found.xact.max(version_of(row));
    let input = SilentInput { root: row, scope, changed_xact: xact, version_xact: xact, digest: found.digest };
    let requests = select_backfill(rule, &input, xact, request.is_forced, &state);
    Ok(trigger_row(row, requests))
}

/// What a run reads, the newest version in it, and its first root.
struct TraceVersion {
    digest: InputDigest,
    xact: u64,
    root: Option<Map<String, Value>>,
}

async fn group_version(
    call: &Call,
    object: &ObjectKey,
    (group, value): (&GroupRule, &str),
) -> Result<TraceVersion, Refusal> {
    let roots = roots_of_group(call, object, (group.group_by.text(), value), group.traces_max).await;
    let roots = roots.map_err(Refusal::bad)?;
    let mut traces = Vec::with_capacity(roots.len());
    for root in &roots {
        traces.push(trace_version(call, object, root).await?);
    }
    let digest = InputDigest::of_group(roots.iter().map(String::as_str).zip(traces.iter().map(|trace| trace.digest)));
    let xact = traces.iter().map(|trace| trace.xact).max().unwrap_or_default();
    Ok(TraceVersion { digest, xact, root: traces.into_iter().find_map(|trace| trace.root) })
}

fn version_of(row: &Map<String, Value>) -> u64 {
    row.get("_xact_id").and_then(Value::as_str).and_then(|text| Xact::parse(text).ok()).unwrap_or_default().0
}

async fn trace_version(call: &Call, object: &ObjectKey, root_span_id: &str) -> Result<TraceVersion, Refusal> {
    let rows = trace_rows(call, object, root_span_id).await?;
    let digest = InputDigest::of_trace(&rows.iter().collect::<Vec<_>>());
    let xact = rows.iter().map(version_of).max().unwrap_or_default();
    Ok(TraceVersion { digest, xact, root: rows.into_iter().find(is_root) })
}
