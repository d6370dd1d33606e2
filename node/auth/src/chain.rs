//! Hash chain of the audit log: every entry has the hash of the one before it, so that changes are detectable.
//!
//! An entry's hash is over all that it says, its number and the hash before it included, as JSON with its keys in order.
//! Whoever takes one out, puts one in or changes one has to change all that come after it, and so has to have the last one,
//! which others may have kept.

use std::future::Future;
use std::pin::Pin;

use assay_storage_model::OrgId;
use serde_json::{Map, Value};

/// Frozen: it is in every hash.
const CONTEXT: &str = "assay audit entry 1";
/// Stands for the previous hash in the first entry.
pub const FIRST_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

pub const SEQUENCE: &str = "sequence";
pub const PREVIOUS_HASH: &str = "previous_hash";
pub const HASH: &str = "hash";

/// Storage of audit entries. A change without an entry must not be executed.
pub trait Ledger: Send + Sync {
    /// Appends an entry. Returns once it is durable.
    fn append<'l>(
        &'l self,
        org: OrgId,
        entry: Map<String, Value>,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'l>>;
}

/// The entry with its number, the hash before it, and its own.
pub fn linked(mut entry: Map<String, Value>, sequence: u64, previous: &str) -> Map<String, Value> {
    entry.insert(SEQUENCE.into(), sequence.into());
    entry.insert(PREVIOUS_HASH.into(), previous.into());
    let hash = hash_of(&entry);
    entry.insert(HASH.into(), hash.into());
    entry
}

/// Over everything but the hash itself.
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

/// Verifies a chain of entries, oldest first, that follows `previous`. Returns the last hash, or the first problem.
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
        // Frozen: what was written is looked at by later versions.
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
