//! Writes to a group from a node that does not lead it.
//!
//! A write that certainly failed is retried for a while at the current leader. A write that may have succeeded is not.

mod legacy;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster_network::{AskError, NoAnswer, Service, ServiceNames};
use assay_cluster_raft::{FenceError, WRITE_WAIT_MAX};
use assay_storage_model::catalog::CATALOG_COMMAND_BYTES_MAX;
use assay_storage_model::command::{COMMAND_BYTES_MAX, Outcome};
use assay_storage_model::{GroupId, NodeId, NotWritten, ShardId, WriteFailure, WriteOutcome};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::frames::{decode_frames, put_frames};
use super::leader_routing::{
    ASKED_AGAIN_AFTER, Attempt, Attempts, LeaderCall, LeaderMessage, ROUTE_WAIT_MAX, RetryUntil, Round, Unserved,
};
use crate::{Cluster, Shared};

pub(crate) const PROPOSE: &str = "cluster.propose";
/// Time limit of one forwarded write, which waits for space and memory up to [`WRITE_WAIT_MAX`].
const FORWARD_MAX: Duration = Duration::from_secs(40);
const COMMANDS_MAX: usize = 10_000;

/// Placement of commands in entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// One command in the next entry of the group's committer.
    Next,
    /// All commands in a separate entry.
    Together,
}

impl Cluster {
    /// Writes the commands as one log entry, wherever the group is led. On return the entry is durable and applied
    /// there.
    pub async fn propose(&self, group: GroupId, commands: Vec<Bytes>) -> Result<Vec<Outcome>, WriteFailure> {
        self.shared.routed(group, &commands, Manner::Together).await
    }

    /// Writes one command in the next entry of its shard's committer, wherever the shard is led.
    pub async fn write(&self, shard: ShardId, command: Bytes) -> WriteOutcome {
        self.shared.write(GroupId::of_shard(shard), command).await
    }

    /// Writes one command in the next entry of the catalog's committer, wherever the catalog is led.
    pub async fn write_catalog(&self, command: Bytes) -> WriteOutcome {
        self.shared.write(GroupId::CATALOG, command).await
    }
}

impl Shared {
    pub async fn write(&self, group: GroupId, command: Bytes) -> WriteOutcome {
        let outcomes = self.routed(group, &[command], Manner::Next).await?;
        let count = outcomes.len();
        let one = <[Outcome; 1]>::try_from(outcomes);
        one.map(|[outcome]| outcome).map_err(|_| unknown(format!("one command returned {count} outcomes")))
    }

    async fn routed(&self, group: GroupId, commands: &[Bytes], manner: Manner) -> Result<Vec<Outcome>, WriteFailure> {
        let now = Instant::now();
        let until = RetryUntil { leader: now + ROUTE_WAIT_MAX, busy: now + WRITE_WAIT_MAX };
        let mut write = WriteCall { shared: self, group, commands, manner, until: until.leader };
        let Ok(mut responses) = self.ask_leaders(&mut write, vec![(group, ())], until).await;
        responses.pop().unwrap_or(Err(Unserved::Lost)).unwrap_or_else(|unserved| {
            Err(match unserved {
                Unserved::NoLeader(()) => NotWritten::NotLeader.into(),
                Unserved::Busy(()) => NotWritten::busy("too many writes wait for this group").into(),
                Unserved::Lost => unknown("a write has no outcome".into()),
            })
        })
    }

    /// Waits until a write that another node made can be read from the replica here, because its writer reads there
    /// next.
    ///
    /// The leader's response names the index that must be applied. A leader of version 0.4 does not name it, and a
    /// replica that is replaced meanwhile may never reach it. These cases use a fence, which takes two more round
    /// trips.
    async fn wait_until_readable(
        &self,
        group: GroupId,
        applied: Option<u64>,
        (asked, until): (std::time::Instant, Instant),
    ) -> Result<(), WriteFailure> {
        let Some(known) = self.replicas.group(group) else { return Ok(()) };
        let here = match applied {
            Some(index) => known.wait_applied(index).await,
            None => self.fence_until(group, until).await.map(drop),
        };
        let seen = match here {
            Ok(()) if group == GroupId::CATALOG => {
                self.heard_catalog(asked);
                Ok(())
            }
            // The replica was closed, and another one replaces it.
            Err(FenceError::Stopped(_)) => self.fence_until(group, until).await.map(drop),
            here => here,
        };
        seen.map_err(|error| unknown(format!("written, but not yet readable on this node: {error}")))
    }
}

/// Commands for one group on their way to its leader.
struct WriteCall<'a> {
    shared: &'a Shared,
    group: GroupId,
    commands: &'a [Bytes],
    manner: Manner,
    until: Instant,
}

