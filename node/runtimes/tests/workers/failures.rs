//! Failures outside of what a call returns: exits, rejections, callbacks, and calls that never end.

use assay_node_runtimes::RuntimeKind;
use serde_json::json;

use crate::harness::{Worker, inline};

const NODE: RuntimeKind = RuntimeKind::Node;
const PYTHON: RuntimeKind = RuntimeKind::Python;

#[test]
fn a_worker_serves_calls_after_an_error() {
    let mut node = Worker::inline(NODE, "function handler({bad}) { if (bad) throw new Error('bad'); return 1; }");
    let code = "def handler(bad):\n    if bad: raise ValueError('bad')\n    return 1";
    let mut python = Worker::inline(PYTHON, code);
    for worker in [&mut node, &mut python] {
        let failure = worker.failure(json!({"bad": true}));
        assert_eq!((failure.message.as_str(), failure.left), ("bad", 0));
        assert_eq!(worker.function(json!({"bad": false})), json!(1));
    }
}

#[test]
fn thrown_values_that_are_no_errors_are_described() {
    let cases = [("'text'", "text"), ("undefined", "undefined"), ("null", "null"), ("({code: 5})", "{ code: 5 }")];
    for (value, message) in cases {
        let failure =
            Worker::inline(NODE, &format!("async function handler() {{ throw {value}; }}")).failure(json!({}));
        assert_eq!((failure.name.as_str(), failure.message.as_str()), ("Error", message));
    }
}

#[test]
fn an_exit_is_an_error_of_the_call() {
    let mut node = Worker::inline(NODE, "function handler() { process.exit(7); }");
    assert_eq!(node.failure(json!({})).message, "the function ended its process with code 7");
    assert!(node.has_ended());
    let mut python = Worker::inline(PYTHON, "import sys\ndef handler(): sys.exit(7)");
    let failure = python.failure(json!({}));
    assert_eq!(
        (failure.name.as_str(), failure.message.as_str()),
        ("SystemExit", "the function ended its process with code 7")
    );
    assert_eq!(python.failure(json!({})).message, "the function ended its process with code 7");
}

#[test]
fn an_exit_while_loading_is_an_error_of_the_load() {
    for (kind, code) in [(NODE, "process.exit(3)"), (PYTHON, "import sys\nsys.exit(3)")] {
        let failure = Worker::start(kind).load(inline(kind, code)).unwrap_err();
        assert_eq!((failure.id, failure.message.as_str()), (None, "the function ended its process with code 3"));
    }
}

#[test]
fn an_unhandled_rejection_is_an_error_of_the_call() {
    let mut node =
        Worker::inline(NODE, "function handler({bad}) { if (bad) Promise.reject(new Error('lost')); return 1; }");
    let failure = node.failure(json!({"bad": true}));
    assert_eq!(failure.message, "lost");
    assert!(failure.left > 0, "parts of the call may still run");
    assert_eq!(node.function(json!({"bad": false})), json!(1));
}

#[test]
fn an_exception_in_a_callback_is_an_error_of_the_call() {
    let code =
        "function handler() { setTimeout(() => { throw new RangeError('late'); }, 1); return new Promise(() => {}); }";
    let failure = Worker::inline(NODE, code).failure(json!({}));
    assert_eq!((failure.name.as_str(), failure.message.as_str()), ("RangeError", "late"));

    let code = "import asyncio\nasync def handler():\n    asyncio.get_running_loop().call_soon(lambda: 1 / 0)\n    await asyncio.sleep(0.01)\n";
    let failure = Worker::inline(PYTHON, code).failure(json!({}));
    assert_eq!(failure.name, "ZeroDivisionError");

    let code = "import threading\ndef handler():\n    t = threading.Thread(target=lambda: 1 / 0)\n    t.start()\n    t.join()\n";
    let failure = Worker::inline(PYTHON, code).failure(json!({}));
    assert_eq!(failure.name, "ZeroDivisionError");
}

