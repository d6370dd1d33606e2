//! Evaluations on the server: their start, their run on one node under a lease, and their answers (functions.md 8).
//!
//! ```text
//! request ── launch ──▶ record in the catalog, with a lease ── run ──▶ rows of the experiment
//!                              ▲                                  │
//! other nodes ── background ───┴── takeover of a lost lease ──────┘
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `handlers`, `stream`, `answers` | handlers of the API, with whole and streamed responses |
//! | `launch`, `functions`, `sandbox`, `data`, `target` | checks of a request, and everything that it names |
//! | `jobs` | records of evaluations, and their conditional writes |
//! | `run` | run of an evaluation on this node |
//! | `background`, `sweep` | start of evaluations, takeovers, deletion of old records |
//! | `service` | evaluations of this node, with their limits and metrics |
//! | `experiments`, `summaries`, `statistics` | summaries of experiments |
//!
//! `assay-node-evaluations` has the rules of a run, without I/O. `assay-node-api` registers the routes.

mod answers;
pub mod background;
mod clock;
mod data;
pub mod experiments;
mod functions;
pub mod handlers;
mod jobs;
mod launch;
mod remote;
mod run;
mod sandbox;
mod service;
mod statistics;
mod stream;
pub mod summaries;
mod sweep;
mod target;

use assay_node_http::server::edge::Edge;

/// Returns the metrics of the evaluations of this node in Prometheus text format.
pub fn metrics_text(edge: &Edge) -> String {
    edge.state.get::<service::EvalService>().metrics_text()
}

/// Paths that start an evaluation.
pub const EVAL_PATHS: [&str; 2] = ["/v1/eval", "/function/eval"];
