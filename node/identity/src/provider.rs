//! Interface of the OpenID provider, and the limit of concurrent login requests.

use std::fmt;
use std::sync::Arc;

use assay_node_auth::{IdTokenClaims, PendingLogin};
use futures::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::logins::StartedLogin;

/// Upper bound of concurrent login requests. Anybody can send them, and some wait for the provider.
const LOGIN_REQUESTS_AT_ONCE_MAX: usize = 64;

/// OpenID provider, which identifies people.
pub trait Provider: Send + Sync {
    /// Returns the URL at which a browser logs in.
    fn authorize(&self, begun: StartedLogin) -> BoxFuture<'static, Result<String, ProviderRefusal>>;

    /// Returns the claims about the person who returned with this code.
    fn identify(
        &self,
        code: String,
        pending: PendingLogin,
    ) -> BoxFuture<'static, Result<IdTokenClaims, ProviderRefusal>>;
}

/// Error of an identification, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderRefusal {
    /// The provider does not respond, or the response is invalid.
    Unavailable(String),
    /// The provider refused the code, or its token is invalid.
    Refused(String),
}

/// Gate for all requests of logins.
pub struct LoginGate {
    pub provider: Arc<dyn Provider>,
    places: Arc<Semaphore>,
}

impl fmt::Debug for LoginGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginGate").field("places", &self.places.available_permits()).finish_non_exhaustive()
    }
}

/// Permit for one login request, released on drop.
#[derive(Debug)]
pub struct LoginPermit {
    _place: OwnedSemaphorePermit,
}

impl LoginGate {
    pub fn new(provider: Arc<dyn Provider>) -> LoginGate {
        LoginGate { provider, places: Arc::new(Semaphore::new(LOGIN_REQUESTS_AT_ONCE_MAX)) }
    }

    /// Returns a permit for one request; `None` if the limit is reached.
    pub fn enter(&self) -> Option<LoginPermit> {
        Some(LoginPermit { _place: Arc::clone(&self.places).try_acquire_owned().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nobody;

    impl Provider for Nobody {
        fn authorize(&self, _: StartedLogin) -> BoxFuture<'static, Result<String, ProviderRefusal>> {
            Box::pin(async { Err(ProviderRefusal::Unavailable("nobody is there".into())) })
        }

        fn identify(&self, _: String, _: PendingLogin) -> BoxFuture<'static, Result<IdTokenClaims, ProviderRefusal>> {
            Box::pin(async { Err(ProviderRefusal::Unavailable("nobody is there".into())) })
        }
    }

    #[test]
    fn so_many_are_worked_on_at_once_and_one_more_when_one_is_done() {
        let gate = LoginGate::new(Arc::new(Nobody));
        let mut permits: Vec<_> =
            (0..LOGIN_REQUESTS_AT_ONCE_MAX).map(|_| gate.enter().expect("there is a place")).collect();
        assert!(gate.enter().is_none(), "none is left");
        drop(permits.pop());
        assert!(gate.enter().is_some(), "there is a place again");
    }
}
