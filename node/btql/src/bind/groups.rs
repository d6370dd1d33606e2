//! Binding of groups: dimensions, aggregates, and the columns of groups (btql.md, sections 12.4 and 12.6).

use super::pivot::Pivoted;
use super::{Binder, Mode, QueryError, expr_name, item_name, no_duplicates};
use crate::ast::{self, Call, Node, Path, Select, SelectItem, Step};
use crate::bound::{Aggregate, Aggregation, BoundExpr, Datum, Field, Groups, SortKey};
use crate::functions::{AggregationName, CallTarget, find};

/// State of groups while their columns are bound.
#[derive(Default)]
pub(super) struct State {
    pub dimensions: Vec<BoundExpr>,
    pub aggregates: Vec<Aggregate>,
}

/// A column and the name that it has.
pub(super) type NamedExpr<'a> = (String, &'a ast::Expr);

/// Columns of groups: their keys, and the visible ones.
pub(super) struct Columns<'a> {
    pub dimensions: Vec<&'a ast::Expr>,
    pub items: Vec<NamedExpr<'a>>,
    /// `*` of a pivot: all keys and all columns from the data.
    pub are_all: bool,
}

impl<'a> Binder<'a> {
    /// Returns whether the expression has an aggregate, also by aliases.
    pub(super) fn has_aggregate(&mut self, expr: &'a ast::Expr) -> bool {
        self.reaches_aggregate(expr, &mut Vec::new())
    }

    /// Each alias is looked at once.
    fn reaches_aggregate(&mut self, expr: &'a ast::Expr, seen: &mut Vec<&'a str>) -> bool {
        match &expr.node {
            Node::Call(call) if matches!(find(&call.name), Some((CallTarget::Aggregate(_), _))) => true,
            Node::Path(path) => match self.alias_of(path) {
                Ok(Some((name, aliased))) if !seen.contains(&name) => {
                    seen.push(name);
                    self.within_alias(name, |binder| crate::level(|| binder.reaches_aggregate(aliased, seen)))
                }
                _ => false,
            },
            node => node.children().any(|child| self.reaches_aggregate(child, seen)),
        }
    }

    /// Binds an expression about groups: a dimension or an aggregate. Returns `None` for others, whose parts are bound then.
    pub(super) fn of_group(&mut self, expr: &'a ast::Expr) -> Result<Option<BoundExpr>, QueryError> {
        if let Node::Call(call) = &expr.node
            && let Some((CallTarget::Aggregate(name), row)) = find(&call.name)
            && row.arity().contains(&call.args.len())
        {
            return self.aggregate(expr, name, call).map(Some);
        }
        if let Node::Path(path) = &expr.node
            && let Some((name, aliased)) = self.alias_of(path)?
        {
            return self.expanded(name, aliased).map(Some);
        }
        if self.has_aggregate(expr) {
            return Ok(None);
        }
        let mode = std::mem::replace(&mut self.mode, Mode::Rows);
        let bound = self.expr(expr);
        self.mode = mode;
        let bound = bound?;
        if mode == Mode::Traces || matches!(bound, BoundExpr::Const(_)) {
            return Ok(Some(bound));
        }
        if let Some(number) = self.groups.dimensions.iter().position(|dimension| *dimension == bound) {
            return Ok(Some(BoundExpr::Field(Field::Dimension(number), Vec::new())));
        }
        if let BoundExpr::Field(field, steps) = &bound {
            // A step into what is grouped by is as good as that.
            for taken in (0..steps.len()).rev() {
                let shorter = BoundExpr::Field(field.clone(), steps[..taken].to_vec());
                if let Some(number) = self.groups.dimensions.iter().position(|dimension| *dimension == shorter) {
                    return Ok(Some(BoundExpr::Field(Field::Dimension(number), steps[taken..].to_vec())));
                }
            }
        }
        match expr.node {
            Node::Path(_) => Err(self.error(expr, "this is neither grouped by nor aggregated")), // D-78
            _ => Ok(None),
        }
    }

