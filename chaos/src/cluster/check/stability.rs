//! Stability checker: a read of an object at a version can be repeated with identical bytes, at any time and on any
//! node.

use std::collections::BTreeMap;

use super::Evidence;
use crate::cluster::recording::indexed_history::ReadRecord;

pub fn check(evidence: &Evidence) -> Vec<String> {
    let mut known: BTreeMap<(&str, u64), &ReadRecord> = BTreeMap::new();
    let mut findings = Vec::new();
    for read in &evidence.history.reads {
        let first = *known.entry((&read.object, read.version)).or_insert(read);
        if first.raw != read.raw {
            findings.push(format!(
                "{} at {}: reads {} of node {} and {} of node {} differ",
                read.object, read.version, first.op, first.node, read.op, read.node
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{evidence_of, found, good, good_rows, one, read};
    use crate::cluster::recording::events::RunEvent;

    #[test]
    fn a_version_that_reads_differently_later_is_named() {
        let mut said = good();
        let [begins, mut ends] = read(8, Some(101), 101, &[(101, &one())]);
        if let RunEvent::Found { raw, .. } = &mut ends {
            raw.push('!');
        }
        said.extend([begins, ends]);
        let findings = found("C7", &evidence_of(&said, &good_rows()));
        assert!(
            findings.len() == 1 && findings[0].contains("reads 7 of node 1 and 8 of node 1 differ"),
            "{findings:?}"
        );
    }
}
