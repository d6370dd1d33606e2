//! A write of the stream in a client's form: the JSON body of an insert, and the ids in its response.

use bytes::Bytes;

use super::row::Part;
use super::stream::Planned;

/// JSON text around the events of a body.
const OPENING: &[u8] = b"{\"events\":[";
const CLOSING: &[u8] = b"]}";

/// The body of one insert of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedEvents {
    pub body: Bytes,
    /// The rows the events are about, in their order: what the answer must name.
    pub ids: Vec<String>,
    /// Events that merge into a row of an earlier body.
    pub merges: u32,
}

impl GeneratedEvents {
    pub(super) fn new(planned: &[Planned], arena: &[u8]) -> GeneratedEvents {
        let mut body = Vec::with_capacity(arena.len() + planned.len() + OPENING.len() + CLOSING.len());
        body.extend_from_slice(OPENING);
        for (number, event) in planned.iter().enumerate() {
            if number > 0 {
                body.push(b',');
            }
            body.extend_from_slice(&arena[event.doc.clone()]);
        }
        body.extend_from_slice(CLOSING);
        GeneratedEvents {
            body: Bytes::from(body),
            ids: planned.iter().map(|event| event.row.id().to_owned()).collect(),
            merges: planned.iter().filter(|event| event.part == Part::Finish).count() as u32,
        }
    }

    /// Events, merges among them.
    pub fn operations(&self) -> u64 {
        self.ids.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use assay_storage_model::ObjectKind;
    use assay_storage_model::command::Action;
    use assay_storage_model::event::{PrepareContext, PreparedRow, prepare};
    use assay_storage_model::merge::{fold, fold_batch};
    use serde_json::Value;

    use super::*;
    use crate::generate::{ObjectStream, Profile, ROWS_PER_WRITE, Workload};

    fn bodies(profile: Profile, merges: f64, count: usize) -> (Vec<GeneratedEvents>, ObjectStream) {
        let mut stream = Workload::new(7, profile, merges).stream(1);
        ((0..count).map(|_| stream.next_events()).collect(), stream)
    }

    fn events(body: &GeneratedEvents) -> Vec<Value> {
        let parsed: Value = serde_json::from_slice(&body.body).expect("JSON");
        parsed["events"].as_array().expect("a list of events").clone()
    }

    /// The events as the product's own gate lets them through.
    fn prepared(body: &GeneratedEvents) -> Vec<PreparedRow> {
        let mut new_id = || panic!("every event names its row");
        let mut context = PrepareContext { now_micros: 0, new_id: &mut new_id };
        let each = events(body).into_iter().enumerate();
        let rows = each.map(|(at, event)| prepare(ObjectKind::ProjectLogs, at, event, &mut context));
        rows.collect::<Result<_, _>>().expect("events that are let in")
    }

    #[test]
    fn events_applied_by_the_rules_of_merging_give_what_is_expected() {
        for profile in [Profile::Even, Profile::Mixed] {
            let (written, stream) = bodies(profile, 0.5, 12);
            let mut rows: BTreeMap<String, Vec<u8>> = BTreeMap::new();
            for body in &written {
                for op in fold_batch(prepared(body)).expect("rows that fold") {
                    let base = rows.get(&op.id).map(Vec::as_slice);
                    assert_eq!(
                        base.is_some(),
                        op.action == Action::Merge,
                        "each row starts once, and before its merge"
                    );
                    let doc = fold(base, &op.as_op()).expect("a document");
                    rows.insert(op.id, doc);
                }
            }
            let expected = stream.expected();
            assert_eq!(expected.rows(), rows.len() as u64);
            assert!(expected.unfinished() > 0);
            for number in 0..expected.rows() {
                let row = expected.row(number).expect("below the number of rows");
                let [found, wanted] = [rows[row.id()].clone(), expected.doc(number).expect("exists")]
                    .map(|doc| serde_json::from_slice::<Value>(&doc).expect("JSON"));
                assert_eq!(found, wanted);
            }
        }
    }

    #[test]
    fn a_body_names_its_rows_in_order_and_says_which_are_merges() {
        let (written, _) = bodies(Profile::Even, 0.5, 6);
        assert!(written.iter().any(|body| body.merges > 0));
        for body in &written {
            let events = events(body);
            assert_eq!((events.len(), body.operations()), (ROWS_PER_WRITE, ROWS_PER_WRITE as u64));
            assert!(events.iter().zip(&body.ids).all(|(event, id)| event["id"] == id.as_str()));
            let merges = events.iter().filter(|event| event["_is_merge"] == true).count();
            assert_eq!(merges as u32, body.merges);
            assert!(events.iter().all(|event| event.get("is_root").is_none()), "no client says is_root");
        }
    }

    #[test]
    fn bodies_and_commands_are_two_forms_of_the_same_writes() {
        let workload = Workload::new(7, Profile::Even, 0.5);
        let (mut commands, mut bodies) = (workload.stream(1), workload.stream(1));
        for _ in 0..20 {
            let (command, body) = (commands.next_write(), bodies.next_events());
            assert_eq!((command.operations, command.merges), (body.ids.len() as u32, body.merges));
        }
        assert_eq!(commands.rows(), bodies.rows());
    }
}
