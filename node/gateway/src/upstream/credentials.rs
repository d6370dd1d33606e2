//! Credentials of attempts: keys in headers, fetched tokens, and signing keys.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use assay_node_cloud_credentials::aws::{AwsCredentials, assume_role_request, aws_credentials, parse_assumed_role};
use assay_node_cloud_credentials::{
    ANTHROPIC_TOKEN_BETA, CredentialCache, CredentialError, CredentialKey, CredentialLookup, ExchangeCall,
    FETCH_MS_MAX, TOKEN_BODY_BYTES_MAX, Token, TokenRequest, parse_token, token_request,
};
use assay_node_egress::{
    EgressClient, EgressOptions, EgressPurpose, EgressRequest, EgressTimes, EgressUrl, HeaderMap, HeaderName,
    HeaderValue, TlsOptions,
};
use assay_node_models::provider::{AuthPlan, HiddenText, Provider, ProviderType, auth_plan, bearer_headers};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::client_certificate::ProviderSecret;
use crate::error::GatewayError;
use crate::gateway::now_ms;

/// Time limit of a token request. The cache abandons a fetch only after [`FETCH_MS_MAX`], which is longer.
const FETCH_TIME_MAX: Duration = Duration::from_secs(30);
/// Time limit for the wait of a call for a credential, whether the call itself fetches it or another one.
const WAIT_TIME_MAX: Duration = Duration::from_millis(FETCH_MS_MAX as u64);
/// Bedrock errors for a temporary key that is no longer valid.
const REFUSED_KEYS: [&str; 3] = ["ExpiredToken", "UnrecognizedClient", "InvalidClientTokenId"];

/// Source of credentials, which caches fetched ones for all calls. Clones share the cache.
#[derive(Clone, Debug)]
pub(crate) struct CredentialSource {
    egress: EgressClient,
    tokens: FetchedCredentials<HiddenText>,
    roles: FetchedCredentials<AwsCredentials>,
}

/// Credentials of one attempt.
#[derive(Debug, Default)]
pub(crate) struct AttemptCredentials {
    /// Headers with the key or the token. Their names are in lower case.
    pub headers: Vec<(String, String)>,
    /// Name that these headers require in `anthropic-beta`.
    pub beta: Option<&'static str>,
    /// Key that signs the complete request.
    pub signer: Option<AwsCredentials>,
    fetched: Option<FetchedCredential>,
}

/// Fetched credential, which is discarded if the server refuses it.
#[derive(Debug)]
enum FetchedCredential {
    Token(CredentialKey, HiddenText),
    Role(CredentialKey, AwsCredentials),
}

/// Owner of credentials.
#[derive(Clone, Debug)]
pub(crate) struct CredentialOwner {
    pub organization: Uuid,
    pub provider: Arc<Provider>,
}

impl CredentialSource {
    /// Creates the source. Fetches run on the runtime of `handle`.
    pub fn new(egress: EgressClient, handle: Handle) -> CredentialSource {
        let (tokens, roles) = (FetchedCredentials::new(handle.clone()), FetchedCredentials::new(handle));
        CredentialSource { egress, tokens, roles }
    }

