//! Credentials and authorization without side effects.
//!
//! `authorization` decides on access by grants (`rights`) and delegation. The other modules implement keys, tokens and
//! tickets of callers. Authentication is in the crate `identity`.
//!
//! This crate uses no HTTP, no storage and no clock. Callers provide the facts: the record of a key, the grants of an
//! organization, the containers of an object. Module `authz` of the crate `records` reads them from the catalog.
//! Objects that the caller may not read look nonexistent, so that a refusal reveals nothing. Encryption is the trait
//! [`TicketCipher`], which the crate of secrets implements.

mod asker;
mod authorization;
pub mod chain;
mod delegation;
mod digest;
mod download;
mod explanation;
mod jwt;
mod login;
mod login_clients;
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
pub use explanation::{Explainer, GrantPath};
pub use jwt::{
    IdTokenClaims, JWKS_BYTES_MAX, JWT_BYTES_MAX, JWT_SECRET_BYTES_MIN, JwtKeys, JwtRefusal, JwtRules, looks_like_jwt,
};
pub use login::{
    AccessClaims, AskedTicket, CodeTicket, LOGIN_SECRET_BYTES, LoginAsked, LoginKey, LoginKeySource, PendingLogin,
    RefreshTicket, SetupTicket, TICKET_NONCE_BYTES, Ticket, TicketCipher, basic_credential, challenge_of, form_encoded,
    is_pkce_text, new_login_secret, proves,
};
pub use login_clients::{ClientTicket, LoginClient, LoginRules};
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
