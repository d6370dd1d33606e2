//! Interface of the OpenID provider, and the limit of concurrent login requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use assay_node_auth::{IdTokenClaims, PendingLogin};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::logins::StartedLogin;

/// Upper bound of concurrent login requests. Anybody can send them, and some wait for the provider.
const LOGIN_REQUESTS_AT_ONCE_MAX: usize = 64;
/// Upper bound of the registrations of clients in one window. Anybody can send them.
const REGISTRATIONS_MAX: u32 = 60;
/// Window of that bound.
const REGISTRATIONS_WINDOW: Duration = Duration::from_secs(60);

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
    registrations: Mutex<RegistrationWindow>,
}

/// Registrations since the start of a window.
#[derive(Debug)]
struct RegistrationWindow {
    start: Instant,
    count: u32,
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
        let registrations = Mutex::new(RegistrationWindow { start: Instant::now(), count: 0 });
        LoginGate { provider, places: Arc::new(Semaphore::new(LOGIN_REQUESTS_AT_ONCE_MAX)), registrations }
    }

    /// Counts a registration of a client, and returns whether it is within the limit.
    pub fn admits_registration(&self) -> bool {
        let mut window = self.registrations.lock();
        if window.start.elapsed() >= REGISTRATIONS_WINDOW {
            *window = RegistrationWindow { start: Instant::now(), count: 0 };
        }
        window.count = window.count.saturating_add(1);
        window.count <= REGISTRATIONS_MAX
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

    #[tokio::test(start_paused = true)]
    async fn so_many_clients_register_in_a_minute() {
        let gate = LoginGate::new(Arc::new(Nobody));
        assert!((0..REGISTRATIONS_MAX).all(|_| gate.admits_registration()));
        assert!(!gate.admits_registration());
        tokio::time::advance(REGISTRATIONS_WINDOW).await;
        assert!(gate.admits_registration());
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
