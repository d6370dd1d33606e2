//! Nodes of the cluster: join, admission of unknown nodes, operations on members, removal, recovery, restore, and upgrades.

pub(crate) mod join;
pub(crate) mod operations;
pub(crate) mod recovery;
pub(crate) mod removal;
pub(crate) mod restore;
pub(crate) mod unknown_nodes;
pub(crate) mod upgrade;
