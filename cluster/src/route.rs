//! Where a group is led, and writing to it from a node that does not lead it.
//!
//! A node that has a replica that votes learns the leader from it; one that has none asks the members in turn until one
//! leads or names who does, and remembers that one.
//! What was surely not written is sent again, to whoever leads by then, for a while; what may have been written is not.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use assay_cluster_raft::{FenceError, NotWritten, ProposeError, WRITE_WAIT_MAX};
use assay_storage_model::catalog::CATALOG_COMMAND_BYTES_MAX;
use assay_storage_model::command::Outcome;
use assay_storage_model::{GroupId, NodeId, ShardId};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::service::{AskError, NoAnswer, Service};
use crate::{Cluster, Shared};

pub(crate) const PROPOSE: &str = "cluster.propose";
/// How long a read or a write looks for whoever leads before it is refused. An election takes about a second, a handover
/// less; with the longest election times that can be set there are two in this time.
pub const ROUTE_WAIT_MAX: Duration = Duration::from_secs(25);
const ROUTED_AGAIN_AFTER: Duration = Duration::from_millis(25);
/// A leader that is busy is asked again after this, until [`WRITE_WAIT_MAX`] has passed. One of version 0.5 waits before it
/// says so; an older one answers at once.
const BUSY_AGAIN_AFTER: Duration = Duration::from_millis(200);
/// One forwarded write: it waits for room and memory for [`WRITE_WAIT_MAX`] at most.
const FORWARD_MAX: Duration = Duration::from_secs(40);
const COMMANDS_MAX: usize = 10_000;

/// Who answers for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    Here,
    There(NodeId),
    /// Nobody leads it, as far as is known here.
    Nobody,
}

/// Whom to ask about groups without a replica here.
#[derive(Debug, Default)]
pub(crate) struct Hints(RwLock<HashMap<GroupId, Hint>>);

#[derive(Clone, Copy, Debug, Default)]
struct Hint {
    /// Named by a node that was asked.
    leader: Option<NodeId>,
    /// How many were asked in vain: whose turn it is among those that the map names.
    in_vain: usize,
}

impl Hint {
    fn whom(self, members: &[NodeId]) -> Option<NodeId> {
        let in_turn = || members.get(self.in_vain.checked_rem(members.len())?).copied();
        self.leader.or_else(in_turn)
    }
}

impl Hints {
    fn whom(&self, group: GroupId, members: &[NodeId]) -> Option<NodeId> {
        self.0.read().get(&group).copied().unwrap_or_default().whom(members)
    }

    /// `asked` named the leader, or it gave no answer or does not know: then it is the next one's turn, once for all who
    /// asked at the same time.
    fn note(&self, group: GroupId, members: &[NodeId], asked: NodeId, leader: Option<NodeId>) {
        let mut hints = self.0.write();
        let hint = hints.entry(group).or_default();
        match leader.filter(|leader| *leader != asked) {
            Some(leader) => hint.leader = Some(leader),
            None if hint.whom(members) == Some(asked) => {
                *hint = Hint { leader: None, in_vain: hint.in_vain.wrapping_add(1) };
            }
            None => {}
        }
    }
}

impl Shared {
    pub fn route(&self, group: GroupId) -> Route {
        let Some(found) = self.hub.group(group) else { return self.guess(group) };
        if found.leads() {
            return Route::Here;
        }
        if !found.votes() {
            return self.guess(group); // it hears late of another leader, and of none once it was left out
        }
        let status = found.status();
        let leader = status.leader.and_then(|leader| status.members.iter().find(|member| member.replica == leader));
        match leader {
            Some(member) if member.node != self.node => Route::There(member.node),
            // It was named and does not lead yet, or nobody was named.
            _ => Route::Nobody,
        }
    }

    fn guess(&self, group: GroupId) -> Route {
        self.hints.whom(group, &self.others(group)).map_or(Route::Nobody, Route::There)
    }

