//! Output of rows on this node: ordered rows, groups, or values for inference. It takes rows by their values;
//! `leaf::spans` is faster for whole columns.

use assay_node_btql::ast::Step;
use assay_node_btql::bound::{Aggregate, Bound, BoundExpr, Groups, Infer, Key, Order, Output, Unpivot};
use assay_node_btql::values::Value;
use assay_node_expressions::{Env, Program};

use crate::EngineError;
use crate::groups::GroupTable;
use crate::results::batch::RankedBatch;
use crate::rows::preview;
use crate::rows::rank::{Rank, Top};
use crate::rows::row_expressions::{Slots, holds, values_asked, values_of};
use crate::scheduling::watch::{MemoryHold, Watch};
use crate::summary;

/// Number of unpivoted rows of one row between two checks of time and memory.
const ROWS_BETWEEN_CHECKS: u32 = 32;

/// Default order of rows, and of writes.
pub(crate) const NEWEST_FIRST: Order = Order::Key { by: Key::Pagination, descending: true };
const NEWEST_WRITES_FIRST: Order = Order::Key { by: Key::Xact, descending: true };

/// Part of a result from one thread or node.
#[derive(Debug)]
pub(crate) enum Part {
    /// Best rows so far, as values.
    Rows(Top<Vec<Value<'static>>>),
    /// Rows in their order, as columns.
    Batch {
        batch: RankedBatch,
        /// Whether selected rows were left out because the page reached its bytes.
        is_cut: bool,
    },
    Groups(GroupTable),
}

/// Plan for converting rows to a result.
#[derive(Debug)]
pub(crate) struct Outlet {
    pub slots: Slots,
    unpivots: Vec<(Program, Option<usize>, usize)>,
    filter: Option<Program>,
    ending: Ending,
    pub order: Order,
    limit: usize,
    after: Option<crate::rows::rank::Position>,
    seed: u64,
    watch: Watch,
}

#[derive(Debug)]
enum Ending {
    Rows { sort: Vec<Program>, columns: Vec<(Program, Option<i64>)> },
    Groups { dimensions: Vec<Program>, aggregated: Vec<Option<Program>>, aggregates: Vec<Aggregate> },
}

/// Row that is being processed.
#[derive(Clone, Debug)]
pub(crate) struct Flowing {
    pub slots: Vec<Value<'static>>,
    pub rank: Rank,
}

/// Numbers of rows and members that an unpivot has created from one row.
#[derive(Clone, Copy, Debug, Default)]
struct RowProgress {
    rows: u32,
    members: u32,
}

/// Bounds of a page.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Page {
    pub limit: usize,
    /// Upper bound of the traces, which for shape traces replaces that of rows.
    pub traces: usize,
    /// Bytes of texts after which the page may end early, or `None` for a complete page.
    pub bytes: Option<usize>,
    pub after: Option<crate::rows::rank::Position>,
    pub seed: u64,
}

/// Returns the order of a query's rows.
pub(crate) fn order_of(bound: &Bound) -> Order {
    match &bound.output {
        Output::Rows { order, .. } => order.clone(),
        Output::Groups(_) | Output::Infer(_) if bound.audit_log => NEWEST_WRITES_FIRST,
        Output::Groups(_) | Output::Infer(_) => NEWEST_FIRST,
    }
}

/// Returns the expressions of a result row, with the lengths of their previews.
pub(crate) fn columns_of(bound: &Bound) -> Vec<(BoundExpr, Option<i64>)> {
    match &bound.output {
        Output::Rows { columns, .. } => {
            columns.iter().map(|(_, expr)| (expr.clone(), preview::length(bound, expr))).collect()
        }
        Output::Infer(infer) => inferred(infer).into_iter().map(|expr| (expr, None)).collect(),
        Output::Groups(_) => Vec::new(),
    }
}

fn inferred(infer: &Infer) -> Vec<BoundExpr> {
    infer.paths.iter().map(|path| BoundExpr::Field(path.field.clone(), path.steps.clone())).collect()
}

