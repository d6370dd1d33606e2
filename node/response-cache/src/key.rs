//! Keys of cached responses: a hash of everything that a response depends on, and its owner node.

use std::fmt;

use assay_storage_model::{NodeId, OrgId};
use uuid::Uuid;

use crate::canonical_json::{CanonicalJsonError, canonical_json};
use crate::decision::CacheEndpoint;
use crate::mix::mix;

/// Version of the translation between wire formats. A change of the translated responses increments it.
pub const TRANSLATION_VERSION: u32 = 1;

/// Context of the key hash. A change turns all stored entries into misses.
const KEY_CONTEXT: &str = "assay 2026-11-28 key of a cached response 1";

/// Context of the item hash. A change turns all stored items into misses.
const ITEM_CONTEXT: &str = "assay 2026-11-28 key of an item of an answer 1";

/// Callers that share an entry. They always belong to one organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheScope {
    /// Single user or service account, independent of the credential.
    Principal(Uuid),
    Organization,
}

/// Everything that a response depends on.
#[derive(Clone, Copy, Debug)]
pub struct CacheKeyParts<'a> {
    pub endpoint: CacheEndpoint,
    /// Model name from the caller. Clients of Gemini's API send it in the path.
    pub model: &'a str,
    /// Whether the response is a stream. Clients of Gemini's API express this in the path, too.
    pub is_stream: bool,
    pub organization: OrgId,
    pub scope: CacheScope,
    pub project: Option<Uuid>,
    /// Value of `x-bt-endpoint-name`.
    pub endpoint_name: Option<&'a str>,
    /// Class of the servers that may respond, as named by the gateway.
    pub candidate_class: &'a str,
    /// Request headers that change the response, such as `anthropic-beta`, in a fixed order.
    pub headers: &'a [(&'a str, &'a str)],
    /// Request body as received.
    pub body: &'a [u8],
}

/// Key of a cached response.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheKey {
    organization: OrgId,
    hash: [u8; 32],
}

impl CacheKey {
    /// Computes the key (G-20).
    pub fn new(parts: &CacheKeyParts<'_>) -> Result<CacheKey, CanonicalJsonError> {
        let body = canonical_json(parts.body)?;
        let mut hasher = blake3::Hasher::new_derive_key(KEY_CONTEXT);
        // Each part has a length prefix, so different lists of parts never hash the same bytes.
        let mut add = |part: &[u8]| {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        };
        add(&TRANSLATION_VERSION.to_le_bytes());
        add(parts.endpoint.name().as_bytes());
        add(parts.model.as_bytes());
        add(&[u8::from(parts.is_stream)]);
        add(parts.organization.0.as_bytes());
        match &parts.scope {
            CacheScope::Principal(principal) => add(principal.as_bytes()),
            CacheScope::Organization => add(&[]),
        }
        add(parts.project.as_ref().map_or(&[][..], |project| project.as_bytes()));
        add(&[u8::from(parts.endpoint_name.is_some())]);
        add(parts.endpoint_name.unwrap_or_default().as_bytes());
        add(parts.candidate_class.as_bytes());
        add(&(parts.headers.len() as u64).to_le_bytes());
        for (name, value) in parts.headers {
            add(name.as_bytes());
            add(value.as_bytes());
        }
        add(&body);
        Ok(CacheKey { organization: parts.organization, hash: *hasher.finalize().as_bytes() })
    }

    /// Computes the key of a response item, which the same principal may reference in later requests (G-31).
    pub fn of_item(organization: OrgId, principal: Uuid, item: &str) -> CacheKey {
        let mut hasher = blake3::Hasher::new_derive_key(ITEM_CONTEXT);
        hasher.update(organization.0.as_bytes()).update(principal.as_bytes()).update(item.as_bytes());
        CacheKey { organization, hash: *hasher.finalize().as_bytes() }
    }

    pub(crate) fn of_hash(organization: OrgId, hash: [u8; 32]) -> CacheKey {
        CacheKey { organization, hash }
    }

    pub fn organization(&self) -> OrgId {
        self.organization
    }

    pub fn hash(&self) -> &[u8; 32] {
        &self.hash
    }

    /// Returns the node that stores the entry, by rendezvous hashing. A node that leaves moves only its own entries.
    pub fn owner(&self, nodes: &[NodeId]) -> Option<NodeId> {
        nodes.iter().copied().max_by_key(|node| (self.weight(*node), *node))
    }

