//! `assay upgrade check`: compares a running cluster with this program, before its nodes are replaced by it.
//!
//! The decisions are pure: they depend on the cluster's status, this program's version, and the time.

use std::fmt;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use assay_cluster::{ClusterStatus, NodeReport, NodeState};
use clap::{Args, Subcommand};
use serde::Serialize;

use super::cluster::running_node;
use super::listener_client::ListenerArgs;
use super::output;

/// Free part of a disk below which an upgrade waits. New formats are written beside old ones.
const FREE_PART_MIN: f64 = 0.1;
/// Time before the end of a certificate from which the check warns. Certificates are renewed before that.
const CERTIFICATE_SECONDS_MIN: u64 = 3 * 86_400;

/// Arguments of `assay upgrade`.
#[derive(Debug, Args)]
pub struct UpgradeArgs {
    /// The data directory of a node
    #[arg(long, value_name = "DIR", default_value = "./assay-data", global = true)]
    data_dir: PathBuf,
    /// Print the findings as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    remote: ListenerArgs,
    #[command(subcommand)]
    command: UpgradeCommand,
}

#[derive(Debug, Subcommand)]
enum UpgradeCommand {
    /// Check whether the nodes of a running cluster can be upgraded to this program, without changes
    ///
    /// Run the new program beside the old one, against a running node. Exit code: 0 go on, 1 something stands against it.
    #[command(verbatim_doc_comment)]
    Check,
}

/// Weight of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Weight {
    Ok,
    Note,
    /// The upgrade has to wait.
    Stop,
}

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct UpgradeFinding {
    weight: Weight,
    text: String,
}

impl fmt::Display for UpgradeFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weight = match self.weight {
            Weight::Ok => "ok",
            Weight::Note => "note",
            Weight::Stop => "stop",
        };
        write!(f, "{weight:<6}{}", self.text)
    }
}

/// Version of a program: major and minor number. Patches change no format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Release(u64, u64);

impl Release {
    fn parse(text: &str) -> Option<Release> {
        let mut numbers = text.split('.').map(str::parse);
        Some(Release(numbers.next()?.ok()?, numbers.next()?.ok()?))
    }

