//! Records of the catalog in the API: organizations, keys, tokens, projects, experiments, datasets. There is one
//! mechanism, and a short file for each kind under `kinds/`. `authz` reads access rights; authentication is in the
//! crate `identity`.
//!
//! Reads look at this node's copy of the catalog. Before one answers that something is not there or not known, it asks
//! the catalog once for a fence and looks again, so that what another node acknowledged a moment ago is never denied.
//! Writes go through consensus and name the revision they change; they are tried again a few times where another
//! writer was faster.
//!
//! A delete takes effect with one write: the record loses its unique keys and with them its name, and nobody sees it
//! any more, nor what is in it. Then the shards are told to drop its rows, and the record goes. Where a crash comes
//! between, `sweep` finishes it.
//!
//! Knows no HTTP. Asks `auth` for every decision.

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

/// The mechanism of records, for crates whose subjects are records of their own: bodies of records, and what goes with the
/// commands that [`Catalog`] takes. The API is served by the methods of [`Records`] and needs nothing of it.
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
    pub use crate::patch::{patched, put as replaced};
    pub use crate::read::{VisibleRecord, visible};
}

/// A handle; clones share everything.
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
    /// Changes of access are kept in the ledger before they are made.
    pub fn new(cluster: Arc<Cluster>, ledger: Arc<dyn Ledger>) -> Records {
        let catalog = Catalog::new(Arc::clone(&cluster), ledger);
        Records {
            secrets: Secrets::new(catalog.clone(), cluster),
            catalog,
            rules: RecordRules::default(),
            read_providers: ReadProviders::default(),
        }
    }

    /// Goes by these rules in the place of the default ones.
    #[must_use]
    pub fn with_rules(self, rules: RecordRules) -> Records {
        Records { rules, ..self }
    }

    /// Returns the catalog, for crates whose subjects are records of their own.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Returns whether a user is a service account and not a person.
    pub fn is_service_account(&self, user: Uuid) -> bool {
        // persons belong to no organization
        self.catalog.peek(|view| view.get(RecordKind::USER, user).is_some_and(|record| record.org.is_some()))
    }

    /// Returns the keys that secrets are kept under.
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

/// A project that was named, not identified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectRef {
    pub id: Uuid,
    pub name: String,
    pub org: OrgId,
    /// Made by this call.
    pub made: bool,
}
