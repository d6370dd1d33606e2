//! Tests with real nodes, one and three, for clients and operators. They are one program: most of their time is
//! waiting, and two of them run concurrently.

mod access;
mod cases;
mod code;
mod data;
mod evals;
mod malformed;
mod mcp;
mod operation;
mod scoring;
mod tenancy;
mod wires;
