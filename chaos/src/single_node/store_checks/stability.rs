//! Stability checker: a read of an object at a version can be repeated with identical bytes.

use std::collections::BTreeMap;

use crate::single_node::dump::Dump;
use crate::single_node::worker_history::WorkerHistory;

pub fn check(history: &WorkerHistory, dump: &Dump) -> Vec<String> {
    let mut known: BTreeMap<(u8, u64), (&str, usize)> = BTreeMap::new();
    let mut findings = Vec::new();
    for read in &history.reads {
        let (digest, at) = *known.entry((read.object, read.version)).or_insert((&read.digest, read.at));
        if digest != read.digest {
            findings.push(format!(
                "object {} at {} read differently on lines {at} and {}",
                read.object, read.version, read.at
            ));
        }
    }
    for ((object, version), picture) in &dump.pictures {
        if let Some((digest, at)) = known.get(&(*object, *version))
            && *digest != picture.digest
        {
            findings.push(format!("object {object} at {version} reads differently now than on line {at}"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{good_dump, history};
    use super::*;
    use crate::single_node::worker_history::WorkerEvent;

    #[test]
    fn a_version_that_reads_differently_later_is_named() {
        let read =
            |digest: &str| WorkerEvent::Read { client: 0, object: 0, version: 101, digest: digest.into(), asked: true };
        assert_eq!(check(&history(&[read("digest-101")]), &good_dump()), Vec::<String>::new());
        assert_eq!(check(&history(&[read("digest-7")]), &good_dump()).len(), 1);
        assert_eq!(check(&history(&[read("x"), read("y")]), &Dump::default()).len(), 1);
    }
}
