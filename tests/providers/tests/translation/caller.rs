//! A caller of the gateway itself: with its outbound client, its attempts and its credentials, but without an HTTP server.

use std::fmt;
use std::sync::Arc;

use assay_node_auth::Secret;
use assay_node_dialects::Dialect;
use assay_node_egress::{EgressClient, EgressConfig, EgressPolicy, EgressSettings, OwnEndpoints, TrustedRoots};
use assay_node_gateway::{
    CallBody, CallOwner, ClientEndpoint, Gateway, GatewayParts, GatewaySettings, GeminiVerb, ModelCall, ProviderKeys,
    ReplyBody,
};
use assay_node_models::catalog::Catalog;
use assay_node_models::provider::{Provider, ProviderScope, ProviderType};
use assay_test_providers::ProviderServer;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use uuid::Uuid;

/// Gateway with providers that are all one scripted server.
pub struct GatewayCaller {
    runtime: Runtime,
    gateway: Gateway,
}

/// What came back.
#[derive(Debug)]
pub struct GatewayAnswer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub bytes: Vec<u8>,
}

impl GatewayAnswer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&self.bytes)))
    }
}

/// The same key for all secrets.
#[derive(Clone)]
struct OneKey(String);

impl fmt::Debug for OneKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OneKey(..)")
    }
}

impl ProviderKeys for OneKey {
    fn key(&self, _: &str) -> BoxFuture<'_, Result<Option<Secret>, String>> {
        let key = Secret::new(self.0.clone());
        async move { Ok(Some(key)) }.boxed()
    }
}

/// A provider secret: its type, its metadata and its value.
#[derive(Clone, Debug)]
pub struct TestSecret {
    pub provider: Provider,
    pub key: String,
}

impl TestSecret {
    /// Makes a secret for a scripted server with one model.
    pub fn new(server: &ProviderServer, provider_type: ProviderType, key: &str, metadata: Value) -> TestSecret {
        TestSecret::at(&server.origin(), provider_type, key, metadata)
    }

    /// Makes a secret for a server at this address.
    pub fn at(base: &str, provider_type: ProviderType, key: &str, metadata: Value) -> TestSecret {
        let mut members = metadata.as_object().expect("an object").clone();
        members.insert("api_base".to_owned(), base.into());
        let id = format!("secret of {}", provider_type.name());
        let scope = ProviderScope::Organization;
        let (provider, complaints) = Provider::parse(id, "the secret", provider_type, scope, &members);
        assert!(complaints.is_empty(), "{complaints:?}");
        TestSecret { provider, key: key.to_owned() }
    }
}

impl GatewayCaller {
    pub fn new() -> GatewayCaller {
        let runtime = Runtime::new().expect("threads");
        let ports = ["1-65535"];
        let allow = json!([{"cidr": "127.0.0.1", "ports": ports, "for": ["models", "media"]},
            {"host": "localhost", "ports": ports, "for": ["models"]}]);
        let settings: EgressSettings = serde_json::from_value(json!({"allow": allow})).expect("settings");
        let policy = EgressPolicy::new(&settings, OwnEndpoints::default()).expect("a policy");
        let egress = EgressClient::new(EgressConfig::new(TrustedRoots::none()), policy);
        let settings = GatewaySettings { retry_budget_seconds: 0, ..GatewaySettings::default() };
        let catalog = Catalog::built_in().clone();
        let gateway = Gateway::new(GatewayParts::new(egress, settings, catalog, runtime.handle().clone()));
        GatewayCaller { runtime, gateway }
    }

    /// Calls a model with headers of the client.
    pub fn call_with(
        &self,
        secret: &TestSecret,
        (dialect, model, stream): (Dialect, &str, bool),
        headers: &[(&str, &str)],
        body: Value,
    ) -> GatewayAnswer {
        let endpoint = match dialect {
            Dialect::Chat => ClientEndpoint::Chat,
            Dialect::Responses => ClientEndpoint::Responses,
            Dialect::Anthropic => ClientEndpoint::Messages,
            Dialect::Gemini if stream => ClientEndpoint::Gemini(GeminiVerb::StreamGenerate),
            Dialect::Gemini => ClientEndpoint::Gemini(GeminiVerb::Generate),
        };
        let principal = Uuid::from_u128(2);
        let call = ModelCall {
            request_id: "request-1".to_owned(),
            owner: CallOwner {
                organization: Uuid::from_u128(1),
                project: None,
                principal,
                email: None,
                is_service_account: false,
                credential: None,
                temporary: None,
            },
            endpoint,
            model: model.to_owned(),
            stream,
            body: CallBody::of_value(body),
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            endpoint_name: None,
            providers: vec![Arc::new(secret.provider.clone())].into(),
            keys: Arc::new(OneKey(secret.key.clone())),
        };
        self.runtime.block_on(async {
            let reply = match self.gateway.call(call, None).await {
                Ok(reply) => reply,
                Err(error) => {
                    let bytes = error.body(dialect).to_string().into_bytes();
                    return GatewayAnswer { status: error.status, headers: Vec::new(), bytes };
                }
            };
            let bytes = match reply.body {
                ReplyBody::Whole(bytes) => bytes.to_vec(),
                ReplyBody::Stream(mut stream) => {
                    let mut all = Vec::new();
                    while let Some(bytes) = stream.next().await.expect("a known format") {
                        all.extend_from_slice(&bytes);
                    }
                    all
                }
            };
            GatewayAnswer { status: reply.status, headers: reply.headers, bytes }
        })
    }

    pub fn call(&self, secret: &TestSecret, how: (Dialect, &str, bool), body: Value) -> GatewayAnswer {
        self.call_with(secret, how, &[], body)
    }
}
