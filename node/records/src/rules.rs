//! Configurable limits of the number of records.

use assay_storage_model::OrgId;
use assay_storage_model::catalog::{Record, RecordKind};
use uuid::Uuid;

use crate::Records;
use crate::draft;
use crate::error::RecordsError;
use crate::kinds::{API_KEY, SERVICE_TOKEN, service_token};
use crate::list::Walk;

/// Limits of the number of records. All nodes of a cluster should have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRules {
    /// Upper bound of the API keys of one user in one organization, and of the tokens of one service account.
    pub keys_per_user_max: usize,
    /// Upper bound of the records of one kind in one organization.
    pub per_organization_max: usize,
    /// The same limit for kinds that grow with use: experiments, grants, keys, tokens and temporary credentials.
    pub per_organization_many_max: usize,
}

/// Every node keeps all records in memory, some kilobytes each with their share of the log.
impl Default for RecordRules {
    fn default() -> RecordRules {
        RecordRules { keys_per_user_max: 1000, per_organization_max: 10_000, per_organization_many_max: 100_000 }
    }
}

impl RecordRules {
    fn most_of(&self, kind: RecordKind) -> usize {
        match kind {
            RecordKind::EXPERIMENT
            | RecordKind::ACL
            | RecordKind::API_KEY
            | RecordKind::SERVICE_TOKEN
            | RecordKind::TEMPORARY_CREDENTIAL => self.per_organization_many_max,
            _ => self.per_organization_max,
        }
    }
}

impl Records {
    /// Refuses another record of a kind if the organization has the maximum number. Concurrent creates may exceed the
    /// limit slightly.
    pub fn check_record_count(&self, kind: RecordKind, org: OrgId) -> Result<(), RecordsError> {
        let most = self.rules.most_of(kind);
        if self.catalog.peek(|view| view.has_at_least(kind, Some(org), most)) {
            return Err(RecordsError::BadRequest(format!(
                "the organization has {most} records of the kind {kind}, which is the maximum: delete some, or ask \
                 the operator to raise `records.per_organization_max`"
            )));
        }
        Ok(())
    }

    /// Refuses more keys of a user, or more tokens of a service account, than allowed.
    pub(crate) fn check_key_count(&self, org: OrgId, user: Uuid, more: usize) -> Result<(), RecordsError> {
        let most = self.rules.keys_per_user_max;
        let named = user.to_string();
        let mut count = more;
        for (kind, field) in [(&API_KEY, "user_id"), (&SERVICE_TOKEN, service_token::ACCOUNT)] {
            let mut walk = Walk::from_newest(kind, org);
            while !walk.is_over() {
                // Only bodies that mention the user are decoded, because decoding all would take long.
                let is_named = |record: &Record| draft::mentions(record, &named);
                for record in self.catalog.peek(|view| walk.step(view, is_named))? {
                    count += usize::from(draft::id_in(&draft::read(&record)?, field) == Some(user));
                }
            }
        }
        if count > most {
            return Err(RecordsError::BadRequest(format!(
                "the user has {most} keys in the organization, which is the maximum: delete some, or ask the \
                 operator to raise `records.keys_per_user_max`"
            )));
        }
        Ok(())
    }
}
