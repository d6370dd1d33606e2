//! Values of calls as JSON.

use assay_node_runtimes::{RESULT_BYTES_MAX, RuntimeKind};
use serde_json::json;

use crate::harness::Worker;

const NODE: RuntimeKind = RuntimeKind::Node;
const PYTHON: RuntimeKind = RuntimeKind::Python;

#[test]
fn nothing_is_null() {
    assert_eq!(Worker::inline(NODE, "function handler() {}").function(json!({})), json!(null));
    assert_eq!(Worker::inline(PYTHON, "def handler(): pass").function(json!({})), json!(null));
}

#[test]
fn values_that_json_cannot_hold_are_errors_that_say_so() {
    let node = [
        ("NaN", "the result of the function is NaN, which JSON cannot hold: a finite number is valid"),
        ("-Infinity", "the result of the function is -Infinity, which JSON cannot hold: a finite number is valid"),
        ("({score: NaN})", "the score of the result of the function is NaN"),
        ("[{name: 'a', score: 1 / 0}]", "the score at 0 of the result of the function is Infinity"),
        ("({a: 1n})", "the result of the function cannot be JSON: Do not know how to serialize a BigInt"),
        ("(() => { const a = {}; a.a = a; return a; })()", "cannot be JSON: Converting circular structure to JSON"),
        ("() => 1", "the result of the function is a function, which JSON cannot hold"),
        ("Symbol()", "the result of the function is a symbol, which JSON cannot hold"),
    ];
    for (value, message) in node {
        let failure = Worker::inline(NODE, &format!("function handler() {{ return {value}; }}")).failure(json!({}));
        assert!(failure.message.contains(message), "{value}: {}", failure.message);
    }
    let python = [
        ("float('nan')", "the result of the function is nan, which JSON cannot hold: a finite number is valid"),
        ("{'score': float('inf')}", "the score of the result of the function is inf"),
        ("[{'name': 'a', 'score': float('nan')}]", "the score at 0 of the result of the function is nan"),
        ("cycle()", "the result of the function cannot be JSON: Circular reference detected"),
        ("cycle", "it holds a value of the type function, which JSON cannot hold"),
        ("{'a': object()}", "it holds a value of the type object, which JSON cannot hold"),
        ("{(1, 2): 3}", "cannot be JSON: keys must be str, int, float, bool or None"),
    ];
    for (value, message) in python {
        let code = format!("def cycle():\n    a = []\n    a.append(a)\n    return a\ndef handler(): return {value}");
        let failure = Worker::inline(PYTHON, &code).failure(json!({}));
        assert!(failure.message.contains(message), "{value}: {}", failure.message);
    }
}

#[test]
fn numbers_deep_inside_that_are_none_become_null() {
    let mut node = Worker::inline(NODE, "function handler() { return {score: 1, metadata: {a: NaN}}; }");
    assert_eq!(node.function(json!({})), json!({"score": 1, "metadata": {"a": null}}));
    let mut python = Worker::inline(PYTHON, "def handler(): return {'score': 1, 'metadata': {'a': (float('nan'), 2)}}");
    assert_eq!(python.function(json!({})), json!({"score": 1, "metadata": {"a": [null, 2]}}));
}

#[test]
fn objects_that_describe_themselves_become_json() {
    let code = "function handler() { return {date: new Date(0), own: {toJSON: () => 'own'}, gone: undefined}; }";
    let value = Worker::inline(NODE, code).function(json!({}));
    assert_eq!(value, json!({"date": "1970-01-01T00:00:00.000Z", "own": "own"}));
    let code = r#"
import dataclasses, datetime, decimal, enum, pathlib, uuid

class Score:
    name = "s"
    def as_dict(self): return {"name": "s", "score": 0.5}

class Model:
    def model_dump(self): return {"a": 1}

@dataclasses.dataclass
class Point:
    x: int

class Color(enum.Enum):
    RED = "red"

def handler(kind):
    if kind == "score": return Score()
    if kind == "list": return [Score(), Model()]
    return [Point(1), Color.RED, {1}, decimal.Decimal("0.5"), uuid.UUID(int=0), pathlib.PurePath("a"), datetime.date(2026, 1, 2)]
"#;
    let mut python = Worker::inline(PYTHON, code);
    assert_eq!(python.function(json!({"kind": "score"})), json!({"name": "s", "score": 0.5}));
    assert_eq!(python.function(json!({"kind": "list"})), json!([{"name": "s", "score": 0.5}, {"a": 1}]));
    let value = json!([{"x": 1}, "red", [1], 0.5, "00000000-0000-0000-0000-000000000000", "a", "2026-01-02"]);
    assert_eq!(python.function(json!({"kind": "rest"})), value);
}

#[test]
fn text_of_any_script_survives_and_half_characters_are_replaced() {
    let text = json!({"t": "ä𝄞\u{0}\\ud83d\u{2028}"});
    let mut node = Worker::inline(NODE, "function handler({t}) { return [t, '\\ud83d', 'a\\udc00b']; }");
    assert_eq!(node.function(text.clone()), json!([text["t"], "\u{fffd}", "a\u{fffd}b"]));
    let mut python = Worker::inline(PYTHON, "def handler(t): return [t, '\\ud83d', 'a\\udc00b']");
    assert_eq!(python.function(text.clone()), json!([text["t"], "\u{fffd}", "a\u{fffd}b"]));
}

#[test]
fn a_result_above_the_limit_is_an_error_and_one_below_is_not() {
    let message = format!("bytes as JSON: at most {RESULT_BYTES_MAX} are valid");
    let mut node = Worker::inline(NODE, "function handler({n}) { return 'x'.repeat(n); }");
    let mut python = Worker::inline(PYTHON, "def handler(n): return 'x' * n");
    for worker in [&mut node, &mut python] {
        let value = worker.function(json!({"n": RESULT_BYTES_MAX - 2}));
        assert_eq!(value.as_str().unwrap().len(), RESULT_BYTES_MAX - 2);
        let failure = worker.failure(json!({"n": RESULT_BYTES_MAX}));
        assert!(failure.message.contains(&message), "{}", failure.message);
        assert_eq!(worker.function(json!({"n": 1})), json!("x"));
    }
}

#[test]
fn a_large_input_arrives() {
    let input = json!({"t": "y".repeat(3 << 20)});
    let mut node = Worker::inline(NODE, "function handler({t}) { return t.length; }");
    let mut python = Worker::inline(PYTHON, "def handler(t): return len(t)");
    for worker in [&mut node, &mut python] {
        assert_eq!(worker.function(input.clone()), json!(3 << 20));
        assert_eq!(worker.function(json!({"t": "abc"})), json!(3));
    }
}

#[test]
fn members_keep_their_order() {
    let input = json!({"o": {"z": 1, "a": 2, "m": 3}});
    let mut node = Worker::inline(NODE, "function handler({o}) { return Object.keys(o).concat([o]); }");
    let mut python = Worker::inline(PYTHON, "def handler(o): return list(o) + [o]");
    for worker in [&mut node, &mut python] {
        let value = worker.function(input.clone());
        assert_eq!(value.to_string(), r#"["z","a","m",{"z":1,"a":2,"m":3}]"#);
    }
}
