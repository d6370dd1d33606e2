//! World of the test: a shard, a naive model of it, and a log of the applied commands.

mod replay;
mod units;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use assay_storage_blobs::Blobs;
use assay_storage_disk::{SharedDisk, SimulatedDisk};
use assay_storage_kv::MemoryKv;
use assay_storage_model::command::{Action, Command, Outcome, RequestId, RowOp, Write};
use assay_storage_model::entry::EntryBuilder;
use assay_storage_model::merge::fold;
use assay_storage_model::{LogPosition, ObjectKey, ObjectKind, OrgId, PaginationKey, Xact};
use assay_storage_shard::{ColumnCache, Export, ExportFile, KvKind, Shard, ShardConfig, ShardError, SnapshotError};
use bytes::Bytes;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Row operation that the model remembers.
#[derive(Clone, Debug)]
pub struct Op {
    id: String,
    action: Action,
    root: String,
    span: String,
    doc: Vec<u8>,
}

/// Applied write of the model.
#[derive(Clone, Debug)]
struct Applied {
    xact: Xact,
    object: usize,
    ops: Vec<Op>,
}

/// Live row of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ModelRow {
    key: PaginationKey,
    xact: Xact,
    root: String,
    doc: Vec<u8>,
}

pub struct World {
    pub rng: ChaCha8Rng,
    disk: SharedDisk,
    kv: Arc<MemoryKv>,
    shard: Option<Arc<Shard>>,
    log: Vec<(u64, Bytes)>,
    writes: Vec<Applied>,
    keyed: Vec<(Bytes, RequestId, Xact)>,
    objects: Vec<ObjectKey>,
    floors: Vec<Xact>,
    dropped: HashSet<usize>,
    last: Xact,
    next_id: usize,
    columns: ColumnCache,
    /// Number of segments that were rewritten by an erasure.
    pub erased: usize,
}

impl World {
    pub fn new(seed: u64) -> World {
        let objects = (0..3).map(|n| ObjectKey::new(OrgId(uuid(7)), ObjectKind::ProjectLogs, uuid(n))).collect();
        let mut world = World {
            rng: ChaCha8Rng::seed_from_u64(seed),
            disk: Arc::new(SimulatedDisk::new()),
            kv: Arc::default(),
            shard: None,
            log: Vec::new(),
            writes: Vec::new(),
            keyed: Vec::new(),
            objects,
            floors: vec![Xact::ZERO; 3],
            dropped: HashSet::new(),
            last: Xact::ZERO,
            next_id: 0,
            columns: ColumnCache::new(64 << 10),
            erased: 0,
        };
        world.open();
        world
    }

    pub fn shard(&self) -> &Arc<Shard> {
        self.shard.as_ref().expect("open")
    }

    fn open(&mut self) {
        let dir = PathBuf::from("/shard");
        let blobs = Arc::new(Blobs::open(self.disk.clone(), &PathBuf::from("/blobs")).expect("opens"));
        let kv = KvKind::Given(self.kv.clone());
        let shard = Shard::open(ShardConfig { disk: self.disk.clone(), dir, blobs, kv }).expect("opens");
        let from = shard.applied().position.map_or(0, |position| position.index + 1);
        for (index, entry) in &self.log {
            if *index >= from {
                shard.apply(position(*index), entry).expect("applies again");
            }
        }
        self.shard = Some(shard);
    }

    pub fn restart(&mut self) {
        self.shard = None;
        self.open();
        assert_eq!(self.shard().last(), self.last);
    }

    fn apply(&mut self, command: &[u8]) -> Outcome {
        let mut builder = EntryBuilder::default();
        builder.push(command);
        let entry = builder.finish();
        let index = self.log.len() as u64;
        let mut outcomes = self.shard().apply(position(index), &entry).expect("applies");
        self.log.push((index, entry));
        outcomes.pop().expect("one command, one outcome")
    }

    /// Applies the log of another world.
    pub fn replay(&mut self, other: &World) {
        for (index, entry) in &other.log {
            self.shard().apply(position(*index), entry).expect("applies");
        }
        self.log.clone_from(&other.log);
        self.writes.clone_from(&other.writes);
        self.keyed.clone_from(&other.keyed);
        self.floors.clone_from(&other.floors);
        self.dropped.clone_from(&other.dropped);
        self.last = other.last;
    }

