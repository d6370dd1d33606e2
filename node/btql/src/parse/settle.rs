//! What hangs on the whole of a query: positions that are groups (D-26), and what a double quote alone means: a column or an alias if it is the name of one, and otherwise a text (D-21). Where a text
//! would be senseless, before IS NULL, it is a name: such is a score's (D-43).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::ast::{Expr, Infer, Item, Node, Path, Pivot, Query, Quotes, Select, Source, Step, Unary};
use crate::columns::{Kind, source};
use crate::error::QueryError;

type Names = BTreeSet<String>;

/// Of a query whose filters are not seen in one: a filter stored elsewhere is one of spans.
pub(super) fn expression(mut expr: Expr) -> Expr {
    let names = columns_of(Kind::ProjectLogs);
    settle(&mut expr, &names);
    expr
}

pub(super) fn query(mut query: Query) -> Result<Query, QueryError> {
    let mut names = match query.from.as_mut().map(|from| &mut from.source) {
        Some(Source::Query(inner)) => {
            **inner = self::query(std::mem::take(&mut **inner))?;
            output_names(inner)
        }
        Some(Source::Objects { name, args }) => {
            // Which objects: nothing there is a column.
            args.iter_mut().for_each(|arg| settle(arg, &Names::new()));
            columns_of(source(name).map_or(Kind::ProjectLogs, |(kind, _)| kind))
        }
        None => columns_of(Kind::ProjectLogs),
    };
    names.extend(aliases(&query));
    each_expr(&mut query, &mut |expr| settle(expr, &names));
    query.positions_as_groups();
    Ok(query)
}

fn columns_of(kind: Kind) -> Names {
    kind.columns().iter().map(|column| (*column).to_owned()).collect()
}

fn items(query: &Query) -> impl Iterator<Item = &Item> {
    let selected = query.select.iter().filter_map(|select| match select {
        Select::Item(item) => Some(item),
        Select::Star(_) => None,
    });
    let pivot = match &query.pivot {
        Some(Pivot::Measures(items) | Pivot::For { measures: items, .. }) => items.as_slice(),
        None => &[],
    };
    let lists = [
        query.dimensions.as_slice(),
        &query.measures,
        pivot,
        &query.final_dimensions,
        &query.final_measures,
        &query.custom_columns,
    ];
    selected.chain(lists.into_iter().flatten())
}

fn aliases(query: &Query) -> Names {
    let unpivoted = query.unpivot.iter().flat_map(|unpivot| unpivot.key.iter().chain([&unpivot.value]));
    items(query).filter_map(|item| item.alias.clone()).chain(unpivoted.cloned()).collect()
}

/// The names of a query's columns, as far as they can be seen here: its aliases and the last steps of its paths.
fn output_names(query: &Query) -> Names {
    let last_steps = items(query).filter_map(|item| match &item.expr.node {
        Node::Path(Path { steps, .. }) => match steps.last() {
            Some(Step::Key(key)) => Some(key.clone()),
            _ => None,
        },
        _ => None,
    });
    let mut names: Names = aliases(query).into_iter().chain(last_steps).collect();
    if query.select.iter().any(|select| matches!(select, Select::Star(_))) {
        names.extend(match query.from.as_ref().map(|from| &from.source) {
            Some(Source::Query(inner)) => output_names(inner),
            Some(Source::Objects { name, .. }) => columns_of(source(name).map_or(Kind::ProjectLogs, |(kind, _)| kind)),
            None => Names::new(),
        });
    }
    names
}

/// Every expression of a query, but for those of its source.
fn each_expr(query: &mut Query, f: &mut impl FnMut(&mut Expr)) {
    for select in &mut query.select {
        match select {
            Select::Star(replaced) => replaced.iter_mut().for_each(|(_, expr)| f(expr)),
            Select::Item(item) => f(&mut item.expr),
        }
    }
    let pivot: &mut [Item] = match &mut query.pivot {
        Some(Pivot::Measures(items) | Pivot::For { measures: items, .. }) => items,
        None => &mut [],
    };
    let lists = [
        query.dimensions.as_mut_slice(),
        &mut query.measures,
        pivot,
        &mut query.final_dimensions,
        &mut query.final_measures,
        &mut query.custom_columns,
        &mut query.weighted_scores,
    ];
    lists.into_iter().flatten().for_each(|item| f(&mut item.expr));
    query.group_by.iter_mut().flatten().for_each(&mut *f);
    let conditions = [
        &mut query.filter,
        &mut query.span_filter,
        &mut query.trace_filter,
        &mut query.final_filter,
        &mut query.comparison_key,
    ];
    conditions.into_iter().flatten().for_each(&mut *f);
    query.unpivot.iter_mut().for_each(|unpivot| f(&mut unpivot.expr));
    query.sort.iter_mut().for_each(|sort| f(&mut sort.expr));
    for infer in &mut query.infer {
        if let Infer::Path(path) = infer
            && path.quotes == Quotes::Undecided
        {
            path.quotes = Quotes::Name;
        }
    }
}

fn settle(expr: &mut Expr, names: &Names) {
    match &mut expr.node {
        Node::Path(path) if path.quotes == Quotes::Undecided => {
            let Some(Step::Key(text)) = path.steps.first() else { unreachable!("a quote is a key") };
            if names.contains(text) {
                path.quotes = Quotes::Name;
            } else {
                expr.node = Node::Literal(Value::String(text.clone()));
            }
        }
        Node::Unary(Unary::IsNull | Unary::IsNotNull, of)
            if matches!(&of.node, Node::Path(Path { quotes: Quotes::Undecided, .. })) =>
        {
            if let Node::Path(path) = &mut of.node {
                path.quotes = Quotes::Name;
            }
        }
        _ => {
            let mut node = std::mem::replace(&mut expr.node, Node::Star);
            crate::level(|| node.children_mut(&mut |child| settle(child, names)));
            // An array of what turned out to be texts is a literal like any other.
            node = match node {
                Node::Array(of) => Node::array(of),
                Node::Object(of) => Node::object(of),
                other => other,
            };
            *expr = Expr::new(expr.at, node);
        }
    }
}
