//! OTLP: exports of OpenTelemetry over HTTP and over gRPC, whose spans become rows.
//!
//! | module | contents |
//! |---|---|
//! | `exports` | writes of an export's spans, whatever protocol it came by |
//! | `http` | handlers of exports over HTTP |
//! | `grpc_service` | handlers of exports over gRPC, and what each call passes first |
//! | `grpc` | gRPC with one message each way: connections, frames, statuses |
//! | `openapi` | description of the routes over HTTP |

mod exports;
pub mod grpc;
mod grpc_service;
pub mod http;
pub mod openapi;

pub use grpc_service::ExportService;
