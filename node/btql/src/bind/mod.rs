//! Binding of a syntax tree: names become fields, functions are looked up, clauses take their positions in the order of
//! evaluation. Errors that do not depend on data are reported here.

mod bounds;
mod expr;
mod groups;
mod infer;
mod kinds;
mod names;
mod pattern;
mod pivot;
mod time_arguments;
mod traces;

use crate::ast::{self, Node, Query, Select, Shape, Source, Step};
use crate::bound::{Bound, BoundExpr, Datum, Field, Function, Key, Note, Order, Output, Rows, Unpivot};
use crate::columns::{Kind, Named, SOURCES, source};
use crate::error::{QueryError, quoted};
use crate::print::{expr_name, expression, item_name};
pub use kinds::kinds;
use names::Names;

/// Parameters of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Env<'a> {
    /// Microseconds since the epoch; one instant for the whole query.
    pub now: i64,
    /// Minutes that UTC is ahead of local time.
    pub tz_offset: i32,
    /// Parsed text, for the positions of errors.
    pub text: Option<&'a str>,
    /// One row for each stored event.
    pub audit_log: bool,
    /// Depth of `infer` in the request (D-85).
    pub inference_depth: Option<u64>,
}

/// Binds a query.
pub fn bind(query: &Query, env: &Env<'_>) -> Result<Bound, QueryError> {
    let from = query.from.as_ref().ok_or_else(|| QueryError::new("the query has no source: from (FROM) is missing"))?;
    let rows = rows(from, env)?;
    let names = Names::of(query, from, &rows);
    let mut binder = Binder::new(env, query, names);
    if let Rows::Query(inner) = &rows {
        binder.notes.clone_from(&inner.notes);
    }
    binder.bind_query(rows)
}

/// D-26.
fn asks_for_one(query: &Query) -> Result<(), QueryError> {
    let has_output = [query.select.len(), query.dimensions.len(), query.measures.len(), query.infer.len()];
    let [select, dimensions, measures, infer] = has_output.map(|count| count > 0);
    if !(select || dimensions || measures || infer) {
        return Err(QueryError::new(
            "the query asks for nothing: one of select, dimensions, measures, infer is needed",
        ));
    }
    if u8::from(select) + u8::from(dimensions || measures) + u8::from(infer) > 1 {
        return Err(QueryError::new(
            "select, infer, and dimensions with measures do not go together; beside select, dimensions are positions in it",
        ));
    }
    Ok(())
}

fn rows(from: &ast::From, env: &Env<'_>) -> Result<Rows, QueryError> {
    let (name, args) = match &from.source {
        Source::Query(query) => {
            if from.shape.is_some() {
                return Err(QueryError::new("a query within FROM has no shape of its own"));
            }
            let inner = bind(query, env)?;
            if matches!(&inner.output, Output::Groups(groups) if groups.pivot.is_some()) {
                let what = "a pivot within FROM is not supported: what its columns are is known with its rows";
                return Err(QueryError::new(what));
            }
            return Ok(Rows::Query(Box::new(inner)));
        }
        Source::Objects { name, args } => (name, args),
    };
    let Some((kind, named)) = source(name) else {
        let known: Vec<&str> = SOURCES.iter().map(|(name, _, _)| *name).collect();
        return Err(QueryError::new(format!("there is no source {}: there are {}", quoted(name), known.join(", "))));
    };
    if args.is_empty() {
        return Err(QueryError::new(format!("{name} needs to know which: {name}('<id or name>')")));
    }
    let id = |arg: &ast::Expr| match &arg.node {
        Node::Literal(serde_json::Value::String(id)) if !id.is_empty() => Ok(id.clone()),
        _ => Err(QueryError::new(format!("{name} takes ids or names in quotes, and not {}", quoted(&expression(arg))))),
    };
    let names = args.iter().map(id).collect::<Result<_, _>>()?;
    let shape = from.shape.unwrap_or_default();
    if shape != Shape::Spans && !kind.has_spans() {
        return Err(QueryError::new(format!("{name} has no spans, and so no {}", shape.name())));
    }
    Ok(Rows::Objects { kind, named, names, shape })
}

