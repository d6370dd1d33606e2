//! Selection by a filter: rows, or traces and their visible spans (btql.md, section 13).
//!
//! ```text
//! filter = plain AND any_span(a) AND NOT any_span(b) AND filter_spans(c)
//!   traces:  any span of [plain]  and  any span of [a]  and  no span of [b]        spans: those with [c]
//!   spans:   plain AND a AND NOT b AND c
//! ```
//!
//! Terms that name what an unpivot gives are none of these: they wait until it has given it (D-82).

use super::{Binder, Mode, QueryError};
use crate::ast::{self, Call, Logic, Node, Shape, Unary};
use crate::bound::{BoundExpr, Field, Function, TraceCondition, TraceFilter};

/// Filters, each where it belongs.
#[derive(Default)]
pub(super) struct Filters {
    pub rows: Option<BoundExpr>,
    pub traces: Option<TraceFilter>,
    /// Terms with names of an unpivot.
    pub unpivoted: Option<BoundExpr>,
}

fn span_call<'e>(expr: &'e ast::Expr, name: &str) -> Option<&'e ast::Expr> {
    match &expr.node {
        Node::Call(Call { name: called, args, distinct: false }) if called == name => match args.as_slice() {
            [of] => Some(of),
            _ => None,
        },
        _ => None,
    }
}

fn names_spans(expr: &ast::Expr) -> bool {
    span_call(expr, "any_span").is_some()
        || span_call(expr, "filter_spans").is_some()
        || expr.node.children().any(names_spans)
}

fn conjuncts(expr: &ast::Expr) -> &[ast::Expr] {
    match &expr.node {
        Node::Logic(Logic::And, of) => of,
        _ => std::slice::from_ref(expr),
    }
}

/// Collects the terms of a filter for the shape spans, in which any_span(e) and filter_spans(e) are e.
fn conjuncts_of_spans<'e>(expr: &'e ast::Expr, found: &mut Vec<&'e ast::Expr>) {
    for conjunct in conjuncts(expr) {
        match span_call(conjunct, "any_span").or_else(|| span_call(conjunct, "filter_spans")) {
            Some(of) => crate::level(|| conjuncts_of_spans(of, found)),
            None => found.push(conjunct),
        }
    }
}

pub(super) fn all_of(mut of: Vec<BoundExpr>) -> Option<BoundExpr> {
    match of.len() {
        0 | 1 => of.pop(),
        _ => Some(BoundExpr::Call(Function::And, of)),
    }
}

impl<'a> Binder<'a> {
    /// `grouped` is whether HAVING is about groups.
    pub(super) fn filters(&mut self, shape: Shape, grouped: bool) -> Result<Filters, QueryError> {
        self.mode = Mode::Spans;
        if shape == Shape::Spans {
            return self.filters_of_spans();
        }
        let query = self.query;
        let mut kept: Vec<&'a ast::Expr> = query.trace_filter.iter().collect();
        let mut selecting = Vec::new();
        let mut unpivoted = Vec::new();
        for conjunct in [&query.filter, &query.span_filter].into_iter().flatten().flat_map(conjuncts) {
            if let Some(of) = span_call(conjunct, "filter_spans") {
                kept.push(of);
            } else if let Some(bound) = self.of_unpivoted(conjunct)? {
                unpivoted.push(bound);
            } else {
                selecting.push(conjunct);
            }
        }
        let condition = if selecting.is_empty() { None } else { Some(self.conjunction(&selecting, 0)?) };
        let mut spans = Vec::new();
        for kept in kept {
            if names_spans(kept) {
                return Err(self.error(kept, "filter_spans takes a condition on one span, without any_span in it"));
            }
            spans.push(self.before_unpivot(kept)?);
        }
        let having = self.having_of_traces(shape, grouped)?;
        let traces = TraceFilter { condition, spans: all_of(spans), having };
        Ok(Filters { rows: None, traces: Some(traces), unpivoted: all_of(unpivoted) })
    }

    fn filters_of_spans(&mut self) -> Result<Filters, QueryError> {
        let query = self.query;
        let mut conjuncts = Vec::new();
        for filter in [&query.filter, &query.span_filter, &query.trace_filter].into_iter().flatten() {
            conjuncts_of_spans(filter, &mut conjuncts);
        }
        let (mut plain, mut unpivoted) = (Vec::new(), Vec::new());
        for conjunct in conjuncts {
            let bound = self.without_span_calls(conjunct)?;
            if names_unpivoted(&bound) { unpivoted.push(bound) } else { plain.push(bound) }
        }
        Ok(Filters { rows: all_of(plain), traces: None, unpivoted: all_of(unpivoted) })
    }

