//! Reads of a view, which holds the state that was applied when it was taken.
//!
//! Any version up to the view's own can be read, and the result for a version never changes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use ahash::AHashMap;
use assay_storage_model::command::Action;
use assay_storage_model::segment::WHOLE_FORMAT;
use assay_storage_model::{ObjectKey, PaginationKey, Xact};
use assay_storage_segments::{Columns, OwnedRow, SoughtId};
use bytes::Bytes;

use crate::ShardSize;
use crate::bases::Base;
use crate::core::{Objects, RowLocation, base_of};
use crate::error::ShardError;
use crate::live_segment::LiveSegment;
use crate::manifest::ObjectRecord;
use crate::memory::{Generation, MemoryRow, is_row};
use crate::text::Text;
use crate::walk::{From as StepFrom, Step, Walk};

/// Row as of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub id: Text,
    pub key: PaginationKey,
    pub xact: Xact,
    pub is_root: bool,
    pub created: i64,
    pub span_id: Text,
    pub root_span_id: Text,
    pub doc: Bytes,
}

/// Write about an id, in the form in which it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub xact: Xact,
    pub action: Action,
    pub created: i64,
    /// Id of the comment, or the span id for other actions.
    pub own_id: Text,
    pub written: Bytes,
    pub rules: Bytes,
    pub audit: Bytes,
}

/// Trace with its visible spans, newest pagination key first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    pub root_span_id: Text,
    pub rows: Vec<Row>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracePage {
    /// Traces in the order of their newest spans, newest first.
    pub traces: Vec<Trace>,
    /// Start of the next page, or `None` at the end.
    pub next: Option<PaginationKey>,
}

/// Locations of comments by their own ids.
pub(crate) type Comments = AHashMap<Text, (RowLocation, PaginationKey)>;

#[derive(Clone, Debug)]
pub struct View {
    version: Xact,
    /// Newest first.
    pub(crate) generations: Vec<Arc<Generation>>,
    /// Oldest first.
    pub(crate) segments: Arc<[Arc<LiveSegment>]>,
    objects: Objects,
}

impl View {
    pub(crate) fn new(
        version: Xact,
        generations: Vec<Arc<Generation>>,
        segments: Arc<[Arc<LiveSegment>]>,
        objects: Objects,
    ) -> View {
        View { version, generations, segments, objects }
    }

    pub(crate) fn advance(&mut self, version: Xact) {
        self.version = version;
    }

    /// Returns the last id that this view contains.
    pub fn version(&self) -> Xact {
        self.version
    }

    pub fn object(&self, object: &ObjectKey) -> Option<ObjectRecord> {
        self.objects.read().get(object).cloned()
    }

    pub fn objects(&self) -> Vec<(ObjectKey, ObjectRecord)> {
        self.objects.read().iter().map(|(object, record)| (*object, record.clone())).collect()
    }

    /// Refuses reads without a lasting answer: above the last id, below the floor, or of a dropped object.
    pub(crate) fn admit(&self, object: &ObjectKey, at: Xact) -> Result<(), ShardError> {
        if at > self.version {
            return Err(ShardError::NotYet { asked: at, last: self.version });
        }
        match self.objects.read().get(object) {
            Some(record) if record.dropped => Err(ShardError::ObjectGone),
            Some(record) if at < record.floor => Err(ShardError::Past { asked: at, floor: record.floor }),
            _ => Ok(()),
        }
    }

    /// Returns the row `id` as of `at`.
    pub fn get(&self, object: &ObjectKey, id: &str, at: Xact) -> Result<Option<Row>, ShardError> {
        self.admit(object, at)?;
        for generation in &self.generations {
            if let Some((_, row)) = generation.history(object, id).into_iter().find(|(_, row)| row.visible(at)) {
                return Ok(Some(memory_row(row)));
            }
        }
        let sought = SoughtId::new(*object, id);
        for live in self.segments.iter().rev() {
            let hits = live.segment.find(&sought)?;
            let visible = |row, xact, end| xact <= at && at < live.end(row, end);
            if let Some(hit) = hits.iter().find(|hit| is_row(hit.action) && visible(hit.row, hit.xact, hit.end)) {
                return Ok(live.segment.read(&[hit.row], Columns::Docs)?.pop().map(segment_row));
            }
        }
        Ok(None)
    }

    /// Returns up to `limit` rows below `before`, newest pagination key first.
    pub fn page(
        &self,
        object: &ObjectKey,
        at: Xact,
        before: Option<PaginationKey>,
        limit: usize,
    ) -> Result<Vec<Row>, ShardError> {
        self.admit(object, at)?;
        let mut walk = Walk::new(&self.generations, &self.segments, *object, at, before);
        let mut steps = Vec::new();
        while steps.len() < limit
            && let Some(step) = walk.next()?
        {
            steps.push(step);
        }
        self.rows(steps)
    }

