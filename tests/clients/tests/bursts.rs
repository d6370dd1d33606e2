//! SDKs that send more at once than one write holds: every row arrives, on one node and on three.
//!
//! The ignored tests take the sizes of real losses. `ASSAY_BURST_ROUNDS`, `ASSAY_BURST_PROCESSES` (of each language, at the
//! same time) and `ASSAY_BURST_HOGS` (threads that only take processor time) make more of them; `ASSAY_BURSTS` names other
//! sizes, as `count x bytes` with commas between.

use std::env;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use assay_test_api::dev::NODES;
use assay_test_clients::suite::{Job, Served, all_at_once, covered, on_nodes_that_serve, on_one_node};
use assay_test_clients::{javascript, python};

const SHORT: &str = "16x1048576,200x102400";
const LONG: &str = "62x1048576,202x524288,1000x102400,30x4194304";
/// A burst is a few large requests, so that a node may get few of them.
const SERVED_MIN: usize = 1;

/// Concurrent requests, and the background load.
struct Load {
    rounds: usize,
    processes: usize,
    hogs: usize,
}

impl Load {
    fn once() -> Load {
        Load { rounds: 1, processes: 1, hogs: 0 }
    }

    fn said() -> Load {
        let said = |name, otherwise| match env::var(name) {
            Ok(text) => text.parse().unwrap_or_else(|why| panic!("{name}={text}: {why}")),
            Err(_) => otherwise,
        };
        Load {
            rounds: said("ASSAY_BURST_ROUNDS", 1),
            processes: said("ASSAY_BURST_PROCESSES", 1),
            hogs: said("ASSAY_BURST_HOGS", 0),
        }
    }
}

fn failures(place: &Served, bursts: &str, load: &Load) -> String {
    let at = (place.url.as_str(), place.key.as_str());
    let python = covered("the Python SDK", python::environment());
    let javascript = covered("the JavaScript SDK", javascript::environment());
    let ends = AtomicBool::new(false);
    let failures = thread::scope(|scope| {
        for _ in 0..load.hogs {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let mut failed = Vec::new();
        for round in 0..load.rounds {
            let mut jobs: Vec<Job<'_>> = Vec::new();
            for process in 0..load.processes {
                let run = format!("{round}-{process}");
                if let Some(python) = python {
                    let run = run.clone();
                    let told = [("ASSAY_BURSTS", bursts)];
                    jobs.push(Box::new(move || python::run_with(python, "burst.py", &run, at, &told)));
                }
                if let Some(javascript) = javascript {
                    let told = [("ASSAY_BURSTS", bursts)];
                    jobs.push(Box::new(move || javascript.home()?.run("burst.mjs", &run, at, &told)));
                }
            }
            let wrong = all_at_once(&jobs);
            println!("round {round}: {}", if wrong.is_empty() { "every row arrived" } else { &wrong });
            failed.extend((!wrong.is_empty()).then(|| format!("round {round}: {wrong}")));
        }
        ends.store(true, Ordering::Relaxed);
        failed
    });
    failures.join("\n\n")
}

#[test]
fn every_row_of_a_burst_arrives_at_one_node() {
    on_one_node(|place| failures(place, SHORT, &Load::once()));
}

#[test]
fn every_row_of_a_burst_arrives_at_three_nodes() {
    on_nodes_that_serve(NODES, SERVED_MIN, |place| failures(place, SHORT, &Load::once()));
}

fn long() -> String {
    env::var("ASSAY_BURSTS").unwrap_or_else(|_| LONG.to_owned())
}

#[test]
#[ignore = "hundreds of megabytes, on a release build: .ci/run asks for it"]
fn every_row_of_large_bursts_arrives_at_one_node() {
    on_one_node(|place| failures(place, &long(), &Load::said()));
}

#[test]
#[ignore = "hundreds of megabytes, on a release build: .ci/run asks for it"]
fn every_row_of_large_bursts_arrives_at_three_nodes() {
    on_nodes_that_serve(NODES, SERVED_MIN, |place| failures(place, &long(), &Load::said()));
}
