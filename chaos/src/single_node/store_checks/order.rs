//! Order checker: ids of one object are never shared, and a write sent after another was acknowledged has the higher
//! id. One sweep over the history with the highest acknowledged id at each send.

use std::collections::BTreeMap;

use crate::single_node::dump::Dump;
use crate::single_node::worker_history::WorkerHistory;

pub fn check(history: &WorkerHistory, dump: &Dump) -> Vec<String> {
    let mut findings = Vec::new();
    let mut owners: BTreeMap<(u8, u64), &str> = BTreeMap::new();
    for (name, places) in super::xacts_of_writes(dump) {
        for place in places {
            if let Some(other) = owners.insert(place, name) {
                findings.push(format!("{other} and {name} share the id {} in object {}", place.1, place.0));
            }
        }
    }
    let found: BTreeMap<&str, u64> = owners.iter().map(|((_, xact), name)| (*name, *xact)).collect();
    // (line, is an answer, object, name, id): an answer counts for what is sent on a later line.
    let mut sweep: Vec<(usize, u8, &str, Option<u64>)> = Vec::new();
    for (name, write) in &history.writes {
        sweep.push((write.invoked, write.object, name, None));
        sweep.extend(write.xacts().map(|(at, xact)| (at, write.object, name.as_str(), Some(xact))));
    }
    sweep.sort_unstable();
    let mut highest: BTreeMap<u8, (u64, &str)> = BTreeMap::new();
    for (_, object, name, acknowledged) in sweep {
        let above = highest.get(&object).copied().unwrap_or((0, ""));
        match acknowledged {
            Some(xact) if xact > above.0 => {
                highest.insert(object, (xact, name));
            }
            Some(_) => {}
            None => {
                if let Some(xact) = found.get(name).filter(|xact| **xact <= above.0) {
                    findings.push(format!("{name} has {xact} but was sent after {} had {}", above.1, above.0));
                }
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use assay_storage_model::command::Action;

    use super::super::hand_made::{dump_of, good_dump, history, invoke, ok, row};
    use super::*;

    #[test]
    fn a_later_write_with_a_lower_id_is_named() {
        let rows = [row("a", Action::Upsert, 1)];
        let said = [invoke("1", None, &rows), ok("1", 101, false), invoke("2", None, &rows), ok("2", 100, false)];
        let dump = dump_of(&[("2", 100, &rows), ("1", 101, &rows)]);
        assert!(check(&history(&said), &dump)[0].contains("2 has 100 but was sent after 1 had 101"));
    }

    #[test]
    fn writes_that_overlap_may_come_in_either_order() {
        let rows = [row("a", Action::Upsert, 1)];
        let said = [invoke("1", None, &rows), invoke("2", None, &rows), ok("1", 101, false), ok("2", 100, false)];
        let dump = dump_of(&[("2", 100, &rows), ("1", 101, &rows)]);
        assert_eq!(check(&history(&said), &dump), Vec::<String>::new());
    }

    #[test]
    fn a_shared_id_is_named() {
        let mut dump = good_dump();
        dump.traces.get_mut(&0).expect("object 0").iter_mut().for_each(|trace| trace.xact = 7);
        assert!(check(&WorkerHistory::default(), &dump)[0].contains("share the id 7"));
    }
}
