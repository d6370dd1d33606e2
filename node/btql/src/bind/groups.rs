//! Groups: which columns are dimensions, what is aggregated, and how the groups are seen (btql.md, section 12.4 and 12.6).

use super::functions::{AggregateName, Known, aggregation, known};
use super::{Binder, Mode, QueryError, item_name, no_duplicates};
use crate::ast::{self, Call, Item, Node, Path, Select, Step};
use crate::bound::{Aggregate, Expr, Field, Groups, Pivot, SortKey};

/// What is known of the groups while their columns are bound.
#[derive(Default)]
pub(super) struct State {
    pub dimensions: Vec<Expr>,
    pub aggregates: Vec<Aggregate>,
}

/// Columns of groups: the dimensions' own items, and all that are seen.
struct Columns<'a> {
    dimensions: Vec<&'a ast::Expr>,
    items: Vec<&'a Item>,
}

impl<'a> Binder<'a> {
    /// Whether anything is aggregated in it, or in what its names stand for.
    pub(super) fn has_aggregate(&mut self, expr: &'a ast::Expr) -> bool {
        match &expr.node {
            Node::Call(call) if matches!(known(&call.name), Some((Known::Aggregate(_), _))) => true,
            Node::Path(path) => match self.alias_of(path) {
                Ok(Some((name, aliased))) => self.within_alias(name, |binder| binder.has_aggregate(aliased)),
                _ => false,
            },
            node => node.children().any(|child| self.has_aggregate(child)),
        }
    }

    /// Of an expression about groups: a dimension, or an aggregate. None of anything else, which is then taken apart.
    pub(super) fn of_group(&mut self, expr: &'a ast::Expr) -> Result<Option<Expr>, QueryError> {
        if let Node::Call(call) = &expr.node
            && let Some((Known::Aggregate(name), counts)) = known(&call.name)
            && counts.contains(&call.args.len())
        {
            return self.aggregate(expr, name, call).map(Some);
        }
        if let Node::Path(path) = &expr.node
            && let Some((name, aliased)) = self.alias_of(path)?
        {
            return self.within_alias(name, |binder| binder.expr(aliased)).map(Some);
        }
        if self.has_aggregate(expr) {
            return Ok(None);
        }
        let mode = std::mem::replace(&mut self.mode, Mode::Rows);
        let bound = self.expr(expr);
        self.mode = mode;
        let bound = bound?;
        if mode == Mode::Traces || matches!(bound, Expr::Const(_)) {
            return Ok(Some(bound));
        }
        if let Some(number) = self.groups.dimensions.iter().position(|dimension| *dimension == bound) {
            return Ok(Some(Expr::Field(Field::Dimension(number), Vec::new())));
        }
        if let Expr::Field(field, steps) = &bound {
            // A step into what is grouped by is as good as that.
            for taken in (0..steps.len()).rev() {
                let shorter = Expr::Field(field.clone(), steps[..taken].to_vec());
                if let Some(number) = self.groups.dimensions.iter().position(|dimension| *dimension == shorter) {
                    return Ok(Some(Expr::Field(Field::Dimension(number), steps[taken..].to_vec())));
                }
            }
        }
        match expr.node {
            Node::Path(_) => Err(self.error(expr, "this is neither grouped by nor aggregated")), // D-78
            _ => Ok(None),
        }
    }

