//! Readings of buckets: the number of requests that a rule would admit at once. A reading takes no token.

use std::sync::Arc;
use std::time::Duration;

use assay_node_auth::Principal;
use bytes::Bytes;
use futures::future::join_all;
use tokio::time::timeout;

use super::key::BucketKey;
use super::rules::CompiledRule;
use super::{Limiter, Per, RateLimiter, RateRule, wire};

/// Time limit of the request to a bucket's home.
const WITHIN: Duration = Duration::from_millis(500);

/// Rule that applies to a caller, with the state of its bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct RateReading {
    pub rule: RateRule,
    /// Number of requests that a full bucket admits at once.
    pub burst: f64,
    /// Number of requests that the bucket admits at once now.
    ///
    /// It is `None` if the bucket depends on the project or if its home is silent.
    pub left: Option<f64>,
}

impl RateLimiter {
    /// Reads the buckets of the rules that apply to a caller.
    pub async fn readings(&self, who: &Principal) -> Vec<RateReading> {
        let Some(limiter) = &self.0 else { return Vec::new() };
        let rules = limiter.rules.iter().enumerate().filter(|(_, rule)| rule.is_for(who));
        join_all(rules.map(|(place, rule)| limiter.read(place, rule, who))).await
    }
}

impl Limiter {
    async fn read(self: &Arc<Limiter>, place: usize, rule: &CompiledRule, who: &Principal) -> RateReading {
        let left = match rule.config.per {
            Per::Organization | Per::Credential => self.left(place, rule.key(who, || None)).await,
            Per::Project | Per::OrganizationProject => None,
        };
        RateReading { rule: rule.config.clone(), burst: rule.terms.burst, left }
    }

    async fn left(&self, place: usize, key: BucketKey) -> Option<f64> {
        let view = self.peers.view();
        let home = if view.known <= 1 { view.own } else { key.home(&view.alive)? };
        if home == view.own {
            return Some(self.left_here(place, key));
        }
        let answer = timeout(WITHIN, self.peers.ask(home, wire::read(&key), WITHIN)).await.ok()?.ok()?;
        wire::read_left(&answer)
    }

    /// Returns the tokens of a bucket whose home is this node. A missing bucket is full.
    fn left_here(&self, place: usize, key: BucketKey) -> f64 {
        let (now, terms) = (self.now(), self.rules[place].terms);
        self.homes.lock().get(&key).map_or(terms.burst, |bucket| bucket.tokens_at(now, terms).max(0.0))
    }

    /// Answers another node that reads a bucket.
    pub(super) fn answer_reading(&self, key: BucketKey) -> Result<Bytes, String> {
        let place = self.places.get(&key.rule).ok_or("this node has no such rule")?;
        Ok(wire::left(self.left_here(*place, key)))
    }
}