    pub fn write(&mut self) {
        let object = self.rng.random_range(0..self.objects.len());
        let count = self.rng.random_range(1..6);
        let ops: Vec<Op> = (0..count).map(|_| self.random_op(object)).collect();
        let request =
            self.rng.random_bool(0.3).then(|| RequestId { key: self.rng.random(), content: self.rng.random() });
        let assigned = if self.rng.random_bool(0.5) {
            Xact(self.last.0.max(Xact::new(9, 0).0) + self.rng.random_range(0..9))
        } else {
            Xact::ZERO
        };
        let command = encode(self.objects[object], assigned, request, &ops);
        let expected = self.last.next().max(assigned);
        match self.apply(&command) {
            Outcome::Written { xact } => {
                assert!(!self.dropped.contains(&object));
                assert_eq!(xact, expected);
                self.last = xact;
                self.writes.push(Applied { xact, object, ops });
                if let Some(request) = request {
                    self.keyed.push((Bytes::from(command), request, xact));
                }
            }
            other => assert!(other == Outcome::ObjectGone && self.dropped.contains(&object), "{other:?}"),
        }
    }

    /// Applies an invalid command, which must be refused as a whole without an effect on later ones.
    pub fn poison(&mut self) {
        let object = self.rng.random_range(0..self.objects.len());
        let mut ops = vec![self.random_op(object), self.random_op(object)];
        let bad = match self.rng.random_range(0..3) {
            0 => b"[1]".to_vec(),
            1 => b"{\"metadata\":".to_vec(),
            _ => Vec::new(),
        };
        ops.push(Op { action: Action::Merge, doc: bad, ..self.random_op(object) });
        let mut command = encode(self.objects[object], Xact::ZERO, None, &ops);
        if self.rng.random_bool(0.2) {
            command = vec![1, 250, 3]; // a tag that does not exist
        }
        let gone = self.dropped.contains(&object);
        let outcome = self.apply(&command);
        let expected = matches!(outcome, Outcome::Refused { .. }) || gone && outcome == Outcome::ObjectGone;
        assert!(expected, "{outcome:?}");
        assert_eq!(self.shard().last(), self.last);
    }

