//! Rows of a test in a shard: written with the keys and transactions of the test, and kept in memory, in segments of
//! either format, or mixed.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_node_btql::bound::{Bound, Rows};
use assay_node_btql::columns::{Kind, Named};
use assay_node_engine::price::{Price, Prices};
use assay_node_engine::{
    Ask, EngineError, LeafRows, Limit, Memory, Partial, PartialFormat, Position, RowMerge, Shared, Source, Table,
    Watch, Workers, finish, innermost, last_of, lowest, run,
};
use assay_node_reviews::Blindness;
use assay_storage_blobs::Blobs;
use assay_storage_disk::{SharedDisk, SimulatedDisk};
use assay_storage_kv::MemoryKv;
use assay_storage_model::command::{Action, Command, RowOp, Write};
use assay_storage_model::entry::EntryBuilder;
use assay_storage_model::event::parse_created;
use assay_storage_model::{LogPosition, ObjectKey, ObjectKind, OrgId, PaginationKey, Xact};
use assay_storage_shard::{ColumnCache, KvKind, Shard, ShardConfig, View};
use assay_test_btql::{Cursor, Dataset, Fields, Object, QueryAnswer};
use serde_json::{Map, Value as Json};
use uuid::Uuid;

/// Location of rows at the time of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    InMemory,
    /// Segments of documents.
    Sealed,
    /// Segments of columns.
    Settled,
    /// Some in columns, some in documents, some in memory.
    Everywhere,
}

pub const ALL_KEPT: [Storage; 4] = [Storage::InMemory, Storage::Sealed, Storage::Settled, Storage::Everywhere];

/// Columns that rows of one object share.
const OF_OBJECTS: [&str; 6] = ["org_id", "project_id", "log_id", "experiment_id", "dataset_id", "prompt_session_id"];
/// Columns that a system fills in and documents do not have.
const OF_SYSTEM: [&str; 4] = ["_pagination_key", "_xact_id", "comments", "audit_data"];
const BYTES_MAX: usize = 256 << 20;
/// Bytes of the parts of a streamed result: few rows each.
const STREAMED_BYTES: usize = 300;
/// Upper bound of the rows of a page that a leaf without a stream sends.
const PAGE_ROWS: u64 = 7;
const SEED: u64 = 7;

pub struct World {
    /// One, or one for each object.
    shards: Vec<Arc<Shard>>,
    objects: Vec<Placed>,
    shared: Shared,
    /// Ends of pages, by their cursors.
    ends: RefCell<BTreeMap<String, Position>>,
    names: Vec<(Vec<String>, Kind)>,
    /// Bytes of all parts of the last answer.
    part_bytes: Cell<usize>,
    /// What its reader may not see yet.
    blind: Option<Arc<Blindness>>,
}

struct Placed {
    shard: usize,
    key: ObjectKey,
    constants: Arc<Vec<(&'static str, String)>>,
}

/// One write: rows that have a transaction in common.
type Writes = BTreeMap<u64, Vec<(ObjectKey, Fields)>>;

impl World {
    /// `apart` puts each object on a shard of its own.
    pub fn new(data: &Dataset, kept: Storage, apart: bool) -> World {
        let world = World::empty(data, apart);
        for (number, shard) in world.shards.iter().enumerate() {
            let of_shard = world.objects.iter().zip(&data.objects).filter(|(placed, _)| placed.shard == number);
            fill(shard, of_shard, kept);
        }
        world
    }

    /// Returns the world as a reader sees it who may not see all.
    pub fn read_by(self, reader: Blindness) -> World {
        World { blind: Some(Arc::new(reader)), ..self }
    }

