//! Registry of starts, which decides which process of a node may act for its replicas: a data directory restored from
//! an older copy must not vote.
//!
//! Each start of a node draws a random [`StartId`] and appends it to the history in its directory before it announces
//! the process. A node keeps the last id seen of each other node. Two processes introduce themselves to each other
//! before one counts a vote or an acknowledgement of the other. Each refuses a history without the id it has seen:
//! promises of that start are not on this disk.
//!
//! # What holds
//!
//! - C1: a message of a replica names the sending and the receiving process. The receiver accepts it only from a
//!   process whose history it has compared, and only if it is itself the named receiver. So a response of a process
//!   that was not compared never counts.
//! - C2: an id is durable in its own directory before it is sent, and at a node that saw it before that node responds.
//!   A start costs each side one write, a message none.
//! - C3: a node with a refused history closes its replicas durably, adds the missing id to its history in the same
//!   write, and continues under an id of its own. A history that contains an id means: this disk holds the promises of
//!   that start, or the replicas that made them are closed for good. New replicas come under later numbers: what the
//!   directory had after it was copied is unknown to it ([`Floor`]).
//! - C4: a process that was accepted and is refused later is one of two that run from copies of one directory. It stops.
//! - C5: a new start is not accepted while the process before it still answers.
//! - C6: a node acts for its replicas only when every reachable node has compared, or [`COMPARED_WITHIN`] has passed.
//!
//! Programs before 0.5 name no process. Their messages are accepted without a comparison.
//!
//! This module is plain arithmetic; `start_histories` of the network writes, calls and waits.

mod file;
#[cfg(test)]
mod model;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use assay_cluster_raft::{Acknowledged, HardState};
use assay_storage_model::sabotage::{self, Sabotage};
use assay_storage_model::{GroupId, NodeId, ReplicaId};
use serde::{Deserialize, Serialize};

pub use file::{fits, read, read_marker, write, write_marker};

/// Starts that a history keeps. A node that was away for more of another node's starts refuses it, and the replicas of
/// that one are rebuilt.
pub const HISTORY_MAX: usize = 1000;
/// Time that a started process waits for the comparison with nodes that do not respond.
pub const COMPARED_WITHIN: Duration = Duration::from_secs(2);

/// One start of one node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StartId(pub u128);

impl fmt::Display for StartId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for StartId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StartId({self})")
    }
}

impl FromStr for StartId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<StartId, Self::Err> {
        u128::from_str_radix(text, 16).map(StartId)
    }
}

impl Serialize for StartId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StartId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<StartId, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

pub type Name = (GroupId, ReplicaId);

/// Starts that a node keeps, its own and those of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptStarts {
    /// Oldest first. The last one is of the process that runs.
    pub history: Vec<StartId>,
    /// The last start of each other node that was accepted here.
    pub seen: BTreeMap<NodeId, StartId>,
    /// Replicas of this node that must not run again.
    pub closed: BTreeSet<Name>,
    /// C3: this node takes no replica with a number below: it may have run here once.
    pub floor: Floor,
}

/// Number from which replicas are new to this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Floor {
    /// The kept starts cover everything that this node ever had.
    #[default]
    None,
    /// It is an older copy, and what it had since is not known yet.
    Unknown,
    At(ReplicaId),
}

impl KeptStarts {
    /// The content for a process that starts now.
    #[must_use]
    pub fn begun(&self, start: StartId) -> KeptStarts {
        let mut next = self.clone();
        next.history.push(start);
        let over = next.history.len().saturating_sub(HISTORY_MAX);
        next.history.drain(..over);
        next
    }

    /// C3: the content of a node that closes these replicas because its history lacks `missing`. The process goes on as
    /// `fresh`: a copy that was made before this write has the id that it began with, and must not pass for this one.
    #[must_use]
    pub fn as_old_copy(
        &self,
        missing: StartId,
        fresh: StartId,
        replicas: impl IntoIterator<Item = Name>,
    ) -> KeptStarts {
        let mut next = self.with_closed(replicas);
        next.floor = Floor::Unknown;
        if missing != fresh && !next.history.contains(&missing) {
            next.history.push(missing);
        }
        next.begun(fresh)
    }

    #[must_use]
    pub fn with_closed(&self, replicas: impl IntoIterator<Item = Name>) -> KeptStarts {
        let mut next = self.clone();
        next.closed.extend(replicas);
        next
    }

