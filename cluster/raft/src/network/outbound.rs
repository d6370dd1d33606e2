//! Messages of openraft to the other replicas of a group.
//!
//! Each message is encoded, sent through [`Peers`], and its response is converted. There are no retries here, because
//! openraft retries after the pause that it is given. A long append outlives the attempts of openraft (`long_append`).

use std::sync::Arc;
use std::time::Duration;

use assay_storage_model::{GroupId, NodeId, ReplicaId};
use bytes::Bytes;
use openraft::error::{Fatal, NetworkError, RPCError, RaftError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{Backoff, RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse};
use openraft::{OptionalSend, Vote};
use thiserror::Error;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::leadership::higher_vote::HigherVotes;
use crate::log::encoding::BadRecord;
use crate::network::long_append::{LongAppend, QUICK_BYTES, bytes_of, time_for};
use crate::network::peers::{Message, MessageKind, PeerError, Peers, Way};
use crate::network::wire::{self, AppendOf, AppendedOf};
use crate::snapshot_transfer::exports::Exports;
use crate::types::{Consensus, Home, LogIdOf, Replica, SnapshotFiles, SnapshotOf};

/// Pause between two attempts to reach a replica, short enough to find a returning node soon.
const BACKOFF: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub group: GroupId,
    pub replica: ReplicaId,
    pub peers: Arc<dyn Peers>,
    pub exports: Exports,
    pub deposed: HigherVotes,
}

#[derive(Debug)]
pub(crate) struct Peer {
    network: Network,
    way: Way,
    /// Long append in flight, kept between the attempts of openraft.
    long: Option<LongAppend>,
}

impl RaftNetworkFactory<Consensus> for Network {
    type Network = Peer;

    async fn new_client(&mut self, target: Replica, home: &Home) -> Peer {
        let Network { group, replica, .. } = *self;
        let way = Way { group, from: replica, to: ReplicaId(target), node: NodeId(home.node) };
        Peer { network: self.clone(), way, long: None }
    }
}

#[derive(Debug, Error)]
#[error("the follower voted for another replica: {0}")]
struct OtherVote(Vote<Replica>);

type RpcError = RPCError<Replica, Home, RaftError<Replica>>;

impl Peer {
    async fn send(&self, kind: MessageKind, body: Bytes, within: Duration) -> Result<Bytes, PeerError> {
        self.network.peers.send(Message { way: self.way, kind, body, within }).await
    }

    async fn append(&self, append: &AppendOf, within: Duration) -> Result<AppendedOf, RpcError> {
        let answer = self.send(MessageKind::Append, wire::encode_append(append), within).await;
        wire::decode_appended(&answer.map_err(failed)?).map_err(unreadable)
    }

    /// Sends a long append. openraft may drop this future at any time, and requests the same or more again.
    async fn append_long(
        &mut self,
        mut append: AppendOf,
        last: LogIdOf,
        option: RPCOption,
    ) -> Result<AppendedOf, RpcError> {
        let ends = Instant::now() + option.soft_ttl();
        let long = self.long.take().unwrap_or_else(|| self.begin(&append, last));
        self.long = Some(long.clone());
        append.entries.clear();
        let heartbeat = async {
            sleep_until(long.next_heartbeat()).await;
            self.append(&append, option.hard_ttl()).await
        };
        let answer = tokio::select! {
            biased;
            answer = long.answer.clone() => Some(answer),
            heard = heartbeat => match heard? {
                AppendedOf::Success if append.prev_log_id.is_some() => timeout_at(ends, long.answer.clone()).await.ok(),
                // openraft panics on progress to an empty position. It ends this attempt itself.
                AppendedOf::Success => Some(long.answer.clone().await),
                other => {
                    self.long = None;
                    return Ok(other);
                }
            },
        };
        let Some(answer) = answer else { return Ok(AppendedOf::PartialSuccess(append.prev_log_id)) };
        self.long = None;
        let answer = wire::decode_appended(&answer.map_err(failed)?).map_err(unreadable)?;
        Ok(long.answer_to(last, answer))
    }

    fn begin(&self, append: &AppendOf, last: LogIdOf) -> LongAppend {
        let (body, within) = (wire::encode_append(append), time_for(bytes_of(append)));
        let message = Message { way: self.way, kind: MessageKind::Append, body, within };
        LongAppend::new(append, last, self.network.peers.send(message))
    }
}

fn failed(error: PeerError) -> RpcError {
    match &error {
        // The refusing node does not have the replica yet, or any more, which does not change at once.
        PeerError::Unreachable(_) | PeerError::Refused { .. } | PeerError::Unsupported(_) => {
            Unreachable::new(&error).into()
        }
        PeerError::Lost(_) => NetworkError::new(&error).into(),
    }
}

fn unreadable(error: BadRecord) -> RpcError {
    Unreachable::new(&error).into()
}

