//! Nodes that are missing in this node's catalog, and the decision whether to accept their certificates.
//!
//! A certificate proves that its issuer had the authority's key. A forged one can carry a number that never joined, so
//! the number has to be in the catalog. This node's copy of the catalog may be behind, and the unknown node may be the
//! one that would update it. So a known node is asked to vouch for the number; until then the number is refused.

use std::collections::BTreeMap;
use std::time::Duration;

use assay_storage_model::NodeId;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Validity of a voucher. After it the number is in the catalog here, or the request is repeated.
const VOUCHED_FOR: Duration = Duration::from_secs(60);
/// Time in which a number that was not vouched for is not asked about again.
const REFUSED_FOR: Duration = Duration::from_secs(2);
/// Maximum number of remembered numbers: more than a cluster ever has at once. Forged certificates cannot make this
/// grow.
const NUMBERS_MAX: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VouchState {
    /// A call carried the number; no node was asked yet.
    Wanted,
    VouchedUntil(Instant),
    RefusedUntil(Instant),
}

/// Numbers without a record here that have called.
#[derive(Debug, Default)]
pub struct UnknownNodes(Mutex<BTreeMap<NodeId, VouchState>>);

impl UnknownNodes {
    /// Returns whether a known node vouched for the number. If there was no recent request, one is made.
    pub fn is_vouched(&self, node: NodeId, now: Instant) -> bool {
        let mut numbers = self.0.lock();
        match numbers.get(&node) {
            Some(VouchState::VouchedUntil(until)) if now < *until => return true,
            Some(VouchState::RefusedUntil(until)) if now < *until => return false,
            Some(VouchState::Wanted) => return false,
            Some(_) | None => {}
        }
        if numbers.len() >= NUMBERS_MAX {
            numbers.retain(|_, standing| match standing {
                VouchState::Wanted => true,
                VouchState::VouchedUntil(until) | VouchState::RefusedUntil(until) => now < *until,
            });
        }
        if numbers.len() < NUMBERS_MAX {
            numbers.insert(node, VouchState::Wanted);
        }
        false
    }

    /// Returns the numbers that no node was asked about yet.
    pub fn wanted(&self) -> Vec<NodeId> {
        let numbers = self.0.lock();
        numbers.iter().filter(|(_, standing)| **standing == VouchState::Wanted).map(|(node, _)| *node).collect()
    }

    /// Records whether a known node vouched for the number.
    pub fn answered(&self, node: NodeId, vouched: bool, now: Instant) {
        let standing = match vouched {
            true => VouchState::VouchedUntil(now + VOUCHED_FOR),
            false => VouchState::RefusedUntil(now + REFUSED_FOR),
        };
        self.0.lock().insert(node, standing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_refused_until_somebody_vouches_and_asked_for_again_later() {
        let (strangers, node, now) = (UnknownNodes::default(), NodeId(99), Instant::now());
        assert!(!strangers.is_vouched(node, now));
        assert_eq!(strangers.wanted(), [node]);
        strangers.answered(node, false, now);
        assert!(!strangers.is_vouched(node, now + REFUSED_FOR / 2));
        assert!(strangers.wanted().is_empty(), "others are not asked at every call");
        assert!(!strangers.is_vouched(node, now + REFUSED_FOR * 2));
        assert_eq!(strangers.wanted(), [node]);
        strangers.answered(node, true, now);
        assert!(strangers.is_vouched(node, now + VOUCHED_FOR / 2));
        assert!(!strangers.is_vouched(node, now + VOUCHED_FOR));
    }

    #[test]
    fn many_numbers_do_not_take_more_memory() {
        let (strangers, now) = (UnknownNodes::default(), Instant::now());
        for node in 0..10_000 {
            assert!(!strangers.is_vouched(NodeId(node), now));
        }
        assert_eq!(strangers.wanted().len(), NUMBERS_MAX);
        strangers.wanted().into_iter().for_each(|node| strangers.answered(node, false, now));
        assert!(!strangers.is_vouched(NodeId(20_000), now + REFUSED_FOR));
        assert_eq!(strangers.wanted(), [NodeId(20_000)]);
    }
}
