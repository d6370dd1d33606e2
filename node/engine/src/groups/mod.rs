//! Table of groups with the states of their aggregates.
//!
//! Parts are computed near the rows and merged afterwards. The result does not depend on the distribution of the rows.

pub(crate) mod codes;
pub(crate) mod inference;
pub(crate) mod object_members;

use std::borrow::Cow;
use std::sync::LazyLock;

use ahash::RandomState;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, Int32Array, StringArray};
use arrow_select::take::take;
use assay_node_btql::bound::{self, Field};
use assay_node_btql::values::Value;
use assay_node_expressions::Type;
use assay_node_expressions::aggregates::{RowPositions, States, canonical_bytes, canonical_text, value_at};
use assay_node_expressions::codec::{self, Reader};
use hashbrown::HashTable;

use crate::EngineError;
use crate::groups::codes::Codes;

/// Upper bound of the groups of one query.
pub const QUERY_GROUPS_MAX: usize = 1_000_000;
/// Bytes of a group in addition to its values and states.
const GROUP_BYTES: usize = 96;

#[derive(Debug)]
pub(crate) struct GroupTable {
    /// Groups by their keys.
    known: HashTable<u32>,
    keys: Keys,
    /// Dimensions of each group, as in its first row.
    dimensions: Vec<Value<'static>>,
    states: Vec<States>,
    bytes: usize,
    key: Vec<u8>,
}

/// Canonical bytes of the dimensions of each group, concatenated, with their hashes.
#[derive(Debug, Default)]
struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    hashes: Vec<u64>,
}

impl Keys {
    fn get(&self, group: usize) -> &[u8] {
        let start = group.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[group]]
    }

    fn push(&mut self, key: &[u8], hash: u64) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        self.hashes.push(hash);
    }
}

fn hash_of(key: &[u8]) -> u64 {
    static STATE: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    STATE.hash_one(key)
}

/// Converts a dictionary of texts to texts.
fn plain(array: &ArrayRef) -> Cow<'_, ArrayRef> {
    match array.as_dictionary_opt::<Int32Type>() {
        Some(dictionary) => {
            let taken = take(dictionary.values(), dictionary.keys(), None);
            Cow::Owned(taken.expect("the places of a dictionary are in it"))
        }
        None => Cow::Borrowed(array),
    }
}

/// Column of texts, or a dictionary of them.
struct Texts<'a> {
    texts: &'a StringArray,
    places: Option<&'a Int32Array>,
}

impl Texts<'_> {
    fn of(array: &ArrayRef) -> Texts<'_> {
        match array.as_dictionary_opt::<Int32Type>() {
            Some(dictionary) => Texts { texts: dictionary.values().as_string(), places: Some(dictionary.keys()) },
            None => Texts { texts: array.as_string(), places: None },
        }
    }

    fn at(&self, row: usize) -> Option<&str> {
        let place = match self.places {
            Some(places) => places.is_valid(row).then(|| places.value(row) as usize)?,
            None => row,
        };
        self.texts.is_valid(place).then(|| self.texts.value(place))
    }
}

/// Column of a batch and its type.
pub(crate) type Typed = (ArrayRef, Type);

