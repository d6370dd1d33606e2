//! Reports on the state of the node, its groups and the whole cluster.

pub(crate) mod catalog_contact;
pub(crate) mod readings;
pub(crate) mod status;
