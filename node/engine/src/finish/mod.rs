//! Final step of a query on the node that took the request.
//!
//! The step merges the parts, evaluates groups, cuts rows to a page, and runs queries over inner queries.

use ahash::{AHashMap, AHashSet};
use assay_node_btql::bound::{Bound, Field, Groups, Output, Pivot, Rows};
use assay_node_btql::values::Value;
use assay_node_expressions::Env;
use assay_node_expressions::aggregates::canonical_bytes;

mod merge;

use merge::table_of;

use crate::EngineError;
use crate::groups::inference::Inference;
use crate::groups::{FinishedGroups, Group, GroupTable};
use crate::partial::{Partial, Whole};
use crate::results::Table;
use crate::results::batch::places_in_order;
use crate::rows::output::{Flowing, Outlet, Page, order_of};
use crate::rows::rank::{Rank, by_dimensions, by_keys};
use crate::rows::row_expressions::{Slots, holds, values_asked, values_of};
use crate::scheduling::watch::Watch;

pub use merge::RowMerge;

const PIVOTED_COLUMNS_MAX: usize = 1_000;

/// Upper bounds of a result.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Upper bound of the rows, traces or groups.
    pub rows: Option<u64>,
    /// Bytes of values at which a page ends. The row that reaches them is included.
    pub bytes: usize,
}

/// Returns the innermost query, which reads objects.
pub fn innermost(bound: &Bound) -> &Bound {
    match &bound.rows {
        Rows::Query(inner) => innermost(inner),
        Rows::Objects { .. } => bound,
    }
}

/// Returns the result of a query from the parts of its innermost query.
pub fn finish(
    bound: &Bound,
    partials: Vec<Partial>,
    watch: &Watch,
    limit: &Limit,
    seed: u64,
) -> Result<Table, EngineError> {
    let partials = match &bound.rows {
        Rows::Objects { .. } => partials,
        Rows::Query(inner) => {
            let limit = Limit { rows: inner.limit, bytes: usize::MAX };
            let table = finish(inner, partials, watch, &limit, seed)?;
            vec![over(bound, table, watch, seed)?]
        }
    };
    watch.check()?;
    let env = watch.env(bound.tz_offset);
    match (Partial::together(bound, partials, seed)?, &bound.output) {
        (Whole::Groups(groups), Output::Groups(how)) => {
            let mut rows = of_groups(how, &groups, &env, rows_max(limit))?;
            rows.values.truncate(rows_max(limit));
            Table::from_rows(rows.columns, &rows.values)
        }
        (Whole::Rows(batches), Output::Rows { columns, .. }) => {
            let names = columns.iter().map(|(name, _)| name.clone()).collect();
            let places = places_in_order(&batches, &order_of(bound));
            table_of(bound, names, &batches, places, limit)
        }
        (Whole::Rows(batches), Output::Infer(infer)) => {
            let budget = usize::try_from(infer.budget).unwrap_or(usize::MAX);
            let mut inference = Inference::new(infer);
            for (batch, row) in places_in_order(&batches, &order_of(bound)).into_iter().take(budget) {
                let values = batches[batch].columns.iter().map(|column| column.value(row));
                values.enumerate().for_each(|(path, value)| inference.add(path, &value));
            }
            let mut rows = inferred(infer, &inference, &env)?;
            rows.values.truncate(rows_max(limit));
            Table::from_rows(rows.columns, &rows.values)
        }
        _ => Err(EngineError::Damaged),
    }
}

fn rows_max(limit: &Limit) -> usize {
    limit.rows.map_or(usize::MAX, |rows| usize::try_from(rows).unwrap_or(usize::MAX))
}

/// Runs a query over the rows of its inner query, one by one.
fn over(bound: &Bound, table: Table, watch: &Watch, seed: u64) -> Result<Partial, EngineError> {
    let env = watch.env(bound.tz_offset);
    let limit = match &bound.output {
        Output::Infer(infer) => usize::try_from(infer.budget).unwrap_or(usize::MAX),
        Output::Rows { .. } | Output::Groups(_) => bound.limit.map_or(usize::MAX, |limit| limit as usize),
    };
    let outlet = Outlet::new(bound, &Page { limit, seed, ..Page::default() }, &env, watch)?;
    let mut filtered = Slots::default();
    let filter = bound.filter.as_ref().map(|filter| filtered.compile(filter, &env)).transpose()?;
    let (mut part, mut grown) = (outlet.start(), watch.hold());
    let mut held = watch.hold();
    held.now(table.bytes())?;
    for number in 0..table.len {
        let of = |field: &Field| match field {
            Field::Inner(column) => table.cells.get(*column).map_or(Value::Null, |cells| cells.value(number)),
            _ => Value::Null,
        };
        if number % 1024 == 0 {
            watch.check()?;
            grown.now(part.bytes())?;
        }
        if let Some(filter) = &filter
            && !holds(filter, &filtered.fill(of))?
        {
            continue;
        }
        // The rows keep the order of the inner query, unless the outer one has its own.
        let object = u32::try_from(number).unwrap_or(u32::MAX);
        outlet.push(
            Flowing { slots: outlet.slots.fill(of), rank: Rank { object, ..Rank::default() } },
            &mut part,
            &mut grown,
        )?;
    }
    Partial::of(part, bound)
}

