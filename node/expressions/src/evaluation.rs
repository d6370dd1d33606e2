//! Evaluation of nodes over a batch: by a kernel where there is one, once per dictionary entry where a column is a
//! dictionary, and otherwise row by row.

use arrow_array::{Array, ArrayRef, BooleanArray};
use assay_node_btql::bound::Function;
use assay_node_btql::functions::NullRule;
use assay_node_btql::level;
use assay_node_btql::values::Value;

use crate::bounds::Spent;
use crate::builder::Builder;
use crate::column::{Column, dictionary};
use crate::prepared::Call;
use crate::program::{Node, NodeKind};
use crate::types::Type;
use crate::{Error, kernels, scalar};

/// Rows that are evaluated together.
pub(crate) struct Batch<'b> {
    pub columns: &'b [ArrayRef],
    pub rows: usize,
    /// Whether kernels are used.
    pub hurried: bool,
    pub spent: &'b Spent<'b>,
}

impl Batch<'_> {
    fn input(&self, number: usize) -> Result<&ArrayRef, Error> {
        let array = self.columns.get(number).ok_or(Error::NoInput(number))?;
        if array.len() != self.rows {
            return Err(Error::OtherLength { wanted: self.rows, found: array.len() });
        }
        Ok(array)
    }
}

impl Node {
    pub fn eval(&self, batch: &Batch<'_>) -> Result<Column, Error> {
        level(|| match &self.kind {
            NodeKind::Const(value) => Ok(Column::Const(value.clone())),
            NodeKind::Input(number, ty) => Column::load(batch.input(*number)?, *ty),
            NodeKind::Call(call, args) => match call.function {
                Function::And | Function::Or if batch.hurried => condition(call, args, batch),
                _ => {
                    if let Some(found) = by_dictionary(call, self.value_type.ty, args, batch)? {
                        return Ok(found);
                    }
                    let args = args.iter().map(|arg| arg.eval(batch)).collect::<Result<Vec<_>, _>>()?;
                    Ok(called(call, self.value_type.ty, &args, batch))
                }
            },
            NodeKind::If(cases, otherwise) => {
                let mut conditions = Vec::with_capacity(cases.len());
                let mut values = Vec::with_capacity(cases.len() + 1);
                for (condition, then) in cases {
                    conditions.push(kernels::is_true(&condition.eval(batch)?, batch.rows));
                    values.push(then.eval(batch)?);
                }
                values.push(otherwise.eval(batch)?);
                let ty = self.value_type.ty;
                let found = if batch.hurried { kernels::choose(&conditions, &values, ty, batch.rows) } else { None };
                Ok(found.unwrap_or_else(|| chosen(&conditions, &values, ty, batch.rows)))
            }
        })
    }
}

/// Evaluates AND or OR. Once no row can change any more, the remaining conditions are not evaluated.
fn condition(call: &Call, args: &[Node], batch: &Batch<'_>) -> Result<Column, Error> {
    let all = call.function == Function::And;
    let mut found = kernels::every(Some(all), batch.rows);
    for arg in args {
        if kernels::is_every(&found, !all) {
            break;
        }
        found = kernels::both(all, &found, &kernels::truth(&arg.eval(batch)?, batch.rows))?;
    }
    Ok(Column::Bool(found))
}

/// Evaluates a call once per dictionary entry instead of once per row. Only for functions that return null for null,
/// since a row may be null where no entry is.
fn by_dictionary(call: &Call, ty: Type, args: &[Node], batch: &Batch<'_>) -> Result<Option<Column>, Error> {
    let is_const = |arg: &Node| matches!(arg.kind, NodeKind::Const(_));
    let mut open = args.iter().filter(|arg| !is_const(arg));
    let (Some(Node { kind: NodeKind::Input(number, of), .. }), None) = (open.next(), open.next()) else {
        return Ok(None);
    };
    if !batch.hurried || !is_null_of_null(&call.function) {
        return Ok(None);
    }
    let Some(words) = dictionary(batch.input(*number)?, *of).filter(|words| words.values().len() < batch.rows) else {
        return Ok(None);
    };
    let once = Batch { columns: &[], rows: words.values().len(), hurried: true, spent: batch.spent };
    let column = |arg: &Node| if is_const(arg) { arg.eval(&once) } else { Column::load(words.values(), *of) };
    let args = args.iter().map(column).collect::<Result<Vec<_>, _>>()?;
    Ok(called(call, ty, &args, &once).taken(words.keys()))
}

fn is_null_of_null(function: &Function) -> bool {
    use Function as F;
    match function {
        F::Scalar(scalar) => scalar.row().nulls == NullRule::NullIfAny,
        F::Eq | F::Ne | F::Lt | F::Le | F::Gt | F::Ge | F::In => true,
        F::Like { .. } | F::Match | F::Regex { .. } | F::Cast(_) => true,
        _ => false,
    }
}

fn called(call: &Call, ty: Type, args: &[Column], batch: &Batch<'_>) -> Column {
    let found = if batch.hurried { kernels::call(call, ty, args, batch.rows, batch.spent) } else { None };
    found.unwrap_or_else(|| one_by_one(call, ty, args, batch))
}

fn one_by_one(call: &Call, ty: Type, args: &[Column], batch: &Batch<'_>) -> Column {
    let mut to = Builder::new(ty, batch.rows);
    let is_constant = |arg: &Column| matches!(arg, Column::Const(_));
    // What is the same for every row is taken once: a list may be long.
    let mut values: Vec<Value<'_>> =
        args.iter().map(|arg| if is_constant(arg) { arg.value(0) } else { Value::Null }).collect();
    for row in 0..batch.rows {
        for (value, arg) in values.iter_mut().zip(args).filter(|(_, arg)| !is_constant(arg)) {
            *value = arg.value(row);
        }
        to.push(scalar::apply(call, &values, batch.spent));
    }
    to.finish()
}

/// Selects, for each row, the value of the first condition that holds.
fn chosen(conditions: &[BooleanArray], values: &[Column], ty: Type, rows: usize) -> Column {
    let mut to = Builder::new(ty, rows);
    for row in 0..rows {
        let case = conditions.iter().position(|condition| condition.value(row)).unwrap_or(conditions.len());
        to.push(values.get(case).map_or(Value::Null, |value| value.value(row).into_owned()));
    }
    to.finish()
}
