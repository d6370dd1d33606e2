//! Entries of functions of times.

use assay_node_btql::bound::TimeFunction;
use assay_node_btql::values::Value;

use super::{Entry, Evaluate};
use crate::result_types::float;

const MICROS_PER_SECOND: i64 = 1_000_000;

pub(super) fn entry(of: TimeFunction) -> Entry {
    match of {
        TimeFunction::ToUnixTime => Entry::new(float, Evaluate::One(|of| of.as_time().map_or(Value::Null, unix_time))),
    }
}

fn unix_time(micros: i64) -> Value<'static> {
    if micros % MICROS_PER_SECOND == 0 {
        Value::Integer(micros / MICROS_PER_SECOND)
    } else {
        Value::float(micros as f64 / MICROS_PER_SECOND as f64)
    }
}
