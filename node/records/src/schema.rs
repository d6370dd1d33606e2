//! Schemas of records: what is declared of a kind, the shapes of its fields, the bodies that are checked against them, and
//! their description for clients.

pub mod describe;
pub mod draft;
pub mod kind;
pub mod shape;
