//! Sealed values, the encrypted secrets of records.
//!
//! They are removed from a request before other processing and encrypted before they are proposed. Therefore logs,
//! snapshots and copies have only encrypted text. They are decrypted only in the node.
//!
//! A record with a secret has two fields that no response shows. `sealed` is the encrypted text with the id of its data
//! key. `sealed_version` counts the secrets of the record. Responses show the end of the secret, its author and its
//! time.

use assay_node_auth::{Permission, Principal, Secret, preview};
use assay_node_secrets::{Belonging, Sealed};
use assay_node_shapes::{Shape, take};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::Record;
use assay_storage_model::event::format_micros;
use serde_json::Value;
use uuid::Uuid;

use crate::authz::{no_organization, within};
use crate::draft::{self, Body};
use crate::error::RecordsError;
use crate::kind::{Field, Kind};
use crate::kinds::AI_SECRET;
use crate::list::ListRequest;
use crate::model_providers::target_of;
use crate::read::{VisibleRecord, visible};
use crate::{Records, edge};

const SEALED: &str = "sealed";
const VERSION: &str = "sealed_version";
const PREVIEW: &str = "preview_secret";
const GIVEN_AT: &str = "secret_updated_at";
const GIVEN_BY: &str = "secret_updated_by_user_id";
const CHANGED_AT: &str = "updated_at";

/// Context of a record that is about to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writing<'a> {
    pub kind: &'a Kind,
    pub org: OrgId,
    pub id: Uuid,
    pub user: Uuid,
    /// Microseconds since the epoch, UTC.
    pub at: i64,
    /// Body that the write replaces.
    pub before: Option<&'a Body>,
}

/// Removes the secret from a request; null means "not given".
pub(crate) fn taken(kind: &Kind, sent: &mut Body) -> Result<Option<Secret>, RecordsError> {
    let Some(field) = secret_field(kind) else { return Ok(None) };
    let Some(value) = sent.remove(field.name).filter(|value| !value.is_null()) else { return Ok(None) };
    match take(&field.shape, field.name, value)? {
        Value::String(text) => Ok(Some(Secret::new(text))),
        _ => Err(RecordsError::Internal(format!("`{}` of a {} is not text", field.name, kind.name))),
    }
}

/// Removes the fields of a secret from a body. Returns whether the kind has a secret.
pub fn without_secret(kind: &Kind, body: &mut Body) -> bool {
    let has_one = secret_field(kind).is_some();
    if has_one {
        [SEALED, VERSION, PREVIEW].into_iter().for_each(|field| drop(body.remove(field)));
    }
    has_one
}

fn secret_field(kind: &Kind) -> Option<&Field> {
    kind.fields.iter().find(|field| matches!(field.shape, Shape::Secret { .. }))
}

impl Records {
    /// Adds the fields of a secret to a body before it is written. Without a new secret the stored one is kept.
    pub(crate) async fn seal(
        &self,
        writing: &Writing<'_>,
        secret: Option<&Secret>,
        body: &mut Body,
    ) -> Result<(), RecordsError> {
        let Writing { kind, org, id, user, at, before } = *writing;
        if secret_field(kind).is_none() {
            return Ok(());
        }
        if kind.fields.iter().any(|field| field.name == CHANGED_AT) {
            body.insert(CHANGED_AT.into(), format_micros(at).into());
        }
        let had = before.is_some_and(|before| before.contains_key(SEALED));
        // Otherwise an editor could send the key of the organization to their own server.
        if secret.is_none() && before.is_some_and(|before| target_of(kind, before) != target_of(kind, body)) {
            body.remove(SEALED);
        }
        let mut version = before.map_or(0, version_of);
        if let Some(secret) = secret {
            version += 1;
            let to = Belonging { org, kind: kind.record, record: id, version };
            let sealed = self.secrets.data_key(org).await?.seal(&to, secret, edge::random()?);
            let sealed = sealed.map_err(|why| RecordsError::TooLarge(why.to_string()))?;
            body.insert(SEALED.into(), sealed.to_string().into());
            body.insert(PREVIEW.into(), preview(secret.expose()).into());
        }
        // A replacement without a secret removes the stored secret.
        let lost = had && !body.contains_key(SEALED);
        if lost {
            body.remove(PREVIEW);
        }
        if version > 0 {
            body.insert(VERSION.into(), version.into());
        }
        if lost || secret.is_some() {
            body.insert(GIVEN_AT.into(), format_micros(at).into());
            body.insert(GIVEN_BY.into(), user.to_string().into());
        }
        Ok(())
    }

