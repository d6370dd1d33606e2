//! Phantom checker: every row was sent to that object and not refused; a write is whole and shares its id with no
//! other.

use std::collections::{BTreeMap, BTreeSet};

use super::{Evidence, ObjectPicture};
use crate::cluster::workload::rows::write_of;

pub fn check(evidence: &Evidence) -> Vec<String> {
    let mut findings = Vec::new();
    let mut sent: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for write in evidence.history.writes.values() {
        sent.entry(&write.object).or_default().extend(write.rows.iter().map(|row| row.id.as_str()));
    }
    for ((object, node), picture) in &evidence.pictures {
        let known = sent.get(object.as_str());
        for id in picture.rows.keys().filter(|id| !known.is_some_and(|known| known.contains(id.as_str()))) {
            findings.push(format!("{object}: node {node} has {id}, which nobody sent there"));
        }
        one(evidence, object, *node, picture, &mut findings);
    }
    for read in &evidence.history.reads {
        for (write, xact) in &read.seen {
            let known = evidence.history.writes.get(write);
            if known.is_none_or(|known| known.object != read.object || known.invoked() > read.at || known.refused()) {
                findings.push(format!(
                    "{}: read {} shows write {write} with {xact}, which was refused, sent elsewhere or not yet sent",
                    read.object, read.op
                ));
            }
        }
    }
    findings
}

fn one(evidence: &Evidence, object: &str, node: u8, picture: &ObjectPicture, findings: &mut Vec<String>) {
    let mut there: BTreeMap<u64, usize> = BTreeMap::new();
    let mut owners: BTreeMap<u64, u64> = BTreeMap::new();
    for (id, row) in &picture.rows {
        let Some(write) = write_of(id) else { continue };
        *there.entry(write).or_default() += 1;
        let owner = *owners.entry(row.xact).or_insert(write);
        if owner != write {
            findings.push(format!("{object}: writes {owner} and {write} share the id {} on node {node}", row.xact));
        }
    }
    for (name, found) in there {
        let Some(write) = evidence.history.writes.get(&name) else { continue };
        if write.refused() {
            findings.push(format!("{object}: write {name} was refused and is on node {node}"));
        }
        let whole = write.rows.iter().filter(|row| write_of(&row.id) == Some(name)).count();
        if found != whole {
            findings.push(format!("{object}: {found} of {whole} rows of write {name} are on node {node}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{evidence, evidence_of, found, good, good_rows, one, rows, two};
    use crate::cluster::workload::rows::own;

    #[test]
    fn what_nobody_sent_is_named() {
        let mut rows = good_rows();
        let row = rows["w20-0"].clone();
        rows.insert("w99-0".into(), row);
        let findings = found("C2", &evidence_of(&good(), &rows));
        assert!(findings.iter().any(|finding| finding.contains("w99-0, which nobody sent")), "{findings:?}");
    }

    #[test]
    fn a_refused_write_that_is_there_is_named() {
        let rows = rows(&[(101, &one()), (102, &two()), (103, &[own(30, 0)])]);
        assert!(found("C2", &evidence_of(&good(), &rows))[0].contains("30 was refused"));
    }

    #[test]
    fn half_a_write_is_named() {
        let mut evidence = evidence();
        evidence.pictures.values_mut().for_each(|picture| drop(picture.rows.remove("w20-1")));
        assert!(found("C2", &evidence)[0].contains("1 of 2 rows of write 20"));
    }

    #[test]
    fn a_shared_id_is_named() {
        let rows = rows(&[(101, &one()), (101, &two())]);
        assert!(found("C2", &evidence_of(&good(), &rows)).iter().any(|finding| finding.contains("share the id 101")));
    }

    #[test]
    fn a_read_of_what_was_refused_is_named() {
        let mut evidence = evidence();
        evidence.history.reads[0].seen.push((30, 103));
        assert!(found("C2", &evidence)[0].contains("read 6 shows write 30"));
    }
}