    /// Returns the visible spans of a trace, newest pagination key first.
    pub fn trace(&self, object: &ObjectKey, root_span_id: &str, at: Xact) -> Result<Vec<Row>, ShardError> {
        self.admit(object, at)?;
        let mut traces = self.whole_traces(object, &[Text::copied(root_span_id)], at)?;
        Ok(traces.pop().map(|trace| trace.rows).unwrap_or_default())
    }

    /// Returns up to `limit` whole traces whose newest span is below `before`, newest first.
    ///
    /// Each trace is on one page only.
    pub fn traces(
        &self,
        object: &ObjectKey,
        at: Xact,
        before: Option<PaginationKey>,
        limit: usize,
    ) -> Result<TracePage, ShardError> {
        self.admit(object, at)?;
        let mut walk = Walk::new(&self.generations, &self.segments, *object, at, before);
        let mut page = TracePage::default();
        let mut met: HashSet<Text> = HashSet::new();
        let mut ended = false;
        while page.traces.len() < limit && !ended {
            let mut roots = Vec::new();
            while roots.len() < limit - page.traces.len() {
                let Some(step) = walk.next()? else {
                    ended = true;
                    break;
                };
                if met.insert(step.root_span_id.clone()) {
                    roots.push(step.root_span_id);
                }
            }
            let whole = self.whole_traces(object, &roots, at)?;
            // An earlier page has the traces with a span newer than the start of this page.
            page.traces.extend(whole.into_iter().filter(|trace| {
                trace.rows.first().is_some_and(|newest| before.is_none_or(|before| newest.key < before))
            }));
        }
        if !ended {
            page.next = page.traces.last().and_then(|trace| trace.rows.first()).map(|row| row.key);
        }
        Ok(page)
    }

    fn whole_traces(&self, object: &ObjectKey, roots: &[Text], at: Xact) -> Result<Vec<Trace>, ShardError> {
        let mut by_root: HashMap<Text, Vec<Row>> = roots.iter().map(|root| (root.clone(), Vec::new())).collect();
        for generation in &self.generations {
            for root in roots {
                let rows = generation.trace(object, root.as_str(), at).into_iter().map(memory_row);
                by_root.get_mut(root).expect("asked for").extend(rows);
            }
        }
        for live in self.segments.iter() {
            let mut rows = Vec::new();
            for root in roots {
                rows.extend(live.segment.trace(*object, root.as_str())?);
            }
            rows.sort_unstable();
            rows.dedup();
            // Versions that were superseded in memory need not be read.
            rows.retain(|row| live.end(*row, None) > at);
            if rows.is_empty() {
                continue;
            }
            for row in live.segment.read(&rows, Columns::Docs)? {
                if is_row(row.action)
                    && row.xact <= at
                    && at < live.end(row.row, row.end)
                    && let Some(rows) = by_root.get_mut(row.root_span_id.as_str())
                {
                    rows.push(segment_row(row));
                }
            }
        }
        Ok(roots
            .iter()
            .map(|root| {
                let mut rows = by_root.remove(root).unwrap_or_default();
                rows.sort_unstable_by_key(|row| std::cmp::Reverse(row.key));
                Trace { root_span_id: root.clone(), rows }
            })
            .collect())
    }

    /// Returns everything that was written about an id up to `at`, newest first.
    ///
    /// This includes patches as written, tombstones and comments.
    pub fn events(&self, object: &ObjectKey, id: &str, at: Xact) -> Result<Vec<Event>, ShardError> {
        self.admit(object, at)?;
        let mut events = Vec::new();
        let live_comment = |action, end: Xact| action != Action::Comment || at < end;
        for generation in &self.generations {
            let rows = generation.history(object, id).into_iter().map(|(_, row)| row);
            events.extend(rows.filter(|row| row.xact <= at && live_comment(row.action, row.end)).map(memory_event));
        }
        let sought = SoughtId::new(*object, id);
        for live in self.segments.iter().rev() {
            let mut rows: Vec<u32> = live
                .segment
                .find(&sought)?
                .into_iter()
                .filter(|hit| hit.xact <= at && live_comment(hit.action, live.end(hit.row, hit.end)))
                .map(|hit| hit.row)
                .collect();
            rows.sort_unstable();
            if !rows.is_empty() {
                events.extend(live.segment.read(&rows, Columns::All)?.into_iter().map(segment_event));
            }
        }
        events.sort_by_key(|event| std::cmp::Reverse(event.xact));
        Ok(events)
    }

    /// Returns every visible row of an object as of `at`, newest key first. It serves checks, not clients.
    pub fn all(&self, object: &ObjectKey, at: Xact) -> Result<Vec<Row>, ShardError> {
        self.page(object, at, None, usize::MAX)
    }

