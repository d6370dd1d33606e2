//! Exactly-once checker: a write has one id for ever, however often it was sent, and at most one content was applied
//! under a key.

use std::collections::BTreeMap;

use super::Evidence;
use crate::cluster::recording::indexed_history::End;

pub fn check(evidence: &Evidence) -> Vec<String> {
    let mut findings = Vec::new();
    let history = &evidence.history;
    for (write, xacts) in evidence.xacts.iter().filter(|(_, xacts)| xacts.len() > 1) {
        let object = history.writes.get(write).map_or("", |write| &write.object);
        findings.push(format!("{object}: write {write} was seen under {xacts:?}"));
    }
    let mut by_key: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (name, write) in &history.writes {
        match write.key {
            Some(key) => by_key.entry(key).or_default().push(*name),
            None if conflict(evidence, *name) => {
                findings.push(format!("{}: write {name} has no key and was refused as another's", write.object));
            }
            None => {}
        }
    }
    for (key, writes) in by_key {
        let applied: Vec<&u64> = writes
            .iter()
            .filter(|name| evidence.xacts.contains_key(name) || history.writes[name].acked().is_some())
            .collect();
        if applied.len() > 1 {
            findings.push(format!("under the key of write {key} writes {applied:?} were applied"));
        }
        // Refused as another's: then there is another.
        if let [only] = writes[..]
            && conflict(evidence, only)
        {
            findings.push(format!("write {only} was refused as another's under a key that nobody else used"));
        }
    }
    findings
}

fn conflict(evidence: &Evidence, write: u64) -> bool {
    let sends = evidence.history.writes.get(&write).map(|write| write.sends.as_slice()).unwrap_or_default();
    sends.iter().any(|sent| matches!(sent.ended, Some((_, End::Fail { status: Some(409) }))))
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{evidence, evidence_of, found, good, good_rows, refused, rows, write};
    use crate::cluster::recording::events::RunEvent;
    use crate::cluster::workload::rows::own;

    #[test]
    fn a_write_that_was_seen_under_two_ids_is_named() {
        let mut said = good();
        let RunEvent::Found { seen, .. } = &mut said[13] else { panic!("the first read") };
        seen[0].1 = 100;
        assert!(found("C4", &evidence_of(&said, &good_rows()))[0].contains("write 10 was seen under {100, 101}"));
    }

    #[test]
    fn two_contents_under_one_key_are_named() {
        let said = [
            write(1, 50, Some(50), &[own(50, 0)]),
            RunEvent::Ok { op: 1 },
            write(2, 60, Some(50), &[own(60, 0)]),
            RunEvent::Ok { op: 2 },
        ];
        let rows = rows(&[(1, &[own(50, 0)]), (2, &[own(60, 0)])]);
        assert!(found("C4", &evidence_of(&said, &rows))[0].contains("writes [50, 60] were applied"));
    }

    #[test]
    fn a_conflict_with_nobody_is_named() {
        let mut said = good();
        said[9] = refused(4, 409);
        assert!(found("C4", &evidence_of(&said, &good_rows()))[0].contains("write 30 has no key"));
        said[7] = refused(3, 409);
        assert_eq!(found("C4", &evidence_of(&said, &good_rows())).len(), 2);
        assert_eq!(found("C4", &evidence()), Vec::<String>::new());
    }
}
