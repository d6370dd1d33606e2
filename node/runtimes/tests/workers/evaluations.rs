//! Evaluators of bundles: lists, tasks with hooks, scorers and classifiers.

use std::path::PathBuf;

use assay_node_runtimes::{
    BundleList, BundleLocation, CallForm, FromWorker, ListedEvaluators, RuntimeKind, TaskHooks, ToWorker,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::bundles::PYTHON_SDK;
use crate::harness::{BOTH, Worker, bundle, write_files};

const NODE_BUNDLE: &str = r#"
const { Eval } = require("braintrust");
const text = { parse: (v) => { if (v === undefined) return "hi"; if (typeof v !== "string") throw new Error("no text"); return v; },
  safeParse: () => ({ success: true, data: "hi" }), toJSONSchema: () => ({ type: "string", description: "a greeting" }) };
function close({ input, output, expected, metadata, tags, trace }) { return { name: "close", score: 0.5, metadata: { input, output, expected, metadata, tags, trace } }; }
Eval("first", {
  data: () => [],
  parameters: { greeting: text, model: { type: "model", default: "m", description: "which" } },
  task: async (input, hooks) => {
    hooks.meta({ meta: 1 });
    hooks.metadata.more = 2;
    hooks.tags.push("new");
    hooks.span.log({ a: 1 });
    hooks.reportProgress({ format: "code", output_type: "any", event: "text_delta", data: "\"a\"" });
    return [input, hooks.expected, hooks.trialIndex, hooks.parameters];
  },
  scores: [close, () => null, class Third { static partial() {} }],
  classifiers: [function kind({ output }) { return { id: output }; }],
});
Eval("second", { data: () => [], task: (input) => input, scores: [close] });
"#;

const PYTHON_ENTRY: &str = "
from braintrust import Eval
class Close:
    def _name(self): return 'Close'
    def eval(self, output, expected=None, **rest): raise AssertionError
    async def eval_async(self, output, expected=None, **rest):
        return {'name': 'close', 'score': 0.5, 'metadata': {'output': output, 'expected': expected, **rest}}
async def task(input, hooks):
    hooks.meta(meta=1)
    hooks.metadata['more'] = 2
    hooks.tags.append('new')
    hooks.span.log(a=1)
    hooks.report_progress({'format': 'code', 'output_type': 'any', 'event': 'text_delta', 'data': '\"a\"'})
    return [input, hooks.expected, hooks.trial_index, hooks.parameters]
def kind(output): return {'id': output}
Eval('first', data=[], task=task, scores=[Close, lambda a, b: None, lambda *names: names], classifiers=[kind],
     parameters={'greeting': 'hi', 'model': 'm'})
Eval('second', data=[], task=lambda input: input, scores=[Close()])
";

const PYTHON_PARAMETERS: &str = "
def serialize_remote_eval_parameters_container(parameters):
    return {'type': 'braintrust.staticParameters', 'schema': parameters, 'source': None}
def validate_parameters(given, schema):
    if not isinstance(given.get('greeting', ''), str): raise ValueError(\"Invalid parameter 'greeting'\")
    return {**schema, **given}
";

/// Returns the folder of a bundle with two evaluators, and the path that a worker loads.
fn evaluators(kind: RuntimeKind) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = match kind {
        RuntimeKind::Node => {
            write_files(folder.path(), &[("bundle.cjs", NODE_BUNDLE)]);
            folder.path().join("bundle.cjs")
        }
        RuntimeKind::Python => {
            write_files(folder.path(), &PYTHON_SDK);
            write_files(
                folder.path(),
                &[("register.py", PYTHON_ENTRY), ("braintrust/parameters.py", PYTHON_PARAMETERS)],
            );
            folder.path().to_owned()
        }
        RuntimeKind::QuickJs => unreachable!("QuickJS runs no bundles"),
    };
    (folder, path)
}

fn task(evaluator: &str) -> BundleLocation {
    BundleLocation::Task { evaluator: evaluator.to_owned() }
}

fn scorer(index: usize) -> BundleLocation {
    BundleLocation::Scorer { evaluator: "first".to_owned(), index }
}

fn listed(worker: &mut Worker, path: &std::path::Path) -> ListedEvaluators {
    let path = path.to_string_lossy().into_owned();
    worker.send(&ToWorker::List(BundleList { path, environment: [].into() }));
    match worker.receive() {
        FromWorker::Listed(listed) => listed,
        other => panic!("{other:?} instead of a list"),
    }
}

#[test]
fn evaluators_are_listed_with_their_parameters_and_scorers() {
    for kind in BOTH {
        let (_folder, path) = evaluators(kind);
        let mut worker = Worker::start(kind);
        let list = listed(&mut worker, &path);
        assert_eq!(list.evaluators.keys().collect::<Vec<_>>(), ["first", "second"]);
        let names =
            |values: &[assay_node_runtimes::NamedScorer]| values.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
        let first = list.evaluator("first").unwrap();
        assert_eq!(names(&first.classifiers), ["kind"]);
        assert_eq!(first.parameters["type"], "braintrust.staticParameters");
        let expected = match kind {
            RuntimeKind::Node => {
                let greeting = json!({"type": "data", "schema": {"type": "string", "description": "a greeting"}, "default": "hi", "description": "a greeting"});
                let model = json!({"type": "model", "default": "m", "description": "which"});
                assert_eq!(first.parameters["schema"], json!({"greeting": greeting, "model": model}));
                ["close", "scorer_1", "Third"]
            }
            RuntimeKind::Python => ["Close", "scorer_1", "scorer_2"],
            RuntimeKind::QuickJs => unreachable!("QuickJS runs no bundles"),
        };
        assert_eq!(names(&first.scores), expected);
        let second = list.evaluator("second").unwrap();
        assert_eq!((second.parameters, second.classifiers.len()), (Value::Null, 0));
        // the same worker can run the task then
        worker.load(bundle(&path, task("second"))).unwrap();
        assert_eq!(worker.call(CallForm::EvalTask, json!("x")), json!("x"));
    }
}

#[test]
fn a_task_reads_and_changes_its_hooks() {
    for kind in BOTH {
        let (_folder, path) = evaluators(kind);
        let mut worker = Worker::bundle(kind, &path, task("first"));
        worker.hooks = Some(TaskHooks {
            metadata: Some(json!({"own": 0})),
            expected: Some(json!("e")),
            tags: vec!["old".to_owned()],
            parameters: Some(json!({"greeting": "hello"})),
            trial_index: 2,
        });
        for round in 1..=2 {
            let output = worker.try_call(CallForm::EvalTask, json!({"q": 1})).unwrap();
            assert_eq!(output.value, json!([{"q": 1}, "e", 2, {"greeting": "hello", "model": "m"}]));
            let notes = output.notes.unwrap();
            assert_eq!(notes.metadata, json!({"own": 0, "meta": 1, "more": 2}));
            assert_eq!(notes.tags, json!(["old", "new"]));
            let event = json!({"format": "code", "output_type": "any", "event": "text_delta", "data": "\"a\""});
            assert_eq!(worker.progress, vec![event; round]);
        }
    }
}

#[test]
fn hooks_that_are_absent_have_empty_values() {
    for kind in BOTH {
        let (_folder, path) = evaluators(kind);
        let mut worker = Worker::bundle(kind, &path, task("first"));
        let output = worker.try_call(CallForm::EvalTask, json!(1)).unwrap();
        assert_eq!(output.value, json!([1, null, 0, {"greeting": "hi", "model": "m"}]));
        assert_eq!(output.notes.unwrap().metadata, json!({"meta": 1, "more": 2}));
    }
}

#[test]
fn a_parameter_of_another_type_is_an_error_that_names_it() {
    for kind in BOTH {
        let (_folder, path) = evaluators(kind);
        let mut worker = Worker::bundle(kind, &path, task("first"));
        worker.hooks = Some(TaskHooks { parameters: Some(json!({"greeting": 5})), ..TaskHooks::default() });
        let failure = worker.try_call(CallForm::EvalTask, json!(1)).unwrap_err();
        assert!(failure.message.to_lowercase().contains("invalid parameter 'greeting'"), "{}", failure.message);
    }
}

#[test]
fn a_task_without_an_evaluator_gets_hooks_too() {
    let code = "function handler(input, hooks) { hooks.metadata.x = 1; return [input, hooks.trialIndex]; }";
    let mut worker = Worker::inline(RuntimeKind::Node, code);
    assert_eq!(worker.call(CallForm::EvalTask, json!("i")), json!(["i", 0]));
    let mut worker = Worker::inline(RuntimeKind::Python, "def handler(input): return [input]");
    assert_eq!(worker.call(CallForm::EvalTask, json!("i")), json!(["i"]));
}

#[test]
fn scorers_and_classifiers_are_called_by_their_position() {
    let input = json!({"input": 1, "output": "o", "metadata": {"m": 1}, "tags": ["t"]});
    for kind in BOTH {
        let (_folder, path) = evaluators(kind);
        let mut worker = Worker::bundle(kind, &path, scorer(0));
        let value = worker.call(CallForm::Scorer, input.clone());
        let metadata =
            json!({"input": 1, "output": "o", "expected": null, "metadata": {"m": 1}, "tags": ["t"], "trace": null});
        assert_eq!(value, json!({"name": "close", "score": 0.5, "metadata": metadata}));
        worker.load(bundle(&path, scorer(1))).unwrap();
        assert_eq!(worker.call(CallForm::Scorer, input.clone()), Value::Null);
        let classifier = BundleLocation::Classifier { evaluator: "first".to_owned(), index: 0 };
        worker.load(bundle(&path, classifier)).unwrap();
        assert_eq!(worker.call(CallForm::Scorer, input.clone()), json!({"id": "o"}));
    }
}

#[test]
fn the_input_of_a_scorer_has_to_be_an_object() {
    for kind in BOTH {
        let (_folder, path) = evaluators(kind);
        let failure = Worker::bundle(kind, &path, scorer(0)).try_call(CallForm::Scorer, json!([1])).unwrap_err();
        assert!(failure.message.starts_with("the input of a scorer has to be an object"), "{}", failure.message);
    }
}

#[test]
fn unknown_evaluators_and_positions_are_errors_that_say_what_there_is() {
    for kind in BOTH {
        let (_folder, path) = evaluators(kind);
        let mut worker = Worker::start(kind);
        let failure = worker.load(bundle(&path, task("third"))).unwrap_err();
        let expected = "the bundle has no evaluator named third: it has first, second";
        assert!(failure.message.contains(expected), "{}", failure.message);
        let failure = worker.load(bundle(&path, scorer(3))).unwrap_err();
        assert_eq!(failure.message, "the evaluator first has no scorer at position 3: it has 3");
    }
}
