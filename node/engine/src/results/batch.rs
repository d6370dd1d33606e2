//! Result rows in columns with their ranks, and the merge of several batches.

use assay_node_btql::bound::Order;
use assay_node_btql::values::Value;

use crate::EngineError;
use crate::results::column::{ResultColumn, interleaved};
use crate::rows::rank::Rank;

/// Result rows in the order of their ranks.
#[derive(Clone, Debug, Default)]
pub(crate) struct RankedBatch {
    pub ranks: Vec<Rank>,
    pub columns: Vec<ResultColumn>,
}

/// Row of several batches: the number of its batch, and its index there.
pub(crate) type RowPlace = (usize, usize);

impl RankedBatch {
    /// Creates a batch from rows of values.
    pub fn from_rows(rows: Vec<(Rank, Vec<Value<'static>>)>, width: usize) -> Result<RankedBatch, EngineError> {
        let mut columns: Vec<Vec<Value<'static>>> = (0..width).map(|_| Vec::with_capacity(rows.len())).collect();
        let mut ranks = Vec::with_capacity(rows.len());
        for (rank, values) in rows {
            ranks.push(rank);
            for (column, value) in columns.iter_mut().zip(values) {
                column.push(value);
            }
        }
        let columns = columns.iter().map(|values| ResultColumn::from_values(values)).collect::<Result<_, _>>()?;
        Ok(RankedBatch { ranks, columns })
    }

    /// Merges batches and returns the first `limit` rows in the order of their ranks.
    pub fn merge(batches: &[RankedBatch], order: &Order, limit: usize) -> Result<RankedBatch, EngineError> {
        let mut places = places_in_order(batches, order);
        places.truncate(limit);
        RankedBatch::of_places(batches, &places)
    }

    pub fn of_places(batches: &[RankedBatch], places: &[RowPlace]) -> Result<RankedBatch, EngineError> {
        let ranks = places.iter().map(|(batch, row)| batches[*batch].ranks[*row].clone()).collect();
        Ok(RankedBatch { ranks, columns: columns_of_places(batches, places)? })
    }

    /// Returns the approximate memory in bytes.
    pub fn bytes(&self) -> usize {
        let ranks = self.ranks.iter().map(Rank::bytes).sum::<usize>();
        let values = self.columns.len() * self.ranks.len() * size_of::<u64>();
        ranks + values + self.text_bytes()
    }

    /// Returns the bytes of all texts.
    pub fn text_bytes(&self) -> usize {
        self.columns.iter().map(ResultColumn::text_bytes).sum()
    }
}

/// Returns the rows of all batches in the order of their ranks.
pub(crate) fn places_in_order(batches: &[RankedBatch], order: &Order) -> Vec<RowPlace> {
    let places = batches.iter().enumerate();
    let mut places: Vec<RowPlace> =
        places.flat_map(|(number, batch)| (0..batch.ranks.len()).map(move |row| (number, row))).collect();
    // A stable sort merges runs that are sorted already.
    places.sort_by(|left, right| batches[left.0].ranks[left.1].compare(&batches[right.0].ranks[right.1], order));
    places
}

pub(crate) fn columns_of_places(
    batches: &[RankedBatch],
    places: &[RowPlace],
) -> Result<Vec<ResultColumn>, EngineError> {
    // A batch without rows has no columns.
    let width = batches.iter().map(|batch| batch.columns.len()).max().unwrap_or_default();
    let filled: Vec<usize> = (0..batches.len()).filter(|number| !batches[*number].ranks.is_empty()).collect();
    if filled.iter().any(|number| batches[*number].columns.len() != width) {
        return Err(EngineError::Damaged);
    }
    let mut of_batch = vec![0; batches.len()];
    filled.iter().enumerate().for_each(|(index, number)| of_batch[*number] = index);
    let places: Vec<RowPlace> = places.iter().map(|(batch, row)| (of_batch[*batch], *row)).collect();
    let column = |number: usize| {
        let columns: Vec<&ResultColumn> = filled.iter().map(|batch| &batches[*batch].columns[number]).collect();
        interleaved(&columns, &places)
    };
    (0..width).map(column).collect()
}
