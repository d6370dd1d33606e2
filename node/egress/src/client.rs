//! Client for outbound calls, which passes a request through the policy to a connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::{Request, StatusCode};
use parking_lot::RwLock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout_at};

use crate::call::{CONNECT_MAX, EgressOptions, EgressRequest, EgressTimes, WholeBody};
use crate::dial::{DialTarget, HttpConnection, addresses_of};
use crate::error::{EgressError, EgressFailure};
use crate::policy::EgressPolicy;
use crate::pool::{CallPermit, ConnectionPool, PoolCounts, PoolKey, PoolLimits};
use crate::proxy::OutboundProxy;
use crate::purpose::EgressPurpose;
use crate::resolver::{NameResolver, SystemResolver};
use crate::response::{BodyLimits, EgressResponse, with_causes};
use crate::tls::TrustedRoots;
use crate::url::{EgressUrl, UrlOrigin, UrlScheme};

/// Immutable parts of a client.
#[derive(Debug)]
pub struct EgressConfig {
    pub roots: TrustedRoots,
    pub resolver: Arc<dyn NameResolver>,
    pub proxy: Option<OutboundProxy>,
    pub pool: PoolLimits,
}

impl EgressConfig {
    /// Returns a configuration with the system's resolver and without a proxy.
    pub fn new(roots: TrustedRoots) -> EgressConfig {
        EgressConfig { roots, resolver: Arc::new(SystemResolver::default()), proxy: None, pool: PoolLimits::default() }
    }
}

/// Client for all outbound calls of a server. Clones share their connections.
#[derive(Clone, Debug)]
pub struct EgressClient {
    config: Arc<EgressConfig>,
    policy: Arc<RwLock<NumberedPolicy>>,
    pool: Arc<ConnectionPool>,
}

/// Policy with the number of its predecessors.
#[derive(Clone, Debug)]
struct NumberedPolicy {
    number: u64,
    policy: Arc<EgressPolicy>,
}

/// Time limits of a call in progress.
#[derive(Clone, Copy, Debug)]
struct CallEnds {
    total: Instant,
    times: EgressTimes,
}

impl CallEnds {
    /// Returns the deadline of a step that begins now.
    fn step(&self, limit: Duration) -> Instant {
        self.total.min(Instant::now() + limit)
    }
}

impl EgressClient {
    pub fn new(config: EgressConfig, policy: EgressPolicy) -> EgressClient {
        let pool = ConnectionPool::new(config.pool);
        let policy = NumberedPolicy { number: 0, policy: Arc::new(policy) };
        EgressClient { config: Arc::new(config), policy: Arc::new(RwLock::new(policy)), pool }
    }

    /// Replaces the policy. Calls in progress continue, but their connections are not reused.
    pub fn set_policy(&self, policy: EgressPolicy) {
        let mut current = self.policy.write();
        *current = NumberedPolicy { number: current.number + 1, policy: Arc::new(policy) };
        drop(current);
        self.pool.clear();
    }

    /// Returns the authorities that calls trust, which also check certificates before they are saved.
    pub fn roots(&self) -> &TrustedRoots {
        &self.config.roots
    }

    /// Sends a request and returns once the head of the response is available. Redirects are not followed.
    ///
    /// Dropping the future or the body of the response closes the connection.
    pub async fn send(&self, request: &EgressRequest, options: &EgressOptions) -> Result<EgressResponse, EgressError> {
        let times = options.times.bounded();
        let ends = CallEnds { total: Instant::now() + times.total, times };
        let current = self.policy.read().clone();
        let http = request.to_http()?;
        let key = PoolKey {
            organization: options.organization,
            purpose: options.purpose,
            origin: request.url.origin().clone(),
            tls: options.tls.clone(),
            policy: current.number,
        };
        let permit = self.pool.permit(key, ends.step(times.connect)).await;
        let permit = permit.ok_or_else(|| {
            let why = format!("{}: too many calls under way", request.url.origin());
            EgressError::nothing_sent(EgressFailure::Busy, why)
        })?;
        let (permit, http) = match permit.kept_connection().await {
            None => (permit, http),
            Some(connection) => match exchange(connection, permit, http, options, ends).await {
                Ok(response) => return Ok(response),
                // The connection was closed while it was idle, so the request is repeated on a new one.
                Err(FailedExchange::NothingSent { permit, .. }) => (permit, request.to_http()?),
                Err(FailedExchange::Error(error)) => return Err(error),
            },
        };
        // The future is boxed, because most calls already have a connection.
        let connection = Box::pin(self.dial(request, options, &current.policy, ends)).await?;
        exchange(connection, permit, http, options, ends).await.map_err(EgressError::from)
    }

