//! First and last values in the order of rows: `first`, `last` and `any_value`.

use assay_node_btql::values::Value;

use super::rows::GroupedBatch;
use super::{Damaged, Grouped, RowPosition, value_at};
use crate::codec::{Reader, put_count, put_u32, put_u64, put_value};

/// Marks a group of which the batch has no row.
const NO_ROW: u32 = u32::MAX;
/// Bytes of one as it is written, at least.
const PUT_BYTES_MIN: usize = 13;

#[derive(Debug)]
pub(super) struct Ends {
    is_last: bool,
    of: Vec<End>,
    /// Bytes that the values refer to.
    heap: usize,
    /// Best row of the current batch for each group; empty between batches.
    rows: Vec<u32>,
}

#[derive(Clone, Debug)]
struct End {
    place: RowPosition,
    /// Null where there is none.
    value: Value<'static>,
}

impl Ends {
    pub fn new(is_last: bool) -> Ends {
        Ends { is_last, of: Vec::new(), heap: 0, rows: Vec::new() }
    }

    /// Whether a row at such a place is better than an earlier row at another. Rows that an unpivot made of one stand at one
    /// place, and come in their order.
    #[inline(always)]
    fn is_better<P: Ord>(is_last: bool, new: P, old: P) -> bool {
        if is_last { new >= old } else { new < old }
    }

    fn consider(&mut self, group: u32, value: &Value<'_>, place: RowPosition) {
        if self.wants(group, place) {
            let end = &mut self.of[group as usize];
            self.heap = self.heap + value.heap_bytes() - end.value.heap_bytes();
            *end = End { place, value: value.clone().into_owned() };
        }
    }

    /// Whether a value at such a place would be kept.
    fn wants(&self, group: u32, place: RowPosition) -> bool {
        let end = &self.of[group as usize];
        end.value.is_null() || Ends::is_better(self.is_last, place, end.place)
    }
}

impl Grouped for Ends {
    fn grow(&mut self, groups: usize) {
        if groups > self.of.len() {
            self.of.resize(groups, End { place: RowPosition { key: 0, object: 0 }, value: Value::Null });
        }
    }

    fn push(&mut self, batch: &GroupedBatch<'_>) {
        let keys = batch.places.keys;
        let is_last = self.is_last;
        let mut met = Vec::new();
        let mut rows = std::mem::take(&mut self.rows);
        rows.resize(self.of.len(), NO_ROW);
        // Which row it is comes first, and only then what it has: keys that ascend would have each row copied.
        batch.each_present(|row| {
            let best = &mut rows[batch.groups[row] as usize];
            if *best == NO_ROW {
                met.push(batch.groups[row]);
                *best = row as u32;
            } else if Ends::is_better(is_last, keys[row], keys[*best as usize]) {
                *best = row as u32;
            }
        });
        for group in met {
            let row = std::mem::replace(&mut rows[group as usize], NO_ROW) as usize;
            let place = batch.place(row);
            if !self.wants(group, place) {
                continue;
            }
            match value_at(batch.array, batch.ty, row) {
                Value::Null => {}
                value => self.consider(group, &value, place),
            }
        }
        self.rows = rows;
    }

    fn push_one(&mut self, group: u32, value: &Value<'_>, place: RowPosition) {
        self.consider(group, value, place);
    }

    fn merge(&mut self, other: Ends, into: &[u32]) {
        for (end, group) in other.of.into_iter().zip(into).filter(|(end, _)| !end.value.is_null()) {
            self.consider(*group, &end.value, end.place);
        }
    }

    fn finish(self) -> Vec<Value<'static>> {
        self.of.into_iter().map(|end| end.value).collect()
    }

    fn bytes(&self) -> usize {
        self.of.capacity() * size_of::<End>() + self.rows.capacity() * size_of::<u32>() + self.heap
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_count(out, self.of.len());
        for end in &self.of {
            put_u64(out, end.place.key);
            put_u32(out, end.place.object);
            put_value(out, &end.value);
        }
    }

    fn take(&mut self, from: &mut Reader<'_>) -> Result<(), Damaged> {
        let groups = from.count(PUT_BYTES_MIN)?;
        let mut end = || {
            let place = RowPosition { key: from.u64()?, object: from.u32()? };
            Ok(End { place, value: from.value()? })
        };
        self.of = (0..groups).map(|_| end()).collect::<Result<_, _>>()?;
        self.heap = self.of.iter().map(|end| end.value.heap_bytes()).sum();
        Ok(())
    }
}