    /// The other nodes that have a replica of the group, as the map has it.
    fn others(&self, group: GroupId) -> Vec<NodeId> {
        let state = self.catalog.read();
        let Some(members) = state.shard_map().and_then(|map| map.group(group)) else { return Vec::new() };
        members.replicas.iter().map(|replica| replica.node).filter(|node| *node != self.node).collect()
    }

    /// `asked` said who leads, or it gave no answer, or one that it does not know.
    pub fn note_leader(&self, group: GroupId, asked: NodeId, leader: Option<NodeId>) {
        let leader = leader.filter(|leader| *leader != self.node);
        self.hints.note(group, &self.others(group), asked, leader);
    }

    pub fn leader_node(&self, group: GroupId) -> Option<NodeId> {
        match self.route(group) {
            Route::Here => Some(self.node),
            Route::There(node) => Some(node),
            Route::Nobody => None,
        }
    }
}

/// How commands are put into entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// One command, in the next entry of the group's committer.
    Next,
    /// All in one entry of their own.
    Together,
}

impl Cluster {
    pub fn route(&self, group: GroupId) -> Route {
        self.shared.route(group)
    }

    /// What a node that was asked about a group said of its leader; nothing where it did not say.
    pub fn note_leader(&self, group: GroupId, asked: NodeId, leader: Option<NodeId>) {
        self.shared.note_leader(group, asked, leader);
    }

    /// One log entry of these commands, wherever the group is led; durable and applied there when it returns.
    pub async fn propose(&self, group: GroupId, commands: Vec<Bytes>) -> Result<Vec<Outcome>, ProposeError> {
        self.shared.routed(group, &commands, Manner::Together).await
    }

    /// One command, in the next entry that its shard's committer makes, wherever the shard is led.
    pub async fn write(&self, shard: ShardId, command: Bytes) -> Result<Outcome, ProposeError> {
        self.shared.write(GroupId::of_shard(shard), command).await
    }

    /// One command to the catalog, in the next entry that its committer makes, wherever it is led.
    pub async fn write_catalog(&self, command: Bytes) -> Result<Outcome, ProposeError> {
        self.shared.write(GroupId::CATALOG, command).await
    }
}

impl Shared {
    pub async fn write(&self, group: GroupId, command: Bytes) -> Result<Outcome, ProposeError> {
        let outcomes = self.routed(group, &[command], Manner::Next).await?;
        let count = outcomes.len();
        let one = <[Outcome; 1]>::try_from(outcomes);
        one.map(|[outcome]| outcome).map_err(|_| unknown(format!("{count} outcomes came for one command")))
    }

    async fn routed(&self, group: GroupId, commands: &[Bytes], manner: Manner) -> Result<Vec<Outcome>, ProposeError> {
        let (until, busy_until) = (Instant::now() + ROUTE_WAIT_MAX, Instant::now() + WRITE_WAIT_MAX);
        loop {
            let asked = std::time::Instant::now();
            let refusal = match self.route(group) {
                Route::Here => match self.propose_here(group, commands, manner).await {
                    Err(ProposeError::NotWritten(refusal @ NotWritten::NotLeader { .. })) => refusal,
                    done => return done.map(|written| written.outcomes),
                },
                Route::There(node) => match self.forward(node, group, commands, manner).await? {
                    Forwarded::Done(Written { outcomes, applied }) => {
                        self.wait_until_readable(group, applied, (asked, until)).await?;
                        return Ok(outcomes);
                    }
                    Forwarded::NotThere => NotWritten::NotLeader { leader: None },
                    Forwarded::Busy if Instant::now() < busy_until => {
                        sleep(BUSY_AGAIN_AFTER).await;
                        continue;
                    }
                    Forwarded::Busy => return Err(NotWritten::Busy("too many writes wait for this group").into()),
                },
                Route::Nobody => NotWritten::NotLeader { leader: None },
            };
            if Instant::now() >= until || self.closing.load(Ordering::Acquire) {
                return Err(refusal.into());
            }
            sleep(ROUTED_AGAIN_AFTER).await;
        }
    }

