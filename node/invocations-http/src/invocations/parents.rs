//! Parent of an invocation's span, which the body or a header names.

use assay_node_http::requests::caller::Caller;
use assay_node_http::responses::refusal::Refusal;
use assay_node_otel::{Parent, ParentObject, SpanIds};
use assay_node_prompts::TraceReference;
use assay_storage_model::ObjectKind;
use serde_json::Value;

use crate::gateway::span_log::SpanTarget;

/// Place in the logs where an invocation is recorded.
#[derive(Clone, Debug)]
pub struct InvokeParent {
    /// Span of the function.
    pub target: SpanTarget,
    has_span: bool,
}

impl InvokeParent {
    /// Returns the parent that the body or else the header names. Returns `None` if the invocation is not logged.
    pub async fn of(caller: &Caller, parent: &Value, header: Option<String>) -> Result<Option<InvokeParent>, Refusal> {
        let parent = match (parent, header) {
            (Value::Null, None) => return Ok(None),
            (Value::Null, Some(header)) => of_text("x-bt-parent", &header)?,
            (Value::String(slug), _) => of_text("parent", slug)?,
            (object, _) => of_object(object)?,
        };
        let has_span = parent.span.is_some();
        let target = SpanTarget::of_parent(caller, &parent).await?;
        Ok(Some(InvokeParent { target, has_span }))
    }

    /// Returns the trace of the parent, or `None` if the parent is an object (F-31).
    pub fn trace(&self) -> Option<TraceReference> {
        let object_type = match self.target.kind {
            ObjectKind::Experiment => "experiment",
            ObjectKind::PlaygroundLogs => "playground_logs",
            _ => "project_logs",
        };
        self.has_span.then(|| TraceReference {
            object_type: object_type.to_owned(),
            object_id: self.target.object.to_string(),
            root_span_id: self.target.identity.root_span_id.clone(),
        })
    }
}

fn of_text(name: &str, text: &str) -> Result<Parent, Refusal> {
    Parent::parse(text).map_err(|why| Refusal::bad(format!("`{name}`: {why}")))
}

/// Reads a parent in the form of an object. Some SDKs do not know the id of the row, and send a word instead.
fn of_object(object: &Value) -> Result<Parent, Refusal> {
    let text = |value: &Value, name: &str| {
        let text = value[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        text.ok_or_else(|| Refusal::bad(format!("`parent`: `{name}` is missing, or is not a text")))
    };
    let id = text(object, "object_id")?;
    let named = match object["object_type"].as_str() {
        Some("project_logs") => ParentObject::Project(id),
        Some("experiment") => ParentObject::Experiment(id),
        Some("playground_logs") => ParentObject::Playground(id),
        _ => {
            let why = "`parent.object_type` has to be project_logs, experiment or playground_logs";
            return Err(Refusal::bad(why));
        }
    };
    let span = match &object["row_ids"] {
        Value::Null => None,
        ids => Some(SpanIds {
            row_id: text(ids, "id")?,
            span_id: text(ids, "span_id")?,
            root_span_id: text(ids, "root_span_id")?,
        }),
    };
    let propagated_event = object["propagated_event"].as_object().cloned();
    Ok(Parent { object: named, span, propagated_event })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_parent_may_be_an_object() {
        let ids = json!({"id": "otel", "span_id": "s", "root_span_id": "r"});
        let parent = of_object(&json!({"object_type": "experiment", "object_id": "e", "row_ids": ids}));
        let parent = parent.expect("a parent");
        assert_eq!(parent.object, ParentObject::Experiment("e".into()));
        assert_eq!(parent.span.expect("a span").row_id, "otel");
        let parent = of_object(&json!({"object_type": "project_logs", "object_id": "p", "row_ids": null,
            "propagated_event": {"a": 1}}));
        assert_eq!(parent.expect("a parent").propagated_event, json!({"a": 1}).as_object().cloned());
        for wrong in [
            json!({"object_id": "p"}),
            json!({"object_type": "dataset", "object_id": "p"}),
            json!({"object_type": "experiment"}),
            json!({"object_type": "experiment", "object_id": "e", "row_ids": {}}),
        ] {
            assert!(of_object(&wrong).is_err(), "{wrong}");
        }
    }
}
