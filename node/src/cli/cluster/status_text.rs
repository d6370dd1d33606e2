//! The status of a cluster as text.

use assay_cluster::{ClusterStatus, NodeState};

/// Formats a status: one line for each node and group.
pub fn status_text(status: &ClusterStatus) -> String {
    let mut lines = vec![format!("cluster {}, status from node {}", status.cluster, status.node)];
    for node in &status.nodes {
        let state = match (node.state, node.answers) {
            (NodeState::Removed, _) => "removed",
            (NodeState::Draining, _) => "draining",
            (NodeState::Active, true) => "active",
            (NodeState::Active, false) => "silent",
        };
        let address = node.address.as_deref().unwrap_or("no address");
        lines.push(format!("node {:<4} {state:<9} {address:<24} leads {} groups", node.id, node.leads));
    }
    for group in &status.groups {
        let name = group.shard.map_or_else(|| "catalog".to_owned(), |shard| format!("shard {shard}"));
        let leader = group.leader.map_or_else(|| "nobody".to_owned(), |node| format!("node {node}"));
        let voters = group.replicas.iter().filter(|replica| replica.votes()).map(|replica| replica.node);
        let voters: Vec<String> = voters.map(|node| node.to_string()).collect();
        let learners = group.replicas.iter().filter(|replica| !replica.votes()).count();
        let learners = if learners > 0 { format!(", {learners} learning") } else { String::new() };
        lines.push(format!("{name:<10} led by {leader:<8} on nodes {}{learners}", voters.join(", ")));
    }
    lines.push(match status.settled {
        true => "settled".to_owned(),
        false => format!("not settled: {}", status.unsettled.join("; ")),
    });
    if let Some(upgrade) = status.upgrade.as_ref().filter(|upgrade| !upgrade.unconfirmed.is_empty()) {
        lines.push(match upgrade.obstacles.as_slice() {
            [] => "the upgrade is not confirmed: run `assay cluster finalize` when you will not go back".to_owned(),
            obstacles => format!("an upgrade is in progress: {}", obstacles.join(", ")),
        });
    }
    lines.join("\n")
}
