//! Counts of rows, or of values that are not null.

use crate::Type;
use assay_node_btql::values::Value;

use super::rows::GroupedBatch;
use super::{Damaged, Grouped, RowPosition};
use crate::codec::{Reader, put_count, put_u64};

#[derive(Debug, Default)]
pub(super) struct Counts {
    of: Vec<u64>,
}

impl Counts {
    pub fn push_count(&mut self, group: u32, rows: u64) {
        self.of[group as usize] += rows;
    }

    /// Rows, whatever is in them.
    pub fn push_rows(&mut self, groups: &[u32], only: Option<u32>) {
        match only {
            Some(group) => self.of[group as usize] += groups.len() as u64,
            None => groups.iter().for_each(|group| self.of[*group as usize] += 1),
        }
    }
}

impl Grouped for Counts {
    fn grow(&mut self, groups: usize) {
        if groups > self.of.len() {
            self.of.resize(groups, 0);
        }
    }

    fn push(&mut self, batch: &GroupedBatch<'_>) {
        let is_by_bitmap = !matches!(batch.ty, Type::Json | Type::Float | Type::Interval);
        match (batch.only, batch.nulls()) {
            (_, None) if is_by_bitmap => self.push_rows(batch.groups, batch.only),
            (Some(group), Some(nulls)) if is_by_bitmap => {
                self.of[group as usize] += (batch.rows() - nulls.null_count()) as u64;
            }
            (Some(group), _) => {
                let mut count = 0;
                batch.each_present(|_| count += 1);
                self.of[group as usize] += count;
            }
            (None, _) => batch.each_present(|row| self.of[batch.groups[row] as usize] += 1),
        }
    }

    fn push_one(&mut self, group: u32, _: &Value<'_>, _: RowPosition) {
        self.of[group as usize] += 1;
    }

    fn merge(&mut self, other: Counts, into: &[u32]) {
        for (count, group) in other.of.into_iter().zip(into) {
            let to = &mut self.of[*group as usize];
            *to = to.saturating_add(count);
        }
    }

    fn finish(self) -> Vec<Value<'static>> {
        self.of.into_iter().map(|count| Value::whole(count.into())).collect()
    }

    fn bytes(&self) -> usize {
        self.of.capacity() * size_of::<u64>()
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_count(out, self.of.len());
        self.of.iter().for_each(|count| put_u64(out, *count));
    }

    fn take(&mut self, from: &mut Reader<'_>) -> Result<(), Damaged> {
        let groups = from.count(size_of::<u64>())?;
        self.of = (0..groups).map(|_| from.u64()).collect::<Result<_, _>>()?;
        Ok(())
    }
}
