//! Identity: authentication of callers and membership of organizations. Logins of people with their provider, members
//! and invitations, service accounts, and administration without a key.
//!
//! | module | subject |
//! |---|---|
//! | `authentication` | from an API key, a token or a JWT to a principal |
//! | `jwts`, `jwt_issuer`, `jwt_keys` | JWTs of a trusted issuer, and where its keys come from |
//! | `logins`, `setup` | logins of people by OAuth 2.1, and of programs that a person lets in |
//! | `provider`, `oidc`, `outward` | the OpenID provider that identifies people, and how it is asked |
//! | `members`, `invitations`, `service_accounts` | who is in an organization, who joins and who leaves |
//! | `organizations` | organizations as their members read and change them |
//! | `access` | who may do what on an object, and why |
//! | `console_sessions`, `console_login` | browsers that are signed in to the console, by a credential or with the provider |
//! | `downloads` | links to one download, for a browser |
//! | `temporary_credentials` | credentials for calls of models alone, for a short time |
//! | `administration` | the same for the owner of the data directory |
//!
//! Stands above records, which keep all of it and decide who may do what. Knows no HTTP: requests come from the crate of HTTP,
//! and servers of others are asked through [`OutwardClient`].

mod access;
mod administration;
mod authentication;
mod console_login;
mod console_sessions;
mod downloads;
mod invitations;
mod jwt_issuer;
mod jwt_keys;
mod jwts;
mod logins;
mod members;
mod oidc;
mod organizations;
mod outward;
mod provider;
mod service_accounts;
mod setup;
mod temporary_credentials;

use std::fmt;
use std::sync::Arc;

use assay_node_auth::LoginRules;
use assay_node_records::{Catalog, Records};
use assay_storage_model::OrgId;

use crate::authentication::Impersonations;
use crate::downloads::UsedTickets;
use crate::logins::RecentRefusals;

pub use console_login::{CONSOLE_CALLBACK, StartedConsoleLogin};
pub use console_sessions::{ConsoleSessionTimes, OpenedConsoleSession, RenewedConsoleSession, is_login};
pub use downloads::DOWNLOAD_SECONDS;
pub use invitations::{InvitationReply, Invitations, PendingInvitation};
pub use jwt_issuer::{JwtConfig, TrustedIssuer, open_issuer};
pub use jwt_keys::KeySource;
pub use jwts::Jwts;
pub use logins::{GrantRefusal, LoginTokens, StartedLogin};
pub use members::MEMBERS_AT_ONCE_MAX;
pub use oidc::{CLIENT_SECRET_VARIABLE, OidcConfig, OpenId, open_provider};
pub use outward::{BadStatus, OutwardClient, OutwardServer, ServerUrl, parse_url};
pub use provider::{LoginGate, LoginPermit, Provider, ProviderRefusal};
pub use setup::{Setup, SetupState};
pub use temporary_credentials::{ModelCaller, NewTemporary, TEMPORARY_SECONDS_DEFAULT, TEMPORARY_SECONDS_MAX};

/// A handle; clones share everything.
#[derive(Clone)]
pub struct Identity {
    records: Records,
    catalog: Catalog,
    /// The trusted issuer of JWTs, if there is one.
    jwts: Option<Arc<Jwts>>,
    /// Rules of logins; `None` disables logins.
    logins: Option<Arc<LoginRules>>,
    refused_logins: Arc<RecentRefusals>,
    impersonations: Arc<Impersonations>,
    used_tickets: Arc<UsedTickets>,
    invitations: Invitations,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl Identity {
    pub fn new(records: Records) -> Identity {
        Identity {
            catalog: records.catalog().clone(),
            records,
            jwts: None,
            logins: None,
            refused_logins: Arc::default(),
            impersonations: Arc::default(),
            used_tickets: Arc::default(),
            invitations: Invitations::default(),
        }
    }

    /// Takes JWTs of this issuer as well.
    #[must_use]
    pub fn trusting(self, jwts: Arc<Jwts>) -> Identity {
        Identity { jwts: Some(jwts), ..self }
    }

    /// Has people log in.
    #[must_use]
    pub fn with_logins(self, rules: LoginRules) -> Identity {
        Identity { logins: Some(Arc::new(rules)), ..self }
    }

    /// Has people join by this rule in the place of the default one.
    #[must_use]
    pub fn with_invitations(self, invitations: Invitations) -> Identity {
        Identity { invitations, ..self }
    }

    /// Returns the records of the catalog.
    pub fn records(&self) -> &Records {
        &self.records
    }
}

/// An organization by its id and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrganizationRef {
    pub id: OrgId,
    pub name: String,
}
