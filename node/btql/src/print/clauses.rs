//! Printer of a query as BTQL clauses.

use super::expr::text;
use super::restate::as_dimensions;
use super::sql::{item, joined, select, sort};
use super::{Unsayable, expression, name};
use crate::ast::{Amount, Expr, From, InferClause, Node, PivotClause, Query, Sample, Source, UnpivotClause};

const FORM: &str = "BTQL";

/// A query as clauses, if they have words for it.
pub fn in_clauses(query: &Query) -> Result<String, Unsayable> {
    let query = as_dimensions(query, FORM)?;
    let mut clauses: Vec<String> = Vec::new();
    let mut clause = |keyword: &str, said: Option<String>| {
        clauses.extend(said.filter(|said| !said.is_empty()).map(|said| format!("{keyword}: {said}")));
    };
    clause("select", Some(joined(&query.select, select)));
    clause("dimensions", Some(joined(&query.dimensions, item)));
    clause("measures", Some(joined(&query.measures, item)));
    clause("infer", Some(joined(&query.infer, infer)));
    clause("from", query.from.as_ref().map(from).transpose()?);
    clause("filter", query.filter.as_ref().map(expression));
    clause("span_filter", query.span_filter.as_ref().map(expression));
    clause("trace_filter", query.trace_filter.as_ref().map(expression));
    clause("final_filter", query.final_filter.as_ref().map(expression));
    clause("unpivot", Some(joined(&query.unpivot, unpivot)));
    if let Some(PivotClause::Measures(measures)) = &query.pivot {
        clause("pivot", Some(joined(measures, item)));
    }
    clause("final_dimensions", Some(joined(&query.final_dimensions, item)));
    clause("final_measures", Some(joined(&query.final_measures, item)));
    clause("sample", query.sample.as_ref().map(sample));
    clause("sort", Some(joined(&query.sort, sort)));
    clause("limit", query.limit.map(|limit| limit.to_string()));
    clause("cursor", query.cursor.as_deref().map(text));
    clause("preview_length", query.preview_length.map(|length| length.to_string()));
    clause("inference_budget", query.inference_budget.map(|budget| budget.to_string()));
    clause("comparison_key", query.comparison_key.as_ref().map(expression));
    clause("weighted_scores", Some(joined(&query.weighted_scores, item)));
    clause("custom_columns", Some(joined(&query.custom_columns, item)));
    Ok(clauses.join(" | "))
}

fn infer(infer: &InferClause) -> String {
    match infer {
        InferClause::Star => "*".into(),
        InferClause::Path(path) => expression(&Expr::new(Default::default(), Node::Path(path.clone()))),
    }
}

fn from(from: &From) -> Result<String, Unsayable> {
    let Source::Objects { name: source, args } = &from.source else {
        return Err(Unsayable { form: FORM, what: "a query within FROM" });
    };
    if from.alias.is_some() {
        return Err(Unsayable { form: FORM, what: "an alias of the source" });
    }
    let args = if args.is_empty() { String::new() } else { format!("({})", joined(args, expression)) };
    let shape = from.shape.map(|shape| format!(" {}", shape.name())).unwrap_or_default();
    Ok(format!("{}{args}{shape}", name(source)))
}

fn unpivot(unpivot: &UnpivotClause) -> String {
    let key = unpivot.key.as_deref().map(|key| format!("{}, ", name(key))).unwrap_or_default();
    format!("{} AS ({key}{})", expression(&unpivot.expr), name(&unpivot.value))
}

fn sample(sample: &Sample) -> String {
    let amount = match sample.amount {
        Amount::Rate(rate) => format!("{}%", rate * 100.0),
        Amount::Count(count) => count.to_string(),
    };
    let seed = sample.seed.map(|seed| format!(" seed {seed}")).unwrap_or_default();
    format!("{amount}{seed}")
}
