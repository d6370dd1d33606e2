//! Routes of the API: handlers, their requests and responses, and the OpenAPI document.
//!
//! `assay-node-http` reads requests, authenticates callers and writes responses. Handlers for queries, rows, invocations
//! and the console are in crates of their own.
//!
//! | module | contents |
//! |---|---|
//! | `routes`, `route_table` | registration of routes, and the handler of unknown paths |
//! | `records` | records of the catalog, with environments, snapshots, views, simulated users and secrets |
//! | `access` | members, grants, invitations and tokens |
//! | `functions`, `summaries` | prompts and functions; summaries of experiments and datasets |
//! | `registering` | registration for older SDKs |
//! | `temporary_credentials` | temporary credentials of the AI gateway |
//! | `identity` | the caller, OAuth logins, first setup of a client |
//! | `usage` | usage of the organization by day and credential |
//! | `background` | work without a request: running evaluations and online scoring |
//! | `service`, `guide` | health, version, metrics, the OpenAPI document; pages of the user guide |
//! | `openapi` | `/openapi.json`, `/docs`, and the table of operations of the public API |
//! | `limits` | warnings about rate limit rules |

mod access;
mod background;
mod functions;
mod guide;
mod identity;
mod limits;
mod openapi;
mod records;
mod registering;
mod route_table;
mod routes;
mod service;
mod summaries;
mod temporary_credentials;
mod usage;

use std::sync::Arc;

use assay_node_http::Services;

use assay_node_rows_http::otlp::ExportService;

pub use limits::limits_warnings;

/// Pure steps of reading a request body, exported for `tests/fuzz`.
pub mod pure {
    pub use assay_node_http::requests::body::{RowsAt, memory_of, object, parse};
    pub use assay_node_http::responses::refusal::{ErrorKind, Refusal};
    pub use assay_node_rows_http::rows::bodies::{
        CrossPart, Logs3, cross_parts, feedback_items, fetch_body, fetch_query, logs3_rows, rows,
    };
}

/// Returns the services of this crate for the server's listeners.
pub fn services() -> Services {
    Services {
        api: routes::all,
        metrics: routes::metrics_alone,
        calls_models: |path| {
            assay_node_gateway::paths::is_gateway_path(path)
                || assay_node_invocations_http::invocations::is_invocation_path(path)
                || assay_node_evaluations_http::EVAL_PATHS.contains(&path)
                || path == "/v1/project_score/test"
        },
        exports: |edge| Arc::new(ExportService::new(edge)),
        metrics_text: |edge| {
            let scoring = assay_node_online_scoring_executor::metrics_text(edge);
            format!("{}{scoring}", assay_node_evaluations_http::metrics_text(edge))
        },
        background: background::run,
    }
}
