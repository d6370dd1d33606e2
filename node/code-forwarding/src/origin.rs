//! Calls of this node that run on another one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use assay_node_runner::CodeEvent;
use assay_node_runner::interpreters::WantedVersion;
use assay_storage_model::NodeId;
use bytes::{Bytes, BytesMut};
use futures::future::join_all;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use crate::choice::{PeerOffer, capable, idle};
use crate::messages::{self, OutputAnswer, OutputKind, ToExecutor, ToOrigin};
use crate::peers::{PeerFailure, PeerNode, PeerService};
use crate::{CodeForwarding, ForwardingShared, OUTCOME_BYTES_MAX, Outcome, REQUEST_BYTES_MAX, SILENCE_MAX, count};

/// Time for which the answers of the other nodes are reused.
const OFFERS_HOLD: Duration = Duration::from_secs(3);
/// Upper bound of the time in which a node says what it can run. Its first answer tries a sandbox and interpreters.
const OFFER_WITHIN: Duration = Duration::from_secs(10);
/// The same for a node that has not been heard a moment ago.
const UNHEARD_WITHIN: Duration = Duration::from_secs(2);
/// Upper bound of the time in which a node takes a request.
const START_WITHIN: Duration = Duration::from_secs(10);
/// Upper bound of the time in which a node takes the end of a call.
const CANCEL_WITHIN: Duration = Duration::from_secs(2);
/// Nodes that are tried for one call, as long as each refuses it before its start.
const NODES_TRIED_MAX: usize = 2;
/// Upper bound of the messages of a call that wait for their reader.
const MESSAGES_WAITING_MAX: usize = 4;
/// Time that a message waits for a place before its sender has to repeat it.
const PLACE_WITHIN: Duration = Duration::from_secs(1);
/// Upper bound of the calls of this node that run elsewhere.
const FORWARDED_MAX: usize = 4_096;

/// Call that another node runs.
#[derive(Debug)]
pub struct ForwardedCall {
    pub request: Bytes,
    pub time_max: Duration,
    pub events: Option<mpsc::Sender<CodeEvent>>,
}

/// Reason why a forwarded call has no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForwardingError {
    /// No node can run the code.
    #[error("{0}")]
    NoNode(String),
    /// The request has too many bytes.
    #[error(
        "the code and the input of the function have {0} bytes; at most {REQUEST_BYTES_MAX} can run on another node"
    )]
    TooLarge(usize),
    /// Nodes that could run the code did not take the call. No code has run.
    #[error("the function has to run on another node, which did not take it: {0}")]
    NotTaken(String),
    /// The executor stopped responding. The function may have run.
    #[error("node {node}, which ran the function, {why}; the function may have run, wholly or in part")]
    Lost { node: NodeId, why: String },
}

/// Calls of this node on other nodes, and what those nodes can run.
#[derive(Debug, Default)]
pub(crate) struct ForwardedCalls {
    calls: Mutex<HashMap<Uuid, OriginCall>>,
    /// One caller at a time asks the other nodes.
    offers: tokio::sync::Mutex<Option<KnownOffers>>,
}

#[derive(Clone, Debug)]
struct OriginCall {
    executor: NodeId,
    inbox: Arc<tokio::sync::Mutex<Inbox>>,
}

/// Messages of an executor in their order.
#[derive(Debug)]
struct Inbox {
    /// Number of the next message.
    next: u64,
    messages: mpsc::Sender<(OutputKind, Bytes)>,
}

#[derive(Clone, Debug)]
struct KnownOffers {
    at: Instant,
    offers: Arc<Vec<PeerOffer>>,
}

/// Takes a message of an executor.
pub(crate) async fn take(shared: Arc<ForwardingShared>, from: NodeId, body: Bytes) -> Result<Bytes, String> {
    let (ToOrigin { id, number, kind }, content) = messages::decode::<ToOrigin>(body)?;
    let call = shared.forwarded.calls.lock().get(&id).filter(|call| call.executor == from).cloned();
    let answer = match call {
        Some(call) => call.inbox.lock().await.take(number, (kind, content)).await,
        None => OutputAnswer::Gone,
    };
    serde_json::to_vec(&answer).map(Bytes::from).map_err(|why| why.to_string())
}

