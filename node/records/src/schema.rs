//! Schemas of records: declarations of kinds, shapes of fields, validation of bodies, and descriptions for clients.

pub mod describe;
pub mod draft;
pub mod kind;
pub mod shape;
