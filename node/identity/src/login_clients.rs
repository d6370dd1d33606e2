//! Clients of logins that register themselves (RFC 7591). Their client id is a sealed ticket, so nothing is stored.

use assay_node_auth::{ClientTicket, LoginClient};
use assay_node_records::RecordsError;

use crate::Identity;
use crate::logins::{now, sealed};

/// Prefix of the names of registered clients in records. Other clients cannot have it.
const REGISTERED: &str = "registered-";
/// Characters of the digest of a client id in such a name.
const DIGEST_LETTERS: usize = 32;
/// Upper bound of the name of a client that is not registered.
const CLIENT_BYTES_MAX: usize = 128;
/// Upper bound of a client id that is a registration. It is a part of URLs.
const REGISTRATION_BYTES_MAX: usize = 4 << 10;

/// Registration with its client id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredClient {
    pub client_id: String,
    pub registration: ClientTicket,
}

impl Identity {
    /// Registers a client. The caller has checked the name and the redirect URIs.
    pub fn register_client(&self, name: String, redirect_uris: Vec<String>) -> Result<RegisteredClient, RecordsError> {
        let registration = ClientTicket { name, redirect_uris, issued: now() };
        let client_id = sealed(&self.login_key()?, &registration)?;
        match client_id.len() <= REGISTRATION_BYTES_MAX {
            true => Ok(RegisteredClient { client_id, registration }),
            false => Err(RecordsError::TooLarge("the redirect URIs are too long together: register fewer".into())),
        }
    }

    /// Returns the client of a client id; `None` if the rules of logins exclude it.
    pub fn login_client(&self, client_id: &str) -> Result<Option<LoginClient>, RecordsError> {
        let rules = self.login_settings()?;
        if client_id.len() > REGISTRATION_BYTES_MAX {
            return Ok(None);
        }
        let registration: Option<ClientTicket> = self.ticket_in(client_id)?;
        if registration.is_some() {
            let digest = blake3::hash(client_id.as_bytes()).to_hex();
            let id = format!("{REGISTERED}{}", &digest.as_str()[..DIGEST_LETTERS]);
            return Ok(Some(LoginClient { id, registration }).filter(|_| rules.registers_clients()));
        }
        let has_form = client_id.len() <= CLIENT_BYTES_MAX && !client_id.chars().any(char::is_control);
        let is_known = has_form && !client_id.starts_with(REGISTERED) && rules.knows_client(client_id);
        Ok(is_known.then(|| LoginClient { id: client_id.to_owned(), registration: None }))
    }
}
