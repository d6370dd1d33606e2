//! Table of the functions of the language (btql.md, section 11), one row each. The binder, the type inference, the
//! evaluation and the reference in the user guide read it.
//!
//! ```text
//! scalars     functions that are evaluated on values, by an entry in `assay-node-expressions`
//! operations  other names of operators and casts
//! specials    functions that the binder rewrites, because they need more than their arguments
//! aggregates  functions over the rows of a group
//! ```

mod aggregates;
mod operations;
mod scalars;
mod specials;

use std::ops::RangeInclusive;

pub use aggregates::{Aggregation, AggregationName};
pub use operations::NamedOperation;
pub use scalars::{ConditionalFunction, JsonFunction, NumberFunction, ScalarFunction, TextFunction, TimeFunction};
pub use specials::SpecialFunction;

use crate::bound::Kinds;

/// Upper bound of the arguments of a function that takes any number of them.
pub const ARGUMENTS_MAX: usize = 1_000;

/// Row of the table: everything that is known of a function before it is evaluated.
#[derive(Debug)]
pub struct FunctionRow {
    pub section: Section,
    /// Name in lower case, and its synonyms.
    pub names: &'static [&'static str],
    pub arguments: &'static [Argument],
    pub result: ResultKind,
    pub nulls: NullRule,
    /// Sentence for the user guide.
    pub help: &'static str,
}

/// Section of the function reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    Text,
    Numbers,
    Time,
    Json,
    Conditionals,
    Casts,
    Search,
    Aggregates,
}

#[derive(Clone, Copy, Debug)]
pub struct Argument {
    pub name: &'static str,
    pub kind: ArgumentKind,
    pub presence: Presence,
}

/// Values that an argument is for. Others give null, unless the help says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    Any,
    /// Other values are taken as their compact JSON text (D-59).
    Text,
    Number,
    Integer,
    Boolean,
    /// A constant text is read as a time once, when the query is bound.
    Time,
    /// Constant text.
    Constant,
    /// Unit of time by its name. A constant is checked when the query is bound.
    Unit,
    /// Regular expression with groups. A constant is checked when the query is bound, and counts as a pattern of it.
    Pattern,
    /// Object, array or JSON text.
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Required,
    Optional,
    /// Last argument, given once or more.
    Repeated,
}

/// Kind of the result, from the kinds of the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    Always(Kinds),
    /// Kind of the first argument.
    First,
    /// Common kind of all arguments.
    Common,
    /// Integer for an integer, otherwise number.
    IntegerOfInteger,
    /// Integer for booleans, otherwise number.
    IntegerOfBoolean,
}

/// Result for arguments that are null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullRule {
    NullIfAny,
    NullIfFirst,
    /// Nulls are ignored beside other values.
    NullIfAll,
    /// Nulls are ignored, and the result is not null without other values either.
    Skipped,
    Never,
    /// Rule in words.
    Other(&'static str),
}

/// Function that a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallTarget {
    Scalar(ScalarFunction),
    Operation(NamedOperation),
    Special(SpecialFunction),
    Aggregate(AggregationName),
}

/// Defines an enum of functions from their rows, which are exhaustive by construction.
macro_rules! function_table {
    ($(#[$about:meta])* $table:ident { $(in $section:ident { $(
        $function:ident $names:tt ($($argument:expr),*) -> $result:expr, $nulls:expr, $help:literal;
    )+ })+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $table { $($($function),+),+ }

        impl $table {
            pub const ALL: &'static [$table] = &[$($($table::$function),+),+];

            /// Returns the row of the function.
            pub fn row(self) -> &'static $crate::functions::FunctionRow {
                match self {
                    $($($table::$function => const { &$crate::functions::FunctionRow {
                        section: $crate::functions::Section::$section,
                        names: &$names,
                        arguments: &[$($argument),*],
                        result: $result,
                        nulls: $nulls,
                        help: $help,
                    } },)+)+
                }
            }
        }
    };
}
use function_table;

