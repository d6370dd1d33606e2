//! Identity: authentication of callers, membership of organizations, logins, service accounts, and administration
//! without a key.
//!
//! | module | subject |
//! |---|---|
//! | `authentication` | resolution of an API key, a token or a JWT to a principal |
//! | `jwts`, `jwt_issuer`, `jwt_keys` | JWTs of a trusted issuer, and the sources of its keys |
//! | `logins`, `setup` | logins of people by OAuth 2.1, and authorization of programs by a person |
//! | `login_clients` | clients of logins that register themselves |
//! | `provider`, `oidc`, `outward` | the OpenID provider that identifies people, and requests to it |
//! | `refreshed` | cached value of a slow source, whose fetch readers share |
//! | `members`, `invitations`, `service_accounts` | membership of organizations, and its changes |
//! | `project_accounts` | service accounts of one project |
//! | `organizations` | reads and changes of organizations by their members |
//! | `access` | explanation of access to an object |
//! | `console_sessions`, `console_login` | console sessions of browsers, by a credential, a link or the provider |
//! | `downloads` | links for one download by a browser |
//! | `temporary_credentials` | short-lived credentials for model calls only |
//! | `administration` | administration by the owner of the data directory |
//!
//! This crate builds on `records`, which stores all of this and decides on access. It uses no HTTP: requests come from
//! the HTTP crate, and requests to external servers go through [`OutwardClient`].

mod access;
mod administration;
mod authentication;
mod console_login;
mod console_sessions;
mod downloads;
mod invitations;
mod invocation_credentials;
mod jwt_issuer;
mod jwt_keys;
mod jwts;
mod login_clients;
mod logins;
mod members;
mod oidc;
mod organizations;
mod outward;
mod project_accounts;
mod provider;
mod refreshed;
mod service_accounts;
mod setup;
mod temporary_credentials;

use std::fmt;
use std::sync::Arc;

use assay_node_auth::LoginRules;
use assay_node_records::{Catalog, Records};
use assay_storage_model::OrgId;

use crate::authentication::Impersonations;
use crate::console_login::sign_in_codes::SignInCode;
use crate::downloads::UsedTickets;
use crate::logins::RecentRefusals;

pub use console_login::sign_in_codes::SIGN_IN_CODE_SECONDS;
pub use console_login::{CONSOLE_CALLBACK, StartedConsoleLogin};
pub use console_sessions::{ConsoleSessionTimes, OpenedConsoleSession, RenewedConsoleSession, is_login};
pub use downloads::DOWNLOAD_SECONDS;
pub use invitations::{InvitationReply, Invitations, PendingInvitation};
pub use invocation_credentials::{CredentialLoan, InvocationCredentials, InvocationGrant, WorkerCredential};
pub use jwt_issuer::{JwtConfig, TrustedIssuer, open_issuer};
pub use jwt_keys::KeySource;
pub use jwts::Jwts;
pub use login_clients::RegisteredClient;
pub use logins::{GrantRefusal, LoginTokens, StartedLogin};
pub use members::MEMBERS_AT_ONCE_MAX;
pub use oidc::{CLIENT_SECRET_VARIABLE, OidcConfig, OpenId, open_provider};
pub use outward::{BadStatus, OutwardClient, OutwardServer, ServerUrl, parse_url};
pub use project_accounts::ProjectAccount;
pub use provider::{LoginGate, LoginPermit, Provider, ProviderRefusal};
pub use setup::{Setup, SetupState};
pub use temporary_credentials::{ModelCaller, NewTemporary, TEMPORARY_SECONDS_DEFAULT, TEMPORARY_SECONDS_MAX};

/// Handle of the identity service. Clones share all state.
#[derive(Clone)]
pub struct Identity {
    records: Records,
    catalog: Catalog,
    /// Trusted issuer of JWTs, if configured.
    jwts: Option<Arc<Jwts>>,
    /// Rules of logins; `None` disables logins.
    logins: Option<Arc<LoginRules>>,
    refused_logins: Arc<RecentRefusals>,
    impersonations: Arc<Impersonations>,
    used_tickets: Arc<UsedTickets>,
    sign_in_code: Arc<SignInCode>,
    invitations: Invitations,
    invocations: InvocationCredentials,
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
            sign_in_code: Arc::default(),
            invitations: Invitations::default(),
            invocations: InvocationCredentials::default(),
        }
    }

    /// Accepts JWTs of this issuer as well.
    #[must_use]
    pub fn trusting(self, jwts: Arc<Jwts>) -> Identity {
        Identity { jwts: Some(jwts), ..self }
    }

    /// Enables logins with these rules.
    #[must_use]
    pub fn with_logins(self, rules: LoginRules) -> Identity {
        Identity { logins: Some(Arc::new(rules)), ..self }
    }

    /// Replaces the default rule for invitations.
    #[must_use]
    pub fn with_invitations(self, invitations: Invitations) -> Identity {
        Identity { invitations, ..self }
    }

    /// Returns the records of the catalog.
    pub fn records(&self) -> &Records {
        &self.records
    }
}

/// Organization with its id and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrganizationRef {
    pub id: OrgId,
    pub name: String,
}
