//! Temporary credentials of the AI gateway: how they are issued, used and ended (G-24).
//!
//! ```text
//! issue   an API key, a service token or a login -> an audit entry, a record, and a signed token
//! use     token -> record -> the credential that issued it -> its user, for model calls only
//! end     at the expiry, or with the credential that issued it
//! ```
//! [`Identity::authenticate`] refuses temporary credentials, so that only routes that explicitly accept them can be
//! called.

use std::sync::Arc;

use assay_node_auth::{
    Credential, Principal, Secret, TEMPORARY_SECRET_BYTES, TemporaryGrant, TemporaryKey, TemporaryTerms,
};
use assay_node_records::RecordsError;
use assay_node_records::kinds::login::Login;
use assay_node_records::kinds::temporary_credential::{
    TEMPORARY_CREDENTIALS_PER_USER_MAX, TemporaryCredential, index_key,
};
use assay_node_records::mechanism::{self, By, CatalogView, check_is_self, unexpected, unknown_credential, within};
use assay_node_secrets::KeyId;
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, Record, RecordKind};
use uuid::Uuid;

use crate::Identity;
use crate::logins::{deleted, now};

/// Default lifetime of a temporary credential.
pub const TEMPORARY_SECONDS_DEFAULT: u32 = 600;
/// Maximum lifetime of a temporary credential.
pub const TEMPORARY_SECONDS_MAX: u32 = 86_400;
/// Upper bound of attempts. An attempt fails only if another writer succeeded.
const ATTEMPTS_MAX: usize = 8;
/// Upper bound of the records that one sweep deletes.
const SWEPT_MAX: usize = 10_000;
/// Upper bound of the deletes in one log entry.
const SWEPT_AT_ONCE_MAX: usize = 100;

/// Parameters of a new temporary credential.
#[derive(Clone, Debug, PartialEq)]
pub struct NewTemporary {
    pub terms: TemporaryTerms,
    pub seconds: u32,
}

/// Authenticated caller of models.
#[derive(Clone, Debug)]
pub struct ModelCaller {
    pub principal: Principal,
    /// Terms of a temporary credential; `None` for other credentials.
    pub temporary: Option<TemporaryGrant>,
}

impl Identity {
    /// Authenticates a caller of models, who may have a temporary credential.
    pub async fn authenticate_model_caller(
        &self,
        secret: &str,
        org_name: Option<&str>,
        other: Option<&str>,
    ) -> Result<ModelCaller, RecordsError> {
        let principal = self.known(secret, org_name, other).await?;
        let temporary = match principal.credential {
            Credential::Temporary { id, .. } => Some(self.grant(id)?),
            _ => None,
        };
        Ok(ModelCaller { principal, temporary })
    }

    /// Issues a temporary credential for the caller in its organization and returns the token.
    pub async fn issue_temporary(&self, who: &Principal, wanted: NewTemporary) -> Result<Secret, RecordsError> {
        check_may_issue(who)?;
        let key = TemporaryKey::of(self.current_master_key()?);
        let begin = now();
        let latest = begin + i64::from(wanted.seconds.min(TEMPORARY_SECONDS_MAX));
        let until = self.catalog.look(|view| end_of(view, who, begin, latest)).await?;
        let grant = TemporaryGrant { id: mechanism::new_id(), until, terms: wanted.terms };
        let random = mechanism::random::<TEMPORARY_SECRET_BYTES>()?;
        let token = key.sign(&grant, &who.org_name, begin, &random).ok_or_else(|| {
            RecordsError::TooLarge("the model and the logging of the request are too long for a credential".into())
        })?;
        self.check_temporary_count(who.org).await?;
        self.put_temporary(who, grant).await?;
        Ok(Secret::new(token))
    }

    /// Refuses another temporary credential if the organization has the maximum number of records.
    async fn check_temporary_count(&self, org: OrgId) -> Result<(), RecordsError> {
        let check = || self.records.check_record_count(RecordKind::TEMPORARY_CREDENTIAL, org);
        match check() {
            // Expired records count until a sweep deletes them.
            Err(full) if self.sweep_temporary().await? == 0 => Err(full),
            Err(_) => check(),
            Ok(()) => Ok(()),
        }
    }

    async fn put_temporary(&self, who: &Principal, grant: TemporaryGrant) -> Result<(), RecordsError> {
        let TemporaryGrant { id, until, terms } = grant;
        for _ in 0..ATTEMPTS_MAX {
            let (index, over) = self.catalog.peek(|view| free_index(view, who, id, now()))?;
            if let Some(over) = over {
                self.delete_records(std::slice::from_ref(&over)).await?;
            }
            let terms = terms.clone();
            let record = TemporaryCredential { user_id: who.user, parent: who.credential, index, until, terms };
            let put = put(who.org, id, &record)?;
            match self.catalog.propose_one(By::Caller(who), CatalogCommand::Put(put)).await? {
                CatalogOutcome::Put { made: true, .. } => return Ok(()),
                CatalogOutcome::Taken { .. } => self.catalog.fence().await?,
                other => return Err(unexpected(&other)),
            }
        }
        let said = "other temporary credentials of this user were issued at the same time: try again";
        Err(RecordsError::Busy(said.into()))
    }