/// Returns the conditions of a source: prompts and functions of a project share an object, and single ones are selected
/// by id.
fn of_source(rows: &Rows) -> Vec<BoundExpr> {
    let Rows::Objects { kind: kind @ (Kind::Prompt | Kind::Function), named, names, .. } = rows else {
        return Vec::new();
    };
    let field = |name, steps| BoundExpr::Field(Field::Column(name), steps);
    let mut meant = Vec::new();
    if *named == Named::Each {
        let ids = names.iter().map(|id| id.to_lowercase().into()).collect();
        let ids = BoundExpr::Const(Datum::Json(serde_json::Value::Array(ids)));
        meant.push(BoundExpr::Call(Function::In, vec![field("id", Vec::new()), ids]));
    }
    if *kind == Kind::Prompt {
        let what = || field("function_data", vec![Step::Key("type".into())]);
        let is_prompt = BoundExpr::Call(Function::Eq, vec![what(), BoundExpr::Const(Datum::Text("prompt".into()))]);
        meant.push(BoundExpr::Call(Function::Or, vec![BoundExpr::Call(Function::IsNull, vec![what()]), is_prompt]));
    }
    meant
}

/// Subject of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A span, before its trace is put together.
    Spans,
    /// A row as its shape makes it.
    Rows,
    /// A group.
    Groups,
    /// A summary's row, with aggregates over its spans.
    Traces,
}

struct Binder<'a> {
    env: &'a Env<'a>,
    query: &'a Query,
    names: Names<'a>,
    mode: Mode,
    groups: groups::State,
    notes: Vec<Note>,
    /// Depth of nested calls of `expr`, and nodes of expanded aliases. Aliases within aliases are short but expand to long
    /// expressions.
    nested: u16,
    expanded: usize,
    /// Bytes of compiled patterns so far.
    pattern_bytes: usize,
}

