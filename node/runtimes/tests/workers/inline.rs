//! Inline code: its handler, its arguments, modules and packages.

use assay_node_runtimes::{CallForm, CodeSource, RuntimeKind, SourceLanguage};
use serde_json::{Value, json};

use crate::harness::{BOTH, Worker, inline, module, write_files};

const NODE: RuntimeKind = RuntimeKind::Node;
const PYTHON: RuntimeKind = RuntimeKind::Python;

#[test]
fn a_worker_says_its_runtime_and_version() {
    for kind in BOTH {
        let worker = Worker::start(kind);
        assert_eq!(worker.ready.runtime, kind.name());
        assert_eq!(worker.ready.version.split('.').count(), 3, "{}", worker.ready.version);
    }
}

#[test]
fn a_handler_without_async_answers_its_value() {
    let mut node = Worker::inline(NODE, "function handler({a, b}) { return {sum: a + b}; }");
    assert_eq!(node.function(json!({"a": 1, "b": 2})), json!({"sum": 3}));
    let mut python = Worker::inline(PYTHON, "def handler(a, b):\n    return {'sum': a + b}\n");
    assert_eq!(python.function(json!({"a": 1, "b": 2})), json!({"sum": 3}));
}

#[test]
fn an_async_handler_is_awaited() {
    let code = "const handler = async ({a}) => { await new Promise(r => setTimeout(r, 5)); return a; };";
    assert_eq!(Worker::inline(NODE, code).function(json!({"a": [1]})), json!([1]));
    let code = "import asyncio\nasync def handler(a):\n    await asyncio.sleep(0.005)\n    return a\n";
    assert_eq!(Worker::inline(PYTHON, code).function(json!({"a": [1]})), json!([1]));
}

#[test]
fn the_state_of_a_module_survives_between_calls() {
    let mut node = Worker::inline(NODE, "let n = 0; function handler() { return ++n; }");
    assert_eq!([node.function(json!({})), node.function(json!({}))], [json!(1), json!(2)]);
    let code = "n = 0\ndef handler():\n    global n\n    n += 1\n    return n\n";
    let mut python = Worker::inline(PYTHON, code);
    assert_eq!([python.function(json!({})), python.function(json!({}))], [json!(1), json!(2)]);
}

#[test]
fn a_handler_of_another_name_is_an_error_that_people_search_for() {
    let failure = Worker::start(NODE).load(inline(NODE, "function scorer() {}")).unwrap_err();
    assert_eq!((failure.name.as_str(), failure.message.as_str()), ("ReferenceError", "handler is not defined"));
    let failure = Worker::start(NODE).load(module("export function scorer() {}")).unwrap_err();
    assert_eq!((failure.name.as_str(), failure.message.as_str()), ("ReferenceError", "handler is not defined"));
    let failure = Worker::start(PYTHON).load(inline(PYTHON, "def scorer(): pass")).unwrap_err();
    assert_eq!((failure.name.as_str(), failure.message.as_str()), ("NameError", "name 'handler' is not defined"));
}

#[test]
fn a_handler_that_is_no_function_is_an_error() {
    for (kind, code) in [(NODE, "const handler = 1;"), (PYTHON, "handler = 1")] {
        let failure = Worker::start(kind).load(inline(kind, code)).unwrap_err();
        assert_eq!((failure.name.as_str(), failure.message.as_str()), ("TypeError", "handler is not a function"));
    }
}

#[test]
fn absent_arguments_of_a_scorer_are_null() {
    let code = "function handler(a) { return [a.expected === null, a.trace === null, Object.keys(a).sort()]; }";
    let value = Worker::inline(NODE, code).call(CallForm::Scorer, json!({"input": 1, "output": 2}));
    assert_eq!(value, json!([true, true, ["expected", "input", "metadata", "output", "trace"]]));
    let code = "def handler(input, output, expected, metadata, trace): return [output, expected, metadata, trace]";
    let value = Worker::inline(PYTHON, code).call(CallForm::Scorer, json!({"input": 1, "output": 2}));
    assert_eq!(value, json!([2, null, null, null]));
}

#[test]
fn python_drops_arguments_that_the_signature_does_not_take() {
    let input = json!({"input": 1, "output": 2, "extra": 3});
    let cases = [
        ("def handler(output): return output", json!(2)),
        ("def handler(): return 'none'", json!("none")),
        ("def handler(output, **rest): return sorted(rest)", json!(["extra", "input"])),
        ("def handler(output, expected): return [output, expected]", json!([2, null])),
        ("def handler(output, expected='default'): return [output, expected]", json!([2, "default"])),
        ("def handler(output, /, *, extra): return [output, extra]", json!([2, 3])),
        ("import functools\n@functools.cache\ndef handler(output): return output", json!(2)),
        ("class Scorer:\n def __call__(self, output): return output\nhandler = Scorer()", json!(2)),
        ("class Scorer:\n async def eval_async(self, output): return output\nhandler = Scorer", json!(2)),
        ("class Scorer:\n def eval(self, output, expected=None): return output\nhandler = Scorer()", json!(2)),
    ];
    for (code, value) in cases {
        assert_eq!(Worker::inline(PYTHON, code).function(input.clone()), value, "{code}");
    }
}