    fn aggregate(&mut self, whole: &'a ast::Expr, name: AggregateName, call: &'a Call) -> Result<Expr, QueryError> {
        let of_what = if self.mode == Mode::Traces { Mode::Spans } else { Mode::Rows };
        let mode = std::mem::replace(&mut self.mode, of_what);
        let args = call.args.iter().map(|arg| match arg.node {
            Node::Star if name == AggregateName::Count => Ok(None),
            _ if self.has_aggregate(arg) => Err(self.error(arg, "an aggregate within an aggregate has no meaning")),
            _ => self.expr(arg).map(Some),
        });
        let args = args.collect::<Result<Vec<_>, _>>();
        self.mode = mode;
        let mut args = args?.into_iter();
        let (of, second) = (args.next().flatten(), args.next().flatten());
        if of.is_none() && call.distinct {
            return Err(self.error(whole, "count(DISTINCT *) has no meaning: name what is to be distinct"));
        }
        let function = aggregation(name, second.as_ref()).map_err(|what| self.error(whole, what))?;
        let distinct = call.distinct || name == AggregateName::CountDistinct;
        let aggregate = Aggregate { function, of, distinct };
        let known = self.groups.aggregates.iter().position(|known| *known == aggregate);
        let number = known.unwrap_or_else(|| {
            self.groups.aggregates.push(aggregate);
            self.groups.aggregates.len() - 1
        });
        Ok(Expr::Field(Field::Aggregate(number), Vec::new()))
    }

    pub(super) fn grouped(&mut self) -> Result<Groups, QueryError> {
        let query = self.query;
        let pivot_column = match &query.pivot {
            Some(ast::Pivot::For { column, .. }) => Some(column),
            _ => None,
        };
        let columns = self.group_columns()?;
        self.mode = Mode::Rows;
        for dimension in &columns.dimensions {
            let bound = self.expr(dimension)?;
            self.groups.dimensions.push(bound);
        }
        if let Some(column) = pivot_column {
            let bound = self.path(column)?;
            self.groups.dimensions.push(bound);
        }
        self.mode = Mode::Groups;
        let pivot = self.pivot(&columns)?;
        let seen = match &pivot {
            Some((_, seen)) => seen.clone(),
            None => {
                let mut seen = Vec::new();
                for item in &columns.items {
                    seen.push((item_name(item), self.expr(&item.expr)?));
                }
                seen
            }
        };
        no_duplicates(seen.iter().map(|(name, _)| name))?;
        let having = query.final_filter.as_ref().map(|having| self.expr(having)).transpose()?;
        let again = self.again(&seen)?;
        let sort = match &again {
            Some(_) => Vec::new(),
            None => self.group_sort(&seen, pivot.is_some())?,
        };
        let state = std::mem::take(&mut self.groups);
        Ok(Groups {
            dimensions: state.dimensions,
            aggregates: state.aggregates,
            columns: seen,
            having,
            again,
            pivot: pivot.map(|(pivot, _)| pivot),
            sort,
        })
    }

    fn group_columns(&self) -> Result<Columns<'a>, QueryError> {
        let query = self.query;
        if query.select.is_empty() {
            let dimensions = query.dimensions.iter().map(|item| &item.expr).collect();
            return Ok(Columns { dimensions, items: query.dimensions.iter().chain(&query.measures).collect() });
        }
        let mut items = Vec::new();
        for select in &query.select {
            match select {
                Select::Item(item) => items.push(item),
                // Of a pivot all columns are those that come of it.
                Select::Star(replaced) if query.pivot.is_some() && replaced.is_empty() => {}
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
                    dimensions.push(&item.ok_or_else(|| self.no_position(group, items.len()))?.expr);
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
            dimensions = items.iter().map(|item| &item.expr).collect();
        }
        Ok(Columns { dimensions, items })
    }

