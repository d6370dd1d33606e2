//! Log of spans, which uses the normal write path and does not delay calls (1.9).

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use assay_node_auth::{Permission, Principal};
use assay_node_gateway::span::{LoggedRequest, SpanIdentity, end_row, logged_request, start_row};
use assay_node_gateway::{CallObserver, CallOutcome, ModelCall};
use assay_node_http::requests::caller::Caller;
use assay_node_http::requests::wait::Wait;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_otel::{ObjectType, Parent, Slug, SlugObject, SpanIds};
use assay_storage_model::event::{SentItem, format_micros};
use assay_storage_model::{ObjectKind, OrgId};
use futures::FutureExt;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use crate::gateway::guards::CallGuards;
use crate::gateway::span_attachments::store_media;
use crate::gateway::span_batches::{SpanBatches, SpanFailure, WriteRows};
use assay_node_rows_http::files::Attachments;
use assay_node_rows_http::otlp::exports::object_of;
use assay_node_rows_http::rows::{now_micros, send, write_to};

/// Duration of a call after which its span is written before its end. Spans of shorter calls are written once.
const START_ROW_AFTER: Duration = Duration::from_millis(250);
/// Upper bound of the time that one write waits in queues.
const WRITE_WAIT: Duration = Duration::from_secs(30);
/// Upper bound of the attempts of one write.
const WRITES_MAX: u32 = 6;
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Spans that wait for a write, by object and principal.
static BATCHES: LazyLock<SpanBatches<SpanWriter>> = LazyLock::new(SpanBatches::default);

/// Principal that writes spans to an object: everything that the permission check depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SpanWriter {
    object: (ObjectKind, Uuid),
    org: OrgId,
    user: Uuid,
    impersonator: Option<Uuid>,
    credential: Uuid,
}

impl SpanWriter {
    fn of(caller: &Caller, object: (ObjectKind, Uuid)) -> SpanWriter {
        let Principal { org, user, impersonator, credential, .. } = caller.principal;
        SpanWriter { object, org, user, impersonator, credential: credential.record() }
    }
}

/// Destination of a span.
#[derive(Clone, Debug)]
pub struct SpanTarget {
    pub kind: ObjectKind,
    pub object: Uuid,
    /// Project of the object.
    pub project: Uuid,
    pub identity: SpanIdentity,
    /// Members that are merged into the row.
    propagated: Option<Map<String, Value>>,
    /// Guard of the writer that waits for this span and those below it.
    pending: Option<PendingSpan>,
}

/// Guard that a span holds until its row is written.
#[derive(Clone, Debug)]
struct PendingSpan {
    _guard: mpsc::Sender<()>,
}

/// Wait for the spans of a target and of all targets that were made of it.
#[derive(Debug)]
pub struct PendingSpans(mpsc::Receiver<()>);

impl PendingSpans {
    /// Waits until the rows are written or given up, for at most `within`. Returns whether the wait ended in time.
    pub async fn written(mut self, within: Duration) -> bool {
        // Nothing is sent: the wait ends when the last guard is dropped.
        timeout(within, self.0.recv()).await.is_ok()
    }
}

impl SpanTarget {
    /// Returns the same target, and a wait for the spans that are made of it.
    pub fn awaited(self) -> (SpanTarget, PendingSpans) {
        let (guard, all) = mpsc::channel(1);
        (SpanTarget { pending: Some(PendingSpan { _guard: guard }), ..self }, PendingSpans(all))
    }

    /// Returns the target that `x-bt-parent` names, or `None` if the header is empty.
    ///
    /// Refuses a target that the caller may not write to.
    pub async fn of_header(caller: &Caller, header: &str) -> Result<Option<SpanTarget>, Refusal> {
        let text = header.trim();
        if text.is_empty() {
            return Ok(None);
        }
        let parent = Parent::parse(text).map_err(|why| invalid_parent(text, &why.to_string()))?;
        let target = SpanTarget::of_parent(caller, &parent).await;
        let target = target.map_err(|refusal| match refusal.kind {
            ErrorKind::BadRequest => invalid_parent(text, &refusal.message),
            _ => refusal,
        });
        target.map(Some)
    }

