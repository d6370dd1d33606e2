//! Credentials of running functions: each worker has one secret, which acts for the caller of the call that runs.
//!
//! Between calls the secret is refused. A function reaches only the node that runs it, so that the secrets are kept in
//! memory and are revoked at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_node_auth::{Asker, Credential, Principal, Secret};
use assay_node_records::RecordsError;
use assay_node_records::mechanism::{self, CatalogView, CredentialScope, no_organization, unknown_credential};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::Identity;

/// Start of every credential of an invocation.
const PREFIX: &str = "assay-invocation-";
/// Bytes of randomness of a credential.
const SECRET_BYTES: usize = 32;
/// Upper bound of the secrets of a node. Its workers are far fewer.
const CREDENTIALS_MAX: usize = 10_000;

/// Invocation that a credential belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvocationGrant {
    pub id: Uuid,
    /// Number of invocations around this one.
    pub depth: u32,
}

/// Secrets of the workers of a node, with the invocation that each acts for. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct InvocationCredentials(Arc<Mutex<HashMap<blake3::Hash, Option<KnownInvocation>>>>);

#[derive(Clone, Debug)]
struct KnownInvocation {
    grant: InvocationGrant,
    asker: Asker,
    until: Instant,
}

/// Secret of a worker. Dropping it revokes the secret.
#[derive(Debug)]
pub struct WorkerCredential {
    pub secret: Secret,
    key: blake3::Hash,
    all: InvocationCredentials,
}

/// Loan of a worker's secret to one invocation. Dropping it ends the loan.
#[derive(Debug)]
pub struct CredentialLoan {
    key: blake3::Hash,
    all: InvocationCredentials,
}

impl Drop for WorkerCredential {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.key);
    }
}

impl Drop for CredentialLoan {
    fn drop(&mut self) {
        if let Some(lent) = self.all.0.lock().get_mut(&self.key) {
            *lent = None;
        }
    }
}

impl InvocationCredentials {
    /// Adds the secret of a new worker.
    fn issue(&self, random: [u8; SECRET_BYTES]) -> Result<WorkerCredential, RecordsError> {
        let text = format!("{PREFIX}{}", blake3::Hash::from_bytes(random).to_hex());
        let key = blake3::hash(text.as_bytes());
        let mut all = self.0.lock();
        if all.len() >= CREDENTIALS_MAX {
            return Err(RecordsError::Busy("too many functions are running on this node: try again later".into()));
        }
        all.insert(key, None);
        Ok(WorkerCredential { secret: Secret::new(text), key, all: self.clone() })
    }

    /// Lends a secret, which no other invocation has.
    fn lend(&self, secret: &str, known: KnownInvocation) -> Result<CredentialLoan, RecordsError> {
        let key = blake3::hash(secret.as_bytes());
        let mut all = self.0.lock();
        let place = all.get_mut(&key).filter(|lent| lent.is_none());
        let place = place.ok_or_else(|| RecordsError::Internal("the secret of a worker cannot be lent".into()))?;
        *place = Some(known);
        Ok(CredentialLoan { key, all: self.clone() })
    }

    fn find(&self, secret: &str) -> Option<KnownInvocation> {
        if !secret.starts_with(PREFIX) {
            return None;
        }
        let known = self.0.lock().get(&blake3::hash(secret.as_bytes())).cloned().flatten();
        known.filter(|known| known.until > Instant::now())
    }

    /// Returns the invocation of a credential, or `None` for credentials of other kinds.
    ///
    /// The secret of a worker without an invocation is an error. It may be lent a moment later, and must never pass for a
    /// credential of another kind.
    fn grant_of(&self, secret: &str) -> Result<Option<InvocationGrant>, RecordsError> {
        match self.find(secret) {
            Some(known) => Ok(Some(known.grant)),
            None if secret.starts_with(PREFIX) => Err(unknown_credential()),
            None => Ok(None),
        }
    }
}

impl Identity {
    /// Issues the secret of a new worker, which is refused until it is lent to an invocation.
    pub fn issue_worker_credential(&self) -> Result<WorkerCredential, RecordsError> {
        self.invocations.issue(mechanism::random::<SECRET_BYTES>()?)
    }

