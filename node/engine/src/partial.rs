//! What a node has of an answer, as it is sent to the one that was asked, and what all have together.

use assay_node_btql::bound::{Bound, Order, Output};
use assay_node_expressions::codec::{self, Reader};

use crate::EngineError;
use crate::groups::{GroupTable, Made};
use crate::rows::output::{Part, Ranked, order_of};
use crate::rows::rank::Rank;

const ROWS: u8 = 1;
const GROUPS: u8 = 2;

/// A part of an answer.
#[derive(Debug)]
pub struct Partial(Kind);

#[derive(Debug)]
enum Kind {
    /// In their order.
    Rows(Vec<Ranked>),
    Groups(GroupTable),
}

/// What all parts are together.
pub(crate) enum Whole {
    Rows(Vec<Ranked>),
    Groups(Made),
}

impl Partial {
    pub(crate) fn of(part: Part, order: &Order) -> Partial {
        Partial(match part {
            Part::Rows(top) => Kind::Rows(top.finish(order)),
            Part::Groups(table) => Kind::Groups(table),
        })
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match &self.0 {
            Kind::Rows(rows) => {
                out.push(ROWS);
                codec::put_count(&mut out, rows.len());
                for (rank, values) in rows {
                    rank.put(&mut out);
                    values.iter().for_each(|value| codec::put_value(&mut out, value));
                }
            }
            Kind::Groups(table) => {
                out.push(GROUPS);
                table.encode(&mut out);
            }
        }
        out
    }

    /// Of another node's answer to the same query.
    pub fn decode(bound: &Bound, seed: u64, bytes: &[u8]) -> Result<Partial, EngineError> {
        let mut from = Reader::new(bytes);
        let kind = match (from.byte()?, &bound.output) {
            (ROWS, Output::Rows { columns, order }) => {
                let keys = if let Order::Sorted(keys) = order { keys.len() } else { 0 };
                Kind::Rows(rows(&mut from, keys, columns.len())?)
            }
            (ROWS, Output::Infer(infer)) => Kind::Rows(rows(&mut from, 0, infer.paths.len())?),
            (GROUPS, Output::Groups(groups)) => Kind::Groups(GroupTable::decode(groups, seed, &mut from)?),
            _ => return Err(EngineError::Damaged),
        };
        if from.is_empty() { Ok(Partial(kind)) } else { Err(EngineError::Damaged) }
    }

    pub(crate) fn together(bound: &Bound, partials: Vec<Partial>, seed: u64) -> Result<Whole, EngineError> {
        let Output::Groups(groups) = &bound.output else {
            let mut all: Vec<Ranked> = Vec::new();
            for partial in partials {
                match partial.0 {
                    Kind::Rows(rows) => all.extend(rows),
                    Kind::Groups(_) => return Err(EngineError::Damaged),
                }
            }
            let order = order_of(bound);
            all.sort_by(|(left, _), (right, _)| left.compare(right, &order));
            return Ok(Whole::Rows(all));
        };
        let tables = partials.into_iter().map(|partial| match partial.0 {
            Kind::Groups(table) => Ok(table),
            Kind::Rows(_) => Err(EngineError::Damaged),
        });
        let mut tables = tables.collect::<Result<Vec<_>, _>>()?.into_iter();
        let mut all = tables.next().unwrap_or_else(|| GroupTable::new(&groups.aggregates, seed));
        tables.try_for_each(|table| all.merge(table))?;
        all.finish(!groups.dimensions.is_empty()).map(Whole::Groups)
    }
}

fn rows(from: &mut Reader<'_>, keys: usize, columns: usize) -> Result<Vec<Ranked>, EngineError> {
    let count = from.count(1)?;
    let row = |_| {
        let rank = Rank::take(from, keys)?;
        let values = (0..columns).map(|_| from.value()).collect::<Result<_, _>>()?;
        Ok((rank, values))
    };
    (0..count).map(row).collect()
}