    fn aggregate(
        &mut self,
        whole: &'a ast::Expr,
        name: AggregationName,
        call: &'a Call,
    ) -> Result<BoundExpr, QueryError> {
        let of_what = if self.mode == Mode::Traces { Mode::Spans } else { Mode::Rows };
        let mode = std::mem::replace(&mut self.mode, of_what);
        let args = call.args.iter().map(|arg| match arg.node {
            Node::Star if name == AggregationName::Count => Ok(None),
            _ if self.has_aggregate(arg) => Err(self.error(arg, "an aggregate within an aggregate has no meaning")),
            _ if self.mode == Mode::Spans => self.before_unpivot(arg).map(Some),
            _ => self.expr(arg).map(Some),
        });
        let args = args.collect::<Result<Vec<_>, _>>();
        self.mode = mode;
        let mut args = args?.into_iter();
        let (of, second) = (args.next().flatten(), args.next().flatten());
        if of.is_none() && call.distinct {
            return Err(self.error(whole, "count(DISTINCT *) has no meaning: name what is to be distinct"));
        }
        let function = Aggregation::bind(name, second.as_ref()).map_err(|what| self.error(whole, what))?;
        let distinct = call.distinct || name == AggregationName::CountDistinct;
        // How many rows there are, said with something that none of them lacks.
        let counts_rows = function == Aggregation::Count && !distinct;
        let is_there = |of: &BoundExpr| matches!(of, BoundExpr::Const(value) if *value != Datum::Null);
        let of = of.filter(|of| !(counts_rows && is_there(of)));
        let aggregate = Aggregate { function, of, distinct };
        let known = self.groups.aggregates.iter().position(|known| *known == aggregate);
        let number = known.unwrap_or_else(|| {
            self.groups.aggregates.push(aggregate);
            self.groups.aggregates.len() - 1
        });
        Ok(BoundExpr::Field(Field::Aggregate(number), Vec::new()))
    }

    pub(super) fn grouped(&mut self) -> Result<Groups, QueryError> {
        let query = self.query;
        let columns = self.group_columns()?;
        self.mode = Mode::Rows;
        for dimension in &columns.dimensions {
            let bound = self.expr(dimension)?;
            // What is said twice groups once, in every form; the keys of a pivot are counted as they are said.
            if query.pivot.is_some() || !self.groups.dimensions.contains(&bound) {
                self.groups.dimensions.push(bound);
            }
        }
        if let Some(ast::PivotClause::For { column, .. }) = &query.pivot {
            let bound = self.path(column)?;
            self.groups.dimensions.push(bound);
        }
        self.mode = Mode::Groups;
        let pivoted = self.pivot(&columns)?;
        let seen = match &pivoted {
            Some(pivoted) => pivoted.columns.clone(),
            None => {
                let bound = columns.items.into_iter().map(|(name, expr)| Ok((name, self.expr(expr)?)));
                bound.collect::<Result<_, QueryError>>()?
            }
        };
        no_duplicates(seen.iter().map(|(name, _)| name))?;
        let having = query.final_filter.as_ref().map(|having| self.expr(having)).transpose()?;
        let again = self.again(&seen)?;
        let sort = match (&again, &pivoted) {
            (Some(_), _) => Vec::new(),
            (None, Some(pivoted)) => self.pivot_sort(pivoted)?,
            (None, None) => self.group_sort(&seen)?,
        };
        let state = std::mem::take(&mut self.groups);
        Ok(Groups {
            dimensions: state.dimensions,
            aggregates: state.aggregates,
            columns: seen,
            having,
            again,
            pivot: pivoted.map(|pivoted| pivoted.pivot),
            sort,
        })
    }

