//! Phantom checker: every row was sent to that object and not refused; a write is whole.

use std::collections::BTreeMap;

use assay_storage_model::command::Action;

use crate::single_node::dump::Dump;
use crate::single_node::worker_history::WorkerHistory;

pub fn check(history: &WorkerHistory, dump: &Dump) -> Vec<String> {
    let mut findings = Vec::new();
    let mut lasting: BTreeMap<&str, usize> = BTreeMap::new();
    for (object, traces) in &dump.traces {
        for trace in traces {
            let Some(write) = history.writes.get(&trace.write) else {
                findings.push(format!("object {object} has {} by {}, which was never sent", trace.id, trace.write));
                continue;
            };
            if write.object != *object {
                findings.push(format!("{} was sent to object {} and is in {object}", trace.write, write.object));
            }
            if write.refused() {
                findings.push(format!("{} was refused and {} is there by it", trace.write, trace.id));
            }
            if trace.action == Action::Upsert as u8 || trace.action == Action::Merge as u8 {
                *lasting.entry(&trace.write).or_default() += 1;
            }
        }
    }
    for (name, write) in &history.writes {
        let sent = write.rows.iter().filter(|row| matches!(row.action, Action::Upsert | Action::Merge)).count();
        let found = lasting.get(name.as_str()).copied().unwrap_or(0);
        if found != 0 && found < sent {
            findings.push(format!("{name}: {found} of {sent} of its rows are there"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{good, good_dump, history};
    use super::*;

    #[test]
    fn a_write_that_nobody_sent_is_named() {
        let mut dump = good_dump();
        dump.traces.get_mut(&0).expect("object 0")[0].write = "9".into();
        assert!(check(&history(&good()), &dump)[0].contains("never sent"));
    }

    #[test]
    fn a_refused_write_that_is_there_is_named() {
        let mut dump = good_dump();
        dump.traces.get_mut(&0).expect("object 0").iter_mut().for_each(|trace| trace.write = "4".into());
        assert!(check(&history(&good()), &dump)[0].contains("4 was refused"));
    }

    #[test]
    fn half_a_write_is_named() {
        let mut dump = good_dump();
        dump.traces.get_mut(&0).expect("object 0").remove(0);
        assert!(check(&history(&good()), &dump)[0].contains("1: 1 of 2 of its rows"));
    }
}
