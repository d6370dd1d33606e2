//! Times of warm calls.

use std::time::{Duration, Instant};

use assay_node_runtimes::RuntimeKind;
use serde_json::json;

use crate::harness::Worker;

/// Calls of one measurement.
const CALLS: usize = 500;
/// Upper bound of the time within which the fastest tenth of warm calls ends. Other processes may slow down the rest.
const FAST_CALL_MAX: Duration = Duration::from_millis(1);

#[test]
fn a_warm_call_of_a_trivial_handler_takes_little_time() {
    let cases = [
        (RuntimeKind::Node, "function handler({a}) { return a; }"),
        (RuntimeKind::Node, "async function handler({a}) { return a; }"),
        (RuntimeKind::Python, "def handler(a): return a"),
        (RuntimeKind::Python, "async def handler(a): return a"),
    ];
    for (kind, code) in cases {
        let started = Instant::now();
        let mut worker = Worker::inline(kind, code);
        let start = started.elapsed();
        worker.environment = (0..20).map(|n| (format!("VARIABLE_{n}"), "value".to_owned())).collect();
        let mut times: Vec<Duration> = (0..CALLS)
            .map(|n| {
                let started = Instant::now();
                assert_eq!(worker.function(json!({"a": n})), json!(n));
                started.elapsed()
            })
            .collect();
        times.sort_unstable();
        let fast = times[CALLS / 10];
        println!("{code}: start {start:?}, 10 % {fast:?}, median {:?}", times[CALLS / 2]);
        assert!(fast < FAST_CALL_MAX, "{code}: {fast:?}");
    }
}
