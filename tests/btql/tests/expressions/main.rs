//! Compares random expressions over random rows with the interpreter, for all kinds of source columns.

mod decode;

use std::collections::BTreeMap;

use arrow::array::ArrayRef;
use assay_node_btql::ast::Step;
use assay_node_btql::bound::{Aggregate, Bound, BoundExpr, Derived, Field, Groups, Output, TraceCondition};
use assay_node_btql::{Env, bind};
use assay_node_expressions::{Program, Type};
use assay_storage_model::event::parse_created;
use assay_test_btql::{Dataset, Fields, random, values};
use decode::{alike, column, decoded, fitting};
use serde_json::Value as Json;

const SEEDS: u64 = 2_000;
/// Minimum number of compared expressions, a mean per seed: otherwise little is compared.
const EXPRESSIONS_MIN: usize = 2 * SEEDS as usize;
const NOW: &str = "2026-05-03T05:06:07Z";

/// Conversion of fields to columns.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Typing {
    /// Each path by itself, in the type that its values have.
    Typed,
    /// Each path by itself, as JSON.
    Paths,
    /// Whole fields only, as JSON.
    Fields,
}

struct Columns {
    places: BTreeMap<(Field, Vec<Step>), (usize, Type)>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    fn of(exprs: &[&BoundExpr], typing: Typing, rows: &[Fields], data: &Dataset) -> Columns {
        let mut columns = Columns { places: BTreeMap::new(), arrays: Vec::new() };
        for expr in exprs {
            columns.add_all(expr, typing, rows, data);
        }
        columns
    }

    fn add_all(&mut self, expr: &BoundExpr, typing: Typing, rows: &[Fields], data: &Dataset) {
        match expr {
            BoundExpr::Const(_) => {}
            BoundExpr::Field(Field::Derived(derived), _)
                if typing == Typing::Fields && *derived != Derived::EstimatedCost =>
            {
                self.add(&Field::Column("metrics"), &[], typing, rows, data);
            }
            BoundExpr::Field(field, steps) => {
                let is_fixed = matches!(field, Field::Column("created" | "_xact_id" | "_pagination_key"));
                let steps = if typing == Typing::Fields || is_fixed { &[][..] } else { steps };
                self.add(field, steps, typing, rows, data);
            }
            BoundExpr::Call(_, args) => args.iter().for_each(|arg| self.add_all(arg, typing, rows, data)),
            BoundExpr::If(cases, otherwise) => {
                let parts = cases.iter().flat_map(|(condition, then)| [condition, then]).chain([&**otherwise]);
                parts.for_each(|part| self.add_all(part, typing, rows, data));
            }
        }
    }

    fn add(&mut self, field: &Field, steps: &[Step], typing: Typing, rows: &[Fields], data: &Dataset) {
        let key = (field.clone(), steps.to_vec());
        if self.places.contains_key(&key) {
            return;
        }
        let found = values(&BoundExpr::Field(field.clone(), steps.to_vec()), rows, data, 0).expect("a field");
        let ty = match field {
            Field::Column("created") => Type::Created,
            Field::Column("_xact_id") => Type::Xact,
            Field::Column("_pagination_key") => Type::Key,
            Field::Column("id" | "root_span_id" | "span_id") if steps.is_empty() => Type::Text,
            _ if typing == Typing::Typed => fitting(&found),
            _ => Type::Json,
        };
        self.places.insert(key, (self.arrays.len(), ty));
        self.arrays.push(column(&found, ty));
    }
}

