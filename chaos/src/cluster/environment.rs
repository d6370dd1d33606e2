//! Environment of a run: nodes, their network, delays between them, and the machine's support for faults.

pub(super) mod fault_support;
pub(super) mod network;
pub(super) mod node;
pub(super) mod relay;
pub(super) mod status;
pub(super) mod tracer;
pub(super) mod world;
