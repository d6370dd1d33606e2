//! What a filter selects: rows, or traces and what is seen of them (btql.md, section 13).
//!
//! ```text
//! filter = plain AND any_span(a) AND NOT any_span(b) AND filter_spans(c)
//!   traces:  any span of [plain]  and  any span of [a]  and  no span of [b]        spans: those with [c]
//!   spans:   plain AND a AND NOT b AND c
//! ```

use super::{Binder, Mode, QueryError};
use crate::ast::{self, Call, Logic, Node, Shape, Unary};
use crate::bound::{Expr, Field, Function, TraceCondition, TraceFilter};

/// Filters, each where it belongs.
#[derive(Default)]
pub(super) struct Filters {
    pub rows: Option<Expr>,
    pub traces: Option<TraceFilter>,
    /// Terms that name what an unpivot gives.
    pub unpivoted: Option<Expr>,
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

fn all_of(mut of: Vec<Expr>) -> Option<Expr> {
    match of.len() {
        0 | 1 => of.pop(),
        _ => Some(Expr::Call(Function::And, of)),
    }
}

impl<'a> Binder<'a> {
    pub(super) fn filters(&mut self, shape: Shape) -> Result<Filters, QueryError> {
        let query = self.query;
        self.mode = Mode::Spans;
        let selecting: Vec<&'a ast::Expr> =
            [&query.filter, &query.span_filter].into_iter().flatten().flat_map(conjuncts).collect();
        let mut kept: Vec<&'a ast::Expr> = query.trace_filter.iter().collect();
        let mut plain = Vec::new();
        let mut unpivoted = Vec::new();
        let mut conditions = Vec::new();
        for conjunct in selecting {
            if let Some(of) = span_call(conjunct, "filter_spans") {
                kept.push(of);
            } else if names_spans(conjunct) && shape != Shape::Spans {
                conditions.push(self.condition(conjunct, 0)?);
            } else {
                let bound = if names_spans(conjunct) { self.on_spans(conjunct)? } else { self.expr(conjunct)? };
                if names_unpivoted(&bound) { unpivoted.push(bound) } else { plain.push(bound) }
            }
        }
        let mut spans = Vec::new();
        for kept in kept {
            if names_spans(kept) {
                return Err(self.error(kept, "filter_spans takes a condition on one span, without any_span in it"));
            }
            spans.push(self.expr(kept)?);
        }
        let unpivoted = all_of(unpivoted);
        if shape == Shape::Spans {
            plain.append(&mut spans);
            return Ok(Filters { rows: all_of(plain), traces: None, unpivoted });
        }
        conditions.extend(all_of(plain).map(TraceCondition::AnySpan));
        let condition = match conditions.len() {
            0 | 1 => conditions.pop(),
            _ => Some(TraceCondition::And(conditions)),
        };
        let having = self.having_of_traces(shape)?;
        let traces = TraceFilter { condition, spans: all_of(spans), having };
        Ok(Filters { rows: None, traces: Some(traces), unpivoted })
    }

    /// D-89: without groups, a condition on a summary's row.
    fn having_of_traces(&mut self, shape: Shape) -> Result<Option<(Expr, Vec<crate::bound::Aggregate>)>, QueryError> {
        let query = self.query;
        let groups = query.group_by.is_some() || query.distinct || query.pivot.is_some();
        let groups = groups || !query.dimensions.is_empty() || !query.measures.is_empty();
        let Some(having) = query.final_filter.as_ref().filter(|_| shape == Shape::Summary && !groups) else {
            return Ok(None);
        };
        self.mode = Mode::Traces;
        let bound = self.expr(having)?;
        Ok(Some((bound, std::mem::take(&mut self.groups.aggregates))))
    }

    /// A condition on traces: what is plain in it is one any_span of its own (D-86).
    fn condition(&mut self, expr: &'a ast::Expr, within: u8) -> Result<TraceCondition, QueryError> {
        if let Some(of) = span_call(expr, "any_span") {
            if within > 1 {
                return Err(self.error(expr, "any_span within any_span within any_span is not supported"));
            }
            if names_spans(of) {
                return self.condition(of, within + 1); // one level is flattened
            }
            return self.expr(of).map(TraceCondition::AnySpan);
        }
        if span_call(expr, "filter_spans").is_some() {
            return Err(self.error(expr, "filter_spans stands alone or is joined to the rest by AND"));
        }
        if !names_spans(expr) {
            return self.expr(expr).map(TraceCondition::AnySpan);
        }
        match &expr.node {
            Node::Logic(logic, of) => {
                let of = of.iter().map(|of| self.condition(of, within)).collect::<Result<_, _>>()?;
                Ok(if *logic == Logic::And { TraceCondition::And(of) } else { TraceCondition::Or(of) })
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

    /// In shape spans any_span(e) is e.
    fn on_spans(&mut self, expr: &'a ast::Expr) -> Result<Expr, QueryError> {
        if let Some(of) = span_call(expr, "any_span").or_else(|| span_call(expr, "filter_spans")) {
            return self.on_spans(of);
        }
        match &expr.node {
            Node::Logic(logic, of) => {
                let of = of.iter().map(|of| self.on_spans(of)).collect::<Result<_, _>>()?;
                Ok(Expr::Call(if *logic == Logic::And { Function::And } else { Function::Or }, of))
            }
            Node::Unary(Unary::Not, of) => Ok(Expr::Call(Function::Not, vec![self.on_spans(of)?])),
            _ => self.expr(expr),
        }
    }
}

fn names_unpivoted(expr: &Expr) -> bool {
    expr.any_field(&|field| matches!(field, Field::Unpivoted(_)))
}