    /// Returns when a write that another node made can be read from the replica here, where there is one: its writer reads
    /// there next. The leader's answer says what has to be applied for that. A leader of version 0.4 does not say it, and a
    /// replica that is replaced meanwhile may not get there, so these are fenced: that takes two more round trips.
    async fn wait_until_readable(
        &self,
        group: GroupId,
        applied: Option<u64>,
        (asked, until): (std::time::Instant, Instant),
    ) -> Result<(), ProposeError> {
        let Some(known) = self.hub.group(group) else { return Ok(()) };
        let here = match applied {
            Some(index) => known.wait_applied(index).await,
            None => self.fence_until(group, until).await.map(drop),
        };
        let seen = match here {
            Ok(()) if group == GroupId::CATALOG => {
                self.heard_catalog(asked);
                Ok(())
            }
            // The replica was closed, and another takes its place.
            Err(FenceError::Stopped(_)) => self.fence_until(group, until).await.map(drop),
            here => here,
        };
        seen.map_err(|error| unknown(format!("written, but not yet readable on this node: {error}")))
    }

    async fn forward(
        &self,
        node: NodeId,
        group: GroupId,
        commands: &[Bytes],
        manner: Manner,
    ) -> Result<Forwarded, ProposeError> {
        let body = encode(group, commands, manner);
        match self.ask(node, PROPOSE, body, FORWARD_MAX).await {
            Ok(answer) => match serde_json::from_slice(&answer) {
                Ok(Answer::Outcomes(outcomes)) => Ok(Forwarded::Done(Written { outcomes, applied: None })),
                Ok(Answer::Applied { outcomes, applied }) => Ok(Forwarded::Done(Written { outcomes, applied })),
                Ok(Answer::Busy) => Ok(Forwarded::Busy),
                Ok(Answer::NoSpace(why)) => Err(NotWritten::NoSpace(why).into()),
                Ok(Answer::TooLarge { bytes, limit }) => Err(NotWritten::TooLarge { bytes, limit }.into()),
                Err(error) => Err(unknown(format!("node {node} sent an answer that cannot be decoded: {error}"))),
            },
            Err(AskError::NotLeader { leader, .. }) => {
                self.note_leader(group, node, leader);
                Ok(Forwarded::NotThere)
            }
            Err(AskError::NotReached { .. }) => {
                self.note_leader(group, node, None);
                Ok(Forwarded::NotThere)
            }
            Err(AskError::Busy { .. }) => Ok(Forwarded::Busy),
            // This write is not sent again, and the next need not go the same way.
            Err(AskError::Refused { why, .. }) => {
                self.note_leader(group, node, None);
                Err(NotWritten::Failed(why).into())
            }
            Err(AskError::Unknown { why, .. }) => {
                self.note_leader(group, node, None);
                Err(unknown(why))
            }
        }
    }
}

/// Write that the leader's replica has applied.
#[derive(Debug)]
struct Written {
    outcomes: Vec<Outcome>,
    /// Index of the last entry that the replica had applied by then, which is this write or a later one. A leader of
    /// version 0.4 does not say it.
    applied: Option<u64>,
}

enum Forwarded {
    Done(Written),
    NotThere,
    /// The leader has no room; nothing was written.
    Busy,
}

fn unknown(why: String) -> ProposeError {
    ProposeError::Unknown { why }
}