/// Words of the rows.
mod words {
    pub use super::NullRule::{Never, NullIfAll, NullIfAny, NullIfFirst, Other, Skipped};
    pub use super::ResultKind::{Common, First, IntegerOfBoolean, IntegerOfInteger};
    use super::{Argument, ArgumentKind, Presence, ResultKind};
    use crate::bound::Kinds;

    pub const TEXT: ResultKind = ResultKind::Always(Kinds::Text);
    pub const NUMBER: ResultKind = ResultKind::Always(Kinds::Number);
    pub const INTEGER: ResultKind = ResultKind::Always(Kinds::Integer);
    pub const BOOLEAN: ResultKind = ResultKind::Always(Kinds::Boolean);
    pub const TIME: ResultKind = ResultKind::Always(Kinds::Time);
    pub const INTERVAL: ResultKind = ResultKind::Always(Kinds::Interval);
    pub const ANY: ResultKind = ResultKind::Always(Kinds::Any);

    pub const fn argument(name: &'static str, kind: ArgumentKind) -> Argument {
        Argument { name, kind, presence: Presence::Required }
    }

    pub const fn any(name: &'static str) -> Argument {
        argument(name, ArgumentKind::Any)
    }

    pub const fn text(name: &'static str) -> Argument {
        argument(name, ArgumentKind::Text)
    }

    pub const fn number(name: &'static str) -> Argument {
        argument(name, ArgumentKind::Number)
    }

    pub const fn integer(name: &'static str) -> Argument {
        argument(name, ArgumentKind::Integer)
    }

    pub const fn condition(name: &'static str) -> Argument {
        argument(name, ArgumentKind::Boolean)
    }

    pub const fn time(name: &'static str) -> Argument {
        argument(name, ArgumentKind::Time)
    }

    pub const fn constant(name: &'static str) -> Argument {
        argument(name, ArgumentKind::Constant)
    }

    pub const fn json(name: &'static str) -> Argument {
        argument(name, ArgumentKind::Json)
    }

    pub const fn optional(argument: Argument) -> Argument {
        Argument { presence: Presence::Optional, ..argument }
    }

    pub const fn repeated(argument: Argument) -> Argument {
        Argument { presence: Presence::Repeated, ..argument }
    }
}

impl FunctionRow {
    pub fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }

    /// Returns the numbers of arguments that the function takes.
    pub fn arity(&self) -> RangeInclusive<usize> {
        let least = self.arguments.iter().filter(|argument| argument.presence != Presence::Optional).count();
        let is_open = self.arguments.iter().any(|argument| argument.presence == Presence::Repeated);
        least..=if is_open { ARGUMENTS_MAX } else { self.arguments.len() }
    }

    /// Returns the kind of an argument by its number from zero.
    pub fn argument_kind(&self, number: usize) -> ArgumentKind {
        self.arguments.get(number).or(self.arguments.last()).map_or(ArgumentKind::Any, |argument| argument.kind)
    }
}

/// Returns every function of the language with its row.
pub fn all() -> impl Iterator<Item = (CallTarget, &'static FunctionRow)> {
    let scalars = ScalarFunction::all().map(|function| (CallTarget::Scalar(function), function.row()));
    let operations = NamedOperation::ALL.iter().map(|operation| (CallTarget::Operation(*operation), operation.row()));
    let specials = SpecialFunction::ALL.iter().map(|special| (CallTarget::Special(*special), special.row()));
    let aggregates = AggregationName::ALL.iter().map(|name| (CallTarget::Aggregate(*name), name.row()));
    scalars.chain(operations).chain(specials).chain(aggregates)
}

/// Returns the function of a name in lower case.
pub(crate) fn find(name: &str) -> Option<(CallTarget, &'static FunctionRow)> {
    all().find(|(_, row)| row.names.contains(&name))
}

