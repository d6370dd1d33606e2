//! Global functions: native scorers, scorers with model calls, judges, and preprocessors (functions.md 6, 7.5).

use assay_node_prompts::{TraceReference, code_value, take_trace};
use assay_node_scorers::{
    AutoevalsPackage, GlobalFunction, GlobalFunctionKind, GlobalFunctionType, ModelCall, ModelOperation, RUN_STEPS_MAX,
    ScorerArguments, ScorerStep, global_function, judge, judge_prompt, native_score, start_scorer,
};
use futures::FutureExt;
use futures::future::{BoxFuture, try_join_all};
use serde_json::{Map, Value, json};

use crate::code::inline_preprocessor;
use crate::error::{InvokeError, InvokeErrorKind};
use crate::facets::Facet;
use crate::function::FunctionKind;
use crate::invoker::{FunctionRun, Invoker};
use crate::services::{CacheUse, ModelRequest};
use crate::threads::thread_of_spans;
use crate::tools::saved_reference;

/// Package whose names and details the scorers follow, like the hosted service.
const PACKAGE: AutoevalsPackage = AutoevalsPackage::TypeScript;

impl Invoker {
    /// Runs a global function.
    pub(crate) async fn global(
        &self,
        run: &FunctionRun,
        (name, function_type): (&str, &str),
        config: &Map<String, Value>,
    ) -> Result<Value, InvokeError> {
        let function = known(name, function_type)?;
        let value = match function.kind {
            GlobalFunctionKind::Preprocessor => {
                let trace = run.trace.as_ref().ok_or_else(|| {
                    InvokeError::invalid("`input.trace_ref` is missing: name a trace by its object and root span")
                })?;
                let own = (function.name == "thread").then(|| json!({"type": "global", "name": "thread"}));
                self.preprocessed(run, trace, own.as_ref()).await?
            }
            GlobalFunctionKind::Facet => {
                let facet = Facet::global(function.name);
                let mut facet = facet.ok_or_else(|| InvokeError::not_found("there is no such facet"))?;
                facet.model = config.get("model").and_then(Value::as_str).map(str::to_owned);
                self.facet(run, &facet).await?
            }
            GlobalFunctionKind::Judge => {
                let input = scorer_input(run)?;
                let arguments = ScorerArguments::new(&input, config)?;
                let judge = judge(function.name).ok_or_else(|| InvokeError::not_found("there is no such judge"))?;
                let prompt_data = judge_prompt(judge, &arguments, &self.models)?;
                return self.prompt_of(run, &prompt_data).await;
            }
            GlobalFunctionKind::Native => {
                let input = scorer_input(run)?;
                native_score(function.name, &ScorerArguments::new(&input, config)?, PACKAGE)?.to_json()
            }
            GlobalFunctionKind::Stepwise => self.stepwise(run, function.name, config).await?,
        };
        let value = code_value(value, run.mode());
        run.output.send_value(&value, false).await;
        Ok(value)
    }

    /// Runs a scorer with model calls.
    async fn stepwise(&self, run: &FunctionRun, name: &str, config: &Map<String, Value>) -> Result<Value, InvokeError> {
        let input = scorer_input(run)?;
        let mut step = start_scorer(name, &ScorerArguments::new(&input, config)?, PACKAGE, &self.models)?;
        for _ in 0..=RUN_STEPS_MAX {
            let (calls, waiting) = match step {
                ScorerStep::Finish(score) => return Ok(score.to_json()),
                ScorerStep::Call { calls, run } => (calls, run),
            };
            let sent: Vec<BoxFuture<'_, _>> =
                calls.into_iter().map(|call| self.scorer_call(run, call).boxed()).collect();
            step = waiting.resume(&try_join_all(sent).await?)?;
        }
        Err(InvokeError::new(InvokeErrorKind::Failed, format!("`{name}` takes too many steps")))
    }

