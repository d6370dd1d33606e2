//! Nodes that can run a call, the least busy first, and idle ones. Without a clock and without messages.

use assay_node_runner::RunnerOffer;
use assay_node_runner::interpreters::WantedVersion;
use assay_storage_model::NodeId;

/// Answer of another node.
#[derive(Clone, Debug)]
pub(crate) struct PeerOffer {
    pub node: NodeId,
    /// What the node can run, or the reason why it has no answer.
    pub offer: Result<RunnerOffer, String>,
    /// Calls of this node that ran there at the time of the answer.
    pub own_calls: u64,
}

/// Returns the nodes that can run code of a runtime and a version, the least busy first.
///
/// `running_there` counts the calls of this node that run on a node. `here` says why this node does not run the code. The
/// error names what is missing on each node.
pub(crate) fn capable(
    offers: &[PeerOffer],
    wanted: WantedVersion<'_>,
    here: &str,
    running_there: impl Fn(NodeId) -> u64,
) -> Result<Vec<NodeId>, String> {
    let mut found = Vec::new();
    let mut refusals = Vec::new();
    for peer in offers {
        let node = peer.node;
        match peer.offer_for(wanted) {
            Ok(offer) => found.push((peer.calls(offer, running_there(node)) * 1_000 / offer.slots.max(1), node)),
            Err(why) => refusals.push(format!("node {node}: {why}")),
        }
    }
    if found.is_empty() {
        return Err(match refusals.is_empty() {
            true => here.to_owned(),
            false => format!("no node of the cluster can run the function. This node: {here}; {}", refusals.join("; ")),
        });
    }
    found.sort_unstable();
    Ok(found.into_iter().map(|(_, node)| node).collect())
}

/// Returns the node with the fewest calls that can start a further one at once, if there is one.
///
/// An organization may use half of the slots of a node, so an idle node has fewer calls than that.
pub(crate) fn idle(
    offers: &[PeerOffer],
    wanted: WantedVersion<'_>,
    running_there: impl Fn(NodeId) -> u64,
) -> Option<NodeId> {
    let idle = offers.iter().filter_map(|peer| {
        let offer = peer.offer_for(wanted).ok()?;
        let calls = peer.calls(offer, running_there(peer.node));
        (calls < offer.slots.div_ceil(2)).then_some((calls, peer.node))
    });
    idle.min().map(|(_, node)| node)
}

impl PeerOffer {
    /// Returns the offer of a node that can run code of a runtime and a version. The error says why it cannot.
    fn offer_for(&self, wanted: WantedVersion<'_>) -> Result<&RunnerOffer, String> {
        let offer = self.offer.as_ref().map_err(String::clone)?;
        offer.can_run(wanted).map(|()| offer)
    }

    /// Returns the calls of the node: those of others at the time of its answer, and those of this node now.
    fn calls(&self, offer: &RunnerOffer, running_there: u64) -> u64 {
        offer.running.saturating_add(offer.waiting).saturating_sub(self.own_calls).saturating_add(running_there)
    }
}

#[cfg(test)]
mod tests {
    use assay_node_runner::OfferedInterpreter;
    use assay_node_runner::runtimes::RuntimeKind;

    use super::*;

    const WANTED: WantedVersion<'_> = WantedVersion { runtime: RuntimeKind::Python, version: "3.11", is_exact: false };

    fn offer(node: u64, runtime: &str, slots: u64, running: u64) -> PeerOffer {
        let interpreter = OfferedInterpreter { runtime: runtime.to_owned(), version: "3.11.7".to_owned() };
        let offer = RunnerOffer { interpreters: vec![interpreter], slots, running, ..RunnerOffer::default() };
        PeerOffer { node: NodeId(node), offer: Ok(offer), own_calls: 0 }
    }

    fn silent(node: u64) -> PeerOffer {
        PeerOffer { node: NodeId(node), offer: Err("it does not respond".to_owned()), own_calls: 0 }
    }

    fn chosen(offers: &[PeerOffer], running_there: impl Fn(NodeId) -> u64) -> Result<Vec<u64>, String> {
        let found = capable(offers, WANTED, "there is no python", running_there)?;
        Ok(found.into_iter().map(|node| node.0).collect())
    }

    #[test]
    fn the_least_busy_capable_node_comes_first() {
        let offers = [offer(2, "python", 8, 6), offer(3, "node", 8, 0), offer(4, "python", 16, 6), silent(5)];
        assert_eq!(chosen(&offers, |_| 0), Ok(vec![4, 2]));
        assert_eq!(chosen(&offers, |node| if node == NodeId(4) { 16 } else { 0 }), Ok(vec![2, 4]), "calls since then");
    }

    #[test]
    fn an_idle_node_has_fewer_calls_than_half_of_its_slots() {
        let offers = [offer(2, "python", 8, 4), offer(3, "node", 8, 0), offer(4, "python", 3, 1), silent(5)];
        let chosen = |offers: &[PeerOffer], own: u64| idle(offers, WANTED, |_| own).map(|node| node.0);
        assert_eq!(chosen(&offers, 0), Some(4));
        assert_eq!(chosen(&offers, 1), None, "a call of this node since then");
        let ended = [PeerOffer { own_calls: 4, ..offer(2, "python", 8, 4) }];
        assert_eq!(chosen(&ended, 3), Some(2), "calls of this node have ended since then");
        assert_eq!(chosen(&ended, 4), None);
    }

    #[test]
    fn a_refusal_names_what_is_missing_on_each_node() {
        assert_eq!(chosen(&[], |_| 0), Err("there is no python".to_owned()));
        let offers = [offer(2, "node", 8, 0), silent(3)];
        let why = chosen(&offers, |_| 0).expect_err("nobody");
        for words in ["This node: there is no python", "node 2: there is no python", "node 3: it does not respond"] {
            assert!(why.contains(words), "{why}");
        }
    }
}