    fn random_op(&mut self, object: usize) -> Op {
        let known: Vec<(String, String)> = self
            .writes
            .iter()
            .rev()
            .filter(|write| write.object == object)
            .flat_map(|write| write.ops.iter().map(|op| (op.id.clone(), op.root.clone())))
            .take(60)
            .collect();
        let (id, root) = if !known.is_empty() && self.rng.random_bool(0.55) {
            known[self.rng.random_range(0..known.len())].clone()
        } else {
            self.next_id += 1;
            (format!("row-{}", self.next_id), format!("trace-{}", self.next_id / 4))
        };
        let action = match self.rng.random_range(0..10) {
            0..4 => Action::Upsert,
            4..8 => Action::Merge,
            8 => Action::Delete,
            _ => Action::Comment,
        };
        let field = self.rng.random_range(0..4);
        let value: u32 = self.rng.random();
        let said = match (field, value % 7) {
            (0, _) => value.to_string(),
            (1, 0) => "0.5".to_owned(),
            (1, _) => format!("{}.0", value % 100),
            (2, 0) => format!("{{\"deep\":[{value}]}}"),
            (2, 1) => format!("\"text \\\"{value}\\\"\""),
            (2, 2) => "null".to_owned(),
            _ => "true".to_owned(),
        };
        let doc = match action {
            Action::Delete => "{}".to_owned(),
            _ => {
                format!(r#"{{"id":"{id}","root_span_id":"{root}","span_id":"{id}","metadata":{{"f{field}":{said}}}}}"#)
            }
        };
        let span = if action == Action::Comment { format!("comment-{}", value % 3) } else { id.clone() };
        Op { id, action, root, span, doc: doc.into_bytes() }
    }

    /// Repeats a keyed request, which must change nothing. With other content it must be refused.
    pub fn send_again(&mut self) {
        if self.keyed.is_empty() {
            return;
        }
        let (command, request, xact) = self.keyed[self.rng.random_range(0..self.keyed.len())].clone();
        let Command::Write(mut write) = Command::decode(&command).expect("decodes") else { panic!("a write") };
        let gone = self.dropped.iter().any(|object| self.objects[*object] == write.object);
        let other = self.rng.random_bool(0.3);
        if other {
            write.request = Some(RequestId { content: [9; 16], ..request });
        }
        let outcome = self.apply(&Command::Write(write).encode());
        let expected = match (gone, other) {
            (true, _) => Outcome::ObjectGone,
            (false, true) => Outcome::KeyReused { xact },
            (false, false) => Outcome::Duplicate { xact },
        };
        assert_eq!(outcome, expected);
    }

    pub fn advance(&mut self) {
        let to = Xact(self.last.0.max(Xact::new(1, 0).0) + self.rng.random_range(0..5));
        self.apply(&Command::Advance { to }.encode());
        self.last = self.last.max(to);
    }

    pub fn raise_floor(&mut self) {
        let object = self.rng.random_range(0..self.objects.len());
        let floor = self.random_version();
        self.apply(&Command::RaiseFloor { object: self.objects[object], floor }.encode());
        self.floors[object] = self.floors[object].max(floor);
    }

    /// Erases, and checks that each segment is rewritten at most once and that nothing is left to erase.
    pub fn erase(&mut self) {
        let shard = Arc::clone(self.shard());
        let (mut looked, mut written) = (BTreeSet::new(), 0);
        while shard.erase(&mut looked, &|| ()).expect("erases") {
            written += 1;
            assert!(written <= shard.size().segments, "a segment is written anew again and again");
        }
        assert!(!shard.erase(&mut BTreeSet::new(), &|| ()).expect("erases"), "something stayed");
        self.erased += written;
    }

    pub fn drop_object(&mut self) {
        let object = self.rng.random_range(0..self.objects.len());
        self.apply(&Command::DropObject { object: self.objects[object] }.encode());
        self.dropped.insert(object);
    }

    pub fn seal(&mut self) {
        self.shard().seal().expect("seals");
        assert_eq!(self.shard().sealed(), self.shard().applied());
    }

    /// Runs one step of settling.
    pub fn settle(&mut self) {
        self.shard().settle(&|| {}).expect("settles");
    }

    pub fn compact(&mut self) {
        while self.shard().compact(&|| {}).expect("compacts") {}
        assert!(self.shard().size().segments <= assay_storage_shard::NEIGHBOURS_MAX + 1, "{:?}", self.shard().size());
    }

    /// Copies the sealed state, as another replica would fetch it.
    fn fetched(&self) -> (Export, PathBuf) {
        let export = self.shard().export().expect("exports");
        let incoming = PathBuf::from("/incoming");
        self.disk.create_dir_all(&incoming).expect("makes");
        for file in &export.files {
            let bytes = assay_storage_disk::read_whole(self.disk.as_ref(), &file.path, file.length).expect("reads");
            assay_storage_disk::replace_whole(self.disk.as_ref(), &incoming.join(&file.name), &bytes).expect("writes");
        }
        (export, incoming)
    }

    /// Checks that damage anywhere in a snapshot is detected before anything changes.
    pub fn refuse_damaged_snapshots(&mut self) {
        const BIT: u8 = 1;
        let (export, incoming) = self.fetched();
        assert!(!export.files.is_empty());
        let check = |kept: &[u8]| self.shard().check_snapshot(kept, &incoming);
        assert_eq!(check(&export.kept), Ok(()));
        let mut kept = export.kept.clone();
        kept[export.kept.len() / 2] ^= BIT;
        assert!(matches!(check(&kept), Err(SnapshotError::Damaged(_))));
        for ExportFile { name, length, .. } in &export.files {
            let path = incoming.join(name);
            for at in [0, length / 3, length / 2, length - 1] {
                let flip = || {
                    let file = self.disk.open(&path).expect("opens");
                    let mut byte = [0];
                    file.read_at(at, &mut byte).expect("reads");
                    file.write_at(at, &[byte[0] ^ BIT]).expect("writes");
                };
                flip();
                assert!(matches!(check(&export.kept), Err(SnapshotError::Damaged(_))), "{name} at {at}");
                flip();
            }
        }
        assert_eq!(check(&export.kept), Ok(()));
        self.disk.remove(&incoming.join(&export.files[0].name)).expect("removes");
        assert!(matches!(check(&export.kept), Err(SnapshotError::Damaged(_))));
    }

    /// Installs a copy of the sealed state, and applies the log after it again.
    pub fn install_own_snapshot(&mut self) {
        let (export, incoming) = self.fetched();
        let from = export.applied.position.map_or(0, |position| position.index + 1);
        assert_eq!(self.shard().check_snapshot(&export.kept, &incoming), Ok(()));
        self.shard().install(&export.kept, &incoming).expect("installs");
        for (index, entry) in &self.log {
            if *index >= from {
                self.shard().apply(position(*index), entry).expect("applies again");
            }
        }
    }

    fn random_version(&mut self) -> Xact {
        if self.writes.is_empty() {
            return Xact::ZERO;
        }
        self.writes[self.rng.random_range(0..self.writes.len())].xact
    }

    fn model_at(&self, object: usize, v: Xact) -> BTreeMap<String, ModelRow> {
        let mut rows: BTreeMap<String, ModelRow> = BTreeMap::new();
        for write in self.writes.iter().filter(|write| write.object == object && write.xact <= v) {
            for (index, op) in (0_u16..).zip(&write.ops) {
                let before = rows.get(&op.id).cloned();
                let row = op.as_row();
                match op.action {
                    Action::Comment => {}
                    Action::Delete => {
                        rows.remove(&op.id);
                    }
                    Action::Upsert | Action::Merge => {
                        let base = if op.action == Action::Merge { before.as_ref() } else { None };
                        let doc = fold(base.map(|row| &row.doc[..]), &row).expect("folds");
                        let root = base.map_or_else(|| op.root.clone(), |base| base.root.clone());
                        let key = before.map_or_else(|| PaginationKey::new(write.xact, index), |before| before.key);
                        rows.insert(op.id.clone(), ModelRow { key, xact: write.xact, root, doc });
                    }
                }
            }
        }
        rows
    }

    pub fn check_something(&mut self) {
        let object = self.rng.random_range(0..self.objects.len());
        let v = self.random_version();
        self.check(object, v);
    }

    pub fn check_everything(&mut self) {
        for object in 0..self.objects.len() {
            self.check(object, self.last);
            for _ in 0..6 {
                let v = self.random_version();
                self.check(object, v);
            }
        }
    }

    fn check(&mut self, object: usize, v: Xact) {
        let view = self.shard().view();
        let key = self.objects[object];
        if self.dropped.contains(&object) {
            assert!(matches!(view.get(&key, "row-1", v), Err(ShardError::ObjectGone)));
            return;
        }
        if v < self.floors[object] {
            assert!(matches!(view.page(&key, v, None, 1), Err(ShardError::Past { .. })));
            return;
        }
        let above = Xact(self.last.0 + 1);
        assert!(matches!(view.page(&key, above, None, 1), Err(ShardError::NotYet { .. })));
        let expected = self.model_at(object, v);
        let all = view.all(&key, v).expect("reads");
        let found: BTreeMap<String, ModelRow> = all.iter().map(|row| (row.id.to_string(), model_row(row))).collect();
        assert_eq!(found.len(), all.len(), "no id twice");
        assert_eq!(found, expected, "object {object} at {v:?}");
        assert!(all.is_sorted_by(|a, b| a.key > b.key));
        if v == self.last {
            assert_eq!(view.object(&key).unwrap_or_default().rows as usize, expected.len());
        }
        for _ in 0..5 {
            let id = format!("row-{}", self.rng.random_range(0..self.next_id + 2));
            let row = view.get(&key, &id, v).expect("reads");
            assert_eq!(row.map(|row| model_row(&row)), expected.get(&id).cloned(), "{id} of {object} at {v:?}");
        }
        units::check(&mut self.rng, &self.columns, &view, &key, v, &all);
        self.check_pages(&view, &key, v, &all);
        self.check_traces(&view, &key, v, &expected);
        self.check_events(&view, &key, object, v);
    }

    fn check_pages(
        &mut self,
        view: &assay_storage_shard::View,
        key: &ObjectKey,
        v: Xact,
        all: &[assay_storage_shard::Row],
    ) {
        let limit = self.rng.random_range(1..9);
        let mut before = None;
        let mut paged = Vec::new();
        loop {
            let page = view.page(key, v, before, limit).expect("reads");
            let Some(last) = page.last() else { break };
            before = Some(last.key);
            paged.extend(page);
        }
        assert_eq!(paged, all, "pages put together are the whole");
    }

    fn check_traces(
        &mut self,
        view: &assay_storage_shard::View,
        key: &ObjectKey,
        v: Xact,
        expected: &BTreeMap<String, ModelRow>,
    ) {
        let limit = self.rng.random_range(1..5);
        let mut before = None;
        let mut seen = BTreeMap::new();
        loop {
            let page = view.traces(key, v, before, limit).expect("reads");
            assert!(page.traces.len() <= limit);
            for trace in page.traces {
                let ids: HashSet<String> = trace.rows.iter().map(|row| row.id.to_string()).collect();
                assert_eq!(view.trace(key, trace.root_span_id.as_str(), v).expect("reads"), trace.rows);
                assert!(seen.insert(trace.root_span_id.to_string(), ids).is_none(), "a trace is on one page only");
            }
            match page.next {
                Some(next) => before = Some(next),
                None => break,
            }
        }
        let mut wanted: BTreeMap<String, HashSet<String>> = BTreeMap::new();
        for (id, row) in expected {
            wanted.entry(row.root.clone()).or_default().insert(id.clone());
        }
        assert_eq!(seen, wanted, "whole traces at {v:?}");
    }

    fn check_events(&mut self, view: &assay_storage_shard::View, key: &ObjectKey, object: usize, v: Xact) {
        // History below a floor may be gone. Without a floor it is complete.
        if self.floors[object] > Xact::ZERO {
            return;
        }
        let id = format!("row-{}", self.rng.random_range(0..self.next_id + 2));
        let mut expected: Vec<(Xact, Vec<u8>)> = Vec::new();
        let mut live = false;
        let mut comments: BTreeMap<String, (Xact, Vec<u8>)> = BTreeMap::new();
        for write in self.writes.iter().filter(|write| write.object == object && write.xact <= v) {
            for op in write.ops.iter().filter(|op| op.id == id) {
                match op.action {
                    Action::Comment => {
                        comments.insert(op.span.clone(), (write.xact, op.doc.clone()));
                    }
                    Action::Delete if !live => {}
                    Action::Delete => {
                        live = false;
                        expected.push((write.xact, Vec::new()));
                    }
                    Action::Upsert | Action::Merge => {
                        live = true;
                        expected.push((write.xact, op.doc.clone()));
                    }
                }
            }
        }
        let history = view.history(key, &id, v).expect("reads");
        let written = view.written(&history.iter().collect::<Vec<_>>()).expect("reads");
        let found: Vec<(Xact, Vec<u8>)> =
            history.iter().zip(&written).rev().map(|(write, what)| (write.xact, what.doc.to_vec())).collect();
        assert_eq!(found, expected, "what was written to {id} until {v:?}, in its order");
        let orders: HashSet<_> = history.iter().map(|write| (write.xact, write.key, write.nth)).collect();
        assert_eq!(orders.len(), history.len(), "each write to {id} has a place of its own");
        assert!(
            written.iter().all(|what| !what.root_span_id.is_empty() && what.is_root == Some(true)),
            "{id} at {v:?}"
        );
        expected.extend(comments.into_values());
        expected.sort();
        let events = view.events(key, &id, v).expect("reads");
        let mut found: Vec<(Xact, Vec<u8>)> = events.iter().map(|event| (event.xact, event.written.to_vec())).collect();
        found.sort();
        assert_eq!(found, expected, "events of {id} at {v:?}");
        let notes = view.notes(key, &[&id, "nobody"], v).expect("reads").remove(&id).unwrap_or_default();
        let mut hanging: Vec<_> = events.iter().filter(|event| event.action == Action::Comment).cloned().collect();
        hanging.sort_by_key(|event| event.xact);
        assert_eq!(notes.comments, hanging, "comments on {id} at {v:?}");
    }
}

impl Op {
    fn as_row(&self) -> RowOp<'_> {
        RowOp {
            id: &self.id,
            action: self.action,
            span_id: &self.span,
            root_span_id: &self.root,
            is_root: true,
            created: 0,
            doc: &self.doc,
            rules: b"",
            audit: b"",
        }
    }
}

fn model_row(row: &assay_storage_shard::Row) -> ModelRow {
    ModelRow { key: row.key, xact: row.xact, root: row.root_span_id.to_string(), doc: row.doc.to_vec() }
}

fn encode(object: ObjectKey, assigned: Xact, request: Option<RequestId>, ops: &[Op]) -> Vec<u8> {
    let rows = ops.iter().map(Op::as_row).collect();
    Command::Write(Write { object, assigned, request, rows }).encode()
}

fn position(index: u64) -> LogPosition {
    LogPosition { term: 1, replica: 1, index }
}

fn uuid(n: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(n)
}
