//! Writes of a group from a node that does not lead it.
//!
//! What was surely not written is sent again, to whoever leads by then, for a while; what may have been written is not.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster_raft::{FenceError, NotWritten, ProposeError, WRITE_WAIT_MAX};
use assay_storage_model::catalog::CATALOG_COMMAND_BYTES_MAX;
use assay_storage_model::command::{COMMAND_BYTES_MAX, Outcome};
use assay_storage_model::{GroupId, NodeId, ShardId};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::ask_leader::{
    ASKED_AGAIN_AFTER, Attempt, Attempts, LeaderCall, LeaderMessage, ROUTE_WAIT_MAX, RetryUntil, Round, Unserved,
};
use super::frames::{decode_frames, put_frames};
use crate::behalf::ServiceNames;
use crate::service::{AskError, NoAnswer, Service};
use crate::{Cluster, Shared};

pub(crate) const PROPOSE: &str = "cluster.propose";
/// One forwarded write: it waits for room and memory for [`WRITE_WAIT_MAX`] at most.
const FORWARD_MAX: Duration = Duration::from_secs(40);
const COMMANDS_MAX: usize = 10_000;

/// How commands are put into entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// One command, in the next entry of the group's committer.
    Next,
    /// All in one entry of their own.
    Together,
}

impl Cluster {
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
        let now = Instant::now();
        let until = RetryUntil { leader: now + ROUTE_WAIT_MAX, busy: now + WRITE_WAIT_MAX };
        let mut write = WriteCall { shared: self, group, commands, manner, until: until.leader };
        let Ok(mut responses) = self.ask_leaders(&mut write, vec![(group, ())], until).await;
        responses.pop().unwrap_or(Err(Unserved::Lost)).unwrap_or_else(|unserved| {
            Err(match unserved {
                Unserved::NoLeader(()) => NotWritten::NotLeader { leader: None }.into(),
                Unserved::Busy(()) => NotWritten::Busy("too many writes wait for this group").into(),
                Unserved::Lost => unknown("a write has no outcome".into()),
            })
        })
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
}

/// Commands for one group, on their way to its leader.
struct WriteCall<'a> {
    shared: &'a Shared,
    group: GroupId,
    commands: &'a [Bytes],
    manner: Manner,
    until: Instant,
}

impl LeaderCall for WriteCall<'_> {
    type Request = ();
    type Response = Result<Vec<Outcome>, ProposeError>;
    type Error = Infallible;

    async fn attempt(&mut self, round: Round<()>) -> Attempts<Self> {
        let attempt = match round.node() {
            None => self.write_here().await,
            Some(node) => self.forward(node).await,
        };
        Ok(vec![(0, attempt)])
    }
}

impl WriteCall<'_> {
    async fn write_here(&self) -> WriteAttempt {
        match self.shared.propose_here(self.group, self.commands, self.manner).await {
            Err(ProposeError::NotWritten(NotWritten::NotLeader { .. })) => Attempt::Elsewhere(()),
            done => Attempt::Done(done.map(|written| written.outcomes)),
        }
    }

    async fn forward(&self, node: NodeId) -> WriteAttempt {
        let asked = std::time::Instant::now();
        let commands = self.commands.to_vec();
        let write = ForwardedWrite { group: self.group, commands, manner: self.manner, says_applied: true };
        let response = self.shared.send_about(node, &[self.group], None, &write, FORWARD_MAX).await;
        let Written { outcomes, applied } = match response {
            Ok(ProposeResponse::Outcomes(outcomes)) => Written { outcomes, applied: None },
            Ok(ProposeResponse::Applied { outcomes, applied }) => Written { outcomes, applied },
            Ok(ProposeResponse::Busy) | Err(AskError::Busy { .. }) => return Attempt::Busy(()),
            Ok(ProposeResponse::NoSpace(why)) => return Attempt::Done(Err(NotWritten::NoSpace(why).into())),
            Ok(ProposeResponse::TooLarge { bytes, limit }) => {
                return Attempt::Done(Err(NotWritten::TooLarge { bytes, limit }.into()));
            }
            Err(AskError::NotLeader { .. } | AskError::NotReached { .. }) => return Attempt::Elsewhere(()),
            Err(AskError::Refused { why, .. }) => return Attempt::Done(Err(NotWritten::Failed(why).into())),
            Err(AskError::Unknown { why, .. }) => return Attempt::Done(Err(unknown(why))),
        };
        let readable = self.shared.wait_until_readable(self.group, applied, (asked, self.until)).await;
        Attempt::Done(readable.map(|()| outcomes))
    }
}

type WriteAttempt = Attempt<(), Result<Vec<Outcome>, ProposeError>>;

