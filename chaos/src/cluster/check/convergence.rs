//! Convergence checker: after the run every node returns the same objects, and all agree on the members and leaders of
//! the groups.

use std::collections::{BTreeMap, BTreeSet};

use super::Evidence;
use crate::cluster::environment::status::{Group, Status};
use crate::cluster::recording::events::{Phase, RunEvent};

/// Voters of a group, where there are as many nodes.
const VOTERS: usize = 3;

pub fn check(evidence: &Evidence) -> Vec<String> {
    let mut findings = Vec::new();
    for (object, node) in &evidence.history.blind {
        findings.push(format!("{object}: node {node} did not show it after the storm"));
    }
    let objects: BTreeSet<&str> = evidence.pictures.keys().map(|(object, _)| object.as_str()).collect();
    for object in objects {
        let mut pictures = evidence.pictures_of(object);
        let Some((first, expected)) = pictures.next() else { continue };
        for (node, picture) in pictures.filter(|(_, picture)| *picture != expected) {
            findings.push(format!(
                "{object}: nodes {first} and {node} differ: {} rows at {}, {} rows at {}",
                expected.rows.len(),
                expected.version,
                picture.rows.len(),
                picture.version
            ));
        }
    }
    groups(evidence, &mut findings);
    findings
}

/// Returns the last status of the cluster from each node, after the run.
fn last_words(evidence: &Evidence) -> Vec<(u8, Option<Status>)> {
    let look = evidence.history.began(Phase::Look).unwrap_or(u64::MAX);
    let mut last: BTreeMap<u8, Option<Status>> = BTreeMap::new();
    for (t, said) in &evidence.history.others {
        if let RunEvent::Status { node, status } = said
            && *t >= look
        {
            last.insert(*node, Status::of(status));
        }
    }
    last.into_iter().collect()
}

fn groups(evidence: &Evidence, findings: &mut Vec<String>) {
    let mut first: BTreeMap<String, (u8, Group)> = BTreeMap::new();
    for (node, status) in last_words(evidence) {
        let Some(status) = status else {
            findings.push(format!("the cluster status of node {node} cannot be decoded"));
            continue;
        };
        if !status.settled {
            findings.push(format!("node {node} says that the cluster is not settled"));
        }
        let voters_wanted = status.nodes.len().min(VOTERS);
        for group in &status.groups {
            let name = group.group.to_string();
            let voters = group.replicas.iter().filter(|replica| replica.role == "voter").count();
            if voters < voters_wanted {
                findings
                    .push(format!("group {name}: {voters} voters of at least {voters_wanted}, as node {node} says"));
            }
            if !status.hosts(group) {
                continue;
            }
            if group.leader.is_none() {
                findings.push(format!("group {name}: node {node} knows no leader"));
            }
            match first.get(&name) {
                Some((other, known)) => compare(&name, (*other, known), (node, group), findings),
                None => drop(first.insert(name, (node, group.clone()))),
            }
        }
    }
}

fn compare(name: &str, (one, known): (u8, &Group), (other, group): (u8, &Group), findings: &mut Vec<String>) {
    let mut differ = |what: &str, known: String, found: String| {
        if known != found {
            findings.push(format!("group {name}: {what} is {known} on node {one} and {found} on node {other}"));
        }
    };
    differ("the leader", format!("{:?}", known.leader), format!("{:?}", group.leader));
    let members = |group: &Group| {
        let mut members = group.replicas.clone();
        members.sort();
        format!("{:?}", members.iter().map(|one| (one.replica, one.node, one.role.as_str())).collect::<Vec<_>>())
    };
    differ("who belongs to it", members(known), members(group));
    if known.applied.is_some() && group.applied.is_some() {
        differ("what is applied", format!("{:?}", known.applied), format!("{:?}", group.applied));
        if known.applied == group.applied && !known.digest.is_null() && !group.digest.is_null() {
            differ("the digest", known.digest.to_string(), group.digest.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::hand_made::{evidence, evidence_of, found, good, good_rows};
    use super::*;

    fn status(node: u8, leader: Option<u64>, roles: [&str; 3], digest: &str) -> RunEvent {
        let replicas: Vec<_> =
            (1..).zip(roles).map(|(id, role)| json!({"replica": id, "node": id, "role": role})).collect();
        let group =
            json!({"group": 3, "leader": leader, "term": 1, "replicas": replicas, "applied": 9, "digest": digest});
        let nodes: Vec<_> = (1..=3).map(|id| json!({"id": id, "address": format!("n{id}")})).collect();
        RunEvent::Status { node, status: json!({"node": node, "nodes": nodes, "groups": [group], "settled": true}) }
    }

    fn after(statuses: [RunEvent; 2]) -> Vec<String> {
        let mut said = good();
        said.push(RunEvent::Phase { phase: Phase::Look });
        said.extend(statuses);
        found("C8", &evidence_of(&said, &good_rows()))
    }

    const VOTERS: [&str; 3] = ["voter"; 3];

    #[test]
    fn nodes_that_differ_are_named() {
        let mut evidence = evidence();
        evidence.pictures.get_mut(&("set-0-0".into(), 2)).expect("node 2").rows.remove("set-0");
        assert!(found("C8", &evidence)[0].contains("nodes 1 and 2 differ: 4 rows at 105, 3 rows"));
        evidence.history.blind.push(("set-0-0".into(), 3));
        assert_eq!(found("C8", &evidence).len(), 2);
    }

    #[test]
    fn a_settled_cluster_has_no_findings() {
        let fine = after([status(1, Some(1), VOTERS, "a"), status(2, Some(1), VOTERS, "a")]);
        assert_eq!(fine, Vec::<String>::new());
    }

    #[test]
    fn two_leaders_fewer_voters_and_other_content_are_named() {
        let leaders = after([status(1, Some(1), VOTERS, "a"), status(2, Some(2), VOTERS, "a")]);
        assert!(leaders[0].contains("the leader is Some(1) on node 1 and Some(2) on node 2"), "{leaders:?}");
        let learner = ["voter", "voter", "learner"];
        let fewer = after([status(1, Some(1), learner, "a"), status(2, Some(1), learner, "a")]);
        assert!(fewer[0].contains("2 voters of at least 3"), "{fewer:?}");
        let content = after([status(1, Some(1), VOTERS, "a"), status(2, Some(1), VOTERS, "b")]);
        assert!(content[0].contains("the digest is"), "{content:?}");
        let nobody = after([status(1, None, VOTERS, "a"), status(2, None, VOTERS, "a")]);
        assert!(nobody[0].contains("knows no leader"), "{nobody:?}");
    }
}