    /// Binds a term with names of an unpivot, which is about unpivoted rows.
    fn of_unpivoted(&mut self, conjunct: &'a ast::Expr) -> Result<Option<BoundExpr>, QueryError> {
        if self.query.unpivot.is_empty() || names_spans(conjunct) || !names_unpivoted(&self.expr(conjunct)?) {
            return Ok(None);
        }
        self.mode = Mode::Rows;
        let bound = self.expr(conjunct);
        self.mode = Mode::Spans;
        bound.map(Some)
    }

    /// Binds an expression that is evaluated before the unpivot and cannot use its names.
    pub(super) fn before_unpivot(&mut self, expr: &'a ast::Expr) -> Result<BoundExpr, QueryError> {
        let bound = self.expr(expr)?;
        if names_unpivoted(&bound) {
            return Err(
                self.error(expr, "names that an unpivot gives exist only after it, and this is asked before it")
            );
        }
        Ok(bound)
    }

    /// D-89: without groups, a condition on a summary's row.
    fn having_of_traces(
        &mut self,
        shape: Shape,
        grouped: bool,
    ) -> Result<Option<(BoundExpr, Vec<crate::bound::Aggregate>)>, QueryError> {
        let query = self.query;
        let Some(having) = query.final_filter.as_ref().filter(|_| shape == Shape::Summary && !grouped) else {
            return Ok(None);
        };
        self.mode = Mode::Traces;
        let bound = self.expr(having)?;
        Ok(Some((bound, std::mem::take(&mut self.groups.aggregates))))
    }

    /// Binds a conjunction. Its plain terms hold for one span, as an any_span of their own (D-86).
    fn conjunction(&mut self, of: &[&'a ast::Expr], within: u8) -> Result<TraceCondition, QueryError> {
        let mut conditions = Vec::new();
        let mut plain = Vec::new();
        for of in of {
            if names_spans(of) {
                conditions.push(self.condition(of, within)?);
            } else {
                plain.push(self.before_unpivot(of)?);
            }
        }
        conditions.extend(all_of(plain).map(TraceCondition::AnySpan));
        Ok(match conditions.len() {
            1 => conditions.remove(0),
            _ => TraceCondition::And(conditions),
        })
    }

    /// A condition on traces. Below OR and NOT each part that is plain is one any_span of its own.
    fn condition(&mut self, expr: &'a ast::Expr, within: u8) -> Result<TraceCondition, QueryError> {
        if let Some(of) = span_call(expr, "any_span") {
            if within > 1 {
                return Err(self.error(expr, "any_span within any_span within any_span is not supported"));
            }
            if names_spans(of) {
                return self.condition(of, within + 1); // one level is flattened
            }
            return self.before_unpivot(of).map(TraceCondition::AnySpan);
        }
        if span_call(expr, "filter_spans").is_some() {
            return Err(self.error(expr, "filter_spans stands alone or is joined to the rest by AND"));
        }
        if !names_spans(expr) {
            return self.before_unpivot(expr).map(TraceCondition::AnySpan);
        }
        match &expr.node {
            Node::Logic(Logic::And, of) => self.conjunction(&of.iter().collect::<Vec<_>>(), within),
            Node::Logic(Logic::Or, of) => {
                let of = of.iter().map(|of| self.condition(of, within)).collect::<Result<_, _>>()?;
                Ok(TraceCondition::Or(of))
            }
            Node::Unary(Unary::Not, of) => {
                if within > 0 || matches!(span_call(of, "any_span"), Some(inner) if names_spans(inner)) {
                    return Err(self.error(expr, "NOT over several any_span within each other is not supported"));
                }
                Ok(TraceCondition::Not(Box::new(self.condition(of, within)?)))
            }
            _ => Err(self.error(expr, "any_span is joined by AND, OR and NOT only")),
        }
    }

    fn without_span_calls(&mut self, expr: &'a ast::Expr) -> Result<BoundExpr, QueryError> {
        if let Some(of) = span_call(expr, "any_span") {
            return crate::level(|| self.without_span_calls(of));
        }
        match &expr.node {
            _ if !names_spans(expr) => self.expr(expr),
            Node::Logic(logic, of) => {
                let of = of.iter().map(|of| self.without_span_calls(of)).collect::<Result<_, _>>()?;
                Ok(BoundExpr::Call(if *logic == Logic::And { Function::And } else { Function::Or }, of))
            }
            Node::Unary(Unary::Not, of) => Ok(BoundExpr::Call(Function::Not, vec![self.without_span_calls(of)?])),
            _ => Err(self.error(expr, "any_span is joined by AND, OR and NOT only, and filter_spans by AND")),
        }
    }
}

fn names_unpivoted(expr: &BoundExpr) -> bool {
    expr.any_field(&|field| matches!(field, Field::Unpivoted(_)))
}
