//! Introductions between nodes, which exchange addresses, and contact with the catalog.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster_network::node_records::{self, NodeRecord, NodeState, Removed};
use assay_cluster_network::{NoAnswer, Service};
use assay_storage_model::sabotage::{self, Sabotage};
use assay_storage_model::{GroupId, NodeId};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tokio::time::{self, sleep};

use super::LOOK;
use crate::Shared;
use crate::config::PeerConfig;
use crate::membership::operations::OperateError;

/// Interval at which the catalog's leader is asked for confirmation if no other request does so.
const LISTEN_EVERY: Duration = Duration::from_secs(1);

pub(crate) const INTRODUCE: &str = "cluster.introduce";
/// Time limit of an introduction. The other node may first have to find the catalog's leader.
const INTRODUCE_MAX: Duration = Duration::from_secs(10);
/// Time limit for a node that reportedly moved to respond at its old address.
const STILL_THERE_MAX: Duration = Duration::from_secs(1);

pub(super) async fn run(shared: Arc<Shared>) {
    tokio::join!(follow_addresses(&shared), hear(&shared));
}

/// Passes addresses from the catalog to the transport, without waiting for other nodes.
///
/// A moved leader is reachable only once the transport has its new address, which may already be in the catalog.
async fn follow_addresses(shared: &Shared) {
    let mut known: Option<BTreeMap<NodeId, String>> = None;
    loop {
        tell_addresses(shared, &mut known);
        sleep(LOOK).await;
    }
}

async fn hear(shared: &Shared) {
    loop {
        let begun = time::Instant::now();
        // The introduction comes first, because a fence of the catalog without contact takes seconds.
        introduce(shared).await;
        listen(shared).await;
        sleep(LISTEN_EVERY.saturating_sub(begun.elapsed()).max(LOOK)).await;
    }
}

async fn listen(shared: &Shared) {
    let Some(catalog) = shared.replicas.group(GroupId::CATALOG) else { return };
    let asked = Instant::now();
    match catalog.fence().await {
        Ok(_) => shared.heard_catalog(asked),
        Err(why) if !shared.hears_catalog() => tracing::warn!(%why, "there is no contact with the catalog"),
        Err(_) => {}
    }
}

/// Passes the catalog's addresses to the transport, and stores them for the next start.
fn tell_addresses(shared: &Shared, known: &mut Option<BTreeMap<NodeId, String>>) {
    shared.net.set_removed(Removed::of(&shared.catalog.read()));
    let mut addresses = node_records::addresses(&shared.catalog.read());
    addresses.remove(&shared.node);
    if known.as_ref() == Some(&addresses) || !may_be_told(shared, &addresses) {
        return;
    }
    if let Some(transport) = shared.net.transport() {
        transport.set_addresses(addresses.clone());
    }
    match shared.node_files.set_peers(&addresses) {
        Ok(()) => *known = Some(addresses),
        Err(error) => tracing::warn!(%error, "the addresses of other nodes could not be stored"),
    }
}

/// Returns whether addresses may be passed on.
///
/// A catalog that has not arrived yet has no nodes. A catalog with contact and without nodes belongs to a node that is
/// now alone. Such a node must not count on others, because they cannot rebuild damaged data.
fn may_be_told(shared: &Shared, addresses: &BTreeMap<NodeId, String>) -> bool {
    !addresses.is_empty() || (shared.hears_catalog() && shared.node_files.peers().is_ok_and(|kept| !kept.is_empty()))
}

/// Announces this node's address and features to the others.
///
/// A receiver changes the catalog, because a node at a new address gets no messages while the others call its old one.
async fn introduce(shared: &Shared) {
    if !shared.hears_catalog() {
        introduce_unheard(shared).await;
    }
    if shared.hears_catalog()
        && let Err(error) = state_own(shared).await
    {
        tracing::warn!(%error, "the address and features of this node could not be announced to the others");
    }
}

/// Lets another node change this node's address in the catalog, until this node has contact with the catalog itself.
///
/// This node may come to lead the catalog, and the others cannot reach a leader at its old address.
async fn introduce_unheard(shared: &Shared) {
    let Some(peer) = &shared.config.peer else { return };
    let is_known = node_records::addresses(&shared.catalog.read()).get(&shared.node) == Some(&peer.address);
    if is_known || sabotage::is(Sabotage::NoIntroduction) {
        return;
    }
    tokio::select! {
        () = introduce_through_others(shared, &peer.address) => {}
        () = until_heard(shared) => {}
    }
}