impl LeaderCall for WriteCall<'_> {
    type Request = ();
    type Response = Result<Vec<Outcome>, WriteFailure>;
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
            Err(WriteFailure::NotWritten(NotWritten::NotLeader)) => Attempt::Elsewhere(()),
            done => Attempt::Done(done.map(|written| written.outcomes)),
        }
    }

    async fn forward(&self, node: NodeId) -> WriteAttempt {
        let asked = std::time::Instant::now();
        let commands = self.commands.to_vec();
        let write = ForwardedWrite { group: self.group, commands, manner: self.manner, form: ResponseForm::Failures };
        let response = self.shared.send_about(node, &[self.group], None, &write, FORWARD_MAX).await;
        let Written { outcomes, applied } = match response {
            Ok(Ok(written)) => written,
            Ok(Err(WriteFailure::NotWritten(NotWritten::Busy(_)))) | Err(AskError::Busy { .. }) => {
                return Attempt::Busy(());
            }
            Ok(Err(failure)) => return Attempt::Done(Err(failure)),
            Err(AskError::NotLeader { .. } | AskError::NotReached { .. }) => return Attempt::Elsewhere(()),
            Err(AskError::Refused { why, .. }) => return Attempt::Done(Err(NotWritten::Failed(why).into())),
            Err(AskError::Unknown { why, .. }) => return Attempt::Done(Err(unknown(why))),
        };
        let readable = self.shared.wait_until_readable(self.group, applied, (asked, self.until)).await;
        Attempt::Done(readable.map(|()| outcomes))
    }
}

type WriteAttempt = Attempt<(), Result<Vec<Outcome>, WriteFailure>>;

/// Write that the leader's replica has applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Written {
    outcomes: Vec<Outcome>,
    /// Index of the last entry that the replica had applied by then: this write or a later one. A leader of version 0.4
    /// omits it.
    applied: Option<u64>,
}

fn unknown(why: String) -> WriteFailure {
    WriteFailure::Unknown { why }
}

impl Shared {
    /// Waits until everything acknowledged before the call can be read from the replica on this node.
    ///
    /// Retries until the deadline while there is no leader, no majority confirms it, or the replica is being replaced.
    pub async fn fence_until(&self, group: GroupId, until: Instant) -> Result<u64, FenceError> {
        loop {
            let absent = || FenceError::Stopped(format!("this node has no replica of group {group}"));
            let known = self.replicas.group(group).ok_or_else(absent)?;
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

    async fn propose_here(&self, group: GroupId, commands: &[Bytes], manner: Manner) -> Result<Written, WriteFailure> {
        let found = self.replicas.group(group).ok_or(NotWritten::NotLeader)?;
        let outcomes = match (manner, commands) {
            (Manner::Next, [command]) => vec![found.write(command.clone()).await?],
            _ => found.propose(commands.to_vec()).await?,
        };
        Ok(Written { outcomes, applied: found.applied_index() })
    }
}

/// Bytes of the group and the flags in front of the commands.
const HEAD_BYTES: usize = 9;
/// Bits of the byte after the group.
///
/// Version 0.4 compares that byte with [`TOGETHER`], and treats any other value as [`Manner::Next`]. There, several
/// commands still form one entry, and a single command shares its entry with others.
const TOGETHER: u8 = 1;
/// The sender understands [`ResponseForm::Applied`].
const READS_APPLIED: u8 = 2;
/// The sender understands [`ResponseForm::Failures`].
const READS_FAILURES: u8 = 4;

/// Form of a response, as requested by the sender of the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResponseForm {
    /// Only outcomes, for version 0.4.
    Outcomes,
    /// Outcomes and the applied index, for version 0.5.
    Applied,
    /// [`Written`], or the failure in the form of the model.
    Failures,
}

/// Write that is sent to the node that leads its group.
#[derive(Debug, PartialEq, Eq)]
struct ForwardedWrite {
    group: GroupId,
    commands: Vec<Bytes>,
    manner: Manner,
    form: ResponseForm,
}

impl ForwardedWrite {
    fn read(mut body: Bytes) -> Option<ForwardedWrite> {
        if body.len() < HEAD_BYTES {
            return None;
        }
        let group = GroupId(body.get_u64_le());
        let flags = body.get_u8();
        let manner = if flags & TOGETHER != 0 { Manner::Together } else { Manner::Next };
        let form = match flags {
            flags if flags & READS_FAILURES != 0 => ResponseForm::Failures,
            flags if flags & READS_APPLIED != 0 => ResponseForm::Applied,
            _ => ResponseForm::Outcomes,
        };
        let commands = decode_frames(body, COMMANDS_MAX)?;
        let bytes_max = CATALOG_COMMAND_BYTES_MAX.max(COMMAND_BYTES_MAX);
        let fits = commands.iter().all(|command| command.len() <= bytes_max);
        fits.then_some(ForwardedWrite { group, commands, manner, form })
    }