    /// Creates a world with the objects and none of their rows.
    pub fn empty(data: &Dataset, apart: bool) -> World {
        let shards = if apart { data.objects.len() } else { 1 };
        let shards: Vec<Arc<Shard>> = (0..shards).map(|_| empty_shard()).collect();
        let placed = |(number, object): (usize, &Object)| Placed {
            shard: if apart { number } else { 0 },
            key: ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::ProjectLogs, Uuid::from_u128(number as u128)),
            constants: Arc::new(constants(object)),
        };
        let objects: Vec<Placed> = data.objects.iter().enumerate().map(placed).collect();
        let prices = data.prices.iter().map(|(model, price)| {
            let assay_test_btql::Price { input, output, cached, cache_write } = *price;
            (model.clone(), Price { input, output, cached, cache_write })
        });
        let shared = Shared {
            cache: ColumnCache::new(64 << 20),
            prices: Arc::new(Prices::of(prices)),
            workers: Workers::new(2),
        };
        let named = |object: &Object| (object.names.clone(), object.kind);
        let names = data.objects.iter().map(named).collect();
        World { shards, objects, shared, ends: RefCell::default(), names, part_bytes: Cell::default(), blind: None }
    }

    /// Writes to an object, one transaction after the other, each with what it does.
    pub fn write(&self, object: usize, transactions: &[(u64, Vec<RowOp<'_>>)], kept: Storage) {
        let Placed { shard, key, .. } = &self.objects[object];
        let shard = &self.shards[*shard];
        for (nth, (xact, rows)) in transactions.iter().enumerate() {
            let before = shard.applied().position.map_or(0, |position| position.index + 1);
            apply(shard, before, Write { object: *key, assigned: Xact(*xact), request: None, rows: rows.clone() });
            keep(shard, kept, nth, transactions.len());
        }
    }

    /// All rows, so many to a page.
    pub fn pages(&self, bound: &Bound, size: u64) -> Result<Vec<Vec<Json>>, String> {
        let mut bound = bound.clone();
        bound.limit = Some(size);
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let table = self.ask(&bound, after, None).map_err(|error| error.to_string())?;
            assert!(table.len as u64 <= size);
            all.extend(table.rows().map(|row| json_row(&row)));
            match table.end {
                Some(end) => after = Some(end),
                None => return Ok(all),
            }
        }
    }

    /// Returns all rows in pages limited by bytes, and the bytes of the parts of the first page.
    pub fn pages_of_bytes(&self, bound: &Bound, bytes: usize) -> Result<(Vec<Vec<Json>>, usize), EngineError> {
        let (mut all, mut after, mut first) = (Vec::new(), None, None);
        loop {
            let table = self.ask(bound, after, Some(bytes))?;
            all.extend(table.rows().map(|row| json_row(&row)));
            let first = *first.get_or_insert(self.part_bytes.get());
            match table.end {
                Some(end) => after = Some(end),
                None => return Ok((all, first)),
            }
        }
    }

    /// Runs the query and returns the result in the interpreter's form.
    pub fn answer(&self, bound: &Bound) -> Result<QueryAnswer, String> {
        let after = innermost(bound).cursor.as_deref().map(|cursor| self.position(cursor)).transpose()?;
        let table = self.ask(bound, after, None).map_err(|error| error.to_string())?;
        let cursor = table.end.map(|end| {
            let key = PaginationKey(end.place).to_string();
            let text = assay_test_btql::cursor_of(&key).expect("a key");
            self.ends.borrow_mut().insert(text.clone(), end);
            Cursor { text, key }
        });
        let rows: Vec<Vec<Json>> = table.rows().map(|row| json_row(&row)).collect();
        if bound.has_pages() {
            let streamed =
                self.in_parts(bound, after, STREAMED_BYTES, Leaf::stream).map_err(|error| error.to_string())?;
            assert_eq!(streamed, rows, "rows that leaves stream are those of one part");
            let paged = self.paged(bound, after, STREAMED_BYTES).map_err(|error| error.to_string())?;
            assert_eq!(paged, rows, "rows that leaves send page by page are those of one part");
            let untold = self.in_parts(bound, after, STREAMED_BYTES, Leaf::older_pages);
            let untold = untold.map_err(|error| error.to_string())?;
            assert_eq!(untold, rows, "rows of leaves that do not tell their last page are those of one part");
        }
        Ok(QueryAnswer { columns: table.columns.to_vec(), rows, cursor })
    }

    /// Returns the full position of a page that ended here, or the one in the cursor's text.
    fn position(&self, cursor: &str) -> Result<Position, String> {
        if let Some(known) = self.ends.borrow().get(cursor) {
            return Ok(Position { object: None, ..*known });
        }
        let key = PaginationKey::parse(&assay_test_btql::key_of_cursor(cursor)?).expect("a key");
        Ok(Position { place: key.0, xact: 0, object: None, write: None })
    }

    fn ask(&self, bound: &Bound, after: Option<Position>, bytes: Option<usize>) -> Result<Table, EngineError> {
        let inner = innermost(bound);
        let watch = watch();
        let sources = self.sources(inner)?;
        let until = self.last_of_sample(inner, &sources, &watch)?;
        let ask = Ask { limit: inner.limit, bytes, after, until, seed: SEED };
        let mut partials = Vec::new();
        self.part_bytes.set(0);
        // As they come from other nodes, of one release or another.
        let mut came = |partial: Partial, format: PartialFormat| {
            let partial = partial.encode(format)?;
            self.part_bytes.update(|bytes| bytes + partial.len());
            partials.push(Partial::decode(inner, SEED, &partial.into())?);
            Ok::<_, EngineError>(())
        };
        for (nth, sources) in sources.iter().enumerate() {
            if nth % 2 == 1 {
                came(run(inner, sources, &self.shared, &watch, &ask)?, PartialFormat::Values)?;
            } else if bound.has_pages() {
                came(run(inner, sources, &self.shared, &watch, &ask)?, PartialFormat::Columns)?;
            } else {
                // A result without pages comes in parts as well.
                let mut leaf = LeafRows::new(sources.clone(), Ask { bytes: Some(STREAMED_BYTES), ..ask });
                // The first part is there always.
                loop {
                    came(leaf.next(inner, &self.shared, &watch)?, PartialFormat::Columns)?;
                    if leaf.has_ended() {
                        break;
                    }
                }
            }
        }
        let limit = Limit { rows: bound.limit, bytes: bytes.unwrap_or(usize::MAX) };
        finish(bound, partials, &watch, &limit, SEED)
    }

    /// Returns the rows of a result that has pages, as its leaves send them page by page.
    pub fn paged(&self, bound: &Bound, after: Option<Position>, bytes: usize) -> Result<Vec<Vec<Json>>, EngineError> {
        self.in_parts(bound, after, bytes, Leaf::pages)
    }

    /// Returns the rows of a result that has pages, as its leaves send them in short parts.
    fn in_parts(
        &self,
        bound: &Bound,
        after: Option<Position>,
        bytes: usize,
        leaf: fn(Vec<Source>, Ask) -> Leaf,
    ) -> Result<Vec<Vec<Json>>, EngineError> {
        let watch = watch();
        let sources = self.sources(bound)?;
        let until = self.last_of_sample(bound, &sources, &watch)?;
        let ask = Ask { limit: bound.limit, bytes: Some(bytes), after, until, seed: SEED };
        let mut leaves: Vec<Leaf> = sources.into_iter().map(|sources| leaf(sources, ask)).collect();
        let mut merge = RowMerge::new(bound);
        for (number, _) in leaves.iter().enumerate() {
            assert_eq!(merge.add(), number);
        }
        let (mut all, mut left) = (Vec::new(), bound.limit);
        while !merge.has_ended() && left != Some(0) {
            for (number, leaf) in leaves.iter_mut().enumerate() {
                if merge.needs(number) {
                    let (part, is_last) = leaf.next(bound, &self.shared, &watch)?;
                    let part = Partial::decode(bound, SEED, &part.into())?;
                    let is_last = part.ends_input(is_last);
                    let last = merge.push(number, part, bound)?;
                    leaf.go_on(last, left);
                    if is_last {
                        merge.end(number);
                    }
                }
            }
            if !merge.needs_any() {
                let table = merge.take(bound, &Limit { rows: left, bytes })?;
                all.extend(table.rows().map(|row| json_row(&row)));
                left = left.map(|left| left - table.counted);
            }
        }
        Ok(all)
    }

    fn last_of_sample(
        &self,
        bound: &Bound,
        sources: &[Vec<Source>],
        watch: &Watch,
    ) -> Result<Option<assay_node_engine::Hash>, EngineError> {
        let Some((assay_node_btql::ast::Amount::Count(count), _)) = bound.sample else { return Ok(None) };
        let hashes = sources.iter().map(|sources| lowest(bound, sources, &self.shared, watch));
        Ok(last_of(hashes.collect::<Result<Vec<_>, _>>()?.concat(), count))
    }

    /// The objects that a query means, by their shards.
    fn sources(&self, bound: &Bound) -> Result<Vec<Vec<Source>>, EngineError> {
        let Rows::Objects { kind, named, names, .. } = &bound.rows else { return Ok(Vec::new()) };
        let names = if *named == Named::InProject { &names[1..] } else { &names[..] };
        let views: Vec<Arc<View>> = self.shards.iter().map(|shard| Arc::new(shard.view())).collect();
        let mut sources: Vec<Vec<Source>> = views.iter().map(|_| Vec::new()).collect();
        let mut met = Vec::new();
        for name in names {
            let known = self.names.iter().position(|(names, of)| of == kind && names.contains(name));
            let place = known.ok_or_else(|| EngineError::Refused(format!("there is no {name}")))?;
            if met.contains(&place) {
                continue;
            }
            let Placed { shard, key, constants } = &self.objects[place];
            let view = Arc::clone(&views[*shard]);
            let (at, number) = (view.version(), met.len() as u32);
            sources[*shard].push(Source {
                object: *key,
                number,
                constants: Arc::clone(constants),
                view,
                at,
                blind: self.blind.clone(),
            });
            met.push(place);
        }
        sources.retain(|sources| !sources.is_empty());
        Ok(sources)
    }
}

/// Rows of one leaf, as a stream or page by page.
enum Leaf {
    Stream(LeafRows),
    Pages {
        sources: Vec<Source>,
        ask: Ask,
        /// Whether the leaf is a node up to 0.6, which does not tell its last page.
        is_older: bool,
    },
}

impl Leaf {
    fn stream(sources: Vec<Source>, ask: Ask) -> Leaf {
        Leaf::Stream(LeafRows::new(sources, ask))
    }

