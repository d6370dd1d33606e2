//! Credentials and authorization, pure: `authorization` decides on access, by grants (`rights`) and delegation. The
//! other modules are keys, tokens and tickets of callers. Authentication is in the crate `identity`.
//!
//! Knows no HTTP, no store, no clock, and asks nothing: the caller brings the facts (the record behind a key, the groups,
//! roles and grants of an organization, the containers of an object) and gets a decision. `authz` of the crate of records
//! reads these facts from the catalog. What may not be read looks as if it were not there, so that nobody learns from a
//! refusal what exists elsewhere. Encryption is a trait here, [`TicketCipher`]; the crate of secrets implements it.

mod asker;
mod authorization;
pub mod chain;
mod delegation;
mod digest;
mod download;
mod explanation;
mod jwt;
mod login;
mod objects;
mod rights;
#[cfg(test)]
mod samples;
mod secret;
mod secret_text;
mod signed_token;
mod temporary;

pub use asker::{Asker, Job};
pub use authorization::{Credential, Decision, Principal, decide};
pub use chain::Ledger;
pub use delegation::{Distinguished, Excess, Giving, Right, excess};
pub use digest::Sha256;
pub use download::DownloadTicket;
pub use explanation::GrantPath;
pub use jwt::{
    IdTokenClaims, JWKS_BYTES_MAX, JWT_BYTES_MAX, JWT_SECRET_BYTES_MIN, JwtKeys, JwtRefusal, JwtRules, looks_like_jwt,
};
pub use login::{
    AccessClaims, AskedTicket, CodeTicket, LOGIN_SECRET_BYTES, LoginAsked, LoginKey, LoginKeySource, LoginRules,
    PendingLogin, RefreshTicket, SetupTicket, TICKET_NONCE_BYTES, Ticket, TicketCipher, basic_credential, challenge_of,
    form_encoded, is_pkce_text, new_login_secret, proves,
};
pub use objects::{ObjectType, Permission, Target};
pub use rights::{Access, Acl, Gift, Granted, Group, Rights, Role, Subject};
pub use secret::{
    ADMIN_TOKEN_LETTERS_MIN, API_KEY_BYTES, AdminToken, PEPPER_BYTES, Pepper, new_admin_token, new_api_key,
    new_console_session, new_service_token, preview,
};
pub use secret_text::{Secret, hex_digit};
pub use temporary::{
    LoggingTarget, TEMPORARY_SECRET_BYTES, TemporaryGrant, TemporaryKey, TemporaryLogging, TemporaryTerms,
};
