//! Bundles of both languages: their functions, the SDK of the bundle, and its spans.

use std::path::PathBuf;

use assay_node_runtimes::{BundleLocation, CallForm, RuntimeKind};
use serde_json::json;
use tempfile::TempDir;

use crate::harness::{Worker, bundle, inline, write_files};

const NODE: RuntimeKind = RuntimeKind::Node;
const PYTHON: RuntimeKind = RuntimeKind::Python;

/// Text as esbuild makes it of an entry that registers functions, with the SDK as an external package.
const NODE_BUNDLE: &str = r#"#!/usr/bin/env node
"use strict";
var __create = Object.create;
var __defProp = Object.defineProperty;
var __getOwnPropDesc = Object.getOwnPropertyDescriptor;
var __getOwnPropNames = Object.getOwnPropertyNames;
var __getProtoOf = Object.getPrototypeOf;
var __hasOwnProp = Object.prototype.hasOwnProperty;
var __export = (target, all) => { for (var name in all) __defProp(target, name, { get: all[name], enumerable: true }); };
var __copyProps = (to, from, except, desc) => {
  if (from && typeof from === "object" || typeof from === "function") {
    for (let key of __getOwnPropNames(from))
      if (!__hasOwnProp.call(to, key) && key !== except)
        __defProp(to, key, { get: () => from[key], enumerable: !(desc = __getOwnPropDesc(from, key)) || desc.enumerable });
  }
  return to;
};
var __toESM = (mod, isNodeMode, target) => (target = mod != null ? __create(__getProtoOf(mod)) : {}, __copyProps(
  isNodeMode || !mod || !mod.__esModule ? __defProp(target, "default", { value: mod, enumerable: true }) : target, mod));
var __toCommonJS = (mod) => __copyProps(__defProp({}, "__esModule", { value: true }), mod);
var tools_exports = {};
__export(tools_exports, { project: () => project });
module.exports = __toCommonJS(tools_exports);
var bt = __toESM(require("braintrust"));
var project = bt.projects.create({ name: "demo" });
project.tools.create({ name: "Add", slug: "add", parameters: {}, handler: async ({ a, b }) => a + b });
project.scorers.create({ name: "Same", slug: "same", handler: ({ output, expected }) => ({ name: "same", score: output === expected ? 1 : 0 }) });
project.scorers.create({ name: "Judge", slug: "judge", messages: [{ role: "user", content: "{{output}}" }], model: "m", choiceScores: { y: 1 } });
project.prompts.create({ name: "P", slug: "p", model: "m", messages: [] });
project.classifiers.create({ name: "Kind", slug: "kind", handler: () => ({ id: "x" }) });
project.tools.create({ name: "Missing", slug: "missing", handler: () => bt.loadPrompt({}) });
project.tools.create({ name: "Where", slug: "where", handler: () => [__filename, __dirname, typeof exports, bt.default === require("braintrust")] });
(0, bt.Eval)("demo", { experimentName: "e", data: () => [], task: (input) => input, scores: [] });
"#;

fn node_bundle(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path(), &[("bundle.cjs", text)]);
    let path = folder.path().join("bundle.cjs");
    (folder, path)
}

fn function(index: usize) -> BundleLocation {
    BundleLocation::Function { index }
}

#[test]
fn functions_of_a_node_bundle_are_called_by_their_position() {
    let (_folder, path) = node_bundle(NODE_BUNDLE);
    let mut worker = Worker::bundle(NODE, &path, function(0));
    assert_eq!(worker.function(json!({"a": 1, "b": 2})), json!(3));
    worker.load(bundle(&path, function(1))).unwrap();
    let value = worker.call(CallForm::Scorer, json!({"output": 1, "expected": 1}));
    assert_eq!(value, json!({"name": "same", "score": 1}));
    worker.load(bundle(&path, function(2))).unwrap();
    assert_eq!(worker.call(CallForm::Scorer, json!({"output": 1})), json!({"id": "x"}));
    worker.load(bundle(&path, function(4))).unwrap();
    let folder = path.parent().unwrap();
    assert_eq!(worker.function(json!({})), json!([path, folder, "object", true]));
}

#[test]
fn a_bundle_reaches_no_more_of_the_small_sdk_than_there_is() {
    let (_folder, path) = node_bundle(NODE_BUNDLE);
    let failure = Worker::bundle(NODE, &path, function(3)).failure(json!({}));
    assert!(failure.message.starts_with("braintrust.loadPrompt is not available"), "{}", failure.message);
    assert!(failure.message.contains("functions.node_modules"), "{}", failure.message);
}

#[test]
fn a_position_that_a_bundle_does_not_have_is_an_error() {
    let (_folder, path) = node_bundle(NODE_BUNDLE);
    let failure = Worker::start(NODE).load(bundle(&path, function(9))).unwrap_err();
    assert_eq!(failure.message, "the bundle has no function at position 9: it registers 5");
    let folder = python_bundle();
    let failure = Worker::start(PYTHON).load(bundle(folder.path(), function(9))).unwrap_err();
    assert_eq!(failure.message, "the bundle has no function at position 9: it registers 4");
}

