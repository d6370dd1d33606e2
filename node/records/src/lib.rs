//! The catalog's records as the API shows them: organizations, users, keys, tokens, projects, experiments, datasets. One
//! mechanism, and a short file a kind under `kinds/`.
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

mod accounts;
mod admin;
mod audit;
mod authentication;
mod authz;
mod bootstrap;
mod catalog;
mod commit;
mod create;
mod delete;
mod describe;
mod draft;
mod edge;
mod environments;
mod error;
mod invitations;
mod jwts;
mod kind;
pub mod kinds;
mod list;
mod logins;
mod named;
mod organizations;
mod patch;
mod people;
mod pepper;
mod prompts;
mod read;
mod rules;
mod sealed_values;
mod setup;
mod shape;

use std::fmt;
use std::sync::Arc;

use assay_cluster::Cluster;
use assay_node_auth::{Ledger, LoginRules};
use assay_node_secrets::{Secret, Secrets};
use assay_storage_model::{ObjectKey, OrgId, ShardId};
use serde_json::Value;
use uuid::Uuid;

use crate::authentication::Impersonations;
use crate::logins::Once;

pub use authz::ACLS_AT_ONCE_MAX;
pub use bootstrap::Founding;
pub use catalog::Catalog;
pub use delete::Swept;
pub use describe::{Description, describe_organization, describe_user};
pub use environments::Pinned;
pub use error::RecordsError;
pub use invitations::{Pending, Reply};
pub use jwts::Jwts;
pub use kind::{Api, Changes, Export, Kind, NAME_BYTES_MAX};
pub use list::{IDS_MAX, ListRequest};
pub use logins::{Begun, GrantRefusal, Tokens};
pub use people::MEMBERS_AT_ONCE_MAX;
pub use prompts::{Definition, PromptPlace};
pub use rules::{Invitations, RecordRules};
pub use sealed_values::without_secret;
pub use setup::{Setup, SetupState};

/// The mechanism of records, for crates whose subjects are records of their own: bodies of records, and what goes with the
/// commands that [`Catalog`] takes. The API is served by the methods of [`Records`] and needs nothing of it.
pub mod mechanism {
    pub use crate::audit::{By, entry_by, entry_of, entry_of_stranger};
    pub use crate::authz::CatalogView;
    pub use crate::commit::unexpected;
    pub use crate::draft::{Body, Frame, id_in, read as read_body, text_in};
    pub use crate::edge::{new_id, now_micros, random};
    pub use crate::list::Walk;
}

/// A handle; clones share everything.
#[derive(Clone)]
pub struct Records {
    catalog: Catalog,
    secrets: Secrets<Catalog>,
    /// None takes no JWTs.
    jwts: Option<Arc<Jwts>>,
    /// None has nobody log in.
    logins: Option<Arc<LoginRules>>,
    refused_logins: Arc<Once>,
    impersonations: Arc<Impersonations>,
    rules: RecordRules,
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
            impersonations: Arc::default(),
            rules: RecordRules::default(),
            jwts: None,
            logins: None,
            refused_logins: Arc::default(),
        }
    }

    /// Goes by these rules in the place of the default ones.
    #[must_use]
    pub fn with_rules(self, rules: RecordRules) -> Records {
        Records { rules, ..self }
    }

    /// Takes what the issuer signs as well.
    #[must_use]
    pub fn trusting(self, jwts: Arc<Jwts>) -> Records {
        Records { jwts: Some(jwts), ..self }
    }

    /// Has people log in.
    #[must_use]
    pub fn with_logins(self, rules: LoginRules) -> Records {
        Records { logins: Some(Arc::new(rules)), ..self }
    }

    /// Returns the catalog, for crates whose subjects are records of their own.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Returns the keys that secrets are kept under.
    pub fn secrets(&self) -> &Secrets<Catalog> {
        &self.secrets
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrgInfo {
    pub id: OrgId,
    pub name: String,
}

/// What a create answers.
#[derive(Clone, Debug)]
pub struct Created {
    pub object: Value,
    /// It was there before and is unmodified.
    pub found_existing: bool,
    /// Of a new API key or service token: shown here and never again. It is not in `object`.
    pub secret: Option<Secret>,
}

/// Where the rows of an object are kept, and whose they are.
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