    async fn dial(
        &self,
        request: &EgressRequest,
        options: &EgressOptions,
        policy: &EgressPolicy,
        ends: CallEnds,
    ) -> Result<HttpConnection, EgressError> {
        let origin = request.url.origin();
        let until = ends.step(ends.times.connect);
        let not_reached = |why| not_reached(origin, options.purpose, why);
        let resolver = &*self.config.resolver;
        let addresses = self.checked_addresses(options.purpose, &request.url, policy, until).await?;
        let tls = match origin.scheme {
            UrlScheme::Http => None,
            UrlScheme::Https => {
                let config = self.config.roots.client_config(options.tls.as_deref());
                Some(config.map_err(|error| not_reached(error.to_string()))?)
            }
        };
        let target =
            DialTarget { origin, addresses: &addresses, tls, proxy: self.config.proxy.as_ref(), resolver, until };
        target.dial().await.map_err(not_reached)
    }

    /// Resolves the host of a URL, and returns the addresses that the policy allows.
    async fn checked_addresses(
        &self,
        purpose: EgressPurpose,
        url: &EgressUrl,
        policy: &EgressPolicy,
        until: Instant,
    ) -> Result<Vec<SocketAddr>, EgressError> {
        let origin = url.origin();
        let resolved = timeout_at(until, addresses_of(&origin.host, &*self.config.resolver)).await;
        let resolved = resolved.unwrap_or_else(|_| Err("the name was not resolved in time".to_owned()));
        let resolved = resolved.map_err(|why| not_reached(origin, purpose, why))?;
        policy
            .check(purpose, url, &resolved)
            .map_err(|why| EgressError::nothing_sent(EgressFailure::Refused, format!("{origin} for {purpose}: {why}")))
    }

    /// Opens a connection to the host and port of a URL, over which a function speaks a protocol of its own.
    pub async fn open_stream(
        &self,
        purpose: EgressPurpose,
        url: &EgressUrl,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>, EgressError> {
        let until = Instant::now() + CONNECT_MAX;
        let policy = Arc::clone(&self.policy.read().policy);
        let addresses = self.checked_addresses(purpose, url, &policy, until).await?;
        let (origin, resolver, proxy) = (url.origin(), &*self.config.resolver, self.config.proxy.as_ref());
        let target = DialTarget { origin, addresses: &addresses, tls: None, proxy, resolver, until };
        target.open().await.map_err(|why| not_reached(origin, purpose, why))
    }

    /// Returns numbers for metrics.
    pub fn counts(&self) -> PoolCounts {
        self.pool.counts()
    }
}

fn not_reached(origin: &UrlOrigin, purpose: EgressPurpose, why: String) -> EgressError {
    EgressError::nothing_sent(EgressFailure::NotReached, format!("{origin} for {purpose}: {why}"))
}

/// Failure of an exchange without a response.
enum FailedExchange {
    /// The connection was closed before anything was written.
    NothingSent {
        permit: CallPermit,
        reason: String,
    },
    Error(EgressError),
}

impl From<FailedExchange> for EgressError {
    fn from(failed: FailedExchange) -> EgressError {
        match failed {
            FailedExchange::NothingSent { reason, .. } => EgressError::nothing_sent(EgressFailure::NotReached, reason),
            FailedExchange::Error(error) => error,
        }
    }
}

async fn exchange(
    mut connection: HttpConnection,
    permit: CallPermit,
    http: Request<WholeBody>,
    options: &EgressOptions,
    ends: CallEnds,
) -> Result<EgressResponse, FailedExchange> {
    let origin = &permit.key.origin;
    let before = connection.written.get();
    let until = ends.step(ends.times.first_byte);
    options.departure.mark();
    let response = match timeout_at(until, connection.requests.try_send_request(http)).await {
        Ok(Ok(response)) => response,
        Ok(Err(mut error)) => {
            // Hyper returns a request that it did not accept. An accepted one may still be unwritten.
            let nothing_sent = error.take_message().is_some() || connection.written.get() == before;
            let reason = format!("{origin}: {}", with_causes(&error.into_error()));
            return Err(if nothing_sent {
                options.departure.clear();
                FailedExchange::NothingSent { permit, reason }
            } else {
                FailedExchange::Error(EgressError::no_response(EgressFailure::NoHead, reason))
            });
        }
        Err(_) => {
            let why = format!("{origin}: no head of a response in time");
            return Err(FailedExchange::Error(EgressError::no_response(EgressFailure::HeadLate, why)));
        }
    };
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let why = format!("{origin}: switched protocols unasked");
        return Err(FailedExchange::Error(EgressError::no_response(EgressFailure::NoHead, why)));
    }
    let limits = BodyLimits {
        bytes_max: options.response_bytes_max,
        between_chunks: ends.times.between_chunks,
        until: ends.total,
    };
    Ok(EgressResponse::new(response, connection, permit, limits))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use hyper::client::conn::http1::handshake;
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use uuid::Uuid;

