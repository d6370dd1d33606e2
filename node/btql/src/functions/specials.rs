//! Functions that the binder rewrites, because they need more than the values of their arguments.

use super::function_table;
use super::words::*;

function_table! {
    /// Functions about constants, the columns of the source or whole traces.
    SpecialFunction {
        in Time {
            Now ["now", "current_timestamp"] () -> TIME, Never, "Returns the time of the query, the same for all rows.";
            CurrentDate ["current_date"] () -> TIME, Never,
                "Returns the start of the day of the query, in local time; parentheses can be left out.";
            DateTrunc ["date_trunc"] (constant("unit"), time("time")) -> TIME, NullIfAny,
                "Returns the start of a unit such as `'day'`, or of a multiple such as `'15 minutes'`, in local time.";
            DatePart ["date_part"] (constant("part"), time("time")) -> INTEGER, NullIfAny,
                "Returns a part such as `'hour'` or `'dow'`, in local time; `extract(hour from time)` is the same.";
        }
        in Json {
            Includes ["contains", "includes", "array_contains"] (any("container"), any("value")) -> BOOLEAN,
                Other("null if an argument is null, where null `tags` are an empty array"),
                "Tests as the operator `INCLUDES` does.";
        }
        in Casts {
            ToInterval ["to_interval"] (any("value")) -> INTERVAL, NullIfAny,
                "Returns the interval of a text such as `'7 days'`; other values give null.";
        }
        in Search {
            Search ["search"] (text("words")) -> BOOLEAN, Other("as `MATCH` and `OR`"),
                "Tests `MATCH` on `input`, `output`, `expected`, `metadata` and `span_attributes`, joined by `OR`.";
            EstimatedCost ["estimated_cost"] () -> NUMBER, Other("null without tokens or a price of the model"),
                "Returns `metrics.estimated_cost` or, where it was not logged, the cost of the tokens in USD.";
            AnySpan ["any_span"] (condition("condition")) -> BOOLEAN, Never,
                "Selects the traces in which one span satisfies the condition; it stands in filters only.";
            FilterSpans ["filter_spans"] (condition("condition")) -> BOOLEAN, Never,
                "Keeps the spans of selected traces that satisfy the condition; it stands in filters only.";
        }
    }
}