    fn weight(&self, node: NodeId) -> u64 {
        let (parts, _) = self.hash.as_chunks::<8>();
        parts.iter().fold(mix(node.0), |weight, part| mix(weight ^ u64::from_le_bytes(*part)))
    }
}

/// Prints only the start of the hash, because a log with a full key would reveal which request was made.
impl fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CacheKey({} {:02x}{:02x})", self.organization, self.hash[0], self.hash[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: CacheKeyParts<'static> = CacheKeyParts {
        endpoint: CacheEndpoint::Chat,
        model: "gpt-4o",
        is_stream: false,
        organization: OrgId(Uuid::from_u128(1)),
        scope: CacheScope::Principal(Uuid::from_u128(2)),
        project: None,
        endpoint_name: None,
        candidate_class: "openai",
        headers: &[],
        body: br#"{"model":"gpt-4o","temperature":0}"#,
    };

    fn key(parts: CacheKeyParts<'_>) -> CacheKey {
        CacheKey::new(&parts).expect("valid JSON")
    }

    #[test]
    fn every_part_counts() {
        let keys = [
            PARTS,
            CacheKeyParts { endpoint: CacheEndpoint::Completions, ..PARTS },
            CacheKeyParts { model: "gpt-4", ..PARTS },
            CacheKeyParts { is_stream: true, ..PARTS },
            CacheKeyParts { organization: OrgId(Uuid::from_u128(2)), ..PARTS },
            CacheKeyParts { scope: CacheScope::Principal(Uuid::from_u128(3)), ..PARTS },
            CacheKeyParts { scope: CacheScope::Organization, ..PARTS },
            CacheKeyParts { project: Some(Uuid::from_u128(2)), ..PARTS },
            CacheKeyParts { scope: CacheScope::Organization, project: Some(Uuid::from_u128(2)), ..PARTS },
            CacheKeyParts { endpoint_name: Some(""), ..PARTS },
            CacheKeyParts { endpoint_name: Some("openai"), candidate_class: "", ..PARTS },
            CacheKeyParts { candidate_class: "azure", ..PARTS },
            CacheKeyParts { headers: &[("anthropic-beta", "a")], ..PARTS },
            CacheKeyParts { headers: &[("anthropic-betaa", "")], ..PARTS },
            CacheKeyParts { body: br#"{"model":"gpt-4o","temperature":0.0}"#, ..PARTS },
            CacheKeyParts { body: br#"{"model":"gpt-4o","temperature":"0"}"#, ..PARTS },
        ]
        .map(key);
        for (place, key) in keys.iter().enumerate() {
            assert_eq!(keys.iter().position(|other| other == key), Some(place));
        }
    }

    #[test]
    fn the_order_of_members_does_not_count() {
        let other = CacheKeyParts { body: b"{ \"temperature\": 0, \"model\": \"gpt\\u002d4o\" }", ..PARTS };
        assert_eq!(key(other), key(PARTS));
        assert!(CacheKey::new(&CacheKeyParts { body: b"{", ..PARTS }).is_err());
    }

    #[test]
    fn nothing_prints_a_key() {
        let (key, shown) = (key(PARTS), format!("{:?}", key(PARTS)));
        let hex: String = key.hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(shown.contains(&hex[..4]) && !shown.contains(&hex[..6]), "{shown}");
    }

    fn owners(nodes: &[u64]) -> Vec<u64> {
        let nodes: Vec<NodeId> = nodes.iter().copied().map(NodeId).collect();
        let hash = |number: u16| *blake3::hash(&number.to_le_bytes()).as_bytes();
        let owner = |number| CacheKey::of_hash(PARTS.organization, hash(number)).owner(&nodes).expect("a node").0;
        (0..3000).map(owner).collect()
    }

    #[test]
    fn entries_are_spread_and_stay_where_they_are() {
        let before = owners(&[1, 2, 3]);
        for node in 1..=3 {
            let count = before.iter().filter(|owner| **owner == node).count();
            assert!((900..1100).contains(&count), "{count} of 3000 at node {node}");
        }
        for (before, after) in before.iter().zip(owners(&[3, 1])) {
            assert!(*before == after || *before == 2, "{before} {after}");
        }
        assert_eq!(key(PARTS).owner(&[]), None);
    }
}
