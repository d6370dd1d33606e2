//! Tests of the crate.

mod aws;
mod cache;
mod tokens;

use assay_node_models::provider::{Provider, ProviderScope, ProviderType};
use serde_json::Value;

/// Returns the provider `p` with these metadata.
fn provider(provider_type: &str, metadata: &Value) -> Provider {
    let provider_type = ProviderType::parse(provider_type).expect("a type");
    let members = metadata.as_object().expect("an object");
    Provider::parse("1", "p", provider_type, ProviderScope::Organization, members).0
}
