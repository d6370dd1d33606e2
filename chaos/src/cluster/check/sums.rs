//! Checker of sums: transfers add up to zero at every version that was read, and a set has every key with an
//! acknowledged merge.

use super::Evidence;
use crate::cluster::recording::events::{Act, Workload};

pub fn check(evidence: &Evidence) -> Vec<String> {
    let history = &evidence.history;
    let mut findings = Vec::new();
    for read in history.reads.iter().filter(|read| read.total != 0) {
        findings.push(format!(
            "{} at {}: read {} of node {} adds up to {}",
            read.object, read.version, read.op, read.node, read.total
        ));
    }
    for (name, write) in history.writes.iter().filter(|(_, write)| write.acked().is_some()) {
        if history.objects.get(&write.object) != Some(&Workload::Set) {
            continue;
        }
        for row in write.rows.iter().filter(|row| row.act == Act::Merge) {
            for (node, picture) in evidence.pictures_of(&write.object) {
                let there = picture.rows.get(&row.id);
                let lacking = row.set.keys().find(|key| !there.is_some_and(|there| there.set.contains_key(*key)));
                findings.extend(lacking.map(|key| {
                    format!("{}: write {name} added {key} to {}, and node {node} lacks it", write.object, row.id)
                }));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{evidence, found};

    #[test]
    fn a_lost_key_of_a_set_is_named() {
        let mut evidence = evidence();
        let picture = evidence.pictures.get_mut(&("set-0-0".into(), 1)).expect("node 1");
        picture.rows.get_mut("set-0").expect("a row").set.remove("k10");
        assert!(found("C9", &evidence)[0].contains("write 10 added k10 to set-0, and node 1 lacks it"));
    }

    #[test]
    fn what_does_not_add_up_is_named() {
        let mut evidence = evidence();
        evidence.history.reads[1].total = -3;
        assert!(found("C9", &evidence)[0].contains("adds up to -3"));
    }
}
