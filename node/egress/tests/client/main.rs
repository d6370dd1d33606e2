//! Tests of the client against servers on loopback, with names that resolve as each test says.

mod bodies;
mod connections;
mod media;
mod proxy;
mod support;
mod targets;
mod tls;
