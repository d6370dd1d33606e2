//! OTLP: exports of OpenTelemetry over HTTP and over gRPC, whose spans become rows.
//!
//! | module | contents |
//! |---|---|
//! | `exports` | writes of an export's spans, whatever protocol it came by |
//! | `http` | handlers of exports over HTTP |
//! | `grpc_service` | handlers of exports over gRPC, and what each call passes first |
//! | `openapi` | description of the routes over HTTP |

pub(crate) mod exports;
mod grpc_service;
pub mod http;

pub use grpc_service::ExportService;
