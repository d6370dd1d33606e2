//! Members of a group: bootstrap, changes, forced recovery, and the hard state of each replica.

pub(crate) mod bootstrap;
pub(crate) mod forced_recovery;
pub(crate) mod hard_state;
pub(crate) mod members;