/// All expressions of a query that are about rows as they are.
fn expressions(bound: &Bound) -> Vec<&BoundExpr> {
    let mut found: Vec<&BoundExpr> = bound.filter.iter().chain(&bound.unpivoted_filter).collect();
    if let Some(traces) = &bound.traces {
        found.extend(&traces.spans);
        let mut conditions: Vec<&TraceCondition> = traces.condition.iter().collect();
        while let Some(condition) = conditions.pop() {
            match condition {
                TraceCondition::AnySpan(expr) => found.push(expr),
                TraceCondition::Not(of) => conditions.push(of),
                TraceCondition::And(of) | TraceCondition::Or(of) => conditions.extend(of),
            }
        }
    }
    match &bound.output {
        Output::Rows { columns, order } => {
            found.extend(columns.iter().map(|(_, expr)| expr));
            if let assay_node_btql::bound::Order::Sorted(keys) = order {
                found.extend(keys.iter().map(|key| &key.expr));
            }
        }
        Output::Groups(Groups { dimensions, aggregates, .. }) => {
            found.extend(dimensions);
            found.extend(aggregates.iter().filter_map(|Aggregate { of, .. }| of.as_ref()));
        }
        Output::Infer(_) => {}
    }
    found.retain(|expr| !expr.any_field(&|field| !matches!(field, Field::Column(_) | Field::Derived(_))));
    found
}

/// Returns the defect of one expression for some columns.
fn complaint(expr: &BoundExpr, expected: &[Json], columns: &Columns, tz_offset: i32) -> Option<String> {
    let schema = |field: &Field, steps: &[Step]| columns.places.get(&(field.clone(), steps.to_vec())).copied();
    let env = assay_node_expressions::Env { tz_offset, ..Default::default() };
    let program = match Program::compile(expr, &schema, &env) {
        Ok(program) => program,
        Err(error) => return Some(error.to_string()),
    };
    let rows = expected.len();
    let ty = program.output();
    let run = |array: Result<ArrayRef, assay_node_expressions::Error>| decoded(&array.expect("a column"), ty);
    let found = run(program.run(&columns.arrays, rows));
    let slowly = run(program.run_one_by_one(&columns.arrays, rows));
    if found != slowly {
        return Some(format!("fast {found:?}\n    slow {slowly:?}"));
    }
    if found.len() != rows || !found.iter().zip(expected).all(|(found, expected)| alike(found, expected, ty)) {
        return Some(format!("{ty:?} {found:?}\n    expected {expected:?}"));
    }
    let is_true = |value: &Json| value.as_bool().unwrap_or(value.as_f64().is_some_and(|number| number != 0.0));
    let kept = program.run_filter(&columns.arrays, rows).expect("a filter");
    let expected: Vec<bool> = expected.iter().map(is_true).collect();
    let kept: Vec<Option<bool>> = kept.iter().collect();
    (kept != expected.iter().copied().map(Some).collect::<Vec<_>>()).then(|| format!("kept {kept:?} of {expected:?}"))
}

#[test]
fn what_is_computed_is_what_the_interpreter_says() {
    let (mut wrong, mut looked_at) = (Vec::new(), 0);
    for seed in 0..SEEDS {
        let tz_offset = [0, 480, -330][(seed % 3) as usize];
        let env = Env { now: parse_created(NOW).expect("a time"), tz_offset, ..Env::default() };
        let Ok(bound) = bind(&random::query(seed), &env) else { continue };
        let data = random::data(seed);
        let rows = random::rows(seed);
        let exprs = expressions(&bound);
        for typing in [Typing::Typed, Typing::Paths, Typing::Fields] {
            let columns = Columns::of(&exprs, typing, &rows, &data);
            for expr in &exprs {
                // What only a row shows to be no pattern is an error there, and null here.
                let Ok(expected) = values(expr, &rows, &data, tz_offset) else { continue };
                looked_at += 1;
                if let Some(complaint) = complaint(expr, &expected, &columns, tz_offset) {
                    wrong.push(format!("{seed} {typing:?}: {expr:?}\n    {complaint}"));
                }
            }
        }
    }
    let shown = wrong.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} of {looked_at} are otherwise:\n{shown}", wrong.len());
    assert!(looked_at >= 3 * EXPRESSIONS_MIN, "{looked_at}");
}
