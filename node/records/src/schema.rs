//! Schemas of records: declarations of kinds, validation of bodies, and descriptions for clients.

pub mod describe;
pub mod draft;
pub mod kind;
