//! Inputs of runs and of selections: rows, traces and groups as the shard's replica on this node has them.

use assay_node_online_scoring::{
    EffectIdentity, InputDigest, OpenTrigger, ScoringState, ScoringTarget, TriggerScope, is_root, scorer_input,
};
use assay_storage_model::{ObjectKey, Xact};
use assay_storage_shard::{Row, ShardError, View};
use serde_json::{Map, Value};

/// Row with its members.
#[derive(Clone, Debug)]
pub(crate) struct ParsedRow {
    pub stored: Row,
    pub members: Map<String, Value>,
}

impl ParsedRow {
    fn of(stored: Row) -> Result<ParsedRow, ShardError> {
        let read = serde_json::from_slice(&stored.doc);
        let members = read.map_err(|why| ShardError::Damaged(format!("row {}: {why}", stored.id.as_str())))?;
        Ok(ParsedRow { stored, members })
    }
}

/// Input of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunInput {
    pub arguments: Map<String, Value>,
    pub digest: InputDigest,
    /// Row that keeps the state.
    pub target: ScoringTarget,
    pub other_targets: Vec<ScoringTarget>,
    /// Traces that the function may read, that of the target first.
    pub root_span_ids: Vec<String>,
    /// Token of the state of the target.
    pub token: Option<String>,
    /// Row of an earlier run on the same input.
    pub earlier: Option<Map<String, Value>>,
}

/// Root of a trace, with the digest of the trace.
#[derive(Clone, Debug)]
pub(crate) struct TraceInput {
    pub root: ParsedRow,
    pub digest: InputDigest,
}

/// Reads a row at a version, or at the newest one if that version is no longer stored.
pub(crate) fn read_row(view: &View, object: &ObjectKey, id: &str, at: Xact) -> Result<Option<ParsedRow>, ShardError> {
    let newest = view.version();
    let found = match view.get(object, id, at.min(newest)) {
        Err(ShardError::Past { .. }) => view.get(object, id, newest)?,
        found => found?,
    };
    found.map(ParsedRow::of).transpose()
}

/// Reads a trace at a version, or at the newest one if that version is no longer stored. A trace needs a root.
pub(crate) fn read_trace(
    view: &View,
    object: &ObjectKey,
    root_span_id: &str,
    at: Xact,
) -> Result<Option<TraceInput>, ShardError> {
    let newest = view.version();
    let rows = match view.trace(object, root_span_id, at.min(newest)) {
        Err(ShardError::Past { .. }) => view.trace(object, root_span_id, newest)?,
        rows => rows?,
    };
    let rows = rows.into_iter().map(ParsedRow::of).collect::<Result<Vec<_>, _>>()?;
    let digest = InputDigest::of_trace(&rows.iter().map(|row| &row.members).collect::<Vec<_>>());
    // of several roots the first one is that of the trace
    let root = rows.into_iter().filter(|row| is_root(&row.members)).min_by_key(|row| row.stored.key);
    Ok(root.map(|root| TraceInput { root, digest }))
}

/// Reads the input of a trigger. `group` has the root spans of the traces of a group. The input is gone if its row is.
pub(crate) fn read_input(
    view: &View,
    object: &ObjectKey,
    trigger: &OpenTrigger,
    group: &[String],
) -> Result<Option<RunInput>, ShardError> {
    let Some(kept) = read_row(view, object, &trigger.place.row_id, Xact::MAX)? else { return Ok(None) };
    let Some(target) = ScoringTarget::of_row(&kept.members) else { return Ok(None) };
    // a client's demand is about the row as it is now
    let at = trigger.digest.map_or(Xact::MAX, |_| Xact(trigger.triggered_xact));
    let trace_at = |root: &str| read_trace(view, object, root, at);
    let (row, digest, traces) = match &trigger.scope {
        TriggerScope::Span => {
            let row = read_row(view, object, &trigger.place.row_id, at)?.unwrap_or(kept.clone());
            let digest = InputDigest::of_row(&row.members);
            (row, digest, Vec::new())
        }
        TriggerScope::Trace => {
            let Some(trace) = trace_at(&target.root_span_id)? else { return Ok(None) };
            (trace.root, trace.digest, Vec::new())
        }
        TriggerScope::Group { .. } => {
            let mut traces = Vec::with_capacity(group.len());
            for root in group {
                if let Some(trace) = trace_at(root)? {
                    traces.push((root.as_str(), trace));
                }
            }
            let digest = InputDigest::of_group(traces.iter().map(|(root, trace)| (*root, trace.digest)));
            (kept.clone(), digest, traces)
        }
    };
    let others = traces.iter().filter_map(|(_, trace)| ScoringTarget::of_row(&trace.root.members));
    let other_targets: Vec<_> = others.filter(|other| *other != target).collect();
    let roots = std::iter::once(&target).chain(&other_targets).map(|target| target.root_span_id.clone());
    let state = ScoringState::of_row(&kept.members).unwrap_or_default();
    let identity = EffectIdentity::new(&target.row_id, &trigger.scope, &trigger.function, digest);
    let earlier = read_row(view, object, &identity.row_id.to_string(), Xact::MAX)?;
    Ok(Some(RunInput {
        arguments: scorer_input(&row.members),
        digest,
        root_span_ids: roots.collect(),
        target,
        other_targets,
        token: state.enabled().and_then(|enabled| enabled.token.clone()),
        earlier: earlier.map(|row| row.members),
    }))
}

/// Returns the result in the row of an earlier run on the same input, such as that for a row that was written again.
pub(crate) fn earlier_result(earlier: &Map<String, Value>) -> Option<&Value> {
    let succeeded = earlier.get("error").is_none_or(Value::is_null) && earlier.contains_key("metrics");
    earlier.get("output").filter(|_| succeeded)
}
