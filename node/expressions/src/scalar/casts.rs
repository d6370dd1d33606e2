//! Casts (D-74); a value that cannot be cast becomes null (D-52).

use assay_node_btql::ast::{Type, Unit};
use assay_node_btql::calendar;
use assay_node_btql::values::{Value, equal, number};

use super::numbers::truncated;

pub(crate) fn cast(of: &Value<'_>, to: Type, tz_offset: i32) -> Value<'static> {
    match to {
        Type::Text => of.to_text().map_or(Value::Null, |text| Value::Text(text.into_owned().into())),
        Type::Boolean => to_boolean(of),
        Type::Integer => truncated(&to_number(of)).map_or(Value::Null, Value::whole),
        Type::Number => to_number(of),
        Type::Timestamp => to_time(of),
        Type::Date => {
            // D-66: a text is not shifted, and its day is the one that it names in UTC.
            let shift = if matches!(of, Value::Text(_)) { 0 } else { tz_offset };
            let midnight = of.as_time().and_then(|time| calendar::truncate(time, Unit::Day, 1, shift));
            midnight.map_or(Value::Null, Value::Time)
        }
        Type::Json => match of {
            Value::Text(text) => Value::parsed(text),
            other => other.clone().into_owned(),
        },
    }
}

fn to_time(of: &Value<'_>) -> Value<'static> {
    match of {
        Value::Stored(micros) => Value::Stored(*micros),
        other => other.as_time().map_or(Value::Null, Value::Time),
    }
}

fn to_number(of: &Value<'_>) -> Value<'static> {
    match of {
        Value::Text(text) => number(text),
        Value::Xact(xact) => Value::whole((*xact).into()),
        other => other.as_number().unwrap_or(Value::Null),
    }
}

fn to_boolean(of: &Value<'_>) -> Value<'static> {
    let is = |number: i64| equal(of, &Value::Integer(number)) == Some(true);
    match of {
        Value::Boolean(boolean) => Value::Boolean(*boolean),
        Value::Text(text) => match &**text {
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            _ => Value::Null,
        },
        _ if is(1) => Value::Boolean(true),
        _ if is(0) => Value::Boolean(false),
        _ => Value::Null,
    }
}
