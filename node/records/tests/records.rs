//! Tests of records with a real cluster of one node.

#[path = "suite/mod.rs"]
mod suite;
