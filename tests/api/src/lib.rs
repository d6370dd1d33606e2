//! Tests of the built program from outside, over HTTP. Uses no crate of the product: only the command line, the line
//! that reports readiness, and the public API.
//!
//! Cases are data (`cases/*.json`): steps of request and expected response, described in `case`. They run against a
//! list of base addresses in turn, so that the same files test one node or many. Malformed requests are data too
//! (`corpus/*.json`), described in `corpus`.

pub mod agent_data;
pub mod backup;
pub mod case;
pub mod corpus;
pub mod dev;
pub mod http;
pub mod machines;
pub mod openid_provider;
pub mod pattern;
pub mod process;
pub mod promql;
pub mod rows;
pub mod schema;
pub mod search;
pub mod server;
pub mod template;
