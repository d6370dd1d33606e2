//! Framework of the HTTP server: listeners, requests, responses and the middleware between them.
//!
//! The crate defines no route of the API. The crate `assay-node-api` passes in the routes as [`Services`].
//!
//! ```text
//! socket -> listener -> edge (id, span, limits, panic, CORS) -> route -> call (who is it) -> body (limits, pace, one parse)
//!                                                                 |
//!                                            assay-node-api ------+-> response, or a refusal from one table
//! ```
//! | module | contents |
//! |---|---|
//! | [`server`] | listening sockets, TLS, workers, the edge, graceful shutdown, the administration listener |
//! | [`requests`] | callers, bodies, admission, rate limits and quotas, request headers |
//! | [`responses`] | error responses, headers, CORS, compression, streamed bodies |
//! | [`grpc`] | unary gRPC calls: connections, frames, statuses |
//! | [`openapi`] | builder of operations for the OpenAPI document |
//! | [`access_log`] | log of requests |
//! | [`web`] | types of actix-web that handlers use |
//! | `wires` | switches of the wires of other products |
//!
//! A panic in a handler ends its request with a 500 and is counted. It never ends the process (decision 11 of the
//! design).

pub mod access_log;
mod config;
mod console;
pub mod grpc;
pub mod openapi;
pub mod requests;
pub mod responses;
pub mod server;
pub mod web;
mod wires;

use std::fmt;
use std::sync::Arc;

use actix_web::web::{Data, ServiceConfig};
use assay_node_code_forwarding::CodeForwarding;
use assay_node_gateway::Gateway;
use assay_node_identity::{Identity, Provider};
use assay_node_limits::{Quotas, RateLimiter};
use assay_node_objects::Objects;
use assay_node_query::Queries;
use assay_node_runner::CodeHost;
use assay_node_usage::UsageMeter;
use futures::future::BoxFuture;

use crate::grpc::GrpcService;
use crate::server::edge::Edge;

pub use config::{HttpConfig, TlsFiles};
pub use console::{ClusterReadings, Console, ConsoleConfig};
pub use server::admin::{Admin, AdminAnswer, AdminConfig, AdminRefusal, AdminRequest};
pub use server::sockets::Sockets;
pub use server::{Handle, Server};
pub use wires::{PHOENIX_KEY, WireSwitch, WiresConfig};

/// Dependencies and settings of the server.
#[derive(Clone)]
pub struct App {
    pub identity: Identity,
    pub objects: Objects,
    pub queries: Queries,
    pub health: Arc<dyn Fn() -> Health + Send + Sync>,
    /// Source of further metrics in Prometheus text format, which follow those of the server.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    pub config: HttpConfig,
    pub wires: WiresConfig,
    pub rates: RateLimiter,
    pub quotas: Quotas,
    /// `None` without an administration listener.
    pub admin: Option<Admin>,
    /// `None` if login is disabled.
    pub provider: Option<Arc<dyn Provider>>,
    pub gateway: Gateway,
    pub code: CodeHost,
    /// Calls of code that other nodes run.
    pub code_forwarding: CodeForwarding,
    pub usage: Arc<UsageMeter>,
    pub console: Console,
    pub services: Services,
}

/// Services that the listeners serve. The crate of the routes provides them.
#[derive(Clone, Copy, Debug)]
pub struct Services {
    /// Registers the routes of the API and the handler for unknown paths.
    pub api: fn(&mut ServiceConfig),
    /// Registers the routes of the separate metrics listener.
    pub metrics: fn(&mut ServiceConfig),
    /// Returns whether a path belongs to model calls. They have a longer time limit and end with their client.
    pub calls_models: fn(&str) -> bool,
    /// Creates the service for exports over gRPC.
    pub exports: fn(Data<Edge>) -> Arc<dyn GrpcService>,
    /// Returns the metrics of the API's services in Prometheus text format.
    pub metrics_text: fn(&Edge) -> String,
    /// Background work of the API, which runs until it is dropped.
    pub background: fn(Data<Edge>) -> BoxFuture<'static, ()>,
}

/// Health of the node.
///
/// A node that is not live should be restarted. A node that is not ready should receive no requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    pub live: bool,
    pub ready: bool,
    /// Reasons why the node is not live or not ready, and other notes for operators.
    pub notes: Vec<String>,
    /// Tasks for an operator. They do not prevent the node from serving.
    pub shortfalls: Vec<String>,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("config", &self.config).finish_non_exhaustive()
    }
}
