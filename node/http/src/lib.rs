//! HTTP: the only room that knows actix-web. Thin: it reads what a client sent, asks the rooms below, and answers.
//!
//! ```text
//! socket -> listener -> edge (id, span, limits, panic, CORS) -> route -> call (who is it) -> body (limits, pace, one parse)
//!                                                     |
//!                                                     +-> records | objects -> answer, or a refusal from one table
//! ```
//! | folder | contents |
//! |---|---|
//! | `server` | listening sockets, TLS, workers, the edge, graceful shutdown, the listener of administrators |
//! | `requests` | callers, bodies, admission, rate limits and quotas, headers that requests are read by |
//! | `routes` | which handler serves which path, and a file for each family of handlers |
//! | `responses` | error responses, headers, CORS, compression, bodies on their way |
//! | `otlp` | exports of OpenTelemetry, over HTTP and over gRPC |
//! | `openapi` | `/openapi.json`, `/docs`, and the table of operations that are not served yet |
//! | `access_log` | the log of requests |
//! | `login` | people who log in, with `routes/oauth` |
//!
//! A panic in a handler ends its request with a 500 and a count, never the process (decision 11 of the design).

mod access_log;
mod config;
mod login;
mod openapi;
mod otlp;
mod requests;
mod responses;
mod routes;
mod server;

use std::fmt;
use std::sync::Arc;

use assay_node_identity::{Identity, Provider};
use assay_node_limits::{Quotas, RateLimiter};
use assay_node_objects::Objects;
use assay_node_query::Queries;

pub use config::{HttpConfig, TlsFiles};
pub use requests::limits::limits_warnings;
pub use server::admin::{Admin, AdminAnswer, AdminConfig, AdminRefusal, AdminRequest};
pub use server::sockets::Sockets;
pub use server::{Handle, Server};

/// The pure steps of reading a body, for `tests/fuzz`, which throws at them what a client can send.
pub mod pure {
    pub use crate::requests::body::{RowsAt, object, parse, room_of};
    pub use crate::requests::row_bodies::{
        CrossPart, Logs3, cross_parts, feedback_items, fetch_body, fetch_query, logs3_rows, rows,
    };
    pub use crate::responses::refusal::{Kind, Refusal};
}

/// Dependencies of the server.
#[derive(Clone)]
pub struct App {
    pub identity: Identity,
    pub objects: Objects,
    pub queries: Queries,
    pub health: Arc<dyn Fn() -> Health + Send + Sync>,
    /// More metrics in Prometheus text format, put behind this room's own.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    pub config: HttpConfig,
    pub rates: RateLimiter,
    pub quotas: Quotas,
    /// None: there is no listener for administrators.
    pub admin: Option<Admin>,
    /// None: nobody logs in.
    pub provider: Option<Arc<dyn Provider>>,
}

/// How the node is. A node that is not live should be restarted; one that is not ready should not be sent requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    pub live: bool,
    pub ready: bool,
    /// Why not, and what else whoever looks should know.
    pub notes: Vec<String>,
    /// Tasks left to an operator, in words. The node serves all the same.
    pub shortfalls: Vec<String>,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("config", &self.config).finish_non_exhaustive()
    }
}