impl RaftNetwork<Consensus> for Peer {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Consensus>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<Replica>, RpcError> {
        let last = request.entries.last().map(|entry| entry.log_id);
        let last_of_long = last.filter(|_| bytes_of(&request) > QUICK_BYTES);
        // A heartbeat of openraft does not cancel it.
        let goes_on = last_of_long.is_some() || last.is_none();
        self.long = self.long.take().filter(|long| goes_on && long.begins_as(&request));
        let appended = match last_of_long {
            Some(last) => self.append_long(request, last, option).await,
            None => self.append(&request, option.hard_ttl()).await,
        };
        if let Ok(AppendedOf::HigherVote(vote)) = appended {
            self.network.deposed.tell(vote);
            return Err(Unreachable::new(&OtherVote(vote)).into());
        }
        appended
    }

    async fn vote(
        &mut self,
        request: VoteRequest<Replica>,
        option: RPCOption,
    ) -> Result<VoteResponse<Replica>, RpcError> {
        let answer = self.send(MessageKind::Vote, wire::encode_vote_request(&request), option.hard_ttl()).await;
        wire::decode_voted(&answer.map_err(failed)?).map_err(unreadable)
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote<Replica>,
        snapshot: SnapshotOf,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<Replica>, StreamingError<Consensus, Fatal<Replica>>> {
        let SnapshotFiles::Exported(export) = *snapshot.snapshot else {
            let nothing = PeerError::Unreachable("this snapshot has no content to send".into());
            return Err(Unreachable::new(&nothing).into());
        };
        let held = self.network.exports.hold(export);
        let body = wire::encode_offer(&held.offer(vote));
        let answer = tokio::select! {
            biased;
            closed = cancel => return Err(closed.into()),
            answer = self.send(MessageKind::Snapshot, body, option.hard_ttl()) => answer,
        };
        let streaming = |error: &PeerError| match error {
            PeerError::Unreachable(_) | PeerError::Refused { .. } | PeerError::Unsupported(_) => {
                Unreachable::new(error).into()
            }
            PeerError::Lost(_) => StreamingError::Network(NetworkError::new(error)),
        };
        let vote = wire::decode_installed(&answer.map_err(|error| streaming(&error))?);
        vote.map(SnapshotResponse::new).map_err(|error| Unreachable::new(&error).into())
    }

    fn backoff(&self) -> Backoff {
        Backoff::new(std::iter::repeat(BACKOFF))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use assay_storage_disk::RealDisk;
    use futures::FutureExt;
    use futures::future::BoxFuture;
    use openraft::EntryPayload;
    use openraft::testing::log_id;
    use parking_lot::Mutex;
    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::network::peers::{Chunks, FileWanted};
    use crate::types::{EntryBytes, EntryOf};
    use crate::work::Work;

    const HEARTBEAT: Duration = Duration::from_millis(120);
    const MIB: usize = 1 << 20;

    /// Follower behind a link of limited speed. It records the arrival time and number of entries of each message.
    #[derive(Debug)]
    struct Link {
        rate: usize,
        answer: Mutex<Bytes>,
        arrived: Mutex<Vec<(Instant, usize)>>,
    }

    impl Link {
        fn entries(&self) -> Vec<usize> {
            self.arrived.lock().iter().map(|(_, entries)| *entries).filter(|entries| *entries > 0).collect()
        }
    }

    #[derive(Debug)]
    struct Linked(Arc<Link>);

    impl Peers for Linked {
        fn send(&self, message: Message) -> BoxFuture<'static, Result<Bytes, PeerError>> {
            let link = Arc::clone(&self.0);
            let passes = async move {
                sleep(Duration::from_secs_f64(message.body.len() as f64 / link.rate as f64)).await;
                let entries = wire::decode_append(&message.body).expect("an append").entries.len();
                link.arrived.lock().push((Instant::now(), entries));
                Ok(link.answer.lock().clone())
            };
            async move { timeout(message.within, passes).await.unwrap_or(Err(PeerError::Lost("too late".into()))) }
                .boxed()
        }

        fn fetch(&self, _: Way, _: FileWanted) -> BoxFuture<'static, Result<Chunks, PeerError>> {
            unreachable!("no snapshot is sent")
        }
    }

    async fn peer(rate: usize) -> (Arc<Link>, Peer) {
        let link =
            Link { rate, answer: Mutex::new(wire::encode_appended(&AppendedOf::Success)), arrived: Mutex::default() };
        let link = Arc::new(link);
        let exports = Exports::new(Arc::new(RealDisk), Work::Threads);
        let peers = Arc::new(Linked(Arc::clone(&link)));
        let mut network =
            Network { group: GroupId(16), replica: ReplicaId(1), peers, exports, deposed: HigherVotes::default() };
        let peer = network.new_client(2, &Home { node: 2 }).await;
        (link, peer)
    }

    /// Returns entries 5 to `last`, after entry 4.
    fn append(last: u64, bytes: usize) -> AppendOf {
        let payload = EntryPayload::Normal(EntryBytes(Bytes::from(vec![0; bytes])));
        let entries = (5..=last).map(|index| EntryOf { log_id: log_id(2, 1, index), payload: payload.clone() });
        AppendOf {
            vote: Vote::new_committed(2, 1),
            prev_log_id: Some(log_id(2, 1, 4)),
            entries: entries.collect(),
            leader_commit: None,
        }
    }

