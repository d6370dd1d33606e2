//! Pivots (btql.md, sections 4.2 and 12.6): each value of the last dimension becomes a column for each of some measures.

use super::groups::{Columns, NamedExpr};
use super::{Binder, QueryError, item_name};
use crate::ast::{self, Node, Path, SelectItem, Step};
use crate::bound::{BoundExpr, Field, Pivot};
use crate::error::quoted;

const SELECTED: &str =
    "the select of a PIVOT names its column, each of its measures and all that is grouped by, or is *";

/// Columns of the pivoted table: its keys, the pivoted column, the measures.
pub(super) struct Pivoted {
    pub pivot: Pivot,
    pub columns: Vec<(String, BoundExpr)>,
}

struct Parts<'a> {
    keys: Vec<NamedExpr<'a>>,
    pivoted: String,
    measures: Vec<NamedExpr<'a>>,
}

impl Pivoted {
    /// Returns the columns that do not depend on the data.
    pub fn keys(&self) -> &[(String, BoundExpr)] {
        &self.columns[..self.pivot.column]
    }

    /// Whether a column of that name can come of the data: `<value>_<measure>` (D-83).
    pub fn may_have(&self, name: &str) -> bool {
        let mut measures = self.pivot.measures.iter().map(|place| &self.columns[*place].0);
        measures.any(|measure| name.strip_suffix(measure.as_str()).is_some_and(|value| value.ends_with('_')))
    }
}

impl<'a> Binder<'a> {
    pub(super) fn pivot(&mut self, columns: &Columns<'a>) -> Result<Option<Pivoted>, QueryError> {
        let query = self.query;
        let parts = match &query.pivot {
            None => return Ok(None),
            Some(ast::PivotClause::Measures(named)) => self.parts_of_clauses(named)?,
            Some(ast::PivotClause::For { measures, column }) => self.parts_of_sql(columns, measures, column)?,
        };
        let Some(last) = self.groups.dimensions.len().checked_sub(1) else {
            return Err(QueryError::new("a pivot needs a dimension"));
        };
        let mut seen = Vec::new();
        for (name, expr) in parts.keys {
            seen.push((name, self.expr(expr)?));
        }
        let column = seen.len();
        seen.push((parts.pivoted, BoundExpr::Field(Field::Dimension(last), Vec::new())));
        let first = seen.len();
        for (name, expr) in parts.measures {
            if !self.has_aggregate(expr) {
                return Err(self.error(expr, "what is pivoted are measures: aggregates, such as count(1)"));
            }
            seen.push((name, self.expr(expr)?));
        }
        Ok(Some(Pivoted { pivot: Pivot { column, measures: (first..seen.len()).collect() }, columns: seen }))
    }

    fn parts_of_clauses(&mut self, named: &'a [SelectItem]) -> Result<Parts<'a>, QueryError> {
        let Some((last, keys)) = self.query.dimensions.split_last() else {
            let what = "a pivot needs dimensions: and measures: the values of the last dimension become columns";
            return Err(QueryError::new(what));
        };
        let mut measures = Vec::new();
        for name in named {
            measures.push(self.measure(name));
        }
        Ok(Parts { keys: keys.iter().map(named_item).collect(), pivoted: item_name(last), measures })
    }

    /// A measure by its name, or a measure of the pivot's own.
    fn measure(&self, named: &'a SelectItem) -> NamedExpr<'a> {
        let by_name = match &named.expr.node {
            Node::Path(Path { steps, .. }) => match steps.as_slice() {
                [Step::Key(name)] => self.query.measures.iter().find(|measure| item_name(measure) == *name),
                _ => None,
            },
            _ => None,
        };
        named_item(by_name.unwrap_or(named))
    }

    fn parts_of_sql(
        &mut self,
        columns: &Columns<'a>,
        measures: &'a [SelectItem],
        column: &'a Path,
    ) -> Result<Parts<'a>, QueryError> {
        let Some(Step::Key(pivoted)) = column.steps.last() else {
            return Err(QueryError::new("the column of a PIVOT is named"));
        };
        let measures: Vec<NamedExpr<'a>> = measures.iter().map(named_item).collect();
        if columns.are_all {
            return Ok(Parts { keys: columns.items.clone(), pivoted: pivoted.clone(), measures });
        }
        let last = self.groups.dimensions.len() - 1;
        let mut keys = Vec::new();
        let mut found = vec![false; last + 1];
        let mut found_measures = vec![false; measures.len()];
        for (name, expr) in &columns.items {
            if let Some(number) = measures.iter().position(|(measure, of)| names_it(expr, name, measure, of)) {
                found_measures[number] = true;
                continue;
            }
            let place = match self.expr(expr)? {
                BoundExpr::Field(Field::Dimension(place), steps) if steps.is_empty() => place,
                _ => return Err(self.error(expr, SELECTED)),
            };
            found[place] = true;
            if place != last {
                keys.push((name.clone(), *expr));
            }
        }
        let missing = |what: &str| QueryError::new(format!("{SELECTED}: {} is missing", quoted(what)));
        if let Some(place) = (0..last).find(|place| !found[*place]) {
            return Err(self.error(columns.dimensions[place], format!("{SELECTED}; this is missing")));
        }
        match found_measures.iter().position(|found| !found) {
            _ if !found[last] => Err(missing(pivoted)),
            Some(number) => Err(missing(&measures[number].0)),
            None => Ok(Parts { keys, pivoted: pivoted.clone(), measures }),
        }
    }
}

fn named_item(item: &SelectItem) -> NamedExpr<'_> {
    (item_name(item), &item.expr)
}

/// Whether a column of the select is that measure: by its name, or the same again under the same name.
fn names_it(expr: &ast::Expr, name: &str, measure: &str, of: &ast::Expr) -> bool {
    let by_name = matches!(&expr.node, Node::Path(Path { steps, .. })
        if matches!(steps.as_slice(), [Step::Key(key)] if key == measure));
    name == measure && (by_name || expr == of)
}
