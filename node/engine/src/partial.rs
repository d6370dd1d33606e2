//! Parts of an answer: their encoding between nodes, and their merge.

use assay_node_btql::bound::{Bound, Order, Output};
use assay_node_expressions::codec::{self, Reader};

use crate::EngineError;
use crate::groups::{FinishedGroups, GroupTable};
use crate::rows::output::{Part, RankedRow, order_of};
use crate::rows::rank::Rank;

const ROWS: u8 = 1;
const GROUPS: u8 = 2;

/// A part of an answer.
#[derive(Debug)]
pub struct Partial(PartialKind);

#[derive(Debug)]
enum PartialKind {
    /// Rows in their order.
    Rows(Vec<RankedRow>),
    Groups(GroupTable),
}

/// Merge of all parts.
pub(crate) enum Whole {
    Rows(Vec<RankedRow>),
    Groups(FinishedGroups),
}

impl Partial {
    pub(crate) fn of(part: Part, order: &Order) -> Partial {
        Partial(match part {
            Part::Rows(top) => PartialKind::Rows(top.finish(order)),
            Part::Groups(table) => PartialKind::Groups(table),
        })
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match &self.0 {
            PartialKind::Rows(rows) => {
                out.push(ROWS);
                codec::put_count(&mut out, rows.len());
                for (rank, values) in rows {
                    rank.put(&mut out);
                    values.iter().for_each(|value| codec::put_value(&mut out, value));
                }
            }
            PartialKind::Groups(table) => {
                out.push(GROUPS);
                table.encode(&mut out);
            }
        }
        out
    }

    /// Decodes another node's part of the same query.
    pub fn decode(bound: &Bound, seed: u64, bytes: &[u8]) -> Result<Partial, EngineError> {
        let mut from = Reader::new(bytes);
        let kind = match (from.byte()?, &bound.output) {
            (ROWS, Output::Rows { columns, order }) => {
                let keys = if let Order::Sorted(keys) = order { keys.len() } else { 0 };
                PartialKind::Rows(rows(&mut from, keys, columns.len())?)
            }
            (ROWS, Output::Infer(infer)) => PartialKind::Rows(rows(&mut from, 0, infer.paths.len())?),
            (GROUPS, Output::Groups(groups)) => PartialKind::Groups(GroupTable::decode(groups, seed, &mut from)?),
            _ => return Err(EngineError::Damaged),
        };
        if from.is_empty() { Ok(Partial(kind)) } else { Err(EngineError::Damaged) }
    }

    pub(crate) fn together(bound: &Bound, partials: Vec<Partial>, seed: u64) -> Result<Whole, EngineError> {
        let Output::Groups(groups) = &bound.output else {
            let mut all: Vec<RankedRow> = Vec::new();
            for partial in partials {
                match partial.0 {
                    PartialKind::Rows(rows) => all.extend(rows),
                    PartialKind::Groups(_) => return Err(EngineError::Damaged),
                }
            }
            let order = order_of(bound);
            all.sort_by(|(left, _), (right, _)| left.compare(right, &order));
            return Ok(Whole::Rows(all));
        };
        let tables = partials.into_iter().map(|partial| match partial.0 {
            PartialKind::Groups(table) => Ok(table),
            PartialKind::Rows(_) => Err(EngineError::Damaged),
        });
        let mut tables = tables.collect::<Result<Vec<_>, _>>()?.into_iter();
        let mut all = tables.next().unwrap_or_else(|| GroupTable::new(&groups.aggregates, seed));
        tables.try_for_each(|table| all.merge(table))?;
        all.finish(!groups.dimensions.is_empty()).map(Whole::Groups)
    }
}

fn rows(from: &mut Reader<'_>, keys: usize, columns: usize) -> Result<Vec<RankedRow>, EngineError> {
    let count = from.count(1)?;
    let row = |_| {
        let rank = Rank::take(from, keys)?;
        let values = (0..columns).map(|_| from.value()).collect::<Result<_, _>>()?;
        Ok((rank, values))
    };
    (0..count).map(row).collect()
}
