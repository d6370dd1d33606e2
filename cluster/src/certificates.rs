//! Certificates of nodes, and the lifecycle of the cluster's certificate authority.

pub(crate) mod authority_records;
pub(crate) mod key_rotation;
pub(crate) mod key_wrap;
pub(crate) mod node_certificates;