    use super::*;
    use crate::{EgressProgress, EgressPurpose, EgressSettings, OwnEndpoints};

    /// Creates a connection that accepts a request and then finds that the peer has closed it.
    async fn closing_connection() -> HttpConnection {
        let (near, far) = tokio::io::duplex(1024);
        let (requests, driver) = handshake(TokioIo::new(near)).await.unwrap();
        let mut driver = Box::pin(driver);
        assert!((&mut driver).now_or_never().is_none(), "it waits for a request");
        drop(far);
        let driver = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            drop(driver.await);
        });
        HttpConnection::of_parts(requests, driver.abort_handle())
    }

    /// Returns a client for servers on this machine, with a connection of a pool that closes once it has a request.
    async fn client_with_closing_connection(request: &EgressRequest, options: &EgressOptions) -> EgressClient {
        let settings = "allow = [{ cidr = \"127.0.0.1\", ports = [\"1-65535\"], for = [\"models\"] }]";
        let settings: EgressSettings = toml::from_str(settings).unwrap();
        let policy = EgressPolicy::new(&settings, OwnEndpoints::default()).unwrap();
        let client = EgressClient::new(EgressConfig::new(TrustedRoots::none()), policy);
        let key = PoolKey {
            organization: options.organization,
            purpose: options.purpose,
            origin: request.url.origin().clone(),
            tls: None,
            policy: 0,
        };
        let permit = client.pool.permit(key, Instant::now() + Duration::from_secs(1)).await.unwrap();
        permit.keep(closing_connection().await);
        assert_eq!(client.counts().idle, 1);
        client
    }

    #[tokio::test]
    async fn a_request_of_which_nothing_was_sent_goes_once_more_on_a_new_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"once") {
                socket.read_buf(&mut request).await.unwrap();
            }
            socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        });
        let request = EgressRequest::post(url.parse().unwrap(), bytes::Bytes::from_static(b"once"));
        let options = EgressOptions::new(EgressPurpose::Models, Uuid::nil());
        let client = client_with_closing_connection(&request, &options).await;
        assert_eq!(client.send(&request, &options).await.unwrap().status, StatusCode::OK);
        assert!(options.departure.is_marked());
        serving.await.unwrap();
    }

    #[tokio::test]
    async fn a_request_has_not_departed_on_a_connection_that_was_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        drop(listener);
        let request = EgressRequest::post(url.parse().unwrap(), bytes::Bytes::from_static(b"never"));
        let options = EgressOptions::new(EgressPurpose::Models, Uuid::nil());
        let client = client_with_closing_connection(&request, &options).await;
        let error = client.send(&request, &options).await.unwrap_err();
        assert_eq!(error.progress(), EgressProgress::NothingSent, "{error}");
        assert!(!options.departure.is_marked(), "no server has the request");
    }
}
