//! The cache in simulated time.

use proptest::prelude::*;

use assay_node_models::provider::HiddenText;
use serde_json::json;

use super::provider;
use crate::{
    CredentialCache, CredentialError, CredentialKey, CredentialLookup, FETCH_MS_MAX, REFRESH_MS, RETRY_MS_MAX, Token,
};

const HOUR_MS: i64 = 3_600_000;

fn cache() -> CredentialCache<&'static str, u64> {
    CredentialCache::new(2)
}

fn failure() -> CredentialError {
    CredentialError::Failed { status: 503 }
}

#[test]
fn a_key_follows_the_secret_and_its_metadata() {
    let key = |kind, metadata, secret| CredentialKey::of(&provider(kind, &metadata), secret);
    let one = key("azure", json!({"a": 1}), "hidden");
    assert_eq!(one, key("azure", json!({"a": 1}), "hidden"));
    for other in [
        key("azure", json!({"a": 1}), "hidden2"),
        key("azure", json!({"a": 2}), "hidden"),
        key("vertex", json!({"a": 1}), "hidden"),
    ] {
        assert_ne!(one, other);
    }
    assert_eq!(format!("{one:?}"), "CredentialKey { .. }");
}

#[test]
fn the_end_of_a_token_counts_from_its_answer() {
    let token = |expires_in| Token { value: HiddenText::new("t"), expires_in };
    assert_eq!(token(3600).expires_ms(5), HOUR_MS + 5);
    assert_eq!(token(u64::MAX).expires_ms(5), i64::MAX);
}

#[test]
fn one_caller_fetches_and_the_others_wait() {
    let mut cache = cache();
    assert_eq!(cache.look_up(&"k", 0), CredentialLookup::Fetch);
    assert_eq!(cache.look_up(&"k", 1), CredentialLookup::Wait { until_ms: FETCH_MS_MAX });
    cache.succeeded(&"k", 7, HOUR_MS, 100);
    assert_eq!(cache.look_up(&"k", 200), CredentialLookup::Valid(7));
}

#[test]
fn a_fetch_without_a_result_is_lost() {
    let mut cache = cache();
    cache.look_up(&"k", 0);
    assert_eq!(cache.look_up(&"k", FETCH_MS_MAX), CredentialLookup::Fetch);
}

#[test]
fn a_credential_is_refreshed_five_minutes_before_its_end() {
    let mut cache = cache();
    cache.succeeded(&"k", 1, HOUR_MS, 0);
    let refresh = HOUR_MS - REFRESH_MS;
    assert_eq!(cache.look_up(&"k", refresh - 1), CredentialLookup::Valid(1));
    assert_eq!(cache.look_up(&"k", refresh), CredentialLookup::Refresh(1));
    assert_eq!(cache.look_up(&"k", refresh + 1), CredentialLookup::Valid(1), "one fetches, the others use it");
    cache.failed(&"k", failure(), refresh + 2);
    assert_eq!(cache.look_up(&"k", refresh + 3), CredentialLookup::Valid(1), "a failure leaves what is valid");
    assert_eq!(cache.look_up(&"k", refresh + 1002), CredentialLookup::Refresh(1));
    cache.succeeded(&"k", 2, 2 * HOUR_MS, refresh + 1010);
    assert_eq!(cache.look_up(&"k", HOUR_MS), CredentialLookup::Valid(2));
}

#[test]
fn a_short_life_is_refreshed_in_its_last_third() {
    let mut cache = cache();
    cache.succeeded(&"k", 1, 300_000, 0);
    assert_eq!(cache.look_up(&"k", 199_999), CredentialLookup::Valid(1));
    assert_eq!(cache.look_up(&"k", 200_000), CredentialLookup::Refresh(1));
}

