//! Input columns of expressions: which a unit has, their types, and reading them.
//!
//! Types are those of one unit. A path may have whole numbers in one unit and texts in another. The results of units
//! meet as values. If only few rows are needed, the type is not determined, and a path is read as JSON texts.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array, NullArray, StringArray};
use arrow_buffer::BooleanBuffer;
use assay_node_btql::ast::Step;
use assay_node_btql::bound::{BoundExpr, Derived, Field};
use assay_node_btql::values::Value;
use assay_node_expressions::aggregates::value_at;
use assay_node_expressions::{Env, Program, Type};
use assay_storage_segments::{Form, Kind, Want};
use assay_storage_shard::{ShardError, Unit};

use crate::EngineError;
use crate::scan::blind;
use crate::scan::comments;
use crate::scan::source::{Shared, Source};

/// Metrics that determine a cost, in the order of [`crate::price::Prices::costs`].
pub(crate) const PRICED_TOKENS: [&str; 4] =
    ["prompt_tokens", "completion_tokens", "prompt_cached_tokens", "prompt_cache_creation_tokens"];
/// Divisor of a unit's rows. If fewer rows are needed, types are not determined.
const FEW_ONE_IN: usize = 16;

/// Origin of an input column.
#[derive(Clone, Debug, PartialEq)]
enum Input {
    /// Column of the unit, by its index among those read.
    Stored(usize),
    /// Constant for all rows of the object.
    Constant(Option<String>),
    /// Comments, by the index of the row ids. They are stored apart from rows.
    Comments(usize),
    AuditData(usize),
    /// Masked version of another input, and the columns that determine the mask.
    Masked(Masked, usize, [usize; 3]),
    /// Logged or computed cost. The indexes are those of the logged cost, the model, the span type and the tokens.
    Cost([(usize, Type); 7]),
}

/// Input that is masked for a reviewer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Masked {
    /// One human score.
    Score,
    /// All scores of a row.
    Scores,
    /// Comments, by the ids of their rows.
    Comments,
    /// Origins of writes, by the ids of their rows.
    AuditData,
}

/// Columns of one unit that some expressions need.
pub(crate) struct Inputs<'u> {
    unit: &'u Unit,
    source: &'u Source,
    shared: &'u Shared,
    few: bool,
    found: RefCell<FoundInputs>,
}

#[derive(Default)]
struct FoundInputs {
    inputs: Vec<(Field, Vec<Step>, Input, Type)>,
    wants: Vec<Want>,
    failed: Option<ShardError>,
}

/// Expressions that are compiled for the rows of a unit.
pub(crate) struct Compiled<'u> {
    inputs: Inputs<'u>,
    programs: Vec<ColumnSource>,
    filter: Option<Program>,
}

/// Source of an expression's column.
enum ColumnSource {
    /// Input as read, possibly a dictionary.
    Input(usize, Type),
    Program(Program),
}

/// Rows of a unit: a range, or the kept rows of a range.
#[derive(Clone, Debug)]
pub(crate) struct Rows<'r> {
    pub range: Range<usize>,
    pub keep: Option<&'r BooleanBuffer>,
}

impl Rows<'_> {
    pub fn count(&self) -> usize {
        self.keep.map_or(self.range.len(), BooleanBuffer::count_set_bits)
    }
}