    fn pages(sources: Vec<Source>, ask: Ask) -> Leaf {
        Leaf::pages_of(sources, ask, false)
    }

    fn older_pages(sources: Vec<Source>, ask: Ask) -> Leaf {
        Leaf::pages_of(sources, ask, true)
    }

    fn pages_of(sources: Vec<Source>, ask: Ask, is_older: bool) -> Leaf {
        let mut leaf = Leaf::Pages { sources, ask, is_older };
        leaf.go_on(ask.after, ask.limit);
        leaf
    }

    /// Returns the next part as another node gets it, and whether it is the last one if the leaf tells that.
    fn next(&mut self, bound: &Bound, shared: &Shared, watch: &Watch) -> Result<(Vec<u8>, Option<bool>), EngineError> {
        match self {
            Leaf::Stream(rows) => {
                let part = rows.next(bound, shared, watch)?;
                Ok((part.encode(PartialFormat::Columns)?, Some(rows.has_ended())))
            }
            Leaf::Pages { sources, ask, is_older } => {
                let part = run(bound, sources, shared, watch, ask)?;
                let is_last = (!*is_older).then(|| part.is_last(bound, ask.limit));
                Ok((part.encode(PartialFormat::Values)?, is_last))
            }
        }
    }

    /// Continues behind a row, with this limit of all further rows.
    fn go_on(&mut self, last: Option<Position>, left: Option<u64>) {
        if let Leaf::Pages { ask, .. } = self {
            ask.after = last.or(ask.after);
            ask.limit = Some(left.map_or(PAGE_ROWS, |left| left.min(PAGE_ROWS)));
        }
    }
}

fn watch() -> Watch {
    Watch::new(Instant::now() + Duration::from_secs(60), BYTES_MAX, &Memory::new(BYTES_MAX))
}

fn json_row(row: &[assay_node_btql::values::Value<'_>]) -> Vec<Json> {
    row.iter().map(|value| serde_json::from_str(&value.to_json()).expect("JSON")).collect()
}

fn empty_shard() -> Arc<Shard> {
    let disk: SharedDisk = Arc::new(SimulatedDisk::new());
    let blobs = Arc::new(Blobs::open(disk.clone(), &PathBuf::from("/blobs")).expect("opens"));
    let kv = KvKind::Given(Arc::new(MemoryKv::default()));
    let config = ShardConfig { disk, dir: PathBuf::from("/shard"), blobs, kv };
    Shard::open(config).expect("opens")
}

fn constants(object: &Object) -> Vec<(&'static str, String)> {
    let Some(row) = object.rows.first() else { return Vec::new() };
    OF_OBJECTS.iter().filter_map(|name| Some((*name, row.get(*name)?.as_str()?.to_owned()))).collect()
}

fn number(row: &Map<String, Json>, column: &str) -> u64 {
    row[column].as_str().expect("a text").parse().expect("a number")
}

/// Writes rows at the time of their keys, and again at the time of their transactions.
fn fill<'o>(shard: &Shard, objects: impl Iterator<Item = (&'o Placed, &'o Object)>, kept: Storage) {
    let mut writes = Writes::new();
    for (placed, object) in objects {
        for row in &object.rows {
            let key = PaginationKey::parse(row["_pagination_key"].as_str().expect("a key")).expect("a key");
            let xact = number(row, "_xact_id");
            // A key has the low bits of the transaction that first wrote its row.
            let first = key.0 >> 16 | xact >> 48 << 48;
            writes.entry(first).or_default().push((placed.key, row.clone()));
            if first != xact {
                writes.entry(xact).or_default().push((placed.key, row.clone()));
            }
        }
    }
    let count = writes.len();
    for (nth, (xact, rows)) in writes.into_iter().enumerate() {
        write(shard, nth as u64, xact, &rows);
        keep(shard, kept, nth, count);
    }
}

/// Moves rows to their location after one of this many writes.
fn keep(shard: &Shard, kept: Storage, nth: usize, count: usize) {
    match kept {
        Storage::InMemory => {}
        Storage::Sealed if nth + 1 == count || nth % 2 == 1 => drop(shard.seal().expect("seals")),
        Storage::Settled if nth + 1 == count => {
            shard.seal().expect("seals");
            while shard.settle(&|| {}).expect("settles") {}
        }
        Storage::Everywhere if nth + 1 < count => match nth % 3 {
            0 => {
                shard.seal().expect("seals");
                while shard.settle(&|| {}).expect("settles") {}
            }
            1 => drop(shard.seal().expect("seals")),
            _ => {}
        },
        _ => {}
    }
}

fn write(shard: &Shard, index: u64, xact: u64, rows: &[(ObjectKey, Fields)]) {
    let mut objects: Vec<ObjectKey> = rows.iter().map(|(object, _)| *object).collect();
    objects.sort_unstable();
    objects.dedup();
    assert_eq!(objects.len(), 1, "a transaction is of one object");
    let docs: Vec<String> = rows.iter().map(|(_, row)| document(row)).collect();
    let ops = rows.iter().zip(&docs).map(|((_, row), doc)| {
        let text = |name: &str| row[name].as_str().expect("a text");
        RowOp {
            id: text("id"),
            action: Action::Upsert,
            span_id: text("span_id"),
            root_span_id: text("root_span_id"),
            is_root: row["is_root"].as_bool().expect("a boolean"),
            created: parse_created(text("created")).expect("a time"),
            doc: doc.as_bytes(),
            rules: b"",
            audit: b"",
        }
    });
    apply(shard, index, Write { object: objects[0], assigned: Xact(xact), request: None, rows: ops.collect() });
}

fn apply(shard: &Shard, index: u64, write: Write<'_>) {
    let xact = write.assigned;
    let mut builder = EntryBuilder::default();
    builder.push(&Command::Write(write).encode());
    let position = LogPosition { term: 1, replica: 1, index };
    shard.apply(position, &builder.finish()).expect("applies");
    assert_eq!(shard.last(), xact);
}

/// Returns the document; null fields are sometimes left out.
fn document(row: &Map<String, Json>) -> String {
    let is_said = |(name, value): &(&String, &Json)| {
        let name = name.as_str();
        !OF_SYSTEM.contains(&name) && !OF_OBJECTS.contains(&name) && (!value.is_null() || name.len() % 2 == 0)
    };
    let members: Map<String, Json> =
        row.iter().filter(is_said).map(|(name, value)| (name.clone(), value.clone())).collect();
    Json::Object(members).to_string()
}