impl GroupTable {
    pub fn new(aggregates: &[bound::Aggregate], seed: u64) -> GroupTable {
        GroupTable {
            known: HashTable::new(),
            keys: Keys::default(),
            dimensions: Vec::new(),
            states: aggregates.iter().map(|aggregate| States::new(aggregate, seed)).collect(),
            bytes: 0,
            key: Vec::new(),
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes + self.states.iter().map(States::bytes).sum::<usize>()
    }

    /// Reduces memory: counts of very many distinct values become approximate.
    pub fn approximate(&mut self) {
        self.states.iter_mut().for_each(States::approximate);
    }

    /// Returns whether any aggregate depends on the order of rows.
    pub fn needs_positions(&self) -> bool {
        self.states.iter().any(States::needs_positions)
    }

    /// Adds a number of rows that are only counted.
    pub fn push_count(&mut self, rows: usize) -> Result<(), EngineError> {
        let group = self.group(&[])?;
        let count = self.count();
        self.states.iter_mut().for_each(|states| states.update_count(count, group, rows as u64));
        Ok(())
    }

    /// Adds rows with a column for each dimension, and for each aggregate with an argument. `places` has their
    /// positions, if they are needed.
    pub fn push(
        &mut self,
        rows: usize,
        dimensions: &[Typed],
        aggregated: &[Option<Typed>],
        places: &RowPositions<'_>,
    ) -> Result<(), EngineError> {
        if rows == 0 {
            return Ok(());
        }
        let of_rows = self.groups_of(rows, dimensions)?;
        let count = self.count();
        for (states, values) in self.states.iter_mut().zip(aggregated) {
            let values = values.as_ref().map(|(array, ty)| (plain(array), *ty));
            states.update(count, &of_rows, values.as_ref().map(|(array, ty)| (&**array, *ty)), places);
        }
        Ok(())
    }

    /// Returns the group of each row.
    fn groups_of(&mut self, rows: usize, dimensions: &[Typed]) -> Result<Vec<u32>, EngineError> {
        let only_text = match dimensions {
            [(array, Type::Text)] => Some(Texts::of(array)),
            _ => None,
        };
        // Texts without a dictionary are mostly distinct, so codes would only hash them once more.
        if let Some(texts) = only_text.as_ref().filter(|texts| texts.places.is_none()) {
            return self.groups_of_texts(rows, texts);
        }
        let codes = dimensions.iter().map(|(array, ty)| Codes::of(array, *ty)).collect();
        let Codes { mut of_rows, first } = Codes::together(codes, rows);
        let mut groups = Vec::with_capacity(first.len());
        let mut values = Vec::with_capacity(dimensions.len());
        for row in first {
            groups.push(match &only_text {
                Some(texts) => self.group_of_text(texts.at(row as usize))?,
                None => {
                    values.clear();
                    values.extend(dimensions.iter().map(|(array, ty)| value_at(array, *ty, row as usize)));
                    self.group(&values)?
                }
            });
        }
        of_rows.iter_mut().for_each(|code| *code = groups[*code as usize]);
        Ok(of_rows)
    }

    fn groups_of_texts(&mut self, rows: usize, texts: &Texts<'_>) -> Result<Vec<u32>, EngineError> {
        let mut groups = Vec::with_capacity(rows);
        // Adjacent rows often have equal texts, and a column of one text has only equal ones.
        let mut last = None;
        for row in 0..rows {
            let text = texts.at(row);
            let group = match last {
                Some((before, group)) if before == text => group,
                _ => self.group_of_text(text)?,
            };
            last = Some((text, group));
            groups.push(group);
        }
        Ok(groups)
    }

    /// Adds one row by its values.
    pub fn push_row(
        &mut self,
        dimensions: Vec<Value<'static>>,
        aggregated: &[Option<Value<'_>>],
        key: u64,
        object: u32,
    ) -> Result<(), EngineError> {
        let group = self.group(&dimensions)?;
        let count = self.count();
        for (states, value) in self.states.iter_mut().zip(aggregated) {
            states.update_one(count, group, value.as_ref(), key, object);
        }
        Ok(())
    }

    fn group(&mut self, dimensions: &[Value<'_>]) -> Result<u32, EngineError> {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        dimensions.iter().for_each(|value| canonical_bytes(value, &mut key));
        let group = self.of_key(&key, hash_of(&key), || dimensions.iter().map(|value| value.view().into_owned()));
        self.key = key;
        group
    }

    /// Returns the group of a single text dimension, which is the most common case.
    fn group_of_text(&mut self, text: Option<&str>) -> Result<u32, EngineError> {
        let Some(text) = text else { return self.group(&[Value::Null]) };
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        canonical_text(text, &mut key);
        let group = self.of_key(&key, hash_of(&key), || [Value::Text(text.to_owned().into())]);
        self.key = key;
        group
    }

    /// Returns the group of a key. A new group gets these dimensions.
    fn of_key<D: IntoIterator<Item = Value<'static>>>(
        &mut self,
        key: &[u8],
        hash: u64,
        dimensions: impl FnOnce() -> D,
    ) -> Result<u32, EngineError> {
        let Keys { hashes, .. } = &self.keys;
        let is_same = |group: &u32| hashes[*group as usize] == hash && self.keys.get(*group as usize) == key;
        if let Some(group) = self.known.find(hash, is_same) {
            return Ok(*group);
        }
        let group = self.count();
        if group >= QUERY_GROUPS_MAX {
            return Err(EngineError::Groups(QUERY_GROUPS_MAX));
        }
        self.bytes += GROUP_BYTES + 2 * key.len();
        self.known.insert_unique(hash, group as u32, |group| hashes[*group as usize]);
        self.keys.push(key, hash);
        self.dimensions.extend(dimensions());
        Ok(group as u32)
    }

    fn count(&self) -> usize {
        self.keys.ends.len()
    }

    pub fn merge(&mut self, other: GroupTable) -> Result<(), EngineError> {
        let width = other.dimensions.len().checked_div(other.count()).unwrap_or(0);
        let mut dimensions = other.dimensions.into_iter();
        let mut into = Vec::with_capacity(other.keys.ends.len());
        for (group, hash) in other.keys.hashes.iter().enumerate() {
            let mut own = dimensions.by_ref().take(width);
            into.push(self.of_key(other.keys.get(group), *hash, || own.by_ref().collect::<Vec<_>>())?);
            own.for_each(drop);
        }
        let count = self.count();
        for (states, other) in self.states.iter_mut().zip(other.states) {
            states.merge(count, other, &into);
        }
        Ok(())
    }

    /// Returns the dimensions and aggregates of each group. Without dimensions there is one group, even without rows.
    pub fn finish(mut self, has_dimensions: bool) -> Result<FinishedGroups, EngineError> {
        if !has_dimensions {
            self.group(&[])?;
        }
        let count = self.count();
        let aggregates = self.states.into_iter().map(|mut states| {
            states.update(count, &[], None, &RowPositions { keys: &[], object: 0 });
            states.finish()
        });
        Ok(FinishedGroups { count, dimensions: self.dimensions, aggregates: aggregates.collect() })
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        codec::put_count(out, self.count());
        for value in &self.dimensions {
            codec::put_value(out, value);
        }
        self.states.iter().for_each(|states| states.encode(out));
    }

    pub fn decode(groups: &bound::Groups, seed: u64, from: &mut Reader<'_>) -> Result<GroupTable, EngineError> {
        let mut table = GroupTable::new(&groups.aggregates, seed);
        let count = from.count(1)?;
        for number in 0..count {
            let dimensions = groups.dimensions.iter().map(|_| from.value()).collect::<Result<Vec<_>, _>>()?;
            if table.group(&dimensions)? as usize != number {
                return Err(EngineError::Damaged);
            }
        }
        let mut rest = from.rest();
        let states = groups.aggregates.iter().map(|aggregate| States::decode(aggregate, seed, &mut rest));
        table.states = states.collect::<Result<_, _>>()?;
        *from = Reader::new(rest);
        Ok(table)
    }
}

/// Groups with final values.
#[derive(Debug)]
pub(crate) struct FinishedGroups {
    count: usize,
    /// Dimensions of all groups, concatenated.
    dimensions: Vec<Value<'static>>,
    /// Value of each aggregate in each group.
    aggregates: Vec<Vec<Value<'static>>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Group<'m> {
    of: &'m FinishedGroups,
    number: usize,
}

impl FinishedGroups {
    pub fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        (0..self.count).map(|number| Group { of: self, number })
    }
}

impl<'m> Group<'m> {
    pub fn dimensions(self) -> &'m [Value<'static>] {
        let width = self.of.dimensions.len() / self.of.count;
        &self.of.dimensions[self.number * width..(self.number + 1) * width]
    }

    pub fn aggregate(self, number: usize) -> Option<&'m Value<'static>> {
        self.of.aggregates.get(number)?.get(self.number)
    }

    pub fn field(self, field: &Field) -> Value<'m> {
        let found = match field {
            Field::Dimension(number) => self.dimensions().get(*number),
            Field::Aggregate(number) => self.aggregate(*number),
            _ => None,
        };
        found.map_or(Value::Null, Value::view)
    }
}
