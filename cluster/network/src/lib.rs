//! The network between the nodes of a cluster: messages of groups, services, and large writes. Decides by records of nodes
//! and by histories of starts from whom a message is accepted.
//!
//! [`Network`] is handed to consensus and to every service. It has no transport before the node has a certificate. What
//! the node knows of its own replicas it asks of [`OwnReplicas`], which upper layers implement.

pub mod delegated;
pub mod large_writes;
mod network;
pub mod node_records;
pub mod service;
pub mod start_histories;
pub mod streams;
mod unknown_nodes;

pub use delegated::{DelegatedService, Guard, ObjectAccess, ServiceNames};
pub use network::Network;
pub use node_records::{Feature, Membership, NodeProgram, NodeRecord, NodeState, Removed};
pub use service::{AskError, NoAnswer, Service};
pub use start_histories::{OwnReplicas, StartHistories};
pub use streams::{AskStream, StreamService};
pub use unknown_nodes::UnknownNodes;