impl Inbox {
    async fn take(&mut self, number: u64, message: (OutputKind, Bytes)) -> OutputAnswer {
        if number < self.next {
            return OutputAnswer::Taken;
        }
        if number > self.next {
            // An executor sends one message at a time, so one of them belongs to another call.
            return OutputAnswer::Gone;
        }
        match timeout(PLACE_WITHIN, self.messages.reserve()).await {
            Ok(Ok(place)) => {
                place.send(message);
                self.next += 1;
                OutputAnswer::Taken
            }
            Ok(Err(_)) => OutputAnswer::Gone,
            Err(_) => OutputAnswer::Full,
        }
    }
}

/// Place of a call in the table. Dropping it ends the call on its executor, unless the executor has ended it.
struct OriginPlace<'s> {
    shared: &'s ForwardingShared,
    id: Uuid,
    executor: NodeId,
    is_running: bool,
}

impl Drop for OriginPlace<'_> {
    fn drop(&mut self) {
        self.shared.forwarded.calls.lock().remove(&self.id);
        if !self.is_running {
            return;
        }
        let Ok(message) = messages::encode(&ToExecutor::Cancel { id: self.id }, &[]) else { return };
        let ended = self.shared.peers.ask(self.executor, PeerService::Call, message, CANCEL_WITHIN);
        // An executor that misses the message learns of the end with its next message.
        drop(self.shared.runtime.spawn(ended));
    }
}

/// Reason why one node has no outcome.
enum NoOutcome {
    NotTaken(String),
    Lost(String),
}

impl CodeForwarding {
    /// Runs a call on a node that can, and returns its outcome. Dropping the future ends the call.
    ///
    /// `refusal_here` says why this node does not run the code.
    pub async fn call(
        &self,
        call: ForwardedCall,
        wanted: WantedVersion<'_>,
        refusal_here: &str,
    ) -> Result<Outcome, ForwardingError> {
        let offers = self.0.offers().await;
        let running_there = |node| self.0.running_on(node);
        let nodes = capable(&offers, wanted, refusal_here, running_there).map_err(ForwardingError::NoNode)?;
        self.call_one_of(&nodes, call).await
    }

    /// Returns a node that can run code of a runtime and a version at once, if there is one.
    pub async fn idle_node(&self, wanted: WantedVersion<'_>) -> Option<NodeId> {
        let offers = self.0.offers().await;
        idle(&offers, wanted, |node| self.0.running_on(node))
    }

    /// Runs a call on a node, and returns its outcome. Dropping the future ends the call.
    pub async fn call_on(&self, node: NodeId, call: ForwardedCall) -> Result<Outcome, ForwardingError> {
        self.call_one_of(&[node], call).await
    }

    /// Runs a call on the first of these nodes that takes it.
    async fn call_one_of(&self, nodes: &[NodeId], call: ForwardedCall) -> Result<Outcome, ForwardingError> {
        let shared = &*self.0;
        let ForwardedCall { request, time_max, events } = call;
        if request.len() > REQUEST_BYTES_MAX {
            return Err(ForwardingError::TooLarge(request.len()));
        }
        let until = Instant::now() + time_max;
        let mut last = Err(ForwardingError::NotTaken("the time of the call is over".to_owned()));
        for node in nodes.iter().copied().take(NODES_TRIED_MAX) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            match shared.run_on(node, request.clone(), left, events.as_ref()).await {
                Ok(outcome) if !outcome.is_refused => return Ok(outcome),
                Ok(refused) => last = Ok(refused),
                Err(NoOutcome::NotTaken(why)) => {
                    shared.forget_offers().await;
                    last = Err(ForwardingError::NotTaken(why));
                }
                Err(NoOutcome::Lost(why)) => {
                    count(&shared.counts.lost);
                    shared.forget_offers().await;
                    return Err(ForwardingError::Lost { node, why });
                }
            }
        }
        last
    }
}

impl ForwardingShared {
    fn running_on(&self, node: NodeId) -> u64 {
        self.forwarded.calls.lock().values().filter(|call| call.executor == node).count() as u64
    }

