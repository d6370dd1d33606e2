//! Resolution after parsing, when the whole query is known. Positions beside a select are groups (D-26). A
//! double-quoted word alone is a column or an alias if there is one of that name, otherwise a text (D-21). Before IS
//! NULL, where a text makes no sense, it is a name, such as that of a score (D-43).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::ast::{
    Expr, From, InferClause, Node, Path, PivotClause, Query, Quotes, Select, SelectItem, Shape, Source, Step, Unary,
};
use crate::columns::{COMPARISON_KEY, Kind, SPAN_TYPE_INFO, source};
use crate::error::QueryError;
use crate::print::item_name;

type NameSet = BTreeSet<String>;

/// Settles a filter that is stored outside of a query, which is a filter of spans.
pub(super) fn expression(mut expr: Expr) -> Expr {
    let names = columns_of(Kind::ProjectLogs, Shape::Spans);
    settle(&mut expr, &names);
    expr
}

pub(super) fn query(mut query: Query) -> Result<Query, QueryError> {
    match query.from.as_mut().map(|from| &mut from.source) {
        Some(Source::Query(inner)) => **inner = self::query(std::mem::take(&mut **inner))?,
        // Which objects: nothing there is a column.
        Some(Source::Objects { args, .. }) => args.iter_mut().for_each(|arg| settle(arg, &NameSet::new())),
        None => {}
    }
    let mut names = columns_of_source(query.from.as_ref());
    names.extend(aliases(&query));
    each_expr(&mut query, &mut |expr| settle(expr, &names));
    query.positions_as_groups();
    Ok(query)
}

fn columns_of(kind: Kind, shape: Shape) -> NameSet {
    let summary: &[&str] = if shape == Shape::Summary { &[SPAN_TYPE_INFO, COMPARISON_KEY] } else { &[] };
    kind.columns().iter().chain(summary).map(|column| (*column).to_owned()).collect()
}

fn columns_of_source(from: Option<&From>) -> NameSet {
    match from {
        Some(From { source: Source::Query(inner), .. }) => output_names(inner),
        Some(From { source: Source::Objects { name, .. }, shape, .. }) => {
            columns_of(source(name).map_or(Kind::ProjectLogs, |(kind, _)| kind), shape.unwrap_or_default())
        }
        None => columns_of(Kind::ProjectLogs, Shape::Spans),
    }
}

fn items(query: &Query) -> impl Iterator<Item = &SelectItem> {
    let selected = query.select.iter().filter_map(|select| match select {
        Select::Item(item) => Some(item),
        Select::Star(_) => None,
    });
    let pivot = match &query.pivot {
        Some(PivotClause::Measures(items) | PivotClause::For { measures: items, .. }) => items.as_slice(),
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

/// The names that the query gives: aliases, the last steps of longer paths without one (section 8.3), unpivoted names.
fn aliases(query: &Query) -> NameSet {
    let unpivoted = query.unpivot.iter().flat_map(|unpivot| unpivot.key.iter().chain([&unpivot.value]));
    let is_longer = |item: &SelectItem| matches!(&item.expr.node, Node::Path(Path { steps, .. }) if matches!(steps.as_slice(), [_, .., Step::Key(_)]));
    let named = items(query).filter(|item| item.alias.is_some() || is_longer(item));
    named.map(item_name).chain(unpivoted.cloned()).collect()
}

/// The names of a query's columns, which is settled.
fn output_names(query: &Query) -> NameSet {
    let mut names: NameSet = items(query).map(item_name).collect();
    if query.select.iter().any(|select| matches!(select, Select::Star(_))) {
        names.extend(columns_of_source(query.from.as_ref()));
        names.extend(aliases(query));
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
    let pivot: &mut [SelectItem] = match &mut query.pivot {
        Some(PivotClause::Measures(items) | PivotClause::For { measures: items, .. }) => items,
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
        if let InferClause::Path(path) = infer
            && path.quotes == Quotes::Undecided
        {
            path.quotes = Quotes::Name;
        }
    }
}

fn settle(expr: &mut Expr, names: &NameSet) {
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
