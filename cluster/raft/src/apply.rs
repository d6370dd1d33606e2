//! Applying of committed entries: the state machine, its thread, its backlog and its seals.

pub(crate) mod apply_thread;
pub(crate) mod backlog;
pub mod machine;
pub(crate) mod seal;
pub(crate) mod state_machine;
