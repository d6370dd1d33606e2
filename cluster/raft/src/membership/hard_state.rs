//! Hard state of a replica: its promises to its group, and a check whether a later state still includes them.
//!
//! A leader records the acknowledgement of each follower ([`Acknowledged`]). A replica reports its state at a start of
//! its node ([`HardState`]). A replica with less was restored from an older copy of its disk: it forgot votes or
//! entries. The group must not count on it again under its number.
//!
//! A follower that acknowledged an entry in some term keeps it while that term's leader sends to it. Only the leader of
//! a later term may remove it, and the follower votes for that leader first. The check therefore compares three things:
//!
//! - S1: the vote never decreases.
//! - S2: under the same vote the log never gets shorter.
//! - S3: an entry that is known to be committed never disappears, under any vote.

use std::fmt;
use std::io;

use assay_storage_log::GroupLog;
use assay_storage_model::{Applied, LogPosition, ReplicaId};
use openraft::ServerState;
use serde::{Deserialize, Serialize};

use crate::group::Group;
use crate::log::encoding::{self, BadRecord};
use crate::network::wire::VoteOf;
use crate::types::{LogIdOf, log_id_of, position_of};

/// Term of a vote and the replica that got the vote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct VoteFor {
    pub term: u64,
    pub replica: u64,
}

impl VoteFor {
    fn of(vote: &VoteOf) -> VoteFor {
        VoteFor { term: vote.leader_id.term, replica: vote.leader_id.voted_for().unwrap_or_default() }
    }
}

/// Position in a log, ordered by term. In every single log this is also the order of indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LogPlace {
    pub term: u64,
    pub replica: u64,
    pub index: u64,
}

impl LogPlace {
    pub fn of(position: LogPosition) -> LogPlace {
        LogPlace { term: position.term, replica: position.replica, index: position.index }
    }

    fn of_id(id: &LogIdOf) -> LogPlace {
        LogPlace::of(position_of(id))
    }
}

impl fmt::Display for LogPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {} of term {}", self.index, self.term)
    }
}

/// Durable state of a replica: its last vote and the end of its log, or of its state if that reaches further.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HardState {
    pub vote: Option<VoteFor>,
    pub last: Option<LogPlace>,
}

/// Position that a follower acknowledged to a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledged {
    /// Vote of the leader that the follower has accepted.
    pub vote: VoteFor,
    /// Last entry that the follower is known to have.
    pub matched: LogPlace,
    /// Last of those entries that is known to be committed.
    pub committed: Option<LogPlace>,
}

impl Acknowledged {
    /// Merges two acknowledgements of one follower.
    pub fn and(self, other: Acknowledged) -> Acknowledged {
        let newer = if (other.vote, other.matched) > (self.vote, self.matched) { other } else { self };
        Acknowledged { committed: self.committed.max(other.committed), ..newer }
    }
}

impl HardState {
    /// Reads the hard state from the log of a group, before consensus runs on the log.
    ///
    /// `sealed` is the position that the state reaches without the log.
    pub fn read(log: &GroupLog, sealed: Option<LogPosition>) -> io::Result<HardState> {
        let damaged = |error: BadRecord| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
        let state = log.state();
        let vote = state.vote.as_deref().map(encoding::decode_vote).transpose().map_err(damaged)?;
        let purged = state.purged.as_ref().map(|purged| encoding::decode_log_id(&purged.note)).transpose();
        let mut last = purged.map_err(damaged)?;
        if let Some((index, _)) = state.last.filter(|(index, _)| last.is_none_or(|purged| purged.index < *index)) {
            let records = log.read(index, index + 1, usize::MAX).map_err(io::Error::other)?;
            let record = records.first().ok_or_else(|| io::Error::other(format!("entry {index} is missing")))?;
            let id = encoding::decode_record_id(record.index, record.term, &record.payload);
            last = Some(id.map_err(damaged)?);
        }
        let last = last.max(sealed.map(log_id_of));
        Ok(HardState { vote: vote.as_ref().map(VoteFor::of), last: last.as_ref().map(LogPlace::of_id) })
    }

