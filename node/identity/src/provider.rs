//! Interface of logins to the OpenID provider, and an upper bound of concurrent login requests.

use std::fmt;
use std::sync::Arc;

use assay_node_auth::{IdTokenClaims, PendingLogin};
use futures::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::logins::StartedLogin;

/// Upper bound of the requests of logins that are worked on at once, all of them together: anybody may send them, and some
/// wait for the provider.
const LOGIN_REQUESTS_AT_ONCE_MAX: usize = 64;

/// An OpenID provider: identifies people.
pub trait Provider: Send + Sync {
    /// Returns the address at which a browser logs in.
    fn authorize(&self, begun: StartedLogin) -> BoxFuture<'static, Result<String, ProviderRefusal>>;

    /// Returns the claims about the person who returned with this code.
    fn identify(
        &self,
        code: String,
        pending: PendingLogin,
    ) -> BoxFuture<'static, Result<IdTokenClaims, ProviderRefusal>>;
}

/// Error of an identification; for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderRefusal {
    /// The provider does not answer, or not as it should.
    Unavailable(String),
    /// The code, or the answer of the provider, is not taken.
    Refused(String),
}

/// The gate that every request of a login passes.
pub struct LoginGate {
    pub provider: Arc<dyn Provider>,
    places: Arc<Semaphore>,
}

impl fmt::Debug for LoginGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginGate").field("places", &self.places.available_permits()).finish_non_exhaustive()
    }
}

/// The right to work on one request of a login; dropped when it is done.
#[derive(Debug)]
pub struct LoginPermit {
    _place: OwnedSemaphorePermit,
}

impl LoginGate {
    pub fn new(provider: Arc<dyn Provider>) -> LoginGate {
        LoginGate { provider, places: Arc::new(Semaphore::new(LOGIN_REQUESTS_AT_ONCE_MAX)) }
    }

    /// Returns the permit for one request; none where too many are worked on.
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
