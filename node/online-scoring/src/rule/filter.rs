//! Filters of rules: expressions of the query language on single rows.

use assay_node_btql::ast::Shape;
use assay_node_btql::bound::{Bound, BoundExpr, Derived, Field, Rows};
use assay_node_btql::{Env, QueryError, bind, parse_expression, parse_text};
use thiserror::Error;

/// Object in the query around a filter. Filters do not depend on it.
const SOURCE: &str = "00000000-0000-0000-0000-000000000000";

/// Reason why a text is no filter.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FilterError {
    #[error("{0}")]
    Query(String),
    #[error("it has to be a condition on the columns of a row")]
    NoCondition,
    #[error("costs are not known while a row arrives")]
    Cost,
    #[error("`{0}` is not a part of the row")]
    NotOfRow(&'static str),
}

/// Filter in its bound form.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleFilter(pub BoundExpr);

/// Columns that are joined to a row when it is read.
const JOINED: [&str; 2] = ["comments", "audit_data"];

impl RuleFilter {
    /// Parses a filter at the present time, which functions such as `now()` use.
    pub fn parse_at(text: &str, now_micros: i64) -> Result<RuleFilter, FilterError> {
        let query_error = |why: QueryError| FilterError::Query(why.to_string());
        let filter = parse_expression(text).map_err(query_error)?;
        let source = format!("select: id | from: project_logs('{SOURCE}') spans | limit: 1");
        let mut query = parse_text(&source).map_err(query_error)?;
        query.filter = Some(filter);
        let env = Env { now: now_micros, text: Some(text), ..Env::default() };
        let bound = bind(&query, &env).map_err(query_error)?;
        let expression = condition(bound)?;
        if expression.any_field(&|field| matches!(field, Field::Derived(Derived::EstimatedCost))) {
            return Err(FilterError::Cost);
        }
        let joined = |name: &&&'static str| expression.any_field(&|field| *field == Field::Column(name));
        match JOINED.iter().find(joined) {
            Some(name) => Err(FilterError::NotOfRow(name)),
            None => Ok(RuleFilter(expression)),
        }
    }

    /// Parses a filter only to check it.
    pub fn parse(text: &str) -> Result<RuleFilter, FilterError> {
        RuleFilter::parse_at(text, 0)
    }
}

fn condition(bound: Bound) -> Result<BoundExpr, FilterError> {
    let is_of_rows = matches!(&bound.rows, Rows::Objects { shape: Shape::Spans, .. });
    bound.filter.filter(|_| is_of_rows && bound.traces.is_none()).ok_or(FilterError::NoCondition)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_on_rows_are_filters() {
        for text in [
            "metadata.env = 'prod'",
            "metadata.env != 'prod' -- not there",
            "created > now() - interval 1 day",
            "is_root and span_attributes.name = 'chat' and metrics.tokens > 10",
            "input match 'refund' or tags includes ['a']",
        ] {
            RuleFilter::parse(text).expect(text);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in
            ["", "a =", "true) or (true", "count(1) > 2", "nothing(1)", "comments is not null", "estimated_cost() > 1"]
        {
            assert!(RuleFilter::parse(text).is_err(), "{text}");
        }
    }
}
