//! Object and span below which the rows of an eval are written.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::members::{EvalRequestError, Members};

/// Upper bound of a parent that is an exported span, in bytes.
pub const EVAL_PARENT_BYTES_MAX: usize = 64 * 1024;

const PARENT: &str = "an exported span of at most 65536 bytes, or an object with `object_type` and `object_id`";
const TARGET_TYPE: &str = "project_logs, experiment or playground_logs";
const ROW_IDS: &str = "null or an object with `id`, `span_id` and `root_span_id`";
const ID: &str = "the id as a string";

/// Parent of an eval's rows, as a request names it.
#[derive(Clone, Debug, PartialEq)]
pub enum EvalParent {
    /// Exported span, which the caller decodes.
    Slug(String),
    Target(EvalTarget),
}

/// Type of an object that takes the rows of an eval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvalTargetType {
    ProjectLogs,
    Experiment,
    PlaygroundLogs,
}

impl EvalTargetType {
    const ALL: [EvalTargetType; 3] =
        [EvalTargetType::ProjectLogs, EvalTargetType::Experiment, EvalTargetType::PlaygroundLogs];

    pub fn name(self) -> &'static str {
        match self {
            EvalTargetType::ProjectLogs => "project_logs",
            EvalTargetType::Experiment => "experiment",
            EvalTargetType::PlaygroundLogs => "playground_logs",
        }
    }
}

/// Object that takes the rows of an eval, with the span above them.
///
/// The JSON form is stored in records of evaluations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvalTarget {
    pub object_type: EvalTargetType,
    pub object_id: Uuid,
    /// `None` if each case is a trace of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<EvalParentSpan>,
    /// Members that are merged into every row.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub propagated: Map<String, Value>,
}

/// Span above the rows of an eval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalParentSpan {
    pub row_id: String,
    pub span_id: String,
    pub root_span_id: String,
}

impl EvalTarget {
    /// Returns the target of an eval without a parent.
    pub fn experiment(id: Uuid) -> EvalTarget {
        EvalTarget { object_type: EvalTargetType::Experiment, object_id: id, span: None, propagated: Map::new() }
    }

    /// Returns the reference to a trace in this object, as functions take it.
    pub fn trace_reference(&self, root_span_id: &str) -> Value {
        let (object_type, object_id) = (self.object_type.name(), self.object_id);
        json!({"trace_ref": {"object_type": object_type, "object_id": object_id, "root_span_id": root_span_id}})
    }
}

impl EvalParent {
    /// Reads the member `parent`, for which an empty string counts as absent.
    pub(crate) fn read(body: &Members<'_>) -> Result<Option<EvalParent>, EvalRequestError> {
        match body.get("parent") {
            None => Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
            Some(Value::String(text)) if text.len() <= EVAL_PARENT_BYTES_MAX => {
                Ok(Some(EvalParent::Slug(text.clone())))
            }
            Some(Value::Object(object)) => target(&Members::new(object, "parent")).map(EvalParent::Target).map(Some),
            Some(_) => Err(body.invalid("parent", PARENT)),
        }
    }
}

fn target(members: &Members<'_>) -> Result<EvalTarget, EvalRequestError> {
    let object_type = members.text("object_type")?;
    let object_type = EvalTargetType::ALL.into_iter().find(|known| object_type.as_deref() == Some(known.name()));
    let object_type = object_type.ok_or_else(|| members.invalid("object_type", TARGET_TYPE))?;
    let span = match members.get("row_ids") {
        None => None,
        Some(Value::Object(ids)) => {
            let path = members.path("row_ids");
            let ids = Members::new(ids, &path);
            let id = |name: &str| ids.text(name)?.ok_or_else(|| ids.invalid(name, ID));
            Some(EvalParentSpan { row_id: id("id")?, span_id: id("span_id")?, root_span_id: id("root_span_id")? })
        }
        Some(_) => return Err(members.invalid("row_ids", ROW_IDS)),
    };
    let propagated = members.object("propagated_event")?.cloned().unwrap_or_default();
    Ok(EvalTarget { object_type, object_id: members.required_uuid("object_id")?, span, propagated })
}
