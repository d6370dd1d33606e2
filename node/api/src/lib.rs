//! Routes of the API: handlers, their requests and responses, and the OpenAPI document that describes them. The frame around
//! them is `assay-node-http`, which reads requests, authenticates callers and writes responses.
//!
//! | module | contents |
//! |---|---|
//! | `routes`, `route_table` | which handler serves which path, and the handler of unknown paths |
//! | `records` | records of the catalog, with environments, snapshots, views, simulated users and secrets |
//! | `access` | members, grants, invitations, tokens |
//! | `rows` | insert, fetch, feedback and restore |
//! | `functions`, `files`, `summaries` | prompts and functions; attachments; summaries of experiments and datasets |
//! | `registering` | registration as earlier SDKs ask for it |
//! | `gateway` | calls of models, lists of models, spans of calls |
//! | `invocations` | invocations of functions, whole and streamed |
//! | `temporary_credentials` | temporary credentials of the AI gateway |
//! | `identity` | the caller, logins over OAuth, first setup of a client |
//! | `otlp` | exports of OpenTelemetry, over HTTP and over gRPC |
//! | `service`, `guide` | health, version, metrics, the document; pages of the guide |
//! | `openapi` | `/openapi.json`, `/docs`, and the table of operations that are not served yet |
//! | `limits` | warnings about rules of rate limiting |

mod access;
mod files;
mod functions;
mod gateway;
mod guide;
mod identity;
mod invocations;
mod limits;
mod openapi;
mod otlp;
mod records;
mod registering;
mod route_table;
mod routes;
mod rows;
mod service;
mod summaries;
mod temporary_credentials;

use std::sync::Arc;

use assay_node_http::Services;

use crate::otlp::ExportService;

pub use limits::limits_warnings;

/// The pure steps of reading a body, for `tests/fuzz`, which throws at them what a client can send.
pub mod pure {
    pub use crate::rows::bodies::{
        CrossPart, Logs3, cross_parts, feedback_items, fetch_body, fetch_query, logs3_rows, rows,
    };
    pub use assay_node_http::requests::body::{RowsAt, memory_of, object, parse};
    pub use assay_node_http::responses::refusal::{ErrorKind, Refusal};
}

/// Returns the services of this crate for the listeners of the server.
pub fn services() -> Services {
    Services {
        api: routes::all,
        metrics: routes::metrics_alone,
        calls_models: |path| assay_node_gateway::paths::is_gateway_path(path) || invocations::is_invocation_path(path),
        exports: |edge| Arc::new(ExportService::new(edge)),
    }
}
