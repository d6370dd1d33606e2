//! Groups: of rows, of groups again, and as a pivoted table (btql.md, sections 12.4 and 12.6).

use std::cmp::Ordering;

use assay_node_btql::bound::{Groups, Pivot};

use crate::aggregate::aggregate;
use crate::pipeline::{Table, sorted};
use crate::row::{EvalContext, Row, Scope};
use crate::scalar::{evaluate, is_true};
use crate::value::{Value, order, same};

const PIVOTED_COLUMNS_MAX: usize = 1_000;

struct Group {
    dimensions: Vec<Value>,
    aggregates: Vec<Value>,
}

impl Group {
    fn scope<'a>(&'a self, world: EvalContext<'a>) -> Scope<'a> {
        let aggregates = Some(self.aggregates.as_slice());
        Scope { world, row: None, dimensions: &self.dimensions, aggregates, pivoted: &[] }
    }

    fn columns(&self, groups: &Groups, world: EvalContext<'_>) -> Result<Vec<Value>, String> {
        groups.columns.iter().map(|(_, expr)| evaluate(expr, self.scope(world))).collect()
    }
}

pub fn table(groups: &Groups, mut rows: Vec<Row>, world: EvalContext<'_>) -> Result<Table, String> {
    rows.sort_by(|left, right| left.key().cmp(right.key()));
    let mut found = grouped(groups, &rows, world)?;
    // D-79: what holds where no sort says otherwise, and where it leaves two alike.
    found.sort_by(|left, right| by_dimensions(&left.dimensions, &right.dimensions));
    if let Some(having) = &groups.having {
        let mut kept = Vec::new();
        for group in found {
            if is_true(having, group.scope(world))? {
                kept.push(group);
            }
        }
        found = kept;
    }
    if let Some(again) = &groups.again {
        let inner = found.iter().map(|group| Ok(Row { inner: group.columns(groups, world)?, ..Row::default() }));
        return table(again, inner.collect::<Result<_, String>>()?, world);
    }
    if let Some(pivot) = &groups.pivot {
        return pivoted(groups, pivot, found, world);
    }
    let mut keyed = Vec::new();
    for group in found {
        let keys = groups.sort.iter().map(|key| evaluate(&key.expr, group.scope(world)));
        keyed.push((keys.collect::<Result<Vec<_>, _>>()?, group.columns(groups, world)?));
    }
    let columns = groups.columns.iter().map(|(name, _)| name.clone()).collect();
    Ok(Table { columns, rows: sorted(keyed, &groups.sort), cursor: None })
}

/// Groups rows. Without dimensions there is one group, even of no rows.
fn grouped(groups: &Groups, rows: &[Row], world: EvalContext<'_>) -> Result<Vec<Group>, String> {
    let mut members: Vec<(Vec<Value>, Vec<&Row>)> = Vec::new();
    if groups.dimensions.is_empty() {
        members.push((Vec::new(), rows.iter().collect()));
    } else {
        for row in rows {
            let dimensions = groups.dimensions.iter().map(|expr| evaluate(expr, Scope::of_row(world, row)));
            let dimensions = dimensions.collect::<Result<Vec<_>, _>>()?;
            match members.iter_mut().find(|(other, _)| all_same(other, &dimensions)) {
                Some((_, rows)) => rows.push(row),
                None => members.push((dimensions, vec![row])),
            }
        }
    }
    let group = |(dimensions, rows): (Vec<Value>, Vec<&Row>)| {
        let aggregates = groups.aggregates.iter().map(|of| aggregate(of, &rows, world));
        Ok(Group { dimensions, aggregates: aggregates.collect::<Result<_, String>>()? })
    };
    members.into_iter().map(group).collect()
}

fn all_same(left: &[Value], right: &[Value]) -> bool {
    left.iter().zip(right).all(|(left, right)| same(left, right))
}

/// Ascending, nulls last.
fn by_dimensions(left: &[Value], right: &[Value]) -> Ordering {
    let nulls_last =
        |(left, right): (&Value, &Value)| left.is_null().cmp(&right.is_null()).then_with(|| order(left, right));
    left.iter().zip(right).map(nulls_last).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// D-83: the values of the last dimension become columns, one for each measure.
fn pivoted(groups: &Groups, pivot: &Pivot, found: Vec<Group>, world: EvalContext<'_>) -> Result<Table, String> {
    let Some(last) = groups.dimensions.len().checked_sub(1) else { return Err("a pivot needs a dimension".into()) };
    let mut values: Vec<Vec<Value>> = Vec::new();
    let mut rows: Vec<Vec<Group>> = Vec::new();
    for group in found {
        let value = &group.dimensions[last..];
        if !values.iter().any(|other| all_same(other, value)) {
            values.push(value.to_vec());
        }
        match rows.iter_mut().find(|row| all_same(&row[0].dimensions[..last], &group.dimensions[..last])) {
            Some(row) => row.push(group),
            None => rows.push(vec![group]),
        }
    }
    values.sort_by(|left, right| by_dimensions(left, right));
    if values.len() * pivot.measures.len() > PIVOTED_COLUMNS_MAX {
        return Err(format!("the pivot has more than {PIVOTED_COLUMNS_MAX} columns"));
    }
    let name = |column: &usize| groups.columns[*column].0.clone();
    let mut columns: Vec<String> = (0..pivot.column).map(|column| name(&column)).collect();
    for value in &values {
        let value = value[0].to_text().unwrap_or_else(|| "null".into());
        columns.extend(pivot.measures.iter().map(|measure| format!("{value}_{}", name(measure))));
    }
    if let Some((_, twice)) = columns.iter().enumerate().find(|(place, name)| columns[..*place].contains(name)) {
        return Err(format!("the pivot has two columns `{twice}`"));
    }
    let mut keyed = Vec::new();
    for row in &rows {
        let mut cells: Vec<Value> = Vec::new();
        for (_, key) in &groups.columns[..pivot.column] {
            cells.push(evaluate(key, row[0].scope(world))?);
        }
        for value in &values {
            let group = row.iter().find(|group| all_same(&group.dimensions[last..], value));
            for measure in &pivot.measures {
                let measure = &groups.columns[*measure].1;
                cells.push(group.map_or(Ok(Value::Null), |group| evaluate(measure, group.scope(world)))?);
            }
        }
        let pivoted: Vec<(String, Value)> = columns.iter().cloned().zip(cells.iter().cloned()).collect();
        let dimensions = &row[0].dimensions[..last];
        let scope = Scope { world, row: None, dimensions, aggregates: None, pivoted: &pivoted };
        let keys = groups.sort.iter().map(|key| evaluate(&key.expr, scope));
        keyed.push((keys.collect::<Result<Vec<_>, _>>()?, cells));
    }
    Ok(Table { columns, rows: sorted(keyed, &groups.sort), cursor: None })
}
