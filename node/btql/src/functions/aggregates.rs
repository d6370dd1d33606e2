//! Functions over the rows of a group. Their states are in `assay-node-expressions`.

use super::function_table;
use super::words::*;
use crate::bound::{BoundExpr, Datum};

/// Aggregate with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Aggregation {
    Count,
    Sum,
    Avg,
    Min,
    Max,
    AnyValue,
    Percentile(f64),
    Stddev,
    ArrayAgg,
    StringAgg(String),
    /// First value by pagination key.
    First,
    Last,
}

function_table! {
    /// Aggregates by their names.
    AggregationName {
        in Aggregates {
            Count ["count"] (any("value")) -> INTEGER, Skipped,
                "Counts the values that are not null; `count(*)` and `count(1)` count rows.";
            CountDistinct ["count_distinct"] (any("value")) -> INTEGER, Skipped,
                "Counts different values, exactly up to a million, as `count(DISTINCT value)` does; beyond within 1 %.";
            Sum ["sum"] (number("number")) -> IntegerOfBoolean, NullIfAll,
                "Adds up numbers and ignores other values; a boolean counts as 1 or 0.";
            Avg ["avg"] (number("number")) -> NUMBER, NullIfAll, "Returns the mean of the numbers.";
            Min ["min"] (any("value")) -> First, NullIfAll, "Returns the smallest value.";
            Max ["max"] (any("value")) -> First, NullIfAll, "Returns the largest value.";
            AnyValue ["any_value"] (any("value")) -> First, NullIfAll, "Returns one of the values.";
            Percentile ["percentile"] (number("number"), number("share")) -> NUMBER, NullIfAll,
                "Returns the number below which a constant share between 0 and 1 lies, interpolated between ranks.";
            Median ["median"] (number("number")) -> NUMBER, NullIfAll, "Returns the percentile of 0.5.";
            Stddev ["stddev"] (number("number")) -> NUMBER, NullIfAll, "Returns the standard deviation of a sample.";
            ArrayAgg ["array_agg"] (any("value")) -> ANY, NullIfAll, "Returns the values as an array.";
            StringAgg ["string_agg"] (text("text"), optional(constant("separator"))) -> TEXT, NullIfAll,
                "Joins texts with a constant separator, by default a comma.";
            First ["first"] (any("value")) -> First, NullIfAll, "Returns the value that was logged first.";
            Last ["last"] (any("value")) -> First, NullIfAll, "Returns the value that was logged last.";
        }
    }
}

impl Aggregation {
    /// Binds an aggregate with its second argument, which must be constant. The first one is its operand.
    pub(crate) fn bind(name: AggregationName, second: Option<&BoundExpr>) -> Result<Aggregation, &'static str> {
        use AggregationName as A;
        let number = |expr: &BoundExpr| match expr {
            BoundExpr::Const(Datum::Integer(number)) => Some(*number as f64),
            BoundExpr::Const(Datum::Float(number)) => Some(*number),
            _ => None,
        };
        Ok(match name {
            A::Count | A::CountDistinct => Aggregation::Count,
            A::Sum => Aggregation::Sum,
            A::Avg => Aggregation::Avg,
            A::Min => Aggregation::Min,
            A::Max => Aggregation::Max,
            A::AnyValue => Aggregation::AnyValue,
            A::Median => Aggregation::Percentile(0.5),
            A::Percentile => {
                let share = second.and_then(number).filter(|share| (0.0..=1.0).contains(share));
                Aggregation::Percentile(share.ok_or("percentile takes a number between 0 and 1 behind its expression")?)
            }
            A::Stddev => Aggregation::Stddev,
            A::ArrayAgg => Aggregation::ArrayAgg,
            A::StringAgg => match second {
                None => Aggregation::StringAgg(",".into()),
                Some(BoundExpr::Const(Datum::Text(between))) => Aggregation::StringAgg(between.clone()),
                Some(_) => return Err("string_agg takes a text as its second argument"),
            },
            A::First => Aggregation::First,
            A::Last => Aggregation::Last,
        })
    }

    /// Returns the name under which the aggregate has its row.
    pub fn name(&self) -> AggregationName {
        match self {
            Aggregation::Count => AggregationName::Count,
            Aggregation::Sum => AggregationName::Sum,
            Aggregation::Avg => AggregationName::Avg,
            Aggregation::Min => AggregationName::Min,
            Aggregation::Max => AggregationName::Max,
            Aggregation::AnyValue => AggregationName::AnyValue,
            Aggregation::Percentile(_) => AggregationName::Percentile,
            Aggregation::Stddev => AggregationName::Stddev,
            Aggregation::ArrayAgg => AggregationName::ArrayAgg,
            Aggregation::StringAgg(_) => AggregationName::StringAgg,
            Aggregation::First => AggregationName::First,
            Aggregation::Last => AggregationName::Last,
        }
    }
}
