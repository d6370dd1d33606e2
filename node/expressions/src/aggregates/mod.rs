//! States of aggregates (btql.md, section 11.7) for each group, over batches of rows in any order. Parts are made wherever
//! rows are and merged afterwards. The result does not depend on which part saw which row, except for sketches of very many
//! numbers.
//!
//! ```text
//! count                          counts
//! count distinct                 distinct     hashes, for very many values `registers`
//! sum, avg                       totals
//! min, max                       extremes
//! any_value, first, last         ends
//! percentile                     ranks        numbers, for very many a `sketch`
//! stddev                         spreads
//! array_agg, string_agg, and other aggregates of distinct values: lists
//! ```
//!
//! Each has loops for its common types, and takes values of other types one by one.

mod canonical;
mod counts;
mod distinct;
mod ends;
mod extremes;
mod hash;
mod lists;
mod ranks;
mod registers;
mod rows;
mod sketch;
mod spreads;
#[cfg(test)]
mod tests;
mod totals;
mod value_at;

use crate::Type;
use arrow_array::{Array, ArrayRef};
use assay_node_btql::bound::{Aggregate, Aggregation};
use assay_node_btql::values::Value;

pub use canonical::{canonical_bytes, canonical_text};
pub use value_at::{text_at, value_at};

use crate::codec::Reader;
use counts::Counts;
use distinct::Distinct;
use ends::Ends;
use extremes::Extremes;
use lists::Lists;
use ranks::Ranks;
use rows::GroupedBatch;
use spreads::Spreads;
use totals::Totals;

/// Positions of rows among all rows of a query: by pagination key, then by the object's number in the query.
#[derive(Clone, Copy, Debug)]
pub struct RowPositions<'a> {
    /// One a row, or none at all where [`States::needs_positions`] says that nobody asks.
    pub keys: &'a [u64],
    pub object: u32,
}

/// Position of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RowPosition {
    key: u64,
    object: u32,
}

/// Error for bytes that are no states of aggregates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the states of aggregates are damaged")]
pub struct Damaged;

/// The states of one aggregate, one for each group.
#[derive(Debug)]
pub struct States(StatesKind);

#[derive(Debug)]
enum StatesKind {
    Counts(Counts),
    Distinct(Distinct),
    Totals(Totals),
    Extremes(Extremes),
    Ends(Ends),
    Ranks(Ranks),
    Spreads(Spreads),
    Lists(Lists),
}

