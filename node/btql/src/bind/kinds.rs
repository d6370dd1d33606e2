//! Inference of the types of expressions, for errors before any row is read and for the schema of a response.

use crate::ast::{Step, Type};
use crate::bound::{Aggregate, Aggregation, BoundExpr, Datum, Derived, Field, Function, Kinds};

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
    let of = || aggregate.of.as_ref().map_or(Kinds::Any, |of| kinds(of, &[], &[]));
    match aggregate.function {
        Aggregation::Count => Kinds::Integer,
        // Other whole numbers may come to more than 64 bits hold.
        Aggregation::Sum if of() == Kinds::Boolean => Kinds::Integer,
        Aggregation::Sum | Aggregation::Avg | Aggregation::Percentile(_) | Aggregation::Stddev => Kinds::Number,
        Aggregation::Min | Aggregation::Max | Aggregation::AnyValue | Aggregation::First | Aggregation::Last => of(),
        Aggregation::ArrayAgg => Kinds::Any,
        Aggregation::StringAgg(_) => Kinds::Text,
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
        | F::Regex { .. }
        | F::StartsWith
        | F::EndsWith => Kinds::Boolean,
        F::Add | F::Sub | F::Mul | F::Mod | F::Minus | F::Abs => of_arithmetic(function, first(), second()),
        F::Div
        | F::ToUnixTime
        | F::Similarity
        | F::Round
        | F::Floor
        | F::Ceil
        | F::Sqrt
        | F::Ln
        | F::Log10
        | F::Pow => Kinds::Number,
        F::DatePart(_) | F::Length | F::Levenshtein => Kinds::Integer,
        F::Concat { .. }
        | F::Lower
        | F::Upper
        | F::Substring
        | F::Trim
        | F::Replace
        | F::SplitPart
        | F::Left
        | F::Right
        | F::TypeOf => Kinds::Text,
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
        F::Coalesce | F::Least | F::Greatest => args.iter().map(of).reduce(together).unwrap_or(Kinds::Any),
        F::NullIf => first(),
        F::Array | F::Object(_) | F::Get(_) | F::JsonExtract | F::ObjectKeys | F::ToJson => Kinds::Any,
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
        (Kinds::Integer, _) if *function == Function::Abs => Kinds::Integer,
        (Kinds::Integer, Kinds::Integer) if *function == Function::Mod => Kinds::Integer,
        // Of the others 64 bits may not be enough, and then it is a float.
        _ => Kinds::Number,
    }
}
