//! Compilation of an expression into a program that runs over batches of rows.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray};
use assay_node_btql::ast::Step;
use assay_node_btql::bound::{BoundExpr, ConditionalFunction, Derived, Field, Function, ScalarFunction};
use assay_node_btql::level;
use assay_node_btql::values::Value;

use crate::bounds::{Bounds, Spent};
use crate::column::Column;
use crate::evaluation::Batch;
use crate::prepared::Call;
use crate::types::{Type, ValueType};
use crate::{Error, kernels, result_types, scalar};

const COALESCE: Function = Function::Scalar(ScalarFunction::Conditional(ConditionalFunction::Coalesce));

/// Settings that hold for the whole query.
#[derive(Clone, Debug, Default)]
pub struct Env {
    /// Minutes that UTC is ahead of local time.
    pub tz_offset: i32,
    /// Limits of memory and time; none for computations that are not part of a query.
    pub bounds: Option<Arc<dyn Bounds>>,
}

/// Lookup of the input column, and its type, for a field or a path below it. For a path without a column, shorter paths
/// are looked up, and the remaining steps are taken in the column's values.
pub type Schema<'s> = &'s dyn Fn(&Field, &[Step]) -> Option<(usize, Type)>;

/// Compiled expression: computes one column from others.
#[derive(Debug)]
pub struct Program {
    root: Node,
    bounds: Option<Arc<dyn Bounds>>,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub kind: NodeKind,
    pub value_type: ValueType,
}

#[derive(Debug)]
pub(crate) enum NodeKind {
    Const(Value<'static>),
    Input(usize, Type),
    Call(Box<Call>, Vec<Node>),
    /// CASE: conditions with their results, and the result if no condition is true.
    If(Vec<(Node, Node)>, Box<Node>),
}

impl Program {
    pub fn compile(expr: &BoundExpr, schema: Schema<'_>, env: &Env) -> Result<Program, Error> {
        Ok(Program { root: node(expr, schema, env)?, bounds: env.bounds.clone() })
    }

    /// Type of the array that [`Program::run`] returns.
    pub fn output(&self) -> Type {
        self.root.value_type.ty
    }

    /// Returns the value of a program that does not depend on rows.
    pub fn constant(&self) -> Option<&Value<'static>> {
        match &self.root.kind {
            NodeKind::Const(value) => Some(value),
            _ => None,
        }
    }

    /// Computes a value for each row.
    pub fn run(&self, columns: &[ArrayRef], rows: usize) -> Result<ArrayRef, Error> {
        self.eval(columns, rows, true)?.finish(self.output(), rows)
    }

    /// Computes for each row whether the condition holds (D-50); null counts as false. The result has no nulls.
    pub fn run_filter(&self, columns: &[ArrayRef], rows: usize) -> Result<BooleanArray, Error> {
        let column = self.eval(columns, rows, true)?;
        Ok(kernels::is_true(&column, rows))
    }