    /// Returns the content for a node that received the next number to be assigned: everything below may have run here.
    #[must_use]
    pub fn with_floor(&self, next_replica: ReplicaId) -> KeptStarts {
        KeptStarts { floor: Floor::At(next_replica), ..self.clone() }
    }

    /// Returns whether a replica of this number is surely new to this node.
    pub fn may_take(&self, replica: ReplicaId) -> bool {
        match self.floor {
            Floor::None => true,
            Floor::Unknown => false,
            Floor::At(floor) => replica >= floor,
        }
    }

    #[must_use]
    fn with_seen(&self, node: NodeId, start: StartId) -> KeptStarts {
        let mut next = self.clone();
        next.seen.insert(node, start);
        next
    }
}

/// Introduction of a process to another node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Introduction {
    pub start: StartId,
    pub history: Vec<StartId>,
    pub replicas: Vec<(GroupId, ReplicaId, HardState)>,
}

/// Verdict of a node on a process that introduced itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The process that this is about.
    pub about: StartId,
    pub found: StartVerdict,
    /// Replicas that lack what they had acknowledged, and what that was.
    pub refused: Vec<(GroupId, ReplicaId, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartVerdict {
    Accepted,
    /// The history lacks the last start that was seen of the node.
    Lacks(StartId),
    /// The process before this one still answers at the node's address.
    StillThere(StartId),
}

impl StartVerdict {
    /// Why `by` does not accept this process, for people.
    pub fn why_not(self, by: NodeId) -> String {
        match self {
            StartVerdict::Accepted => format!("node {by} accepts this node"),
            StartVerdict::Lacks(seen) => {
                format!("node {by} refuses this node: its data directory is an older copy, which lacks start {seen}")
            }
            StartVerdict::StillThere(other) => format!(
                "node {by} refuses this node: another process responds at its address (start {other}). Stop one of them"
            ),
        }
    }
}

/// One half of an exchange.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub introduction: Introduction,
    /// Verdict on the process that this is sent to, if there is one already.
    pub verdict: Option<Verdict>,
}

/// Action that follows from another node's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Consequence {
    /// The directory is an older copy: all replicas are to be closed.
    CloseAll { by: NodeId, missing: StartId },
    Close {
        by: NodeId,
        group: GroupId,
        replica: ReplicaId,
        why: String,
        /// Its applied state differs from that of its group, and is not merely behind.
        diverged: bool,
    },
    /// Another process has taken this node's place.
    Stop { by: NodeId, instead: StartId },
}

/// State of another node's process, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Process {
    #[default]
    Unknown,
    /// Runs a program before 0.5, which states no start.
    Silent,
    Compared(StartId),
}

#[derive(Clone, Debug, Default)]
struct Peer {
    process: Process,
    /// Process with judged replicas. They are judged once: later they have acknowledged more than they reported.
    judged: Option<StartId>,
    /// Its refused replicas.
    refused: Vec<(GroupId, ReplicaId, String)>,
    verdict: Option<Verdict>,
    /// It has accepted this process once.
    accepted: bool,
    /// Why it does not accept it now.
    against: Option<StartVerdict>,
}

impl Peer {
    fn refuses(&self, name: Name) -> bool {
        self.refused.iter().any(|(group, replica, _)| (*group, *replica) == name)
    }
}

/// Why a message is neither sent nor taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The two have to introduce themselves first.
    Introduce,
    /// A replica lacks what it had acknowledged.
    Refused,
    /// This process still waits for the verdict whether its directory is an old copy.
    Comparing,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stop::Introduce => "the two nodes have yet to compare their starts",
            Stop::Refused => "the replica lacks acknowledged entries",
            Stop::Comparing => "the node has yet to compare its starts with others",
        })
    }
}

/// Starts known to one process.
#[derive(Debug)]
pub struct Registry {
    own: StartId,
    kept: KeptStarts,
    peers: BTreeMap<NodeId, Peer>,
    /// C6: nodes that were known at the start and have neither compared nor failed to answer.
    waits_for: BTreeSet<NodeId>,
    /// This directory was found to be an old copy, and what follows from it is not durable yet.
    suspended: bool,
}

impl Registry {
    /// Makes the registry of a process whose start is the last in the history. The `others` are nodes that may have
    /// seen it.
    pub fn new(kept: KeptStarts, others: impl IntoIterator<Item = NodeId>) -> Registry {
        let own = kept.history.last().copied().unwrap_or(StartId(0));
        Registry { own, kept, peers: BTreeMap::new(), waits_for: others.into_iter().collect(), suspended: false }
    }