    /// Returns the current comments on `target` by their own ids.
    pub(crate) fn comments(&self, object: &ObjectKey, target: &str) -> Result<Comments, ShardError> {
        let mut found = Comments::default();
        for generation in &self.generations {
            for (index, key, own_id) in generation.live_comments(object, target) {
                let place = RowLocation::Memory { generation: Arc::clone(generation), index };
                found.entry(own_id).or_insert((place, key));
            }
        }
        let sought = SoughtId::new(*object, target);
        for live in self.segments.iter().rev() {
            let hits = live.segment.find(&sought)?.into_iter();
            let comments = hits.filter(|hit| hit.action == Action::Comment && live.end(hit.row, hit.end) == Xact::MAX);
            let mut rows: Vec<u32> = comments.map(|hit| hit.row).collect();
            rows.sort_unstable();
            if rows.is_empty() {
                continue;
            }
            for row in live.segment.read(&rows, Columns::Keys)? {
                let place = RowLocation::Segment { segment: Arc::clone(live), row: row.row };
                found.entry(Text::copied(&row.span_id)).or_insert((place, row.key));
            }
        }
        Ok(found)
    }

    /// Returns the document of a live row that only a segment has, which a merge would have to read.
    pub(crate) fn sealed_base(&self, object: &ObjectKey, id: &str) -> Result<Option<(Xact, Base)>, ShardError> {
        if self.generations.iter().any(|generation| generation.newest(object, id).is_some()) {
            return Ok(None);
        }
        let sought = SoughtId::new(*object, id);
        for live in self.segments.iter().rev() {
            let hits = live.segment.find(&sought)?;
            if let Some(hit) = hits.iter().find(|hit| is_row(hit.action) && live.end(hit.row, hit.end) == Xact::MAX) {
                let row = live.segment.read(&[hit.row], Columns::Docs)?.pop();
                return Ok(row.map(|row| (hit.xact, base_of(row))));
            }
        }
        Ok(None)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.generations.iter().map(|generation| generation.bytes()).sum()
    }

    pub(crate) fn size(&self) -> ShardSize {
        ShardSize {
            memory_bytes: self.memory_bytes(),
            memory_rows: self.generations.iter().map(|generation| generation.rows()).sum(),
            segments: self.segments.len(),
            whole_segments: self.segments.iter().filter(|live| live.meta().format == WHOLE_FORMAT).count(),
            segment_rows: self.segments.iter().map(|live| u64::from(live.meta().rows)).sum(),
            segment_bytes: self.segments.iter().map(|live| live.meta().file_bytes()).sum(),
            marks: self.segments.iter().map(|live| live.marks()).sum(),
        }
    }

    /// Reads the documents of the walked rows in the order of the walk, with one read per segment.
    fn rows(&self, steps: Vec<Step>) -> Result<Vec<Row>, ShardError> {
        let mut wanted: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for step in &steps {
            if let StepFrom::Segment(number, row) = step.from {
                wanted.entry(number).or_default().push(row);
            }
        }
        let mut read: HashMap<(usize, u32), Row> = HashMap::new();
        for (number, mut rows) in wanted {
            rows.sort_unstable();
            for row in self.segments[number].segment.read(&rows, Columns::Docs)? {
                read.insert((number, row.row), segment_row(row));
            }
        }
        steps
            .into_iter()
            .map(|step| match step.from {
                StepFrom::Memory(row) => Ok(memory_row(*row)),
                StepFrom::Segment(number, row) => read.remove(&(number, row)).ok_or_else(|| {
                    ShardError::Damaged(format!("row {row} is not at the position in its segment's index"))
                }),
            })
            .collect()
    }
}

fn memory_row(row: MemoryRow) -> Row {
    Row {
        id: row.id,
        key: row.key,
        xact: row.xact,
        is_root: row.is_root,
        created: row.created,
        span_id: row.span_id,
        root_span_id: row.root_span_id,
        doc: row.doc,
    }
}

fn segment_row(row: OwnedRow) -> Row {
    Row {
        id: Text::copied(&row.id),
        key: row.key,
        xact: row.xact,
        is_root: row.is_root,
        created: row.created,
        span_id: Text::copied(&row.span_id),
        root_span_id: Text::copied(&row.root_span_id),
        doc: row.doc,
    }
}

pub(crate) fn memory_event(row: MemoryRow) -> Event {
    let written = if row.action == Action::Merge { row.patch } else { row.doc };
    Event {
        xact: row.xact,
        action: row.action,
        created: row.created,
        own_id: row.span_id,
        written,
        rules: row.rules,
        audit: row.audit,
    }
}

pub(crate) fn segment_event(row: OwnedRow) -> Event {
    Event {
        xact: row.xact,
        action: row.action,
        created: row.created,
        own_id: Text::copied(&row.span_id),
        written: row.patch.unwrap_or(row.doc),
        rules: row.rules.unwrap_or_default(),
        audit: row.audit.unwrap_or_default(),
    }
}
