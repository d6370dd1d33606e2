//! Object that takes the rows of an evaluation: a new experiment, or the parent that the request names.

use assay_node_auth::Permission;
use assay_node_evaluations::{EvalParent, EvalParentSpan, EvalTarget, EvalTargetType};
use assay_node_http::requests::caller::Caller;
use assay_node_http::responses::refusal::Refusal;
use assay_node_invocations_http::invocations::function_calls::SpanTarget;
use assay_node_otel::{Parent, ParentObject, SpanIds};
use assay_node_records::ObjectHome;
use assay_node_rows_http::otlp::exports::object_of;
use assay_storage_model::ObjectKind;

/// Returns the kind of the target's object.
pub fn kind_of(target: EvalTargetType) -> ObjectKind {
    match target {
        EvalTargetType::ProjectLogs => ObjectKind::ProjectLogs,
        EvalTargetType::Experiment => ObjectKind::Experiment,
        EvalTargetType::PlaygroundLogs => ObjectKind::PlaygroundLogs,
    }
}

/// Returns the target that a request names, to which the caller may write.
pub async fn of_parent(caller: &Caller, parent: &EvalParent) -> Result<EvalTarget, Refusal> {
    let target = match parent {
        EvalParent::Target(target) => target.clone(),
        EvalParent::Slug(text) => {
            let parent = Parent::parse(text).map_err(|why| Refusal::bad(format!("`parent`: {why}")))?;
            let (kind, object_id) = object_of(caller, &parent.object).await?;
            let object_type = match kind {
                ObjectKind::Experiment => EvalTargetType::Experiment,
                ObjectKind::PlaygroundLogs => EvalTargetType::PlaygroundLogs,
                _ => EvalTargetType::ProjectLogs,
            };
            let span = parent.span.map(|span| {
                let SpanIds { row_id, span_id, root_span_id } = span;
                EvalParentSpan { row_id, span_id, root_span_id }
            });
            EvalTarget { object_type, object_id, span, propagated: parent.propagated_event.unwrap_or_default() }
        }
    };
    home_of(caller, &target).await?;
    Ok(target)
}

/// Returns the object of a target, to which the caller may write now.
pub async fn home_of(caller: &Caller, target: &EvalTarget) -> Result<ObjectHome, Refusal> {
    let kind = kind_of(target.object_type);
    Ok(caller.edge.records.object(&caller.principal, kind, target.object_id, Permission::Update).await?)
}

/// Returns the span of the logs from which those of all cases are made.
pub async fn span_of(caller: &Caller, target: &EvalTarget) -> Result<SpanTarget, Refusal> {
    let id = target.object_id.to_string();
    let object = match target.object_type {
        EvalTargetType::ProjectLogs => ParentObject::Project(id),
        EvalTargetType::Experiment => ParentObject::Experiment(id),
        EvalTargetType::PlaygroundLogs => ParentObject::Playground(id),
    };
    SpanTarget::of_parent(caller, &Parent { object, span: None, propagated_event: None }).await
}