/// Write that the leader's replica has applied.
#[derive(Debug)]
struct Written {
    outcomes: Vec<Outcome>,
    /// Index of the last entry that the replica had applied by then, which is this write or a later one. A leader of
    /// version 0.4 does not say it.
    applied: Option<u64>,
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
            if Instant::now() >= until || self.is_closing() {
                return Err(refusal);
            }
            sleep(ASKED_AGAIN_AFTER).await;
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
enum ProposeResponse {
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

/// Group and flags in front of the commands.
const HEAD_BYTES: usize = 9;
/// Bits of the byte after the group. Version 0.4 compares that byte with [`TOGETHER`] and takes any other value for
/// [`Manner::Next`]: there several commands are one entry all the same, and one shares its entry with others.
const TOGETHER: u8 = 1;
/// The sender understands [`ProposeResponse::Applied`].
const SAYS_APPLIED: u8 = 2;

/// Write that is sent to the node that leads its group.
#[derive(Debug, PartialEq, Eq)]
struct ForwardedWrite {
    group: GroupId,
    commands: Vec<Bytes>,
    manner: Manner,
    says_applied: bool,
}

impl ForwardedWrite {
    fn read(mut body: Bytes) -> Option<ForwardedWrite> {
        if body.len() < HEAD_BYTES {
            return None;
        }
        let group = GroupId(body.get_u64_le());
        let flags = body.get_u8();
        let manner = if flags & TOGETHER != 0 { Manner::Together } else { Manner::Next };
        let commands = decode_frames(body, COMMANDS_MAX)?;
        let bytes_max = CATALOG_COMMAND_BYTES_MAX.max(COMMAND_BYTES_MAX);
        let fits = commands.iter().all(|command| command.len() <= bytes_max);
        fits.then_some(ForwardedWrite { group, commands, manner, says_applied: flags & SAYS_APPLIED != 0 })
    }
}

impl LeaderMessage for ForwardedWrite {
    type Response = ProposeResponse;
    const REPEATABLE: bool = false;

    /// Nodes forward writes for themselves, without a principal.
    fn service(&self) -> ServiceNames {
        ServiceNames { plain: PROPOSE, on_behalf: PROPOSE }
    }

    /// Group u64, flags u8, then the commands in frames.
    fn encode(&self) -> Bytes {
        let bytes: usize = self.commands.iter().map(|command| command.len() + 4).sum();
        let mut body = BytesMut::with_capacity(HEAD_BYTES + bytes);
        body.put_u64_le(self.group.0);
        let applied = if self.says_applied { SAYS_APPLIED } else { 0 };
        body.put_u8(applied | if self.manner == Manner::Together { TOGETHER } else { 0 });
        put_frames(&mut body, self.commands.iter().map(|command| &command[..]));
        body.freeze()
    }

    fn decode(&self, response: Bytes) -> Option<ProposeResponse> {
        serde_json::from_slice(&response).ok()
    }
}

/// Takes writes that other nodes forward.
#[derive(Debug)]
pub(crate) struct ProposeService(pub Arc<Shared>);

impl Service for ProposeService {
    fn answer(&self, _from: NodeId, body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let shared = Arc::clone(&self.0);
        async move {
            let bad = || NoAnswer::Refused("the forwarded write cannot be decoded".into());
            let ForwardedWrite { group, commands, manner, says_applied } =
                ForwardedWrite::read(body).ok_or_else(bad)?;
            let answer = match shared.propose_here(group, &commands, manner).await {
                Ok(Written { outcomes, applied }) if says_applied => ProposeResponse::Applied { outcomes, applied },
                Ok(Written { outcomes, .. }) => ProposeResponse::Outcomes(outcomes),
                Err(ProposeError::Unknown { why }) => return Err(NoAnswer::Unknown(why)),
                Err(ProposeError::NotWritten(refusal)) => match refusal {
                    NotWritten::NotLeader { .. } => return Err(shared.not_leader(group)),
                    NotWritten::Busy(_) => ProposeResponse::Busy,
                    NotWritten::NoSpace(why) => ProposeResponse::NoSpace(why),
                    NotWritten::TooLarge { bytes, limit } => ProposeResponse::TooLarge { bytes, limit },
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

    fn write() -> ForwardedWrite {
        let commands = vec![Bytes::from_static(b"abc"), Bytes::new()];
        ForwardedWrite { group: GroupId(7), commands, manner: Manner::Together, says_applied: true }
    }

    #[test]
    fn a_forwarded_write_reads_back_and_a_cut_one_does_not() {
        let body = write().encode();
        assert_eq!(ForwardedWrite::read(body.clone()), Some(write()));
        assert_eq!(ForwardedWrite::read(body.slice(..body.len() - 1)), None);
        assert_eq!(ForwardedWrite::read(Bytes::from_static(b"short")), None);
    }

    /// Nodes of two versions are in one cluster during an upgrade.
    #[test]
    fn a_node_of_version_0_4_is_understood() {
        let mut body = write().encode().to_vec();
        body[8] = 1; // as that version writes it
        let write = ForwardedWrite::read(body.into()).expect("it decodes");
        assert_eq!((write.manner, write.says_applied), (Manner::Together, false));
        let answer = serde_json::to_vec(&ProposeResponse::Outcomes(Vec::new())).expect("it encodes");
        assert_eq!(answer, br#"{"outcomes":[]}"#);
    }
}
