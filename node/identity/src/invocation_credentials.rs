//! Credentials of running functions: each acts for the caller of one invocation on this node, and ends with it.
//!
//! A function reaches only the node that runs it, so that the credentials are kept in memory and are revoked at once.

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
/// Upper bound of the credentials of a node. The slots of functions are far fewer.
const CREDENTIALS_MAX: usize = 10_000;

/// Invocation that a credential belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvocationGrant {
    pub id: Uuid,
    /// Number of invocations around this one.
    pub depth: u32,
}

/// Credentials of the running invocations of a node. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct InvocationCredentials(Arc<Mutex<HashMap<blake3::Hash, KnownInvocation>>>);

#[derive(Clone, Debug)]
struct KnownInvocation {
    grant: InvocationGrant,
    asker: Asker,
    until: Instant,
}

/// Credential of a running invocation. Dropping it revokes the credential.
#[derive(Debug)]
pub struct InvocationCredential {
    pub secret: Secret,
    key: blake3::Hash,
    all: InvocationCredentials,
}

impl Drop for InvocationCredential {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.key);
    }
}

impl InvocationCredentials {
    fn find(&self, secret: &str) -> Option<KnownInvocation> {
        if !secret.starts_with(PREFIX) {
            return None;
        }
        let known = self.0.lock().get(&blake3::hash(secret.as_bytes())).cloned();
        known.filter(|known| known.until > Instant::now())
    }
}

impl Identity {
    /// Issues a credential with the rights of the caller for one invocation, which ends with its time or its drop.
    pub fn issue_invocation(
        &self,
        who: &Principal,
        around: Option<InvocationGrant>,
        time_max: Duration,
    ) -> Result<InvocationCredential, RecordsError> {
        if matches!(who.credential, Credential::Temporary { .. }) {
            return Err(unknown_credential());
        }
        let random = mechanism::random::<SECRET_BYTES>()?;
        let text = format!("{PREFIX}{}", blake3::Hash::from_bytes(random).to_hex());
        let key = blake3::hash(text.as_bytes());
        let grant = InvocationGrant { id: Uuid::new_v4(), depth: around.map_or(0, |around| around.depth + 1) };
        let known = KnownInvocation { grant, asker: Asker::of(who), until: Instant::now() + time_max };
        let mut all = self.invocations.0.lock();
        if all.len() >= CREDENTIALS_MAX {
            return Err(RecordsError::Busy("too many functions are running on this node: try again later".into()));
        }
        all.insert(key, known);
        Ok(InvocationCredential { secret: Secret::new(text), key, all: self.invocations.clone() })
    }

    /// Returns the invocation of a credential, or `None` for other credentials.
    pub fn invocation_of(&self, secret: &str) -> Option<InvocationGrant> {
        self.invocations.find(secret).map(|known| known.grant)
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
