//! Random values of each type, and the arrays that hold them.

use std::borrow::Cow;
use std::sync::Arc;

use crate::Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, NullArray, StringArray,
    TimestampMicrosecondArray, UInt64Array,
};
use assay_node_btql::ast::{Interval, Unit};
use assay_node_btql::values::Value;
use rand::Rng;
use rand::rngs::StdRng;

const SAFE: f64 = 9_007_199_254_740_991.0;

fn one_of<T: Copy>(of: &[T], rng: &mut StdRng) -> T {
    of[rng.random_range(0..of.len())]
}

/// A value that is not null.
pub(super) fn sample(ty: Type, rng: &mut StdRng) -> Value<'static> {
    match ty {
        Type::Null => Value::Null,
        Type::Bool => Value::Boolean(rng.random()),
        Type::Int => Value::Integer(match rng.random_range(0..4) {
            0 => one_of(&[i64::MIN, i64::MAX, 0, -1, 1 << 60], rng),
            1 => rng.random(),
            _ => rng.random_range(-9..9),
        }),
        Type::Float => Value::float(match rng.random_range(0..5) {
            0 => one_of(&[SAFE, -SAFE, 0.0, 0.25, -1.0], rng),
            1 => rng.random_range(-1000.0..1000.0),
            2 => rng.random_range(-8.0_f64..8.0).round() / 4.0,
            _ => f64::from(rng.random_range(-9..9)),
        }),
        Type::Wide => Value::whole(match rng.random_range(0..3) {
            0 => one_of(&[u64::MAX.into(), i64::MIN.into(), 1 << 70, -(1 << 100), 1 << 63], rng),
            1 => i128::from(rng.random::<i64>()) * 2,
            _ => rng.random_range(-9..9),
        }),
        Type::Text => Value::Text(Cow::Borrowed(one_of(&["", "a", "aa", "b", "é", "10", "9", "1", "null"], rng))),
        Type::Time => Value::Time(rng.random_range(-5..5)),
        Type::Created => Value::Stored(rng.random_range(-5_000_000_000..5_000_000_000)),
        Type::Xact => Value::Xact(one_of(&[0, 1, 9, 10, u64::MAX, 1 << 63], rng)),
        Type::Key => Value::Text(Cow::Owned(format!("p{:020}", one_of(&[0, 1, 9, 10, u64::MAX, 1 << 63], rng)))),
        Type::Interval => {
            let unit = one_of(&[Unit::Day, Unit::Hour, Unit::Week], rng);
            Value::Interval(Interval { value: one_of(&[0, 1, 24, 48, 7, 168, -1], rng), unit })
        }
        Type::Json => match rng.random_range(0..4) {
            0 => sample(one_of(&[Type::Bool, Type::Int, Type::Float, Type::Text], rng), rng),
            _ => Value::read(one_of(&JSON, rng)),
        },
    }
}

const JSON: [&str; 22] = [
    "1",
    "1.0",
    "2",
    "2.5",
    "-0.0",
    "1e2",
    "100",
    "18446744073709551615",
    "1e25",
    "true",
    "false",
    "\"a\"",
    "\"b\\n\"",
    "\"1\"",
    "[]",
    "[1,2]",
    "[1.0,2]",
    "{}",
    r#"{"a":1,"b":"x"}"#,
    r#"{"b":"x","a":1}"#,
    r#"{"a":[null]}"#,
    "[[]]",
];

pub(super) fn array(ty: Type, values: &[Value<'static>]) -> ArrayRef {
    let whole = |value: &Value<'_>| match value {
        // Beyond 64 bits the float stands for the number.
        Value::Float(float) => Some(*float as i128),
        other => other.as_whole(),
    };
    let ints = || values.iter().map(|value| value.as_whole().map(|whole| whole as i64));
    let times = || values.iter().map(Value::as_time);
    let key = |value: &Value<'_>| match value {
        Value::Xact(xact) => Some(*xact),
        Value::Text(text) => text[1..].parse().ok(),
        _ => None,
    };
    let boolean = |value: &Value<'_>| value.truth();
    let made: ArrayRef = match ty {
        Type::Null => Arc::new(NullArray::new(values.len())),
        Type::Bool => Arc::new(values.iter().map(boolean).collect::<BooleanArray>()),
        Type::Int => Arc::new(ints().collect::<Int64Array>()),
        Type::Float => Arc::new(values.iter().map(Value::as_f64).collect::<Float64Array>()),
        Type::Wide => {
            let wide = values.iter().map(whole).collect::<Decimal128Array>();
            Arc::new(wide.with_data_type(Type::Wide.data_type()))
        }
        Type::Text | Type::Interval => Arc::new(values.iter().map(|value| value.to_text()).collect::<StringArray>()),
        Type::Time | Type::Created => Arc::new(times().collect::<TimestampMicrosecondArray>()),
        Type::Xact | Type::Key => Arc::new(values.iter().map(key).collect::<UInt64Array>()),
        Type::Json => {
            let json = |value: &Value<'_>| (!value.is_null()).then(|| value.to_json());
            Arc::new(values.iter().map(json).collect::<StringArray>())
        }
    };
    assert_eq!(*made.data_type(), ty.data_type());
    made
}

#[test]
fn arrays_hold_the_values_they_are_of() {
    use rand::SeedableRng;
    let mut rng = StdRng::seed_from_u64(4);
    for ty in super::TYPES {
        let values: Vec<Value<'static>> =
            (0..300).map(|row| if row % 3 == 0 { Value::Null } else { sample(ty, &mut rng) }).collect();
        let array = array(ty, &values);
        for (row, value) in values.iter().enumerate() {
            assert_eq!(super::value_at(&array, ty, row), *value, "{ty:?}");
        }
    }
}