impl Shared {
    /// Returns when everything acknowledged before the call can be read from the replica on this node. Asks again until
    /// then while nobody leads, no majority confirms who does, or the replica is being replaced.
    pub async fn fence_until(&self, group: GroupId, until: Instant) -> Result<u64, FenceError> {
        loop {
            let absent = || FenceError::Stopped(format!("there is no group {group} here"));
            let known = self.hub.group(group).ok_or_else(absent)?;
            let asked = std::time::Instant::now();
            let refusal = match known.fence().await {
                Ok(index) => {
                    if group == GroupId::CATALOG {
                        self.heard_catalog(asked);
                    }
                    return Ok(index);
                }
                Err(late @ FenceError::Late { .. }) => return Err(late),
                Err(refusal) => refusal,
            };
            if Instant::now() >= until || self.closing.load(Ordering::Acquire) {
                return Err(refusal);
            }
            sleep(ROUTED_AGAIN_AFTER).await;
        }
    }

    async fn propose_here(&self, group: GroupId, commands: &[Bytes], manner: Manner) -> Result<Written, ProposeError> {
        let found = self.hub.group(group).ok_or(NotWritten::NotLeader { leader: None })?;
        let outcomes = match (manner, commands) {
            (Manner::Next, [command]) => vec![found.write(command.clone()).await?],
            _ => found.propose(commands.to_vec()).await?,
        };
        Ok(Written { outcomes, applied: found.applied_index() })
    }
}

/// Response to a forwarded write, unless it is refused because another node leads.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    /// For askers of version 0.4.
    Outcomes(Vec<Outcome>),
    Applied {
        outcomes: Vec<Outcome>,
        applied: Option<u64>,
    },
    Busy,
    NoSpace(String),
    TooLarge {
        bytes: usize,
        limit: usize,
    },
}

/// Bits of the byte after the group. Version 0.4 compares that byte with [`TOGETHER`] and takes any other value for
/// [`Manner::Next`]: there several commands are one entry all the same, and one shares its entry with others.
const TOGETHER: u8 = 1;
/// The asker understands [`Answer::Applied`].
const SAYS_APPLIED: u8 = 2;

/// Group u64, flags u8, then length u32 and bytes of each command.
fn encode(group: GroupId, commands: &[Bytes], manner: Manner) -> Bytes {
    let bytes: usize = commands.iter().map(|command| command.len() + 4).sum();
    let mut body = BytesMut::with_capacity(bytes + 9);
    body.put_u64_le(group.0);
    body.put_u8(SAYS_APPLIED | if manner == Manner::Together { TOGETHER } else { 0 });
    for command in commands {
        body.put_u32_le(u32::try_from(command.len()).expect("a command is far below 4 GiB"));
        body.put_slice(command);
    }
    body.freeze()
}

/// Write that another node was asked for.
#[derive(Debug, PartialEq, Eq)]
struct ForwardedWrite {
    group: GroupId,
    commands: Vec<Bytes>,
    manner: Manner,
    says_applied: bool,
}

fn decode(mut body: Bytes) -> Option<ForwardedWrite> {
    if body.len() < 9 {
        return None;
    }
    let group = GroupId(body.get_u64_le());
    let flags = body.get_u8();
    let manner = if flags & TOGETHER != 0 { Manner::Together } else { Manner::Next };
    let says_applied = flags & SAYS_APPLIED != 0;
    let mut commands = Vec::new();
    while body.remaining() >= 4 && commands.len() < COMMANDS_MAX {
        let length = body.get_u32_le() as usize;
        if length > body.remaining()
            || length > CATALOG_COMMAND_BYTES_MAX.max(assay_storage_model::command::COMMAND_BYTES_MAX)
        {
            return None;
        }
        commands.push(body.split_to(length));
    }
    body.is_empty().then_some(ForwardedWrite { group, commands, manner, says_applied })
}

/// Takes writes that another node was asked for.
#[derive(Debug)]
pub(crate) struct Proposals(pub Arc<Shared>);

