//! Exchange of start histories between nodes: writes, sends and awaits the decisions of `starts`.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use assay_cluster_directory::starts::{
    self, Consequence, HISTORY_MAX, Introduction, KeptStarts, Message, Registry, StartId, StartVerdict, Stop, Verdict,
};
use assay_cluster_directory::{AcknowledgedTable, HomeError, NodeFiles};
use assay_cluster_raft::{Acknowledged, HardState, Way};
use assay_cluster_transport::{Call, CallError, Processes, RefusalCode};
use assay_storage_model::{GroupId, NodeId, ReplicaId};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::network::Network;
use crate::service::{NoAnswer, Service};

pub const START_HISTORY: &str = "cluster.start-history";
pub const START_ID: &str = "cluster.start-id";
/// The process before a new one, if it still answers, does so within this. Both times grow with the heartbeat, which is
/// longer than a round trip.
const LOOK_FOR_MAX: Duration = Duration::from_secs(1);
const LOOK_FOR_HEARTBEATS: u32 = 5;
/// Time limit of an exchange: a write on each side, after a lookup of the process.
const EXCHANGE_MAX: Duration = Duration::from_secs(5);
const EXCHANGE_HEARTBEATS: u32 = 15;
/// Between two exchanges with a node that came to nothing.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

type ExchangeTurn = Arc<tokio::sync::Mutex<Option<Instant>>>;

/// What a node knows of its own replicas, and how it calls others.
pub trait OwnReplicas: Send + Sync + fmt::Debug {
    /// Returns the hard state of each replica of this node. Blocking.
    fn hard_states(&self) -> io::Result<Vec<(GroupId, ReplicaId, HardState)>>;

    /// Returns the position that a replica elsewhere is known to have acknowledged.
    fn acknowledged(&self, group: GroupId, replica: ReplicaId) -> Option<Acknowledged>;

    fn network(&self) -> &Network;
}

/// Starts known to one process, and their exchange with others.
#[derive(Debug)]
pub struct StartHistories {
    registry: Mutex<Registry>,
    node_files: NodeFiles,
    own: OnceLock<Weak<dyn OwnReplicas>>,
    /// One change of what is kept at a time.
    writing: tokio::sync::Mutex<()>,
    /// One exchange with a node at a time, and when the last one began.
    turns: Mutex<BTreeMap<NodeId, ExchangeTurn>>,
    consequences: Mutex<Vec<Consequence>>,
    told: Notify,
    /// Acknowledgements of followers of groups led here.
    pub table: AcknowledgedTable,
    heartbeat: Duration,
}

fn other(error: impl fmt::Display) -> HomeError {
    HomeError::Io { doing: "comparing starts".to_owned(), source: io::Error::other(error.to_string()) }
}

impl StartHistories {
    /// Makes the histories of a process. `heartbeat` is that of the groups, and bounds how long an exchange takes.
    pub fn new(
        node_files: NodeFiles,
        kept: KeptStarts,
        table: AcknowledgedTable,
        heartbeat: Duration,
    ) -> Result<StartHistories, HomeError> {
        let others = node_files.peers()?.into_keys();
        let registry = Mutex::new(Registry::new(kept, others));
        Ok(StartHistories {
            registry,
            node_files,
            own: OnceLock::new(),
            writing: tokio::sync::Mutex::default(),
            turns: Mutex::default(),
            consequences: Mutex::default(),
            told: Notify::new(),
            table,
            heartbeat,
        })
    }

    /// Exchanges are made from here on.
    pub fn begin(&self, own: &Arc<dyn OwnReplicas>) {
        // Set once, by the start.
        let _ = self.own.set(Arc::downgrade(own));
    }

    pub fn own(&self) -> StartId {
        self.registry.lock().own()
    }

    /// Returns whether the history of this node has this start.
    pub fn has_start(&self, start: StartId) -> bool {
        self.registry.lock().kept().history.contains(&start)
    }

    pub fn is_closed(&self, group: GroupId, replica: ReplicaId) -> bool {
        self.registry.lock().is_closed((group, replica))
    }

    pub fn may_take(&self, replica: ReplicaId) -> bool {
        self.registry.lock().kept().may_take(replica)
    }

    pub fn floor(&self) -> starts::Floor {
        self.registry.lock().kept().floor
    }

    pub fn against(&self) -> Vec<(NodeId, StartVerdict)> {
        self.registry.lock().against()
    }

    pub fn is_due(&self, node: NodeId) -> bool {
        self.registry.lock().is_due(node)
    }

    pub fn says_nothing(&self, node: NodeId) -> bool {
        self.registry.lock().says_nothing(node)
    }

