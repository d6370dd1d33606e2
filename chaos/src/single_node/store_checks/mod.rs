//! Checkers: each compares a history with the state read afterwards and reports contradictions.

mod coverage;
mod exactly_once;
mod fold;
mod no_loss;
mod no_phantom;
mod order;
mod session;
mod stability;

use std::collections::BTreeMap;

use crate::single_node::dump::Dump;
use crate::single_node::worker_history::WorkerHistory;

pub use coverage::Coverage;

/// Findings shown of one checker; the rest are counted.
const SHOWN_MAX: usize = 8;

type StoreChecker = fn(&WorkerHistory, &Dump) -> Vec<String>;

const CHECKERS: [(&str, StoreChecker); 7] = [
    ("no loss", no_loss::check),
    ("no phantom", no_phantom::check),
    ("order", order::check),
    ("exactly once", exactly_once::check),
    ("fold", fold::check),
    ("session", session::check),
    ("stability", stability::check),
];

/// Returns the findings of all checkers, each line with the checker's name.
pub fn all(history: &WorkerHistory, dump: &Dump) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, checker) in CHECKERS {
        let found = checker(history, dump);
        findings.extend(found.iter().take(SHOWN_MAX).map(|finding| format!("{name}: {finding}")));
        if found.len() > SHOWN_MAX {
            findings.push(format!("{name}: and {} more", found.len() - SHOWN_MAX));
        }
    }
    findings
}

/// Every id under which a write left its traces; one if all is well.
fn xacts_of_writes(dump: &Dump) -> BTreeMap<&str, Vec<(u8, u64)>> {
    let mut found: BTreeMap<&str, Vec<(u8, u64)>> = BTreeMap::new();
    for (object, traces) in &dump.traces {
        for trace in traces {
            let places = found.entry(&trace.write).or_default();
            if !places.contains(&(*object, trace.xact)) {
                places.push((*object, trace.xact));
            }
        }
    }
    found
}

/// Writes of unknown outcome that the dump shows: from here on they must stay.
pub fn newly_seen(history: &WorkerHistory, dump: &Dump) -> Vec<(String, u64)> {
    let open = |name: &str| history.writes.get(name).is_some_and(|write| write.xacts().next().is_none());
    let places = xacts_of_writes(dump).into_iter();
    places
        .filter(|(name, places)| places.len() == 1 && open(name))
        .map(|(name, places)| (name.to_owned(), places[0].1))
        .collect()
}

#[cfg(test)]
mod hand_made {
    //! A small correct history with its dump, of which checkers get corrupted copies.

    use assay_storage_model::command::Action;

    use crate::single_node::document_model::ModelObject;
    use crate::single_node::documents::RowSpec;
    use crate::single_node::dump::{Dump, ObjectDump};
    use crate::single_node::worker_history::{Event, WorkerEvent, WorkerHistory};

    pub fn row(id: &str, action: Action, value: u32) -> RowSpec {
        RowSpec { id: id.into(), action, own: format!("span-{id}"), root: "r".into(), field: 0, value, pad: 0, rule: 0 }
    }

    pub fn invoke(op: &str, request: Option<&str>, rows: &[RowSpec]) -> WorkerEvent {
        let request = request.map(str::to_owned);
        WorkerEvent::Invoke { op: op.into(), client: 0, object: 0, request, other: false, rows: rows.to_vec() }
    }

    pub fn ok(op: &str, xact: u64, again: bool) -> WorkerEvent {
        WorkerEvent::Ok { op: op.into(), xact, again }
    }

    pub fn history(said: &[WorkerEvent]) -> WorkerHistory {
        let events: Vec<Event> = said.iter().map(|said| Event { t: 0, said: said.clone() }).collect();
        WorkerHistory::of(&events)
    }

    /// Two writes acknowledged, one re-sent, one refused, one unknown that is not there.
    pub fn good() -> Vec<WorkerEvent> {
        let one = [row("a", Action::Upsert, 1), row("b", Action::Merge, 2)];
        let two = [row("a", Action::Merge, 3), row("b", Action::Delete, 0)];
        vec![
            invoke("1", Some("1"), &one),
            ok("1", 101, false),
            invoke("2", None, &two),
            ok("2", 102, false),
            invoke("3", Some("1"), &one),
            ok("3", 101, true),
            invoke("4", None, &one),
            WorkerEvent::Refused { op: "4".into(), why: "busy".into() },
            invoke("5", None, &one),
        ]
    }

    /// Returns the expected dump after the given writes, `(name, xact, rows)`.
    pub fn dump_of(writes: &[(&str, u64, &[RowSpec])]) -> Dump {
        let mut dump = Dump::default();
        let mut object = ModelObject::default();
        for (name, xact, rows) in writes {
            object.write(name, *xact, rows);
            let picture = ObjectDump { digest: format!("digest-{xact}"), rows: object.rows.clone() };
            dump.pictures.insert((0, *xact), picture);
            dump.newest.insert(0, *xact);
        }
        dump.traces.insert(0, object.traces);
        dump
    }

    pub fn good_dump() -> Dump {
        let one = [row("a", Action::Upsert, 1), row("b", Action::Merge, 2)];
        let two = [row("a", Action::Merge, 3), row("b", Action::Delete, 0)];
        dump_of(&[("1", 101, &one), ("2", 102, &two)])
    }

    #[test]
    fn a_good_history_is_found_good_by_all() {
        assert_eq!(super::all(&history(&good()), &good_dump()), Vec::<String>::new());
    }
}