    /// Lends the secret of a worker to one invocation, which has the rights of its caller until the time is over.
    ///
    /// `depth` is the number of invocations around it.
    pub fn lend_worker_credential(
        &self,
        secret: &str,
        who: &Principal,
        depth: u32,
        time_max: Duration,
    ) -> Result<CredentialLoan, RecordsError> {
        if matches!(who.credential, Credential::Temporary { .. }) {
            return Err(unknown_credential());
        }
        let grant = InvocationGrant { id: Uuid::new_v4(), depth };
        self.invocations
            .lend(secret, KnownInvocation { grant, asker: Asker::of(who), until: Instant::now() + time_max })
    }

    /// Returns the invocation of a credential, or `None` for credentials of other kinds.
    ///
    /// It has to be asked before the principal. A secret of a worker is refused unless it is lent at both moments.
    pub fn invocation_of(&self, secret: &str) -> Result<Option<InvocationGrant>, RecordsError> {
        self.invocations.grant_of(secret)
    }

    /// Returns the principal of an asker with its present rights, for work that continues without a request.
    ///
    /// There is none once its credential or its user has ended.
    pub async fn principal_now(&self, asker: &Asker) -> Result<Principal, RecordsError> {
        self.catalog.check_heard().await?;
        self.known_by(|state| principal_of(state, asker, None)).await
    }

    /// Returns how to find the principal of an invocation's credential, or `None` for other credentials.
    pub(crate) fn invocation_principal(
        &self,
        secret: &str,
        org_name: Option<&str>,
    ) -> Option<impl Fn(&CatalogView<'_>) -> Result<Principal, RecordsError> + use<>> {
        let known = self.invocations.find(secret)?;
        let wanted = org_name.map(str::to_owned);
        Some(move |state: &CatalogView<'_>| principal_of(state, &known.asker, wanted.as_deref()))
    }
}

/// Returns the principal with its present rights. It has none if the credential of the caller has ended.
fn principal_of(state: &CatalogView<'_>, asker: &Asker, wanted: Option<&str>) -> Result<Principal, RecordsError> {
    let Asker::User { org, user, credential, impersonator } = asker else { return Err(unknown_credential()) };
    let own = CredentialScope::of(state, *credential)?;
    let scope = if impersonator.is_some() { own.acting_as(state, *user)? } else { own };
    let organizations = scope.organizations(state);
    let organization = organizations.iter().find(|found| found.id == org.0).ok_or_else(unknown_credential)?;
    let principal = scope.principal(state, organization)?;
    match wanted {
        Some(name) if name != principal.org_name => Err(no_organization(name)),
        _ => Ok(principal),
    }
}

#[cfg(test)]
mod tests {
    use assay_node_auth::Job;

    use super::*;

    fn invocation(depth: u32, time_max: Duration) -> KnownInvocation {
        let grant = InvocationGrant { id: Uuid::from_u128(u128::from(depth)), depth };
        KnownInvocation { grant, asker: Asker::Job(Job::Functions), until: Instant::now() + time_max }
    }

    #[test]
    fn a_secret_acts_for_one_invocation_at_a_time_and_for_none_between_them() {
        let all = InvocationCredentials::default();
        let worker = all.issue([1; SECRET_BYTES]).expect("a secret");
        let secret = worker.secret.expose();
        let hour = Duration::from_secs(3_600);
        let depth = || all.grant_of(secret).map(|grant| grant.map(|grant| grant.depth));
        assert!(depth().is_err(), "no invocation runs");
        for number in [0, 3] {
            let loan = all.lend(secret, invocation(number, hour)).expect("a loan");
            assert!(matches!(depth(), Ok(Some(found)) if found == number));
            assert!(all.lend(secret, invocation(9, hour)).is_err(), "it is lent already");
            drop(loan);
            assert!(depth().is_err(), "the invocation is over");
        }
        let _late = all.lend(secret, invocation(0, Duration::ZERO)).expect("a loan");
        assert!(depth().is_err(), "its time is over");
        let secret = secret.to_owned();
        drop(worker);
        assert!(all.grant_of(&secret).is_err() && all.lend(&secret, invocation(0, hour)).is_err(), "it is revoked");
    }

    #[test]
    fn credentials_of_other_kinds_belong_to_no_invocation() {
        let all = InvocationCredentials::default();
        assert!(matches!(all.grant_of("sk-other"), Ok(None)));
        assert!(all.grant_of("assay-invocation-forged").is_err());
    }
}