    pub fn waited(&self) {
        self.registry.lock().waited();
    }

    /// Something that another node found is to be acted on.
    pub fn add(&self, consequence: Consequence) {
        self.consequences.lock().push(consequence);
        self.told.notify_one();
    }

    pub async fn next(&self) -> Consequence {
        loop {
            let told = self.told.notified();
            let first = {
                let mut waiting = self.consequences.lock();
                if waiting.is_empty() { None } else { Some(waiting.remove(0)) }
            };
            match first {
                Some(first) => return first,
                None => told.await,
            }
        }
    }

    /// Changes what is kept, on the disk first. None where there is nothing to change.
    pub async fn change(&self, change: impl FnOnce(&KeptStarts) -> KeptStarts) -> Result<(), HomeError> {
        let _one = self.writing.lock().await;
        let next = change(self.registry.lock().kept());
        self.write(next.clone()).await?;
        self.registry.lock().keep(next);
        Ok(())
    }

    /// Writes the starts; the caller holds `writing`.
    async fn write(&self, next: KeptStarts) -> Result<(), HomeError> {
        let node_files = self.node_files.clone();
        let written = tokio::task::spawn_blocking(move || starts::write(&*node_files.disk, &node_files.dir, &next));
        written.await.map_err(other)?
    }

    /// The processes of a message that is to be sent, once the two nodes are compared.
    pub async fn way_out(self: &Arc<Self>, way: Way, within: Duration) -> Result<Processes, String> {
        let (own, theirs) = ((way.group, way.from), (way.group, way.to));
        let outgoing = || self.registry.lock().outgoing(way.node, own, theirs);
        let mut found = outgoing();
        if found == Err(Stop::Introduce) {
            let (start_histories, node) = (Arc::clone(self), way.node);
            // Goes on when the sender no longer waits.
            let exchange = tokio::spawn(async move { start_histories.exchange(node).await });
            match timeout(within, exchange).await {
                Ok(Ok(Ok(()))) => found = outgoing(),
                Ok(Ok(Err(why))) => return Err(why),
                Ok(Err(_)) | Err(_) => {}
            }
        }
        found.map(|to| Processes { from: self.own().0, to: to.map(|to| to.0) }).map_err(|stop| stop.to_string())
    }

    /// Decides whether an incoming message may be accepted; `way` leads back to its sender.
    pub fn way_in(&self, way: Way, processes: Option<Processes>) -> Result<(), Stop> {
        let processes = processes.map(|both| (StartId(both.from), both.to.map(StartId)));
        self.registry.lock().incoming(way.node, processes, (way.group, way.from), (way.group, way.to))
    }

    /// Forgets a node that does not have this process, or at which another process runs.
    pub fn forget(&self, node: NodeId) {
        self.registry.lock().forget(node);
    }

    /// Introduces the two nodes to each other, unless that was tried just now.
    pub async fn exchange(&self, node: NodeId) -> Result<(), String> {
        let turn = Arc::clone(self.turns.lock().entry(node).or_default());
        let mut began = turn.lock().await;
        if !self.registry.lock().is_due(node) && !self.registry.lock().says_nothing(node) {
            return Ok(());
        }
        if began.is_some_and(|began| began.elapsed() < AGAIN_AFTER) {
            return Err(format!("node {node} and this one could not agree on their starts"));
        }
        *began = Some(Instant::now());
        let exchanged = self.exchange_now(node).await;
        if exchanged.is_err() {
            self.registry.lock().not_reached(node);
        }
        exchanged
    }

    async fn exchange_now(&self, node: NodeId) -> Result<(), String> {
        let Some(own) = self.own.get().and_then(Weak::upgrade) else { return Err("the node starts".into()) };
        let exchange_max = EXCHANGE_MAX.max(self.heartbeat * EXCHANGE_HEARTBEATS);
        let known = self.registry.lock().verdict_on(node);
        for told in [known.is_some(), true] {
            let message = self.message(&own, node).await?;
            let call = Call::new(START_HISTORY, message, exchange_max).repeatable();
            let answer = match own.network().call(node, call).await {
                Ok(answer) => answer,
                Err(CallError::Refused(refusal)) if refusal.code == RefusalCode::NoService => {
                    self.registry.lock().is_silent(node);
                    return Ok(());
                }
                Err(error) => return Err(error.to_string()),
            };
            let said: Message = serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
            let answering = Some(said.introduction.start);
            let verdict = self.take(&own, node, said, answering).await.map_err(|error| error.to_string())?;
            let agreed = verdict.found == StartVerdict::Accepted && verdict.refused.is_empty();
            // The other node has to hear what is wrong with it.
            if told || agreed {
                break;
            }
        }
        Ok(())
    }

