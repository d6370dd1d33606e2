//! Answers of a worker to the frames of the server.

use std::rc::Rc;

use assay_node_runtimes::{
    CallForm, CallOutput, CodeSource, FromWorker, FunctionCall, FunctionLoad, LoadedFunction, SourceLanguage,
    TaskHooks, ToWorker, WorkerFailure,
};
use serde_json::{Map, Value, json};

use crate::QuickJsLimits;
use crate::console::ConsoleSink;
use crate::engine::{Engine, HandlerCode};
use crate::failures::failure;

/// Arguments of scorers, which are null if they are absent.
const SCORER_ARGUMENTS: [&str; 5] = ["input", "output", "expected", "metadata", "trace"];

/// Worker with at most one function.
#[derive(Debug)]
pub(crate) struct QuickJsWorker {
    limits: QuickJsLimits,
    console: Rc<dyn ConsoleSink>,
    code: Option<HandlerCode>,
    /// Engine for the next call, which only a success leaves behind.
    engine: Option<Engine>,
}

impl QuickJsWorker {
    pub fn new(limits: QuickJsLimits, console: Rc<dyn ConsoleSink>) -> Self {
        Self { limits, console, code: None, engine: None }
    }

    pub fn answer(&mut self, frame: ToWorker) -> FromWorker {
        match frame {
            ToWorker::Load(load) => self.load(load).map_or_else(FromWorker::Error, FromWorker::Loaded),
            ToWorker::Call(call) => {
                let FunctionCall { id, form, input, hooks, .. } = *call;
                match self.call(form, input, hooks) {
                    Ok(value) => FromWorker::Result(CallOutput { id, value, left: 0, notes: None }),
                    Err(failure) => FromWorker::Error(WorkerFailure { id: Some(id), ..failure }),
                }
            }
            ToWorker::List(_) => FromWorker::Error(failure("Error", "the runtime quickjs has no bundles to list")),
        }
    }

    fn load(&mut self, load: FunctionLoad) -> Result<LoadedFunction, WorkerFailure> {
        if self.code.is_some() {
            return Err(failure("Error", "this worker has loaded a function"));
        }
        let code = match load.source {
            CodeSource::Bundle { .. } => {
                return Err(failure("Error", "the runtime quickjs runs inline code only, no bundles"));
            }
            CodeSource::Inline { language: SourceLanguage::Python, .. } => {
                return Err(failure("Error", "the runtime quickjs runs JavaScript and TypeScript only, no Python"));
            }
            CodeSource::Inline { is_module: true, .. } => {
                return Err(failure(
                    "SyntaxError",
                    "the runtime quickjs has no modules: code without import, export and top-level await is valid",
                ));
            }
            CodeSource::Inline { code, language, .. } => HandlerCode { text: code, language },
        };
        let console = Rc::clone(&self.console);
        self.with_engine(|engine| engine.check(&code, console))?;
        self.code = Some(code);
        Ok(LoadedFunction {})
    }

    fn call(&mut self, form: CallForm, input: Value, hooks: Option<TaskHooks>) -> Result<Value, WorkerFailure> {
        let code = self.code.take().ok_or_else(|| failure("Error", "this worker has loaded no function"))?;
        let outcome = arguments_of(form, input, hooks).and_then(|lists| {
            let console = Rc::clone(&self.console);
            let is_list = form == CallForm::Preprocessor;
            self.with_engine(|engine| engine.call(&code, &lists.to_string(), is_list, console))
        });
        self.code = Some(code);
        let text = replace_lone_surrogates(&outcome?);
        serde_json::from_str(&text).map_err(|error| failure("TypeError", format!("the result cannot be JSON: {error}")))
    }

    /// Runs `work` with the engine of the last success, or a new one.
    fn with_engine<T>(&mut self, work: impl FnOnce(&Engine) -> Result<T, WorkerFailure>) -> Result<T, WorkerFailure> {
        let engine = self.engine.take().map_or_else(|| Engine::new(self.limits), Ok)?;
        let output = work(&engine)?;
        self.engine = Some(engine);
        Ok(output)
    }
}

/// Returns the arguments of the handler: one list for each time it is called.
fn arguments_of(form: CallForm, input: Value, hooks: Option<TaskHooks>) -> Result<Value, WorkerFailure> {
    let once = |arguments: Vec<Value>| Ok(Value::Array(vec![Value::Array(arguments)]));
    match (form, input) {
        (CallForm::Function, input) => once(vec![input]),
        (CallForm::Scorer, input) => once(vec![scorer_input(input)]),
        (CallForm::Preprocessor, Value::Array(spans)) => {
            Ok(Value::Array(spans.into_iter().map(|span| Value::Array(vec![span])).collect()))
        }
        (CallForm::Preprocessor, _) => Err(failure("TypeError", "the input of a preprocessor must be a list of spans")),
        (CallForm::EvalTask, input) => once(vec![input, hooks_of(hooks.unwrap_or_default())]),
        (CallForm::Evaluators, _) => Err(failure("Error", "the runtime quickjs has no bundles to list")),
    }
}

/// Returns the hooks of a task as an object without methods, because code without IO cannot report.
fn hooks_of(hooks: TaskHooks) -> Value {
    let TaskHooks { metadata, expected, tags, parameters, trial_index } = hooks;
    json!({
        "metadata": metadata.unwrap_or_else(|| json!({})),
        "expected": expected,
        "tags": tags,
        "parameters": parameters.unwrap_or_else(|| json!({})),
        "trialIndex": trial_index,
    })
}

/// Adds absent arguments of a scorer. A trace is null, because code without IO cannot read its spans.
fn scorer_input(input: Value) -> Value {
    let mut arguments = match input {
        Value::Object(arguments) => arguments,
        Value::Null => Map::new(),
        other => return other,
    };
    for name in SCORER_ARGUMENTS {
        arguments.entry(name).or_insert(Value::Null);
    }
    Value::Object(arguments)
}

/// Replaces the escapes of unpaired surrogates, which are valid in JavaScript but no Unicode text.
///
/// The engine escapes surrogates only where they are unpaired.
fn replace_lone_surrogates(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(backslash) = rest.find('\\') {
        let escape = &rest[backslash..];
        text.push_str(&rest[..backslash]);
        let is_surrogate =
            matches!(escape.as_bytes(), [b'\\', b'u', b'd' | b'D', b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F', ..]);
        // The character after a backslash is ASCII in all JSON.
        let length = if is_surrogate { 6 } else { 2 };
        text.push_str(if is_surrogate { "\u{fffd}" } else { &escape[..length] });
        rest = &escape[length..];
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_escapes_of_surrogates_are_replaced() {
        assert_eq!(replace_lone_surrogates(r#""a\ud800b\\ud800\u0001\"é""#), "\"a\u{fffd}b\\\\ud800\\u0001\\\"é\"");
    }

    #[test]
    fn absent_arguments_of_scorers_are_null() {
        let input = scorer_input(serde_json::json!({ "output": 1, "extra": 2 }));
        let expected = serde_json::json!({
            "output": 1, "extra": 2, "input": null, "expected": null, "metadata": null, "trace": null,
        });
        assert_eq!(input, expected);
    }
}
