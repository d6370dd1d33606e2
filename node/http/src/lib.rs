//! HTTP: the only room that knows actix-web. Thin: it reads what a client sent, asks the rooms below, and answers.
//!
//! ```text
//! socket -> listener -> edge (id, span, limits, panic, CORS) -> route -> call (who is it) -> body (limits, pace, one parse)
//!                                                     |
//!                                                     +-> records | objects -> answer, or a refusal from one table
//! ```
//! What a client may rely on stands in the contract; here is only where each part of it is kept:
//!
//! | what | where |
//! |---|---|
//! | which path does what | `routes` and a file for each family below it |
//! | who is calling, for which organization | `caller`, `call` |
//! | pages and their readers | `sending` |
//! | limits of a body: bytes, depth, rate | `body`, `pace` |
//! | budgets that requests share and wait for | `admission`, `wait` |
//! | bodies answered before they were read | `unread` |
//! | kinds of refusal, their statuses and bodies | `refusal`, `refused` |
//! | addresses to listen on, before anything is created | `sockets` |
//! | which connections there may be, and HTTP on them | `listener` |
//! | browsers of other origins | `cors` |
//! | what was meant by a path that leads nowhere | `near` |
//! | operations of the API that are not served yet | `operations` |
//! | what is said of those that are: `/openapi.json`, `/docs` | `describe` |
//! | people who log in | `login`, `routes/oauth` |
//! | how many requests may come, of all nodes together | `rates` |
//! | how much may be stored | `quotas` |
//! | a request that is sent twice | `repeat` |
//! | exports of spans over gRPC, on a port of its own | `rpc` |
//! | operators, on a port of their own | `admin` |
//!
//! A panic in a handler ends its request with a 500 and a count, never the process (decision 11 of the design).

mod admin;
mod admission;
mod asked;
mod background;
mod body;
mod call;
mod caller;
mod config;
mod cors;
mod counts;
mod describe;
mod dress;
mod edge;
mod farewell;
mod finishing;
mod interim;
mod listener;
mod login;
mod near;
mod operations;
mod origin;
mod pace;
mod packing;
mod quotas;
mod range;
mod rates;
mod refusal;
mod refused;
mod repeat;
mod routes;
mod rpc;
mod sending;
mod server;
mod shapes;
mod sockets;
mod summing;
mod tls;
mod unread;
mod wait;

use std::fmt;
use std::sync::Arc;

use assay_node_identity::{Identity, Provider};
use assay_node_objects::Objects;
use assay_node_query::Queries;

pub use admin::{Admin, AdminAnswer, AdminConfig, AdminRefusal, AdminRequest};
pub use config::{HttpConfig, TlsFiles};
pub use quotas::{Holdings, QuotaRule, Quotas, Stored};
pub use rates::{LimitsConfig, Per, RatePeers, RateRule, RateView, Rates};
pub use server::{Handle, Server};
pub use sockets::Sockets;

/// The pure steps of reading a body, for `tests/fuzz`, which throws at them what a client can send.
pub mod pure {
    pub use crate::body::{RowsAt, object, parse, room_of};
    pub use crate::refusal::{Kind, Refusal};
    pub use crate::shapes::{CrossPart, cross_parts, feedback_items, fetch_body, fetch_query, logs3_rows, rows};
}

/// What the server stands on.
#[derive(Clone)]
pub struct App {
    pub identity: Identity,
    pub objects: Objects,
    pub queries: Queries,
    pub health: Arc<dyn Fn() -> Health + Send + Sync>,
    /// More metrics in Prometheus text format, put behind this room's own.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    pub config: HttpConfig,
    pub rates: Rates,
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
    /// What an operator has yet to do, in words. The node serves all the same.
    pub shortfalls: Vec<String>,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("config", &self.config).finish_non_exhaustive()
    }
}
