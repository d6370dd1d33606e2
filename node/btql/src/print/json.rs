//! Printer of a query in the JSON form.

use serde_json::{Map, Value, json};

use super::Unsayable;
use super::expr::can_begin_operand;
use super::restate::as_dimensions;
use crate::ast::{
    Amount, Call, Expr, From, InferClause, Logic, Node, Path, PivotClause, Query, Quotes, Sample, Select, SelectItem,
    Sort, Source, Step, Unary, UnpivotClause,
};

const FORM: &str = "the tree";

/// A query as the tree, if that has words for it.
pub fn in_tree(query: &Query) -> Result<Value, Unsayable> {
    let query = as_dimensions(query, FORM)?;
    let mut tree = Map::new();
    let mut list = |key: &str, all: Vec<Value>| {
        if !all.is_empty() {
            tree.insert(key.to_owned(), Value::Array(all));
        }
    };
    list("select", query.select.iter().map(select).collect());
    let lists = [
        ("dimensions", &query.dimensions),
        ("measures", &query.measures),
        ("final_dimensions", &query.final_dimensions),
        ("final_measures", &query.final_measures),
        ("weighted_scores", &query.weighted_scores),
        ("custom_columns", &query.custom_columns),
    ];
    for (key, items) in lists {
        list(key, items.iter().map(item).collect());
    }
    if let Some(PivotClause::Measures(measures)) = &query.pivot {
        list("pivot", measures.iter().map(item).collect());
    }
    list("infer", query.infer.iter().map(infer).collect());
    list("unpivot", query.unpivot.iter().map(unpivot).collect());
    list("sort", query.sort.iter().map(sort).collect());
    let conditions = [
        ("filter", &query.filter),
        ("span_filter", &query.span_filter),
        ("trace_filter", &query.trace_filter),
        ("final_filter", &query.final_filter),
        ("comparison_key", &query.comparison_key),
    ];
    for (key, condition) in conditions {
        tree.extend(condition.as_ref().map(|condition| (key.to_owned(), expr(condition))));
    }
    if let Some(source) = &query.from {
        tree.insert("from".into(), from(source)?);
    }
    tree.extend(query.limit.map(|limit| ("limit".into(), limit.into())));
    tree.extend(query.cursor.clone().map(|cursor| ("cursor".into(), cursor.into())));
    tree.extend(query.preview_length.map(|length| ("preview_length".into(), length.into())));
    tree.extend(query.inference_budget.map(|budget| ("inference_budget".into(), budget.into())));
    tree.extend(query.sample.as_ref().map(|method| ("sample".into(), sample(method))));
    Ok(Value::Object(tree))
}

fn select(select: &Select) -> Value {
    match select {
        Select::Star(replaced) if replaced.is_empty() => json!({"op": "star"}),
        Select::Star(replaced) => {
            let replaced: Map<String, Value> =
                replaced.iter().map(|(column, replaced)| (column.clone(), expr(replaced))).collect();
            json!({"op": "star", "replace": replaced})
        }
        Select::Item(one) => item(one),
    }
}

fn item(item: &SelectItem) -> Value {
    let mut members = Map::new();
    members.extend(item.alias.as_ref().map(|alias| ("alias".to_owned(), Value::from(alias.as_str()))));
    members.insert("expr".into(), expr(&item.expr));
    Value::Object(members)
}

fn infer(infer: &InferClause) -> Value {
    match infer {
        InferClause::Star => json!({"op": "star"}),
        InferClause::Path(named) => path(named),
    }
}

fn unpivot(unpivot: &UnpivotClause) -> Value {
    let alias = match &unpivot.key {
        Some(key) => json!([key, unpivot.value]),
        None => json!(unpivot.value),
    };
    json!({"expr": expr(&unpivot.expr), "alias": alias})
}

fn sort(sort: &Sort) -> Value {
    let mut members = Map::new();
    members.insert("expr".into(), expr(&sort.expr));
    members.insert("dir".into(), if sort.descending { "desc" } else { "asc" }.into());
    members.extend(sort.nulls_first.map(|first| ("nulls".into(), if first { "first" } else { "last" }.into())));
    Value::Object(members)
}

