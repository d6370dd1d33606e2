//! Loss checker: every acknowledged write is there, under its acknowledged id.

use crate::single_node::dump::Dump;
use crate::single_node::worker_history::WorkerHistory;

pub fn check(history: &WorkerHistory, dump: &Dump) -> Vec<String> {
    let found = super::xacts_of_writes(dump);
    let mut findings = Vec::new();
    for (name, write) in &history.writes {
        let Some((_, xact)) = write.xacts().next() else { continue };
        match found.get(name.as_str()).map(Vec::as_slice) {
            None => findings.push(format!("{name} was acknowledged with {xact} and is gone")),
            Some(places) if !places.contains(&(write.object, xact)) => {
                findings.push(format!(
                    "{name} was acknowledged with {xact} in object {}; it is at {places:?}",
                    write.object
                ));
            }
            Some(_) => {}
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{good, good_dump, history};
    use super::*;

    #[test]
    fn a_lost_write_is_named() {
        let mut dump = good_dump();
        dump.traces.get_mut(&0).expect("object 0").retain(|trace| trace.write != "2");
        let findings = check(&history(&good()), &dump);
        assert!(findings[0].contains("2 was acknowledged with 102 and is gone"), "{findings:?}");
    }

    #[test]
    fn a_write_under_another_id_is_named() {
        let mut dump = good_dump();
        dump.traces.get_mut(&0).expect("object 0").iter_mut().for_each(|trace| trace.xact += 1);
        assert_eq!(check(&history(&good()), &dump).len(), 2);
    }
}
