//! Real nodes, one and three, as clients and operators meet them. One program of tests: most of what they do is to wait,
//! and two of them wait at once.

mod access;
mod cases;
mod data;
mod malformed;
mod operation;
mod tenancy;
