//! Entries of the scalar functions: result type, evaluation on values and, where there is one, a kernel for columns.
//! Names, arguments and null rules are in the table of `assay_node_btql::functions`.

mod conditionals;
mod json;
mod levenshtein;
mod numbers;
mod texts;
mod times;

use std::fmt;

use assay_node_btql::bound::ScalarFunction;
use assay_node_btql::values::Value;

use crate::bounds::Spent;
use crate::column::Column;
use crate::prepared::{Call, Prepared};
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

/// Preparation of a call whose arguments are partly the same for every row; those are given. None if it does not pay.
pub(crate) type Prepare = fn(&[Option<&Value<'_>>]) -> Option<PreparedCall>;

/// Evaluation for one row that has the constant arguments prepared.
pub(crate) struct PreparedCall(pub Box<RowEvaluation>);

type RowEvaluation = dyn Fn(&[Value<'_>], &Spent<'_>) -> Value<'static> + Send + Sync;

impl fmt::Debug for PreparedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PreparedCall")
    }
}

/// What is known of a function for its evaluation.
#[derive(Debug)]
pub(crate) struct FunctionEntry {
    pub result: ResultType,
    evaluate: Evaluate,
    prepare: Option<Prepare>,
    pub kernel: Option<Kernel>,
    /// Whether the evaluation takes the memory of its result before it makes it.
    pub takes_memory: bool,
}

impl FunctionEntry {
    fn new(result: ResultType, evaluate: Evaluate) -> FunctionEntry {
        FunctionEntry { result, evaluate, prepare: None, kernel: None, takes_memory: false }
    }

    fn with_kernel(self, kernel: Kernel) -> FunctionEntry {
        FunctionEntry { kernel: Some(kernel), ..self }
    }

    fn with_preparation(self, prepare: Prepare) -> FunctionEntry {
        FunctionEntry { prepare: Some(prepare), ..self }
    }

    fn that_takes_memory(self) -> FunctionEntry {
        FunctionEntry { takes_memory: true, ..self }
    }

    /// Prepares the arguments that are the same for every row.
    pub fn prepare(&self, constants: &[Option<&Value<'_>>]) -> Option<PreparedCall> {
        self.prepare.and_then(|prepare| prepare(constants))
    }

    /// Evaluates the function for one row.
    pub fn apply(&self, call: &Call, args: &[Value<'_>], spent: &Spent<'_>) -> Value<'static> {
        if let Prepared::Call(prepared) = &call.prepared {
            return (prepared.0)(args, spent);
        }
        match (&self.evaluate, args) {
            (Evaluate::One(of), [arg]) => of(arg),
            (Evaluate::Two(of), [left, right]) => of(left, right),
            (Evaluate::All(of), _) => of(call, args, spent),
            _ => Value::Null,
        }
    }
}

/// Returns the entry of a function. That of each has to be in the file of its subject, or this does not compile.
pub(crate) fn entry(of: ScalarFunction) -> FunctionEntry {
    match of {
        ScalarFunction::Text(of) => texts::entry(of),
        ScalarFunction::Number(of) => numbers::entry(of),
        ScalarFunction::Time(of) => times::entry(of),
        ScalarFunction::Json(of) => json::entry(of),
        ScalarFunction::Conditional(of) => conditionals::entry(of),
    }
}
