//! Records of the catalog in the API: organizations, keys, tokens, projects, experiments, datasets.
//!
//! All kinds share one mechanism, and each has a short file under `kinds/`. `authz` reads access rights. Authentication
//! is in the crate `identity`.
//!
//! Reads use the local copy of the catalog. Before a read denies that something exists, it passes a fence and looks
//! again. Therefore it never denies anything that another node has just acknowledged. Writes go through consensus and
//! name the revision that they change. They are retried a few times if another writer was faster.
//!
//! A delete takes effect with one write: the record loses its unique keys and thereby its name. The record and its
//! contained records become invisible. Then the shards drop its rows, and the record is removed. After a crash `sweep`
//! completes the delete.
//!
//! This crate uses no HTTP, and the crate `auth` makes every access decision.

mod audit;
mod authz;
mod bootstrap;
mod catalog;
mod commit;
mod create;
mod credentials;
mod delete;
mod edge;
mod environments;
mod error;
pub mod kinds;
mod list;
mod model_providers;
mod named;
mod online_rules;
mod patch;
mod pepper;
mod prompts;
mod read;
mod rules;
mod schema;
mod sealed_values;

use std::fmt;
use std::sync::Arc;

use assay_cluster::Cluster;
use assay_node_auth::Ledger;
use assay_node_secrets::{Secret, Secrets};
use assay_storage_model::catalog::RecordKind;
use assay_storage_model::{ObjectKey, OrgId, ShardId};
use serde_json::Value;
use uuid::Uuid;

use crate::model_providers::ReadProviders;
use crate::schema::{draft, kind};

pub use authz::ACLS_AT_ONCE_MAX;
pub use bootstrap::Founding;
pub use catalog::Catalog;
pub use credentials::is_owner;
pub use delete::Swept;
pub use environments::Pinned;
pub use error::RecordsError;
pub use list::{IDS_MAX, ListRequest};
pub use model_providers::ModelProvider;
pub use prompts::{Definition, PromptPlace};
pub use rules::RecordRules;
pub use schema::describe::{Description, describe_organization, describe_user};
pub use schema::kind::{Api, Changes, Export, Kind, NAME_BYTES_MAX};
pub use sealed_values::without_secret;

/// Mechanism of records, for crates with records of their own. The methods of [`Records`] serve the API without it.
pub mod mechanism {
    pub use crate::audit::{By, entry_by, entry_of};
    pub use crate::authz::{
        CatalogView, CredentialScope, by_login, decide_of_acls, known, no_impersonation, no_organization,
        own_organizations, still_known, target_of, unknown_credential, within, within_named,
    };
    pub use crate::commit::unexpected;
    pub use crate::credentials::{NewKey, NewToken, check_is_self, check_maker, check_name};
    pub use crate::draft::{
        Body, CLOSED_ORGS, EVERY_ORG, created as check_created, id_in, mentions, read as read_body, text_in, text_of,
        uuid_of,
    };
    pub use crate::edge::{new_id, now_micros, random};
    pub use crate::list::{Walk, one_page};
    pub use crate::online_rules::executor_put;
    pub use crate::patch::{patched, put as replaced};
    pub use crate::read::{VisibleRecord, visible};
}

/// Handle of the records. Clones share all state.
#[derive(Clone)]
pub struct Records {
    catalog: Catalog,
    secrets: Secrets<Catalog>,
    rules: RecordRules,
    read_providers: ReadProviders,
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").finish_non_exhaustive()
    }
}

impl Records {
    /// Creates the handle. Changes of access are logged in `ledger` before they are executed.
    pub fn new(cluster: Arc<Cluster>, ledger: Arc<dyn Ledger>) -> Records {
        let catalog = Catalog::new(Arc::clone(&cluster), ledger);
        Records {
            secrets: Secrets::new(catalog.clone(), cluster),
            catalog,
            rules: RecordRules::default(),
            read_providers: ReadProviders::default(),
        }
    }

    /// Replaces the default limits.
    #[must_use]
    pub fn with_rules(self, rules: RecordRules) -> Records {
        Records { rules, ..self }
    }

    /// Returns the catalog, for crates with records of their own.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Returns whether a user is a service account and not a person.
    pub fn is_service_account(&self, user: Uuid) -> bool {
        // Only service accounts belong to an organization.
        self.catalog.peek(|view| view.get(RecordKind::USER, user).is_some_and(|record| record.org.is_some()))
    }

    /// Returns the service that encrypts secrets.
    pub fn secrets(&self) -> &Secrets<Catalog> {
        &self.secrets
    }
}

/// Result of a create.
#[derive(Clone, Debug)]
pub struct Created {
    pub object: Value,
    /// Whether the record existed before; then it is unmodified.
    pub found_existing: bool,
    /// Secret of a new API key or service token, which is returned only once. It is not in `object`.
    pub secret: Option<Secret>,
}

/// Object of rows, with its organization and project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectHome {
    pub key: ObjectKey,
    pub org: OrgId,
    pub project_id: Uuid,
    pub shard: ShardId,
}

/// Project that was found or created by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectRef {
    pub id: Uuid,
    pub name: String,
    pub org: OrgId,
    /// Whether this call created the project.
    pub made: bool,
}