    /// Describes the part of `acknowledged` that this replica lacks, or returns `None` if it has everything.
    pub fn lacks(&self, acknowledged: &Acknowledged) -> Option<String> {
        let said = |last: Option<LogPlace>| last.map_or("an empty log".to_owned(), |last| format!("{last}"));
        let vote = self.vote.unwrap_or_default();
        if vote < acknowledged.vote {
            return Some(format!(
                "it had voted in term {} and now votes in term {}",
                acknowledged.vote.term, vote.term
            )); // S1
        }
        let index = |place: Option<LogPlace>| place.map(|place| place.index);
        if vote == acknowledged.vote && index(self.last) < Some(acknowledged.matched.index) {
            return Some(format!("it had acknowledged {} and now ends at {}", acknowledged.matched, said(self.last))); // S2
        }
        let committed = acknowledged.committed;
        if self.last < committed || index(self.last) < index(committed) {
            let had = said(committed);
            return Some(format!("it had {had}, which is committed, and now ends at {}", said(self.last))); // S3
        }
        None
    }
}

/// Describes why a state and its log contradict each other, or why the log contradicts the committed position.
///
/// Returns `None` if there is no visible contradiction.
///
/// A state that is ahead of its log is normal after the installation of a snapshot. Then it is also newer, because no
/// log of a group has a higher term at a lower index.
pub fn contradiction(log: &GroupLog, sealed: &Applied) -> io::Result<Option<String>> {
    let hard_state = HardState::read(log, None)?;
    let committed = log.state().committed.as_deref().map(encoding::decode_log_id).transpose();
    let committed = committed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
    Ok(disagree(hard_state.last, committed.as_ref().map(LogPlace::of_id), sealed.position.map(LogPlace::of)))
}

/// Applies [`contradiction`] to a report on a log, in which `last` is the index and term of the last record.
pub fn contradiction_in(
    last: Option<(u64, u64)>,
    purged: Option<&[u8]>,
    committed: Option<&[u8]>,
    sealed: Option<LogPosition>,
) -> Option<String> {
    let place = |bytes: &[u8]| encoding::decode_log_id(bytes).ok().map(|id| LogPlace::of_id(&id));
    let last = last.map(|(index, term)| LogPlace { term, replica: u64::MAX, index });
    let last = last.or(purged.and_then(place));
    disagree(last, committed.and_then(place), sealed.map(LogPlace::of))
}

pub(crate) fn disagree(
    last: Option<LogPlace>,
    committed: Option<LogPlace>,
    sealed: Option<LogPlace>,
) -> Option<String> {
    let crossed = |one: LogPlace, other: LogPlace| one.index <= other.index && one.term > other.term;
    if let (Some(last), Some(sealed)) = (last, sealed)
        && crossed(last, sealed)
    {
        return Some(format!(
            "the state has applied up to {sealed}, the log ends at {last}: another history replaced it"
        ));
    }
    if let (Some(committed), Some(last)) = (committed, last.max(sealed))
        && crossed(committed, last)
    {
        return Some(format!(
            "a leader committed {committed} where this replica already has {last}: this replica applied entries that \
             the group does not have"
        ));
    }
    None
}