/// Returns the name of a function with a similar name, for errors.
pub(crate) fn near(name: &str) -> Option<&'static str> {
    let bare = |name: &str| name.replace('_', "");
    let names = || all().flat_map(|(_, row)| row.names.iter().copied());
    let is_near =
        |known: &&str| known.len() > 3 && (name.starts_with(*known) || known.starts_with(name) && name.len() > 3);
    names().find(|known| bare(known) == bare(name)).or_else(|| names().find(is_near))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::bound::{BoundExpr, Output};
    use crate::{Env, bind, kinds, parse_text};

    #[test]
    fn each_name_is_one_function_in_lower_case() {
        let mut names = BTreeSet::new();
        for (_, row) in all() {
            assert!(!row.names.is_empty(), "{row:?}");
            for name in row.names {
                assert!(names.insert(*name), "`{name}` is the name of two functions");
                assert_eq!(*name, name.to_lowercase());
            }
        }
    }

    #[test]
    fn each_row_has_a_sentence_and_named_arguments() {
        for (_, row) in all() {
            let name = row.name();
            assert!(row.help.ends_with('.') && row.help.starts_with(char::is_uppercase), "{name}: {}", row.help);
            assert!(!row.help.contains(['|', '\n']), "{name}: the help is one cell of a table");
            let presences = row.arguments.iter().map(|argument| argument.presence);
            assert!(presences.is_sorted_by_key(|presence| presence != Presence::Required), "{name}: optional last");
            let repeated = row.arguments.iter().position(|argument| argument.presence == Presence::Repeated);
            assert!(repeated.is_none_or(|at| at + 1 == row.arguments.len()), "{name}: only the last one is repeated");
            let arguments: BTreeSet<_> = row.arguments.iter().map(|argument| argument.name).collect();
            assert_eq!(arguments.len(), row.arguments.len(), "{name}: two arguments of one name");
        }
    }

    fn sample(kind: ArgumentKind) -> &'static str {
        match kind {
            ArgumentKind::Any => "metadata.v",
            ArgumentKind::Text | ArgumentKind::Json => "metadata",
            ArgumentKind::Number => "0.5",
            ArgumentKind::Integer => "1",
            ArgumentKind::Boolean => "true",
            ArgumentKind::Time => "created",
            ArgumentKind::Constant | ArgumentKind::Unit => "'day'",
            ArgumentKind::Pattern => "'(a)'",
        }
    }

    fn kind_of(text: &str) -> Kinds {
        let query = parse_text(&format!("SELECT {text} AS x FROM project_logs('P')")).expect("a query");
        let bound = bind(&query, &Env::default()).unwrap_or_else(|error| panic!("{text}: {error}"));
        let kind = |columns: &[(String, BoundExpr)], aggregates: &[_]| kinds(&columns[0].1, aggregates, &[]);
        match &bound.output {
            Output::Rows { columns, .. } => kind(columns, &[]),
            Output::Groups(groups) => kind(&groups.columns, &groups.aggregates),
            Output::Infer(_) => panic!("{text} is no inference"),
        }
    }

    #[test]
    fn calls_have_the_kind_that_the_row_says() {
        for (target, row) in all() {
            let ResultKind::Always(kind) = row.result else { continue };
            if matches!(target, CallTarget::Special(SpecialFunction::AnySpan | SpecialFunction::FilterSpans)) {
                continue;
            }
            let arguments: Vec<&str> = row.arguments.iter().map(|argument| sample(argument.kind)).collect();
            for name in row.names {
                let call = format!("{name}({})", arguments.join(", "));
                assert_eq!(kind_of(&call), kind, "{call}");
            }
        }
    }

    #[test]
    fn similar_names_are_suggested() {
        assert_eq!(near("countdistinct"), Some("count_distinct"));
        assert_eq!(near("to_str"), Some("to_string"));
        assert_eq!(near("substringindex"), Some("substring"));
        assert_eq!(near("nope"), None);
    }
}
