//! Retention of the log for other members, which will still request entries.
//!
//! Without it, a snapshot with a long transfer would be outdated at its arrival, and sent again forever.
//!
//! K1: a purge keeps everything behind the position of a snapshot that is being sent or was just sent.
//! K2: a purge keeps entries that a member lacks while that member advances.
//! K3: nothing is kept for a member that is silent or stalled. It gets a snapshot when it returns.
//! K4: a purge keeps entries that an archive outside of the cluster has not stored, unless the log is too large.

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
    /// Only entries that members or an archive need.
    Needed,
    /// Only entries that an archive needs.
    Archive,
    /// Nothing, for a log that has become too large.
    Nothing,
}

impl LogRetention {
    /// Returns the last entry that nobody needs, of those that this keeps entries for. `None` if all may be purged.
    pub(crate) fn needed(self, members: impl FnOnce() -> Option<u64>, archived: Option<u64>) -> Option<u64> {
        match self {
            LogRetention::Some | LogRetention::Needed => members().into_iter().chain(archived).min(),
            LogRetention::Archive => archived,
            LogRetention::Nothing => None,
        }
    }
}

/// Positions of the other members with the time of their last progress, and the position of an archive.
#[derive(Debug, Default)]
pub(crate) struct Nearer {
    members: BTreeMap<Replica, (u64, Instant)>,
    /// Last index that the archive has, if there is an archive.
    archived: Option<u64>,
}

impl Nearer {
    pub fn set_archived(&mut self, index: Option<u64>) {
        self.archived = index;
    }

    pub fn archived(&self) -> Option<u64> {
        self.archived
    }

    /// Returns the last entry that all advancing members have, or `None` if all others are stalled.
    pub fn look(&mut self, matched: &[(Replica, u64)], now: Instant) -> Option<u64> {
        self.members.retain(|replica, _| matched.iter().any(|(other, _)| other == replica));
        for (replica, index) in matched {
            let known = self.members.entry(*replica).or_insert((*index, now));
            if known.0 != *index {
                *known = (*index, now);
            }
        }
        let coming = self.members.values().filter(|(_, since)| now - *since < STANDS_STILL_AFTER);
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
