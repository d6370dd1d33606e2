//! Ids of calls, made up where the dialect has none (G-30).

use std::collections::{HashMap, VecDeque};

use super::fields::too_many;
use assay_node_dialects::DialectError;

/// Upper bound of calls in one conversation or answer.
pub(super) const CALLS_MAX: u64 = 4_096;
/// Upper bound of bytes of a made-up id: other providers refuse longer ones.
pub const CALL_ID_BYTES_MAX: usize = 40;

/// Beginning by which a made-up id is recognized, and then never sent to a Gemini server.
const PREFIX: &str = "gemini_";
const HEX_DIGITS: usize = 32;
const _: () = assert!(PREFIX.len() + HEX_DIGITS <= CALL_ID_BYTES_MAX);

/// Ids of the calls of one conversation or answer, and calls that wait for their results.
#[derive(Debug, Default)]
pub(super) struct GeminiCallIds {
    /// Text that tells calls of this answer from equal calls of others.
    seed: String,
    calls: u64,
    waiting: HashMap<String, VecDeque<String>>,
}

impl GeminiCallIds {
    /// Ids for the calls of one candidate of an answer. An answer without an id has the empty one.
    pub fn of_candidate(response_id: &str, index: u64) -> GeminiCallIds {
        GeminiCallIds { seed: format!("{response_id}/{index}"), ..GeminiCallIds::default() }
    }

    /// Returns the id of the next call: its own, or one made from its position, name and arguments.
    pub fn of_call(&mut self, own: Option<String>, name: &str, arguments: &str) -> Result<String, DialectError> {
        if self.calls >= CALLS_MAX {
            return Err(too_many("calls", CALLS_MAX as usize));
        }
        let id = own.filter(|id| !id.is_empty()).unwrap_or_else(|| self.made_up(name, arguments));
        self.calls += 1;
        self.waiting.entry(name.to_owned()).or_default().push_back(id.clone());
        Ok(id)
    }

    /// Returns the id of the call that a result belongs to: the first of its name that has none yet.
    pub fn of_result(&mut self, own: Option<String>, name: &str) -> String {
        let waiting = self.waiting.get_mut(name);
        if let Some(own) = own.filter(|id| !id.is_empty()) {
            if let Some(waiting) = waiting
                && let Some(at) = waiting.iter().position(|id| *id == own)
            {
                waiting.remove(at);
            }
            return own;
        }
        match waiting.and_then(VecDeque::pop_front) {
            Some(id) => id,
            None => {
                self.calls += 1;
                self.made_up(name, "")
            }
        }
    }

    fn made_up(&self, name: &str, arguments: &str) -> String {
        let call = self.calls.to_string();
        let hash = hash([self.seed.as_str(), call.as_str(), name, arguments]);
        format!("{PREFIX}{hash:032x}")
    }
}

/// Whether an id was made up by [`GeminiCallIds`].
pub(super) fn is_made_up(id: &str) -> bool {
    let digits = id.strip_prefix(PREFIX);
    digits.is_some_and(|digits| digits.len() == HEX_DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// FNV-1a of 128 bits over texts, each ended by a byte that UTF-8 does not have. It stays the same over releases.
fn hash<const N: usize>(texts: [&str; N]) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0xff]));
    bytes.fold(OFFSET, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}