impl<'u> Inputs<'u> {
    /// Creates the inputs of a unit. `wanted` is the number of rows that will be read.
    fn new(unit: &'u Unit, source: &'u Source, shared: &'u Shared, wanted: usize) -> Inputs<'u> {
        let few = wanted * FEW_ONE_IN < unit.rows();
        Inputs { unit, source, shared, few, found: RefCell::default() }
    }

    fn schema(&self, field: &Field, steps: &[Step]) -> Option<(usize, Type)> {
        let known = {
            let found = self.found.borrow();
            found.inputs.iter().position(|(of, path, ..)| of == field && path == steps)
        };
        let place = match known {
            Some(place) => place,
            None => self.add(field, steps)?,
        };
        Some((place, self.found.borrow().inputs[place].3))
    }

    fn add(&self, field: &Field, steps: &[Step]) -> Option<usize> {
        let (input, ty) = match field {
            Field::Column(name) => self.column(name, steps)?,
            Field::Derived(Derived::EstimatedCost) if steps.is_empty() => self.cost(),
            _ => return None,
        };
        let mut found = self.found.borrow_mut();
        found.inputs.push((field.clone(), steps.to_vec(), input, ty));
        Some(found.inputs.len() - 1)
    }

    fn column(&self, name: &'static str, steps: &[Step]) -> Option<(Input, Type)> {
        let stored = |want: Want, ty: Type| Some((Input::Stored(self.want(want)), ty));
        let fixed = match name {
            "_pagination_key" => Some((Want::Key, Type::Key)),
            "_xact_id" => Some((Want::Xact, Type::Xact)),
            "id" => Some((Want::Id, Type::Text)),
            "span_id" => Some((Want::SpanId, Type::Text)),
            "root_span_id" => Some((Want::RootSpanId, Type::Text)),
            "is_root" => Some((Want::IsRoot, Type::Bool)),
            "created" => Some((Want::Created, Type::Created)),
            _ => None,
        };
        if let Some((want, ty)) = fixed {
            return if steps.is_empty() { stored(want, ty) } else { None };
        }
        match name {
            "project_id" | "org_id" | "log_id" | "experiment_id" | "dataset_id" | "prompt_session_id" => {
                let constant = self.source.constant(name).map(str::to_owned);
                let ty = if constant.is_some() { Type::Text } else { Type::Null };
                steps.is_empty().then_some((Input::Constant(constant), ty))
            }
            "comments" | "audit_data" if self.source.blind.is_some() => steps.is_empty().then(|| {
                let masked = if name == "comments" { Masked::Comments } else { Masked::AuditData };
                (Input::Masked(masked, self.want(Want::Id), self.deciding()), Type::Json)
            }),
            "comments" => steps.is_empty().then(|| (Input::Comments(self.want(Want::Id)), Type::Json)),
            "scores" if self.source.blind.is_some() => self.masked_scores(steps),
            "audit_data" => steps.is_empty().then(|| (Input::AuditData(self.want(Want::Id)), Type::Json)),
            _ => {
                let (want, ty) = self.path(name, steps);
                stored(want, ty)
            }
        }
    }

    /// Adds the columns that determine whether a reviewer may see a row's human scores.
    fn deciding(&self) -> [usize; 3] {
        blind::deciding().map(|want| self.want(want))
    }

    /// Returns the masked input for all scores or for one of them.
    fn masked_scores(&self, steps: &[Step]) -> Option<(Input, Type)> {
        let (want, ty) = self.path("scores", steps);
        let scores = self.want(want);
        let blind = self.source.blind.as_ref()?;
        let masked = match steps.first() {
            None => Masked::Scores,
            Some(Step::Key(name)) if blind.scores.contains(name) => Masked::Score,
            Some(_) => return Some((Input::Stored(scores), ty)),
        };
        if ty == Type::Null {
            return Some((Input::Stored(scores), ty));
        }
        let ty = if masked == Masked::Scores { Type::Json } else { ty };
        Some((Input::Masked(masked, scores, self.deciding()), ty))
    }

    /// Returns the column and the type of a document field or of a path below it.
    fn path(&self, name: &str, steps: &[Step]) -> (Want, Type) {
        let path: Vec<Step> = std::iter::once(Step::Key(name.to_owned())).chain(steps.iter().cloned()).collect();
        let known = self.unit.known_kinds(&path);
        let kinds = match known {
            Some(kinds) => Some(kinds),
            // A whole field is long, so it is not read only to determine its type.
            None if steps.is_empty() || self.few => None,
            None => match self.unit.kinds(&self.shared.cache, &path) {
                Ok(kinds) => Some(kinds),
                Err(why) => {
                    self.found.borrow_mut().failed.get_or_insert(why);
                    None
                }
            },
        };
        let typed = match kinds.map(|kinds| kinds.form()) {
            Some(None) => return (Want::Path(path, Form::Json), Type::Null),
            Some(Some(Form::Typed(kind))) => Some(kind),
            Some(Some(Form::Json)) | None => None,
        };
        match typed {
            Some(kind) => (Want::Path(path, Form::Typed(kind)), type_of(kind)),
            None if steps.is_empty() => (Want::Field(name.to_owned()), Type::Json),
            None => (Want::Path(path, Form::Json), Type::Json),
        }
    }

    fn cost(&self) -> (Input, Type) {
        let member = |column: &str, key: &str| {
            let (want, ty) = self.path(column, &[Step::Key(key.to_owned())]);
            (self.want(want), ty)
        };
        let metric = |key: &str| member("metrics", key);
        let [prompt, completion, cached, written] = PRICED_TOKENS.map(metric);
        let (model, kind, logged) =
            (member("metadata", "model"), member("span_attributes", "type"), metric("estimated_cost"));
        let ty = match logged.1 {
            Type::Null | Type::Int | Type::Float => Type::Float,
            _ => Type::Json,
        };
        (Input::Cost([logged, model, kind, prompt, completion, cached, written]), ty)
    }

    fn want(&self, want: Want) -> usize {
        let wants = &mut self.found.borrow_mut().wants;
        wants.iter().position(|known| *known == want).unwrap_or_else(|| {
            wants.push(want);
            wants.len() - 1
        })
    }

    fn read(&self, rows: &Rows<'_>) -> Result<Vec<ArrayRef>, EngineError> {
        let found = self.found.borrow();
        let count = rows.count();
        let stored = self.unit.read(&self.shared.cache, rows.range.clone(), rows.keep, &found.wants)?;
        let column = |(_, _, input, ty): &(Field, Vec<Step>, Input, Type)| {
            Ok(match input {
                Input::Stored(_) if *ty == Type::Null => Arc::new(NullArray::new(count)) as ArrayRef,
                Input::Stored(place) => Arc::clone(&stored[*place]),
                Input::Constant(None) => Arc::new(NullArray::new(count)),
                Input::Constant(Some(text)) => {
                    Arc::new(StringArray::from_iter_values(std::iter::repeat_n(text.as_str(), count)))
                }
                Input::Comments(ids) => comments::comments(self.source, stored[*ids].as_string())?,
                Input::Masked(masked, place, deciding) => {
                    self.masked(*masked, &stored[*place], *ty, deciding.map(|place| &stored[place]))?
                }
                Input::AuditData(ids) => comments::audit_data(self.source, stored[*ids].as_string())?,
                Input::Cost(places) => self.costs(&places.map(|(place, of)| (&stored[place], of)), *ty),
            })
        };
        found.inputs.iter().map(column).collect()
    }

    fn masked(
        &self,
        masked: Masked,
        array: &ArrayRef,
        ty: Type,
        deciding: [&ArrayRef; 3],
    ) -> Result<ArrayRef, EngineError> {
        let Some(blind) = &self.source.blind else { return Err(EngineError::Damaged) };
        let shown = blind::shown(blind, deciding);
        Ok(match masked {
            Masked::Score => blind::masked_score(array, &shown)?,
            Masked::Scores => blind::masked_scores(blind, array, ty, &shown),
            Masked::Comments => {
                blind::masked_notes(blind, &comments::comments(self.source, array.as_string())?, &shown)
            }
            Masked::AuditData => {
                blind::masked_notes(blind, &comments::audit_data(self.source, array.as_string())?, &shown)
            }
        })
    }

    /// Returns the logged cost, or the cost computed from the tokens.
    fn costs(&self, [logged, model, kind, tokens @ ..]: &[(&ArrayRef, Type); 7], ty: Type) -> ArrayRef {
        let [prompt, completion, cached, written] = &tokens.map(|(array, ty)| numbers(array, ty));
        let (logged, of) = *logged;
        let tokens = [prompt, completion, cached, written];
        if ty == Type::Float {
            let logged = numbers(logged, of);
            return Arc::new(self.shared.prices.costs([*model, *kind], tokens, Some(&logged)));
        }
        let costs = self.shared.prices.costs([*model, *kind], tokens, None);
        let mut all = StringBuilder::new();
        for row in 0..logged.len() {
            match value_at(logged, of, row) {
                Value::Null if costs.is_valid(row) => all.append_value(Value::float(costs.value(row)).to_json()),
                Value::Null => all.append_null(),
                value => all.append_value(value.to_json()),
            }
        }
        Arc::new(all.finish())
    }
}

fn numbers(array: &ArrayRef, ty: Type) -> Float64Array {
    match ty {
        Type::Float => array.as_primitive::<Float64Type>().clone(),
        Type::Int => array.as_primitive::<Int64Type>().unary(|number| number as f64),
        Type::Null => Float64Array::new_null(array.len()),
        _ => (0..array.len()).map(|row| value_at(array, ty, row).as_f64()).collect(),
    }
}

fn type_of(kind: Kind) -> Type {
    match kind {
        Kind::Bool => Type::Bool,
        Kind::Int => Type::Int,
        Kind::Float => Type::Float,
        Kind::Text => Type::Text,
    }
}

impl<'u> Compiled<'u> {
    pub fn new<'e>(
        unit: &'u Unit,
        source: &'u Source,
        shared: &'u Shared,
        wanted: usize,
        exprs: impl IntoIterator<Item = &'e BoundExpr>,
        env: &Env,
    ) -> Result<Compiled<'u>, EngineError> {
        let inputs = Inputs::new(unit, source, shared, wanted);
        let ready = |expr: &BoundExpr| {
            if let BoundExpr::Field(field, steps) = expr
                && let Some((place, ty)) = inputs.schema(field, steps)
            {
                return Ok(ColumnSource::Input(place, ty));
            }
            Ok(ColumnSource::Program(Program::compile(expr, &|field, steps| inputs.schema(field, steps), env)?))
        };
        let programs = exprs.into_iter().map(ready).collect::<Result<Vec<_>, EngineError>>()?;
        let failed = inputs.found.borrow_mut().failed.take();
        match failed {
            Some(why) => Err(why.into()),
            None => Ok(Compiled { inputs, programs, filter: None }),
        }
    }

    /// Compiles a condition.
    pub fn filter(
        unit: &'u Unit,
        source: &'u Source,
        shared: &'u Shared,
        wanted: usize,
        condition: &BoundExpr,
        env: &Env,
    ) -> Result<Compiled<'u>, EngineError> {
        let mut compiled = Compiled::new(unit, source, shared, wanted, [], env)?;
        let inputs = &compiled.inputs;
        let program = Program::compile(condition, &|field, steps| inputs.schema(field, steps), env)?;
        let failed = inputs.found.borrow_mut().failed.take();
        failed.map_or(Ok(()), Err)?;
        compiled.filter = Some(program);
        Ok(compiled)
    }

    pub fn unit(&self) -> &'u Unit {
        self.inputs.unit
    }

    /// Returns whether any long column is read.
    pub fn is_wide(&self) -> bool {
        let found = self.inputs.found.borrow();
        let notes = |input: &Input| {
            matches!(
                input,
                Input::Comments(_) | Input::AuditData(_) | Input::Masked(Masked::Comments | Masked::AuditData, ..)
            )
        };
        found.wants.iter().any(Want::is_wide) || found.inputs.iter().any(|(_, _, input, _)| notes(input))
    }

    /// Returns a column for each expression.
    pub fn run(&self, rows: &Rows<'_>) -> Result<Vec<(ArrayRef, Type)>, EngineError> {
        let columns = self.inputs.read(rows)?;
        let count = rows.count();
        let run = |ready: &ColumnSource| match ready {
            ColumnSource::Input(place, ty) => Ok((Arc::clone(&columns[*place]), *ty)),
            ColumnSource::Program(program) => Ok((program.run(&columns, count)?, program.output())),
        };
        self.programs.iter().map(run).collect()
    }

    /// Returns which rows satisfy the compiled condition.
    pub fn run_filter(&self, rows: &Rows<'_>) -> Result<BooleanBuffer, EngineError> {
        let columns = self.inputs.read(rows)?;
        let found = self.filter.as_ref().expect("compiled as a filter").run_filter(&columns, rows.count())?;
        Ok(found.values().clone())
    }
}
