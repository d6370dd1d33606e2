//! Online scoring on one node and on three: rules, scopes, controls in writes, and the operations on rules.

mod cluster;
mod controls;
mod failing;
mod fixture;
mod limits;
mod operations;
mod results;
mod scopes;
mod spans;
