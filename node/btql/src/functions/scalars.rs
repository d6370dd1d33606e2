//! Functions that are evaluated on values. `assay-node-expressions` has the evaluation, in files of the same subjects.

use super::words::*;
use super::{ArgumentKind, FunctionRow, function_table};

/// Function with an entry in `assay-node-expressions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarFunction {
    Text(TextFunction),
    Number(NumberFunction),
    Time(TimeFunction),
    Json(JsonFunction),
    Conditional(ConditionalFunction),
}

impl ScalarFunction {
    pub fn all() -> impl Iterator<Item = ScalarFunction> {
        let texts = TextFunction::ALL.iter().copied().map(ScalarFunction::Text);
        let numbers = NumberFunction::ALL.iter().copied().map(ScalarFunction::Number);
        let times = TimeFunction::ALL.iter().copied().map(ScalarFunction::Time);
        let json = JsonFunction::ALL.iter().copied().map(ScalarFunction::Json);
        let conditionals = ConditionalFunction::ALL.iter().copied().map(ScalarFunction::Conditional);
        texts.chain(numbers).chain(times).chain(json).chain(conditionals)
    }

    pub fn row(self) -> &'static FunctionRow {
        match self {
            ScalarFunction::Text(function) => function.row(),
            ScalarFunction::Number(function) => function.row(),
            ScalarFunction::Time(function) => function.row(),
            ScalarFunction::Json(function) => function.row(),
            ScalarFunction::Conditional(function) => function.row(),
        }
    }
}

function_table! {
    /// Functions of texts.
    TextFunction {
        in Text {
            Lower ["lower"] (text("text")) -> TEXT, NullIfAny, "Converts letters to lower case.";
            Upper ["upper"] (text("text")) -> TEXT, NullIfAny, "Converts letters to upper case.";
            Length ["length", "len"] (any("value")) -> INTEGER, NullIfAny,
                "Counts characters of a text, elements of an array or keys of an object; other values give null.";
            Substring ["substring", "substr"] (text("text"), integer("start"), optional(integer("length"))) -> TEXT,
                NullIfAny, "Returns the characters from a position that counts from 1; a negative length gives null.";
            Trim ["trim"] (text("text")) -> TEXT, NullIfAny, "Removes white space at both ends.";
            Replace ["replace"] (text("text"), text("from"), text("to")) -> TEXT, NullIfAny,
                "Replaces every occurrence of one text by another.";
            SplitPart ["split_part"] (text("text"), text("separator"), integer("part")) -> TEXT, NullIfAny,
                "Returns a part between separators, counted from 1 or, if negative, from the end; part 0 gives null.";
            StartsWith ["starts_with"] (text("text"), text("start")) -> BOOLEAN, NullIfAny,
                "Tests whether a text starts with another one.";
            EndsWith ["ends_with"] (text("text"), text("end")) -> BOOLEAN, NullIfAny,
                "Tests whether a text ends with another one.";
            Left ["left"] (text("text"), integer("count")) -> TEXT, NullIfAny,
                "Returns the first characters or, with a negative count, all but the last ones.";
            Right ["right"] (text("text"), integer("count")) -> TEXT, NullIfAny,
                "Returns the last characters or, with a negative count, all but the first ones.";
            Levenshtein ["levenshtein"] (text("one"), text("other")) -> INTEGER, NullIfAny,
                "Counts the characters to insert, remove or replace to turn one text into the other.";
            Similarity ["similarity"] (text("one"), text("other")) -> NUMBER, NullIfAny,
                "Returns 1 for equal texts and less the more they differ, down to 0.";
            RegexpExtract ["regexp_extract"]
                (text("text"), argument("pattern", ArgumentKind::Pattern), optional(integer("group"))) -> TEXT,
                NullIfAny, "Returns the first match, or what one of its groups matched; null without a match.";
        }
    }
}

function_table! {
    /// Functions of numbers.
    NumberFunction {
        in Numbers {
            Round ["round"] (number("number"), optional(integer("digits"))) -> NUMBER, NullIfAny,
                "Rounds half away from zero, to whole numbers or to so many digits.";
            Abs ["abs"] (number("number")) -> IntegerOfInteger, NullIfAny, "Returns the absolute value.";
            Floor ["floor"] (number("number")) -> NUMBER, NullIfAny, "Rounds down to a whole number.";
            Ceil ["ceil", "ceiling"] (number("number")) -> NUMBER, NullIfAny, "Rounds up to a whole number.";
            Sqrt ["sqrt"] (number("number")) -> NUMBER, NullIfAny,
                "Returns the square root; a negative number gives null.";
            Ln ["ln"] (number("number")) -> NUMBER, NullIfAny,
                "Returns the natural logarithm; a number that is not positive gives null.";
            Log10 ["log10"] (number("number")) -> NUMBER, NullIfAny,
                "Returns the decimal logarithm; a number that is not positive gives null.";
            Pow ["pow", "power"] (number("base"), number("exponent")) -> NUMBER, NullIfAny,
                "Raises a number to a power; an undefined result is null.";
        }
    }
}

function_table! {
    /// Functions of times.
    TimeFunction {
        in Time {
            ToUnixTime ["to_unixtime"] (time("time")) -> NUMBER, NullIfAny,
                "Returns the seconds since 1970-01-01 UTC, with a fraction if there is one.";
            DateDiff ["date_diff", "datediff"] (argument("unit", ArgumentKind::Unit), time("start"), time("end"))
                -> INTEGER, NullIfAny,
                "Counts the starts of a unit after one time and up to another, in local time, negative backwards.";
        }
    }
}

function_table! {
    /// Functions of arrays, objects and JSON texts.
    JsonFunction {
        in Json {
            JsonExtract ["json_extract"] (json("value"), text("key")) -> ANY, NullIfAny,
                "Returns the member of an object, or of its JSON text, with exactly this key.";
            ObjectKeys ["object_keys"] (json("object")) -> ANY, NullIfAny,
                "Returns the keys of an object as an array; other values give null.";
            ToJson ["to_json"] (any("value")) -> ANY, NullIfAny,
                "Returns the value as JSON, in which times and intervals are texts.";
            TypeOf ["typeof"] (any("value")) -> TEXT, Never,
                "Returns the JSON type: `null`, `boolean`, `number`, `string`, `array` or `object`.";
        }
    }
}

function_table! {
    /// Functions that select one of their arguments.
    ConditionalFunction {
        in Conditionals {
            Coalesce ["coalesce"] (repeated(any("value"))) -> Common, NullIfAll,
                "Returns the first value that is not null.";
            NullIf ["nullif"] (any("value"), any("other")) -> First, NullIfFirst,
                "Returns null if both values are equal, and otherwise the first one.";
            Least ["least"] (repeated(any("value"))) -> Common, NullIfAll,
                "Returns the smallest value, in the order of `ORDER BY`.";
            Greatest ["greatest"] (repeated(any("value"))) -> Common, NullIfAll,
                "Returns the largest value, in the order of `ORDER BY`.";
        }
    }
}
