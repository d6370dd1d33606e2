//! Groups of rows: which there are, and what their aggregates have come to. Parts of it are made wherever rows are and put
//! together afterwards; which part saw which row changes nothing.

use std::borrow::Cow;

use ahash::AHashMap;
use arrow::array::{ArrayRef, AsArray};
use arrow::compute::take;
use arrow::datatypes::Int32Type;
use assay_node_btql::bound;
use assay_node_btql::values::Value;
use assay_node_vectors::Type;

use crate::EngineError;
use crate::aggregate::{Places, States, canonical_bytes, value_at};
use crate::codes::Codes;
use crate::wire::{self, Reader};

/// Groups of one query.
pub const GROUPS_MAX: usize = 1_000_000;
/// What a group takes beside its values and states.
const GROUP_BYTES: usize = 96;

#[derive(Debug)]
pub(crate) struct GroupTable {
    known: AHashMap<Box<[u8]>, u32>,
    /// Of each group its dimensions, as they were met first.
    dimensions: Vec<Vec<Value<'static>>>,
    states: Vec<States>,
    bytes: usize,
    key: Vec<u8>,
}

/// Texts, of a dictionary of them.
fn plain(array: &ArrayRef) -> Cow<'_, ArrayRef> {
    match array.as_dictionary_opt::<Int32Type>() {
        Some(dictionary) => {
            let taken = take(dictionary.values(), dictionary.keys(), None);
            Cow::Owned(taken.expect("the places of a dictionary are in it"))
        }
        None => Cow::Borrowed(array),
    }
}

/// A column of a batch and what it is.
pub(crate) type Typed = (ArrayRef, Type);

impl GroupTable {
    pub fn new(aggregates: &[bound::Aggregate], seed: u64) -> GroupTable {
        GroupTable {
            known: AHashMap::new(),
            dimensions: Vec::new(),
            states: aggregates.iter().map(|aggregate| States::new(aggregate, seed)).collect(),
            bytes: 0,
            key: Vec::new(),
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes + self.states.iter().map(States::bytes).sum::<usize>()
    }

    /// Whether it matters in which order rows are.
    pub fn needs_places(&self) -> bool {
        self.states.iter().any(States::needs_places)
    }

    /// Rows of which nothing is asked but how many they are.
    pub fn push_count(&mut self, rows: usize) -> Result<(), EngineError> {
        let group = self.group(&[])?;
        let count = self.dimensions.len();
        self.states.iter_mut().for_each(|states| states.update_count(count, group, rows as u64));
        Ok(())
    }

    /// Rows with a column for each dimension, and for each aggregate that is of something; with their places, where those
    /// matter.
    pub fn push(
        &mut self,
        rows: usize,
        dimensions: &[Typed],
        aggregated: &[Option<Typed>],
        places: &Places<'_>,
    ) -> Result<(), EngineError> {
        if rows == 0 {
            return Ok(());
        }
        let codes = dimensions.iter().map(|(array, ty)| Codes::of(array, *ty)).collect();
        let Codes { mut of_rows, first } = Codes::together(codes, rows);
        let mut groups = Vec::with_capacity(first.len());
        let mut values = Vec::with_capacity(dimensions.len());
        for row in first {
            values.extend(dimensions.iter().map(|(array, ty)| value_at(array, *ty, row as usize)));
            groups.push(self.group(&values)?);
            values.clear();
        }
        of_rows.iter_mut().for_each(|code| *code = groups[*code as usize]);
        let count = self.dimensions.len();
        for (states, values) in self.states.iter_mut().zip(aggregated) {
            let values = values.as_ref().map(|(array, ty)| (plain(array), *ty));
            states.update(count, &of_rows, values.as_ref().map(|(array, ty)| (&**array, *ty)), places);
        }
        Ok(())
    }

    /// One row, by its values.
    pub fn push_row(
        &mut self,
        dimensions: Vec<Value<'static>>,
        aggregated: &[Option<Value<'_>>],
        key: u64,
        object: u32,
    ) -> Result<(), EngineError> {
        let group = self.group(&dimensions)?;
        let count = self.dimensions.len();
        for (states, value) in self.states.iter_mut().zip(aggregated) {
            states.update_one(count, group, value.as_ref(), key, object);
        }
        Ok(())
    }

    fn group(&mut self, dimensions: &[Value<'_>]) -> Result<u32, EngineError> {
        self.key.clear();
        dimensions.iter().for_each(|value| canonical_bytes(value, &mut self.key));
        if let Some(group) = self.known.get(self.key.as_slice()) {
            return Ok(*group);
        }
        let group = self.dimensions.len();
        if group >= GROUPS_MAX {
            return Err(EngineError::Groups(GROUPS_MAX));
        }
        self.bytes += GROUP_BYTES + 2 * self.key.len();
        self.known.insert(self.key.as_slice().into(), group as u32);
        self.dimensions.push(dimensions.iter().map(|value| value.view().into_owned()).collect());
        Ok(group as u32)
    }

    pub fn merge(&mut self, other: GroupTable) -> Result<(), EngineError> {
        let into = other.dimensions.iter().map(|dimensions| self.group(dimensions));
        let into = into.collect::<Result<Vec<u32>, _>>()?;
        let count = self.dimensions.len();
        for (states, other) in self.states.iter_mut().zip(other.states) {
            states.merge(count, other, &into);
        }
        Ok(())
    }

    /// Of each group its dimensions and its aggregates. Without dimensions there is one, also of no rows.
    pub fn finish(mut self, has_dimensions: bool) -> Result<Vec<Group>, EngineError> {
        if !has_dimensions {
            self.group(&[])?;
        }
        let count = self.dimensions.len();
        let mut aggregates: Vec<std::vec::IntoIter<Value<'static>>> = Vec::new();
        for mut states in self.states {
            states.update(count, &[], None, &Places { keys: &[], object: 0 });
            aggregates.push(states.finish().into_iter());
        }
        let group = |dimensions| {
            let aggregates = aggregates.iter_mut().map(|of| of.next().unwrap_or(Value::Null)).collect();
            Group { dimensions, aggregates }
        };
        Ok(self.dimensions.into_iter().map(group).collect())
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        wire::put_count(out, self.dimensions.len());
        for value in self.dimensions.iter().flatten() {
            wire::put_value(out, value);
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

/// A group as it is in the end.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub dimensions: Vec<Value<'static>>,
    pub aggregates: Vec<Value<'static>>,
}
