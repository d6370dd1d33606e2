//! Handlers of the MCP server: `/mcp`, and the metadata by which clients find its logins.
//!
//! | module | subject |
//! |---|---|
//! | `endpoint` | `POST /mcp`: origin, credential, body, audit, answer |
//! | `caller_data` | data of tools, read with the rights of the caller |
//! | `metadata` | metadata of the protected resource (RFC 9728) |
//! | `description` | description for the OpenAPI document |
//!
//! `assay-node-mcp-server` has the protocol and the tools, without I/O. The authorization server is in `assay-node-api`.

mod caller_data;
mod description;
mod endpoint;
mod metadata;

pub use description::operations;
pub use endpoint::{MCP_BODY_BYTES_MAX, post};
pub use metadata::protected_resource;

/// Path of the MCP server.
pub const MCP_PATH: &str = "/mcp";
/// Path of the metadata of the protected resource. The path of the server follows it.
pub const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";