    /// Returns the credentials for an attempt. The error reveals nothing of the secret.
    pub async fn credentials(
        &self,
        owner: &CredentialOwner,
        secret: &ProviderSecret,
    ) -> Result<AttemptCredentials, GatewayError> {
        let provider = &owner.provider;
        let refused = |why: String| {
            let why = format!("credentials of the provider `{}`: {why}", provider.name);
            GatewayError::new(502, "provider_auth_error", why)
        };
        let failed = |error: CredentialError| {
            if error.blames_secret() {
                tracing::warn!(secret = %provider.id, %error, "the secret of a provider cannot be used");
            }
            refused(error.to_string())
        };
        let plan = auth_plan(provider, secret.auth()).map_err(|refusal| refused(refusal.to_string()))?;
        match plan {
            AuthPlan::Headers(headers) => Ok(AttemptCredentials { headers, ..AttemptCredentials::default() }),
            AuthPlan::Exchange(exchange) => {
                let key = CredentialKey::of(provider, secret.auth());
                let (source, of, auth) = (self.clone(), owner.clone(), secret.auth().to_owned());
                let ca = secret.authorities();
                let fetch = async move {
                    let now_ms = now_i64();
                    let (provider, secret) = (&*of.provider, auth.as_str());
                    let call = ExchangeCall { exchange, provider, secret, identity_token: None, now_ms };
                    let (status, body) = source.ask(of.organization, token_request(&call)?, ca).await?;
                    let token: Token = parse_token(status, &body)?;
                    let expires_ms = token.expires_ms(now_ms);
                    Ok((token.value, expires_ms))
                };
                let token = self.tokens.get(key, fetch).await.map_err(failed)?;
                let headers = bearer_headers(provider, token.reveal()).map_err(|why| refused(why.to_string()))?;
                let beta = (provider.provider_type == ProviderType::Anthropic).then_some(ANTHROPIC_TOKEN_BETA);
                let fetched = Some(FetchedCredential::Token(key, token));
                Ok(AttemptCredentials { headers, beta, signer: None, fetched })
            }
            AuthPlan::AwsSignature { assumes_role: false } => {
                let signer = Some(aws_credentials(provider, secret.auth()).map_err(failed)?);
                Ok(AttemptCredentials { signer, ..AttemptCredentials::default() })
            }
            AuthPlan::AwsSignature { assumes_role: true } => {
                let key = CredentialKey::of(provider, secret.auth());
                let (source, of, auth) = (self.clone(), owner.clone(), secret.auth().to_owned());
                let ca = secret.authorities();
                let fetch = async move {
                    let request = assume_role_request(&of.provider, &auth, now_i64())?;
                    let (status, body) = source.ask(of.organization, request, ca).await?;
                    parse_assumed_role(status, &body)
                };
                let role = self.roles.get(key, fetch).await.map_err(failed)?;
                let fetched = Some(FetchedCredential::Role(key, role.clone()));
                Ok(AttemptCredentials { signer: Some(role), fetched, ..AttemptCredentials::default() })
            }
        }
    }

    /// Discards a fetched credential if the response shows that the server refused it.
    pub fn answered(&self, credentials: &AttemptCredentials, status: u16, headers: &HeaderMap) {
        let kind = headers.get("x-amzn-errortype").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        match &credentials.fetched {
            Some(FetchedCredential::Token(key, token)) if status == 401 => self.tokens.refused(key, token),
            Some(FetchedCredential::Role(key, role))
                if matches!(status, 401 | 403) && REFUSED_KEYS.iter().any(|refused| kind.starts_with(refused)) =>
            {
                self.roles.refused(key, role);
            }
            _ => {}
        }
    }

    /// Sends a token request. Returns the status and the body of the response.
    async fn ask(
        &self,
        organization: Uuid,
        request: TokenRequest,
        ca: Option<Arc<TlsOptions>>,
    ) -> Result<(u16, Bytes), CredentialError> {
        let problem = |problem| CredentialError::Answer { problem };
        let url: EgressUrl = request.url.parse().map_err(|_| problem("its address is invalid"))?;
        let mut sent = EgressRequest::post(url, Bytes::from(request.body));
        for (name, value) in &request.headers {
            let (name, value) = (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value.as_str()));
            let (Ok(name), Ok(value)) = (name, value) else { return Err(problem("its request has an invalid header")) };
            sent.headers.insert(name, value);
        }
        let mut options = EgressOptions::new(EgressPurpose::Models, organization);
        options.times = EgressTimes { first_byte: FETCH_TIME_MAX, total: FETCH_TIME_MAX, ..EgressTimes::WHOLE };
        options.response_bytes_max = TOKEN_BODY_BYTES_MAX as u64;
        options.tls = ca;
        let unreachable = |error: assay_node_egress::EgressError| {
            tracing::warn!(reason = error.operator_reason(), "a token server did not answer");
            CredentialError::Unreachable
        };
        let response = self.egress.send(&sent, &options).await.map_err(unreachable)?;
        let status = response.status.as_u16();
        Ok((status, response.body.collect().await.map_err(unreachable)?))
    }
}

/// Cache for one kind of credentials, with at most one fetch per credential at a time. Clones share it.
#[derive(Clone, Debug)]
struct FetchedCredentials<V> {
    cache: Arc<Mutex<CredentialCache<CredentialKey, V>>>,
    /// Notified at the end of every fetch.
    ended: Arc<Notify>,
    handle: Handle,
}