    /// Deletes expired temporary credentials. Returns their number.
    pub(crate) async fn sweep_temporary(&self) -> Result<u64, RecordsError> {
        let now = now();
        let is_over =
            |record: &&Arc<Record>| TemporaryCredential::read(record).is_ok_and(|temporary| temporary.is_over(now));
        let over: Vec<Arc<Record>> = self
            .catalog
            .peek(|view| view.all(RecordKind::TEMPORARY_CREDENTIAL).filter(is_over).take(SWEPT_MAX).cloned().collect());
        self.delete_swept(&over).await
    }

    /// Deletes records, in several log entries if necessary. Returns the number of deleted records.
    pub(crate) async fn delete_swept(&self, records: &[Arc<Record>]) -> Result<u64, RecordsError> {
        let mut swept = 0;
        for part in records.chunks(SWEPT_AT_ONCE_MAX) {
            swept += self.delete_records(part).await?;
        }
        Ok(swept)
    }

    /// Deletes records at the revision that was read. Returns the number of deleted records.
    async fn delete_records(&self, records: &[Arc<Record>]) -> Result<u64, RecordsError> {
        let deletes = records.iter().map(|record| CatalogCommand::Delete(deleted(record))).collect();
        let mut count = 0;
        for outcome in self.catalog.propose(By::System, deletes).await? {
            match outcome {
                CatalogOutcome::Deleted { .. } => count += 1,
                CatalogOutcome::Stale { .. } => {}
                other => return Err(unexpected(&other)),
            }
        }
        Ok(count)
    }

    /// Returns the id that a temporary credential of this cluster names; `None` for anything else.
    pub(crate) fn temporary_of(&self, shown: &str) -> Result<Option<Uuid>, RecordsError> {
        let master = TemporaryKey::of_token(shown).and_then(|id| KeyId::parse(&id));
        let key = master.map(|id| self.master_key(id)).transpose()?.flatten();
        Ok(key.and_then(|key| TemporaryKey::of(key).verified(shown, now())))
    }

    fn grant(&self, id: Uuid) -> Result<TemporaryGrant, RecordsError> {
        self.catalog.peek(|view| {
            let record = view.get(RecordKind::TEMPORARY_CREDENTIAL, id).ok_or_else(unknown_credential)?;
            Ok(TemporaryCredential::read(record)?.grant(id))
        })
    }
}

/// Returns the error for temporary credentials in requests other than model calls.
pub(crate) fn models_only() -> RecordsError {
    let said = "a temporary credential can only call models: send an API key or another token for this request";
    RecordsError::Forbidden(said.into())
}

/// Refuses credentials that cannot issue others. Only credentials with a record can be checked at every use.
fn check_may_issue(who: &Principal) -> Result<(), RecordsError> {
    let refuse = |why: &str| Err(RecordsError::Forbidden(why.into()));
    match who.credential {
        Credential::ApiKey(_) | Credential::ServiceToken(_) | Credential::Login(_) => check_is_self(who),
        Credential::Temporary { .. } => {
            refuse("a temporary credential cannot issue another one: send an API key, a service token or a login")
        }
        Credential::Jwt(_) => refuse(
            "a JWT of another issuer cannot issue temporary credentials: send an API key, a service token or a login",
        ),
    }
}

/// Returns the expiry of a new credential, at most that of the login of the caller.
fn end_of(view: &CatalogView<'_>, who: &Principal, begin: i64, latest: i64) -> Result<i64, RecordsError> {
    within(view, who, who.org)?.ok_or_else(unknown_credential)?;
    let until = match who.credential {
        Credential::Login(id) => {
            let login = Login::read(view.get(RecordKind::LOGIN, id).ok_or_else(unknown_credential)?)?;
            latest.min(login.until)
        }
        _ => latest,
    };
    if until <= begin {
        return Err(unknown_credential());
    }
    Ok(until)
}

/// Returns a free index for a credential of the caller, or an index with its expired record. The search starts at a
/// random index, so that concurrent requests rarely choose the same one.
fn free_index(
    view: &CatalogView<'_>,
    who: &Principal,
    id: Uuid,
    now: i64,
) -> Result<(u32, Option<Arc<Record>>), RecordsError> {
    let [.., a, b, c, d] = id.into_bytes();
    let first = u32::from_be_bytes([a, b, c, d]) % TEMPORARY_CREDENTIALS_PER_USER_MAX;
    for step in 0..TEMPORARY_CREDENTIALS_PER_USER_MAX {
        let index = (first + step) % TEMPORARY_CREDENTIALS_PER_USER_MAX;
        let Some(record) = view.find(&index_key(who.org, who.user, index)) else { return Ok((index, None)) };
        if TemporaryCredential::read(record)?.is_over(now) {
            return Ok((index, Some(Arc::clone(record))));
        }
    }
    Err(RecordsError::BadRequest(format!(
        "the user has {TEMPORARY_CREDENTIALS_PER_USER_MAX} valid temporary credentials in the organization, which is \
         the maximum: request a smaller `ttl_seconds`"
    )))
}

fn put(org: OrgId, id: Uuid, record: &TemporaryCredential) -> Result<PutRecord, RecordsError> {
    let body = serde_json::to_vec(record)
        .map_err(|error| RecordsError::Internal(format!("a temporary credential: {error}")))?;
    Ok(PutRecord {
        kind: RecordKind::TEMPORARY_CREDENTIAL,
        id,
        org: Some(org),
        expect: Expect::Absent,
        keys: vec![index_key(org, record.user_id, record.index)],
        body,
        at: mechanism::now_micros(),
    })
}
