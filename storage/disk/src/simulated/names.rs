//! Changes to names that are seen but not yet durable: what a `sync_dir` covers and what a power cut may keep. Pure.

use std::collections::BTreeSet;

use super::Dice;

pub(super) type NodeNumber = u64;

/// One atomic change to names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Link { dir: NodeNumber, name: String, node: NodeNumber },
    Unlink { dir: NodeNumber, name: String },
    Rename { from_dir: NodeNumber, from_name: String, to_dir: NodeNumber, to_name: String, node: NodeNumber },
}

type Key<'a> = (NodeNumber, &'a str);

impl Change {
    /// Tells `set` what becomes of each name: what it stands for from now on, or nothing.
    pub fn apply(&self, mut set: impl FnMut(NodeNumber, &str, Option<NodeNumber>)) {
        match self {
            Change::Link { dir, name, node } => set(*dir, name, Some(*node)),
            Change::Unlink { dir, name } => set(*dir, name, None),
            Change::Rename { from_dir, from_name, to_dir, to_name, node } => {
                set(*from_dir, from_name, None);
                set(*to_dir, to_name, Some(*node));
            }
        }
    }

    fn keys(&self) -> Vec<Key<'_>> {
        match self {
            Change::Link { dir, name, .. } | Change::Unlink { dir, name } => vec![(*dir, name)],
            Change::Rename { from_dir, from_name, to_dir, to_name, .. } => {
                vec![(*from_dir, from_name), (*to_dir, to_name)]
            }
        }
    }
}

/// Splits off what a sync of `dir` makes durable: its changes, and the earlier ones that those build on.
pub(super) fn split_for_sync(pending: Vec<Change>, dir: NodeNumber) -> (Vec<Change>, Vec<Change>) {
    let mut needed: BTreeSet<Key<'_>> = BTreeSet::new();
    let mut covered = vec![false; pending.len()];
    for (change, covered) in pending.iter().zip(&mut covered).rev() {
        let keys = change.keys();
        if keys.iter().any(|key| key.0 == dir || needed.contains(key)) {
            needed.extend(keys);
            *covered = true;
        }
    }
    let mut durable = Vec::new();
    let mut rest = Vec::new();
    for (change, covered) in pending.into_iter().zip(covered) {
        if covered { durable.push(change) } else { rest.push(change) }
    }
    (durable, rest)
}

/// What of `pending` the disk holds after a cut: any choice in which no change is kept whose forerunner is lost.
pub(super) fn kept_by_power_cut<'a>(pending: &'a [Change], dice: &mut Dice) -> Vec<&'a Change> {
    let mut lost: BTreeSet<Key<'_>> = BTreeSet::new();
    let mut kept = Vec::new();
    for change in pending {
        let keys = change.keys();
        let keep = dice.choose(2) == 1;
        if keep && !keys.iter().any(|key| lost.contains(key)) {
            kept.push(change);
        } else {
            lost.extend(keys);
        }
    }
    kept
}
