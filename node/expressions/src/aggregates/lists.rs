//! Aggregates over all values, or all distinct values, in the order of rows: `array_agg`, `string_agg` and DISTINCT.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use assay_node_btql::bound::Aggregation;
use assay_node_btql::values::Value;

use super::hash::{self, Hashed, Member, member};
use super::rows::GroupedBatch;
use super::{Damaged, Grouped, RowPosition, StatesKind};
use crate::codec::{Reader, put_count, put_u32, put_u64, put_value};

/// Bytes of an entry as it is written, at least.
const PUT_BYTES_MIN: usize = 17;
/// Approximate memory of an entry in the table of distinct values.
const KNOWN_BYTES: usize = 48;

#[derive(Debug)]
pub(super) struct Lists {
    function: Aggregation,
    seed: u64,
    groups: usize,
    /// Values of all groups, as they came.
    entries: Vec<Entry>,
    /// Values that came, also those that were there.
    came: u64,
    /// Index of each distinct value.
    known: Option<HashMap<Member, u32, BuildHasherDefault<Hashed>>>,
    /// Bytes that the values refer to.
    heap: usize,
    scratch: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Entry {
    group: u32,
    object: u32,
    key: u64,
    /// The how many-th row it is that came: rows that an unpivot made of one stand at one place, and come in their order.
    nth: u64,
    value: Value<'static>,
}

impl Entry {
    fn place(&self) -> RowPosition {
        RowPosition { key: self.key, object: self.object }
    }

    fn order(&self) -> (u32, RowPosition, u64) {
        (self.group, self.place(), self.nth)
    }
}

impl Lists {
    pub fn new(function: &Aggregation, distinct: bool, seed: u64) -> Lists {
        Lists {
            function: function.clone(),
            seed,
            groups: 0,
            entries: Vec::new(),
            came: 0,
            known: distinct.then(HashMap::default),
            heap: 0,
            scratch: Vec::new(),
        }
    }

    fn add(&mut self, group: u32, value: &Value<'_>, place: RowPosition) {
        self.came += 1;
        let entry = |value: &Value<'_>| {
            let value = value.clone().into_owned();
            Entry { group, object: place.object, key: place.key, nth: self.came, value }
        };
        if let Some(known) = &mut self.known {
            let hash = hash::of_value(value, self.seed, &mut self.scratch);
            let at = *known.entry(member(group, hash)).or_insert(self.entries.len() as u32);
            if let Some(first) = self.entries.get_mut(at as usize) {
                // Values that are the same may be shown differently: as the first one is.
                if place < first.place() {
                    self.heap = self.heap + value.heap_bytes() - first.value.heap_bytes();
                    *first = entry(value);
                }
                return;
            }
        }
        self.heap += value.heap_bytes();
        self.entries.push(entry(value));
    }

    /// Aggregates the distinct values.
    fn of_distinct(self) -> Vec<Value<'static>> {
        let mut states = super::States(StatesKind::plain(&self.function, self.seed));
        states.update(self.groups, &[], None, &super::RowPositions { keys: &[], object: 0 });
        for entry in &self.entries {
            states.update_one(self.groups, entry.group, Some(&entry.value), entry.key, entry.object);
        }
        states.finish()
    }
}

fn joined(values: &[Value<'_>], between: &str) -> Value<'static> {
    let texts: Vec<Cow<'_, str>> = values.iter().filter_map(Value::to_text).collect();
    Value::Text(Cow::Owned(texts.join(between)))
}

impl Grouped for Lists {
    fn grow(&mut self, groups: usize) {
        self.groups = groups.max(self.groups);
    }

    fn push(&mut self, batch: &GroupedBatch<'_>) {
        batch.each_value(|row, value| self.add(batch.groups[row], &value, batch.place(row)));
    }

    fn push_one(&mut self, group: u32, value: &Value<'_>, place: RowPosition) {
        self.add(group, value, place);
    }

    fn merge(&mut self, mut other: Lists, into: &[u32]) {
        other.entries.sort_unstable_by_key(Entry::order);
        for entry in other.entries {
            let Some(group) = into.get(entry.group as usize).copied() else { continue };
            if self.known.is_some() {
                self.add(group, &entry.value, entry.place());
            } else {
                self.came += 1;
                self.heap += entry.value.heap_bytes();
                self.entries.push(Entry { group, nth: self.came, ..entry });
            }
        }
    }

    fn finish(mut self) -> Vec<Value<'static>> {
        self.entries.sort_unstable_by_key(Entry::order);
        if !matches!(self.function, Aggregation::ArrayAgg | Aggregation::StringAgg(_)) {
            return self.of_distinct();
        }
        let mut found = vec![Value::Null; self.groups];
        let mut entries = self.entries.into_iter().peekable();
        while let Some(first) = entries.next() {
            let group = first.group;
            let mut values = vec![first.value];
            while let Some(entry) = entries.next_if(|entry| entry.group == group) {
                values.push(entry.value);
            }
            found[group as usize] = match &self.function {
                Aggregation::StringAgg(between) => joined(&values, between),
                _ => Value::List(values),
            };
        }
        found
    }

    fn bytes(&self) -> usize {
        let known = self.known.as_ref().map_or(0, |known| known.capacity() * KNOWN_BYTES);
        self.entries.capacity() * size_of::<Entry>() + self.heap + known
    }

    fn put(&self, out: &mut Vec<u8>) {
        let mut counts = vec![0_u64; self.groups];
        self.entries.iter().for_each(|entry| counts[entry.group as usize] += 1);
        put_count(out, counts.len());
        counts.iter().for_each(|count| put_u64(out, *count));
        put_count(out, self.entries.len());
        let mut sorted: Vec<&Entry> = self.entries.iter().collect();
        sorted.sort_unstable_by_key(|entry| entry.order());
        for entry in sorted {
            put_u32(out, entry.group);
            put_u32(out, entry.object);
            put_u64(out, entry.key);
            put_value(out, &entry.value);
        }
    }

    fn take(&mut self, from: &mut Reader<'_>) -> Result<(), Damaged> {
        let groups = from.count(size_of::<u64>())?;
        let mut counts = (0..groups).map(|_| from.u64()).collect::<Result<Vec<_>, _>>()?;
        self.groups = groups;
        for _ in 0..from.count(PUT_BYTES_MIN)? {
            let (group, object, key) = (from.u32()?, from.u32()?, from.u64()?);
            let count = counts.get_mut(group as usize).ok_or(Damaged)?;
            *count = count.checked_sub(1).ok_or(Damaged)?;
            match from.value()? {
                Value::Null => return Err(Damaged),
                value => self.add(group, &value, RowPosition { key, object }),
            }
        }
        if counts.iter().all(|count| *count == 0) { Ok(()) } else { Err(Damaged) }
    }
}
