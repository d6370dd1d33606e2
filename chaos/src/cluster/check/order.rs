//! Order checker: a write sent after another one of its object was acknowledged has the higher id. One sweep over the
//! history with the highest acknowledged id at each send.

use std::collections::BTreeMap;

use super::Evidence;

pub fn check(evidence: &Evidence) -> Vec<String> {
    // (line, is an answer, write): an answer counts for what is sent on a later line.
    let mut sweep: Vec<(usize, bool, u64)> = Vec::new();
    for (name, write) in &evidence.history.writes {
        sweep.push((write.invoked(), false, *name));
        sweep.extend(write.acked().map(|at| (at, true, *name)));
    }
    sweep.sort_unstable();
    let mut highest: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut findings = Vec::new();
    for (_, answer, name) in sweep {
        let (Some(xact), Some(write)) = (evidence.xact(name), evidence.history.writes.get(&name)) else { continue };
        let above = highest.entry(&write.object).or_default();
        if answer {
            *above = (*above).max((xact, name));
        } else if xact <= above.0 {
            findings.push(format!(
                "{}: write {name} has {xact} and was sent after write {} had {}",
                write.object, above.1, above.0
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{evidence_of, found, one, rows, two, write};
    use crate::cluster::recording::events::RunEvent;

    #[test]
    fn a_later_write_with_a_lower_id_is_named() {
        let said =
            [write(1, 10, None, &one()), RunEvent::Ok { op: 1 }, write(2, 20, None, &two()), RunEvent::Ok { op: 2 }];
        let rows = rows(&[(99, &two()), (101, &one())]);
        let findings = found("C3", &evidence_of(&said, &rows));
        assert!(findings.len() == 1 && findings[0].contains("20 has 99 and was sent after write 10"), "{findings:?}");
    }

    #[test]
    fn writes_that_overlap_may_come_in_either_order() {
        let said =
            [write(1, 10, None, &one()), write(2, 20, None, &two()), RunEvent::Ok { op: 1 }, RunEvent::Ok { op: 2 }];
        let rows = rows(&[(99, &two()), (101, &one())]);
        assert_eq!(found("C3", &evidence_of(&said, &rows)), Vec::<String>::new());
    }

    #[test]
    fn an_unknown_write_is_held_against_what_was_acknowledged_before_it() {
        let said = [write(1, 10, None, &one()), RunEvent::Ok { op: 1 }, write(2, 20, None, &two())];
        let rows = rows(&[(99, &two()), (101, &one())]);
        assert_eq!(found("C3", &evidence_of(&said, &rows)).len(), 1);
    }
}
