//! Time kernels: interval arithmetic, differences, truncation and parts of dates.

use arrow_array::TimestampMicrosecondArray;
use assay_node_btql::ast::Interval;
use assay_node_btql::bound::Function;
use assay_node_btql::calendar;
use assay_node_btql::values::Value;

use crate::builder::Builder;
use crate::column::Column;
use crate::prepared::Call;
use crate::scalar::arithmetic;
use crate::types::Type;

/// Adds or subtracts a constant interval, or subtracts two times (D-63).
pub(super) fn moved(function: &Function, left: &Column, right: &Column, rows: usize) -> Option<Column> {
    match (function, left, right) {
        (Function::Add, Column::Time(times) | Column::Stored(times), Column::Const(Value::Interval(by)))
        | (Function::Add, Column::Const(Value::Interval(by)), Column::Time(times) | Column::Stored(times)) => {
            Some(each(times, Some(*by)))
        }
        (Function::Sub, Column::Time(times) | Column::Stored(times), Column::Const(Value::Interval(by))) => {
            Some(each(times, calendar::negative(*by)))
        }
        (Function::Sub, _, _) if is_time(left) && is_time(right) => {
            let mut to = Builder::new(Type::Float, rows);
            (0..rows).for_each(|row| to.push(arithmetic(function, &left.value(row), &right.value(row))));
            Some(to.finish())
        }
        _ => None,
    }
}

fn is_time(of: &Column) -> bool {
    matches!(of, Column::Time(_) | Column::Stored(_) | Column::Const(Value::Time(_) | Value::Stored(_)))
}

fn each(times: &TimestampMicrosecondArray, by: Option<Interval>) -> Column {
    Column::Time(times.iter().map(|time| calendar::moved(time?, by?)).collect())
}

pub(super) fn of_one(call: &Call, of: &Column) -> Option<Column> {
    let (Column::Time(times) | Column::Stored(times)) = of else { return None };
    Some(match &call.function {
        Function::Truncate { unit, many } => {
            let start = |time: Option<i64>| calendar::truncate(time?, *unit, *many, call.tz_offset);
            Column::Time(times.iter().map(start).collect())
        }
        Function::DatePart(part) => {
            Column::Int(times.iter().map(|time| calendar::part(time?, *part, call.tz_offset)).collect())
        }
        _ => return None,
    })
}
