//! Kernels for columns of known types: whole arrays at a time, in loops without allocations. Each gives exactly what
//! `scalar` gives row by row, or declines.

mod compare;
pub(crate) mod conditionals;
mod json_paths;
mod logic;
mod membership;
mod numbers;
pub(crate) mod texts;
mod times;

use assay_node_btql::bound::Function;

use crate::bounds::Spent;
use crate::column::Column;
use crate::prepared::Call;
use crate::types::Type;

pub(crate) use conditionals::choose;
pub(crate) use logic::{both, every, is_every, is_true, truth};

/// Evaluates a call by a kernel, if there is one for such arguments; `ty` is a type that the result fits into. AND and OR
/// are not among the calls, since not all of their conditions need be evaluated.
pub(crate) fn call(call: &Call, ty: Type, args: &[Column], rows: usize, spent: &Spent<'_>) -> Option<Column> {
    use Function as F;
    if let Some(entry) = &call.entry {
        return entry.kernel.and_then(|kernel| kernel(args, ty, rows, spent));
    }
    match (&call.function, args) {
        (F::Not, [of]) => Some(Column::Bool(logic::not(of, rows))),
        (F::IsNull, [of]) => Some(Column::Bool(logic::is_null(of, rows))),
        (F::IsNotNull, [of]) => Some(Column::Bool(logic::is_not_null(of, rows))),
        (F::Same | F::NotSame, [left, right]) => {
            Some(Column::Bool(compare::same(left, right, call.function == F::Same, rows)))
        }
        (F::Eq | F::Ne | F::Lt | F::Le | F::Gt | F::Ge, [left, right]) => {
            let op = compare::Op::of(&call.function)?;
            Some(Column::Bool(compare::compare(op, left, right, rows)))
        }
        (F::In, [left, _]) => membership::is_in(call, left),
        (F::Includes | F::TagsInclude, [of, needle]) => membership::includes(call, of, needle),
        (F::Add | F::Sub | F::Mul | F::Div | F::Mod, [left, right]) => {
            numbers::arithmetic(&call.function, left, right, rows)
                .or_else(|| times::moved(&call.function, left, right, rows))
        }
        (F::Truncate { .. } | F::DatePart(_), [of]) => times::of_one(call, of),
        (F::Concat { skips_nulls }, _) => texts::concat(args, *skips_nulls, rows, spent),
        (F::Cast(to), [of]) => conditionals::cast(of, *to),
        (F::Like { .. } | F::Match | F::Regex { .. }, [of, pattern]) => texts::matched(call, of, pattern, rows, spent),
        (F::Get(_), [of]) => json_paths::picked(call, of),
        _ => None,
    }
}