    /// Returns the target of a new span below a parent that the caller may write to.
    pub async fn of_parent(caller: &Caller, parent: &Parent) -> Result<SpanTarget, Refusal> {
        let (kind, object) = object_of(caller, &parent.object).await?;
        let home = caller.edge.records.object(&caller.principal, kind, object, Permission::Update).await?;
        let span_id = Uuid::new_v4().to_string();
        let identity = SpanIdentity {
            row_id: Uuid::new_v4().to_string(),
            root_span_id: parent.span.as_ref().map_or_else(|| span_id.clone(), |span| span.root_span_id.clone()),
            parent_span_id: parent.span.as_ref().map(|span| span.span_id.clone()),
            span_id,
        };
        let propagated = parent.propagated_event.clone();
        Ok(SpanTarget { kind, object, project: home.project_id, identity, propagated, pending: None })
    }

    /// Returns the target of another span in the same object, whose row has the propagated members.
    pub fn another(&self, identity: SpanIdentity, propagated: Map<String, Value>) -> SpanTarget {
        SpanTarget {
            kind: self.kind,
            object: self.object,
            project: self.project,
            identity,
            // An exported span must not have an empty event.
            propagated: Some(propagated).filter(|members| !members.is_empty()),
            pending: self.pending.clone(),
        }
    }

    /// Merges the propagated members into the row of the span. Masks apply to them too.
    pub fn merge_propagated(&self, row: &mut Map<String, Value>) {
        if let Some(propagated) = &self.propagated {
            merge(row, propagated.clone());
        }
    }

    /// Returns the members that are merged into the row.
    pub fn propagated(&self) -> Map<String, Value> {
        self.propagated.clone().unwrap_or_default()
    }

    /// Returns the span in the form that clients pass on.
    pub fn export(&self) -> Option<String> {
        let object_type = match self.kind {
            ObjectKind::Experiment => ObjectType::Experiment,
            ObjectKind::PlaygroundLogs => ObjectType::PlaygroundLogs,
            _ => ObjectType::ProjectLogs,
        };
        let SpanIdentity { row_id, span_id, root_span_id, .. } = self.identity.clone();
        let slug = Slug {
            object_type,
            object: SlugObject::Id(self.object.to_string()),
            span: Some(SpanIds { row_id, span_id, root_span_id }),
            propagated_event: self.propagated.clone(),
        };
        slug.encode_v3().ok()
    }
}

/// Returns the refusal of a header value.
fn invalid_parent(text: &str, why: &str) -> Refusal {
    Refusal::bad(format!("Invalid parent header '{text}': {why}"))
}

/// Observer that completes the span of a call.
#[derive(Debug)]
struct SpanObserver(oneshot::Sender<CallOutcome>);

impl CallObserver for SpanObserver {
    fn ended(self: Box<Self>, outcome: CallOutcome) {
        // The receiver is gone only at shutdown.
        drop(self.0.send(outcome));
    }
}

/// Starts to log a call, and returns the observer of its end.
pub fn log_call(
    caller: &Caller,
    target: SpanTarget,
    (call, guards): (&ModelCall, CallGuards),
    started_ms: u64,
) -> Box<dyn CallObserver> {
    let (sender, ended) = oneshot::channel();
    let with_content = caller.edge.gateway.settings().log_content;
    let (call, request_id, endpoint) = (call.clone(), call.request_id.clone(), call.endpoint.clone());
    let log = RowLog::new(caller, target, request_id.clone());
    caller.edge.gateway.spawn(async move {
        let request: LoggedRequest = logged_request(&call, with_content);
        // A write of the span may take longer than the call, whose memory must not wait for it.
        drop(call);
        let mut row = start_row(&log.target.identity, request, started_ms);
        log.target.merge_propagated(&mut row);
        mask(&guards, &mut row);
        let end = async move {
            let outcome: CallOutcome = ended.await.ok()?;
            let mut end = end_row((&request_id, &endpoint), &outcome, with_content);
            mask(&guards, &mut end);
            if let Some(report) = &guards.report {
                end["metadata"]["gateway"]["guardrails"] = report.to_metadata();
            }
            Some(end)
        };
        log.run(row, end).await;
    });
    Box::new(SpanObserver(sender))
}

/// Masks the content of a row.
pub fn mask(guards: &CallGuards, row: &mut Map<String, Value>) {
    for name in ["input", "output", "expected", "metadata", "error"] {
        if let Some(logged) = row.get_mut(name) {
            guards.mask_log(logged);
        }
    }
}

