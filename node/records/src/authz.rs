//! Authorization that depends on the catalog: grants, the scope of credentials, and the grants that reach a record.
//!
//! The decision itself is pure, in `assay_node_auth::authorization`.
//!
//! | module | subject |
//! |---|---|
//! | `access` | groups, roles and grants of an organization, cached until one of them changes |
//! | `scope` | the organizations that a credential opens, and the caller in each |
//! | `guard` | the grants that decide on a record |
//! | `fences` | shared and rate-limited fences before a credential is refused |
//! | `grants` | requests that list, create and delete grants |
//! | `rechecked` | second check of rights on the node with the rows |

pub(crate) mod access;
pub(crate) mod fences;
mod grants;
pub(crate) mod guard;
mod rechecked;
mod scope;

pub use access::CatalogView;
pub use grants::ACLS_AT_ONCE_MAX;
pub use guard::{decide_of_acls, known, target_of};
pub use scope::{
    CredentialScope, by_login, no_impersonation, no_organization, own_organizations, still_known, unknown_credential,
    within, within_named,
};