    /// The pivoted table: its row keys, then the pivoted column, then the measures, by place.
    #[allow(clippy::type_complexity, reason = "both belong to one another and to nobody else")]
    fn pivot(&mut self, columns: &Columns<'a>) -> Result<Option<(Pivot, Vec<(String, Expr)>)>, QueryError> {
        let query = self.query;
        let (keys, pivoted, measures): (Vec<&Item>, String, Vec<&Item>) = match &query.pivot {
            None => return Ok(None),
            Some(ast::Pivot::Measures(named)) => {
                let Some((last, keys)) = query.dimensions.split_last() else {
                    return Err(QueryError::new(
                        "a pivot needs a dimension: the values of the last one become columns",
                    ));
                };
                let mut measures = Vec::new();
                for name in named {
                    measures.push(self.measure(name)?);
                }
                (keys.iter().collect(), item_name(last), measures)
            }
            Some(ast::Pivot::For { measures, column }) => {
                let pivoted = match column.steps.last() {
                    Some(Step::Key(key)) => key.clone(),
                    _ => return Err(QueryError::new("the column of a PIVOT is named")),
                };
                let measures: Vec<&Item> = measures.iter().collect();
                let shown = |item: &&&'a Item| {
                    let name = item_name(item);
                    name != pivoted && !measures.iter().any(|measure| item_name(measure) == name)
                };
                (columns.items.iter().filter(shown).copied().collect(), pivoted, measures)
            }
        };
        let mut seen = Vec::new();
        for item in keys {
            seen.push((item_name(item), self.expr(&item.expr)?));
        }
        let column = seen.len();
        let last = self.groups.dimensions.len() - 1;
        seen.push((pivoted, Expr::Field(Field::Dimension(last), Vec::new())));
        let first = seen.len();
        for item in measures {
            seen.push((item_name(item), self.expr(&item.expr)?));
        }
        Ok(Some((Pivot { column, measures: (first..seen.len()).collect() }, seen)))
    }

    /// A measure by its name, or a measure of the pivot's own.
    fn measure(&mut self, named: &'a Item) -> Result<&'a Item, QueryError> {
        let by_name = match &named.expr.node {
            Node::Path(Path { steps, .. }) => match steps.as_slice() {
                [Step::Key(name)] => self.query.measures.iter().find(|measure| item_name(measure) == *name),
                _ => None,
            },
            _ => None,
        };
        match by_name {
            Some(measure) => Ok(measure),
            None if self.has_aggregate(&named.expr) => Ok(named),
            None => Err(self.error(&named.expr, "a pivot lists measures")),
        }
    }

    /// D-80: a second grouping, whose rows are the groups of the first.
    fn again(&mut self, seen: &[(String, Expr)]) -> Result<Option<Box<Groups>>, QueryError> {
        let query = self.query;
        if query.final_dimensions.is_empty() && query.final_measures.is_empty() {
            return Ok(None);
        }
        if query.pivot.is_some() {
            return Err(QueryError::new("a pivot and final_dimensions or final_measures do not go together"));
        }
        let inner = seen.iter().map(|(name, _)| name.clone()).collect();
        let names = self.names.around(inner, [&query.final_dimensions, &query.final_measures]);
        let mut outer =
            Binder { env: self.env, query, names, mode: Mode::Rows, groups: State::default(), notes: Vec::new() };
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
        let sort = outer.group_sort(&columns, false)?;
        self.notes.append(&mut outer.notes);
        let State { dimensions, aggregates } = outer.groups;
        Ok(Some(Box::new(Groups { dimensions, aggregates, columns, having: None, again: None, pivot: None, sort })))
    }

    fn group_sort(&mut self, seen: &[(String, Expr)], pivoted: bool) -> Result<Vec<SortKey>, QueryError> {
        let mut keys = Vec::new();
        for sort in &self.query.sort {
            let by_name = match &sort.expr.node {
                Node::Path(Path { steps, .. }) => match steps.as_slice() {
                    [Step::Key(name)] => Some(name),
                    _ => None,
                },
                _ => None,
            };
            let column = by_name.and_then(|name| seen.iter().find(|(column, _)| column == name));
            let expr = match (sort.expr.position(), column, by_name) {
                (Some(position), _, _) => {
                    let column = position.checked_sub(1).and_then(|position| seen.get(position));
                    column.ok_or_else(|| self.no_position(&sort.expr, seen.len()))?.1.clone()
                }
                (None, Some((_, expr)), _) => expr.clone(),
                // What is not known here may be a column that only the data knows.
                (None, None, Some(name)) if pivoted => Expr::Field(Field::Pivoted(name.clone()), Vec::new()),
                _ => self.expr(&sort.expr)?,
            };
            let nulls_first = sort.nulls_first.unwrap_or(false);
            keys.push(SortKey { expr, descending: sort.descending, nulls_first });
        }
        Ok(keys)
    }
}
