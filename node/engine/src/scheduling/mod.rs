//! Turns of queries on the threads of a node, and the reasons to stop a query.

pub(crate) mod fair_queue;
pub(crate) mod watch;
pub(crate) mod workers;
