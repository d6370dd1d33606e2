//! Evaluations on real nodes, one and three: data, results of scorers, streams, and runs that outlive their node.
//!
//! Most of them need no interpreter: their tasks are global functions, or prompts that a fake provider answers.

mod bundles;
mod cluster;
mod fixture;
mod functions;
mod remote;
mod requests;
mod storm;
mod streams;