    fn group_columns(&self) -> Result<Columns<'a>, QueryError> {
        let query = self.query;
        let named = |item: &'a SelectItem| (item_name(item), &item.expr);
        if query.select.is_empty() {
            let dimensions = query.dimensions.iter().map(|item| &item.expr).collect();
            let items = query.dimensions.iter().chain(&query.measures).map(named).collect();
            return Ok(Columns { dimensions, items, are_all: false });
        }
        let is_pivot = matches!(query.pivot, Some(ast::PivotClause::For { .. }));
        let are_all = is_pivot && matches!(query.select.as_slice(), [Select::Star(replaced)] if replaced.is_empty());
        let mut items = Vec::new();
        for select in &query.select {
            match select {
                Select::Item(item) => items.push(named(item)),
                Select::Star(_) if are_all => {}
                Select::Star(_) => {
                    return Err(QueryError::new("`*` is of rows, and this query has groups: name the columns"));
                }
            }
        }
        let mut dimensions = Vec::new();
        for group in query.group_by.iter().flatten() {
            match group.position() {
                Some(position) => {
                    let item = position.checked_sub(1).and_then(|position| items.get(position));
                    dimensions.push(item.ok_or_else(|| self.no_position(group, items.len()))?.1);
                }
                None => dimensions.push(group),
            }
        }
        if query.distinct {
            if query.group_by.is_some() || query.pivot.is_some() {
                return Err(QueryError::new(
                    "DISTINCT groups by what is selected, and so needs no GROUP BY and no PIVOT",
                ));
            }
            dimensions = items.iter().map(|(_, expr)| *expr).collect();
        }
        if are_all {
            items = dimensions.iter().map(|expr| (expr_name(expr), *expr)).collect();
        }
        Ok(Columns { dimensions, items, are_all })
    }

    /// Binds a second grouping, whose rows are the groups of the first (D-80).
    fn again(&mut self, seen: &[(String, BoundExpr)]) -> Result<Option<Box<Groups>>, QueryError> {
        let query = self.query;
        if query.final_dimensions.is_empty() && query.final_measures.is_empty() {
            return Ok(None);
        }
        if query.pivot.is_some() {
            return Err(QueryError::new("a pivot and final_dimensions or final_measures do not go together"));
        }
        let inner = seen.iter().map(|(name, _)| name.clone()).collect();
        let names = self.names.around(inner, [&query.final_dimensions, &query.final_measures]);
        let mut outer = Binder::new(self.env, query, names);
        for item in &query.final_dimensions {
            let bound = outer.expr(&item.expr)?;
            outer.groups.dimensions.push(bound);
        }
        outer.mode = Mode::Groups;
        let mut columns = Vec::new();
        for item in query.final_dimensions.iter().chain(&query.final_measures) {
            columns.push((item_name(item), outer.expr(&item.expr)?));
        }
        no_duplicates(columns.iter().map(|(name, _)| name))?;
        let sort = outer.group_sort(&columns)?;
        self.notes.append(&mut outer.notes);
        let State { dimensions, aggregates } = outer.groups;
        Ok(Some(Box::new(Groups { dimensions, aggregates, columns, having: None, again: None, pivot: None, sort })))
    }

    pub(super) fn group_sort(&mut self, seen: &[(String, BoundExpr)]) -> Result<Vec<SortKey>, QueryError> {
        let mut keys = Vec::new();
        for sort in &self.query.sort {
            let expr = match self.seen_column(&sort.expr, seen)? {
                Some(column) => column,
                None => self.expr(&sort.expr)?,
            };
            keys.push(sort_key(sort, expr));
        }
        Ok(keys)
    }

    /// Binds the order of a pivoted table, whose rows stand for many groups: by shared dimensions or by pivoted columns.
    fn pivot_sort(&mut self, pivoted: &Pivoted) -> Result<Vec<SortKey>, QueryError> {
        let last = self.groups.dimensions.len() - 1;
        let mut keys = Vec::new();
        for sort in &self.query.sort {
            let expr = match (self.seen_column(&sort.expr, pivoted.keys())?, only_name(&sort.expr)) {
                (Some(column), _) => column,
                (None, Some(name)) if pivoted.may_have(name) => {
                    BoundExpr::Field(Field::Pivoted(name.into()), Vec::new())
                }
                _ => self.expr(&sort.expr)?,
            };
            let of_one_group = |field: &Field| matches!(field, Field::Aggregate(_)) || *field == Field::Dimension(last);
            if expr.any_field(&of_one_group) {
                let what = "a pivot is sorted by what else is grouped by, or by a column named <value>_<measure>";
                return Err(self.error(&sort.expr, what));
            }
            keys.push(sort_key(sort, expr));
        }
        Ok(keys)
    }

    /// Returns the column that a sort names by position or name.
    fn seen_column(&self, expr: &ast::Expr, seen: &[(String, BoundExpr)]) -> Result<Option<BoundExpr>, QueryError> {
        if let Some(position) = expr.position() {
            let column = position.checked_sub(1).and_then(|position| seen.get(position));
            return Ok(Some(column.ok_or_else(|| self.no_position(expr, seen.len()))?.1.clone()));
        }
        let by_name = only_name(expr).and_then(|name| seen.iter().find(|(column, _)| column == name));
        Ok(by_name.map(|(_, expr)| expr.clone()))
    }
}

pub(super) fn sort_key(sort: &ast::Sort, expr: BoundExpr) -> SortKey {
    SortKey { expr, descending: sort.descending, nulls_first: sort.nulls_first.unwrap_or(false) }
}

/// A path of one step.
fn only_name(expr: &ast::Expr) -> Option<&str> {
    match &expr.node {
        Node::Path(Path { steps, .. }) => match steps.as_slice() {
            [Step::Key(name)] => Some(name),
            _ => None,
        },
        _ => None,
    }
}