#[test]
fn errors_of_a_bundle_have_its_lines() {
    let (_folder, path) = node_bundle("const a = 1;\nthrow new Error('at load');\n");
    let failure = Worker::start(NODE).load(bundle(&path, function(0))).unwrap_err();
    assert_eq!(failure.message, "at load");
    assert!(failure.stack.contains(&format!("{}:2:7", path.display())), "{}", failure.stack);
}

#[test]
fn an_external_package_that_is_absent_names_the_setting() {
    let (_folder, path) = node_bundle("require('autoevals');");
    let failure = Worker::start(NODE).load(bundle(&path, function(0))).unwrap_err();
    assert!(failure.message.contains("Cannot find package 'autoevals'"), "{}", failure.message);
    assert!(failure.message.contains("functions.node_modules"), "{}", failure.message);
}

#[test]
fn inline_code_cannot_register_functions() {
    let code =
        "require('braintrust').projects.create({name: 'p'}).tools.create({handler: () => 1}); function handler() {}";
    let failure = Worker::start(NODE).load(inline(NODE, code)).unwrap_err();
    assert!(failure.message.contains("only a bundle can register functions here"), "{}", failure.message);
}

/// SDK with the parts that a worker uses, instead of the package.
const NODE_SDK: &str = r#"
const { AsyncLocalStorage } = require('async_hooks');
const state = (globalThis[Symbol.for('braintrust-state')] ??= {
  currentParent: new AsyncLocalStorage(), loggedIn: false, loginToken: null, sent: [], queue: [],
  _apiConn: { set_token(token) { this.token = token; } },
  resetLoginInfo() { this.loggedIn = false; },
  bgLogger: () => ({ async flush() { state.sent.push(...state.queue.splice(0)); } }),
});
exports.startSpan = ({ name }) => ({
  log: (event) => state.queue.push([name, state.currentParent.getStore() ?? null, event]), end() {},
});
globalThis._spanContext = { startSpan: exports.startSpan };
exports.state = state;
"#;

#[test]
fn spans_of_the_sdk_hang_below_the_parent_and_are_sent_before_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let packages = folder.path().join("node_modules");
    write_files(&packages, &[("braintrust/index.js", NODE_SDK)]);
    let code = "const {startSpan, state} = require('braintrust');
        async function handler({x}) {
          const before = state.sent.splice(0);
          await null;
          startSpan({name: 's'}).log({x});
          return before;
        }";
    let mut worker = Worker::start_with(NODE, &[("ASSAY_NODE_MODULES", packages.to_str().unwrap())]);
    worker.load(inline(NODE, code)).unwrap();
    worker.parent = Some("slug-1".to_owned());
    assert_eq!(worker.function(json!({"x": 1})), json!([]));
    worker.parent = None;
    assert_eq!(worker.function(json!({"x": 2})), json!([["s", "slug-1", {"x": 1}]]));
    assert_eq!(worker.function(json!({"x": 3})), json!([["s", null, {"x": 2}]]));
}

#[test]
fn an_sdk_that_has_logged_in_gets_the_credential_of_each_call() {
    let folder = tempfile::tempdir().unwrap();
    let packages = folder.path().join("node_modules");
    write_files(&packages, &[("braintrust/index.js", NODE_SDK)]);
    let code = "const {state} = require('braintrust');
        function handler() {
          const seen = [state.loggedIn, state.loginToken, state._apiConn.token ?? null];
          state.loggedIn = true;
          return seen;
        }";
    let mut worker = Worker::start_with(NODE, &[("ASSAY_NODE_MODULES", packages.to_str().unwrap())]);
    worker.load(inline(NODE, code)).unwrap();
    let mut with = |key: &str, url: &str| {
        let variables = [("BRAINTRUST_API_KEY", key), ("BRAINTRUST_API_URL", url)];
        worker.environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        worker.function(json!({}))
    };
    assert_eq!(with("one", "u"), json!([false, null, null]));
    assert_eq!(with("two", "u"), json!([true, "two", "two"]));
    assert_eq!(with("two", "other"), json!([false, "two", "two"]));
}