#[test]
fn a_missing_argument_of_a_tool_is_an_error() {
    let mut python = Worker::inline(PYTHON, "def handler(city): return city");
    let failure = python.failure(json!({"town": "Ulm"}));
    assert_eq!(failure.name, "TypeError");
    assert!(failure.message.contains("missing 1 required positional argument: 'city'"), "{}", failure.message);
}

#[test]
fn an_input_that_is_no_object_is_the_only_argument() {
    for input in [json!("text"), json!(5), json!([1]), Value::Null] {
        assert_eq!(Worker::inline(NODE, "function handler(x) { return [x]; }").function(input.clone()), json!([input]));
        assert_eq!(Worker::inline(PYTHON, "def handler(x): return [x]").function(input.clone()), json!([input]));
    }
}

#[test]
fn a_preprocessor_runs_once_for_each_span() {
    let spans = json!([{"id": "a", "input": 1}, {"id": "b", "input": 2}]);
    let value = Worker::inline(NODE, "function handler({id, input}) { return input > 1 ? id : null; }")
        .call(CallForm::Preprocessor, spans.clone());
    assert_eq!(value, json!([null, "b"]));
    let code = "def handler(id, input, output): return [id, output] if input > 1 else None";
    let value = Worker::inline(PYTHON, code).call(CallForm::Preprocessor, spans);
    assert_eq!(value, json!([null, ["b", null]]));
}

#[test]
fn an_es_module_is_imported_with_its_imports() {
    for code in [
        "import { basename } from 'path';\nimport fs from 'node:fs';\nexport async function handler({p}) { return [basename(p), typeof fs.readFileSync]; }",
        "import { basename } from 'path';\nimport * as fs from 'node:fs';\nconst handler = ({p}) => [basename(p), typeof fs.readFileSync];",
    ] {
        let mut worker = Worker::start(NODE);
        worker.load(module(code)).unwrap();
        assert_eq!(worker.function(json!({"p": "/a/b"})), json!(["b", "function"]));
    }
}

#[test]
fn packages_of_the_operator_are_found_by_require_and_by_import() {
    let folder = tempfile::tempdir().unwrap();
    let packages = folder.path().join("node_modules");
    let manifest = r#"{"name": "dual", "exports": {"import": "./index.mjs", "require": "./index.cjs"}}"#;
    write_files(
        &packages,
        &[
            ("dual/package.json", manifest),
            ("dual/index.mjs", "export const kind = 'import';"),
            ("dual/index.cjs", "exports.kind = 'require';"),
        ],
    );
    let cases = [
        ("const {kind} = require('dual'); function handler() { return kind; }", false, "require"),
        ("async function handler() { return (await import('dual')).kind; }", false, "import"),
        ("import {kind} from 'dual'; export const handler = () => kind;", true, "import"),
    ];
    for (code, is_module, value) in cases {
        let mut worker = Worker::start_with(NODE, &[("ASSAY_NODE_MODULES", packages.to_str().unwrap())]);
        let source = if is_module { module(code) } else { inline(NODE, code) };
        worker.load(source).unwrap();
        assert_eq!(worker.function(json!({})), json!(value), "{code}");
    }
}

#[test]
fn an_absent_package_is_an_error_that_names_the_setting() {
    for source in [inline(NODE, "const z = require('zod'); function handler() {}"), module("import z from 'zod';")] {
        let failure = Worker::start(NODE).load(source).unwrap_err();
        assert!(failure.message.contains("Cannot find package 'zod'"), "{}", failure.message);
        assert!(failure.message.contains("functions.node_modules"), "{}", failure.message);
    }
}

#[test]
fn the_small_sdk_answers_require_and_import() {
    let code = "const {wrapTraced, traced, currentSpan, initLogger} = require('braintrust');
        initLogger({projectName: 'p'});
        const inner = wrapTraced(function inner(x) { currentSpan().log({metadata: {x}}); return x + 1; });
        const handler = ({x}) => traced(span => { span.log({input: x}); return inner(x); });";
    assert_eq!(Worker::inline(NODE, code).function(json!({"x": 1})), json!(2));
    let code = "import { wrapTraced, traced } from 'braintrust';
        const inner = wrapTraced(async (x) => x + 1);
        export const handler = ({x}) => traced(() => inner(x));";
    let mut worker = Worker::start(NODE);
    worker.load(module(code)).unwrap();
    assert_eq!(worker.function(json!({"x": 1})), json!(2));
}

