//! Frame of the HTTP server: listeners, requests, responses and the middleware between them. It knows no route of the API: those
//! are in the crate `assay-node-api`, which hands in its [`Services`].
//!
//! ```text
//! socket -> listener -> edge (id, span, limits, panic, CORS) -> route -> call (who is it) -> body (limits, pace, one parse)
//!                                                                 |
//!                                            assay-node-api ------+-> response, or a refusal from one table
//! ```
//! | module | contents |
//! |---|---|
//! | [`server`] | listening sockets, TLS, workers, the edge, graceful shutdown, the listener of administrators |
//! | [`requests`] | callers, bodies, admission, rate limits and quotas, headers that requests are read by |
//! | [`responses`] | error responses, headers, CORS, compression, bodies on their way |
//! | [`grpc`] | gRPC with one message each way: connections, frames, statuses |
//! | [`openapi`] | builder of operations for the OpenAPI document |
//! | [`access_log`] | the log of requests |
//! | [`web`] | types of actix-web that handlers use |
//!
//! A panic in a handler ends its request with a 500 and a count, never the process (decision 11 of the design).

pub mod access_log;
mod config;
mod console;
pub mod grpc;
pub mod openapi;
pub mod requests;
pub mod responses;
pub mod server;
pub mod web;

use std::fmt;
use std::sync::Arc;

use actix_web::web::{Data, ServiceConfig};
use assay_node_gateway::Gateway;
use assay_node_identity::{Identity, Provider};
use assay_node_limits::{Quotas, RateLimiter};
use assay_node_objects::Objects;
use assay_node_query::Queries;

use crate::grpc::GrpcService;
use crate::server::edge::Edge;

pub use config::{HttpConfig, TlsFiles};
pub use console::{Console, ConsoleConfig};
pub use server::admin::{Admin, AdminAnswer, AdminConfig, AdminRefusal, AdminRequest};
pub use server::sockets::Sockets;
pub use server::{Handle, Server};

/// Dependencies of the server.
#[derive(Clone)]
pub struct App {
    pub identity: Identity,
    pub objects: Objects,
    pub queries: Queries,
    pub health: Arc<dyn Fn() -> Health + Send + Sync>,
    /// More metrics in Prometheus text format, put behind those of the server.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    pub config: HttpConfig,
    pub rates: RateLimiter,
    pub quotas: Quotas,
    /// None: there is no listener for administrators.
    pub admin: Option<Admin>,
    /// None: nobody logs in.
    pub provider: Option<Arc<dyn Provider>>,
    pub gateway: Gateway,
    pub console: Console,
    pub services: Services,
}

/// Services that the listeners serve. The crate of the routes provides them: this one knows no route of the API.
#[derive(Clone, Copy, Debug)]
pub struct Services {
    /// Registers the routes of the API, and the handler of unknown paths.
    pub api: fn(&mut ServiceConfig),
    /// Registers the routes of the port that metrics may have of their own.
    pub metrics: fn(&mut ServiceConfig),
    /// Returns whether a path is one of model calls, which last as long as a model does and end with their client.
    pub calls_models: fn(&str) -> bool,
    /// Makes the service of exports over gRPC.
    pub exports: fn(Data<Edge>) -> Arc<dyn GrpcService>,
}

/// Health of the node. A node that is not live should be restarted; one that is not ready should not be sent requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    pub live: bool,
    pub ready: bool,
    /// Reasons why it is not live or not ready, and other notes for operators.
    pub notes: Vec<String>,
    /// Tasks left to an operator, in words. The node serves all the same.
    pub shortfalls: Vec<String>,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("config", &self.config).finish_non_exhaustive()
    }
}
