//! Functions that are other names of operators and casts, whose evaluation they share.

use super::function_table;
use super::words::*;
use crate::ast::{Type, Unit};
use crate::bound::Function;

use super::scalars::{ConditionalFunction, ScalarFunction};

function_table! {
    /// Functions that stand for an operation with fixed parameters.
    NamedOperation {
        in Text {
            Concat ["concat"] (repeated(text("text"))) -> TEXT, Skipped,
                "Joins texts; without any the result is the empty text.";
        }
        in Time {
            Second ["second"] (time("time")) -> TIME, NullIfAny, "Returns the start of the second.";
            Minute ["minute"] (time("time")) -> TIME, NullIfAny, "Returns the start of the minute.";
            Hour ["hour"] (time("time")) -> TIME, NullIfAny, "Returns the start of the hour, in local time.";
            Day ["day"] (time("time")) -> TIME, NullIfAny, "Returns the start of the day, in local time.";
            Week ["week"] (time("time")) -> TIME, NullIfAny, "Returns the start of the week, a Monday, in local time.";
            Month ["month"] (time("time")) -> TIME, NullIfAny, "Returns the start of the month, in local time.";
            Year ["year"] (time("time")) -> TIME, NullIfAny, "Returns the start of the year, in local time.";
        }
        in Conditionals {
            IfNull ["ifnull"] (any("value"), any("other")) -> Common, NullIfAll,
                "Returns the first value unless it is null, and otherwise the second one.";
        }
        in Casts {
            ToString ["to_string"] (any("value")) -> TEXT, NullIfAny,
                "Returns a text as it is, and other values as their compact JSON.";
            ToBoolean ["to_boolean"] (any("value")) -> BOOLEAN, NullIfAny,
                "Accepts booleans, 1, 0, `'true'` and `'false'`; other values give null.";
            ToInteger ["to_integer"] (any("value")) -> INTEGER, NullIfAny,
                "Truncates a number, or a text of one, toward zero; other values give null.";
            ToNumber ["to_number"] (any("value")) -> NUMBER, NullIfAny,
                "Returns a number, or the number that a text has; other values give null.";
            ToDate ["to_date"] (any("value")) -> TIME, NullIfAny,
                "Returns the start of a day; that of a time is local, and that of a text is in UTC.";
            ToDatetime ["to_datetime"] (any("value")) -> TIME, NullIfAny,
                "Returns a time, or the time that a text has; other values give null.";
        }
    }
}

impl NamedOperation {
    /// Returns the operation with its parameters.
    pub fn function(self) -> Function {
        let truncate = |unit| Function::Truncate { unit, many: 1 };
        match self {
            NamedOperation::Concat => Function::Concat { skips_nulls: true },
            NamedOperation::Second => truncate(Unit::Second),
            NamedOperation::Minute => truncate(Unit::Minute),
            NamedOperation::Hour => truncate(Unit::Hour),
            NamedOperation::Day => truncate(Unit::Day),
            NamedOperation::Week => truncate(Unit::Week),
            NamedOperation::Month => truncate(Unit::Month),
            NamedOperation::Year => truncate(Unit::Year),
            NamedOperation::IfNull => Function::Scalar(ScalarFunction::Conditional(ConditionalFunction::Coalesce)),
            NamedOperation::ToString => Function::Cast(Type::Text),
            NamedOperation::ToBoolean => Function::Cast(Type::Boolean),
            NamedOperation::ToInteger => Function::Cast(Type::Integer),
            NamedOperation::ToNumber => Function::Cast(Type::Number),
            NamedOperation::ToDate => Function::Cast(Type::Date),
            NamedOperation::ToDatetime => Function::Cast(Type::Timestamp),
        }
    }
}
