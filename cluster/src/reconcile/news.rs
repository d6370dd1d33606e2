//! What this node must know of the others, and they of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_storage_model::{GroupId, NodeId};
use tokio::time::{self, sleep};

use super::LOOK;
use crate::Shared;
use crate::nodes::{self, NodeRecord, Removed};

/// How often the catalog's leader is asked to confirm itself where nobody else asks.
const LISTEN_EVERY: Duration = Duration::from_secs(1);

pub(super) async fn run(shared: Arc<Shared>) {
    let mut known: Option<BTreeMap<NodeId, String>> = None;
    let mut listen_due = time::Instant::now();
    loop {
        tell_addresses(&shared, &mut known);
        if time::Instant::now() >= listen_due {
            listen_due = time::Instant::now() + LISTEN_EVERY;
            listen(&shared).await;
            introduce(&shared).await;
        }
        sleep(LOOK).await;
    }
}

async fn listen(shared: &Shared) {
    let Some(catalog) = shared.hub.group(GroupId::CATALOG) else { return };
    let asked = Instant::now();
    match catalog.fence().await {
        Ok(_) => shared.heard_catalog(asked),
        Err(why) if !shared.hears_catalog() => tracing::warn!(%why, "the catalog is not heard"),
        Err(_) => {}
    }
}

/// The catalog's addresses go to the transport, and into a file for the next start.
fn tell_addresses(shared: &Shared, known: &mut Option<BTreeMap<NodeId, String>>) {
    shared.net.set_removed(Removed::of(&shared.catalog.read()));
    let mut addresses = nodes::addresses(&shared.catalog.read());
    addresses.remove(&shared.node);
    if known.as_ref() == Some(&addresses) || !may_be_told(shared, &addresses) {
        return;
    }
    if let Some(transport) = shared.net.transport() {
        transport.set_addresses(addresses.clone());
    }
    match shared.keeping.set_peers(&addresses) {
        Ok(()) => *known = Some(addresses),
        Err(error) => tracing::warn!(%error, "the addresses of other nodes could not be written down"),
    }
}

/// A catalog that has not come yet knows nobody; one that was heard and knows nobody is that of a node which is alone now.
/// It must not count on others then: what is damaged on it cannot be rebuilt from them.
fn may_be_told(shared: &Shared, addresses: &BTreeMap<NodeId, String>) -> bool {
    !addresses.is_empty() || (shared.hears_catalog() && shared.keeping.peers().is_ok_and(|kept| !kept.is_empty()))
}

/// The others are told where this node is now, and what its program can do.
async fn introduce(shared: &Shared) {
    if !shared.hears_catalog() {
        return;
    }
    let address = shared.config.peer.as_ref().map(|peer| peer.address.clone());
    let program = Some(shared.own_program());
    let change = |record: &NodeRecord| {
        let address = address.clone().or_else(|| record.address.clone());
        Ok(NodeRecord { address, program: program.clone(), ..record.clone() })
    };
    if let Err(error) = shared.change_node(shared.node, change).await {
        tracing::warn!(%error, "the others could not be told where this node is");
    }
}