/// Rows of values, for outputs that are computed as a whole.
struct ValueRows {
    columns: Vec<String>,
    values: Vec<Vec<Value<'static>>>,
}

/// Converts groups to rows, at most `most` if the order is known.
fn of_groups(how: &Groups, made: &FinishedGroups, env: &Env, most: usize) -> Result<ValueRows, EngineError> {
    let mut groups: Vec<Group<'_>> = made.groups().collect();
    if let Some(having) = &how.having {
        let mut slots = Slots::default();
        let having = slots.compile(having, env)?;
        let mut kept = Vec::new();
        for group in groups {
            if holds(&having, &slots.fill(|field| group.field(field)))? {
                kept.push(group);
            }
        }
        groups = kept;
    }
    if how.again.is_some() || how.pivot.is_some() {
        groups.sort_by(|left, right| by_dimensions(left.dimensions(), right.dimensions()));
    }
    if let Some(again) = &how.again {
        return grouped_again(how, again, &groups, env, most);
    }
    if let Some(pivot) = &how.pivot {
        return pivoted(how, pivot, &groups, env);
    }
    let groups = in_order(how, groups, env, most)?;
    let mut slots = Slots::default();
    let columns = slots.compile_all(how.columns.iter().map(|(_, expr)| expr), env)?;
    let row = |group: &Group<'_>| values_of(&columns, &slots.fill(|field| group.field(field)));
    let values = groups.iter().map(row).collect::<Result<_, EngineError>>()?;
    Ok(ValueRows { columns: how.columns.iter().map(|(name, _)| name.clone()).collect(), values })
}

/// Returns the first groups. Groups with equal sort keys are ordered by their dimensions.
fn in_order<'m>(how: &Groups, groups: Vec<Group<'m>>, env: &Env, most: usize) -> Result<Vec<Group<'m>>, EngineError> {
    let mut slots = Slots::default();
    let keys = slots.compile_all(how.sort.iter().map(|key| &key.expr), env)?;
    let mut sorted: Vec<Value<'static>> = Vec::with_capacity(groups.len() * keys.len());
    let mut fields = Vec::new();
    for group in groups.iter().filter(|_| !keys.is_empty()) {
        slots.view(|field| group.field(field), &mut fields);
        for key in &keys {
            sorted.push(key.value(&fields)?);
        }
    }
    let keys_of = |number: usize| &sorted[number * keys.len()..(number + 1) * keys.len()];
    let compare = |left: &usize, right: &usize| {
        let by_keys = by_keys(keys_of(*left), keys_of(*right), &how.sort);
        by_keys.then_with(|| by_dimensions(groups[*left].dimensions(), groups[*right].dimensions()))
    };
    let mut order: Vec<usize> = (0..groups.len()).collect();
    if most > 0 && most < order.len() {
        order.select_nth_unstable_by(most - 1, compare);
        order.truncate(most);
    }
    order.sort_unstable_by(compare);
    Ok(order.into_iter().map(|number| groups[number]).collect())
}

