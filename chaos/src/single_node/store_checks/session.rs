//! Session checker: a read without a version includes everything acknowledged before it began, and no client sees an
//! object go back.

use std::collections::BTreeMap;

use crate::single_node::dump::Dump;
use crate::single_node::worker_history::WorkerHistory;

pub fn check(history: &WorkerHistory, _: &Dump) -> Vec<String> {
    let mut answers: Vec<(usize, u8, u64)> = Vec::new();
    for write in history.writes.values() {
        answers.extend(write.xacts().map(|(at, xact)| (at, write.object, xact)));
    }
    answers.sort_unstable();
    let mut reads: Vec<_> = history.reads.iter().filter(|read| !read.asked).collect();
    reads.sort_by_key(|read| read.began);
    let mut findings = Vec::new();
    let mut answers = answers.into_iter().peekable();
    let mut highest: BTreeMap<u8, u64> = BTreeMap::new();
    for read in &reads {
        while let Some((_, object, xact)) = answers.next_if(|(at, ..)| *at < read.began) {
            let known = highest.entry(object).or_default();
            *known = xact.max(*known);
        }
        let known = highest.get(&read.object).copied().unwrap_or(0);
        if read.version < known {
            let line = read.at;
            findings.push(format!(
                "line {line}: object {} was read at {}; {known} was acknowledged",
                read.object, read.version
            ));
        }
    }
    reads.sort_by_key(|read| read.at);
    let mut last: BTreeMap<(u32, u8), u64> = BTreeMap::new();
    for read in reads {
        let before = last.insert((read.client, read.object), read.version).unwrap_or(0);
        if read.version < before {
            findings
                .push(format!("line {}: object {} went back from {before} to {}", read.at, read.object, read.version));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{good, history};
    use super::*;
    use crate::single_node::worker_history::WorkerEvent;

    fn read(version: u64) -> WorkerEvent {
        WorkerEvent::Read { client: 1, object: 0, version, digest: "d".into(), asked: false }
    }

    #[test]
    fn a_read_that_misses_an_acknowledged_write_is_named() {
        let mut said = good();
        said.push(read(101));
        assert!(check(&history(&said), &Dump::default())[0].contains("102 was acknowledged"));
    }

    #[test]
    fn a_read_that_began_before_the_answer_may_miss_it() {
        let mut said = good();
        said.insert(2, WorkerEvent::Asks { client: 1, object: 0 });
        said.push(read(101));
        assert_eq!(check(&history(&said), &Dump::default()), Vec::<String>::new());
    }

    #[test]
    fn going_back_is_named() {
        let mut said = vec![read(101)];
        said.push(read(100));
        assert!(check(&history(&said), &Dump::default())[0].contains("went back"));
    }
}
