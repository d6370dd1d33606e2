//! Pure store for the signatures of tool calls by Gemini models (G-30).
//!
//! Clients often lose these signatures, and only the route that made one accepts it.

use std::collections::{BTreeMap, HashMap};

use assay_node_dialects::Dialect;
use assay_node_dialects::form::{ContentPart, ModelRequest, ModelResponse};
use uuid::Uuid;

use super::conversation::UnwrittenConversation;
use crate::translation::UpstreamFormat;

/// Upper bound of the kept signatures. The least recently used one is removed first.
const SIGNATURES_MAX: usize = 100_000;
/// Upper bound of the bytes of all kept signatures.
const ALL_BYTES_MAX: usize = 64 << 20;
/// Upper bound of the bytes of a kept signature.
const SIGNATURE_BYTES_MAX: usize = 256 << 10;
/// Upper bound of the bytes of a call id.
const CALL_ID_BYTES_MAX: usize = 256;
/// Time for which a signature is kept, in milliseconds.
const LIFE_MS: u64 = 24 * 3600 * 1000;
/// Estimated bytes of an entry besides its texts.
const ENTRY_BYTES: usize = 200;

/// Principal, and id of a tool call in a response to that principal.
type SignatureKey = (Uuid, String);

/// Signatures of tool calls, with the provider secrets whose servers made them.
#[derive(Debug)]
pub(crate) struct CallSignatures {
    kept: HashMap<SignatureKey, KeptSignature>,
    /// Keys in the order of their last use.
    order: BTreeMap<u64, SignatureKey>,
    uses: u64,
    bytes: usize,
    signatures_max: usize,
    bytes_max: usize,
}

#[derive(Debug)]
struct KeptSignature {
    signature: String,
    secret_id: String,
    expires_ms: u64,
    use_number: u64,
}

impl Default for CallSignatures {
    fn default() -> CallSignatures {
        CallSignatures::with_limits(SIGNATURES_MAX, ALL_BYTES_MAX)
    }
}

impl CallSignatures {
    fn with_limits(signatures_max: usize, bytes_max: usize) -> CallSignatures {
        let (kept, order) = (HashMap::new(), BTreeMap::new());
        CallSignatures { kept, order, uses: 0, bytes: 0, signatures_max, bytes_max }
    }

    /// Stores the signatures of a response.
    pub fn keep(&mut self, principal: Uuid, secret_id: &str, response: &ModelResponse, now_ms: u64) {
        let parts = response.choices.iter().flat_map(|choice| &choice.parts);
        for part in parts {
            if let ContentPart::ToolCall(call) = part
                && let Some(signature) = &call.signature
                && signature.len() <= SIGNATURE_BYTES_MAX
                && (1..=CALL_ID_BYTES_MAX).contains(&call.id.len())
            {
                self.insert((principal, call.id.clone()), signature, secret_id, now_ms);
            }
        }
    }

    /// Restores signatures in a request for a Gemini server.
    ///
    /// Signatures of another server are removed, because this server would refuse them.
    pub fn restore(&mut self, principal: Uuid, secret_id: &str, conversation: &mut UnwrittenConversation, now_ms: u64) {
        if conversation.server == UpstreamFormat::Client(Dialect::Gemini) {
            self.restore_in(principal, secret_id, &mut conversation.request, now_ms);
        }
    }

    fn restore_in(&mut self, principal: Uuid, secret_id: &str, request: &mut ModelRequest, now_ms: u64) {
        for part in request.messages.iter_mut().flat_map(|message| &mut message.parts) {
            let ContentPart::ToolCall(call) = part else { continue };
            let Some(kept) = self.found(&(principal, call.id.clone()), now_ms) else { continue };
            if kept.secret_id == secret_id {
                call.signature.get_or_insert_with(|| kept.signature.clone());
            } else {
                call.signature = None;
            }
        }
    }

    fn found(&mut self, key: &SignatureKey, now_ms: u64) -> Option<&KeptSignature> {
        if self.kept.get(key)?.expires_ms <= now_ms {
            self.remove(key);
            return None;
        }
        self.uses += 1;
        let kept = self.kept.get_mut(key)?;
        self.order.remove(&kept.use_number);
        kept.use_number = self.uses;
        self.order.insert(self.uses, key.clone());
        Some(kept)
    }