impl<V: Clone + Send + PartialEq + 'static> FetchedCredentials<V> {
    fn new(handle: Handle) -> Self {
        FetchedCredentials { cache: Arc::new(Mutex::new(CredentialCache::default())), ended: Arc::default(), handle }
    }

    /// Returns a credential, and fetches it if necessary.
    ///
    /// The fetch continues if the caller leaves, because other calls may wait for it.
    async fn get(
        &self,
        key: CredentialKey,
        fetch: impl Future<Output = Result<(V, i64), CredentialError>> + Send + 'static,
    ) -> Result<V, CredentialError> {
        let until = Instant::now() + WAIT_TIME_MAX;
        let mut fetch = Some(fetch);
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            // The end of a fetch after this point wakes the call.
            ended.as_mut().enable();
            let found = self.cache.lock().look_up(&key, now_i64());
            match found {
                CredentialLookup::Valid(value) => return Ok(value),
                CredentialLookup::Refresh(value) => {
                    self.begin(key, fetch.take());
                    return Ok(value);
                }
                CredentialLookup::Failed { error, .. } => return Err(error),
                CredentialLookup::Fetch => self.begin(key, fetch.take()),
                CredentialLookup::Wait { .. } => {}
            }
            if timeout_at(until, ended).await.is_err() {
                return Err(CredentialError::Unreachable);
            }
        }
    }

    fn begin(
        &self,
        key: CredentialKey,
        fetch: Option<impl Future<Output = Result<(V, i64), CredentialError>> + Send + 'static>,
    ) {
        let Some(fetch) = fetch else {
            // The credential that this call fetched has already expired.
            let problem = "what it names expires at once";
            self.cache.lock().failed(&key, CredentialError::Answer { problem }, now_i64());
            self.ended.notify_waiters();
            return;
        };
        let own = self.clone();
        self.handle.spawn(async move {
            let result = fetch.await;
            let now_ms = now_i64();
            let mut cache = own.cache.lock();
            match result {
                Ok((value, expires_ms)) => cache.succeeded(&key, value, expires_ms, now_ms),
                Err(error) => cache.failed(&key, error, now_ms),
            }
            drop(cache);
            own.ended.notify_waiters();
        });
    }

    fn refused(&self, key: &CredentialKey, value: &V) {
        self.cache.lock().refused(key, value);
    }
}

fn now_i64() -> i64 {
    i64::try_from(now_ms()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use assay_node_models::provider::ProviderScope;

    use super::*;

    fn key(name: &str) -> CredentialKey {
        let metadata = serde_json::Map::new();
        let scope = ProviderScope::Organization;
        CredentialKey::of(&Provider::parse("1", "n", ProviderType::Azure, scope, &metadata).0, name)
    }

    #[tokio::test]
    async fn calls_at_the_same_time_share_one_fetch() {
        let (source, fetches) = (FetchedCredentials::<u32>::new(Handle::current()), Arc::new(AtomicUsize::new(0)));
        let get = |source: FetchedCredentials<u32>| {
            let fetches = Arc::clone(&fetches);
            async move {
                let fetch = async move {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    fetches.fetch_add(1, Ordering::Relaxed);
                    Ok((7, i64::MAX))
                };
                source.get(key("a"), fetch).await
            }
        };
        let all = futures::future::join_all((0..20).map(|_| get(source.clone()))).await;
        assert!(all.iter().all(|got| *got == Ok(7)));
        assert_eq!(fetches.load(Ordering::Relaxed), 1);
        source.refused(&key("a"), &7);
        assert_eq!(get(source.clone()).await, Ok(7));
        assert_eq!(fetches.load(Ordering::Relaxed), 2, "a refused credential is fetched anew");
    }

    #[tokio::test]
    async fn a_fetch_goes_on_when_its_caller_leaves() {
        let source = FetchedCredentials::<u32>::new(Handle::current());
        let slow = async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            Ok((7, i64::MAX))
        };
        let left = tokio::time::timeout(Duration::from_millis(1), source.get(key("a"), slow)).await;
        assert!(left.is_err());
        let other = async { Err(CredentialError::Unreachable) };
        assert_eq!(source.get(key("a"), other).await, Ok(7));
    }

    #[tokio::test]
    async fn a_failure_is_told_to_all_and_not_repeated_at_once() {
        let source = FetchedCredentials::<u32>::new(Handle::current());
        let failing = async { Err(CredentialError::Failed { status: 503 }) };
        assert_eq!(source.get(key("a"), failing).await, Err(CredentialError::Failed { status: 503 }));
        let better = async { Ok((7, i64::MAX)) };
        assert_eq!(source.get(key("a"), better).await, Err(CredentialError::Failed { status: 503 }));
    }
}
