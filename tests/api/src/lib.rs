//! Tests of the built program from outside, over HTTP. Names no crate of the product: what it knows of it is the
//! command line, the line that says that it is ready, and the public API.
//!
//! Cases are data (`cases/*.json`): steps of request and expected answer, described in `case`. They run against a list
//! of base addresses in turn, so that the same files speak to one node or to many. Malformed requests are data too
//! (`corpus/*.json`), described in `corpus`.

pub mod case;
pub mod corpus;
pub mod dev;
pub mod http;
pub mod machines;
pub mod pattern;
pub mod process;
pub mod rows;
pub mod schema;
pub mod search;
pub mod server;
pub mod template;
