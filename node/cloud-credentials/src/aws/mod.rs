//! Credentials of AWS: signatures of requests, and temporary credentials of a role.

mod assume_role;
mod credentials;
mod signature;

pub use assume_role::{ROLE_SECONDS, assume_role_request, parse_assumed_role};
pub use credentials::{AwsCredentials, aws_credentials, aws_region};
pub use signature::{AwsRequest, SigningScope, signature_headers};

/// Name of Bedrock in signatures.
pub const BEDROCK_SERVICE: &str = "bedrock";
