//! Messages between the replicas of a group: encoding, sending and receipt.

pub(crate) mod append_limit;
pub(crate) mod blob_prefetch;
pub(crate) mod inbound;
pub(crate) mod long_append;
pub(crate) mod outbound;
pub(crate) mod peers;
pub(crate) mod wire;
