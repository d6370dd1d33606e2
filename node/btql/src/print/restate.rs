//! Conversion between the two ways to group: SQL selects columns and groups by some of them, clauses list dimensions
//! and measures.

use super::Unsayable;
use crate::ast::{At, Call, Expr, Logic, Node, Path, PivotClause, Query, Select, SelectItem, Sort, Step};

/// The name that an item has without an alias, where it is a path's.
pub(super) fn last_key(item: &SelectItem) -> Option<&str> {
    match (&item.alias, &item.expr.node) {
        (Some(alias), _) => Some(alias),
        (None, Node::Path(Path { steps, .. })) => match steps.last() {
            Some(Step::Key(key)) => Some(key),
            _ => None,
        },
        _ => None,
    }
}

/// Which of the items an expression means: a position, a name, or the same again.
fn meant<'a>(expr: &Expr, items: &'a [SelectItem]) -> Option<&'a SelectItem> {
    if let Some(position) = expr.position() {
        return items.get(position.checked_sub(1)?);
    }
    let same = items.iter().find(|item| item.expr == *expr);
    let named = || match &expr.node {
        Node::Path(Path { steps, .. }) => match steps.as_slice() {
            [Step::Key(name)] => items.iter().find(|item| last_key(item) == Some(name)),
            _ => None,
        },
        _ => None,
    };
    same.or_else(named)
}

fn selected(query: &Query, form: &'static str) -> Result<Vec<SelectItem>, Unsayable> {
    let item = |select: &Select| match select {
        Select::Item(item) => Ok(item.clone()),
        Select::Star(_) => Err(Unsayable { form, what: "all columns of a query that groups" }),
    };
    query.select.iter().map(item).collect()
}

/// The same with dimensions and measures.
pub(super) fn as_dimensions(query: &Query, form: &'static str) -> Result<Query, Unsayable> {
    let no_words = |what| Err(Unsayable { form, what });
    if !query.settings.is_empty() {
        return no_words("SETTINGS");
    }
    let mut query = query.clone();
    if query.group_by.is_none() && !query.distinct && !matches!(query.pivot, Some(PivotClause::For { .. })) {
        return Ok(query);
    }
    let group_by = query.group_by.take().unwrap_or_default();
    let is_pivot = matches!(query.pivot, Some(PivotClause::For { .. }));
    let is_star = matches!(query.select.as_slice(), [Select::Star(replaced)] if replaced.is_empty());
    let items = match group_by.iter().any(|group| group.position().is_some()) {
        // Of a pivot, `*` has what is grouped by.
        false if is_pivot && is_star => {
            group_by.iter().map(|expr| SelectItem { expr: expr.clone(), alias: None }).collect()
        }
        _ => selected(&query, form)?,
    };
    let mut groups = Vec::new();
    for group in group_by {
        match meant(&group, &items) {
            // Its keys are counted, and here they would be fewer.
            Some(item) if groups.contains(item) && is_pivot => return no_words("a pivot's key that is said twice"),
            Some(item) if groups.contains(item) => {}
            Some(item) => groups.push(item.clone()),
            None => return no_words("a group that is not selected"),
        }
    }
    let pivoted = match query.pivot.take() {
        Some(PivotClause::For { measures, column }) => {
            if !is_star && !names_all(&items, &groups, &measures, &column) {
                return no_words("a PIVOT of which not all columns are selected, or others");
            }
            groups.push(SelectItem { expr: Expr::new(At::default(), Node::Path(column)), alias: None });
            Some(measures)
        }
        other => {
            query.pivot = other;
            None
        }
    };
    query.sort = query.sort.into_iter().map(|sort| by_name(sort, &items)).collect();
    query.select.clear();
    if query.distinct {
        groups = items.clone();
        query.distinct = false;
    }
    query.measures = match pivoted {
        Some(measures) => {
            let names = measures.iter().map(|measure| match &measure.alias {
                Some(alias) => Ok(SelectItem { expr: Expr::path(&[alias]), alias: None }),
                None => Err(Unsayable { form, what: "a pivoted measure without an alias" }),
            });
            query.pivot = Some(PivotClause::Measures(names.collect::<Result<_, _>>()?));
            measures
        }
        None => items.into_iter().filter(|item| !groups.contains(item)).collect(),
    };
    query.dimensions = groups;
    Ok(query)
}

/// Whether beside the groups the select of a PIVOT has its column and its measures, and nothing else.
fn names_all(items: &[SelectItem], groups: &[SelectItem], measures: &[SelectItem], column: &Path) -> bool {
    let others: Vec<&SelectItem> = items.iter().filter(|item| !groups.contains(item)).collect();
    let is_column = |item: &SelectItem| matches!(&item.expr.node, Node::Path(path) if path.steps == column.steps);
    let has =
        |measure: &SelectItem| others.iter().any(|item| last_key(item) == last_key(measure) && names_it(item, measure));
    others.len() == measures.len() + 1 && others.iter().any(|item| is_column(item)) && measures.iter().all(has)
}

