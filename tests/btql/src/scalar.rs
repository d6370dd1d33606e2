//! Evaluation of an expression for one row or one group: operators, and `functions` (btql.md, sections 9 to 11).
//!
//! Functions of texts accept any value: they use its compact JSON text, as LIKE does (D-59).

use assay_node_btql::ast::{Step, Type, Unit};
use assay_node_btql::bound::{BoundExpr, Function};
use assay_storage_model::event::parse_created;
use regex::RegexBuilder;
use serde_json::Value as Json;
use std::cmp::Ordering;

use crate::row::Scope;
use crate::value::{Value, compare, equal, number_in};
use crate::{contains, functions, numbers, text, times};

pub fn evaluate(expr: &BoundExpr, scope: Scope<'_>) -> Result<Value, String> {
    Ok(of_expr(expr, scope)?.settled())
}

fn of_expr(expr: &BoundExpr, scope: Scope<'_>) -> Result<Value, String> {
    match expr {
        BoundExpr::Const(datum) => Ok(Value::of_datum(datum)),
        BoundExpr::Field(field, steps) => Ok(stepped(scope.field(field)?, steps)),
        BoundExpr::If(cases, otherwise) => {
            for (condition, then) in cases {
                if is_true(condition, scope)? {
                    return evaluate(then, scope);
                }
            }
            evaluate(otherwise, scope)
        }
        BoundExpr::Call(function, args) => {
            let args = args.iter().map(|arg| evaluate(arg, scope)).collect::<Result<Vec<_>, _>>()?;
            call(function, &args, scope)
        }
    }
}

/// Returns whether a condition holds; null does not.
pub fn is_true(condition: &BoundExpr, scope: Scope<'_>) -> Result<bool, String> {
    Ok(evaluate(condition, scope)?.truth() == Some(true))
}

pub fn stepped(of: Value, steps: &[Step]) -> Value {
    steps.iter().fold(of, |of, step| match step {
        Step::Key(key) => of.member(key),
        Step::Index(index) => of.element(*index),
    })
}

fn call(function: &Function, args: &[Value], scope: Scope<'_>) -> Result<Value, String> {
    use Function as F;
    let truths = || args.iter().map(Value::truth);
    let truth = Value::of_truth;
    Ok(match (function, args) {
        (F::And, _) => truth(contains::all(truths())),
        (F::Or, _) => truth(contains::any(truths())),
        (F::Not, [of]) => truth(of.truth().map(|truth| !truth)),
        (F::IsNull, [of]) => Value::Bool(of.is_null()),
        (F::IsNotNull, [of]) => Value::Bool(!of.is_null()),
        (F::Array, _) => Value::Array(args.to_vec()),
        (F::Object(keys), _) => Value::Object(keys.iter().cloned().zip(args.iter().cloned()).collect()),
        (F::Get(steps), [of]) => stepped(of.clone(), steps),
        (F::Scalar(function), _) => functions::call(*function, args, scope.world.tz_offset),
        (F::Concat { skips_nulls }, _) => concat(args, *skips_nulls),
        (F::Regex { any_case }, [of, pattern]) => regex(of, pattern, *any_case)?,
        (_, [of]) => of_one(function, of, scope),
        (_, [left, right]) => of_two(function, left, right)?,
        _ => return Err(format!("{function:?} does not take {} arguments", args.len())),
    })
}

fn concat(args: &[Value], skips_nulls: bool) -> Value {
    if !skips_nulls && args.iter().any(Value::is_null) {
        return Value::Null;
    }
    Value::Text(args.iter().filter_map(Value::to_text).collect())
}

fn regex(of: &Value, pattern: &Value, any_case: bool) -> Result<Value, String> {
    let (Some(of), Some(pattern)) = (of.to_text(), pattern.to_text()) else { return Ok(Value::Null) };
    let regex = RegexBuilder::new(&pattern).case_insensitive(any_case).build();
    let regex = regex.map_err(|error| format!("`{pattern}` is no pattern: {error}"))?;
    Ok(Value::Bool(regex.is_match(&of)))
}

