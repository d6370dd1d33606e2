//! Result types of calls, inferred from the types of their arguments.

use assay_node_btql::ast;
use assay_node_btql::bound::Function;
use assay_node_btql::values::Value;

use crate::functions;
use crate::types::{Type, ValueType};

/// Bits of counts: characters, elements, parts of times.
const COUNT_BITS: u16 = 40;

/// Infers the type of a call; `second` is the second argument if it is constant.
pub(crate) fn of_call(function: &Function, args: &[ValueType], second: Option<&Value<'_>>) -> ValueType {
    use Function as F;
    let null = ValueType::of(Type::Null);
    let first = args.first().copied().unwrap_or(null);
    let other = args.get(1).copied().unwrap_or(null);
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
        | F::Regex { .. } => ValueType::of(Type::Bool),
        F::Add | F::Sub | F::Mul | F::Mod => arithmetic(function, first, other),
        F::Minus => of_any_sign(first),
        F::Div => ValueType::of(Type::Float),
        F::DatePart(_) => ValueType { ty: Type::Int, bits: COUNT_BITS },
        F::Concat { .. } => ValueType::of(Type::Text),
        F::Truncate { .. } => ValueType::of(Type::Time),
        F::ToInterval => ValueType::of(Type::Interval),
        F::Cast(to) => cast(*to, first),
        F::Array | F::Object(_) | F::Get(_) => ValueType::of(Type::Json),
        F::Scalar(scalar) => (functions::entry(*scalar).result)(args, second),
    }
}

pub(crate) fn boolean(_: &[ValueType], _: Option<&Value<'_>>) -> ValueType {
    ValueType::of(Type::Bool)
}

pub(crate) fn count(_: &[ValueType], _: Option<&Value<'_>>) -> ValueType {
    ValueType { ty: Type::Int, bits: COUNT_BITS }
}

pub(crate) fn float(_: &[ValueType], _: Option<&Value<'_>>) -> ValueType {
    ValueType::of(Type::Float)
}

pub(crate) fn text(_: &[ValueType], _: Option<&Value<'_>>) -> ValueType {
    ValueType::of(Type::Text)
}

pub(crate) fn json(_: &[ValueType], _: Option<&Value<'_>>) -> ValueType {
    ValueType::of(Type::Json)
}

/// Type of the first argument.
pub(crate) fn first(args: &[ValueType], _: Option<&Value<'_>>) -> ValueType {
    args.first().copied().unwrap_or(ValueType::of(Type::Null))
}

/// Type that every argument fits into.
pub(crate) fn common(args: &[ValueType], _: Option<&Value<'_>>) -> ValueType {
    args.iter().copied().reduce(ValueType::or).unwrap_or(ValueType::of(Type::Null))
}

fn arithmetic(function: &Function, left: ValueType, right: ValueType) -> ValueType {
    let differs = matches!(function, Function::Add | Function::Sub);
    match (left.ty, right.ty) {
        (Type::Null, _) | (_, Type::Null) => ValueType::of(Type::Null),
        (one, other) if one.is_whole() && other.is_whole() => match function {
            Function::Mul => ValueType::whole(left.bits.saturating_add(right.bits)),
            // What a wide one stands for may be a float, and then so is what remains.
            Function::Mod if one == Type::Wide || other == Type::Wide => ValueType { ty: Type::Wide, bits: left.bits },
            Function::Mod => ValueType { ty: Type::Int, bits: left.bits },
            _ => ValueType::whole(left.bits.max(right.bits).saturating_add(1)),
        },
        (one, other) if one.is_time() && other.is_time() => ValueType::of(Type::Float),
        (one, Type::Interval) | (Type::Interval, one) if one.is_time() && differs => ValueType::of(Type::Time),
        (Type::Interval, Type::Interval) if differs => ValueType::of(Type::Interval),
        (Type::Float, other) | (other, Type::Float) if other == Type::Float || other.is_whole() => {
            ValueType::of(Type::Float)
        }
        _ => ValueType::of(Type::Json),
    }
}

/// Type of a number whose sign may change: the least number of 64 bits has no other sign in them.
pub(crate) fn of_any_sign(of: ValueType) -> ValueType {
    match of.ty {
        Type::Bool | Type::Int | Type::Wide => ValueType::whole(of.bits),
        _ => of_whole(of),
    }
}

/// Type of a number without its fraction.
pub(crate) fn of_whole(of: ValueType) -> ValueType {
    match of.ty {
        Type::Bool => ValueType::whole(of.bits),
        Type::Int | Type::Wide | Type::Float | Type::Null | Type::Interval => of,
        _ => ValueType::of(Type::Json),
    }
}

fn cast(to: ast::Type, of: ValueType) -> ValueType {
    match (to, of.ty) {
        (ast::Type::Integer | ast::Type::Number, Type::Bool) => ValueType::whole(of.bits),
        (ast::Type::Integer | ast::Type::Number, Type::Int | Type::Wide) => of,
        (ast::Type::Number, Type::Float) => of,
        (ast::Type::Integer, _) | (ast::Type::Number, Type::Xact) => ValueType { ty: Type::Wide, bits: 64 },
        (ast::Type::Number, _) => ValueType::of(Type::Json),
        (ast::Type::Text, _) => ValueType::of(Type::Text),
        (ast::Type::Boolean, _) => ValueType::of(Type::Bool),
        (ast::Type::Timestamp, Type::Created) => of,
        (ast::Type::Timestamp | ast::Type::Date, _) => ValueType::of(Type::Time),
        (ast::Type::Json, Type::Text | Type::Key) => ValueType::of(Type::Json),
        (ast::Type::Json, _) => of,
    }
}
