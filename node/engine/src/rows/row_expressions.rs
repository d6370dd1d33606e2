//! Expressions evaluated row by row, for rows without columns: those of unpivots, traces, inner queries and groups.

use std::cell::RefCell;

use assay_node_btql::ast::Step;
use assay_node_btql::bound::{BoundExpr, Derived, Field};
use assay_node_btql::values::Value;
use assay_node_expressions::{Env, Program, Type};

use crate::EngineError;

/// Inputs that expressions need of a row, each with its slot.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    pub fields: Vec<(Field, Vec<Step>)>,
}

impl Slots {
    /// Compiles an expression over slots. A needed value without a slot gets a new one.
    pub fn compile(&mut self, expr: &BoundExpr, env: &Env) -> Result<Program, EngineError> {
        let fields = RefCell::new(std::mem::take(&mut self.fields));
        let schema = |field: &Field, steps: &[Step]| {
            // The `expressions` crate computes these from other fields, and only columns are read at paths.
            let is_computed = matches!(field, Field::Derived(Derived::Duration | Derived::TotalTokens));
            if is_computed || !steps.is_empty() && !matches!(field, Field::Column(_)) {
                return None;
            }
            let mut fields = fields.borrow_mut();
            let known = fields.iter().position(|(of, path)| of == field && path == steps);
            let place = known.unwrap_or_else(|| {
                fields.push((field.clone(), steps.to_vec()));
                fields.len() - 1
            });
            Some((place, Type::Json))
        };
        let program = Program::compile(expr, &schema, env);
        self.fields = fields.into_inner();
        Ok(program?)
    }

    pub fn compile_all<'e>(
        &mut self,
        exprs: impl IntoIterator<Item = &'e BoundExpr>,
        env: &Env,
    ) -> Result<Vec<Program>, EngineError> {
        exprs.into_iter().map(|expr| self.compile(expr, env)).collect()
    }

    /// Returns the fields of the row as expressions.
    pub fn exprs(&self) -> Vec<BoundExpr> {
        self.fields.iter().map(|(field, steps)| BoundExpr::Field(field.clone(), steps.clone())).collect()
    }

    /// Returns the slots of a row with known fields.
    pub fn fill<'v>(&self, of: impl Fn(&Field) -> Value<'v>) -> Vec<Value<'static>> {
        let value = |(field, steps): &(Field, Vec<Step>)| stepped(of(field), steps);
        self.fields.iter().map(value).collect()
    }

    /// Fills a reused buffer like [`Slots::fill`], without copies of whole fields.
    pub fn view<'v>(&self, of: impl Fn(&Field) -> Value<'v>, into: &mut Vec<Value<'v>>) {
        into.clear();
        let value = |(field, steps): &(Field, Vec<Step>)| match steps.is_empty() {
            true => of(field),
            false => stepped(of(field), steps),
        };
        into.extend(self.fields.iter().map(value));
    }
}

/// Returns the value at a path below a value.
pub(crate) fn stepped(value: Value<'_>, steps: &[Step]) -> Value<'static> {
    if steps.is_empty() {
        return value.into_owned();
    }
    let picker = assay_storage_model::merge::Picker::new([steps]);
    value.stepped(steps, &picker)
}

/// Returns whether a condition holds. Null does not satisfy it.
pub(crate) fn holds(program: &Program, slots: &[Value<'_>]) -> Result<bool, EngineError> {
    Ok(program.value(slots)?.truth() == Some(true))
}

pub(crate) fn values_of(programs: &[Program], slots: &[Value<'_>]) -> Result<Vec<Value<'static>>, EngineError> {
    programs.iter().map(|of| Ok(of.value(slots)?)).collect()
}

/// Evaluates optional programs.
pub(crate) fn values_asked(
    programs: &[Option<Program>],
    slots: &[Value<'_>],
) -> Result<Vec<Option<Value<'static>>>, EngineError> {
    programs.iter().map(|of| of.as_ref().map(|of| Ok(of.value(slots)?)).transpose()).collect()
}
