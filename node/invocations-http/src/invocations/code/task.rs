//! Task of a code call: everything that a node needs to run it, in a form that travels between nodes.

use assay_node_invocations::services::{CodeForm, CodeRequest, TaskCase};
use assay_node_invocations::{InvokedFunction, LogScope};
use assay_node_runner::runtimes::{CallForm, TaskHooks, WorkerTrace};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::super::services::CallerServices;
use super::super::spans::target_of;

/// Call of a code function, with ids in place of stored values.
///
/// The node that runs it finds bundles and variables by these ids, so that no variable travels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CodeTask {
    /// Project of execution.
    pub project: Option<Uuid>,
    /// Stored function, whose variables the code sees.
    pub function: Option<Uuid>,
    /// Member `data` of the function's `function_data`.
    pub data: Value,
    pub form: CallForm,
    pub input: Value,
    /// Span of the function in the form that SDKs accept as a parent.
    pub parent: Option<String>,
    pub trace: Option<WorkerTrace>,
    #[serde(default)]
    pub hooks: Option<TaskHooks>,
    /// Number of invocations around this one.
    pub depth: u32,
}

impl CodeTask {
    pub fn new(services: &CallerServices, request: CodeRequest) -> CodeTask {
        let CodeRequest { mut function, form, input, case, trace, scope } = request;
        CodeTask {
            project: services.project(),
            function: id_of(&function),
            data: function.function_data["data"].take(),
            form: call_form(form),
            input,
            parent: scope.as_ref().and_then(|scope| slug_of(services, scope)),
            trace: trace.map(|trace| WorkerTrace {
                object_type: trace.object_type,
                object_id: trace.object_id,
                root_span_id: trace.root_span_id,
            }),
            hooks: case.map(task_hooks),
            depth: services.caller().invocation.map_or(0, |around| around.depth + 1),
        }
    }
}

impl CodeTask {
    /// Returns the task that lists the evaluators of a bundle.
    pub fn of_evaluators(services: &CallerServices, data: Value) -> CodeTask {
        CodeTask {
            project: services.project(),
            function: None,
            data,
            form: CallForm::Evaluators,
            input: Value::Null,
            parent: None,
            trace: None,
            hooks: None,
            depth: services.caller().invocation.map_or(0, |around| around.depth + 1),
        }
    }
}

fn call_form(form: CodeForm) -> CallForm {
    match form {
        CodeForm::Function => CallForm::Function,
        CodeForm::Scorer => CallForm::Scorer,
        CodeForm::Preprocessor => CallForm::Preprocessor,
        CodeForm::EvalTask => CallForm::EvalTask,
    }
}

fn task_hooks(case: TaskCase) -> TaskHooks {
    let given = |value: Value| Some(value).filter(|value| !value.is_null());
    let tags = case.tags.as_array().into_iter().flatten();
    TaskHooks {
        metadata: given(case.metadata),
        expected: given(case.expected),
        tags: tags.filter_map(|tag| tag.as_str().map(str::to_owned)).collect(),
        parameters: Some(Value::Object(case.arguments.parameters)),
        trial_index: case.arguments.trial_index as usize,
    }
}

/// Returns the span of the function in the form that SDKs accept as a parent.
fn slug_of(services: &CallerServices, scope: &LogScope) -> Option<String> {
    target_of(services.logged_object()?, scope).export()
}

/// Returns the id of a stored function.
fn id_of(function: &InvokedFunction) -> Option<Uuid> {
    function.id.as_deref().and_then(|id| Uuid::parse_str(id).ok())
}
