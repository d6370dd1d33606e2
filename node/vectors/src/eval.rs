//! What nodes give for the rows of a batch: by a fast path where there is one, by a dictionary where the rows have their
//! texts of one, and otherwise row by row.

use arrow::array::{Array, ArrayRef, BooleanArray};
use assay_node_btql::bound::Function;
use assay_node_btql::level;
use assay_node_btql::values::Value;

use crate::bounds::Spent;
use crate::builder::Builder;
use crate::column::{Column, dictionary};
use crate::prepared::Call;
use crate::program::{Node, What};
use crate::types::Type;
use crate::{Error, fast, scalar};

/// Rows that come together.
pub(crate) struct Batch<'b> {
    pub columns: &'b [ArrayRef],
    pub rows: usize,
    /// Whether fast paths are taken where there are any.
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
        level(|| match &self.what {
            What::Const(value) => Ok(Column::Const(value.clone())),
            What::Input(number, ty) => Column::load(batch.input(*number)?, *ty),
            What::Call(call, args) => match call.function {
                Function::And | Function::Or if batch.hurried => condition(call, args, batch),
                _ => {
                    if let Some(found) = by_dictionary(call, self.known.ty, args, batch)? {
                        return Ok(found);
                    }
                    let args = args.iter().map(|arg| arg.eval(batch)).collect::<Result<Vec<_>, _>>()?;
                    Ok(called(call, self.known.ty, &args, batch))
                }
            },
            What::If(cases, otherwise) => {
                let mut conditions = Vec::with_capacity(cases.len());
                let mut values = Vec::with_capacity(cases.len() + 1);
                for (condition, then) in cases {
                    conditions.push(fast::is_true(&condition.eval(batch)?, batch.rows));
                    values.push(then.eval(batch)?);
                }
                values.push(otherwise.eval(batch)?);
                let ty = self.known.ty;
                let found = if batch.hurried { fast::choose(&conditions, &values, ty, batch.rows) } else { None };
                Ok(found.unwrap_or_else(|| chosen(&conditions, &values, ty, batch.rows)))
            }
        })
    }
}

/// AND or OR. Once no row can become another, the rest of the conditions is not looked at.
fn condition(call: &Call, args: &[Node], batch: &Batch<'_>) -> Result<Column, Error> {
    let all = call.function == Function::And;
    let mut found = fast::every(Some(all), batch.rows);
    for arg in args {
        if fast::is_every(&found, !all) {
            break;
        }
        found = fast::both(all, &found, &fast::truth(&arg.eval(batch)?, batch.rows))?;
    }
    Ok(Column::Bool(found))
}

/// A call of texts that a dictionary says once each: what it gives for those, in the places of the rows. Only of functions
/// that make null of null, for a row may be null where no text is.
fn by_dictionary(call: &Call, ty: Type, args: &[Node], batch: &Batch<'_>) -> Result<Option<Column>, Error> {
    let is_const = |arg: &Node| matches!(arg.what, What::Const(_));
    let mut open = args.iter().filter(|arg| !is_const(arg));
    let (Some(Node { what: What::Input(number, of), .. }), None) = (open.next(), open.next()) else { return Ok(None) };
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
    matches!(
        function,
        F::Eq
            | F::Ne
            | F::Lt
            | F::Le
            | F::Gt
            | F::Ge
            | F::In
            | F::Like { .. }
            | F::Match
            | F::Regex { .. }
            | F::StartsWith
            | F::EndsWith
            | F::Lower
            | F::Upper
            | F::Trim
            | F::Length
            | F::Substring
            | F::Left
            | F::Right
            | F::Cast(_)
    )
}

fn called(call: &Call, ty: Type, args: &[Column], batch: &Batch<'_>) -> Column {
    let found = if batch.hurried { fast::call(call, ty, args, batch.rows, batch.spent) } else { None };
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

/// Of each row the value whose condition is the first that holds.
fn chosen(conditions: &[BooleanArray], values: &[Column], ty: Type, rows: usize) -> Column {
    let mut to = Builder::new(ty, rows);
    for row in 0..rows {
        let case = conditions.iter().position(|condition| condition.value(row)).unwrap_or(conditions.len());
        to.push(values.get(case).map_or(Value::Null, |value| value.value(row).into_owned()));
    }
    to.finish()
}