#[test]
fn what_the_small_sdk_lacks_is_an_error_that_names_the_setting() {
    let sources = [
        inline(NODE, "const {loadPrompt} = require('braintrust'); function handler() {}"),
        module("import { loadPrompt } from 'braintrust'; export function handler() {}"),
    ];
    for source in sources {
        let failure = Worker::start(NODE).load(source).unwrap_err();
        assert!(failure.message.contains("loadPrompt"), "{}", failure.message);
        assert!(failure.message.contains("functions.node_modules"), "{}", failure.message);
    }
}

#[test]
fn stacks_have_the_lines_of_the_user_and_none_of_the_worker() {
    let code = "// first\nfunction inner() {\n  throw new TypeError('no');\n}\nfunction handler() {\n  inner();\n}\n";
    let failure = Worker::inline(NODE, code).failure(json!({}));
    assert_eq!((failure.name.as_str(), failure.message.as_str()), ("TypeError", "no"));
    assert_eq!(failure.stack.lines().count(), 3, "{}", failure.stack);
    assert!(
        failure.stack.contains("/handler.js:3:9") && failure.stack.contains("/handler.js:6:3"),
        "{}",
        failure.stack
    );

    let mut worker = Worker::start(NODE);
    worker.load(module("import 'path';\nexport async function handler() {\n  throw new Error('no');\n}")).unwrap();
    let failure = worker.failure(json!({}));
    assert_eq!(failure.stack.lines().count(), 2, "{}", failure.stack);
    assert!(failure.stack.contains("(/handler.js:3:9)"), "{}", failure.stack);

    let code = "# first\ndef inner():\n    raise TypeError('no')\ndef handler():\n    inner()\n";
    let failure = Worker::inline(PYTHON, code).failure(json!({}));
    assert_eq!((failure.name.as_str(), failure.message.as_str()), ("TypeError", "no"));
    let expected = "Traceback (most recent call last):\n  File \"handler.py\", line 5, in handler\n    inner()\n  \
                    File \"handler.py\", line 3, in inner\n    raise TypeError('no')\nTypeError: no\n";
    // some versions of Python mark the part of a line that failed
    let is_mark = |line: &&str| !line.trim().is_empty() && line.trim().chars().all(|c| matches!(c, '^' | '~'));
    let stack: String = failure.stack.lines().filter(|line| !is_mark(line)).flat_map(|line| [line, "\n"]).collect();
    assert_eq!(stack, expected);
}

#[test]
fn stacks_of_typescript_name_its_file() {
    let code = "function handler() {\n  throw new Error('no');\n}".to_owned();
    let mut worker = Worker::start(NODE);
    let language = SourceLanguage::TypeScript;
    worker.load(CodeSource::Inline { code, is_module: false, language }).unwrap();
    assert!(worker.failure(json!({})).stack.contains("/handler.ts:2:9"));
}

#[test]
fn errors_of_syntax_name_the_line() {
    let failure = Worker::start(NODE).load(inline(NODE, "const a = 1;\nfunction handler( {\n}")).unwrap_err();
    assert_eq!(failure.name, "SyntaxError");
    assert!(
        failure.stack.starts_with("/handler.js:3") || failure.stack.starts_with("/handler.js:2"),
        "{}",
        failure.stack
    );
    let failure = Worker::start(PYTHON).load(inline(PYTHON, "a = 1\ndef handler(:\n  pass")).unwrap_err();
    assert_eq!(failure.name, "SyntaxError");
    assert!(failure.stack.contains("File \"handler.py\", line 2"), "{}", failure.stack);
}

#[test]
fn causes_are_part_of_a_stack() {
    let code = "function handler() { try { JSON.parse('{'); } catch (e) { throw new Error('outer', {cause: e}); } }";
    let failure = Worker::inline(NODE, code).failure(json!({}));
    assert!(failure.stack.contains("\nCaused by: SyntaxError"), "{}", failure.stack);
    let code = "def handler():\n    try:\n        1 / 0\n    except ZeroDivisionError as e:\n        raise ValueError('outer') from e\n";
    let failure = Worker::inline(PYTHON, code).failure(json!({}));
    assert!(failure.stack.contains("ZeroDivisionError: division by zero"), "{}", failure.stack);
    assert!(!failure.stack.contains("assay_"), "{}", failure.stack);
}