/// Groups the rows of a grouping once more (D-80).
fn grouped_again(
    how: &Groups,
    again: &Groups,
    groups: &[Group<'_>],
    env: &Env,
    most: usize,
) -> Result<ValueRows, EngineError> {
    let mut slots = Slots::default();
    let columns = slots.compile_all(how.columns.iter().map(|(_, expr)| expr), env)?;
    let mut outer = Slots::default();
    let dimensions = outer.compile_all(&again.dimensions, env)?;
    let aggregated = again.aggregates.iter();
    let aggregated = aggregated.map(|aggregate| aggregate.of.as_ref().map(|of| outer.compile(of, env)).transpose());
    let aggregated = aggregated.collect::<Result<Vec<_>, EngineError>>()?;
    let mut table = GroupTable::new(&again.aggregates, 0);
    for group in groups {
        let values = slots.fill(|field| group.field(field));
        let row = values_of(&columns, &values)?;
        let values = outer.fill(|field| match field {
            Field::Inner(number) => row.get(*number).map_or(Value::Null, Value::view),
            _ => Value::Null,
        });
        let found = values_asked(&aggregated, &values)?;
        table.push_row(values_of(&dimensions, &values)?, &found, 0, 0)?;
    }
    of_groups(again, &table.finish(!again.dimensions.is_empty())?, env, most)
}

/// Pivots groups: the values of the last dimension become columns, one for each measure (D-83).
fn pivoted(how: &Groups, pivot: &Pivot, groups: &[Group<'_>], env: &Env) -> Result<ValueRows, EngineError> {
    let last = how
        .dimensions
        .len()
        .checked_sub(1)
        .ok_or_else(|| EngineError::Refused("a pivot needs a dimension whose values become columns".into()))?;
    let mut slots = Slots::default();
    let columns = slots.compile_all(how.columns.iter().map(|(_, expr)| expr), env)?;
    let mut values: Vec<&Value<'static>> = Vec::new();
    let mut places: AHashMap<Vec<u8>, usize> = AHashMap::new();
    // Groups are sorted by their dimensions, so those of one row are adjacent.
    let mut rows: Vec<Vec<(usize, &Group<'_>)>> = Vec::new();
    let key = |of: &[Value<'static>]| {
        let mut key = Vec::new();
        of.iter().for_each(|value| canonical_bytes(value, &mut key));
        key
    };
    let mut row_key = None;
    for group in groups {
        let value = &group.dimensions()[last];
        let place = *places.entry(key(std::slice::from_ref(value))).or_insert_with(|| {
            values.push(value);
            values.len() - 1
        });
        let of_row = Some(key(&group.dimensions()[..last]));
        if of_row != row_key {
            rows.push(Vec::new());
            row_key = of_row;
        }
        rows.last_mut().expect("there is one by now").push((place, group));
    }
    if values.len() * pivot.measures.len() > PIVOTED_COLUMNS_MAX {
        return Err(EngineError::PivotedColumns(PIVOTED_COLUMNS_MAX));
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|left, right| {
        by_dimensions(std::slice::from_ref(values[*left]), std::slice::from_ref(values[*right]))
    });
    let names = pivoted_names(how, pivot, order.iter().map(|place| values[*place]))?;
    let mut keyed: Vec<(Vec<Value<'static>>, Vec<Value<'static>>)> = Vec::new();
    let mut sorting = Slots::default();
    let sort = sorting.compile_all(how.sort.iter().map(|key| &key.expr), env)?;
    for row in &rows {
        let group_values = |group: &Group<'_>| slots.fill(|field| group.field(field));
        let first = group_values(row[0].1);
        let mut cells = values_of(&columns[..pivot.column], &first)?;
        for place in &order {
            let found = row.iter().find(|(of, _)| of == place).map(|(_, group)| group_values(group));
            for measure in &pivot.measures {
                cells.push(found.as_ref().map_or(Ok(Value::Null), |found| columns[*measure].value(found))?);
            }
        }
        let keys = sorting.fill(|field| match field {
            Field::Pivoted(name) => {
                let column = names.iter().position(|column| column == name);
                column.map_or(Value::Null, |column| cells[column].view())
            }
            Field::Dimension(number) if *number < last => row[0].1.dimensions()[*number].view(),
            _ => Value::Null,
        });
        keyed.push((values_of(&sort, &keys)?, cells));
    }
    keyed.sort_by(|(left, _), (right, _)| by_keys(left, right, &how.sort));
    Ok(ValueRows { columns: names, values: keyed.into_iter().map(|(_, cells)| cells).collect() })
}

/// Returns the names of a pivot's columns. `values` are the pivoted values in their order.
///
/// Different values may have the same text, as `1` and `"1"` do, and a result has each name once.
fn pivoted_names<'v>(
    how: &Groups,
    pivot: &Pivot,
    values: impl Iterator<Item = &'v Value<'static>>,
) -> Result<Vec<String>, EngineError> {
    let name = |column: usize| how.columns[column].0.as_str();
    let mut names: Vec<String> = (0..pivot.column).map(|column| name(column).to_owned()).collect();
    for value in values {
        let value = value.to_text().unwrap_or("null".into());
        names.extend(pivot.measures.iter().map(|measure| format!("{value}_{}", name(*measure))));
    }
    let mut known = AHashSet::new();
    match names.iter().find(|name| !known.insert(name.as_str())) {
        Some(name) => Err(EngineError::PivotedTwice(name.clone())),
        None => Ok(names),
    }
}

fn inferred(infer: &assay_node_btql::bound::Infer, inference: &Inference, env: &Env) -> Result<ValueRows, EngineError> {
    let mut slots = Slots::default();
    let sort = slots.compile_all(infer.sort.iter().map(|key| &key.expr), env)?;
    let mut keyed: Vec<(Vec<Value<'static>>, Vec<Value<'static>>)> = Vec::new();
    for found in inference.rows() {
        let row = found.to_vec();
        let values = slots.fill(|field| match field {
            Field::Inner(number) => row.get(*number).map_or(Value::Null, Value::view),
            _ => Value::Null,
        });
        keyed.push((values_of(&sort, &values)?, row));
    }
    keyed.sort_by(|(left, _), (right, _)| by_keys(left, right, &infer.sort));
    let columns = assay_node_btql::bound::INFERRED.map(str::to_owned).into();
    Ok(ValueRows { columns, values: keyed.into_iter().map(|(_, row)| row).collect() })
}
