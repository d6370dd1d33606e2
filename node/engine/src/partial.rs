//! Parts of a result: their encoding between nodes, and their merge.

use assay_node_btql::bound::{Bound, Order, Output};
use assay_node_expressions::codec::{self, Reader};
use bytes::Bytes;

use crate::EngineError;
use crate::groups::{FinishedGroups, GroupTable};
use crate::leaf::counted;
use crate::results::batch::RankedBatch;
use crate::results::ipc;
use crate::rows::output::{Part, order_of};
use crate::rows::rank::Rank;

/// Tag of rows as values, for nodes of releases before 0.6.
const ROWS: u8 = 1;
const GROUPS: u8 = 2;
/// Tag of rows as an Arrow IPC stream.
const COLUMNS: u8 = 3;
/// Number of bytes before the IPC stream: the tag and zeros.
const COLUMNS_OFFSET: usize = 8;

/// Encoding of the rows of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartialFormat {
    /// Consecutive values, which all releases can read.
    Values,
    /// Arrow IPC stream.
    Columns,
}

/// Part of a result.
#[derive(Debug)]
pub struct Partial {
    kind: PartialKind,
    /// Whether selected rows were left out because the part reached its bytes. It is not encoded.
    is_cut: bool,
}

#[derive(Debug)]
enum PartialKind {
    /// Rows in their order.
    Rows(RankedBatch),
    Groups(GroupTable),
}

/// Merged parts.
pub(crate) enum Whole {
    /// Batches of rows, each in its order.
    Rows(Vec<RankedBatch>),
    Groups(FinishedGroups),
}

impl Partial {
    pub(crate) fn of(part: Part, bound: &Bound) -> Result<Partial, EngineError> {
        Ok(match part {
            Part::Rows(top) => {
                Partial::of_batch(RankedBatch::from_rows(top.finish(&order_of(bound)), width(&bound.output))?)
            }
            Part::Batch { batch, is_cut } => Partial { kind: PartialKind::Rows(batch), is_cut },
            Part::Groups(table) => Partial::of_groups(table),
        })
    }

    pub(crate) fn of_batch(batch: RankedBatch) -> Partial {
        Partial { kind: PartialKind::Rows(batch), is_cut: false }
    }

    fn of_groups(table: GroupTable) -> Partial {
        Partial { kind: PartialKind::Groups(table), is_cut: false }
    }

    pub(crate) fn into_batch(self) -> Result<RankedBatch, EngineError> {
        match self.kind {
            PartialKind::Rows(batch) => Ok(batch),
            PartialKind::Groups(_) => Err(EngineError::Damaged),
        }
    }

    /// Returns whether no rows follow this part, which was computed with this upper bound of its rows.
    ///
    /// Only the node that computed the part can tell. A decoded part has other bytes, since its columns may have
    /// narrower types.
    pub fn is_last(&self, bound: &Bound, limit: Option<u64>) -> bool {
        match &self.kind {
            PartialKind::Rows(batch) => {
                !self.is_cut && limit.is_none_or(|limit| limit == 0 || counted(bound, batch) < limit)
            }
            PartialKind::Groups(_) => true,
        }
    }

    /// Returns whether no rows follow a decoded part, of which its node told this.
    ///
    /// Nodes up to 0.6 tell nothing, and their parts may end after any row. Only a part without rows is the last one.
    pub fn ends_input(&self, told: Option<bool>) -> bool {
        let is_empty = || matches!(&self.kind, PartialKind::Rows(batch) if batch.ranks.is_empty());
        told.unwrap_or_else(is_empty)
    }

    /// Returns whether the part has groups, which are never split.
    pub fn is_groups(&self) -> bool {
        matches!(self.kind, PartialKind::Groups(_))
    }

    pub fn encode(&self, format: PartialFormat) -> Result<Vec<u8>, EngineError> {
        let mut out = Vec::new();
        match (&self.kind, format) {
            (PartialKind::Rows(batch), PartialFormat::Columns) => {
                out.resize(COLUMNS_OFFSET, 0);
                out[0] = COLUMNS;
                // Without rows, the types of the columns are unknown.
                if !batch.ranks.is_empty() {
                    out = ipc::encode(batch, out)?;
                }
            }
            (PartialKind::Rows(batch), PartialFormat::Values) => {
                out.push(ROWS);
                codec::put_count(&mut out, batch.ranks.len());
                for (row, rank) in batch.ranks.iter().enumerate() {
                    rank.put(&mut out);
                    batch.columns.iter().for_each(|column| codec::put_value(&mut out, &column.value(row)));
                }
            }
            (PartialKind::Groups(table), _) => {
                out.push(GROUPS);
                table.encode(&mut out);
            }
        }
        Ok(out)
    }