impl Part {
    pub fn new(bound: &Bound, page: &Page) -> Part {
        match &bound.output {
            Output::Groups(groups) => Part::Groups(GroupTable::new(&groups.aggregates, page.seed)),
            Output::Rows { .. } | Output::Infer(_) => Part::Rows(Top::new(page.limit)),
        }
    }

    /// Returns the memory of the part.
    pub fn bytes(&self) -> usize {
        match self {
            Part::Rows(top) => top.bytes(),
            Part::Batch { batch, .. } => batch.bytes(),
            Part::Groups(table) => table.bytes(),
        }
    }

    pub fn merge(&mut self, other: Part, order: &Order) -> Result<(), EngineError> {
        match (self, other) {
            (Part::Rows(rows), Part::Rows(others)) => rows.merge(others, order),
            (Part::Groups(groups), Part::Groups(others)) => groups.merge(others)?,
            _ => return Err(EngineError::Damaged),
        }
        Ok(())
    }

    /// Merges the parts of all threads.
    pub fn together(parts: Vec<Part>, bound: &Bound, page: &Page) -> Result<Part, EngineError> {
        let order = order_of(bound);
        let mut parts = parts.into_iter();
        let mut all = parts.next().unwrap_or_else(|| Part::new(bound, page));
        parts.try_for_each(|part| all.merge(part, &order))?;
        Ok(all)
    }
}

impl Outlet {
    pub fn new(bound: &Bound, page: &Page, env: &Env, watch: &Watch) -> Result<Outlet, EngineError> {
        let mut slots = Slots::default();
        let unpivots = bound.unpivot.iter().map(|unpivot| unpivoted(&mut slots, unpivot, env));
        let unpivots = unpivots.collect::<Result<Vec<_>, EngineError>>()?;
        let filter = bound.unpivoted_filter.as_ref().map(|filter| slots.compile(filter, env)).transpose()?;
        let ending = match &bound.output {
            Output::Groups(groups) => of_groups(&mut slots, groups, env)?,
            Output::Rows { order, .. } => {
                let sort = match order {
                    Order::Sorted(keys) => slots.compile_all(keys.iter().map(|key| &key.expr), env)?,
                    Order::Key { .. } => Vec::new(),
                };
                Ending::Rows { sort, columns: selected(&mut slots, bound, env)? }
            }
            Output::Infer(_) => Ending::Rows { sort: Vec::new(), columns: selected(&mut slots, bound, env)? },
        };
        let (order, Page { limit, after, seed, .. }) = (order_of(bound), *page);
        let watch = watch.clone();
        Ok(Outlet { slots, unpivots, filter, ending, order, limit, after, seed, watch })
    }

    pub fn start(&self) -> Part {
        match &self.ending {
            Ending::Rows { .. } => Part::Rows(Top::new(self.limit)),
            Ending::Groups { aggregates, .. } => Part::Groups(GroupTable::new(aggregates, self.seed)),
        }
    }

    /// Processes a row: unpivot, filter, then its group or rank.
    pub fn push(&self, mut row: Flowing, part: &mut Part, held: &mut MemoryHold) -> Result<(), EngineError> {
        row.slots.resize(self.slots.fields.len(), Value::Null);
        self.unpivot(&mut row, &self.unpivots, &mut RowProgress::default(), part, held)
    }

    fn unpivot(
        &self,
        row: &mut Flowing,
        unpivots: &[(Program, Option<usize>, usize)],
        made: &mut RowProgress,
        part: &mut Part,
        held: &mut MemoryHold,
    ) -> Result<(), EngineError> {
        let Some(((of, key, value), rest)) = unpivots.split_first() else {
            return self.end(row, &mut made.rows, part);
        };
        let found = of.value(&row.slots)?;
        for (name, member) in found.spread(key.is_some()) {
            if member.is_null() {
                continue;
            }
            if let (Some(key), Some(name)) = (key, name) {
                row.slots[*key] = Value::Text(name.into());
            }
            row.slots[*value] = member;
            made.members = made.members.wrapping_add(1);
            if made.members.is_multiple_of(ROWS_BETWEEN_CHECKS) {
                self.watch.check()?;
                held.now(part.bytes())?;
            }
            self.unpivot(row, rest, made, part, held)?;
        }
        Ok(())
    }

