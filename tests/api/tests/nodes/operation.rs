//! Tests of operation: starts, stops, commands, deployments, damage and lost majorities.

pub(crate) mod admin;
pub(crate) mod backup;
pub(crate) mod backup_growth;
pub(crate) mod backup_kills;
pub(crate) mod certificates;
pub(crate) mod compose;
pub(crate) mod dev;
pub(crate) mod lost_majority;
pub(crate) mod machines;
pub(crate) mod monitoring;
pub(crate) mod program;
pub(crate) mod restore_drill;
pub(crate) mod scrub;