#[test]
fn a_promise_that_nothing_settles_is_an_error_at_once() {
    let mut node = Worker::inline(NODE, "function handler({hang}) { return hang ? new Promise(() => {}) : 1; }");
    let failure = node.failure(json!({"hang": true}));
    assert!(failure.message.starts_with("the function never finished"), "{}", failure.message);
    assert_eq!(node.function(json!({"hang": false})), json!(1));
}

#[test]
fn what_a_call_leaves_behind_is_counted() {
    let node = [
        ("setInterval(() => {}, 1000); return 1;", 1),
        ("setTimeout(() => {}, 100000); setTimeout(() => {}, 100000); return 1;", 2),
        ("setInterval(() => {}, 1000).unref(); return 1;", 0),
        ("require('child_process').spawn('sleep', ['5'], {stdio: 'ignore'}); return 1;", 1),
        ("console.log('x'); console.error('y'); return 1;", 0),
    ];
    for (body, left) in node {
        let mut worker = Worker::inline(NODE, &format!("function handler() {{ {body} }}"));
        let output = worker.try_call(assay_node_runtimes::CallForm::Function, json!({})).unwrap();
        assert_eq!(output.left, left, "{body}");
    }
    let python = [
        ("import threading, time\ndef handler():\n    threading.Thread(target=time.sleep, args=(2,)).start()\n", 1),
        (
            "import threading, time\ndef handler():\n    threading.Thread(target=time.sleep, args=(2,), daemon=True).start()\n",
            0,
        ),
        ("import subprocess\ndef handler():\n    global p\n    p = subprocess.Popen(['sleep', '2'])\n", 1),
        ("import subprocess\ndef handler():\n    subprocess.run(['true'])\n", 0),
        ("import asyncio\nasync def handler():\n    global t\n    t = asyncio.create_task(asyncio.sleep(9))\n", 1),
        ("import asyncio\nasync def handler():\n    await asyncio.to_thread(int)\n", 0),
        (
            "from concurrent.futures import ThreadPoolExecutor as T\np = T(2)\ndef handler():\n    p.submit(int).result()\n",
            0,
        ),
    ];
    for (code, left) in python {
        let mut worker = Worker::inline(PYTHON, code);
        let output = worker.try_call(assay_node_runtimes::CallForm::Function, json!({})).unwrap();
        assert_eq!(output.left, left, "{code}");
    }
}

#[test]
fn what_loading_opened_belongs_to_the_function() {
    let mut node = Worker::inline(NODE, "setInterval(() => {}, 1000); function handler() { return 1; }");
    assert_eq!(node.function(json!({})), json!(1));
    let code =
        "import threading\ne = threading.Event()\nthreading.Thread(target=e.wait).start()\ndef handler(): return 1\n";
    assert_eq!(Worker::inline(PYTHON, code).function(json!({})), json!(1));
}

#[test]
fn a_forked_child_that_returns_sends_no_frames() {
    let code = "import os\ndef handler():\n    pid = os.fork()\n    if pid: os.waitpid(pid, 0)\n    return pid > 0\n";
    let mut python = Worker::inline(PYTHON, code);
    assert_eq!(python.function(json!({})), json!(true));
    assert_eq!(python.function(json!({})), json!(true));
}

#[test]
fn a_second_function_is_refused() {
    for (kind, code) in [(NODE, "function handler() {}"), (PYTHON, "def handler(): pass")] {
        let failure = Worker::inline(kind, code).load(inline(kind, code)).unwrap_err();
        assert!(failure.message.contains("this worker has loaded a function"), "{}", failure.message);
    }
}

#[test]
fn a_call_before_a_load_is_an_error() {
    for kind in crate::harness::BOTH {
        assert_eq!(Worker::start(kind).failure(json!({})).message, "this worker has loaded no function");
    }
}