#[test]
fn an_expired_credential_is_not_used() {
    let mut cache = cache();
    cache.succeeded(&"k", 1, HOUR_MS, 0);
    assert_eq!(cache.look_up(&"k", HOUR_MS), CredentialLookup::Fetch);
    cache.succeeded(&"k", 2, HOUR_MS, HOUR_MS);
    assert_eq!(cache.look_up(&"k", HOUR_MS), CredentialLookup::Fetch, "one that is over when it comes");
}

#[test]
fn failures_wait_longer_each_time() {
    let mut cache = cache();
    let mut now = 0;
    for wait in [1000, 2000, 4000, 8000, 16_000, 32_000, RETRY_MS_MAX, RETRY_MS_MAX] {
        assert_eq!(cache.look_up(&"k", now), CredentialLookup::Fetch);
        cache.failed(&"k", failure(), now);
        let expected = CredentialLookup::Failed { error: failure(), retry_at_ms: now + wait };
        assert_eq!(cache.look_up(&"k", now + wait - 1), expected);
        now += wait;
    }
    cache.succeeded(&"k", 1, now + HOUR_MS, now);
    now += HOUR_MS;
    assert_eq!(cache.look_up(&"k", now), CredentialLookup::Fetch);
    cache.failed(&"k", failure(), now);
    assert_eq!(cache.look_up(&"k", now + 1000), CredentialLookup::Fetch, "a success forgets failures");
}

#[test]
fn a_refused_credential_is_forgotten_once() {
    let mut cache = cache();
    cache.succeeded(&"k", 1, HOUR_MS, 0);
    cache.refused(&"k", &1);
    assert_eq!(cache.look_up(&"k", 1), CredentialLookup::Fetch);
    cache.succeeded(&"k", 2, HOUR_MS, 2);
    cache.refused(&"k", &1);
    assert_eq!(cache.look_up(&"k", 3), CredentialLookup::Valid(2));
}

#[test]
fn the_longest_unused_makes_way() {
    let mut cache = cache();
    cache.succeeded(&"a", 1, HOUR_MS, 0);
    cache.succeeded(&"b", 2, HOUR_MS, 1);
    cache.look_up(&"a", 2);
    cache.succeeded(&"c", 3, HOUR_MS, 3);
    assert_eq!(cache.len(), 2);
    assert_eq!(cache.look_up(&"a", 4), CredentialLookup::Valid(1));
    assert_eq!(cache.look_up(&"b", 5), CredentialLookup::Fetch);
}

proptest! {
    #[test]
    fn one_fetch_runs_at_a_time_and_nothing_expired_is_used(
        steps in prop::collection::vec((0u8..4, 0i64..400_000), 1..60),
    ) {
        let mut cache = CredentialCache::<u8, i64>::new(4);
        let (mut now, mut fetching_since) = (0i64, None::<i64>);
        for (step, passed) in steps {
            now += passed;
            match (step, fetching_since) {
                (0, Some(_)) => {
                    // the value says when it expires
                    let expires = now + passed + 1;
                    cache.succeeded(&1, expires, expires, now);
                    fetching_since = None;
                }
                (1, Some(_)) => {
                    cache.failed(&1, failure(), now);
                    fetching_since = None;
                }
                _ => {
                    let is_free = fetching_since.is_none_or(|since| since + FETCH_MS_MAX <= now);
                    let found = cache.look_up(&1, now);
                    match found {
                        CredentialLookup::Valid(expires) => prop_assert!(expires > now),
                        CredentialLookup::Refresh(expires) => prop_assert!(expires > now && is_free),
                        CredentialLookup::Fetch => prop_assert!(is_free),
                        CredentialLookup::Wait { until_ms } => prop_assert!(until_ms > now && !is_free),
                        CredentialLookup::Failed { retry_at_ms, .. } => {
                            prop_assert!(retry_at_ms > now && retry_at_ms <= now + RETRY_MS_MAX && is_free);
                        }
                    }
                    if matches!(found, CredentialLookup::Refresh(_) | CredentialLookup::Fetch) {
                        fetching_since = Some(now);
                    }
                }
            }
        }
    }
}
