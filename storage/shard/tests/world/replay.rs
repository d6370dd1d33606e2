//! Replay of an object's writes to another shard, where every version must read the same.

use assay_storage_model::Xact;
use assay_storage_model::command::{Command, Outcome, RowOp, Write};
use assay_storage_shard::WrittenOp;
use rand::Rng;

use super::World;

impl World {
    /// Replays each object write by write, in parts of random sizes.
    pub fn replay_into(&mut self, other: &mut World) {
        let at = self.last;
        for number in 0..self.objects.len() {
            if self.dropped.contains(&number) {
                continue;
            }
            let object = self.objects[number];
            let (mut told, mut from, mut done): (Vec<WrittenOp>, Xact, usize) = (Vec::new(), Xact::ZERO, 0);
            loop {
                let view = self.shard().view();
                let found = view.past(&object, from, at).expect("is told");
                assert!(found.is_sorted_by_key(|op| op.xact));
                assert!(found.iter().take(done).all(|op| op.xact == from), "what was told is told again first");
                let part = &found[done..];
                let part = &part[..part.len().min(self.rng.random_range(1..7))];
                let Some(last) = part.last() else { break };
                let before = if last.xact == from { done } else { 0 };
                done = before + part.iter().filter(|op| op.xact == last.xact).count();
                from = last.xact;
                told.extend(view.past_ops(part).expect("reads"));
            }
            self.compare_replayed(other, number, &told);
        }
    }

    fn compare_replayed(&self, other: &mut World, number: usize, told: &[WrittenOp]) {
        let object = self.objects[number];
        for write in told.chunk_by(|a, b| a.xact == b.xact) {
            let rows = write.iter().map(|op| RowOp {
                id: op.id.as_str(),
                action: op.action,
                span_id: op.span_id.as_str(),
                root_span_id: op.root_span_id.as_str(),
                is_root: op.is_root,
                created: op.created,
                doc: &op.doc,
                rules: &op.rules,
                audit: &op.audit,
            });
            let command = Write { object, assigned: Xact::ZERO, request: None, rows: rows.collect() };
            let there = write[0].xact;
            let Outcome::Written { xact: here } = other.apply(&Command::Write(command).encode()) else {
                panic!("the write {there} is refused")
            };
            other.last = here;
            let rows = |world: &World, at| {
                let rows = world.shard().view().all(&object, at).expect("reads");
                let read = |row: assay_storage_shard::Row| {
                    let ids = [&row.id, &row.span_id, &row.root_span_id].map(|id| id.as_str().to_owned());
                    (ids, row.doc, row.is_root, row.created)
                };
                rows.into_iter().map(read).collect::<Vec<_>>()
            };
            // Versions below a floor have no readers, and their replay is incomplete.
            if there >= self.floors[number] {
                assert_eq!(rows(self, there), rows(other, here), "version {there} of {object}");
            }
        }
        if self.floors[number] > Xact::ZERO {
            return;
        }
        let notes = |world: &World| {
            let view = world.shard().view();
            let mut ids: Vec<&str> = told.iter().map(|op| op.id.as_str()).collect();
            ids.sort_unstable();
            ids.dedup();
            let notes = view.notes(&object, &ids, world.last).expect("reads");
            let mut notes: Vec<_> = notes
                .into_iter()
                .map(|(id, notes)| {
                    let of = |events: Vec<assay_storage_shard::Event>| {
                        events.into_iter().map(|event| (event.own_id, event.written, event.audit)).collect::<Vec<_>>()
                    };
                    (id, of(notes.comments), of(notes.audits))
                })
                .collect();
            notes.sort_by(|a, b| a.0.cmp(&b.0));
            notes
        };
        assert_eq!(notes(self), notes(other), "notes on rows of {object}");
    }
}
