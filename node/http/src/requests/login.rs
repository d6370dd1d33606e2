//! Admission of login requests.

use assay_node_auth::LoginRules;
use assay_node_identity::{Identity, LoginGate, LoginPermit};

use crate::responses::refusal::{ErrorKind, Refusal};

/// Admitted login request. It holds a permit until it is dropped.
#[derive(Debug)]
pub struct Passed<'g> {
    pub gate: &'g LoginGate,
    pub rules: &'g LoginRules,
    _permit: LoginPermit,
}

/// Admits a login request, unless login is disabled or too many logins are in progress.
pub fn pass<'g>(gate: Option<&'g LoginGate>, identity: &'g Identity) -> Result<Passed<'g>, Refusal> {
    let (Some(gate), Some(rules)) = (gate, identity.login_rules()) else {
        let why = "login is disabled, because no provider is configured: set `oidc.issuer`, `oidc.client_id` and \
                   `http.public_url`";
        return Err(Refusal::new(ErrorKind::NotFound, why));
    };
    let too_many = || Refusal::new(ErrorKind::Busy, "too many logins are in progress; try again in a moment");
    Ok(Passed { gate, rules, _permit: gate.enter().ok_or_else(too_many)? })
}
