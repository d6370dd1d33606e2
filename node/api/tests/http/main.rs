//! The server as a client meets it: a real port, over a real cluster of one node.

mod access;
mod admin;
mod admission;
mod budgets;
mod client;
mod console;
mod edges;
mod fixture;
mod gateway;
mod identity;
mod invocations;
mod jobs;
mod later;
mod limits;
mod malformed;
mod provider;
mod queries;
mod records;
mod reviews;
mod rows;
mod secrets;
mod tls;
mod ways_in;
