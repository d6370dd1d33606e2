//! Code functions: their arguments, the check of their values, and preprocessors.

use assay_node_prompts::{TraceReference, code_value};
use serde_json::{Map, Value, json};

use crate::error::{InvokeError, InvokeErrorKind};
use crate::function::InvokedFunction;
use crate::invoker::{FunctionRun, Invoker};
use crate::services::{CodeForm, CodeRequest, CodeValue, TaskCase};
use crate::threads::{THREAD_MESSAGES_MAX, is_scorer_span};

/// Members of the argument of a scorer.
const SCORER_MEMBERS: [&str; 4] = ["input", "output", "expected", "metadata"];
/// Members of a span that the handler of a preprocessor gets.
const PREPROCESSED_MEMBERS: [&str; 7] =
    ["id", "root_span_id", "input", "output", "error", "metadata", "span_attributes"];

impl Invoker {
    /// Runs a code function with the input of its caller.
    pub(crate) async fn code(&self, run: &FunctionRun, function: InvokedFunction) -> Result<Value, InvokeError> {
        if function.function_type.as_deref() == Some("preprocessor") {
            let trace = run.trace.as_ref().ok_or_else(|| {
                InvokeError::invalid("`input.trace_ref` is missing: name a trace by its object and root span")
            })?;
            let value = self.preprocessed_by_code(run, function, trace).await?;
            run.output.send_value(&value, false).await;
            return Ok(value);
        }
        let input = self.services.checked_input(&function, arguments_of(run, &function))?;
        let is_scorer = function.is_scorer();
        let form = match is_scorer || function.is_classifier() {
            true => CodeForm::Scorer,
            false if run.arguments.task.is_some() && takes_hooks(&function) => CodeForm::EvalTask,
            false => CodeForm::Function,
        };
        let CodeValue { value, notes } = self.run_code(run, function, form, input).await?;
        run.note_case(notes);
        if is_scorer {
            check_score(&value)?;
        }
        let value = code_value(value, run.mode());
        run.output.send_value(&value, false).await;
        Ok(value)
    }

    async fn run_code(
        &self,
        run: &FunctionRun,
        function: InvokedFunction,
        form: CodeForm,
        input: Value,
    ) -> Result<CodeValue, InvokeError> {
        let case = run.arguments.task.as_ref().filter(|_| form == CodeForm::EvalTask).map(|arguments| TaskCase {
            expected: run.arguments.expected.clone(),
            metadata: run.arguments.metadata.clone(),
            tags: run.arguments.tags.clone(),
            arguments: arguments.clone(),
        });
        let request = CodeRequest { function, form, input, case, trace: run.trace.clone(), scope: run.scope.clone() };
        self.services.run_code(request, run.output.clone()).await
    }

    /// Runs a preprocessor on the spans of a trace. Its answers become one list, in which nothing occurs twice.
    pub(crate) async fn preprocessed_by_code(
        &self,
        run: &FunctionRun,
        function: InvokedFunction,
        trace: &TraceReference,
    ) -> Result<Value, InvokeError> {
        let mut spans = self.services.spans(trace).await?;
        spans.retain(|span| !is_scorer_span(span));
        for span in spans.iter_mut().filter_map(Value::as_object_mut) {
            span.retain(|member, _| PREPROCESSED_MEMBERS.contains(&member.as_str()));
        }
        let answers = self.run_code(run, function, CodeForm::Preprocessor, Value::Array(spans)).await?;
        let Value::Array(answers) = answers.value else {
            return Err(InvokeError::new(InvokeErrorKind::Failed, "the preprocessor gave no list of answers"));
        };
        Ok(Value::Array(items_of(answers)))
    }
}

/// Returns whether a task takes hooks as its second argument.
///
/// Handlers in JavaScript ignore further arguments. Those in Python take the members of their input by name, unless they
/// are tasks of an evaluator.
fn takes_hooks(function: &InvokedFunction) -> bool {
    let data = &function.function_data["data"];
    let is_python = data["runtime_context"]["runtime"] == "python";
    !is_python || data["location"]["type"] == "experiment"
}

