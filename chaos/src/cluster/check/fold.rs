//! Fold checker: every read returns the fold, through the small model, of exactly the writes up to its version. Writes
//! of unknown outcome count where they were seen.

use std::collections::BTreeMap;

use super::Evidence;
use crate::cluster::check::expected_rows::Model;
use crate::cluster::recording::indexed_history::ReadRecord;
use crate::cluster::workload::rows::Rows;

/// Number of reads that are explained row by row; that is slow, and the first ones are the most useful.
const EXPLAINED_MAX: usize = 3;
/// Rows named of one read.
const ROWS_MAX: usize = 3;

pub fn check(evidence: &Evidence) -> Vec<String> {
    let history = &evidence.history;
    let mut writes: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for (name, write) in &history.writes {
        if let Some(xact) = evidence.xact(*name) {
            writes.entry(&write.object).or_default().push((xact, *name));
        }
    }
    let mut reads: BTreeMap<&str, Vec<&ReadRecord>> = BTreeMap::new();
    history.reads.iter().for_each(|read| reads.entry(&read.object).or_default().push(read));
    let mut findings = Vec::new();
    for (object, mut reads) in reads {
        let mut writes = writes.remove(object).unwrap_or_default();
        writes.sort_unstable();
        reads.sort_by_key(|read| read.version);
        let (mut model, mut next) = (Model::default(), 0);
        for read in reads {
            while let Some((xact, name)) = writes.get(next).filter(|(xact, _)| *xact <= read.version) {
                model.write(*xact, &history.writes[name].rows);
                next += 1;
            }
            if read.fold == model.fold() && read.rows == model.rows.len() {
                continue;
            }
            let explained = findings.len() < EXPLAINED_MAX;
            let found = evidence.bodies.as_ref().filter(|_| explained).and_then(|bodies| bodies.find(read.op));
            let why = found.map_or_else(String::new, |found| difference(&model.rows, &found));
            findings.push(format!(
                "{object}: read {} of node {} at {} shows {} rows that are not the {} of the model{why}",
                read.op,
                read.node,
                read.version,
                read.rows,
                model.rows.len()
            ));
        }
    }
    findings
}

fn difference(expected: &Rows, found: &Rows) -> String {
    let mut lines = Vec::new();
    for (id, row) in expected {
        match found.get(id) {
            None => lines.push(format!("{id} is missing (it came with {})", row.xact)),
            Some(other) if other != row => lines.push(format!("{id} should be {row:?}, is {other:?}")),
            Some(_) => {}
        }
    }
    let extra = found.iter().filter(|(id, _)| !expected.contains_key(*id));
    lines.extend(extra.map(|(id, row)| format!("{id} ({}) should not be there", row.xact)));
    let count = lines.len();
    lines.truncate(ROWS_MAX);
    format!("; of {count} differences: {}", lines.join("; "))
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{evidence, evidence_of, found, good, good_rows, one, read, two};
    use super::*;

    #[test]
    fn a_read_that_misses_a_write_below_its_version_is_named() {
        let mut said = good();
        said.extend(read(8, Some(102), 102, &[(101, &one())]));
        let findings = found("C5", &evidence_of(&said, &good_rows()));
        assert!(findings.len() == 1 && findings[0].contains("read 8 of node 1 at 102"), "{findings:?}");
    }

    #[test]
    fn a_read_that_shows_a_write_above_its_version_is_named() {
        let mut said = good();
        said.extend(read(8, Some(101), 101, &[(101, &one()), (102, &two())]));
        assert_eq!(found("C5", &evidence_of(&said, &good_rows())).len(), 1);
    }

    #[test]
    fn a_digest_of_other_content_is_named() {
        let mut evidence = evidence();
        evidence.history.reads[0].fold = "0".repeat(16);
        assert_eq!(found("C5", &evidence).len(), 1);
    }

    #[test]
    fn what_differs_is_said() {
        let (mut expected, found) = (good_rows(), good_rows());
        expected.get_mut("set-0").expect("a row").xact = 7;
        expected.insert("z".into(), expected["set-0"].clone());
        expected.remove("w10-0");
        let said = difference(&expected, &found);
        assert!(said.contains("of 3 differences") && said.contains("z is missing"), "{said}");
    }
}