    /// Makes one attempt like openraft.
    async fn one_try(peer: &mut Peer, append: AppendOf) -> Option<Result<AppendedOf, RpcError>> {
        timeout(HEARTBEAT, peer.append_entries(append, RPCOption::new(HEARTBEAT))).await.ok()
    }

    /// Retries until the response is more than a sign of life, and returns it with the number of attempts.
    async fn insist(peer: &mut Peer, append: &AppendOf) -> (AppendedOf, u32) {
        for tries in 1..1000 {
            match one_try(peer, append.clone()).await {
                Some(Ok(AppendedOf::PartialSuccess(matching))) if matching == append.prev_log_id => {}
                Some(answer) => return (answer.expect("an answer"), tries),
                None => {}
            }
        }
        panic!("it never passed");
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_longer_than_a_heartbeat_passes_once_and_heartbeats_go_beside_it() {
        for megabits in [8, 50, 1000] {
            let (link, mut peer) = peer(megabits * 1_000_000 / 8).await;
            let (append, began) = (append(5, MIB), Instant::now());
            let (answer, tries) = insist(&mut peer, &append).await;
            let took = began.elapsed();
            eprintln!("1 MiB over {megabits} Mbit/s: {took:?} in {tries} tries");
            assert_eq!(answer, AppendedOf::Success);
            let needed = Duration::from_secs_f64((MIB * 8) as f64 / (megabits * 1_000_000) as f64);
            assert!(took < needed + Duration::from_millis(10), "{took:?}, the link needs {needed:?}");
            assert_eq!(link.entries(), [1], "its bytes went once");
            let mut heard = began;
            for (at, _) in &*link.arrived.lock() {
                assert!(*at - heard <= HEARTBEAT, "silence of {:?}", *at - heard);
                heard = *at;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn more_that_came_meanwhile_goes_after_it_and_another_beginning_goes_in_its_place() {
        let (link, mut peer) = peer(MIB).await;
        assert!(one_try(&mut peer, append(5, MIB)).await.is_some_and(|answer| answer.is_ok()));
        let (answer, _) = insist(&mut peer, &append(7, MIB)).await;
        assert_eq!(answer, AppendedOf::PartialSuccess(Some(log_id(2, 1, 5))), "the rest is sent next");
        assert!(one_try(&mut peer, append(7, MIB)).await.is_some_and(|answer| answer.is_ok()));
        let mut other = append(5, MIB);
        other.prev_log_id = Some(log_id(2, 1, 3));
        assert_eq!(insist(&mut peer, &other).await.0, AppendedOf::Success);
        assert_eq!(link.entries(), [1, 1], "the one of three entries was let go");
    }

    /// Regression: consensus panics on a response that matches no entry, which is all that a heartbeat before the first
    /// entry proves.
    #[tokio::test(start_paused = true)]
    async fn a_log_that_is_sent_from_its_beginning_is_heartbeats_and_tries_until_it_has_passed() {
        let (link, mut peer) = peer(MIB).await;
        let first = AppendOf { prev_log_id: None, ..append(5, MIB) };
        let answer = loop {
            if let Some(answer) = one_try(&mut peer, first.clone()).await {
                break answer.expect("an answer");
            }
        };
        assert_eq!((answer, link.entries()), (AppendedOf::Success, vec![1]));
        assert!(link.arrived.lock().len() > 5, "heartbeats went beside it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_follower_that_says_no_is_heard_before_the_entries_are_through() {
        let (link, mut deaf) = peer(MIB).await;
        *link.answer.lock() = wire::encode_appended(&AppendedOf::Conflict);
        assert_eq!(insist(&mut deaf, &append(6, MIB)).await, (AppendedOf::Conflict, 1));
        assert!(link.entries().is_empty());

        let (link, mut lost) = peer(MIB).await;
        *link.answer.lock() = wire::encode_appended(&AppendedOf::HigherVote(Vote::new(3, 3)));
        let told = lost.network.deposed.subscribe();
        let answer = one_try(&mut lost, append(6, MIB)).await.expect("at once");
        assert!(matches!(answer, Err(RPCError::Unreachable(_))), "its task must live on: {answer:?}");
        assert_eq!(*told.borrow(), Some(Vote::new(3, 3)));
        assert!(link.entries().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_never_passes_is_given_up_and_small_appends_are_as_quick_as_before() {
        let (_, mut stuck) = peer(1 << 10).await;
        let began = Instant::now();
        let lost = loop {
            if let Some(Err(lost)) = one_try(&mut stuck, append(5, MIB)).await {
                break lost;
            }
        };
        assert!(matches!(lost, RPCError::Network(_)), "{lost:?}");
        assert!(began.elapsed() >= time_for(MIB as u64), "{:?}", began.elapsed());
        let (_, mut slow) = peer(1 << 10).await;
        let (began, answer) = (Instant::now(), one_try(&mut slow, append(5, 1000)).await);
        assert!(answer.is_none_or(|answer| answer.is_err()) && began.elapsed() <= HEARTBEAT);
    }
}