    fn flags(&self) -> u8 {
        let form = match self.form {
            ResponseForm::Outcomes => 0,
            ResponseForm::Applied => READS_APPLIED,
            ResponseForm::Failures => READS_APPLIED | READS_FAILURES,
        };
        form | if self.manner == Manner::Together { TOGETHER } else { 0 }
    }
}

impl LeaderMessage for ForwardedWrite {
    type Response = Result<Written, WriteFailure>;
    const REPEATABLE: bool = false;

    /// Nodes forward writes for themselves, without a principal.
    fn service(&self) -> ServiceNames {
        ServiceNames { plain: PROPOSE, on_behalf: PROPOSE }
    }

    /// Encodes group u64, flags u8, and then the commands in frames.
    fn encode(&self) -> Bytes {
        let bytes: usize = self.commands.iter().map(|command| command.len() + 4).sum();
        let mut body = BytesMut::with_capacity(HEAD_BYTES + bytes);
        body.put_u64_le(self.group.0);
        body.put_u8(self.flags());
        put_frames(&mut body, self.commands.iter().map(|command| &command[..]));
        body.freeze()
    }

    fn decode(&self, response: Bytes) -> Option<Result<Written, WriteFailure>> {
        let older = || legacy::decode(&response);
        serde_json::from_slice(&response).ok().or_else(older)
    }
}

/// Service that accepts writes forwarded by other nodes.
#[derive(Debug)]
pub(crate) struct ProposeService(pub Arc<Shared>);

impl Service for ProposeService {
    fn answer(&self, _from: NodeId, body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let shared = Arc::clone(&self.0);
        async move {
            let bad = || NoAnswer::Refused("the forwarded write cannot be decoded".into());
            let ForwardedWrite { group, commands, manner, form } = ForwardedWrite::read(body).ok_or_else(bad)?;
            let written = match shared.propose_here(group, &commands, manner).await {
                Err(WriteFailure::Unknown { why }) => return Err(NoAnswer::Unknown(why)),
                Err(WriteFailure::NotWritten(NotWritten::NotLeader)) => return Err(shared.not_leader(group)),
                // This node is about to stop, so another one may serve the write.
                Err(WriteFailure::NotWritten(NotWritten::Closing)) => {
                    return Err(NoAnswer::NotLeader { leader: None });
                }
                written => written,
            };
            match form {
                ResponseForm::Failures => Ok(serde_json::to_vec(&written).expect("plain data encodes").into()),
                ResponseForm::Applied | ResponseForm::Outcomes => legacy::encode(written, form),
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write() -> ForwardedWrite {
        let commands = vec![Bytes::from_static(b"abc"), Bytes::new()];
        ForwardedWrite { group: GroupId(7), commands, manner: Manner::Together, form: ResponseForm::Failures }
    }

    #[test]
    fn a_forwarded_write_reads_back_and_a_cut_one_does_not() {
        let body = write().encode();
        assert_eq!(ForwardedWrite::read(body.clone()), Some(write()));
        assert_eq!(ForwardedWrite::read(body.slice(..body.len() - 1)), None);
        assert_eq!(ForwardedWrite::read(Bytes::from_static(b"short")), None);
    }

    /// During an upgrade a cluster has nodes of several versions.
    #[test]
    fn a_write_of_an_older_version_asks_for_the_response_that_it_reads() {
        for (flags, form) in [(1, ResponseForm::Outcomes), (3, ResponseForm::Applied), (7, ResponseForm::Failures)] {
            let mut body = write().encode().to_vec();
            body[8] = flags; // the flags of versions 0.4, 0.5 and 0.6
            let write = ForwardedWrite::read(body.into()).expect("it decodes");
            assert_eq!((write.manner, write.form, write.flags()), (Manner::Together, form, flags));
        }
    }

    #[test]
    fn the_response_is_frozen() {
        let cases: [(Result<Written, WriteFailure>, &str); 2] = [
            (Ok(Written { outcomes: Vec::new(), applied: Some(7) }), r#"{"Ok":{"outcomes":[],"applied":7}}"#),
            (Err(NotWritten::NoSpace("full".into()).into()), r#"{"Err":{"not_written":{"no_space":"full"}}}"#),
        ];
        for (response, form) in cases {
            assert_eq!(serde_json::to_string(&response).expect("it encodes"), form);
            assert_eq!(write().decode(Bytes::from_static(form.as_bytes())), Some(response));
        }
    }
}