    /// Computes the value of one row, whose inputs may be values of any type.
    pub fn value(&self, inputs: &[Value<'_>]) -> Result<Value<'static>, Error> {
        let spent = Spent::new(self.bounds.as_deref());
        spent.end(self.root.value_of(inputs, &spent))
    }

    fn eval(&self, columns: &[ArrayRef], rows: usize, hurried: bool) -> Result<Column, Error> {
        let spent = Spent::new(self.bounds.as_deref());
        let found = self.root.eval(&Batch { columns, rows, hurried, spent: &spent })?;
        spent.end(found)
    }

    /// Computes as [`Program::run`] without kernels: the reference that tests compare kernels with.
    #[doc(hidden)]
    pub fn run_one_by_one(&self, columns: &[ArrayRef], rows: usize) -> Result<ArrayRef, Error> {
        self.eval(columns, rows, false)?.finish(self.output(), rows)
    }
}

fn node(expr: &BoundExpr, schema: Schema<'_>, env: &Env) -> Result<Node, Error> {
    level(|| match expr {
        BoundExpr::Const(datum) => Ok(constant(datum.to_value())),
        BoundExpr::Field(of, steps) => field(of, steps, schema, env),
        BoundExpr::Call(function, args) => {
            let args = args.iter().map(|arg| node(arg, schema, env)).collect::<Result<Vec<_>, _>>()?;
            call(function, args, env)
        }
        BoundExpr::If(cases, otherwise) => {
            let mut open = Vec::new();
            for (condition, then) in cases {
                let (condition, then) = (node(condition, schema, env)?, node(then, schema, env)?);
                match condition.value().map(Value::truth) {
                    // No later case has a chance.
                    Some(Some(true)) => return Ok(choice(open, then)),
                    Some(_) => {}
                    None => open.push((condition, then)),
                }
            }
            Ok(choice(open, node(otherwise, schema, env)?))
        }
    })
}

fn constant(value: Value<'static>) -> Node {
    Node { value_type: ValueType::of_value(&value), kind: NodeKind::Const(value) }
}

fn choice(cases: Vec<(Node, Node)>, otherwise: Node) -> Node {
    if cases.is_empty() {
        return otherwise;
    }
    let value_type = cases.iter().map(|(_, then)| then.value_type).fold(otherwise.value_type, ValueType::or);
    Node { kind: NodeKind::If(cases, Box::new(otherwise)), value_type }
}

fn call(function: &Function, args: Vec<Node>, env: &Env) -> Result<Node, Error> {
    if !takes(function, args.len()) {
        return Err(Error::Arguments(format!("{function:?}"), args.len()));
    }
    let constants: Vec<Option<&Value<'static>>> = args.iter().map(Node::value).collect();
    let call = Call::new(function, &constants, env.tz_offset);
    if let Some(values) = constants.iter().map(|constant| constant.map(Value::view)).collect::<Option<Vec<_>>>() {
        let spent = Spent::new(env.bounds.as_deref());
        let value = scalar::apply(&call, &values, &spent);
        return spent.end(constant(value));
    }
    let types: Vec<ValueType> = args.iter().map(|arg| arg.value_type).collect();
    let value_type = result_types::of_call(function, &types, constants.get(1).copied().flatten());
    Ok(Node { kind: NodeKind::Call(Box::new(call), args), value_type })
}

/// Whether a function takes `count` arguments.
fn takes(function: &Function, count: usize) -> bool {
    use Function as F;
    match function {
        F::And | F::Or | F::Array | F::Concat { .. } => true,
        F::Object(keys) => keys.len() == count,
        F::Scalar(scalar) => scalar.row().arity().contains(&count),
        F::Not
        | F::IsNull
        | F::IsNotNull
        | F::Minus
        | F::Get(_)
        | F::Cast(_)
        | F::ToInterval
        | F::Truncate { .. }
        | F::DatePart(_) => count == 1,
        _ => count == 2,
    }
}

fn field(of: &Field, steps: &[Step], schema: Schema<'_>, env: &Env) -> Result<Node, Error> {
    for taken in (0..=steps.len()).rev() {
        let Some((column, ty)) = schema(of, &steps[..taken]) else { continue };
        let input = Node { kind: NodeKind::Input(column, ty), value_type: ValueType::of(ty) };
        let rest = steps[taken..].to_vec();
        return if rest.is_empty() { Ok(input) } else { call(&Function::Get(rest), vec![input], env) };
    }
    let Some(computed) = derived(of) else { return Err(Error::NoColumn(of.clone())) };
    let computed = node(&computed, schema, env)?;
    if steps.is_empty() { Ok(computed) } else { call(&Function::Get(steps.to_vec()), vec![computed], env) }
}

/// Expression of a metric that is derived from logged ones (btql.md, section 8.2). Costs need prices, which the engine has.
fn derived(field: &Field) -> Option<BoundExpr> {
    let metric = |key: &str| BoundExpr::Field(Field::Column("metrics"), vec![Step::Key(key.to_owned())]);
    let both = |function, left, right| BoundExpr::Call(function, vec![metric(left), metric(right)]);
    let first_of = match field {
        Field::Derived(Derived::Duration) => vec![metric("duration"), both(Function::Sub, "end", "start")],
        Field::Derived(Derived::TotalTokens) => {
            let sum = both(Function::Add, "prompt_tokens", "completion_tokens");
            vec![metric("total_tokens"), metric("tokens"), sum]
        }
        _ => return None,
    };
    Some(BoundExpr::Call(COALESCE, first_of))
}

impl Node {
    fn value(&self) -> Option<&Value<'static>> {
        match &self.kind {
            NodeKind::Const(value) => Some(value),
            _ => None,
        }
    }

    fn value_of(&self, inputs: &[Value<'_>], spent: &Spent<'_>) -> Value<'static> {
        level(|| match &self.kind {
            NodeKind::Const(value) => value.clone(),
            NodeKind::Input(number, _) => inputs.get(*number).map_or(Value::Null, |input| input.view().into_owned()),
            NodeKind::Call(call, args) => {
                let args: Vec<Value<'_>> = args.iter().map(|arg| arg.value_of(inputs, spent)).collect();
                scalar::apply(call, &args, spent)
            }
            NodeKind::If(cases, otherwise) => {
                let holds = |(condition, _): &&(Node, Node)| condition.value_of(inputs, spent).truth() == Some(true);
                cases.iter().find(holds).map_or(otherwise.as_ref(), |(_, then)| then).value_of(inputs, spent)
            }
        })
    }
}
