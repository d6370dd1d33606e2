//! Tests of the client against servers on loopback, with a scripted resolver.

mod bodies;
mod connections;
mod media;
mod proxy;
mod support;
mod targets;
mod tls;
