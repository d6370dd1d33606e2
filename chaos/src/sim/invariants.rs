//! Invariants that hold at every moment, whatever fails: each is checked when it could first be broken.
//!
//! An entry that was applied anywhere is the same everywhere, was durable on a majority before, and leads to the same
//! state. No reported position of a replica goes back while its process lives.

use std::collections::{BTreeMap, BTreeSet};

use assay_cluster_raft::GroupStatus;
use assay_storage_model::{GroupId, LogPosition, NodeId, ReplicaId};
use parking_lot::Mutex;

/// Findings kept of one simulation: the first ones are the most useful.
const FINDINGS_MAX: usize = 20;

#[derive(Debug, Default)]
pub struct Facts(Mutex<InvariantState>);

#[derive(Debug, Default)]
struct InvariantState {
    findings: Vec<String>,
    /// A term may have several leaders in turn, which differ in their replica; their entries are distinguished by it.
    leaders: BTreeSet<(GroupId, u64, ReplicaId)>,
    entries: BTreeMap<(GroupId, u64), (LogPosition, u64)>,
    states: BTreeMap<(GroupId, u64), u128>,
    said: BTreeMap<(NodeId, u32, GroupId, ReplicaId), ReportedProgress>,
}

/// Last positions reported by a replica.
#[derive(Clone, Copy, Debug, Default)]
struct ReportedProgress {
    term: u64,
    applied: Option<u64>,
    sealed: Option<u64>,
    purged: Option<u64>,
}

impl Facts {
    pub fn find(&self, what: impl Into<String>) {
        let findings = &mut self.0.lock().findings;
        if findings.len() < FINDINGS_MAX {
            findings.push(what.into());
        }
    }

    pub fn findings(&self) -> Vec<String> {
        self.0.lock().findings.clone()
    }

    pub fn entries(&self) -> usize {
        self.0.lock().entries.len()
    }

    pub fn elections(&self) -> usize {
        self.0.lock().leaders.len()
    }

    /// An entry is applied. Whether it is so for the first time anywhere.
    pub fn applied(&self, group: GroupId, position: LogPosition, content: u64, at: ReplicaId) -> bool {
        let before = self.0.lock().entries.insert((group, position.index), (position, content));
        if let Some(before) = before.filter(|before| *before != (position, content)) {
            self.find(format!("group {group}: replica {at} applies {position} where {} was applied before", before.0));
        }
        before.is_none()
    }

    /// Checks that entries missing in the log on the disk are in the state on the disk.
    pub fn purged(&self, group: GroupId, replica: ReplicaId, purged: Option<u64>, sealed: Option<u64>) {
        if purged > sealed {
            self.find(format!(
                "group {group}: replica {replica} is sealed at {sealed:?} and its log begins behind {purged:?}"
            ));
        }
    }

    pub fn state(&self, group: GroupId, index: u64, digest: u128, at: ReplicaId) {
        let before = self.0.lock().states.insert((group, index), digest);
        if before.is_some_and(|before| before != digest) {
            self.find(format!("group {group}: after entry {index} replica {at} is not as another was"));
        }
    }

    pub fn status(&self, node: NodeId, life: u32, group: GroupId, replica: ReplicaId, status: &GroupStatus) {
        let now = ReportedProgress {
            term: status.term,
            applied: status.applied,
            sealed: status.sealed,
            purged: status.purged,
        };
        let who = format!("group {group}: replica {replica} on node {node}");
        let before = {
            let mut known = self.0.lock();
            if status.leads {
                known.leaders.insert((group, status.term, replica));
            }
            known.said.insert((node, life, group, replica), now).unwrap_or_default()
        };
        if now.term < before.term || now.applied < before.applied || now.purged < before.purged {
            self.find(format!("{who} went back: {before:?}, then {now:?}"));
        }
        if now.sealed > now.applied || now.applied > status.last {
            self.find(format!("{who} is out of order: {now:?}, last {:?}", status.last));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: GroupId = GroupId(16);

    fn found(look: impl Fn(&Facts)) -> Vec<String> {
        let facts = Facts::default();
        look(&facts);
        facts.findings()
    }

    #[test]
    fn another_entry_in_its_place_and_another_state_are_found() {
        let position = LogPosition { term: 1, replica: 1, index: 5 };
        let apply = |facts: &Facts, content| facts.applied(GROUP, position, content, ReplicaId(2));
        assert!(found(|facts| assert!(apply(facts, 1) && !apply(facts, 1))).is_empty());
        assert_eq!(
            found(|facts| [1, 2].into_iter().for_each(|content| assert_eq!(apply(facts, content), content == 1))).len(),
            1
        );
        assert_eq!(found(|facts| (1..3).for_each(|digest| facts.state(GROUP, 5, digest, ReplicaId(2)))).len(), 1);
    }

    #[test]
    fn what_goes_back_and_what_is_out_of_order_is_found() {
        let status = |applied, sealed| GroupStatus { applied, sealed, last: Some(9), ..GroupStatus::default() };
        let say = |facts: &Facts, status| facts.status(NodeId(1), 1, GROUP, ReplicaId(1), &status);
        assert_eq!(
            found(|facts| [Some(5), Some(4)].into_iter().for_each(|applied| say(facts, status(applied, None)))).len(),
            1
        );
        assert_eq!(found(|facts| say(facts, status(Some(4), Some(5)))).len(), 1);
        assert_eq!(found(|facts| say(facts, status(Some(10), None))).len(), 1);
        assert_eq!(found(|facts| facts.purged(GROUP, ReplicaId(1), Some(5), Some(4))).len(), 1);
        assert!(found(|facts| facts.purged(GROUP, ReplicaId(1), Some(5), Some(5))).is_empty());
    }
}