    pub(crate) async fn scorer_call(&self, run: &FunctionRun, call: ModelCall) -> Result<Value, InvokeError> {
        let Value::Object(body) = call.body else {
            return Err(InvokeError::new(InvokeErrorKind::Failed, "a scorer's request is no object"));
        };
        // Some scorers send the same request several times to get different answers.
        let cache = match call.operation {
            ModelOperation::ChatCompletions => CacheUse::Never,
            ModelOperation::Embeddings | ModelOperation::Moderations => CacheUse::AsRequested,
        };
        let request = ModelRequest {
            operation: call.operation,
            body,
            is_stream: false,
            cache,
            endpoint_name: run.arguments.endpoint_name.clone(),
            scope: run.scope.clone(),
            prompt: None,
        };
        let response = self.services.call(request).await?.into_response();
        run.note_usage(&response);
        Ok(response)
    }

    /// Runs a preprocessor on a trace: the given one, or else the project's default, or else `thread`.
    pub(crate) async fn preprocessed(
        &self,
        run: &FunctionRun,
        trace: &TraceReference,
        own: Option<&Value>,
    ) -> Result<Value, InvokeError> {
        let mut preprocessor = own.cloned().unwrap_or_default();
        if preprocessor.is_null() || is_project_default(&preprocessor) {
            preprocessor = self.services.default_preprocessor(trace).await?;
        }
        if preprocessor.get("type").and_then(Value::as_str) == Some("inline") {
            return self.preprocessed_by_code(run, inline_preprocessor(&preprocessor), trace).await;
        }
        // A default that refers to the project default counts as no default.
        if !(preprocessor.is_null() || is_project_default(&preprocessor) || is_thread(&preprocessor)) {
            let named = saved_reference(&preprocessor);
            let (reference, version) =
                named.ok_or_else(|| InvokeError::invalid("the preprocessor names no function"))?;
            let function = self.services.resolve(&reference, &version).await?;
            return match function.kind()? {
                FunctionKind::Code => self.preprocessed_by_code(run, function, trace).await,
                _ => Err(InvokeError::invalid("the preprocessor is neither code nor the global function `thread`")),
            };
        }
        let spans = self.services.spans(trace).await?;
        Ok(Value::Array(thread_of_spans(&spans)))
    }
}

fn is_named(preprocessor: &Value, name: &str) -> bool {
    preprocessor["type"] == "global" && preprocessor["name"] == name
}

fn is_thread(preprocessor: &Value) -> bool {
    is_named(preprocessor, "thread")
}

fn is_project_default(preprocessor: &Value) -> bool {
    is_named(preprocessor, "project_default")
}

/// Returns a global function by name. The error names the alternatives.
fn known(name: &str, function_type: &str) -> Result<&'static GlobalFunction, InvokeError> {
    let function_type = match function_type {
        "scorer" => GlobalFunctionType::Scorer,
        "facet" => GlobalFunctionType::Facet,
        "preprocessor" => GlobalFunctionType::Preprocessor,
        other => {
            let why =
                format!("there are no global functions of the type `{other}`; valid are scorer, facet, preprocessor");
            return Err(InvokeError::not_found(why));
        }
    };
    global_function(function_type, name).map_err(|error| InvokeError::not_found(error.to_string()))
}

/// Returns the arguments of a scorer. Members missing in the input are taken from the request.
fn scorer_input(run: &FunctionRun) -> Result<Map<String, Value>, InvokeError> {
    let mut input = run.arguments.input.clone();
    drop(take_trace(&mut input));
    let Value::Object(mut input) = input else {
        let why = "`input` has to be an object with the arguments of the scorer, such as `output` and `expected`";
        return Err(InvokeError::invalid(why));
    };
    for (name, value) in [("expected", &run.arguments.expected), ("metadata", &run.arguments.metadata)] {
        if !value.is_null() && input.get(name).is_none_or(Value::is_null) {
            input.insert(name.to_owned(), value.clone());
        }
    }
    Ok(input)
}
