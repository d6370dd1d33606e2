//! Frames between the server and a worker, as types with their JSON form.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Frame from the server to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToWorker {
    /// Loads the function of this worker.
    ///
    /// A worker that has loaded a bundle accepts further loads of the same path, which only choose another location.
    Load(FunctionLoad),
    /// Calls the loaded function.
    Call(Box<FunctionCall>),
    /// Lists the evaluators of a bundle.
    List(BundleList),
}

/// Frame from a worker to the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromWorker {
    /// First frame of every worker.
    Ready(WorkerReady),
    Loaded(LoadedFunction),
    /// Event of a running task. Any number precede the result.
    Progress(TaskProgress),
    Result(CallOutput),
    Listed(ListedEvaluators),
    /// Failure of a load or a list, or of the call whose id it has.
    Error(WorkerFailure),
}

/// Function that a worker shall load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionLoad {
    pub source: CodeSource,
    /// Environment variables while the code is loaded, in addition to those of the process.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

/// Code of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeSource {
    /// Text that defines a function named `handler`.
    Inline {
        /// JavaScript or Python; the types of TypeScript are already stripped.
        code: String,
        /// Whether JavaScript is an ES module instead of the body of a CommonJS module.
        #[serde(default)]
        is_module: bool,
        language: SourceLanguage,
    },
    /// Bundle that a client has uploaded.
    Bundle {
        /// Path in the jail: the file of a Node bundle, or the directory of a Python bundle.
        path: String,
        location: BundleLocation,
    },
}

/// Language in which the user wrote inline code. It only decides the file name in stack traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceLanguage {
    JavaScript,
    TypeScript,
    Python,
}

/// Function within a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BundleLocation {
    /// Registered function, by its position.
    Function { index: usize },
    /// Task of an evaluator.
    Task { evaluator: String },
    /// Scorer of an evaluator, by its position.
    Scorer { evaluator: String, index: usize },
    /// Classifier of an evaluator, by its position.
    Classifier { evaluator: String, index: usize },
}

/// Call of the loaded function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// Unpredictable id, which every frame of this call repeats.
    pub id: String,
    pub form: CallForm,
    pub input: Value,
    /// Slug of the span below which the SDK writes its spans.
    #[serde(default)]
    pub parent: Option<String>,
    /// Trace that a scorer may read through its argument `trace`.
    #[serde(default)]
    pub trace: Option<WorkerTrace>,
    /// Environment variables of this call, in addition to those of the process. They replace those of the call before.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Hooks of a task. Other forms ignore them.
    #[serde(default)]
    pub hooks: Option<TaskHooks>,
}

/// How the arguments of a handler are made of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallForm {
    /// The input as it is, for tools and tasks. Python handlers receive the members of an object by name.
    Function,
    /// One object for scorers and classifiers of any source.
    ///
    /// `input`, `output`, `expected`, `metadata` and `trace` are null if they are absent.
    Scorer,
    /// The input is a list of spans. The handler runs once for each, and the value is the list of its answers.
    Preprocessor,
    /// The input, and the hooks as a second argument.
    EvalTask,
    /// No handler is called. The value has the evaluators of a bundle by name.
    Evaluators,
}

/// Trace of a call: the object with its spans, and the root span.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerTrace {
    pub object_type: String,
    pub object_id: String,
    pub root_span_id: String,
}

/// Second argument of the task of an evaluator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskHooks {
    #[serde(default)]
    pub metadata: Option<Value>,
    #[serde(default)]
    pub expected: Option<Value>,
    #[serde(default)]
    pub tags: Vec<String>,
    /// Values of the evaluator's parameters. Absent ones get the defaults of the evaluator.
    #[serde(default)]
    pub parameters: Option<Value>,
    #[serde(default)]
    pub trial_index: usize,
}

/// Bundle whose evaluators shall be listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleList {
    pub path: String,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

/// Interpreter of a worker that has started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerReady {
    /// `node`, `python` or `quickjs`, as in the runtime context of a function.
    pub runtime: String,
    /// Full version, such as `22.11.0`.
    pub version: String,
}

/// Confirmation of a load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedFunction {}

/// Event that a task reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskProgress {
    pub id: String,
    pub data: Value,
}

/// Value of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallOutput {
    pub id: String,
    pub value: Value,
    /// Timers, connections, threads, tasks and child processes that the call left behind.
    ///
    /// A worker with leftovers must not serve another call.
    #[serde(default)]
    pub left: usize,
    /// What a task changed through its hooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<TaskNotes>,
}

/// Metadata and tags of a case after its task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskNotes {
    pub metadata: Value,
    pub tags: Value,
}

/// Evaluators of a bundle by name, in the order in which they are defined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ListedEvaluators {
    pub evaluators: serde_json::Map<String, Value>,
}

/// Description of an evaluator, as clients expect it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ListedEvaluator {
    /// Container of the parameters, or null without parameters.
    #[serde(default)]
    pub parameters: Value,
    #[serde(default)]
    pub scores: Vec<NamedScorer>,
    #[serde(default)]
    pub classifiers: Vec<NamedScorer>,
}

/// Name of a scorer or a classifier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedScorer {
    pub name: String,
}

impl ListedEvaluators {
    /// Returns the description of an evaluator, or nothing if there is none or it has another form.
    pub fn evaluator(&self, name: &str) -> Option<ListedEvaluator> {
        ListedEvaluator::deserialize(self.evaluators.get(name)?).ok()
    }
}

/// Error of user code, or of the worker on its behalf.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerFailure {
    /// Id of the failed call. Absent for a load or a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Name of the error's type, such as `TypeError`.
    pub name: String,
    pub message: String,
    /// Stack trace in the form of the language, without frames of the worker.
    #[serde(default)]
    pub stack: String,
    /// What the call left behind, as in [`CallOutput::left`].
    #[serde(default)]
    pub left: usize,
}

impl FromWorker {
    /// Returns the id of the call to which the frame belongs.
    pub fn call_id(&self) -> Option<&str> {
        match self {
            FromWorker::Progress(progress) => Some(&progress.id),
            FromWorker::Result(output) => Some(&output.id),
            FromWorker::Error(failure) => failure.id.as_deref(),
            FromWorker::Ready(_) | FromWorker::Loaded(_) | FromWorker::Listed(_) => None,
        }
    }
}