    pub fn own(&self) -> StartId {
        self.own
    }

    pub fn kept(&self) -> &KeptStarts {
        &self.kept
    }

    pub fn is_closed(&self, name: Name) -> bool {
        self.kept.closed.contains(&name)
    }

    /// C1, for a message that is to be sent: the process that it is for.
    pub fn outgoing(&self, to: NodeId, own: Name, theirs: Name) -> Result<Option<StartId>, Stop> {
        self.may_speak(own)?;
        match self.peers.get(&to).map(|peer| (peer.process, peer.refuses(theirs))) {
            Some((Process::Silent, _)) => Ok(None),
            Some((Process::Compared(_), true)) => Err(Stop::Refused),
            Some((Process::Compared(start), false)) => Ok(Some(start)),
            Some((Process::Unknown, _)) | None if trusts_all() => Ok(None),
            Some((Process::Unknown, _)) | None => Err(Stop::Introduce),
        }
    }

    /// C1, for a message that has come. `processes` are its sender's and the one that it is for; none from a program
    /// before 0.5.
    pub fn incoming(
        &self,
        from: NodeId,
        processes: Option<(StartId, Option<StartId>)>,
        own: Name,
        theirs: Name,
    ) -> Result<(), Stop> {
        self.may_speak(own)?;
        let Some((start, meant)) = processes.filter(|_| !trusts_all()) else { return Ok(()) };
        let compared = self.peers.get(&from).filter(|peer| peer.process == Process::Compared(start));
        match compared.filter(|_| meant == Some(self.own)) {
            None => Err(Stop::Introduce),
            Some(peer) if peer.refuses(theirs) => Err(Stop::Refused),
            Some(_) => Ok(()),
        }
    }

    fn may_speak(&self, own: Name) -> Result<(), Stop> {
        if trusts_all() {
            return Ok(());
        }
        if self.suspended || !self.waits_for.is_empty() {
            return Err(Stop::Comparing);
        }
        if self.is_closed(own) { Err(Stop::Refused) } else { Ok(()) }
    }

    /// Returns whether the process at the node's known address has to be identified before `said` can be judged: C5.
    pub fn must_look_for(&self, from: NodeId, said: &Introduction) -> bool {
        self.kept.seen.get(&from).is_some_and(|seen| *seen != said.start)
    }

    /// Judges a process. `answering` is the process that responds at the node's address, if any; `acknowledged` returns
    /// the known acknowledgements of a replica.
    pub fn judge(
        &self,
        from: NodeId,
        said: &Introduction,
        answering: Option<StartId>,
        acknowledged: impl Fn(GroupId, ReplicaId) -> Option<Acknowledged>,
    ) -> Verdict {
        let seen = self.kept.seen.get(&from).copied();
        let is_new = seen != Some(said.start);
        let found = match seen {
            _ if trusts_all() => StartVerdict::Accepted,
            Some(_) if is_new && answering.is_some_and(|other| other != said.start) => {
                StartVerdict::StillThere(answering.unwrap_or(said.start))
            }
            Some(seen) if !said.history.contains(&seen) && seen != said.start => StartVerdict::Lacks(seen),
            _ => StartVerdict::Accepted,
        };
        let lacks = |(group, replica, hard_state): &(GroupId, ReplicaId, HardState)| {
            let why = hard_state.lacks(&acknowledged(*group, *replica)?)?;
            Some((*group, *replica, why))
        };
        let before = self.peers.get(&from).filter(|peer| peer.judged == Some(said.start));
        let refused = match found {
            StartVerdict::Accepted if !trusts_logs() => {
                before.map_or_else(|| said.replicas.iter().filter_map(lacks).collect(), |before| before.refused.clone())
            }
            _ => Vec::new(),
        };
        Verdict { about: said.start, found, refused }
    }

    /// State that has to be durable before this verdict is acted on; none where it is.
    pub fn to_keep(&self, from: NodeId, verdict: &Verdict) -> Option<KeptStarts> {
        let accepted = verdict.found == StartVerdict::Accepted;
        let known = self.kept.seen.get(&from) == Some(&verdict.about);
        (accepted && !known).then(|| self.kept.with_seen(from, verdict.about))
    }