fn of_two(function: &Function, left: &Value, right: &Value) -> Result<Value, String> {
    use Function as F;
    let truth = Value::of_truth;
    let ordered = |wanted: fn(Ordering) -> bool| truth(compare(left, right).map(wanted));
    let same = || equal(left, right).unwrap_or(left.is_null() && right.is_null());
    let texts = || left.to_text().zip(right.to_text());
    let of_texts = |f: &dyn Fn(&str, &str) -> Value| texts().map_or(Value::Null, |(left, right)| f(&left, &right));
    Ok(match function {
        F::Eq => truth(equal(left, right)),
        F::Ne => truth(equal(left, right).map(|equal| !equal)),
        F::Lt => ordered(Ordering::is_lt),
        F::Le => ordered(Ordering::is_le),
        F::Gt => ordered(Ordering::is_gt),
        F::Ge => ordered(Ordering::is_ge),
        F::Same => Value::Bool(same()),
        F::NotSame => Value::Bool(!same()),
        F::In => truth(contains::is_in(left, right)),
        F::Includes => truth(contains::includes(left, right)),
        // D-60: of tags, null is empty.
        F::TagsInclude if left.is_null() => truth(contains::includes(&Value::Array(Vec::new()), right)),
        F::TagsInclude => truth(contains::includes(left, right)),
        F::Match => truth(text::matches(left, right)),
        F::Like { any_case } => of_texts(&|text, pattern| Value::Bool(text::like(text, pattern, *any_case))),
        F::Add | F::Sub | F::Mul | F::Div | F::Mod => numbers::arithmetic(function, left, right),
        _ => return Err(format!("{function:?} does not take two arguments")),
    })
}

fn of_one(function: &Function, of: &Value, scope: Scope<'_>) -> Value {
    use Function as F;
    let tz_offset = scope.world.tz_offset;
    match function {
        F::Minus => numbers::minus(of),
        F::Cast(to) => cast(of, *to, tz_offset),
        F::ToInterval => match of {
            Value::Interval(_) => of.clone(),
            Value::Text(text) => times::interval_in(text).map_or(Value::Null, Value::Interval),
            _ => Value::Null,
        },
        F::Truncate { unit, many } => {
            let start = time(of).and_then(|time| times::truncate(time, *unit, *many, tz_offset));
            start.map_or(Value::Null, Value::time)
        }
        F::DatePart(part) => {
            time(of).map_or(Value::Null, |time| Value::Int(times::part(time, *part, tz_offset).into()))
        }
        _ => Value::Null,
    }
}

/// Returns a time, also from a text.
pub fn time(of: &Value) -> Option<i64> {
    match of {
        Value::Time(time) => Some(time.micros),
        Value::Text(text) => parse_created(text.trim()),
        _ => None,
    }
}

/// Returns the name of the type in `infer` (D-85).
pub fn type_of(of: &Value) -> &'static str {
    match of {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Int(_) | Value::Float(_) => "number",
        Value::Text(_) | Value::Time(_) | Value::Xact(_) | Value::Interval(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// D-74; what cannot be cast is null (D-52).
fn cast(of: &Value, to: Type, tz_offset: i32) -> Value {
    match to {
        Type::Text => of.to_text().map_or(Value::Null, Value::Text),
        Type::Boolean => to_boolean(of),
        Type::Integer => to_number(of).and_then(|number| numbers::truncated(&number)).map_or(Value::Null, Value::int),
        Type::Number => to_number(of).unwrap_or(Value::Null),
        Type::Timestamp => match of {
            Value::Time(_) => of.clone(),
            other => time(other).map_or(Value::Null, Value::time),
        },
        Type::Date => {
            // D-66: a text is not shifted, and its day is the one that it names in UTC.
            let shift = if matches!(of, Value::Text(_)) { 0 } else { tz_offset };
            let midnight = time(of).and_then(|time| times::truncate(time, Unit::Day, 1, shift));
            midnight.map_or(Value::Null, Value::time)
        }
        Type::Json => match of {
            Value::Text(text) => serde_json::from_str::<Json>(text).map_or(Value::Null, |json| Value::of_json(&json)),
            other => other.clone(),
        },
    }
}

fn to_number(of: &Value) -> Option<Value> {
    match of {
        Value::Text(text) => number_in(text),
        Value::Xact(xact) => Some(Value::Int((*xact).into())),
        other => other.number(),
    }
}

fn to_boolean(of: &Value) -> Value {
    let is = |number: i128| equal(of, &Value::Int(number)) == Some(true);
    match of {
        Value::Bool(_) => of.clone(),
        Value::Text(text) => match text.as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => Value::Null,
        },
        _ if is(1) => Value::Bool(true),
        _ if is(0) => Value::Bool(false),
        _ => Value::Null,
    }
}