    /// Returns what the other nodes can run.
    async fn offers(&self) -> Arc<Vec<PeerOffer>> {
        let mut known = self.forwarded.offers.lock().await;
        if let Some(known) = known.as_ref().filter(|known| known.at.elapsed() < OFFERS_HOLD) {
            return Arc::clone(&known.offers);
        }
        let others = self.peers.others();
        let offers = Arc::new(join_all(others.into_iter().map(|peer| self.offer_of(peer))).await);
        *known = Some(KnownOffers { at: Instant::now(), offers: Arc::clone(&offers) });
        offers
    }

    async fn forget_offers(&self) {
        *self.forwarded.offers.lock().await = None;
    }

    async fn offer_of(&self, peer: PeerNode) -> PeerOffer {
        let within = if peer.is_heard { OFFER_WITHIN } else { UNHEARD_WITHIN };
        let own_calls = self.running_on(peer.node);
        let answer = self.peers.ask(peer.node, PeerService::Runtimes, Bytes::new(), within).await;
        let offer = match answer {
            Ok(answer) => serde_json::from_slice(&answer).map_err(|why| format!("its answer cannot be read: {why}")),
            Err(why) => Err(why.to_string()),
        };
        PeerOffer { node: peer.node, offer, own_calls }
    }

    async fn run_on(
        &self,
        node: NodeId,
        request: Bytes,
        time_max: Duration,
        events: Option<&mpsc::Sender<CodeEvent>>,
    ) -> Result<Outcome, NoOutcome> {
        let (mut place, mut received) = self.place(node)?;
        let time_ms = u64::try_from(time_max.as_millis()).unwrap_or(u64::MAX);
        let start = ToExecutor::Start { id: place.id, time_ms, has_events: events.is_some() };
        let message = messages::encode(&start, &request).map_err(NoOutcome::NotTaken)?;
        drop(request);
        place.is_running = true;
        match self.peers.ask(node, PeerService::Call, message, START_WITHIN).await {
            Ok(_) => count(&self.counts.forwarded),
            Err(PeerFailure::NotDone(why)) => {
                place.is_running = false;
                return Err(NoOutcome::NotTaken(why));
            }
            Err(PeerFailure::Unknown(why)) => return Err(NoOutcome::Lost(format!("did not confirm its start: {why}"))),
        }
        let mut content = BytesMut::new();
        loop {
            let (kind, part) = match timeout(SILENCE_MAX, received.recv()).await {
                Ok(Some(message)) => message,
                Ok(None) | Err(_) => return Err(NoOutcome::Lost("does not respond".to_owned())),
            };
            match kind {
                OutputKind::Alive => {}
                OutputKind::Events => pass_on(&part, events).await?,
                OutputKind::Stopping => {
                    place.is_running = false;
                    return Err(NoOutcome::Lost("is stopping".to_owned()));
                }
                OutputKind::Part | OutputKind::End { .. } => {
                    if content.len() + part.len() > OUTCOME_BYTES_MAX {
                        return Err(NoOutcome::Lost("sent too much".to_owned()));
                    }
                    content.extend_from_slice(&part);
                }
            }
            if let OutputKind::End { is_refused } = kind {
                place.is_running = false;
                return Ok(Outcome { is_refused, content: content.freeze() });
            }
        }
    }

    /// Adds a call to the table, and returns the receiver of its messages.
    fn place(&self, node: NodeId) -> Result<(OriginPlace<'_>, mpsc::Receiver<(OutputKind, Bytes)>), NoOutcome> {
        let id = Uuid::new_v4();
        let (messages, received) = mpsc::channel(MESSAGES_WAITING_MAX);
        let inbox = Arc::new(tokio::sync::Mutex::new(Inbox { next: 0, messages }));
        let mut calls = self.forwarded.calls.lock();
        if calls.len() >= FORWARDED_MAX {
            return Err(NoOutcome::NotTaken("too many functions of this node run on other nodes".to_owned()));
        }
        calls.insert(id, OriginCall { executor: node, inbox });
        drop(calls);
        Ok((OriginPlace { shared: self, id, executor: node, is_running: false }, received))
    }
}

/// Passes events on to the reader of the call.
async fn pass_on(content: &[u8], events: Option<&mpsc::Sender<CodeEvent>>) -> Result<(), NoOutcome> {
    let read = messages::read_events(content).map_err(NoOutcome::Lost)?;
    let Some(events) = events else { return Ok(()) };
    for event in read {
        // A reader that has left ends the call elsewhere.
        let _ = events.send(event).await;
    }
    Ok(())
}
