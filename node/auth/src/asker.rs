//! Principal of a request between nodes, encoded as ids. The receiving node computes its rights anew.

use std::sync::Arc;

use assay_storage_model::{ObjectKind, OrgId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::authorization::{Credential, Principal};
use crate::rights::Rights;

/// Initiator of a request between nodes.
///
/// The encoding is frozen, because nodes of different versions exchange it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asker {
    User {
        org: OrgId,
        user: Uuid,
        credential: Credential,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        impersonator: Option<Uuid>,
    },
    Job(Job),
}

/// Internal job, which checked its rights earlier or needs none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Job {
    /// Writes the audit log.
    Audit,
    /// Deletes rows that a retention rule has expired.
    Retention,
    /// Stores files and deletes unreferenced ones.
    Files,
    /// Accesses prompts and functions, which have rights of their own.
    Functions,
    /// Exports and imports organizations.
    Transfer,
    /// Runs queries that continue after their request.
    LaterQueries,
}

impl Asker {
    pub fn of(who: &Principal) -> Asker {
        let Principal { org, user, credential, impersonator, .. } = who;
        Asker::User { org: *org, user: *user, credential: *credential, impersonator: *impersonator }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Asker> {
        serde_json::from_slice(bytes).ok()
    }

    /// Returns the principal, without its rights; `None` for a job.
    pub fn principal(&self) -> Option<Principal> {
        let Asker::User { org, user, credential, impersonator } = self else { return None };
        Some(Principal {
            org: *org,
            org_name: String::new(),
            user: *user,
            user_email: String::new(),
            impersonator: *impersonator,
            credential: *credential,
            rights: Arc::new(Rights::default()),
        })
    }
}

impl Job {
    /// Returns whether the job may access objects of this kind. `writes` distinguishes writes from reads.
    pub fn may(self, writes: bool, kind: ObjectKind) -> bool {
        let is_rows = !matches!(kind, ObjectKind::AuditLog | ObjectKind::Files);
        match self {
            Job::Audit => kind == ObjectKind::AuditLog,
            Job::Files => kind == ObjectKind::Files,
            Job::Functions => kind == ObjectKind::ProjectPrompts,
            Job::Retention => is_rows,
            Job::LaterQueries => !writes,
            Job::Transfer => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asker_is_written_as_it_was_frozen() {
        let user = Asker::User {
            org: OrgId(Uuid::from_u128(1)),
            user: Uuid::from_u128(2),
            credential: Credential::ApiKey(Uuid::from_u128(3)),
            impersonator: None,
        };
        let text = r#"{"user":{"org":"00000000-0000-0000-0000-000000000001","user":"00000000-0000-0000-0000-000000000002","credential":{"api_key":"00000000-0000-0000-0000-000000000003"}}}"#;
        assert_eq!(String::from_utf8(user.to_bytes()).expect("text"), text);
        assert_eq!(Asker::from_bytes(text.as_bytes()), Some(user.clone()));
        assert!(user.principal().is_some_and(|who| who.rights.is_empty()));
        let (id, parent) = (Uuid::from_u128(4), Uuid::from_u128(3));
        let temporary = serde_json::to_string(&Credential::Temporary { id, parent }).expect("JSON");
        assert_eq!(temporary, format!(r#"{{"temporary":{{"id":"{id}","parent":"{parent}"}}}}"#));
        let job = Asker::Job(Job::LaterQueries);
        assert_eq!(job.to_bytes(), br#"{"job":"later_queries"}"#);
        assert!(Asker::from_bytes(&job.to_bytes()) == Some(job.clone()) && job.principal().is_none());
        assert_eq!(Asker::from_bytes(b""), None);
    }

    #[test]
    fn a_job_reaches_its_own_kinds_alone() {
        let rows = ObjectKind::ProjectLogs;
        assert!(Job::Audit.may(true, ObjectKind::AuditLog) && !Job::Audit.may(false, rows));
        assert!(Job::Files.may(true, ObjectKind::Files) && !Job::Files.may(false, rows));
        assert!(Job::Retention.may(true, rows) && !Job::Retention.may(false, ObjectKind::AuditLog));
        assert!(Job::Functions.may(true, ObjectKind::ProjectPrompts) && !Job::Functions.may(false, rows));
        assert!(Job::LaterQueries.may(false, ObjectKind::AuditLog) && !Job::LaterQueries.may(true, rows));
    }
}