/// Sends the introduction to all others concurrently. Each calls this node at its new address meanwhile. One node that
/// reaches the catalog suffices.
async fn introduce_through_others(shared: &Shared, address: &str) {
    let ask = |node: NodeId| async move {
        let body = Bytes::from(address.to_owned());
        (node, shared.net.ask_repeatable(node, INTRODUCE, body, INTRODUCE_MAX).await)
    };
    let mut answers: FuturesUnordered<_> = shared.net.peers().into_iter().map(ask).collect();
    let mut why = "no other node is known".to_owned();
    while let Some((node, answer)) = answers.next().await {
        match answer {
            Ok(_) => return tracing::info!(through = %node, address, "the others have the new address"),
            Err(error) => why = error.to_string(),
        }
    }
    tracing::warn!(address, why, "the address of this node could not be announced to any other node; will be retried");
}

/// Waits until this node has contact with the catalog.
async fn until_heard(shared: &Shared) {
    while !shared.hears_catalog() {
        sleep(LOOK).await;
        listen(shared).await;
    }
}

/// Writes this node's address and program into its record, if they have changed.
async fn state_own(shared: &Shared) -> Result<(), OperateError> {
    let own_address = || shared.config.peer.as_ref().map(|peer| peer.address.clone());
    let address = if sabotage::is(Sabotage::NoIntroduction) { None } else { own_address() };
    let program = Some(shared.own_program());
    let change = |record: &NodeRecord| match record.state {
        NodeState::Removed => Ok(record.clone()),
        NodeState::Active | NodeState::Draining => {
            let address = address.clone().or_else(|| record.address.clone());
            Ok(NodeRecord { address, program: program.clone(), ..record.clone() })
        }
    };
    shared.change_node(shared.node, change).await.map(drop)
}

async fn set_address(shared: &Shared, node: NodeId, address: &str) -> Result<(), OperateError> {
    let change = |record: &NodeRecord| match record.state {
        NodeState::Removed => Err(OperateError::Removed(node)),
        NodeState::Active | NodeState::Draining => {
            Ok(NodeRecord { address: Some(address.to_owned()), ..record.clone() })
        }
    };
    shared.change_node(node, change).await.map(drop)
}

/// Guard of a trial address: a moved node is called there while its record is changed, because it may lead the catalog.
///
/// If it is dropped before the change succeeds, the node is called at its recorded address again. The node may have
/// moved back.
struct TrialAddress<'a> {
    shared: &'a Shared,
    node: NodeId,
    is_recorded: bool,
}

impl Drop for TrialAddress<'_> {
    fn drop(&mut self) {
        let recorded = node_records::addresses(&self.shared.catalog.read()).remove(&self.node);
        if !self.is_recorded
            && let (Some(address), Some(transport)) = (recorded, self.shared.net.transport())
        {
            transport.set_address(self.node, &address);
        }
    }
}

/// Service that accepts the new address of a node that moved. The body is the address.
///
/// The caller is authenticated by its certificate. A second process with a copy of that node's directory has the same
/// certificate. The address is therefore accepted only if no process responds at the known one.
#[derive(Debug)]
pub(crate) struct IntroductionService(pub Arc<Shared>);

impl IntroductionService {
    async fn take(shared: &Shared, from: NodeId, body: &[u8]) -> Result<(), String> {
        let address = std::str::from_utf8(body).map_err(|_| "the address is not valid UTF-8")?;
        PeerConfig::new(address, None)?;
        let recorded = node_records::addresses(&shared.catalog.read()).remove(&from);
        let mut trial = None;
        if recorded.as_deref() != Some(address)
            && let Some(transport) = shared.net.transport()
            && let called_at = transport.address(from)
            && called_at.as_deref() != Some(address)
        {
            if transport.is_reached(from, STILL_THERE_MAX).await {
                let called_at = called_at.unwrap_or_default();
                return Err(format!("node {from} still responds at {called_at}: stop that process first"));
            }
            transport.set_address(from, address);
            trial = Some(TrialAddress { shared, node: from, is_recorded: false });
        }
        set_address(shared, from, address).await.map_err(|error| error.to_string())?;
        if let Some(trial) = &mut trial {
            trial.is_recorded = true;
        }
        tracing::info!(node = %from, address, "a node has a new address");
        Ok(())
    }
}

impl Service for IntroductionService {
    fn answer(&self, from: NodeId, body: Bytes, within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let shared = Arc::clone(&self.0);
        async move {
            let taken = time::timeout(within, Self::take(&shared, from, &body)).await;
            let taken = taken.unwrap_or_else(|_| Err("the catalog was not changed in time".into()));
            taken.map(|()| Bytes::new()).map_err(NoAnswer::Refused)
        }
        .boxed()
    }
}