/// Log of one span.
pub(crate) struct RowLog {
    pub caller: Caller,
    pub target: SpanTarget,
    /// Id of the span in log messages.
    subject: String,
    created: i64,
}

impl RowLog {
    /// Returns the log of a span that starts now.
    pub fn new(caller: &Caller, target: SpanTarget, subject: String) -> RowLog {
        RowLog { caller: caller.clone(), target, subject, created: now_micros() }
    }

    /// Writes a row at its end, or twice if the end takes long. Without an end, the row keeps its first form.
    pub async fn run(self, mut row: Map<String, Value>, end: impl Future<Output = Option<Map<String, Value>>>) {
        // Readers sort the spans of a trace by this time, which must not depend on the time of the write.
        row.insert("created".to_owned(), format_micros(self.created).into());
        let mut end = std::pin::pin!(end);
        let early = timeout(START_ROW_AFTER, &mut end).await;
        store_media(&self.caller, &mut row).await;
        let end = match early {
            Ok(end) => end,
            Err(_) => {
                let is_written = self.write(Value::Object(row.clone())).await;
                let end = end.await;
                if is_written {
                    // A merge keeps concurrent changes of the span.
                    row = Map::from_iter([
                        ("id".to_owned(), row["id"].take()),
                        ("_is_merge".to_owned(), Value::Bool(true)),
                    ]);
                }
                end
            }
        };
        let Some(mut end) = end else { return };
        store_media(&self.caller, &mut end).await;
        merge(&mut row, end);
        self.write(Value::Object(row)).await;
    }

    /// Writes a row, with retries. Returns whether the row is written.
    async fn write(&self, row: Value) -> bool {
        let (kind, object) = (self.target.kind, self.target.object);
        let writer = SpanWriter::of(&self.caller, (kind, object));
        let caller = self.caller.clone();
        let write: WriteRows = Arc::new(move |rows| write_rows(caller.clone(), (kind, object), rows).boxed());
        for attempt in 1..=WRITES_MAX {
            let written = BATCHES.write(writer, row.clone(), Arc::clone(&write)).await;
            let Err(failure) = written else { return true };
            if !failure.may_pass() || attempt == WRITES_MAX {
                let why = failure.message;
                tracing::warn!(span = self.subject, why, "a span is not written");
                self.caller.edge.gateway.span_lost();
                return false;
            }
            sleep(RETRY_AFTER * attempt).await;
        }
        false
    }
}

/// Writes rows to an object on the caller's behalf.
async fn write_rows(
    mut caller: Caller,
    (kind, object): (ObjectKind, Uuid),
    rows: Vec<Value>,
) -> Result<(), SpanFailure> {
    caller.wait = Wait::new(Instant::now() + WRITE_WAIT);
    let rows = rows.into_iter().map(SentItem::from).collect();
    let write = write_to(&caller, kind, object, (rows, Attachments::Unknown), None).await?;
    send(&caller, vec![write]).await.map_err(Refusal::from)?;
    Ok(())
}

/// Merges members into a row. Objects are merged member by member.
pub(crate) fn merge(row: &mut Map<String, Value>, more: Map<String, Value>) {
    for (name, value) in more {
        match (row.get_mut(&name), value) {
            (Some(Value::Object(members)), Value::Object(more)) => merge(members, more),
            (_, value) => drop(row.insert(name, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_that_passes_nothing_on_is_exported() {
        let text = |name: &str| format!("{name}-of-a-span");
        let identity = || SpanIdentity {
            row_id: text("row"),
            span_id: text("id"),
            root_span_id: text("root"),
            parent_span_id: None,
        };
        let (kind, object, project) = (ObjectKind::ProjectLogs, Uuid::from_u128(1), Uuid::from_u128(2));
        let first = SpanTarget { kind, object, project, identity: identity(), propagated: None, pending: None };
        for propagated in [Map::new(), Map::from_iter([("tags".to_owned(), Value::Null)])] {
            let target = first.another(identity(), propagated.clone());
            let slug = Slug::decode(&target.export().expect("a slug")).expect("a slug that can be read");
            assert_eq!(slug.propagated_event.unwrap_or_default(), propagated);
            assert_eq!(slug.span.map(|span| span.row_id), Some(text("row")));
        }
    }
}
