//! Binding of `infer` (D-85): the paths below columns, as rows that can be sorted as others.

use super::{Binder, QueryError};
use crate::ast::{self, Expr as Ast, Node, Step};
use crate::bound::{BoundExpr, Field, INFERRED, Infer, InferredPath, SortKey};
use crate::error::quoted;
use crate::print::expression;

/// Default number of inspected rows.
const BUDGET: u64 = 1_000;
/// Default number of steps of a path, with its column.
const DEPTH: u64 = 5;

impl<'a> Binder<'a> {
    pub(super) fn infer(&mut self) -> Result<Infer, QueryError> {
        let query = self.query;
        let mut paths = Vec::new();
        for infer in &query.infer {
            match infer {
                ast::InferClause::Star => {
                    let columns = self.names.all_columns().into_iter();
                    paths.extend(columns.map(|(name, field)| InferredPath {
                        name: vec![name],
                        field,
                        steps: Vec::new(),
                    }));
                }
                ast::InferClause::Path(path) => paths.push(self.inferred(path)?),
            }
        }
        let depth = self.env.inference_depth.unwrap_or(DEPTH);
        if depth == 0 {
            return Err(QueryError::new("inference_depth is 1 or more: 1 looks at columns alone"));
        }
        let sort = self.inferred_sort()?;
        Ok(Infer { paths, budget: query.inference_budget.unwrap_or(BUDGET), depth, sort })
    }

    fn inferred(&mut self, path: &'a ast::Path) -> Result<InferredPath, QueryError> {
        let BoundExpr::Field(field, steps) = self.path(path)? else {
            let said = expression(&Ast::new(Default::default(), Node::Path(path.clone())));
            return Err(QueryError::new(format!("infer takes columns and paths into them, and not {}", quoted(&said))));
        };
        let mut name = self.names.path_of(&field);
        name.extend(steps.iter().map(|step| match step {
            Step::Key(key) => key.clone(),
            Step::Index(index) => index.to_string(),
        }));
        Ok(InferredPath { name, field, steps })
    }

    /// Binds the order of the rows of `infer`, by their own columns only.
    fn inferred_sort(&mut self) -> Result<Vec<SortKey>, QueryError> {
        let names = self.names.around(INFERRED.map(str::to_owned).into(), [&[], &[]]);
        let column =
            |(number, name): (usize, &str)| (name.to_owned(), BoundExpr::Field(Field::Inner(number), Vec::new()));
        let columns: Vec<(String, BoundExpr)> = INFERRED.into_iter().enumerate().map(column).collect();
        let keys = Binder::new(self.env, self.query, names).group_sort(&columns)?;
        match self.query.sort.iter().zip(&keys).find(|(_, key)| !key.expr.any_field(&|_| true)) {
            Some((sort, _)) => {
                Err(self.error(&sort.expr, "rows of infer have name, type, count and top_values to sort by"))
            }
            None => Ok(keys),
        }
    }
}