    /// Returns the AI secrets of the requested organization that the caller may read.
    pub async fn ai_secrets(&self, who: &Principal, body: &Body) -> Result<Vec<Value>, RecordsError> {
        let org = draft::uuid_of(body, "org_id")?.map_or(who.org, OrgId);
        self.catalog.fresh().await?;
        let there =
            self.catalog.look(|view| within(view, who, org)?.ok_or_else(|| no_organization(&org.to_string()))).await?;
        self.list(&there, &AI_SECRET, &ListRequest::default()).await
    }

    /// Returns the secret of this name in the organization of the caller, if the caller may read it. The secret must
    /// not leave the node.
    pub async fn secret_of(&self, who: &Principal, name: &str) -> Result<Secret, RecordsError> {
        self.catalog.fresh().await?;
        let missing = || RecordsError::NotFound(format!("no ai_secret `{name}` is visible to this credential"));
        let key = AI_SECRET.name_key(who.org.0, name);
        let id = self.catalog.look(|view| view.find(&key).map(|record| record.id).ok_or_else(missing)).await?;
        let nothing = || RecordsError::NotFound(format!("the ai_secret `{name}` has no secret: set one"));
        self.secret_in(who, &AI_SECRET, id).await?.ok_or_else(nothing)
    }

    /// Returns the secret of a record, if the caller may read the record; `None` without a secret. It must not leave
    /// the node.
    pub async fn secret_in(
        &self,
        who: &Principal,
        kind: &'static Kind,
        id: Uuid,
    ) -> Result<Option<Secret>, RecordsError> {
        self.catalog.fresh().await?;
        let VisibleRecord { record, .. } =
            self.catalog.look(|view| visible(view, who, kind, id, Permission::Read)).await?;
        let sealed = sealed_in(kind, &record, &draft::read(&record)?)?;
        sealed.map(|sealed| self.opened(&sealed)).transpose()
    }

    /// Returns the secret of a record, or `None` if it has none. It must not leave the node.
    pub fn stored_secret(&self, kind: &Kind, record: &Record) -> Result<Option<Secret>, RecordsError> {
        sealed_in(kind, record, &crate::draft::read(record)?)?.map(|value| self.opened(&value)).transpose()
    }

    /// Decrypts a secret.
    pub(crate) fn opened(&self, value: &SealedValue) -> Result<Secret, RecordsError> {
        let opened = self.secrets.existing_data_key(value.to.org)?.open(&value.to, &value.sealed);
        opened.map_err(|why| damaged((value.kind, value.to.record), &format!("cannot be decrypted: {why}")))
    }
}

/// Encrypted secret of a record.
#[derive(Debug)]
pub(crate) struct SealedValue {
    /// Name of the record's kind, for errors.
    kind: &'static str,
    to: Belonging,
    sealed: Sealed,
}

/// Returns the encrypted secret of a record with this body; `None` if there is none.
pub(crate) fn sealed_in(kind: &Kind, record: &Record, body: &Body) -> Result<Option<SealedValue>, RecordsError> {
    let Some(text) = body.get(SEALED).and_then(Value::as_str) else { return Ok(None) };
    let place = (kind.name, record.id);
    let sealed = Sealed::parse(text).ok_or_else(|| damaged(place, "cannot be decoded"))?;
    let org = record.org.ok_or_else(|| damaged(place, "is in no organization"))?;
    let to = Belonging { org, kind: record.kind, record: record.id, version: version_of(body) };
    Ok(Some(SealedValue { kind: kind.name, to, sealed }))
}

fn damaged((kind, id): (&str, Uuid), why: &str) -> RecordsError {
    RecordsError::Internal(format!("the secret of {kind} {id} {why}"))
}

fn version_of(body: &Body) -> u64 {
    body.get(VERSION).and_then(Value::as_u64).unwrap_or(0)
}
