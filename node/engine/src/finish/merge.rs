//! Incremental merge of the rows of several leaves, in the order of their keys.

use assay_node_btql::bound::{Bound, Order, Output};

use crate::EngineError;
use crate::finish::{Limit, rows_max};
use crate::leaf::{counts_traces, position};
use crate::partial::Partial;
use crate::results::batch::{RankedBatch, RowPlace, columns_of_places, places_in_order};
use crate::results::{ResultColumn, Table};
use crate::rows::output::order_of;
use crate::rows::rank::{Position, Rank, cut_traces};

/// Merge of the rows of leaves. Each leaf sends parts in the order of the query.
#[derive(Debug)]
pub struct RowMerge {
    order: Order,
    inputs: Vec<RowInput>,
}

/// Rows of one leaf that were received and not returned yet.
#[derive(Debug, Default)]
struct RowInput {
    batch: RankedBatch,
    has_ended: bool,
}

impl RowMerge {
    pub fn new(bound: &Bound) -> RowMerge {
        RowMerge { order: order_of(bound), inputs: Vec::new() }
    }

    /// Adds a leaf. Returns its number.
    pub fn add(&mut self) -> usize {
        self.inputs.push(RowInput::default());
        self.inputs.len() - 1
    }

    /// Returns whether the merge needs more rows of this leaf to continue.
    pub fn needs(&self, input: usize) -> bool {
        let input = &self.inputs[input];
        !input.has_ended && input.batch.ranks.is_empty()
    }

    /// Returns whether the merge needs more rows of any leaf to continue.
    pub fn needs_any(&self) -> bool {
        (0..self.inputs.len()).any(|input| self.needs(input))
    }

    /// Adds the next rows of a leaf that needs them. Returns the position of the last one.
    pub fn push(&mut self, input: usize, part: Partial, bound: &Bound) -> Result<Option<Position>, EngineError> {
        let batch = part.into_batch()?;
        let last = batch.ranks.last().map(|rank| position(bound, rank));
        if !self.needs(input) {
            return Err(EngineError::Damaged);
        }
        self.inputs[input].batch = batch;
        Ok(last)
    }

    /// Notes that a leaf has no more rows.
    pub fn end(&mut self, input: usize) {
        self.inputs[input].has_ended = true;
    }

    /// Returns whether all rows were returned.
    pub fn has_ended(&self) -> bool {
        self.inputs.iter().all(|input| input.has_ended && input.batch.ranks.is_empty())
    }

    /// Returns the next rows, as far as no leaf can have earlier ones.
    pub fn take(&mut self, bound: &Bound, limit: &Limit) -> Result<Table, EngineError> {
        let Output::Rows { columns, .. } = &bound.output else { return Err(EngineError::Damaged) };
        let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
        let batches: Vec<RankedBatch> = self.inputs.iter_mut().map(|input| std::mem::take(&mut input.batch)).collect();
        let all = places_in_order(&batches, &self.order);
        let mut places = all.clone();
        places.truncate(self.safe(&batches, &all));
        let table = table_of(bound, names, &batches, places, limit)?;
        let mut taken = vec![0; batches.len()];
        all[..table.len].iter().for_each(|(batch, _)| taken[*batch] += 1);
        for ((input, batch), taken) in self.inputs.iter_mut().zip(batches).zip(taken) {
            input.batch = rest(batch, taken);
        }
        Ok(table)
    }

    /// Returns the number of leading rows for which no leaf can add earlier ones.
    fn safe(&self, batches: &[RankedBatch], all: &[RowPlace]) -> usize {
        let open = self.inputs.iter().zip(batches).filter(|(input, _)| !input.has_ended);
        // A leaf without received rows may still have any rows.
        let lasts: Option<Vec<&Rank>> = open.map(|(_, batch)| batch.ranks.last()).collect();
        let Some(lasts) = lasts else { return 0 };
        let Some(first) = lasts.into_iter().min_by(|left, right| left.compare(right, &self.order)) else {
            return all.len();
        };
        all.partition_point(|(batch, row)| batches[*batch].ranks[*row].compare(first, &self.order).is_le())
    }
}

/// Returns the rows after the first `taken` ones.
fn rest(batch: RankedBatch, taken: usize) -> RankedBatch {
    let rows = batch.ranks.len() - taken;
    match (taken, rows) {
        (0, _) => batch,
        (_, 0) => RankedBatch::default(),
        _ => RankedBatch {
            columns: batch.columns.iter().map(|column| column.slice(taken, rows)).collect(),
            ranks: batch.ranks[taken..].to_vec(),
        },
    }
}

/// Returns the first rows up to the limit. `rows` is in order.
pub(super) fn table_of(
    bound: &Bound,
    columns: Vec<String>,
    batches: &[RankedBatch],
    mut rows: Vec<RowPlace>,
    limit: &Limit,
) -> Result<Table, EngineError> {
    let rank = |(batch, row): RowPlace| &batches[batch].ranks[row];
    let is_of_traces = counts_traces(bound);
    if is_of_traces {
        cut_traces(&mut rows, |row| rank(*row).trace(), rows_max(limit));
    } else {
        rows.truncate(rows_max(limit));
    }
    let (wanted, mut bytes) = (rows.len(), 0);
    let fitting = rows.iter().position(|(batch, row)| {
        bytes += batches[*batch].columns.iter().map(|column| column.cell_bytes(*row)).sum::<usize>();
        bytes >= limit.bytes
    });
    if let Some(last) = fitting {
        let trace = rank(rows[last]).trace();
        // A trace is never split between pages.
        let whole = rows[last..].iter().take_while(|row| is_of_traces && rank(**row).trace() == trace).count();
        rows.truncate(last + whole.max(1));
    }
    let counted = if is_of_traces {
        rows.iter().map(|row| rank(*row).trace()).collect::<ahash::AHashSet<_>>().len()
    } else {
        rows.len()
    };
    let end = rows.last().filter(|_| bound.has_pages()).map(|row| position(bound, rank(*row)));
    let mut cells = columns_of_places(batches, &rows)?;
    // Without any row, no batch has columns.
    cells.resize(columns.len(), ResultColumn::from_values(&[])?);
    let cut = rows.len() < wanted;
    Ok(Table { columns: columns.into(), cells, len: rows.len(), end, counted: counted as u64, cut })
}

#[cfg(test)]
mod tests {
    use assay_node_btql::values::Value;
    use assay_node_btql::{Env, bind, parse_text};

    use super::*;

    #[test]
    fn a_table_that_its_last_row_fills_is_not_cut() {
        let query = "SELECT id FROM project_logs('p') ORDER BY created";
        let bound = bind(&parse_text(query).expect("a query"), &Env::default()).expect("it is bound");
        let row = |key: u64| (Rank { key, ..Rank::default() }, vec![Value::Text(format!("row {key}").into())]);
        let batches = [RankedBatch::from_rows((0..3).map(row).collect(), 1).expect("a batch")];
        let each = batches[0].columns[0].cell_bytes(0);
        let table = |bytes: usize| {
            let rows = (0..3).map(|row| (0, row)).collect();
            let table = table_of(&bound, vec!["id".into()], &batches, rows, &Limit { rows: Some(9), bytes });
            table.map(|table| (table.len, table.cut)).expect("a table")
        };
        assert_eq!((table(usize::MAX), table(3 * each), table(2 * each + 1)), ((3, false), (3, false), (3, false)));
        assert_eq!((table(2 * each), table(1)), ((2, true), (1, true)));
    }
}
