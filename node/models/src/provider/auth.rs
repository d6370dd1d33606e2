//! Authentication headers of each provider type (1.3).

use super::{AuthFormat, HeaderRefusal, Provider, ProviderType, check_header};

/// Form in which a secret becomes the credentials of a request.
#[derive(Clone, PartialEq, Eq)]
pub enum AuthPlan {
    /// The given headers are sent. Their names are in lower case.
    Headers(Vec<(String, String)>),
    /// The secret is first exchanged for a token. [`bearer_headers`] turns the token into headers.
    Exchange(TokenExchange),
    /// Each request is signed with AWS Signature Version 4.
    AwsSignature { assumes_role: bool },
}

impl std::fmt::Debug for AuthPlan {
    /// Prints no values, because they are secret.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AuthPlan::Headers(headers) => out.debug_list().entries(headers.iter().map(|(name, _)| name)).finish(),
            AuthPlan::Exchange(exchange) => out.debug_tuple("Exchange").field(exchange).finish(),
            AuthPlan::AwsSignature { assumes_role } => {
                out.debug_struct("AwsSignature").field("assumes_role", assumes_role).finish()
            }
        }
    }
}

/// Ways to exchange a secret for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenExchange {
    /// Client credentials of Microsoft Entra. The secret is JSON with `client_id`, `client_secret`, `tenant_id` and
    /// `scope`.
    EntraClient,
    EntraFederated,
    GoogleServiceAccount,
    /// Identity of the workload, federated with the provider.
    WorkloadIdentity,
    DatabricksServicePrincipal,
}

/// Returns how a provider is authenticated with the value of its secret.
///
/// An unknown `auth_type` counts as the default of the provider type, so an invalid value disables nothing (trap 14).
/// White space around a secret is removed, because it was pasted by accident.
pub fn auth_plan(provider: &Provider, secret: &str) -> Result<AuthPlan, HeaderRefusal> {
    use ProviderType as T;
    let secret = secret.trim();
    let auth_type = provider.metadata.auth_type.as_deref().unwrap_or_default();
    let single = |name: &str, value: String| with_organization(provider, name, value).map(AuthPlan::Headers);
    let bearer = || bearer_headers(provider, secret).map(AuthPlan::Headers);
    match (provider.provider_type, auth_type) {
        (T::OpenAi | T::Anthropic | T::Vertex, "workload_identity_federation") => {
            Ok(AuthPlan::Exchange(TokenExchange::WorkloadIdentity))
        }
        (T::Anthropic, "oauth_bearer") | (T::Azure, "entra_bearer") => bearer(),
        (T::Anthropic, _) => single("x-api-key", secret.to_owned()),
        (T::Google, _) => single("x-goog-api-key", secret.to_owned()),
        (T::Azure, "entra_api") => Ok(AuthPlan::Exchange(TokenExchange::EntraClient)),
        (T::Azure, "entra_oidc") => Ok(AuthPlan::Exchange(TokenExchange::EntraFederated)),
        (T::Azure | T::AzureAiGateway, _) => single("api-key", secret.to_owned()),
        (T::Bedrock, "api_key") => bearer(),
        (T::Bedrock, kind) => Ok(AuthPlan::AwsSignature { assumes_role: kind == "assume_role" }),
        (T::Vertex, "service_account_key") => Ok(AuthPlan::Exchange(TokenExchange::GoogleServiceAccount)),
        (T::Databricks, "service_principal_oauth") => Ok(AuthPlan::Exchange(TokenExchange::DatabricksServicePrincipal)),
        // A local server needs no key.
        (T::Ollama, _) if secret.is_empty() => Ok(AuthPlan::Headers(Vec::new())),
        (T::OpenAi, kind) if provider.metadata.auth_format == AuthFormat::ApiKey && kind != "oauth_bearer" => {
            single("authorization", format!("Api-Key {secret}"))
        }
        _ => bearer(),
    }
}

/// Returns the headers for a token, such as the result of a [`TokenExchange`].
pub fn bearer_headers(provider: &Provider, token: &str) -> Result<Vec<(String, String)>, HeaderRefusal> {
    with_organization(provider, "authorization", format!("Bearer {token}"))
}

