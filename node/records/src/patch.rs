//! Changes of one record, which merge a patch into the stored body at the revision that was read.

use assay_node_auth::{Permission, Principal};
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, Record};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::audit::By;
use crate::commit::unexpected;
use crate::draft::{self, Body, Frame};
use crate::error::RecordsError;
use crate::kind::{Checked, Kind, Naming};
use crate::kinds::organization::member_key;
use crate::read::{VisibleRecord, visible};
use crate::sealed_values::{self, Writing};
use crate::{Records, edge};

/// Upper bound of attempts. An attempt fails only if another writer succeeded.
const ATTEMPTS_MAX: usize = 8;

impl Records {
    pub async fn patch(
        &self,
        who: &Principal,
        kind: &'static Kind,
        id: Uuid,
        mut body: Map<String, Value>,
    ) -> Result<Value, RecordsError> {
        let secret = sealed_values::taken(kind, &mut body)?;
        draft::check_taken_out(kind, &body)?;
        // Even a patch without effect must be compared with the current state.
        self.catalog.fresh().await?;
        for _ in 0..ATTEMPTS_MAX {
            let VisibleRecord { record, who } =
                self.catalog.look(|state| visible(state, who, kind, id, Permission::Update)).await?;
            let stored = draft::read(&record)?;
            let mut sent = body.clone();
            if let Some(fold) = kind.fold {
                fold(&stored, &mut sent)?;
            }
            let mut changed = match draft::patched(kind, &stored, sent)? {
                Some(changed) => changed,
                None if secret.is_some() => stored.clone(),
                None => return self.answer(kind, &record),
            };
            self.check_creator(&who, &stored, &changed)?;
            if let Some(check) = kind.check {
                self.catalog.peek(|view| {
                    check(&Checked { view, who: &who, id: Some(id), before: Some(&stored), body: &changed })
                })?;
            }
            let (org, user, at) = (who.org, who.user, edge::now_micros());
            self.sign_rule(kind, &who, Some(&stored), &mut changed).await?;
            let writing = Writing { kind, org, id, user, at, before: Some(&stored) };
            self.seal(&writing, secret.as_ref(), &mut changed).await?;
            match self.catalog.propose_one(By::Caller(&who), CatalogCommand::Put(put(kind, &record, &changed))).await? {
                CatalogOutcome::Put { .. } => {
                    return Ok(self.joined(kind, draft::shown(kind, &Frame::of(&record), changed)));
                }
                CatalogOutcome::Taken { key, .. } => {
                    let said = format!("another {} already has the name `{}`", kind.name, key.name);
                    return Err(RecordsError::Taken(said));
                }
                CatalogOutcome::Stale { .. } => self.catalog.fence().await?,
                other => return Err(unexpected(&other)),
            }
        }
        Err(RecordsError::Busy(format!("concurrent changes to this {} prevented the request: try again", kind.name)))
    }

    /// Refuses a new creator who is not a member of the organization.
    fn check_creator(&self, who: &Principal, stored: &Body, changed: &Body) -> Result<(), RecordsError> {
        let user = draft::id_in(changed, "user_id").filter(|user| draft::id_in(stored, "user_id") != Some(*user));
        let missing = |user: &Uuid| self.catalog.peek(|state| state.find(&member_key(who.org, *user)).is_none());
        match user.filter(missing) {
            Some(user) => Err(RecordsError::BadRequest(format!("`user_id`: no user {user} is in the organization"))),
            None => Ok(()),
        }
    }
}

/// Returns the write for a patch of a stored record; `None` if nothing changes.
pub fn patched(kind: &Kind, record: &Record, mut sent: Body) -> Result<Option<PutRecord>, RecordsError> {
    let stored = draft::read(record)?;
    if let Some(fold) = kind.fold {
        fold(&stored, &mut sent)?;
    }
    Ok(draft::patched(kind, &stored, sent)?.map(|changed| put(kind, record, &changed)))
}

/// Returns the write that replaces the body of a stored record.
pub fn put(kind: &Kind, record: &Record, changed: &Body) -> PutRecord {
    let mut keys = record.keys.clone();
    if kind.naming != Naming::Secret
        && let (Some(key), Some(home)) = (keys.first_mut(), kind.home_of(record))
        && let Some(changed) = kind.key_of(home, changed)
    {
        *key = changed;
    }
    PutRecord {
        kind: record.kind,
        id: record.id,
        org: record.org,
        expect: Expect::Revision(record.revision),
        keys,
        body: Value::Object(changed.clone()).to_string().into_bytes(),
        at: edge::now_micros(),
    }
}
