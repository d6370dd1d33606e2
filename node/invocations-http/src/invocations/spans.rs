//! Spans of functions and tools, which use the same log as spans of model calls.

use assay_node_gateway::span::SpanIdentity;
use assay_node_invocations::LogScope;
use assay_node_invocations::services::OpenSpan;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::services::CallerServices;
use crate::gateway::span_log::{RowLog, SpanTarget, mask};

/// Open span. A background task writes its row.
#[derive(Debug)]
struct LoggedSpan(Option<oneshot::Sender<Map<String, Value>>>);

impl OpenSpan for LoggedSpan {
    fn end(mut self: Box<Self>, row: Map<String, Value>) {
        if let Some(sender) = self.0.take() {
            // The receiver is gone only at shutdown.
            drop(sender.send(row));
        }
    }
}

impl Drop for LoggedSpan {
    fn drop(&mut self) {
        if let Some(sender) = self.0.take() {
            let row = Map::from_iter([
                ("error".to_owned(), json!("cancelled")),
                ("metrics".to_owned(), json!({"end": now_seconds()})),
            ]);
            drop(sender.send(row));
        }
    }
}

/// Returns the scope of a function's span.
pub(super) fn scope_of(target: &SpanTarget) -> LogScope {
    let SpanIdentity { row_id, span_id, root_span_id, parent_span_id } = target.identity.clone();
    LogScope { row_id, span_id, root_span_id, parent_span_id, propagated: target.propagated() }
}

/// Returns the target of a span in the object of another span.
pub(super) fn target_of(object: &SpanTarget, scope: &LogScope) -> SpanTarget {
    let LogScope { row_id, span_id, root_span_id, parent_span_id, propagated } = scope.clone();
    object.another(SpanIdentity { row_id, span_id, root_span_id, parent_span_id }, propagated)
}

/// Returns the headers that name the span of a function.
pub(super) fn headers(object: &SpanTarget, scope: &LogScope) -> Vec<(String, String)> {
    let mut headers = vec![("x-bt-span-id".to_owned(), scope.row_id.clone())];
    headers.extend(target_of(object, scope).export().map(|slug| ("x-bt-span-export".to_owned(), slug)));
    headers
}

/// Opens a span and starts its log.
pub(super) fn open(services: &CallerServices, scope: &LogScope, members: Map<String, Value>) -> Box<dyn OpenSpan> {
    let Some(object) = services.logged_object() else { return Box::new(LoggedSpan(None)) };
    let mut row = Map::new();
    row.insert("id".into(), json!(scope.row_id));
    row.insert("span_id".into(), json!(scope.span_id));
    row.insert("root_span_id".into(), json!(scope.root_span_id));
    row.insert("span_parents".into(), json!(scope.parent_span_id.as_ref().map(|parent| [parent])));
    row.extend(members);
    let (sender, end) = oneshot::channel();
    let log = RowLog::new(services.caller(), target_of(object, scope), scope.row_id.clone());
    let guards = services.known_guards();
    log.target.merge_propagated(&mut row);
    mask(&guards, &mut row);
    let end = async move {
        let mut row = end.await.ok()?;
        mask(&guards, &mut row);
        Some(row)
    };
    services.caller().edge.gateway.spawn(log.run(row, end));
    Box::new(LoggedSpan(Some(sender)))
}

/// Returns the current time in seconds since 1970.
pub(super) fn now_seconds() -> f64 {
    assay_node_rows_http::rows::now_micros() as f64 / 1e6
}
