//! Credentials that are kept until they expire: a state machine in the time of the caller.
//!
//! ```text
//! nothing ── look_up ──▶ fetching ── succeeded ──▶ valid ── 5 minutes before its end ──▶ valid and fetching
//!    ▲                      └─────── failed ─────▶ waiting, longer after each failure ──▶ fetching
//! ```
//! One caller fetches at a time. While a credential is still valid the others use it, and else they wait for it.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

use assay_node_models::provider::Provider;
use ring::digest::{Context, SHA256};
use serde_json::Value;

use crate::CredentialError;

/// Upper bound of kept credentials. The one that was used longest ago makes way.
pub const CREDENTIALS_MAX: usize = 10_000;
/// How long before its end a credential is fetched anew, in milliseconds. Short-lived ones: in the last third of their life.
pub const REFRESH_MS: i64 = 5 * 60 * 1000;
/// Time after which a fetch without a result counts as lost, in milliseconds.
pub const FETCH_MS_MAX: i64 = 60 * 1000;
/// Longest wait after a failure, in milliseconds.
pub const RETRY_MS_MAX: i64 = 60 * 1000;

/// Wait after the first failure, in milliseconds; it doubles with each.
const RETRY_MS: i64 = 1000;
/// Failures after which the wait is no longer doubled.
const DOUBLINGS_MAX: u32 = 6;
/// A credential that ends sooner is not used any more, in milliseconds: a call takes time.
const LEAST_MS: i64 = 10 * 1000;

/// What a caller does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialLookup<V> {
    /// Use it.
    Valid(V),
    /// Use it, and fetch a new one.
    Refresh(V),
    /// Fetch one. The result must be told by `succeeded` or `failed`.
    Fetch,
    /// Wait for the fetch of another caller, at most until this time.
    Wait { until_ms: i64 },
    /// The last fetch failed, and no other is due yet.
    Failed { error: CredentialError, retry_at_ms: i64 },
}

/// Key of the credentials of a provider secret. A changed secret, or one with changed metadata, has another.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CredentialKey([u8; 32]);

impl CredentialKey {
    pub fn of(provider: &Provider, secret: &str) -> CredentialKey {
        let metadata = Value::Object(provider.metadata.members.clone()).to_string();
        let mut hash = Context::new(&SHA256);
        for part in [provider.id.as_str(), provider.provider_type.name(), secret, &metadata] {
            hash.update(&part.len().to_be_bytes());
            hash.update(part.as_bytes());
        }
        let mut key = [0; 32];
        key.copy_from_slice(hash.finish().as_ref());
        CredentialKey(key)
    }
}

impl fmt::Debug for CredentialKey {
    /// Shows nothing: a short secret could be guessed from its hash.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CredentialKey").finish_non_exhaustive()
    }
}

/// Credentials by keys, such as [`CredentialKey`].
#[derive(Clone, Debug)]
pub struct CredentialCache<K, V> {
    entries: HashMap<K, CachedCredential<V>>,
    max: usize,
}

#[derive(Clone, Debug)]
struct CachedCredential<V> {
    used_ms: i64,
    valid: Option<ValidCredential<V>>,
    /// When the current fetch began.
    fetching_ms: Option<i64>,
    failure: Option<FailedFetch>,
}

#[derive(Clone, Debug)]
struct ValidCredential<V> {
    value: V,
    refresh_ms: i64,
    expires_ms: i64,
}

#[derive(Clone, Debug)]
struct FailedFetch {
    error: CredentialError,
    retry_at_ms: i64,
    count: u32,
}

impl<K: Eq + Hash + Clone, V: Clone> Default for CredentialCache<K, V> {
    fn default() -> Self {
        CredentialCache::new(CREDENTIALS_MAX)
    }
}

impl<K: Eq + Hash + Clone, V: Clone> CredentialCache<K, V> {
    /// Makes a cache of at most `max` credentials, of at least one.
    pub fn new(max: usize) -> Self {
        CredentialCache { entries: HashMap::new(), max: max.max(1) }
    }

    /// Returns what to do for a credential.
    pub fn look_up(&mut self, key: &K, now_ms: i64) -> CredentialLookup<V> {
        if !self.entries.contains_key(key) {
            self.make_way();
            let entry = CachedCredential { used_ms: now_ms, valid: None, fetching_ms: Some(now_ms), failure: None };
            self.entries.insert(key.clone(), entry);
            return CredentialLookup::Fetch;
        }
        let entry = self.entries.get_mut(key).expect("the key was found above");
        entry.used_ms = now_ms;
        let lost_ms = entry.fetching_ms.map(|began| began.saturating_add(FETCH_MS_MAX)).filter(|lost| *lost > now_ms);
        let failure = entry.failure.clone().filter(|failure| failure.retry_at_ms > now_ms);
        let may_fetch = lost_ms.is_none() && failure.is_none();
        let is_usable = |valid: &&ValidCredential<V>| valid.expires_ms.saturating_sub(LEAST_MS) > now_ms;
        if let Some(valid) = entry.valid.as_ref().filter(is_usable) {
            if valid.refresh_ms > now_ms || !may_fetch {
                return CredentialLookup::Valid(valid.value.clone());
            }
            entry.fetching_ms = Some(now_ms);
            return CredentialLookup::Refresh(valid.value.clone());
        }
        match (lost_ms, failure) {
            (Some(until_ms), _) => CredentialLookup::Wait { until_ms },
            (None, Some(failure)) => {
                CredentialLookup::Failed { error: failure.error, retry_at_ms: failure.retry_at_ms }
            }
            (None, None) => {
                entry.fetching_ms = Some(now_ms);
                CredentialLookup::Fetch
            }
        }
    }

    /// Keeps a fetched credential until its end.
    pub fn succeeded(&mut self, key: &K, value: V, expires_ms: i64, now_ms: i64) {
        if !self.entries.contains_key(key) {
            self.make_way();
        }
        let life = expires_ms.saturating_sub(now_ms).max(0);
        let refresh_ms = expires_ms.saturating_sub(REFRESH_MS.min(life / 3));
        let valid = Some(ValidCredential { value, refresh_ms, expires_ms });
        let entry = CachedCredential { used_ms: now_ms, valid, fetching_ms: None, failure: None };
        self.entries.insert(key.clone(), entry);
    }

    /// Notes that a fetch failed. A credential that is still valid stays.
    pub fn failed(&mut self, key: &K, error: CredentialError, now_ms: i64) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let count = entry.failure.as_ref().map_or(0, |failure| failure.count);
        let wait = (RETRY_MS << count.min(DOUBLINGS_MAX)).min(RETRY_MS_MAX);
        let retry_at_ms = now_ms.saturating_add(wait);
        entry.failure = Some(FailedFetch { error, retry_at_ms, count: count.saturating_add(1) });
        entry.fetching_ms = None;
    }

    /// Forgets a credential that its provider refused, so that the next call fetches another. One that was fetched after
    /// the refused one stays.
    pub fn refused(&mut self, key: &K, refused: &V)
    where
        V: PartialEq,
    {
        if let Some(entry) = self.entries.get_mut(key)
            && entry.valid.as_ref().is_some_and(|valid| valid.value == *refused)
        {
            entry.valid = None;
        }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Makes space for one more.
    fn make_way(&mut self) {
        if self.entries.len() < self.max {
            return;
        }
        let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used_ms).map(|(key, _)| key.clone());
        if let Some(oldest) = oldest {
            self.entries.remove(&oldest);
        }
    }
}
