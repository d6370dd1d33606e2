//! Retention of the log for other members, which will still request entries.
//!
//! Without it, a snapshot with a long transfer would be outdated at its arrival, and sent again forever.
//!
//! K1: a purge keeps everything behind the position of a snapshot that is being sent or was just sent.
//! K2: a purge keeps entries that a member lacks while that member advances.
//! K3: nothing is kept for a member that is silent or stalled. It gets a snapshot when it returns.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::types::Replica;

/// Time without progress after which a member counts as stalled (K3).
const STANDS_STILL_AFTER: Duration = Duration::from_secs(10);

/// Sealed entries that a purge keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogRetention {
    /// Entries that members need, and a few for members with a short absence.
    Some,
    /// Only entries that members need.
    Needed,
    /// Nothing, for a log that has become too large.
    Nothing,
}

/// Positions of the other members, with the time of their last progress.
#[derive(Debug, Default)]
pub(crate) struct Nearer(BTreeMap<Replica, (u64, Instant)>);

impl Nearer {
    /// Returns the last entry that all advancing members have, or `None` if all others are stalled.
    pub fn look(&mut self, matched: &[(Replica, u64)], now: Instant) -> Option<u64> {
        self.0.retain(|replica, _| matched.iter().any(|(other, _)| other == replica));
        for (replica, index) in matched {
            let known = self.0.entry(*replica).or_insert((*index, now));
            if known.0 != *index {
                *known = (*index, now);
            }
        }
        let coming = self.0.values().filter(|(_, since)| now - *since < STANDS_STILL_AFTER);
        coming.map(|(index, _)| *index).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_nearer_keeps_entries_and_who_stands_still_does_not() {
        let (mut nearer, begin) = (Nearer::default(), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        assert_eq!(nearer.look(&[(2, 50), (3, 10)], at(0)), Some(10));
        assert_eq!(nearer.look(&[(2, 60), (3, 20)], at(9)), Some(20));
        assert_eq!(nearer.look(&[(2, 60), (3, 20)], at(18)), Some(20));
        assert_eq!(nearer.look(&[(2, 70), (3, 20)], at(19)), Some(70), "one of them hangs");
        assert_eq!(nearer.look(&[(2, 70), (3, 30)], at(20)), Some(30), "and goes on");
        assert_eq!(nearer.look(&[(2, 70)], at(21)), Some(70), "and leaves the group");
        assert_eq!(nearer.look(&[], at(22)), None);
    }
}