impl<'a> Binder<'a> {
    fn new(env: &'a Env<'a>, query: &'a Query, names: Names<'a>) -> Binder<'a> {
        let groups = groups::State::default();
        let notes = Vec::new();
        Binder { env, query, names, mode: Mode::Rows, groups, notes, nested: 0, expanded: 0, pattern_bytes: 0 }
    }

    fn bind_query(mut self, rows: Rows) -> Result<Bound, QueryError> {
        let query = self.query;
        asks_for_one(query)?;
        if query.sample.is_some() && matches!(rows, Rows::Query(_)) {
            return Err(QueryError::new("a sample is of spans or traces, and a query within FROM has its own"));
        }
        let shape = match &rows {
            Rows::Objects { shape, .. } => *shape,
            Rows::Query(_) => Shape::Spans,
        };
        let grouped = self.is_grouped(shape);
        let mut filters = self.filters(shape, grouped)?;
        let meant = of_source(&rows).into_iter().chain(filters.rows.take());
        filters.rows = traces::all_of(meant.collect());
        let comparison_key = query.comparison_key.as_ref().map(|key| self.summary_only(shape, Mode::Spans, key));
        let comparison_key = comparison_key.transpose()?;
        let weighted_scores = query.weighted_scores.iter().map(|item| {
            let name = item.alias.clone().ok_or_else(|| self.error(&item.expr, "a weighted score needs a name"))?;
            Ok((name, self.summary_only(shape, Mode::Rows, &item.expr)?))
        });
        let weighted_scores = weighted_scores.collect::<Result<_, QueryError>>()?;
        self.mode = Mode::Rows;
        let unpivot = self.unpivots()?;
        let output = self.output(shape, grouped)?;
        if query.cursor.as_ref().is_some_and(|cursor| !cursor.is_empty())
            && !matches!(output, Output::Rows { order: Order::Key { .. }, .. })
        {
            let what = "this query has no pages: a cursor goes with rows that are unsorted, or sorted by _pagination_key or \
                        _xact_id and not of shape traces";
            return Err(QueryError::new(what));
        }
        let mut bound = Bound {
            rows,
            filter: filters.rows,
            traces: filters.traces,
            sample: query.sample.as_ref().map(|sample| (sample.amount, sample.seed.unwrap_or_default())),
            unpivot,
            unpivoted_filter: filters.unpivoted,
            output,
            limit: query.limit,
            cursor: query.cursor.clone().filter(|cursor| !cursor.is_empty()),
            preview_length: query.preview_length,
            comparison_key,
            weighted_scores,
            tz_offset: self.env.tz_offset,
            bounds: Default::default(),
            audit_log: self.env.audit_log,
            notes: self.notes,
        };
        bounds::find(&mut bound);
        if self.env.audit_log {
            bounds::of_audit(&bound)?;
        }
        Ok(bound)
    }

    /// The key is of a trace's root span, scores are of the row of a trace.
    fn summary_only(&mut self, shape: Shape, mode: Mode, expr: &'a ast::Expr) -> Result<BoundExpr, QueryError> {
        if shape != Shape::Summary {
            return Err(self.error(expr, "comparison_key and weighted_scores belong to shape summary"));
        }
        self.mode = mode;
        self.before_unpivot(expr)
    }

    /// Each of the rows that the one before gave.
    fn unpivots(&mut self) -> Result<Vec<Unpivot>, QueryError> {
        let all = std::mem::take(&mut self.names.unpivoted);
        let mut bound = Vec::new();
        for unpivot in &self.query.unpivot {
            let of = self.expr(&unpivot.expr)?;
            self.names.unpivoted.extend(unpivot.key.iter().chain([&unpivot.value]).map(String::as_str));
            bound.push(Unpivot { of, key: unpivot.key.clone(), value: unpivot.value.clone() });
        }
        debug_assert_eq!(self.names.unpivoted, all);
        Ok(bound)
    }

    /// Whether rows come as groups; only then HAVING is about these.
    fn is_grouped(&mut self, shape: Shape) -> bool {
        let query = self.query;
        let selects_aggregate = query.select.iter().any(|select| match select {
            Select::Item(item) => self.has_aggregate(&item.expr),
            Select::Star(_) => false,
        });
        let having = query.final_filter.as_ref().filter(|_| shape != Shape::Summary); // D-89
        !query.dimensions.is_empty()
            || !query.measures.is_empty()
            || query.group_by.is_some()
            || query.distinct
            || query.pivot.is_some()
            || selects_aggregate
            || having.is_some_and(|having| self.has_aggregate(having))
    }

    fn output(&mut self, shape: Shape, grouped: bool) -> Result<Output, QueryError> {
        let query = self.query;
        let infers = !query.infer.is_empty();
        if grouped && infers {
            let what =
                "infer is about rows, and has neither groups nor a pivot: filter goes with it, sort, limit and sample";
            return Err(QueryError::new(what));
        }
        if grouped {
            return self.grouped().map(Output::Groups);
        }
        if let Some(having) = query.final_filter.as_ref().filter(|_| shape != Shape::Summary) {
            let what = "HAVING (final_filter) is about groups; without any, WHERE (filter) is about rows";
            return Err(self.error(having, what));
        }
        if !query.final_dimensions.is_empty() || !query.final_measures.is_empty() {
            return Err(QueryError::new("final_dimensions and final_measures need dimensions or measures before them"));
        }
        if infers {
            return self.infer().map(Output::Infer);
        }
        let columns = self.columns()?;
        let order = self.order(&columns, shape)?;
        Ok(Output::Rows { columns, order })
    }

    /// The columns of rows that are not grouped.
    fn columns(&mut self) -> Result<Vec<(String, BoundExpr)>, QueryError> {
        let mut columns = Vec::new();
        for select in &self.query.select {
            match select {
                Select::Star(replaced) => columns.extend(self.star(replaced)?),
                Select::Item(item) => columns.push((item_name(item), self.expr(&item.expr)?)),
            }
        }
        no_duplicates(columns.iter().map(|(name, _)| name))?;
        Ok(columns)
    }

    fn star(&mut self, replaced: &'a [(String, ast::Expr)]) -> Result<Vec<(String, BoundExpr)>, QueryError> {
        let mut columns: Vec<(String, BoundExpr)> = Vec::new();
        for (name, field) in self.names.all_columns() {
            columns.push((name, BoundExpr::Field(field, Vec::new())));
        }
        for item in &self.query.custom_columns {
            columns.push((item_name(item), self.expr(&item.expr)?));
        }
        for (name, expr) in replaced {
            let value = self.expr(expr)?;
            let Some(column) = columns.iter_mut().find(|(column, _)| column == name) else {
                return Err(self.error(expr, format!("there is no column {} to replace", quoted(name))));
            };
            column.1 = value;
        }
        Ok(columns)
    }

    fn order(&mut self, columns: &[(String, BoundExpr)], shape: Shape) -> Result<Order, QueryError> {
        let mut keys = Vec::new();
        for sort in &self.query.sort {
            let expr = match sort.expr.position() {
                Some(position) => {
                    let column = position.checked_sub(1).and_then(|position| columns.get(position));
                    column.ok_or_else(|| self.no_position(&sort.expr, columns.len()))?.1.clone()
                }
                None => self.expr(&sort.expr)?,
            };
            keys.push(groups::sort_key(sort, expr));
        }
        let pages = match keys.as_slice() {
            // Of what was written to a row, all has its key.
            [] if self.names.are_of_objects() && self.env.audit_log => Some((Key::Xact, true)),
            // Rows of a query within come as it gives them.
            [] if self.names.are_of_objects() => Some((Key::Pagination, true)),
            // Sorted rows of traces lie between each other, and a page would end within many of them (D-36).
            [only] if shape != Shape::Traces => key_of_pages(&only.expr).map(|by| (by, only.descending)),
            _ => None,
        };
        Ok(pages.map_or(Order::Sorted(keys), |(by, descending)| Order::Key { by, descending }))
    }

    fn no_position(&self, expr: &ast::Expr, columns: usize) -> QueryError {
        self.error(expr, format!("there are {columns} columns, counted from 1"))
    }

    fn error(&self, expr: &ast::Expr, what: impl Into<String>) -> QueryError {
        let what = what.into();
        match self.env.text {
            Some(text) => QueryError::at(text, expr.at.0 as usize, format!("{what}: {}", quoted(&expression(expr)))),
            None => QueryError::new(format!("{what}: {}", quoted(&expression(expr)))),
        }
    }

    fn note(&mut self, code: &'static str, message: String, blocks_strict: bool) {
        let note = Note { code, message, blocks_strict };
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

fn key_of_pages(expr: &BoundExpr) -> Option<Key> {
    match expr {
        BoundExpr::Field(Field::Column("_pagination_key"), steps) if steps.is_empty() => Some(Key::Pagination),
        BoundExpr::Field(Field::Column("_xact_id"), steps) if steps.is_empty() => Some(Key::Xact),
        _ => None,
    }
}

fn no_duplicates<'n>(names: impl Iterator<Item = &'n String>) -> Result<(), QueryError> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            let what = format!("two columns are named {}: give one of them another name with AS", quoted(name));
            return Err(QueryError::new(what));
        }
    }
    Ok(())
}

fn null() -> BoundExpr {
    BoundExpr::Const(Datum::Null)
}

/// Whether rows of this kind have the column.
fn has(kind: Kind, column: &str) -> bool {
    kind.columns().contains(&column)
}
