//! Entries of functions that select one of their arguments (btql.md, section 11.4).

use assay_node_btql::bound::ConditionalFunction;
use assay_node_btql::values::{Value, equal, in_order};

use super::{Evaluate, FunctionEntry};
use crate::kernels;
use crate::result_types::{common, first};

pub(super) fn entry(of: ConditionalFunction) -> FunctionEntry {
    use ConditionalFunction as F;
    match of {
        F::Coalesce => FunctionEntry::new(common, Evaluate::All(|_, args, _| selected(given(args).next())))
            .with_kernel(|args, ty, rows, _| kernels::conditionals::coalesce(args, ty, rows)),
        F::NullIf => FunctionEntry::new(first, Evaluate::Two(null_if)),
        F::Least => {
            FunctionEntry::new(common, Evaluate::All(|_, args, _| selected(given(args).min_by(|l, r| in_order(l, r)))))
        }
        F::Greatest => {
            FunctionEntry::new(common, Evaluate::All(|_, args, _| selected(given(args).max_by(|l, r| in_order(l, r)))))
        }
    }
}

fn given<'v>(args: &'v [Value<'v>]) -> impl Iterator<Item = &'v Value<'v>> {
    args.iter().filter(|arg| !arg.is_null())
}

fn selected(value: Option<&Value<'_>>) -> Value<'static> {
    value.map_or(Value::Null, |value| value.clone().into_owned())
}

fn null_if(left: &Value<'_>, right: &Value<'_>) -> Value<'static> {
    if equal(left, right) == Some(true) { Value::Null } else { left.clone().into_owned() }
}