/// Operations of all kinds of states.
trait Grouped: Sized {
    /// There are this many groups from now on, or more if there were.
    fn grow(&mut self, groups: usize);
    fn push(&mut self, batch: &GroupedBatch<'_>);
    /// A value that is not null.
    fn push_one(&mut self, group: u32, value: &Value<'_>, place: RowPosition);
    /// Its group i becomes group into[i] here, where there is one.
    fn merge(&mut self, other: Self, into: &[u32]);
    fn finish(self) -> Vec<Value<'static>>;
    fn bytes(&self) -> usize;
    fn put(&self, out: &mut Vec<u8>);
    /// Decodes into states without groups.
    fn take(&mut self, from: &mut Reader<'_>) -> Result<(), Damaged>;
}

/// Evaluates an expression for whichever kind the states are.
macro_rules! of_any {
    ($kind:expr, $of:ident => $what:expr) => {
        match $kind {
            StatesKind::Counts($of) => $what,
            StatesKind::Distinct($of) => $what,
            StatesKind::Totals($of) => $what,
            StatesKind::Extremes($of) => $what,
            StatesKind::Ends($of) => $what,
            StatesKind::Ranks($of) => $what,
            StatesKind::Spreads($of) => $what,
            StatesKind::Lists($of) => $what,
        }
    };
}

impl StatesKind {
    /// States over all values, distinct or not.
    fn plain(function: &Aggregation, seed: u64) -> StatesKind {
        match function {
            Aggregation::Count => StatesKind::Counts(Counts::default()),
            Aggregation::Sum => StatesKind::Totals(Totals::new(false)),
            Aggregation::Avg => StatesKind::Totals(Totals::new(true)),
            Aggregation::Min => StatesKind::Extremes(Extremes::new(false)),
            Aggregation::Max => StatesKind::Extremes(Extremes::new(true)),
            Aggregation::AnyValue | Aggregation::First => StatesKind::Ends(Ends::new(false)),
            Aggregation::Last => StatesKind::Ends(Ends::new(true)),
            Aggregation::Percentile(share) => StatesKind::Ranks(Ranks::new(*share, seed)),
            Aggregation::Stddev => StatesKind::Spreads(Spreads::default()),
            Aggregation::ArrayAgg | Aggregation::StringAgg(_) => StatesKind::Lists(Lists::new(function, false, seed)),
        }
    }

    fn new(aggregate: &Aggregate, seed: u64) -> StatesKind {
        match &aggregate.function {
            Aggregation::Count if aggregate.distinct && aggregate.of.is_some() => {
                StatesKind::Distinct(Distinct::new(seed))
            }
            // The first of the values is also the first of those that are distinct. Not so the least: of objects that are
            // the same, the first one stands for the others, and it may be spelled otherwise.
            function @ (Aggregation::Count | Aggregation::AnyValue | Aggregation::First) => {
                StatesKind::plain(function, seed)
            }
            function if aggregate.distinct => StatesKind::Lists(Lists::new(function, true, seed)),
            function => StatesKind::plain(function, seed),
        }
    }
}

impl States {
    /// The seed is the query's: hashes made on one node are compared with those of another.
    pub fn new(aggregate: &Aggregate, seed: u64) -> States {
        States(StatesKind::new(aggregate, seed))
    }

    /// Whether it matters in which order rows are: otherwise their keys need not be read.
    pub fn needs_positions(&self) -> bool {
        matches!(self.0, StatesKind::Ends(_) | StatesKind::Lists(_))
    }

    /// Rows of which groups[i] is the group of row i, all below `count`. No values are those of `count(*)`; other aggregates
    /// leave such rows out.
    pub fn update(
        &mut self,
        count: usize,
        groups: &[u32],
        values: Option<(&ArrayRef, Type)>,
        places: &RowPositions<'_>,
    ) {
        of_any!(&mut self.0, of => of.grow(count));
        if groups.is_empty() {
            return;
        }
        let only = rows::only_group(count, groups);
        let Some((array, ty)) = values else {
            if let StatesKind::Counts(counts) = &mut self.0 {
                counts.push_rows(groups, only);
            }
            return;
        };
        assert_eq!(array.len(), groups.len(), "a value for each row");
        if ty != Type::Null {
            let batch = GroupedBatch { groups, only, array, ty, places: *places };
            of_any!(&mut self.0, of => of.push(&batch));
        }
    }

    /// Counts rows of one group without reading them; only `count(*)` changes.
    pub fn update_count(&mut self, count: usize, group: u32, rows: u64) {
        of_any!(&mut self.0, of => of.grow(count));
        if let StatesKind::Counts(counts) = &mut self.0 {
            counts.push_count(group, rows);
        }
    }

    /// One row, by its value.
    pub fn update_one(&mut self, count: usize, group: u32, value: Option<&Value<'_>>, key: u64, object: u32) {
        of_any!(&mut self.0, of => of.grow(count));
        match (value, &mut self.0) {
            (None, StatesKind::Counts(counts)) => counts.push_rows(&[group], Some(group)),
            (None | Some(Value::Null), _) => {}
            (Some(value), kind) => of_any!(kind, of => of.push_one(group, value, RowPosition { key, object })),
        }
    }

    /// Group i of the other, which is of the same aggregate, becomes group into[i] here, all of them below `count`.
    pub fn merge(&mut self, count: usize, other: States, into: &[u32]) {
        macro_rules! both {
            ($($kind:ident),*) => {
                match (&mut self.0, other.0) {
                    $((StatesKind::$kind(of), StatesKind::$kind(other)) => {
                        of.grow(count);
                        of.merge(other, into);
                    })*
                    _ => unreachable!("states of two aggregates"),
                }
            };
        }
        both!(Counts, Distinct, Totals, Extremes, Ends, Ranks, Spreads, Lists);
    }

    /// Returns the result of each group.
    pub fn finish(self) -> Vec<Value<'static>> {
        of_any!(self.0, of => of.finish())
    }

    /// Reduces memory: counts of very many distinct values become approximate.
    pub fn approximate(&mut self) {
        if let StatesKind::Distinct(distinct) = &mut self.0 {
            distinct.approximate();
        }
    }

    /// Approximate memory.
    pub fn bytes(&self) -> usize {
        of_any!(&self.0, of => of.bytes())
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        of_any!(&self.0, of => of.put(out));
    }

    /// Decodes states of the same aggregate and seed, and leaves the bytes after them.
    pub fn decode(aggregate: &Aggregate, seed: u64, from: &mut &[u8]) -> Result<States, Damaged> {
        let mut states = States::new(aggregate, seed);
        let mut reader = Reader::new(from);
        of_any!(&mut states.0, of => of.take(&mut reader))?;
        *from = reader.rest();
        Ok(states)
    }
}
