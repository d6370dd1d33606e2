//! Download tickets: signed parts of URLs that allow one download without a header.
//!
//! A ticket is self-contained and signed with a secret of the cluster, so that any node can read it. Its content is not
//! secret: its holder requested it or received the link. This module is pure.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::authorization::Credential;

/// Length of the signature, which precedes the claims.
const SIGNATURE_BYTES: usize = 32;
/// Upper bound of the length of a ticket, which has to fit into a request line.
const TICKET_BYTES_MAX: usize = 8 << 10;

/// Ticket for the download of a query result through a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DownloadTicket {
    /// Unique id, so that each ticket is used once.
    pub id: Uuid,
    /// Credential that requested the ticket. The download has its rights at the time of the download.
    pub credential: Credential,
    pub organization: String,
    /// User whom the caller impersonates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impersonated: Option<Uuid>,
    /// Console session that requested the ticket. The download must send its cookie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Uuid>,
    /// Request in JSON.
    pub request: String,
    /// Expiry in seconds since the epoch.
    pub until: i64,
}

impl DownloadTicket {
    /// Returns the text of the ticket; `None` if it is too long.
    pub fn signed(&self, secret: &[u8; 32]) -> Option<String> {
        let claims = serde_json::to_vec(self).ok()?;
        let mut whole = blake3::keyed_hash(secret, &claims).as_bytes().to_vec();
        whole.extend_from_slice(&claims);
        let text = URL_SAFE_NO_PAD.encode(whole);
        (text.len() <= TICKET_BYTES_MAX).then_some(text)
    }

    /// Verifies and decodes a ticket; `None` if another secret signed it or it has expired.
    pub fn verified(text: &str, secret: &[u8; 32], now: i64) -> Option<DownloadTicket> {
        if text.len() > TICKET_BYTES_MAX {
            return None;
        }
        let whole = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (signature, claims) = whole.split_first_chunk::<SIGNATURE_BYTES>()?;
        // The comparison takes constant time.
        if blake3::keyed_hash(secret, claims) != blake3::Hash::from(*signature) {
            return None;
        }
        let ticket: DownloadTicket = serde_json::from_slice(claims).ok()?;
        (now < ticket.until).then_some(ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: [u8; 32] = [7; 32];

    fn ticket(request: &str) -> DownloadTicket {
        DownloadTicket {
            id: Uuid::from_u128(1),
            credential: Credential::Login(Uuid::from_u128(2)),
            organization: "acme".into(),
            impersonated: None,
            session: Some(Uuid::from_u128(3)),
            request: request.into(),
            until: 100,
        }
    }

    #[test]
    fn a_ticket_reads_as_it_was_signed_until_it_expires() {
        let text = ticket("{}").signed(&SECRET).expect("it is short");
        assert_eq!(DownloadTicket::verified(&text, &SECRET, 99), Some(ticket("{}")));
        assert_eq!(DownloadTicket::verified(&text, &SECRET, 100), None);
        assert_eq!(ticket(&"x".repeat(TICKET_BYTES_MAX)).signed(&SECRET), None);
    }

    #[test]
    fn what_was_changed_or_signed_by_others_is_none() {
        let text = ticket("{}").signed(&SECRET).expect("it is short");
        assert_eq!(DownloadTicket::verified(&text, &[8; 32], 1), None);
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).expect("letters");
            assert_ne!(DownloadTicket::verified(&changed, &SECRET, 1), Some(ticket("{}")), "{at}");
        }
        for odd in ["", "x", &text[1..], &"A".repeat(TICKET_BYTES_MAX + 1)] {
            assert_eq!(DownloadTicket::verified(odd, &SECRET, 1), None);
        }
    }
}