fn with_organization(provider: &Provider, name: &str, value: String) -> Result<Vec<(String, String)>, HeaderRefusal> {
    let mut headers = vec![(name.to_owned(), value)];
    if provider.provider_type == ProviderType::OpenAi
        && let Some(organization) = &provider.metadata.organization_id
    {
        headers.push(("openai-organization".to_owned(), organization.clone()));
    }
    headers.iter().try_for_each(|(name, value)| check_header(name, value))?;
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::provider::ProviderScope;

    fn plan(provider_type: &str, metadata: Value) -> AuthPlan {
        let provider_type = ProviderType::parse(provider_type).expect("a type");
        let metadata = metadata.as_object().expect("an object").clone();
        let (provider, _) = Provider::parse("1", "n", provider_type, ProviderScope::Organization, &metadata);
        auth_plan(&provider, " k\n").expect("a valid secret")
    }

    fn headers(expected: &[(&str, &str)]) -> AuthPlan {
        AuthPlan::Headers(expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn each_type_has_its_header() {
        let bearer = [("authorization", "Bearer k")];
        for (name, metadata, expected) in [
            ("openai", json!({}), headers(&bearer)),
            ("openai", json!({"auth_type": "api_key"}), headers(&bearer)),
            ("openai", json!({"auth_type": "from the future"}), headers(&bearer)),
            ("openai", json!({"auth_format": "api_key"}), headers(&[("authorization", "Api-Key k")])),
            ("openai", json!({"organization_id": "org-1"}), headers(&[bearer[0], ("openai-organization", "org-1")])),
            ("anthropic", json!({}), headers(&[("x-api-key", "k")])),
            ("anthropic", json!({"auth_type": "oauth_bearer"}), headers(&bearer)),
            ("google", json!({}), headers(&[("x-goog-api-key", "k")])),
            ("azure", json!({}), headers(&[("api-key", "k")])),
            ("azure", json!({"auth_type": "entra_bearer"}), headers(&bearer)),
            ("azure_ai_gateway", json!({}), headers(&[("api-key", "k")])),
            ("bedrock", json!({"auth_type": "api_key"}), headers(&bearer)),
            ("vertex", json!({"authType": "access_token"}), headers(&bearer)),
            ("databricks", json!({"auth_type": "pat"}), headers(&bearer)),
            ("mistral", json!({}), headers(&bearer)),
            ("ollama", json!({}), headers(&bearer)),
            ("xAI", json!({}), headers(&bearer)),
        ] {
            assert_eq!(plan(name, metadata.clone()), expected, "{name} {metadata}");
        }
    }

    #[test]
    fn secrets_that_are_no_keys_are_exchanged_or_sign() {
        for (name, metadata, expected) in [
            ("openai", json!({"auth_type": "workload_identity_federation"}), TokenExchange::WorkloadIdentity),
            ("azure", json!({"auth_type": "entra_api"}), TokenExchange::EntraClient),
            ("azure", json!({"auth_type": "entra_oidc"}), TokenExchange::EntraFederated),
            ("vertex", json!({"authType": "service_account_key"}), TokenExchange::GoogleServiceAccount),
            ("databricks", json!({"auth_type": "service_principal_oauth"}), TokenExchange::DatabricksServicePrincipal),
        ] {
            assert_eq!(plan(name, metadata), AuthPlan::Exchange(expected));
        }
        assert_eq!(plan("bedrock", json!({})), AuthPlan::AwsSignature { assumes_role: false });
        assert_eq!(plan("bedrock", json!({"auth_type": "assume_role"})), AuthPlan::AwsSignature { assumes_role: true });
    }

    #[test]
    fn a_plan_is_printed_without_values() {
        assert_eq!(format!("{:?}", plan("anthropic", json!({}))), "[\"x-api-key\"]");
    }

    #[test]
    fn a_secret_with_a_line_break_is_refused_without_being_shown() {
        let metadata = serde_json::Map::new();
        let scope = ProviderScope::Organization;
        let (provider, _) = Provider::parse("1", "n", ProviderType::OpenAi, scope, &metadata);
        let error = auth_plan(&provider, "sk-1\r\nx-evil: 1").expect_err("two lines").to_string();
        assert!(error.contains("authorization") && !error.contains("sk-1"), "{error}");
    }
}
