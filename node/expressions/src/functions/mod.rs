//! Entries of the scalar functions: result type, evaluation on values and, where there is one, a kernel for columns.
//! Names, arguments and null rules are in the table of `assay_node_btql::functions`.

mod conditionals;
mod json;
mod levenshtein;
mod numbers;
mod texts;
mod times;

use assay_node_btql::bound::ScalarFunction;
use assay_node_btql::values::Value;

use crate::bounds::Spent;
use crate::column::Column;
use crate::prepared::Call;
use crate::types::{Type, ValueType};

/// Type of a result from the types of the arguments, and from the second argument if that is constant.
pub(crate) type ResultType = fn(&[ValueType], Option<&Value<'_>>) -> ValueType;

/// Evaluation of many rows, which gives what [`Evaluate`] does or declines. The type is one that the result fits into.
pub(crate) type Kernel = fn(&[Column], Type, usize, &Spent<'_>) -> Option<Column>;

/// Evaluation of a function for one row. Nothing fails: an undefined result is null (D-52).
#[derive(Debug)]
pub(crate) enum Evaluate {
    One(fn(&Value<'_>) -> Value<'static>),
    Two(fn(&Value<'_>, &Value<'_>) -> Value<'static>),
    All(fn(&Call, &[Value<'_>], &Spent<'_>) -> Value<'static>),
}

/// What is known of a function for its evaluation.
#[derive(Debug)]
pub(crate) struct Entry {
    pub result: ResultType,
    evaluate: Evaluate,
    pub kernel: Option<Kernel>,
    /// Whether the evaluation takes the memory of its result before it makes it.
    pub takes_memory: bool,
}

impl Entry {
    fn new(result: ResultType, evaluate: Evaluate) -> Entry {
        Entry { result, evaluate, kernel: None, takes_memory: false }
    }

    fn with_kernel(self, kernel: Kernel) -> Entry {
        Entry { kernel: Some(kernel), ..self }
    }

    fn that_takes_memory(self) -> Entry {
        Entry { takes_memory: true, ..self }
    }

    /// Evaluates the function for one row.
    pub fn apply(&self, call: &Call, args: &[Value<'_>], spent: &Spent<'_>) -> Value<'static> {
        match (&self.evaluate, args) {
            (Evaluate::One(of), [arg]) => of(arg),
            (Evaluate::Two(of), [left, right]) => of(left, right),
            (Evaluate::All(of), _) => of(call, args, spent),
            _ => Value::Null,
        }
    }
}

/// Returns the entry of a function. That of each has to be in the file of its subject, or this does not compile.
pub(crate) fn entry(of: ScalarFunction) -> Entry {
    match of {
        ScalarFunction::Text(of) => texts::entry(of),
        ScalarFunction::Number(of) => numbers::entry(of),
        ScalarFunction::Time(of) => times::entry(of),
        ScalarFunction::Json(of) => json::entry(of),
        ScalarFunction::Conditional(of) => conditionals::entry(of),
    }
}