impl Service for Proposals {
    fn answer(&self, _from: NodeId, body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let shared = Arc::clone(&self.0);
        async move {
            let bad = || NoAnswer::Refused("the forwarded write cannot be decoded".into());
            let ForwardedWrite { group, commands, manner, says_applied } = decode(body).ok_or_else(bad)?;
            let answer = match shared.propose_here(group, &commands, manner).await {
                Ok(Written { outcomes, applied }) if says_applied => Answer::Applied { outcomes, applied },
                Ok(Written { outcomes, .. }) => Answer::Outcomes(outcomes),
                Err(ProposeError::Unknown { why }) => return Err(NoAnswer::Unknown(why)),
                Err(ProposeError::NotWritten(refusal)) => match refusal {
                    NotWritten::NotLeader { .. } => {
                        let leader = shared.leader_node(group).filter(|leader| *leader != shared.node);
                        return Err(NoAnswer::NotLeader { leader });
                    }
                    NotWritten::Busy(_) => Answer::Busy,
                    NotWritten::NoSpace(why) => Answer::NoSpace(why),
                    NotWritten::TooLarge { bytes, limit } => Answer::TooLarge { bytes, limit },
                    // Another node may do it: this one is about to stop.
                    NotWritten::Closing => return Err(NoAnswer::NotLeader { leader: None }),
                    other => return Err(NoAnswer::Refused(other.to_string())),
                },
            };
            Ok(Bytes::from(serde_json::to_vec(&answer).expect("plain data encodes")))
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: GroupId = GroupId(16);
    const MEMBERS: [NodeId; 3] = [NodeId(1), NodeId(2), NodeId(3)];

    /// A node that is not among the members of a group has to find its leader wherever that is: the first member was asked
    /// for ever where it did not lead and did not say who does.
    #[test]
    fn members_are_asked_in_turn_until_one_leads() {
        let hints = Hints::default();
        for member in [1, 2, 3, 1].map(NodeId) {
            assert_eq!(hints.whom(GROUP, &MEMBERS), Some(member));
            hints.note(GROUP, &MEMBERS, member, None);
            hints.note(GROUP, &MEMBERS, member, None); // two writes were under way
        }
        assert_eq!(hints.whom(GROUP, &[NodeId(7)]), Some(NodeId(7)), "the map has changed");
        assert_eq!(hints.whom(GROUP, &[]), None);
    }

    #[test]
    fn who_was_named_is_asked_until_that_is_in_vain() {
        let hints = Hints::default();
        hints.note(GROUP, &MEMBERS, NodeId(1), Some(NodeId(3)));
        assert_eq!(hints.whom(GROUP, &MEMBERS), Some(NodeId(3)));
        hints.note(GROUP, &MEMBERS, NodeId(1), None); // of a write that was sent before
        assert_eq!(hints.whom(GROUP, &MEMBERS), Some(NodeId(3)));
        hints.note(GROUP, &MEMBERS, NodeId(3), Some(NodeId(3))); // as good as nothing: it refused
        assert_eq!(hints.whom(GROUP, &MEMBERS), Some(NodeId(2)), "and not whoever named it");
    }

    #[test]
    fn a_forwarded_write_reads_back_and_a_cut_one_does_not() {
        let commands = vec![Bytes::from_static(b"abc"), Bytes::new()];
        let body = encode(GroupId(7), &commands, Manner::Together);
        let manner = Manner::Together;
        let write = ForwardedWrite { group: GroupId(7), commands, manner, says_applied: true };
        assert_eq!(decode(body.clone()), Some(write));
        assert_eq!(decode(body.slice(..body.len() - 1)), None);
        assert_eq!(decode(Bytes::from_static(b"short")), None);
    }

    /// Nodes of two versions are in one cluster during an upgrade.
    #[test]
    fn a_node_of_version_0_4_is_understood() {
        let mut body = encode(GroupId(7), &[Bytes::from_static(b"abc")], Manner::Together).to_vec();
        body[8] = 1; // as that version writes it
        let write = decode(body.into()).expect("it decodes");
        assert_eq!((write.manner, write.says_applied), (Manner::Together, false));
        let answer = serde_json::to_vec(&Answer::Outcomes(Vec::new())).expect("it encodes");
        assert_eq!(answer, br#"{"outcomes":[]}"#);
    }
}
