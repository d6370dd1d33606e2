//! Turns of queries on the threads of a node, and what stops a query: its deadline, its memory, its caller.

pub(crate) mod fair_queue;
pub(crate) mod watch;
pub(crate) mod workers;
