//! Tests of the removal of types.

mod constructs;
mod errors;
mod hazards;
mod limits;
mod marked;
mod modules;
mod node;
mod properties;