    /// Acts on a verdict. What it needs is durable.
    pub fn judged(&mut self, from: NodeId, verdict: Verdict) {
        if let Some(kept) = self.to_keep(from, &verdict) {
            self.kept = kept;
        }
        let peer = self.peers.entry(from).or_default();
        match verdict.found {
            StartVerdict::Accepted => {
                peer.process = Process::Compared(verdict.about);
                peer.judged = Some(verdict.about);
                peer.refused.clone_from(&verdict.refused);
            }
            // The process that was compared before stays the one that is heard.
            StartVerdict::Lacks(_) | StartVerdict::StillThere(_) => {}
        }
        peer.verdict = Some(verdict);
    }

    /// Takes another node's verdict on this process.
    pub fn heard(&mut self, from: NodeId, verdict: &Verdict) -> Vec<Consequence> {
        if verdict.about != self.own {
            return Vec::new();
        }
        self.waits_for.remove(&from);
        let (known, peer) = (self.kept.history.clone(), self.peers.entry(from).or_default());
        peer.against = Some(verdict.found).filter(|found| *found != StartVerdict::Accepted);
        match verdict.found {
            StartVerdict::Accepted => {
                peer.accepted = true;
                let close = |(group, replica, why): &(GroupId, ReplicaId, String)| Consequence::Close {
                    by: from,
                    group: *group,
                    replica: *replica,
                    why: why.clone(),
                    diverged: false,
                };
                let new = verdict
                    .refused
                    .iter()
                    .filter(|(group, replica, _)| !self.kept.closed.contains(&(*group, *replica)));
                new.map(close).collect()
            }
            StartVerdict::Lacks(instead) if peer.accepted => vec![Consequence::Stop { by: from, instead }],
            StartVerdict::Lacks(missing) if !known.contains(&missing) => {
                self.suspended = true;
                vec![Consequence::CloseAll { by: from, missing }]
            }
            StartVerdict::Lacks(_) | StartVerdict::StillThere(_) => Vec::new(),
        }
    }

    /// This content is durable.
    pub fn keep(&mut self, kept: KeptStarts) {
        // What made this directory an old copy is in its history now, with all replicas closed.
        self.suspended &= kept.history.last() == Some(&self.own);
        self.own = kept.history.last().copied().unwrap_or(self.own);
        self.kept = kept;
    }

    /// A node is of a program before 0.5.
    pub fn is_silent(&mut self, node: NodeId) {
        self.waits_for.remove(&node);
        self.peers.entry(node).or_default().process = Process::Silent;
    }

    /// A node did not answer: C6.
    pub fn not_reached(&mut self, node: NodeId) {
        self.waits_for.remove(&node);
    }

    /// [`COMPARED_WITHIN`] has passed: C6.
    pub fn waited(&mut self) {
        self.waits_for.clear();
    }

    /// Forgets a node whose process is not the compared one, or that does not have this one.
    pub fn forget(&mut self, node: NodeId) {
        self.peers.entry(node).or_default().process = Process::Unknown;
    }

    /// Returns whether this node and that one have yet to be compared, or should be compared again.
    pub fn is_due(&self, node: NodeId) -> bool {
        self.peers.get(&node).is_none_or(|peer| peer.process == Process::Unknown || peer.against.is_some())
    }

    /// Returns whether a node runs a program before 0.5, as far as is known; it may have been upgraded since.
    pub fn says_nothing(&self, node: NodeId) -> bool {
        self.peers.get(&node).is_some_and(|peer| peer.process == Process::Silent)
    }

    /// Verdict of this process on a node's process.
    pub fn verdict_on(&self, node: NodeId) -> Option<Verdict> {
        self.peers.get(&node)?.verdict.clone()
    }

    /// Returns the nodes that do not accept this process, with their verdicts.
    pub fn against(&self) -> Vec<(NodeId, StartVerdict)> {
        self.peers.iter().filter_map(|(node, peer)| Some((*node, peer.against?))).collect()
    }
}

/// Fault for chaos tests: accepts logs that lost acknowledged entries. The tests have to detect the loss.
fn trusts_logs() -> bool {
    trusts_all() || sabotage::is(Sabotage::AckOnLeaderOnly) || sabotage::is(Sabotage::SkipFsync)
}

/// Fault for chaos tests: accepts old copies.
fn trusts_all() -> bool {
    sabotage::is(Sabotage::BelieveOldCopies)
}
