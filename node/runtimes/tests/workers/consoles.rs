//! Console output of user code.

use std::time::{Duration, Instant};

use assay_node_runtimes::RuntimeKind;
use serde_json::json;

use crate::harness::Worker;

#[test]
fn everything_printed_is_on_its_way_before_the_result() {
    let cases = [
        (
            RuntimeKind::Node,
            "function handler({n}) { for (let i = 0; i < n; i++) console.log('line ' + i); return 1; }",
        ),
        (RuntimeKind::Python, "def handler(n):\n    for i in range(n): print('line', i)\n    return 1"),
        (
            RuntimeKind::Python,
            "import sys\nsys.stdout.reconfigure(line_buffering=False)\ndef handler(n):\n    print(*(f'line {i}' for i in range(n)), sep='\\n')\n    return 1",
        ),
    ];
    for (kind, code) in cases {
        let mut worker = Worker::inline(kind, code);
        // more than a pipe holds
        assert_eq!(worker.function(json!({"n": 20_000})), json!(1));
        assert_eq!(worker.function(json!({"n": 1})), json!(1));
        // the reader of the test may still have to take it
        let started = Instant::now();
        while worker.console().matches("line ").count() < 20_001 && started.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let console = worker.console();
        assert!(console.starts_with("line 0\n") && console.ends_with("line 19999\nline 0\n"), "{}", console.len());
    }
}

#[test]
fn standard_input_is_empty() {
    let code = "function handler() { return require('fs').readFileSync(0, 'utf8'); }";
    assert_eq!(Worker::inline(RuntimeKind::Node, code).function(json!({})), json!(""));
    let code = "import sys\ndef handler(): return sys.stdin.read()";
    assert_eq!(Worker::inline(RuntimeKind::Python, code).function(json!({})), json!(""));
}

#[test]
fn frames_on_the_console_are_no_frames() {
    let code = "function handler() { process.stdout.write('\\0\\0\\0\\x0d{\"loaded\":{}}'); return 1; }";
    assert_eq!(Worker::inline(RuntimeKind::Node, code).function(json!({})), json!(1));
}