    fn end(&self, row: &mut Flowing, nth: &mut u32, part: &mut Part) -> Result<(), EngineError> {
        if let Some(filter) = &self.filter
            && !holds(filter, &row.slots)?
        {
            return Ok(());
        }
        match (&self.ending, part) {
            (Ending::Groups { dimensions, aggregated, .. }, Part::Groups(table)) => {
                let values = values_asked(aggregated, &row.slots)?;
                table.push_row(values_of(dimensions, &row.slots)?, &values, row.rank.key, row.rank.object)
            }
            (Ending::Rows { sort, columns }, Part::Rows(top)) => {
                let sort = values_of(sort, &row.slots)?;
                let rank = Rank { sort, nth: row.rank.nth + *nth, ..row.rank.clone() };
                *nth += 1;
                if self.is_on_page(&rank) && top.takes(&rank, &self.order) {
                    let values = columns.iter().map(|(of, length)| Ok(shown(of.value(&row.slots)?, *length)));
                    top.offer(rank, values.collect::<Result<_, EngineError>>()?, &self.order);
                }
                Ok(())
            }
            _ => Err(EngineError::Damaged),
        }
    }

    pub fn is_on_page(&self, rank: &Rank) -> bool {
        self.after.is_none_or(|after| rank.is_behind(&after, &self.order))
    }

    /// Returns whether neither this row nor later ones change the result. Sorted rows depend on their values, so they
    /// never do.
    pub fn is_full(&self, part: &mut Part, next: &Rank) -> bool {
        match (part, &self.order) {
            (Part::Rows(top), Order::Key { .. }) => {
                top.cut(&self.order);
                !top.takes(next, &self.order)
            }
            _ => false,
        }
    }
}

fn unpivoted(slots: &mut Slots, unpivot: &Unpivot, env: &Env) -> Result<(Program, Option<usize>, usize), EngineError> {
    let of = slots.compile(&unpivot.of, env)?;
    let mut named = |name: &String| {
        // A later column of the same name hides the earlier one.
        let field = (assay_node_btql::bound::Field::Unpivoted(name.clone()), Vec::<Step>::new());
        slots.fields.iter().position(|known| *known == field).unwrap_or_else(|| {
            slots.fields.push(field);
            slots.fields.len() - 1
        })
    };
    let key = unpivot.key.as_ref().map(&mut named);
    let value = named(&unpivot.value);
    Ok((of, key, value))
}

fn of_groups(slots: &mut Slots, groups: &Groups, env: &Env) -> Result<Ending, EngineError> {
    let dimensions = slots.compile_all(&groups.dimensions, env)?;
    let aggregated =
        groups.aggregates.iter().map(|aggregate| aggregate.of.as_ref().map(|of| slots.compile(of, env)).transpose());
    let aggregated = aggregated.collect::<Result<_, EngineError>>()?;
    Ok(Ending::Groups { dimensions, aggregated, aggregates: groups.aggregates.clone() })
}

fn selected(slots: &mut Slots, bound: &Bound, env: &Env) -> Result<Vec<(Program, Option<i64>)>, EngineError> {
    let column = |(expr, length): (BoundExpr, Option<i64>)| Ok((slots.compile(&expr, env)?, length));
    columns_of(bound).into_iter().map(column).collect()
}

pub(crate) fn shown(value: Value<'static>, length: Option<i64>) -> Value<'static> {
    match length {
        Some(length) => summary::preview(value, length),
        None => value,
    }
}