/// Flattens the answers of a preprocessor. Null skips a span, and repeated items are left out.
fn items_of(answers: Vec<Value>) -> Vec<Value> {
    let flat = answers.into_iter().flat_map(|answer| match answer {
        Value::Null => Vec::new(),
        Value::Array(items) => items,
        item => vec![item],
    });
    let mut known = std::collections::HashSet::new();
    flat.filter(|item| known.insert(item.to_string())).take(THREAD_MESSAGES_MAX).collect()
}

/// Returns the argument of a function. Members that the input of a scorer lacks come from the request.
fn arguments_of(run: &FunctionRun, function: &InvokedFunction) -> Value {
    let input = run.arguments.input.clone();
    if !(function.is_scorer() || function.is_classifier()) {
        return input;
    }
    let mut members = match input {
        Value::Object(members) => members,
        // A scorer of a single value.
        other => Map::from_iter([("input".to_owned(), other)]),
    };
    for (name, value) in [("expected", &run.arguments.expected), ("metadata", &run.arguments.metadata)] {
        if !value.is_null() && members.get(name).is_none_or(Value::is_null) {
            members.insert(name.to_owned(), value.clone());
        }
    }
    for name in SCORER_MEMBERS {
        members.entry(name).or_insert(Value::Null);
    }
    Value::Object(members)
}

/// Refuses a number that is no score (F-55). Other values are checked where they are used.
fn check_score(value: &Value) -> Result<(), InvokeError> {
    let Some(number) = value.as_f64() else { return Ok(()) };
    if (0.0..=1.0).contains(&number) {
        return Ok(());
    }
    let why = format!("the scorer returned {number}; a score is a number between 0 and 1, or null");
    Err(InvokeError::new(InvokeErrorKind::Failed, why))
}

/// Returns an inline preprocessor as a function.
pub(crate) fn inline_preprocessor(preprocessor: &Value) -> InvokedFunction {
    let context = match &preprocessor["runtime_context"] {
        Value::Null => json!({"runtime": "quickjs", "version": "ES2023"}),
        context => context.clone(),
    };
    let data = json!({"type": "inline", "runtime_context": context, "code": preprocessor["code"]});
    InvokedFunction {
        name: "preprocessor".to_owned(),
        function_type: Some("preprocessor".to_owned()),
        function_data: json!({"type": "code", "data": data}),
        ..InvokedFunction::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_a_preprocessor_become_one_list() {
        let answers = vec![json!([1, {"a": 1}]), Value::Null, json!("x"), json!([1, "y"]), json!({"a": 1})];
        assert_eq!(items_of(answers), [json!(1), json!({"a": 1}), json!("x"), json!("y")]);
    }

    #[test]
    fn tasks_take_hooks_unless_their_language_would_count_them() {
        let takes = |data: Value| {
            let function_data = json!({"type": "code", "data": data});
            takes_hooks(&InvokedFunction { function_data, ..InvokedFunction::default() })
        };
        let runtime = |name: &str| json!({"runtime": name, "version": "1"});
        assert!(takes(json!({"runtime_context": runtime("node"), "location": {"type": "function", "index": 0}})));
        assert!(takes(json!({"runtime_context": runtime("python"), "location": {"type": "experiment"}})));
        assert!(!takes(json!({"runtime_context": runtime("python"), "location": {"type": "function"}})));
        assert!(!takes(json!({"runtime_context": runtime("python"), "type": "inline", "code": ""})));
    }

    #[test]
    fn a_number_outside_of_a_score_is_refused() {
        for value in [json!(0), json!(1), json!(0.5), Value::Null, json!("0.45"), json!({"score": 3}), json!(true)] {
            assert!(check_score(&value).is_ok(), "{value}");
        }
        for value in [json!(1.1), json!(-1), json!(100)] {
            assert_eq!(check_score(&value).expect_err("no score").kind, InvokeErrorKind::Failed, "{value}");
        }
    }
}