fn by_name(sort: Sort, items: &[SelectItem]) -> Sort {
    let is_position = sort.expr.position().is_some();
    let Some(item) = meant(&sort.expr, items).filter(|_| is_position) else { return sort };
    let expr = item.alias.as_ref().map_or_else(|| item.expr.clone(), |alias| Expr::path(&[alias]));
    Sort { expr, ..sort }
}

/// Returns the part of a query that SQL cannot express.
fn beyond_sql(query: &Query) -> Option<&'static str> {
    let has_dimensions = !query.dimensions.is_empty() || !query.measures.is_empty();
    let has_finals = !query.final_dimensions.is_empty() || !query.final_measures.is_empty();
    let all = [
        ("infer", !query.infer.is_empty()),
        ("preview_length", query.preview_length.is_some()),
        ("inference_budget", query.inference_budget.is_some()),
        ("comparison_key", query.comparison_key.is_some()),
        ("weighted_scores", !query.weighted_scores.is_empty()),
        ("custom_columns", !query.custom_columns.is_empty()),
        ("final_dimensions and final_measures", has_finals),
        ("a select beside dimensions and measures", has_dimensions && !query.select.is_empty()),
    ];
    all.into_iter().find(|(_, has_some)| *has_some).map(|(what, _)| what)
}

/// The same with a select and its groups.
pub(super) fn as_select(query: &Query, form: &'static str) -> Result<Query, Unsayable> {
    let no_words = |what| Err(Unsayable { form, what });
    if let Some(what) = beyond_sql(query) {
        return no_words(what);
    }
    let mut query = query.clone();
    let filter_spans = query.trace_filter.take().map(|filter| {
        Expr::new(filter.at, Node::Call(Call { name: "filter_spans".into(), args: vec![filter], distinct: false }))
    });
    let conditions: Vec<Expr> =
        [query.filter.take(), query.span_filter.take(), filter_spans].into_iter().flatten().collect();
    query.filter = conditions.first().map(|first| Expr::new(first.at, Node::logic(Logic::And, conditions.clone())));
    if query.dimensions.is_empty() && query.measures.is_empty() {
        return if matches!(query.pivot, Some(PivotClause::Measures(_))) {
            no_words("a pivot without measures")
        } else {
            Ok(query)
        };
    }
    let (mut dimensions, measures) = (std::mem::take(&mut query.dimensions), std::mem::take(&mut query.measures));
    let columns = dimensions.iter().chain(&measures).cloned().map(Select::Item);
    query.select = columns.collect();
    if let Some(PivotClause::Measures(names)) = &query.pivot {
        let all = names.len() == measures.len()
            && measures.iter().all(|measure| names.iter().any(|name| names_it(name, measure)));
        let by_its_name = |item: &SelectItem| match &item.expr.node {
            Node::Path(path) => {
                last_key(&SelectItem { alias: None, ..item.clone() }) == last_key(item) && !path.steps.is_empty()
            }
            _ => false,
        };
        let column = match dimensions.pop().filter(|item| all && by_its_name(item)).map(|item| item.expr.node) {
            Some(Node::Path(path)) => path,
            _ => return no_words("this pivot"),
        };
        // Of its measures a pivot's select has the names.
        let named = measures
            .iter()
            .map(|measure| last_key(measure).map(|name| SelectItem { expr: Expr::path(&[name]), alias: None }));
        let Some(named) = named.collect::<Option<Vec<_>>>() else {
            return no_words("a pivoted measure without an alias");
        };
        let shown = dimensions
            .iter()
            .cloned()
            .chain([SelectItem { expr: Expr::new(At::default(), Node::Path(column.clone())), alias: None }]);
        query.select = shown.chain(named).map(Select::Item).collect();
        query.pivot = Some(PivotClause::For { measures, column });
    }
    // A number that is grouped by would be a position: it has one itself.
    let group = |(place, item): (usize, SelectItem)| match item.expr.position() {
        Some(_) => Expr::literal(place as u64 + 1),
        None => item.expr,
    };
    let groups: Vec<Expr> = dimensions.into_iter().enumerate().map(group).collect();
    query.group_by = Some(groups).filter(|groups| !groups.is_empty());
    Ok(query)
}

fn names_it(name: &SelectItem, measure: &SelectItem) -> bool {
    let by_name = matches!(&name.expr.node, Node::Path(Path { steps, .. })
        if matches!(steps.as_slice(), [Step::Key(key)] if last_key(measure) == Some(key)));
    by_name || name.expr == measure.expr
}
