//! OpenTelemetry exports (OTLP) over HTTP and gRPC, whose spans become rows.
//!
//! | module | contents |
//! |---|---|
//! | `exports` | writes of spans, for both protocols |
//! | `http` | handlers of exports over HTTP |
//! | `grpc_service` | handlers of exports over gRPC, with their checks |

pub mod exports;
mod grpc_service;
pub mod http;

pub use grpc_service::ExportService;