    fn insert(&mut self, key: SignatureKey, signature: &str, secret_id: &str, now_ms: u64) {
        self.remove(&key);
        self.uses += 1;
        let kept = KeptSignature {
            signature: signature.to_owned(),
            secret_id: secret_id.to_owned(),
            expires_ms: now_ms.saturating_add(LIFE_MS),
            use_number: self.uses,
        };
        self.bytes += bytes_of(&key, &kept);
        self.order.insert(self.uses, key.clone());
        self.kept.insert(key, kept);
        while self.kept.len() > self.signatures_max || self.bytes > self.bytes_max {
            let Some((_, oldest)) = self.order.pop_first() else { return };
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, key: &SignatureKey) {
        if let Some(removed) = self.kept.remove(key) {
            self.order.remove(&removed.use_number);
            self.bytes -= bytes_of(key, &removed);
        }
    }
}

fn bytes_of((_, call_id): &SignatureKey, kept: &KeptSignature) -> usize {
    ENTRY_BYTES + 2 * call_id.len() + kept.signature.len() + kept.secret_id.len()
}

#[cfg(test)]
mod tests {
    use assay_node_dialects::form::{Message, ModelChoice, Role, ToolCallPart};

    use super::*;

    const ANN: Uuid = Uuid::from_u128(1);
    const BOB: Uuid = Uuid::from_u128(2);

    fn call(id: &str, signature: Option<&str>) -> ContentPart {
        ContentPart::ToolCall(ToolCallPart {
            id: id.to_owned(),
            name: "f".to_owned(),
            arguments: "{}".to_owned(),
            signature: signature.map(str::to_owned),
            cache: None,
            extra: Default::default(),
        })
    }

    fn answer(id: &str, signature: &str) -> ModelResponse {
        let parts = vec![call(id, Some(signature))];
        let choice = ModelChoice { index: 0, parts, finish: None, logprobs: None, extra: Default::default() };
        ModelResponse { choices: vec![choice], ..ModelResponse::default() }
    }

    fn restored(kept: &mut CallSignatures, who: Uuid, secret: &str, call: ContentPart, now_ms: u64) -> Option<String> {
        let message = Message { role: Role::Assistant, name: None, parts: vec![call], extra: Default::default() };
        let mut request = ModelRequest { messages: vec![message], ..ModelRequest::default() };
        kept.restore_in(who, secret, &mut request, now_ms);
        let ContentPart::ToolCall(call) = request.messages.remove(0).parts.remove(0) else { panic!("no call") };
        call.signature
    }

    #[test]
    fn a_lost_signature_is_restored_for_the_same_principal_and_secret() {
        let mut kept = CallSignatures::default();
        kept.keep(ANN, "s1", &answer("c1", "sig"), 0);
        assert_eq!(restored(&mut kept, ANN, "s1", call("c1", None), 1).as_deref(), Some("sig"));
        assert_eq!(restored(&mut kept, ANN, "s1", call("c1", Some("own")), 1).as_deref(), Some("own"));
        assert_eq!(restored(&mut kept, BOB, "s1", call("c1", None), 1), None);
        assert_eq!(restored(&mut kept, ANN, "s1", call("c2", None), 1), None);
        assert_eq!(restored(&mut kept, ANN, "s2", call("c1", None), 1), None);
        assert_eq!(restored(&mut kept, ANN, "s2", call("c1", Some("sig")), 1), None, "another server refuses it");
    }

    #[test]
    fn signatures_are_kept_for_a_day_and_within_bounds() {
        let mut kept = CallSignatures::with_limits(2, 10_000);
        kept.keep(ANN, "s", &answer("a", "1"), 0);
        kept.keep(ANN, "s", &answer("b", "2"), 0);
        assert!(restored(&mut kept, ANN, "s", call("a", None), 1).is_some());
        kept.keep(ANN, "s", &answer("c", "3"), 0);
        assert_eq!(restored(&mut kept, ANN, "s", call("b", None), 1), None, "it was used longest ago");
        assert!(restored(&mut kept, ANN, "s", call("a", None), LIFE_MS - 1).is_some());
        assert_eq!(restored(&mut kept, ANN, "s", call("a", None), LIFE_MS), None);
        kept.keep(ANN, "s", &answer("d", &"x".repeat(9_000)), 0);
        kept.keep(ANN, "s", &answer("e", &"x".repeat(9_000)), 0);
        assert_eq!((kept.kept.len(), kept.order.len()), (1, 1));
        let key = (ANN, "e".to_owned());
        kept.remove(&key);
        assert_eq!((kept.bytes, kept.order.len()), (0, 0));
    }
}