impl Group {
    /// Returns the acknowledgements of the other members, if this replica leads.
    pub fn acknowledged(&self) -> Vec<(ReplicaId, Acknowledged)> {
        let receiver = self.raft().metrics();
        let metrics = receiver.borrow();
        if metrics.state != ServerState::Leader || !metrics.vote.committed {
            return Vec::new();
        }
        let vote = VoteFor::of(&metrics.vote);
        let applied = metrics.last_applied.as_ref().map(LogPlace::of_id);
        let others = metrics.replication.iter().flatten().filter(|(replica, _)| **replica != self.replica().0);
        let known = others.filter_map(|(replica, matched)| {
            let matched = LogPlace::of_id(matched.as_ref()?);
            // Applied entries are committed. A member with a longer log has them, and a member with a shorter log has
            // its own part.
            let committed = applied.map(|applied| applied.min(matched));
            Some((ReplicaId(*replica), Acknowledged { vote, matched, committed }))
        });
        known.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(term: u64, index: u64) -> LogPlace {
        LogPlace { term, replica: 1, index }
    }

    fn vote(term: u64) -> VoteFor {
        VoteFor { term, replica: 1 }
    }

    fn has(voted: u64, term: u64, index: u64) -> HardState {
        HardState { vote: Some(vote(voted)), last: Some(place(term, index)) }
    }

    #[test]
    fn whoever_has_what_it_acknowledged_is_not_refused() {
        let acknowledged = Acknowledged { vote: vote(5), matched: place(5, 100), committed: Some(place(5, 90)) };
        for hard_state in [has(5, 5, 100), has(5, 5, 500), has(6, 6, 95), has(9, 7, 90), has(6, 5, 99)] {
            assert_eq!(hard_state.lacks(&acknowledged), None, "{hard_state:?}");
        }
        let nothing = Acknowledged { vote: vote(5), matched: place(4, 3), committed: None };
        assert_eq!(has(6, 2, 1).lacks(&nothing), None, "the leader of term 6 may take back what is not committed");
    }

    #[test]
    fn a_vote_a_log_or_a_commit_that_went_back_is_named() {
        let acknowledged = Acknowledged { vote: vote(5), matched: place(5, 100), committed: Some(place(5, 90)) };
        for (hard_state, what) in [
            (HardState::default(), "voted in term 5 and now votes in term 0"),
            (has(4, 4, 300), "voted in term 5 and now votes in term 4"),
            (has(5, 5, 99), "acknowledged entry 100 of term 5 and now ends at entry 99"),
            (has(5, 4, 99), "now ends at entry 99 of term 4"),
            (has(6, 5, 89), "committed, and now ends at entry 89"),
            (has(6, 6, 89), "committed, and now ends at entry 89 of term 6"),
            (has(6, 4, 95), "committed, and now ends at entry 95 of term 4"),
        ] {
            let why = hard_state.lacks(&acknowledged).unwrap_or_else(|| panic!("{hard_state:?} is not refused"));
            assert!(why.contains(what), "{why}");
        }
    }

    #[test]
    fn what_is_known_grows_and_commits_are_never_forgotten() {
        let older = Acknowledged { vote: vote(5), matched: place(5, 100), committed: Some(place(5, 90)) };
        let newer = Acknowledged { vote: vote(6), matched: place(6, 95), committed: None };
        let both = Acknowledged { committed: Some(place(5, 90)), ..newer };
        assert_eq!((older.and(newer), newer.and(older)), (both, both));
    }

    /// Regression: a node whose quorum continued without its entries committed by the new leader's word. Release builds
    /// stopped.
    #[test]
    fn a_state_beside_another_history_is_seen() {
        let none = |last, committed, sealed| assert_eq!(disagree(last, committed, sealed), None);
        none(Some(place(5, 100)), Some(place(5, 90)), Some(place(5, 80)));
        none(Some(place(3, 100)), None, Some(place(5, 200)));
        none(None, None, None);
        none(Some(place(5, 100)), Some(place(5, 120)), None);
        let why = disagree(Some(place(6, 850)), None, Some(place(5, 1042))).expect("the log was replaced");
        assert!(why.contains("another history"), "{why}");
        let why = disagree(Some(place(5, 1042)), Some(place(6, 851)), Some(place(5, 1000))).expect("by the commit");
        assert!(why.contains("a leader committed entry 851 of term 6"), "{why}");
    }
}