fn from(from: &From) -> Result<Value, Unsayable> {
    let Source::Objects { name, args } = &from.source else {
        return Err(Unsayable { form: FORM, what: "a query within FROM" });
    };
    if from.alias.is_some() {
        return Err(Unsayable { form: FORM, what: "an alias of the source" });
    }
    let ident = json!({"op": "ident", "name": [name]});
    let mut source = match (args.is_empty(), from.shape) {
        (true, None) => return Ok(ident),
        _ => json!({"op": "function", "name": ident, "args": args.iter().map(expr).collect::<Vec<_>>()}),
    };
    if let Some(shape) = from.shape {
        source["shape"] = shape.name().into();
    }
    Ok(source)
}

fn sample(sample: &Sample) -> Value {
    let method = match sample.amount {
        Amount::Rate(rate) => json!({"type": "rate", "value": rate}),
        Amount::Count(count) => json!({"type": "count", "value": count}),
    };
    match sample.seed {
        Some(seed) => json!({"method": method, "seed": seed}),
        None => json!({"method": method}),
    }
}

fn steps(steps: &[Step]) -> Value {
    let step = |step: &Step| match step {
        Step::Key(key) => Value::from(key.as_str()),
        Step::Index(index) => Value::from(*index),
    };
    steps.iter().map(step).collect()
}

fn path(path: &Path) -> Value {
    let mut ident = json!({"op": "ident", "name": steps(&path.steps)});
    let looks_plain = matches!(path.steps.first(), Some(Step::Key(key)) if can_begin_operand(key));
    if path.quotes != Quotes::None && looks_plain {
        ident["quoted"] = true.into();
    }
    ident
}

fn all(of: &[Expr]) -> Vec<Value> {
    of.iter().map(expr).collect()
}

/// An expression as the tree has it.
pub(super) fn expr(of: &Expr) -> Value {
    crate::level(|| node(&of.node))
}

fn node(node: &Node) -> Value {
    match node {
        Node::Literal(value) => json!({"op": "literal", "value": value}),
        Node::Interval(interval) => json!({"op": "interval", "value": interval.value, "unit": interval.unit.name()}),
        Node::Path(named) => path(named),
        Node::Of(of, into) => json!({"op": "get", "expr": expr(of), "path": steps(into)}),
        Node::Star => json!({"op": "star"}),
        Node::Call(one) => call(one),
        Node::Unary(unary, of) => {
            let op = match unary {
                Unary::Not => "not",
                Unary::Minus => "neg",
                Unary::IsNull => "isnull",
                Unary::IsNotNull => "isnotnull",
            };
            json!({"op": op, "expr": expr(of)})
        }
        Node::Binary(crate::ast::Binary::Includes, left, right) => {
            json!({"op": "includes", "haystack": expr(left), "needle": expr(right)})
        }
        Node::Binary(binary, left, right) => json!({"op": binary.op(), "left": expr(left), "right": expr(right)}),
        Node::Logic(logic, of) => {
            json!({"op": if *logic == Logic::And { "and" } else { "or" }, "children": all(of)})
        }
        Node::Between(of) => {
            let [of, low, high] = &**of;
            json!({"op": "between", "expr": expr(of), "low": expr(low), "high": expr(high)})
        }
        Node::Array(of) => json!({"op": "array", "items": all(of)}),
        Node::Object(of) => {
            let members: Map<String, Value> = of.iter().map(|(key, value)| (key.clone(), expr(value))).collect();
            json!({"op": "object", "members": members})
        }
        Node::If(cases, otherwise) => {
            let case = |(condition, then): &(Expr, Expr)| json!({"cond": expr(condition), "then": expr(then)});
            json!({"op": "if", "conds": cases.iter().map(case).collect::<Vec<_>>(), "else": otherwise.as_deref().map(expr)})
        }
        Node::Cast(of, to) => json!({"op": "cast", "expr": expr(of), "type": to.name()}),
    }
}

fn call(call: &Call) -> Value {
    match (call.name.as_str(), call.args.as_slice()) {
        ("any_span", [of]) if !call.distinct => json!({"op": "singlespanfilter", "expr": expr(of)}),
        ("filter_spans", [of]) if !call.distinct => json!({"op": "matchingspansfilter", "expr": expr(of)}),
        _ => {
            let mut function =
                json!({"op": "function", "name": {"op": "ident", "name": [call.name]}, "args": all(&call.args)});
            if call.distinct {
                function["duplicate_treatment"] = "Distinct".into();
            }
            function
        }
    }
}
