//! Download tickets: links that browsers follow without a header, for one download within a minute.
//!
//! The server does not store tickets. A ticket is signed and names the credential that requested it. The download has
//! the rights of that credential at the time of the download.

use std::collections::HashMap;

use assay_node_auth::{Credential, DownloadTicket, Principal};
use assay_node_records::RecordsError;
use assay_node_records::kinds::organization;
use assay_node_records::mechanism::{self, CatalogView, CredentialScope, unknown_credential};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::RecordKind;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::Identity;
use crate::authentication::within_scope;
use crate::logins::now;

/// Lifetime of a ticket.
pub const DOWNLOAD_SECONDS: i64 = 60;
/// Context of the derived signing key. Frozen.
const TICKET_CONTEXT: &str = "assay 2026-11 tickets of downloads";
/// Upper bound of the used tickets that a node remembers.
const USED_MAX: usize = 100_000;

/// Tickets that were used on this node, with their expiry. Expired ones are removed when the map is full.
#[derive(Debug, Default)]
pub(crate) struct UsedTickets(Mutex<HashMap<Uuid, i64>>);

impl UsedTickets {
    /// Marks a ticket as used, and refuses a repeated use.
    fn mark(&self, ticket: &DownloadTicket, now: i64) -> Result<(), RecordsError> {
        let mut used = self.0.lock();
        if used.len() >= USED_MAX {
            used.retain(|_, until| now < *until);
        }
        if used.len() >= USED_MAX {
            return Err(RecordsError::Busy("too many downloads were started in a minute: try again".into()));
        }
        match used.insert(ticket.id, ticket.until) {
            None => Ok(()),
            Some(_) => Err(spent()),
        }
    }
}

impl Identity {
    /// Creates a ticket for the caller. For a console session, the download must send its cookie.
    pub fn download_ticket(
        &self,
        who: &Principal,
        session: Option<&str>,
        request: String,
    ) -> Result<(String, i64), RecordsError> {
        match who.credential {
            Credential::ApiKey(_) | Credential::ServiceToken(_) | Credential::Login(_) => {}
            Credential::Jwt(_) | Credential::Temporary { .. } => {
                let why = "a download by a link needs an API key, a service token or a login: use `/btql` instead";
                return Err(RecordsError::Forbidden(why.into()));
            }
        }
        let until = now() + DOWNLOAD_SECONDS;
        let ticket = DownloadTicket {
            id: mechanism::new_id(),
            credential: who.credential,
            organization: who.org_name.clone(),
            impersonated: who.impersonator.map(|_| who.user),
            session: session.map(|value| self.console_session_id(value)).transpose()?.flatten(),
            request,
            until,
        };
        let secrets = self.records.secrets().signing_secrets(TICKET_CONTEXT)?;
        let text = ticket.signed(&secrets.sign).ok_or_else(|| {
            let why = "the query is too long for a link: shorten it, or use `/btql` or `/btql/async`";
            RecordsError::TooLarge(why.into())
        })?;
        Ok((text, until))
    }

    /// Returns the principal of the credential that requested a URL, with its rights of now.
    pub async fn bearer_of_url(
        &self,
        credential: Credential,
        org: OrgId,
        impersonated: Option<Uuid>,
    ) -> Result<Principal, RecordsError> {
        self.catalog.check_heard().await?;
        let impersonated = impersonated.map(|user| user.to_string());
        let look = |view: &CatalogView<'_>| {
            let organization = view.get(RecordKind::ORGANIZATION, org.0).ok_or_else(unknown_credential)?;
            let name = organization::name_of(organization)?;
            within_scope(view, CredentialScope::of(view, credential)?, Some(&name), impersonated.as_deref())
        };
        self.known_by(look).await
    }

    /// Redeems a ticket and returns its principal and request. `session` is the cookie of the request.
    pub async fn use_download_ticket(
        &self,
        text: &str,
        session: Option<&str>,
    ) -> Result<(Principal, String), RecordsError> {
        let secrets = self.records.secrets().signing_secrets(TICKET_CONTEXT)?;
        let now = now();
        let ticket = secrets.accepted().find_map(|secret| DownloadTicket::verified(text, secret, now));
        let ticket = ticket.ok_or_else(spent)?;
        self.catalog.check_heard().await?;
        if let Some(wanted) = ticket.session {
            let found = session.map(|value| self.console_session_id(value)).transpose()?.flatten();
            if found != Some(wanted) {
                return Err(spent());
            }
        }
        let impersonated = ticket.impersonated.map(|user| user.to_string());
        let look = |view: &CatalogView<'_>| {
            let scope = CredentialScope::of(view, ticket.credential)?;
            within_scope(view, scope, Some(&ticket.organization), impersonated.as_deref())
        };
        let who = self.known_by(look).await?;
        self.used_tickets.mark(&ticket, now)?;
        Ok((who, ticket.request))
    }
}

fn spent() -> RecordsError {
    let why = "the link of the download was used already, is older than a minute, or belongs to another browser: \
               start the download again";
    RecordsError::Unauthenticated(why.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(id: u128) -> DownloadTicket {
        DownloadTicket {
            id: Uuid::from_u128(id),
            credential: Credential::ApiKey(Uuid::nil()),
            organization: "acme".into(),
            impersonated: None,
            session: None,
            request: "{}".into(),
            until: 100,
        }
    }

    #[test]
    fn a_ticket_is_used_once() {
        let used = UsedTickets::default();
        assert_eq!(used.mark(&ticket(1), 50), Ok(()));
        assert_eq!(used.mark(&ticket(2), 50), Ok(()));
        assert_eq!(used.mark(&ticket(1), 50), Err(spent()));
    }

    #[test]
    fn used_tickets_are_forgotten_when_they_have_expired() {
        let used = UsedTickets::default();
        for id in 0..USED_MAX {
            used.mark(&ticket(id as u128), 50).expect("another one");
        }
        let full = used.mark(&ticket(u128::MAX), 99);
        assert!(matches!(full, Err(RecordsError::Busy(_))), "{full:?}");
        assert_eq!(used.mark(&ticket(u128::MAX), 100), Ok(()));
        assert_eq!(used.0.lock().len(), 1);
    }
}
