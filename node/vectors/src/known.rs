//! The types that calls are certain to fit into, from those of their arguments.

use assay_node_btql::ast;
use assay_node_btql::bound::Function;
use assay_node_btql::values::Value;

use crate::types::{Known, Type};

/// Bits of what is counted: characters, elements, parts of times.
const COUNT_BITS: u16 = 40;

/// `second` is the second argument where it is the same for every row.
pub(crate) fn of_call(function: &Function, args: &[Known], second: Option<&Value<'_>>) -> Known {
    use Function as F;
    let null = Known::of(Type::Null);
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
        | F::Regex { .. }
        | F::StartsWith
        | F::EndsWith => Known::of(Type::Bool),
        F::Add | F::Sub | F::Mul | F::Mod => arithmetic(function, first, other),
        F::Minus | F::Abs | F::Floor | F::Ceil => of_one(function, first),
        F::Round => match second {
            None if args.len() > 1 => numbers(first),
            Some(digits) if digits.as_f64().is_none_or(|digits| digits < 0.0) => numbers(first),
            _ => of_one(function, first),
        },
        F::Div | F::ToUnixTime | F::Similarity | F::Sqrt | F::Ln | F::Log10 | F::Pow => Known::of(Type::Float),
        F::DatePart(_) | F::Length | F::Levenshtein => Known { ty: Type::Int, bits: COUNT_BITS },
        F::Concat { .. }
        | F::Lower
        | F::Upper
        | F::Substring
        | F::Trim
        | F::Replace
        | F::SplitPart
        | F::Left
        | F::Right
        | F::TypeOf => Known::of(Type::Text),
        F::Truncate { .. } => Known::of(Type::Time),
        F::ToInterval => Known::of(Type::Interval),
        F::Cast(to) => cast(*to, first),
        F::Coalesce | F::Least | F::Greatest => args.iter().copied().reduce(Known::or).unwrap_or(null),
        F::NullIf => first,
        F::ToJson => match first.ty {
            Type::Time | Type::Created | Type::Xact | Type::Key | Type::Interval => Known::of(Type::Text),
            _ => first,
        },
        F::Array | F::Object(_) | F::Get(_) | F::JsonExtract | F::ObjectKeys => Known::of(Type::Json),
    }
}

/// Whole numbers or not: only their texts hold both.
fn numbers(of: Known) -> Known {
    match of.ty {
        Type::Float => of,
        Type::Null => of,
        _ => Known::of(Type::Json),
    }
}

fn arithmetic(function: &Function, left: Known, right: Known) -> Known {
    let differs = matches!(function, Function::Add | Function::Sub);
    match (left.ty, right.ty) {
        (Type::Null, _) | (_, Type::Null) => Known::of(Type::Null),
        (one, other) if one.is_whole() && other.is_whole() => match function {
            Function::Mul => Known::whole(left.bits.saturating_add(right.bits)),
            // What a wide one stands for may be a float, and then so is what remains.
            Function::Mod if one == Type::Wide || other == Type::Wide => Known { ty: Type::Wide, bits: left.bits },
            Function::Mod => Known { ty: Type::Int, bits: left.bits },
            _ => Known::whole(left.bits.max(right.bits).saturating_add(1)),
        },
        (one, other) if one.is_time() && other.is_time() => Known::of(Type::Float),
        (one, Type::Interval) | (Type::Interval, one) if one.is_time() && differs => Known::of(Type::Time),
        (Type::Interval, Type::Interval) if differs => Known::of(Type::Interval),
        (Type::Float, other) | (other, Type::Float) if other == Type::Float || other.is_whole() => {
            Known::of(Type::Float)
        }
        _ => Known::of(Type::Json),
    }
}

fn of_one(function: &Function, of: Known) -> Known {
    match of.ty {
        // The least number of 64 bits has no other sign in them.
        Type::Bool | Type::Int | Type::Wide if matches!(function, Function::Minus | Function::Abs) => {
            Known::whole(of.bits)
        }
        Type::Bool => Known::whole(of.bits),
        Type::Int | Type::Wide | Type::Float | Type::Null | Type::Interval => of,
        _ => Known::of(Type::Json),
    }
}

fn cast(to: ast::Type, of: Known) -> Known {
    match (to, of.ty) {
        (ast::Type::Integer | ast::Type::Number, Type::Bool) => Known::whole(of.bits),
        (ast::Type::Integer | ast::Type::Number, Type::Int | Type::Wide) => of,
        (ast::Type::Number, Type::Float) => of,
        (ast::Type::Integer, _) | (ast::Type::Number, Type::Xact) => Known { ty: Type::Wide, bits: 64 },
        (ast::Type::Number, _) => Known::of(Type::Json),
        (ast::Type::Text, _) => Known::of(Type::Text),
        (ast::Type::Boolean, _) => Known::of(Type::Bool),
        (ast::Type::Timestamp, Type::Created) => of,
        (ast::Type::Timestamp | ast::Type::Date, _) => Known::of(Type::Time),
        (ast::Type::Json, Type::Text | Type::Key) => Known::of(Type::Json),
        (ast::Type::Json, _) => of,
    }
}