    /// Returns whether nodes of both versions can form a cluster, with the other one as the newer.
    fn precedes(self, newer: Release) -> bool {
        self.0 == newer.0 && self.1 + 1 == newer.1
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// Runs the check and prints its findings. Returns whether the upgrade can go on.
pub fn run(args: UpgradeArgs) -> anyhow::Result<bool> {
    let UpgradeArgs { data_dir, json, remote, command: UpgradeCommand::Check } = args;
    let status = running_node(&data_dir, remote)?.status()?;
    let own = Release::parse(env!("CARGO_PKG_VERSION")).expect("a version of Cargo has two numbers");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let findings = findings(&status, own, now);
    let goes_on = findings.iter().all(|finding| finding.weight != Weight::Stop);
    match json {
        true => output::json(&serde_json::json!({"version": own.to_string(), "ok": goes_on, "findings": findings}))?,
        false => {
            findings.iter().try_for_each(output::line)?;
            output::line(match goes_on {
                true => "go on: upgrade one node at a time, and wait for `assay cluster status --wait` after each",
                false => "wait: mend what is marked `stop` first",
            })?;
        }
    }
    Ok(goes_on)
}

fn findings(status: &ClusterStatus, own: Release, now: u64) -> Vec<UpgradeFinding> {
    let nodes: Vec<&NodeReport> = status.nodes.iter().filter(|node| node.state != NodeState::Removed).collect();
    let mut found = vec![settled(status)];
    found.extend(nodes.iter().map(|node| version(node, own)));
    found.extend(confirmation(status, &nodes, own));
    found.extend(nodes.iter().filter_map(|node| disk(node)));
    found.extend(nodes.iter().filter_map(|node| certificate(node, now)));
    found.extend(size(nodes.len()));
    found
}

fn finding(weight: Weight, text: impl Into<String>) -> UpgradeFinding {
    UpgradeFinding { weight, text: text.into() }
}

fn settled(status: &ClusterStatus) -> UpgradeFinding {
    match status.settled {
        true => finding(Weight::Ok, "every group has a leader and all its replicas"),
        false => finding(Weight::Stop, format!("the cluster is not settled: {}", status.unsettled.join("; "))),
    }
}

fn version(node: &NodeReport, own: Release) -> UpgradeFinding {
    let id = node.id;
    let Some(text) = node.facts.as_ref().map(|facts| facts.version.as_str()) else {
        let why = format!("node {id} reports no version: it is silent or older than 0.6");
        return finding(Weight::Stop, why);
    };
    match Release::parse(text) {
        Some(release) if release == own => finding(Weight::Ok, format!("node {id} runs {text}, as this program")),
        Some(release) if release.precedes(own) => {
            finding(Weight::Ok, format!("node {id} runs {text}, which works beside {own}"))
        }
        Some(release) if release > own => {
            finding(Weight::Stop, format!("node {id} runs {text}, which is newer than this program ({own})"))
        }
        _ => {
            let why = format!("node {id} runs {text}, which does not work beside {own}");
            finding(Weight::Stop, format!("{why}: upgrade to each version in between, or stop all nodes first"))
        }
    }
}

/// Returns what is to be said about the confirmation of this upgrade or the last one.
fn confirmation(status: &ClusterStatus, nodes: &[&NodeReport], own: Release) -> Option<UpgradeFinding> {
    let upgrade = status.upgrade.as_ref().filter(|upgrade| !upgrade.unconfirmed.is_empty())?;
    let releases = nodes.iter().filter_map(|node| Release::parse(&node.facts.as_ref()?.version));
    let is_earlier = upgrade.obstacles.is_empty() && releases.max().is_some_and(|newest| newest < own);
    Some(match is_earlier {
        true => finding(Weight::Stop, "the last upgrade is not confirmed: run `assay cluster finalize` first"),
        false => {
            let text = "after all nodes run this version, confirm it with `assay cluster finalize`; until then you can \
                        go back";
            finding(Weight::Note, text)
        }
    })
}

fn disk(node: &NodeReport) -> Option<UpgradeFinding> {
    let facts = node.facts.as_ref()?;
    let (total, free) = (facts.disk_total_bytes?, facts.disk_free_bytes?);
    let part = free as f64 / total.max(1) as f64;
    (part < FREE_PART_MIN).then(|| {
        let why = format!("the disk of node {} has {:.0} % free", node.id, part * 100.0);
        finding(Weight::Stop, format!("{why}; an upgrade needs at least {:.0} %", FREE_PART_MIN * 100.0))
    })
}

fn certificate(node: &NodeReport, now: u64) -> Option<UpgradeFinding> {
    let ends = node.facts.as_ref()?.certificate_ends?;
    let left = ends.saturating_sub(now);
    (left < CERTIFICATE_SECONDS_MIN).then(|| {
        let days = left / 86_400;
        finding(Weight::Stop, format!("the certificate of node {} ends in {days} days and was not renewed", node.id))
    })
}

fn size(nodes: usize) -> Option<UpgradeFinding> {
    match nodes {
        1 => Some(finding(
            Weight::Note,
            "the only node confirms the upgrade when it starts, so that there is no way back: make a backup first",
        )),
        2 => Some(finding(Weight::Note, "with two nodes, requests wait while one of them restarts")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use assay_cluster::{NodeFacts, UpgradeReport};
    use assay_storage_model::{ClusterId, NodeId};

    use super::*;

    const NOW: u64 = 1_796_000_000;

    fn status(versions: &[&str]) -> ClusterStatus {
        let node = |(id, version): (u64, &&str)| NodeReport {
            id: NodeId(id),
            address: None,
            state: NodeState::Active,
            answers: true,
            leads: 0,
            facts: Some(NodeFacts {
                version: (*version).to_owned(),
                disk_total_bytes: Some(100),
                disk_free_bytes: Some(50),
                certificate_ends: Some(NOW + 30 * 86_400),
                ..NodeFacts::default()
            }),
        };
        ClusterStatus {
            cluster: ClusterId(uuid::Uuid::from_u128(7)),
            node: NodeId(1),
            nodes: (1..).zip(versions).map(node).collect(),
            groups: Vec::new(),
            replicas: Some(3),
            quorum: true,
            settled: true,
            unsettled: Vec::new(),
            upgrade: Some(UpgradeReport::default()),
        }
    }

    /// Returns the texts of what stands against an upgrade to 0.7.
    fn stops(status: &ClusterStatus) -> Vec<String> {
        let found = findings(status, Release(0, 7), NOW);
        found.into_iter().filter(|found| found.weight == Weight::Stop).map(|found| found.text).collect()
    }

    #[test]
    fn successive_versions_work_together() {
        assert_eq!(stops(&status(&["0.6.0", "0.6.1", "0.7.0"])), [""; 0]);
        let found = stops(&status(&["0.5.2", "0.8.0", "1.6.0", "?"]));
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].contains("each version in between") && found[1].contains("newer"), "{found:?}");
    }

    #[test]
    fn an_unconfirmed_upgrade_comes_before_the_next_one() {
        let unconfirmed = |obstacles: &[&str]| UpgradeReport {
            unconfirmed: ["conditional-writes".to_owned()].into(),
            obstacles: obstacles.iter().map(|text| (*text).to_owned()).collect(),
        };
        let pending = |versions: &[&str], obstacles: &[&str]| ClusterStatus {
            upgrade: Some(unconfirmed(obstacles)),
            ..status(versions)
        };
        assert!(stops(&pending(&["0.6.0"; 3], &[]))[0].contains("assay cluster finalize"));
        assert_eq!(stops(&pending(&["0.7.0"; 3], &[])), [""; 0], "it is this one");
        assert_eq!(stops(&pending(&["0.6.0", "0.7.0", "0.7.0"], &["node 1 runs 0.6.0"])), [""; 0], "it is in progress");
    }

    #[test]
    fn what_is_not_well_is_mended_first() {
        let mut ill = status(&["0.6.0"; 3]);
        ill.settled = false;
        ill.unsettled = vec!["shard 1 has no leader".into()];
        ill.nodes[0].facts = None;
        let facts = ill.nodes[1].facts.as_mut().expect("facts");
        facts.disk_free_bytes = Some(9);
        facts.certificate_ends = Some(NOW + 86_400);
        let found = stops(&ill);
        let expected = ["shard 1 has no leader", "node 1 reports no version", "9 % free", "ends in 1 days"];
        assert_eq!(found.len(), expected.len(), "{found:?}");
        assert!(found.iter().zip(expected).all(|(text, part)| text.contains(part)), "{found:?}");
        let mut removed = status(&["0.6.0", "0.3.0"]);
        removed.nodes[1].state = NodeState::Removed;
        assert_eq!(stops(&removed), [""; 0]);
    }
}
