//! Loss checker: every acknowledged write is on every node, whole, under one id.

use super::Evidence;
use crate::cluster::workload::rows::write_of;

pub fn check(evidence: &Evidence) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, write) in evidence.history.writes.iter().filter(|(_, write)| write.acked().is_some()) {
        let xact = evidence.xact(*name);
        for (node, picture) in evidence.pictures_of(&write.object) {
            for row in write.rows.iter().filter(|row| write_of(&row.id) == Some(*name)) {
                let found = picture.rows.get(&row.id);
                match found {
                    None => findings.push(format!(
                        "{}: write {name} was acknowledged and {} is not on node {node}",
                        write.object, row.id
                    )),
                    Some(found) if Some(found.xact) != xact => findings.push(format!(
                        "{}: {} has the id {} on node {node}; the write has {xact:?}",
                        write.object, row.id, found.xact
                    )),
                    Some(_) => {}
                }
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{evidence, found};

    #[test]
    fn a_lost_write_is_named_with_its_node() {
        let mut evidence = evidence();
        evidence.pictures.get_mut(&("set-0-0".into(), 2)).expect("node 2").rows.remove("w20-1");
        let findings = found("C1", &evidence);
        assert!(findings.len() == 1 && findings[0].contains("w20-1 is not on node 2"), "{findings:?}");
    }

    #[test]
    fn a_row_under_another_id_than_its_write_is_named() {
        let mut evidence = evidence();
        let rows = &mut evidence.pictures.get_mut(&("set-0-0".into(), 1)).expect("node 1").rows;
        rows.get_mut("w20-1").expect("a row").xact = 104;
        assert_eq!(found("C1", &evidence).len(), 1);
    }
}