/// Files of a Python bundle, with an SDK that has the parts that a worker uses.
pub const PYTHON_SDK: [(&str, &str); 4] = [
    (
        "braintrust/__init__.py",
        "from . import logger\nfrom .logger import flush, start_span, login\nfrom .framework import Eval\n",
    ),
    (
        "braintrust/logger.py",
        "import contextlib
class State: logged_in = False
_state = State()
parent, queue, sent, logins = [None], [], [], []
@contextlib.contextmanager
def parent_context(slug):
    parent.append(slug)
    try: yield
    finally: parent.pop()
class Span:
    def __init__(self, name): self.name = name
    def log(self, **event): queue.append([self.name, parent[-1], event])
    def end(self): queue.append([self.name, 'end'])
def start_span(name, span_attributes=None): return Span(name)
def login(force_login=False):
    import os
    logins.append(os.environ['BRAINTRUST_API_KEY'])
    _state.logged_in = True
def flush():
    sent.extend(queue)
    queue.clear()
",
    ),
    (
        "braintrust/framework.py",
        "import contextlib, types
_evals = types.SimpleNamespace(evaluators={})
_lazy_load = False
@contextlib.contextmanager
def _set_lazy_load(value):
    global _lazy_load
    _lazy_load, before = value, _lazy_load
    try: yield
    finally: _lazy_load = before
def Eval(name, **members):
    assert _lazy_load
    members = {'parameters': None, 'classifiers': None, **members}
    _evals.evaluators[name] = types.SimpleNamespace(evaluator=types.SimpleNamespace(eval_name=name, **members))
",
    ),
    (
        "braintrust/framework2.py",
        "import types
global_ = types.SimpleNamespace(functions=[])
def function(handler):
    global_.functions.append(types.SimpleNamespace(handler=handler))
    return handler
",
    ),
];

const PYTHON_ENTRY: &str = "
import os
import helpers
from braintrust.framework2 import function
from braintrust import logger, start_span

@function
def add(a, b): return helpers.add(a, b)

@function
async def spans(x):
    before = list(logger.sent)
    logger.sent.clear()
    start_span('s').log(x=x)
    return before

@function
def where(): return os.getcwd()

@function
def login():
    logger._state.logged_in = True
    return logger.logins
";

fn python_bundle() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path(), &PYTHON_SDK);
    let files = [
        ("register.py", "import tools.entry\n"),
        ("tools/entry.py", PYTHON_ENTRY),
        ("helpers.py", "def add(a, b): return a + b\n"),
    ];
    write_files(folder.path(), &files);
    folder
}

#[test]
fn functions_of_a_python_bundle_are_called_by_their_position() {
    let folder = python_bundle();
    let mut worker = Worker::bundle(PYTHON, folder.path(), function(0));
    assert_eq!(worker.function(json!({"a": 1, "b": 2, "other": 3})), json!(3));
    worker.load(bundle(folder.path(), function(2))).unwrap();
    assert_eq!(worker.function(json!(null)), json!(folder.path().canonicalize().unwrap()));
}

#[test]
fn spans_of_python_hang_below_the_parent_and_are_sent_before_the_result() {
    let folder = python_bundle();
    let mut worker = Worker::bundle(PYTHON, folder.path(), function(1));
    worker.parent = Some("slug-1".to_owned());
    assert_eq!(worker.function(json!({"x": 1})), json!([]));
    worker.parent = None;
    assert_eq!(worker.function(json!({"x": 2})), json!([["s", "slug-1", {"x": 1}]]));
    assert_eq!(worker.function(json!({"x": 3})), json!([["s", null, {"x": 2}]]));
}

#[test]
fn the_sdk_of_python_logs_in_again_for_another_credential() {
    let folder = python_bundle();
    let mut worker = Worker::bundle(PYTHON, folder.path(), function(3));
    for (key, logins) in [("one", json!([])), ("one", json!([])), ("two", json!(["two"]))] {
        worker.environment = [("BRAINTRUST_API_KEY".to_owned(), key.to_owned())].into();
        assert_eq!(worker.function(json!({})), logins);
    }
}

#[test]
fn a_python_bundle_without_an_sdk_is_an_error_that_names_the_setting() {
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path(), &[("register.py", "")]);
    let failure = Worker::start(PYTHON).load(bundle(folder.path(), function(0))).unwrap_err();
    assert!(failure.message.starts_with("No module named 'braintrust'"), "{}", failure.message);
    assert!(failure.message.contains("functions.python_path"), "{}", failure.message);
}

#[test]
fn errors_of_a_python_bundle_have_its_files() {
    let folder = python_bundle();
    write_files(
        folder.path(),
        &[("register.py", "import broken\n"), ("broken.py", "x = 1\nraise ValueError('at load')\n")],
    );
    let failure = Worker::start(PYTHON).load(bundle(folder.path(), function(0))).unwrap_err();
    assert_eq!((failure.name.as_str(), failure.message.as_str()), ("ValueError", "at load"));
    assert!(failure.stack.contains("broken.py\", line 2, in <module>"), "{}", failure.stack);
    assert!(!failure.stack.contains("assay_"), "{}", failure.stack);
}

#[test]
fn modules_of_a_bundle_win_over_those_of_the_worker() {
    let folder = python_bundle();
    let files = [
        ("worker.py", "name = 'own'\n"),
        ("register.py", "import worker\nassert worker.name == 'own'\nimport tools.entry\n"),
    ];
    write_files(folder.path(), &files);
    assert_eq!(Worker::bundle(PYTHON, folder.path(), function(0)).function(json!({"a": 1, "b": 1})), json!(2));
}
