//! Hash chain of the audit log, which makes changes of entries detectable.
//!
//! The hash of an entry covers all its fields, its number and the previous hash, as JSON with sorted keys. Whoever
//! removes, inserts or changes an entry must rewrite all later ones. The last hash then differs from the copies that
//! others may have kept.

use std::future::Future;
use std::pin::Pin;

use assay_storage_model::OrgId;
use serde_json::{Map, Value};

/// Hash context. Frozen, because every hash depends on it.
const CONTEXT: &str = "assay audit entry 1";
/// Previous hash of the first entry.
pub const FIRST_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

pub const SEQUENCE: &str = "sequence";
pub const PREVIOUS_HASH: &str = "previous_hash";
pub const HASH: &str = "hash";

/// Storage of audit entries. A change must not be executed before its entry is stored.
pub trait Ledger: Send + Sync {
    /// Appends an entry and returns once it is durable.
    fn append<'l>(
        &'l self,
        org: OrgId,
        entry: Map<String, Value>,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'l>>;
}

/// Adds its number, the previous hash and its own hash to an entry.
pub fn linked(mut entry: Map<String, Value>, sequence: u64, previous: &str) -> Map<String, Value> {
    entry.insert(SEQUENCE.into(), sequence.into());
    entry.insert(PREVIOUS_HASH.into(), previous.into());
    let hash = hash_of(&entry);
    entry.insert(HASH.into(), hash.into());
    entry
}

/// Returns the hash of all fields except the hash itself.
fn hash_of(entry: &Map<String, Value>) -> String {
    let mut text = String::new();
    let own: Vec<_> = entry.iter().filter(|(name, _)| *name != HASH).collect();
    put_object(&mut text, own);
    blake3::Hasher::new_derive_key(CONTEXT).update(text.as_bytes()).finalize().to_hex().to_string()
}

/// Appends canonical JSON, with sorted keys.
fn put(text: &mut String, value: &Value) {
    match value {
        Value::Object(members) => put_object(text, members.iter().collect()),
        Value::Array(items) => {
            text.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                put(text, item);
            }
            text.push(']');
        }
        plain => text.push_str(&plain.to_string()),
    }
}

fn put_object(text: &mut String, mut members: Vec<(&String, &Value)>) {
    members.sort_by_key(|(name, _)| *name);
    text.push('{');
    for (place, (name, value)) in members.into_iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        text.push_str(&Value::from(name.as_str()).to_string());
        text.push(':');
        put(text, value);
    }
    text.push('}');
}

/// Verifies a chain of entries that follows `previous`, oldest first. Returns the last hash, or the first problem.
pub fn verified<'e>(
    entries: impl IntoIterator<Item = &'e Map<String, Value>>,
    mut next: u64,
    previous: &str,
) -> Result<String, String> {
    let mut previous = previous.to_owned();
    for entry in entries {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let sequence = entry.get(SEQUENCE).and_then(Value::as_u64);
        if sequence != Some(next) {
            return Err(format!("entry {sequence:?} is in the place of entry {next}"));
        }
        if text(PREVIOUS_HASH) != previous {
            return Err(format!("entry {next} does not match the hash of the previous entry"));
        }
        if text(HASH) != hash_of(entry) {
            return Err(format!("entry {next} was modified after it was written"));
        }
        previous = text(HASH).to_owned();
        next += 1;
    }
    Ok(previous)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn entry(what: &str) -> Map<String, Value> {
        let said = json!({"action": what, "details": {"b": [1, {"y": null, "x": "ü\n"}], "a": true}});
        said.as_object().cloned().expect("an object")
    }

    fn chain(words: &[String]) -> Vec<Map<String, Value>> {
        let mut previous = FIRST_HASH.to_owned();
        let link = |(place, word): (usize, &String)| {
            let linked = linked(entry(word), place as u64 + 1, &previous);
            previous = linked[HASH].as_str().expect("a hash").to_owned();
            linked
        };
        words.iter().enumerate().map(link).collect()
    }

    #[test]
    fn the_order_of_keys_says_nothing() {
        let reversed: Map<_, _> = entry("a").into_iter().rev().collect();
        assert_eq!(linked(entry("a"), 1, FIRST_HASH)[HASH], linked(reversed, 1, FIRST_HASH)[HASH]);
        // Frozen, because later versions verify stored entries.
        let hash = linked(entry("a"), 1, FIRST_HASH)[HASH].clone();
        assert_eq!(hash, "419d3d7571a54a6faadf247fd8425ccc60e8ba3d6afd5ec2cd1869b8ebd5ce12");
    }

    proptest! {
        #[test]
        fn a_whole_chain_is_whole_and_any_other_is_not(
            words in proptest::collection::vec("[a-c]{1,3}", 1..8),
            place in any::<prop::sample::Index>(),
            how in 0_u8..5,
        ) {
            let whole = chain(&words);
            let last = whole.last().expect("some")[HASH].as_str().map(str::to_owned);
            prop_assert_eq!(verified(&whole, 1, FIRST_HASH).ok(), last);
            let mut changed = whole.clone();
            let place = place.index(changed.len());
            match how {
                0 => drop(changed[place].insert("action".into(), "z".into())),
                1 => drop(changed[place].insert("more".into(), Value::Null)),
                2 if place + 1 < changed.len() => drop(changed.remove(place)),
                3 => changed.insert(place, whole[place].clone()),
                4 if place > 0 => changed.swap(place - 1, place),
                _ => drop(changed[place].insert(HASH.into(), FIRST_HASH.into())),
            }
            prop_assert!(verified(&changed, 1, FIRST_HASH).is_err());
        }
    }
}
