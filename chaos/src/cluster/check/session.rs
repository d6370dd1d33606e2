//! Session checker: a read without a version includes everything acknowledged before it began, and no client sees an
//! object go back.

use std::collections::BTreeMap;

use super::Evidence;

pub fn check(evidence: &Evidence) -> Vec<String> {
    let history = &evidence.history;
    let mut acks: Vec<(usize, &str, u64)> = Vec::new();
    for (name, write) in &history.writes {
        acks.extend(write.acked().and_then(|at| Some((at, write.object.as_str(), evidence.xact(*name)?))));
    }
    acks.sort_unstable();
    let mut reads: Vec<_> = history.reads.iter().filter(|read| read.asked.is_none()).collect();
    reads.sort_by_key(|read| read.began);
    let mut findings = Vec::new();
    let mut acks = acks.into_iter().peekable();
    let mut highest: BTreeMap<&str, u64> = BTreeMap::new();
    for read in &reads {
        while let Some((_, object, xact)) = acks.next_if(|(at, ..)| *at < read.began) {
            let known = highest.entry(object).or_default();
            *known = xact.max(*known);
        }
        let known = highest.get(read.object.as_str()).copied().unwrap_or(0);
        if read.version < known {
            findings.push(format!(
                "{}: read {} of node {} is of {}; {known} was acknowledged before it began",
                read.object, read.op, read.node, read.version
            ));
        }
    }
    reads.sort_by_key(|read| read.at);
    let mut last: BTreeMap<(u32, &str), u64> = BTreeMap::new();
    for read in reads {
        let before = last.insert((read.client, &read.object), read.version).unwrap_or(0);
        if read.version < before {
            findings.push(format!(
                "{}: for client {} it went back from {before} to {} with read {} of node {}",
                read.object, read.client, read.version, read.op, read.node
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{evidence_of, found, good, good_rows, one, read};

    #[test]
    fn a_stale_read_is_named() {
        let mut said = good();
        said.extend(read(8, None, 101, &[(101, &one())]));
        let findings = found("C6", &evidence_of(&said, &good_rows()));
        assert!(findings[0].contains("read 8 of node 1 is of 101; 102 was acknowledged"), "{findings:?}");
        assert!(findings[1].contains("went back from 103 to 101"), "{findings:?}");
    }

    #[test]
    fn a_read_that_began_before_the_answer_may_miss_it() {
        let mut said = good();
        let [begins, ends] = read(8, None, 101, &[(101, &one())]);
        said.insert(5, begins);
        said.insert(7, ends);
        assert_eq!(found("C6", &evidence_of(&said, &good_rows())), Vec::<String>::new());
    }

    #[test]
    fn a_read_at_a_version_may_be_as_old_as_it_likes() {
        let mut said = good();
        said.extend(read(8, Some(101), 101, &[(101, &one())]));
        assert_eq!(found("C6", &evidence_of(&said, &good_rows())), Vec::<String>::new());
    }
}