    async fn message(&self, own: &Arc<dyn OwnReplicas>, to: NodeId) -> Result<Bytes, String> {
        let (start, history) = {
            let registry = self.registry.lock();
            (registry.own(), registry.kept().history.clone())
        };
        let reading = Arc::clone(own);
        let replicas = tokio::task::spawn_blocking(move || reading.hard_states()).await;
        let replicas = replicas.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        let introduction = Introduction { start, history, replicas };
        let message = Message { introduction, verdict: self.registry.lock().verdict_on(to) };
        Ok(Bytes::from(serde_json::to_vec(&message).expect("plain data encodes")))
    }

    /// Judges another node's process and receives its verdict on this one.
    async fn take(
        &self,
        own: &Arc<dyn OwnReplicas>,
        from: NodeId,
        said: Message,
        answering: Option<StartId>,
    ) -> Result<Verdict, HomeError> {
        let _one = self.writing.lock().await;
        let acknowledged = |group, replica| own.acknowledged(group, replica);
        let verdict = self.registry.lock().judge(from, &said.introduction, answering, acknowledged);
        let to_keep = self.registry.lock().to_keep(from, &verdict);
        if let Some(kept) = to_keep {
            self.write(kept).await?;
        }
        say(from, &verdict, self.registry.lock().verdict_on(from).as_ref());
        let consequences = {
            let mut registry = self.registry.lock();
            registry.judged(from, verdict.clone());
            said.verdict.map(|on_this| registry.heard(from, &on_this)).unwrap_or_default()
        };
        consequences.into_iter().for_each(|consequence| self.add(consequence));
        Ok(verdict)
    }

    /// Asks for the process at a node's address.
    async fn look_for(&self, own: &dyn OwnReplicas, node: NodeId) -> Option<StartId> {
        let within = LOOK_FOR_MAX.max(self.heartbeat * LOOK_FOR_HEARTBEATS);
        let answer = own.network().call(node, Call::new(START_ID, Bytes::new(), within).repeatable()).await.ok()?;
        answer.as_ref().try_into().ok().map(u128::from_le_bytes).map(StartId)
    }

    async fn answer(&self, from: NodeId, body: Bytes) -> Result<Bytes, String> {
        let own = self.own.get().and_then(Weak::upgrade).ok_or("the node starts")?;
        let said: Message = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        if said.introduction.history.len() > 2 * HISTORY_MAX {
            return Err("the history is too long".into());
        }
        let must_look = self.registry.lock().must_look_for(from, &said.introduction);
        let answering = if must_look { self.look_for(&*own, from).await } else { None };
        self.take(&own, from, said, answering).await.map_err(|error| error.to_string())?;
        self.message(&own, from).await
    }
}

/// One line where a verdict is news.
fn say(node: NodeId, verdict: &Verdict, before: Option<&Verdict>) {
    if before == Some(verdict) {
        return;
    }
    match verdict.found {
        StartVerdict::Accepted => {
            tracing::info!(%node, start = %verdict.about, "a node introduced itself");
            for (group, replica, why) in &verdict.refused {
                tracing::error!(%node, %group, %replica, why, "a replica there lacks acknowledged entries and is refused");
            }
        }
        StartVerdict::Lacks(seen) => tracing::error!(
            %node, start = %verdict.about, %seen,
            "a node is refused: it runs on an older copy of its data directory, which was used by a later start"
        ),
        StartVerdict::StillThere(other) => tracing::error!(
            %node, start = %verdict.about, %other,
            "a process that claims to be this node is refused: another one responds at the node's address"
        ),
    }
}

/// Answers another node that introduces itself.
#[derive(Debug)]
pub struct StartHistoryService(pub Arc<StartHistories>);

impl Service for StartHistoryService {
    fn answer(&self, from: NodeId, body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let start_histories = Arc::clone(&self.0);
        // To its end, whether or not anybody waits: what is written must be acted on.
        let answering = tokio::spawn(async move { start_histories.answer(from, body).await });
        async move {
            let answered = answering.await.unwrap_or_else(|error| Err(error.to_string()));
            answered.map_err(NoAnswer::Refused)
        }
        .boxed()
    }
}

/// Service that returns the id of the process here.
#[derive(Debug)]
pub struct StartIdService(pub Arc<StartHistories>);

impl Service for StartIdService {
    fn answer(&self, _from: NodeId, _body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let start = self.0.own();
        async move { Ok(Bytes::copy_from_slice(&start.0.to_le_bytes())) }.boxed()
    }
}
