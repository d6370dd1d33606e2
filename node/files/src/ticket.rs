//! Tickets: signed parts of URLs that allow an upload or download of one file without a credential.
//!
//! All that it says is in it and signed with a secret of the cluster, so that any node reads it, also after a restart.

use assay_node_auth::Credential;
use assay_storage_model::OrgId;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::name::{FileName, Purpose};

/// Bytes of the signature, which precedes the claims.
const SIGNATURE_BYTES: usize = 16;
/// A key, ids and numbers; nothing of ours is longer.
const TICKET_BYTES_MAX: usize = 2048;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deed {
    #[serde(rename = "w")]
    Write,
    #[serde(rename = "r")]
    Read,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub name: FileName,
    pub deed: Deed,
    /// User of the ticket.
    pub user: Uuid,
    /// Impersonator of the user.
    pub impersonator: Option<Uuid>,
    /// Credential that requested a download, whose rights are checked again when the URL is used. Tickets of versions
    /// before 0.7 have none.
    pub credential: Option<Credential>,
    /// Seconds since the epoch.
    pub until: u64,
}

#[derive(Serialize, Deserialize)]
struct TicketClaims {
    o: Uuid,
    k: String,
    d: Deed,
    u: Uuid,
    e: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    i: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    c: Option<Credential>,
}

impl Ticket {
    pub fn to_text(&self, secret: &[u8; 32]) -> String {
        let claims = TicketClaims {
            o: self.name.org.0,
            k: self.name.row_id(),
            d: self.deed,
            u: self.user,
            e: self.until,
            i: self.impersonator,
            c: self.credential,
        };
        let claims = serde_json::to_vec(&claims).unwrap_or_default();
        let mut whole = signature(&claims, secret).to_vec();
        whole.extend_from_slice(&claims);
        URL_SAFE_NO_PAD.encode(whole)
    }

    /// Verifies a ticket; `None` if this cluster has not signed it.
    pub fn parse(text: &str, secret: &[u8; 32]) -> Option<Ticket> {
        if text.len() > TICKET_BYTES_MAX {
            return None;
        }
        let whole = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (signed, claims) = whole.split_at_checked(SIGNATURE_BYTES)?;
        // Compared in constant time.
        let expected = blake3::Hash::from(padded(&signature(claims, secret)));
        if expected != blake3::Hash::from(padded(signed)) {
            return None;
        }
        let claims: TicketClaims = serde_json::from_slice(claims).ok()?;
        let name = FileName::of_row(OrgId(claims.o), &claims.k)?;
        Some(Ticket {
            name,
            deed: claims.d,
            user: claims.u,
            impersonator: claims.i,
            credential: claims.c,
            until: claims.e,
        })
    }

    pub fn purpose(&self) -> Purpose {
        self.name.purpose
    }
}

fn signature(claims: &[u8], secret: &[u8; 32]) -> [u8; SIGNATURE_BYTES] {
    let mut short = [0; SIGNATURE_BYTES];
    short.copy_from_slice(&blake3::keyed_hash(secret, claims).as_bytes()[..SIGNATURE_BYTES]);
    short
}

fn padded(bytes: &[u8]) -> [u8; 32] {
    let mut whole = [0; 32];
    whole[..bytes.len().min(32)].copy_from_slice(&bytes[..bytes.len().min(32)]);
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: [u8; 32] = [7; 32];

    fn ticket() -> Ticket {
        let org = OrgId(Uuid::from_u128(1));
        let name = FileName::new(org, Purpose::Attachment, "a key/with: signs").expect("a name");
        Ticket {
            name,
            deed: Deed::Write,
            user: Uuid::from_u128(2),
            impersonator: None,
            credential: None,
            until: 1_800_000_000,
        }
    }

    #[test]
    fn a_ticket_reads_as_it_was_written() {
        let text = ticket().to_text(&SECRET);
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'), "{text}");
        assert_eq!(Ticket::parse(&text, &SECRET), Some(ticket()));
        let bound = Ticket { deed: Deed::Read, credential: Some(Credential::ApiKey(Uuid::from_u128(3))), ..ticket() };
        assert_eq!(Ticket::parse(&bound.to_text(&SECRET), &SECRET), Some(bound));
    }

    #[test]
    fn what_was_changed_or_signed_by_others_is_none() {
        let text = ticket().to_text(&SECRET);
        assert_eq!(Ticket::parse(&text, &[8; 32]), None);
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).expect("text");
            // The last sign may hold bits that say nothing.
            assert!(
                Ticket::parse(&changed, &SECRET).is_none_or(|read| at + 1 == text.len() && read == ticket()),
                "{at}"
            );
        }
        for odd in ["", "A", "é", &"A".repeat(3000)] {
            assert_eq!(Ticket::parse(odd, &SECRET), None);
        }
    }
}
