//! Who is calling and what they may do: pure decisions, and the secrets that callers show.
//!
//! Knows no HTTP, no store, no clock. Who asks brings the facts (the record behind a key, the organization of an
//! object) and gets a decision. Anything that is not allowed looks as if it were not there, so that nobody learns from
//! a refusal what exists elsewhere.

mod decide;
mod secret;

pub use decide::{Action, Decision, OrgRole, Principal, Target, decide};
pub use secret::{
    ADMIN_TOKEN_LETTERS_MIN, API_KEY_BYTES, AdminToken, PEPPER_BYTES, Pepper, Secret, new_admin_token, new_api_key,
    preview,
};
