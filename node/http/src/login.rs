//! What logins of people stand on: the provider that knows them, and how many may be under way here.

use std::fmt;
use std::sync::Arc;

use assay_node_auth::{Identity, LoginRules, PendingLogin};
use assay_node_records::{Begun, Records};
use futures::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::responses::refusal::{Kind, Refusal};

/// Requests of logins that are worked on at once, all of them together: anybody may send them, and some wait for the
/// provider. Beyond it the answer is 429.
const LOGIN_REQUESTS_AT_ONCE_MAX: usize = 64;

/// Who knows people.
pub trait Provider: Send + Sync {
    /// Where a browser goes to log in.
    fn authorize(&self, begun: Begun) -> BoxFuture<'static, Result<String, ProviderRefusal>>;

    /// Who came back with this code.
    fn identify(&self, code: String, pending: PendingLogin) -> BoxFuture<'static, Result<Identity, ProviderRefusal>>;
}

/// Why it is not known who somebody is; for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderRefusal {
    /// The provider does not answer, or not as it should.
    Unavailable(String),
    /// What was shown to it, or what it said, is not taken.
    Refused(String),
}

/// Every request of a login passes it.
pub struct Gate {
    pub provider: Arc<dyn Provider>,
    places: Arc<Semaphore>,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("places", &self.places.available_permits()).finish_non_exhaustive()
    }
}

/// A request of a login, while it is worked on.
#[derive(Debug)]
pub struct Passed<'g> {
    pub gate: &'g Gate,
    pub rules: &'g LoginRules,
    _place: OwnedSemaphorePermit,
}

impl Gate {
    pub fn new(provider: Arc<dyn Provider>) -> Gate {
        Gate { provider, places: Arc::new(Semaphore::new(LOGIN_REQUESTS_AT_ONCE_MAX)) }
    }

    /// Refuses where nobody logs in, and where too many do.
    pub fn pass<'g>(gate: Option<&'g Gate>, records: &'g Records) -> Result<Passed<'g>, Refusal> {
        let (Some(gate), Some(rules)) = (gate, records.login_rules()) else {
            let why = "people do not log in here: no provider is configured; the settings `oidc.issuer`, `oidc.client_id` and \
                       `http.public_url` are missing";
            return Err(Refusal::new(Kind::NotFound, why));
        };
        Ok(Passed { gate, rules, _place: gate.place()? })
    }

    fn place(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let too_many = |_| Refusal::new(Kind::Busy, "too many people log in at once; try again in a moment");
        Arc::clone(&self.places).try_acquire_owned().map_err(too_many)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nobody;

    impl Provider for Nobody {
        fn authorize(&self, _: Begun) -> BoxFuture<'static, Result<String, ProviderRefusal>> {
            Box::pin(async { Err(ProviderRefusal::Unavailable("nobody is there".into())) })
        }

        fn identify(&self, _: String, _: PendingLogin) -> BoxFuture<'static, Result<Identity, ProviderRefusal>> {
            Box::pin(async { Err(ProviderRefusal::Unavailable("nobody is there".into())) })
        }
    }

    #[test]
    fn so_many_are_worked_on_at_once_and_one_more_when_one_is_done() {
        let gate = Gate::new(Arc::new(Nobody));
        let mut places: Vec<_> =
            (0..LOGIN_REQUESTS_AT_ONCE_MAX).map(|_| gate.place().expect("there is a place")).collect();
        assert_eq!(gate.place().expect_err("none is left").kind, Kind::Busy);
        drop(places.pop());
        drop(gate.place().expect("there is a place again"));
    }
}
