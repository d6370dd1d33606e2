//! Leadership of a group: elections, handover, and step-down on a higher vote.

pub(crate) mod elections;
pub(crate) mod handover;
pub(crate) mod higher_vote;