    /// Decodes another node's part of the same query.
    pub fn decode(bound: &Bound, seed: u64, bytes: &Bytes) -> Result<Partial, EngineError> {
        let mut from = Reader::new(bytes);
        let part = match (from.byte()?, &bound.output) {
            (ROWS, Output::Rows { .. } | Output::Infer(_)) => Partial::of_batch(rows(&mut from, bound)?),
            (COLUMNS, Output::Rows { .. } | Output::Infer(_)) if bytes.len() >= COLUMNS_OFFSET => {
                let stream = bytes.slice(COLUMNS_OFFSET..);
                let batch = match stream.is_empty() {
                    true => RankedBatch::default(),
                    false => ipc::decode(stream, width(&bound.output), sort_keys(bound))?,
                };
                return Ok(Partial::of_batch(batch));
            }
            (GROUPS, Output::Groups(groups)) => Partial::of_groups(GroupTable::decode(groups, seed, &mut from)?),
            _ => return Err(EngineError::Damaged),
        };
        if from.is_empty() { Ok(part) } else { Err(EngineError::Damaged) }
    }

    pub(crate) fn together(bound: &Bound, partials: Vec<Partial>, seed: u64) -> Result<Whole, EngineError> {
        let Output::Groups(groups) = &bound.output else {
            let batches = partials.into_iter().map(|partial| match partial.kind {
                PartialKind::Rows(batch) => Ok(batch),
                PartialKind::Groups(_) => Err(EngineError::Damaged),
            });
            return Ok(Whole::Rows(batches.collect::<Result<_, _>>()?));
        };
        let tables = partials.into_iter().map(|partial| match partial.kind {
            PartialKind::Groups(table) => Ok(table),
            PartialKind::Rows(_) => Err(EngineError::Damaged),
        });
        let mut tables = tables.collect::<Result<Vec<_>, _>>()?.into_iter();
        let mut all = tables.next().unwrap_or_else(|| GroupTable::new(&groups.aggregates, seed));
        tables.try_for_each(|table| all.merge(table))?;
        all.finish(!groups.dimensions.is_empty()).map(Whole::Groups)
    }
}

/// Returns the number of columns of a row.
fn width(output: &Output) -> usize {
    match output {
        Output::Rows { columns, .. } => columns.len(),
        Output::Infer(infer) => infer.paths.len(),
        Output::Groups(_) => 0,
    }
}

fn sort_keys(bound: &Bound) -> usize {
    match &bound.output {
        Output::Rows { order: Order::Sorted(keys), .. } => keys.len(),
        _ => 0,
    }
}

fn rows(from: &mut Reader<'_>, bound: &Bound) -> Result<RankedBatch, EngineError> {
    let (keys, columns) = (sort_keys(bound), width(&bound.output));
    let count = from.count(1)?;
    let row = |_| {
        let rank = Rank::take(from, keys)?;
        let values = (0..columns).map(|_| from.value()).collect::<Result<_, _>>()?;
        Ok((rank, values))
    };
    RankedBatch::from_rows((0..count).map(row).collect::<Result<_, EngineError>>()?, columns)
}

#[cfg(test)]
mod tests {
    use assay_node_btql::values::Value;
    use assay_node_btql::{Env, bind, parse_text};

    use super::*;

    /// Rows in the format of releases before 0.6, and as a stream of columns. Both must stay readable.
    const GOLDEN: [&[u8]; 2] =
        [include_bytes!("results/golden/values.bin"), include_bytes!("results/golden/columns.bin")];

    fn bound() -> Bound {
        let query = "SELECT id, metadata.x, created FROM project_logs('p') ORDER BY scores.a";
        bind(&parse_text(query).expect("a query"), &Env::default()).expect("it is bound")
    }

    fn batch() -> RankedBatch {
        let text = |text: &str| Value::Text(text.to_owned().into());
        let rank =
            |sort: Value<'static>, key: u64| Rank { sort: vec![sort], place: key, xact: 9, object: 1, key, nth: 0 };
        let rows = vec![
            (rank(Value::Null, 3), vec![text("a"), Value::Object("{\"y\":[1]}".into()), Value::Stored(7)]),
            (rank(Value::Float(0.5), 2), vec![text("b"), Value::Boolean(true), Value::Stored(-7)]),
            (rank(text("high"), 1), vec![text("é"), Value::Null, Value::Null]),
        ];
        RankedBatch::from_rows(rows, 3).expect("a batch")
    }

    #[test]
    fn parts_of_both_formats_stay_readable() {
        let (bound, expected) = (bound(), batch());
        for golden in GOLDEN {
            let part = Partial::decode(&bound, 0, &Bytes::from_static(golden)).expect("it is decoded");
            let batch = part.into_batch().expect("rows");
            assert_eq!(batch.ranks, expected.ranks);
            for (read, written) in batch.columns.iter().zip(&expected.columns) {
                let values =
                    |column: &crate::ResultColumn| (0..3).map(|row| column.value(row).into_owned()).collect::<Vec<_>>();
                assert_eq!(values(read), values(written));
            }
        }
    }

    #[test]
    fn values_are_written_as_earlier_releases_read_them() {
        let part = Partial::of_batch(batch());
        assert_eq!(part.encode(PartialFormat::Values).expect("it is encoded"), GOLDEN[0]);
    }

    #[test]
    fn a_part_without_rows_reads_back() {
        for format in [PartialFormat::Values, PartialFormat::Columns] {
            let bytes = Partial::of_batch(RankedBatch::default()).encode(format).expect("it is encoded");
            let part = Partial::decode(&bound(), 0, &bytes.into()).expect("it is decoded");
            assert!(part.into_batch().expect("rows").ranks.is_empty());
        }
    }
}
