//! Inference of the types of expressions, for errors before any row is read and for the schema of a response.

use crate::ast::{Step, Type};
use crate::bound::{Aggregate, BoundExpr, Datum, Derived, Field, Function, Kinds};
use crate::functions::ResultKind;

/// Returns the types of an expression, any of which may be null.
pub fn kinds(expr: &BoundExpr, aggregates: &[Aggregate], dimensions: &[BoundExpr]) -> Kinds {
    let of = |expr: &BoundExpr| kinds(expr, aggregates, dimensions);
    match expr {
        BoundExpr::Const(datum) => of_datum(datum),
        BoundExpr::Field(Field::Dimension(number), steps) if steps.is_empty() => {
            dimensions.get(*number).map_or(Kinds::Any, |dimension| kinds(dimension, &[], &[]))
        }
        BoundExpr::Field(Field::Aggregate(number), steps) if steps.is_empty() => {
            aggregates.get(*number).map_or(Kinds::Any, of_aggregate)
        }
        BoundExpr::Field(field, steps) => of_field(field, steps),
        BoundExpr::If(cases, otherwise) => {
            let values = cases.iter().map(|(_, then)| then).chain([&**otherwise]);
            values.map(of).reduce(together).unwrap_or(Kinds::Any)
        }
        BoundExpr::Call(function, args) => of_call(function, args, &of),
    }
}

fn of_datum(datum: &Datum) -> Kinds {
    match datum {
        Datum::Null => Kinds::Null,
        Datum::Boolean(_) => Kinds::Boolean,
        Datum::Integer(_) | Datum::Unsigned(_) => Kinds::Integer,
        Datum::Float(_) => Kinds::Number,
        Datum::Text(_) => Kinds::Text,
        Datum::Time(_) => Kinds::Time,
        Datum::Interval(_) => Kinds::Interval,
        Datum::Json(_) => Kinds::Any,
    }
}

fn of_field(field: &Field, steps: &[Step]) -> Kinds {
    match field {
        Field::Derived(Derived::TotalTokens | Derived::Duration | Derived::EstimatedCost) => Kinds::Number,
        Field::Column(name) if steps.is_empty() => match *name {
            "created" | "deleted_at" => Kinds::Time,
            "is_root" => Kinds::Boolean,
            "tags" | "span_parents" => Kinds::Texts,
            "id" | "span_id" | "root_span_id" | "_xact_id" | "_pagination_key" | "project_id" | "org_id"
            | "experiment_id" | "dataset_id" | "prompt_session_id" | "log_id" | "comparison_key" => Kinds::Text,
            _ => Kinds::Any,
        },
        Field::Column("tags" | "span_parents") => Kinds::Text,
        _ => Kinds::Any,
    }
}

fn of_aggregate(aggregate: &Aggregate) -> Kinds {
    // A count has no operand if it counts rows.
    let first = aggregate.of.as_ref().map_or(Kinds::Any, |of| kinds(of, &[], &[]));
    of_result(aggregate.function.name().row().result, first, [first])
}

/// Returns the kind of a result; `first` is the kind of the first of all arguments.
fn of_result(result: ResultKind, first: Kinds, all: impl IntoIterator<Item = Kinds>) -> Kinds {
    match (result, first) {
        (ResultKind::Always(kind), _) => kind,
        (ResultKind::First, _) => first,
        (ResultKind::Common, _) => all.into_iter().reduce(together).unwrap_or(Kinds::Any),
        (ResultKind::IntegerOfInteger, Kinds::Integer) | (ResultKind::IntegerOfBoolean, Kinds::Boolean) => {
            Kinds::Integer
        }
        // Other whole numbers may come to more than 64 bits hold.
        (ResultKind::IntegerOfInteger | ResultKind::IntegerOfBoolean, _) => Kinds::Number,
    }
}

fn of_call(function: &Function, args: &[BoundExpr], of: &dyn Fn(&BoundExpr) -> Kinds) -> Kinds {
    use Function as F;
    let first = || args.first().map_or(Kinds::Null, of);
    let second = || args.get(1).map_or(Kinds::Null, of);
    match function {
        F::And
        | F::Or
        | F::Not
        | F::IsNull
        | F::IsNotNull
        | F::Eq
        | F::Ne
        | F::Lt
        | F::Le
        | F::Gt
        | F::Ge
        | F::Same
        | F::NotSame
        | F::Like { .. }
        | F::Match
        | F::In
        | F::Includes
        | F::TagsInclude
        | F::Regex { .. } => Kinds::Boolean,
        F::Add | F::Sub | F::Mul | F::Mod | F::Minus => of_arithmetic(function, first(), second()),
        F::Div => Kinds::Number,
        F::DatePart(_) => Kinds::Integer,
        F::Concat { .. } => Kinds::Text,
        F::Truncate { .. } => Kinds::Time,
        F::ToInterval => Kinds::Interval,
        F::Cast(to) => match to {
            Type::Text => Kinds::Text,
            Type::Boolean => Kinds::Boolean,
            Type::Integer => Kinds::Integer,
            Type::Number => Kinds::Number,
            Type::Date | Type::Timestamp => Kinds::Time,
            Type::Json => Kinds::Any,
        },
        F::Array | F::Object(_) | F::Get(_) => Kinds::Any,
        F::Scalar(scalar) => of_result(scalar.row().result, first(), args.iter().map(of)),
    }
}

/// Returns the union of types.
fn together(one: Kinds, other: Kinds) -> Kinds {
    match (one, other) {
        (same, found) if same == found => same,
        (Kinds::Null, kind) | (kind, Kinds::Null) => kind,
        (Kinds::Integer, Kinds::Number) | (Kinds::Number, Kinds::Integer) => Kinds::Number,
        _ => Kinds::Any,
    }
}

fn of_arithmetic(function: &Function, first: Kinds, second: Kinds) -> Kinds {
    let differs = matches!(function, Function::Add | Function::Sub);
    match (first, second) {
        (Kinds::Time, Kinds::Interval) | (Kinds::Interval, Kinds::Time) if differs => Kinds::Time,
        (Kinds::Interval, Kinds::Interval) if differs => Kinds::Interval,
        (Kinds::Interval, _) if *function == Function::Minus => Kinds::Interval,
        (Kinds::Integer, Kinds::Integer) if *function == Function::Mod => Kinds::Integer,
        // Of the others 64 bits may not be enough, and then it is a float.
        _ => Kinds::Number,
    }
}
