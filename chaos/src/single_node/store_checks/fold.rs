//! Fold checker: each object at each read version is the fold, through the small model, of the writes up to it:
//! acknowledged ones and visible ones.

use std::collections::BTreeMap;

use crate::single_node::document_model::ModelObject;
use crate::single_node::dump::{Dump, DumpRow, DumpedTrace};
use crate::single_node::worker_history::WorkerHistory;

pub fn check(history: &WorkerHistory, dump: &Dump) -> Vec<String> {
    let seen = super::xacts_of_writes(dump);
    let mut by_object: BTreeMap<u8, BTreeMap<u64, &str>> = BTreeMap::new();
    for (name, write) in &history.writes {
        let answered = write.xacts().next().map(|(_, xact)| xact);
        let found = seen.get(name.as_str()).and_then(|places| places.first()).map(|(_, xact)| *xact);
        if let Some(xact) = answered.or(found) {
            by_object.entry(write.object).or_default().insert(xact, name);
        }
    }
    let mut findings = Vec::new();
    for (object, newest) in &dump.newest {
        let writes = by_object.remove(object).unwrap_or_default();
        let versions = dump.pictures.keys().filter(|(of, _)| of == object).map(|(_, version)| *version);
        let mut model = ModelObject::default();
        let mut writes = writes.into_iter().peekable();
        for version in versions {
            while let Some((xact, name)) = writes.next_if(|(xact, _)| *xact <= version) {
                model.write(name, xact, &history.writes[name].rows);
            }
            compare(*object, version, &model.rows, &dump.pictures[&(*object, version)].rows, &mut findings);
            if version == *newest {
                compare_traces(
                    *object,
                    &model.traces,
                    dump.traces.get(object).map_or(&[], Vec::as_slice),
                    &mut findings,
                );
            }
        }
        if let Some((xact, name)) = writes.next() {
            findings.push(format!("object {object}: {name} has {xact}, above the version {newest} that was read"));
        }
    }
    findings
}

fn compare(
    object: u8,
    version: u64,
    expected: &BTreeMap<String, DumpRow>,
    found: &BTreeMap<String, DumpRow>,
    findings: &mut Vec<String>,
) {
    for (id, row) in expected {
        match found.get(id) {
            None => findings.push(format!("object {object} at {version}: {id} is missing")),
            Some(other) if other != row => {
                findings.push(format!("object {object} at {version}: {id} should be {row:?}, is {other:?}"));
            }
            Some(_) => {}
        }
    }
    for id in found.keys().filter(|id| !expected.contains_key(*id)) {
        findings.push(format!("object {object} at {version}: {id} should not be there"));
    }
}

fn compare_traces(object: u8, expected: &[DumpedTrace], found: &[DumpedTrace], findings: &mut Vec<String>) {
    // What a delete says of its own span is no promise.
    let plain = |traces: &[DumpedTrace]| {
        let mut plain: Vec<(String, u64, u8, String)> =
            traces.iter().map(|trace| (trace.id.clone(), trace.xact, trace.action, trace.write.clone())).collect();
        plain.sort();
        plain
    };
    let (expected, found) = (plain(expected), plain(found));
    if let Some(missing) = expected.iter().find(|trace| found.binary_search(trace).is_err()) {
        findings.push(format!("object {object}: the past lacks {missing:?}"));
    }
    if let Some(extra) = found.iter().find(|trace| expected.binary_search(trace).is_err()) {
        findings.push(format!("object {object}: the past should not have {extra:?}"));
    }
    if expected.len() != found.len() {
        findings.push(format!("object {object}: {} operations in the past, {} expected", found.len(), expected.len()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::hand_made::{good, good_dump, history};
    use super::*;

    #[test]
    fn a_changed_document_is_named() {
        let mut dump = good_dump();
        let row = dump.pictures.get_mut(&(0, 101)).expect("at 101").rows.get_mut("a").expect("a");
        row.doc["output"] = json!(4);
        let findings = check(&history(&good()), &dump);
        assert!(findings.len() == 1 && findings[0].contains("object 0 at 101: a should be"), "{findings:?}");
    }

    #[test]
    fn a_missing_row_and_one_too_many_are_named() {
        let mut dump = good_dump();
        let picture = dump.pictures.get_mut(&(0, 102)).expect("at 102");
        let row = picture.rows.remove("a").expect("a");
        picture.rows.insert("z".into(), row);
        assert_eq!(check(&history(&good()), &dump).len(), 2);
    }

    #[test]
    fn a_shortened_past_is_named() {
        let mut dump = good_dump();
        dump.traces.get_mut(&0).expect("object 0").pop();
        assert!(check(&history(&good()), &dump)[0].contains("the past lacks"));
    }

    #[test]
    fn an_object_that_went_back_is_named() {
        let mut dump = good_dump();
        dump.pictures.remove(&(0, 102));
        dump.newest.insert(0, 101);
        let findings = check(&history(&good()), &dump);
        assert!(findings.iter().any(|finding| finding.contains("above the version")), "{findings:?}");
    }
}
