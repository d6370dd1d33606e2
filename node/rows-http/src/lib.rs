//! Handlers for rows: insert, fetch, feedback, reviews and restore; files of rows; exports of OpenTelemetry.
//!
//! | module | contents |
//! |---|---|
//! | [`rows`] | writes and reads of rows, bulk changes, human reviews, restores |
//! | [`files`] | attachments of rows, bundles of code, bodies too large for one request |
//! | [`otlp`] | exports of OpenTelemetry, over HTTP and over gRPC |
//!
//! `assay-node-api` registers the routes.

pub mod files;
pub mod otlp;
pub mod rows;
