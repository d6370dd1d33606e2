//! Resolution of names (btql.md, section 8.3); the first match counts:
//!
//! 1. a column of the source, exactly or without regard to case
//! 2. a name that the query itself gives: an alias, a custom column, an unpivoted name
//! 3. the last step of a path that is selected without an alias
//! 4. a field that only one column has: `name` is `span_attributes.name`
//! 5. a score, if it stands in quotes
//! 6. nothing: null, and a note

use super::{Binder, Mode, QueryError, has, null};
use crate::ast::{self, From, NODES_MAX, Node, Path, PivotClause, Query, Quotes, Select, SelectItem, Shape, Step};
use crate::bound::{BoundExpr, Derived, Field, INFERRED, Output, Rows};
use crate::columns::{COMPARISON_KEY, Kind, SPAN_TYPE_INFO};

/// Fields of `metrics` that may be named without it.
const METRICS: [&str; 16] = [
    "start",
    "end",
    "duration",
    "prompt_tokens",
    "completion_tokens",
    "prompt_cached_tokens",
    "prompt_cache_creation_tokens",
    "tokens",
    "total_tokens",
    "estimated_cost",
    "llm_calls",
    "tool_calls",
    "errors",
    "llm_errors",
    "tool_errors",
    "time_to_first_token",
];
const ATTRIBUTES: [&str; 3] = ["name", "type", "purpose"];

/// Upper bound of the nodes of expanded aliases, ten times that of a query, since each use is bound again.
const EXPANDED_MAX: usize = 10 * NODES_MAX;

pub(super) struct Names<'a> {
    kind: Option<Kind>,
    shape: Shape,
    inner: Vec<String>,
    source_alias: Option<&'a str>,
    /// Whether the query has a comparison key.
    is_compared: bool,
    /// Names that the query defines, and their expressions.
    explicit: Vec<(&'a str, &'a ast::Expr)>,
    implicit: Vec<(&'a str, &'a ast::Expr)>,
    pub unpivoted: Vec<&'a str>,
    /// Aliases that are being expanded. An alias is not visible in itself.
    expanding: Vec<&'a str>,
}

enum Meaning<'a> {
    Field(Field),
    Alias(&'a str, &'a ast::Expr),
    /// A field below a column.
    Below(&'static str, String),
}

impl<'a> Names<'a> {
    pub fn of(query: &'a Query, from: &'a From, rows: &Rows) -> Names<'a> {
        let (kind, shape, inner) = match rows {
            Rows::Objects { kind, shape, .. } => (Some(*kind), *shape, Vec::new()),
            Rows::Query(inner) => (None, Shape::Spans, output_names(&inner.output)),
        };
        let selected = query.select.iter().filter_map(|select| match select {
            Select::Item(item) => Some(item),
            Select::Star(_) => None,
        });
        let pivot: &[SelectItem] = match &query.pivot {
            Some(PivotClause::For { measures, .. }) => measures,
            _ => &[],
        };
        let items: Vec<&SelectItem> = selected
            .chain(&query.dimensions)
            .chain(&query.measures)
            .chain(&query.custom_columns)
            .chain(pivot)
            .collect();
        let explicit = items.iter().filter_map(|item| Some((item.alias.as_deref()?, &item.expr)));
        let implicit = items.iter().filter(|item| item.alias.is_none()).filter_map(|item| match &item.expr.node {
            Node::Path(Path { steps, .. }) if steps.len() > 1 => match steps.last() {
                Some(Step::Key(key)) => Some((key.as_str(), &item.expr)),
                _ => None,
            },
            _ => None,
        });
        let unpivoted = query.unpivot.iter().flat_map(|unpivot| unpivot.key.iter().chain([&unpivot.value]));
        Names {
            kind,
            shape,
            inner,
            source_alias: from.alias.as_deref(),
            is_compared: query.comparison_key.is_some(),
            explicit: explicit.collect(),
            implicit: implicit.collect(),
            unpivoted: unpivoted.map(String::as_str).collect(),
            expanding: Vec::new(),
        }
    }

    /// Returns the names for a second grouping, whose rows are the groups of the first.
    pub fn around(&self, inner: Vec<String>, items: [&'a [SelectItem]; 2]) -> Names<'a> {
        let items = items.into_iter().flatten();
        let explicit = items.filter_map(|item| Some((item.alias.as_deref()?, &item.expr)));
        Names {
            kind: None,
            shape: Shape::Spans,
            inner,
            source_alias: None,
            is_compared: false,
            explicit: explicit.collect(),
            implicit: Vec::new(),
            unpivoted: Vec::new(),
            expanding: Vec::new(),
        }
    }

    /// Returns the columns of `*`.
    pub fn all_columns(&self) -> Vec<(String, Field)> {
        let own: Vec<(String, Field)> = match self.kind {
            Some(kind) => {
                let has_key = self.is_compared.then_some(&COMPARISON_KEY);
                let summary = [&SPAN_TYPE_INFO].into_iter().chain(has_key).filter(|_| self.shape == Shape::Summary);
                let columns = kind.columns().iter().chain(summary);
                columns.map(|column| ((*column).to_owned(), Field::Column(column))).collect()
            }
            None => self.inner.iter().enumerate().map(|(number, name)| (name.clone(), Field::Inner(number))).collect(),
        };
        let unpivoted = self.unpivoted.iter().map(|name| ((*name).to_owned(), Field::Unpivoted((*name).to_owned())));
        own.into_iter().chain(unpivoted).collect()
    }

    /// Returns the path of a field.
    pub fn path_of(&self, field: &Field) -> Vec<String> {
        match field {
            Field::Column(name) => vec![(*name).to_owned()],
            Field::Derived(derived) => vec!["metrics".to_owned(), derived.name().to_owned()],
            Field::Unpivoted(name) | Field::Pivoted(name) => vec![name.clone()],
            Field::Inner(number) => self.inner.get(*number).cloned().into_iter().collect(),
            Field::Dimension(_) | Field::Aggregate(_) => Vec::new(),
        }
    }

    pub fn are_of_objects(&self) -> bool {
        self.kind.is_some()
    }

    fn column(&self, name: &str, mode: Mode) -> Option<Field> {
        let Some(kind) = self.kind else {
            let exact = self.inner.iter().position(|inner| inner == name);
            let found = exact.or_else(|| self.inner.iter().position(|inner| inner.eq_ignore_ascii_case(name)));
            return found.map(Field::Inner);
        };
        let is_summary = self.shape == Shape::Summary && mode != Mode::Spans;
        let summary: &[&'static str] = if is_summary { &[SPAN_TYPE_INFO, COMPARISON_KEY] } else { &[] };
        let all = || kind.columns().iter().chain(summary);
        let found = all().find(|column| **column == name);
        found.or_else(|| all().find(|column| column.eq_ignore_ascii_case(name))).map(|column| Field::Column(column))
    }

    fn alias(&self, name: &str) -> Result<Option<(&'a str, &'a ast::Expr)>, String> {
        for aliases in [&self.explicit, &self.implicit] {
            let mut found = aliases.iter().filter(|(alias, _)| *alias == name && !self.expanding.contains(alias));
            if let Some(first) = found.next() {
                return match found.find(|other| other.1 != first.1) {
                    Some(_) => Err(format!("`{name}` may mean more than one column")),
                    None => Ok(Some(*first)),
                };
            }
        }
        Ok(None)
    }

    /// Rule 4.
    fn nested(&self, name: &str) -> Option<(&'static str, String)> {
        let kind = self.kind?;
        let among = |all: &[&'static str]| all.iter().find(|field| field.eq_ignore_ascii_case(name)).copied();
        let candidates =
            [("span_attributes", among(&ATTRIBUTES)), ("metadata", among(&["model"])), ("metrics", among(&METRICS))];
        let (column, field) =
            candidates.into_iter().find_map(|(column, field)| Some((column, field.filter(|_| has(kind, column))?)))?;
        Some((column, field.to_owned()))
    }
}

/// The names of a query's columns, as one around it sees them.
pub(super) fn output_names(output: &Output) -> Vec<String> {
    match output {
        Output::Rows { columns, .. } => columns.iter().map(|(name, _)| name.clone()).collect(),
        Output::Groups(groups) => {
            let last = groups.again.as_deref().unwrap_or(groups);
            last.columns.iter().map(|(name, _)| name.clone()).collect()
        }
        Output::Infer(_) => INFERRED.map(str::to_owned).into(),
    }
}

impl<'a> Binder<'a> {
    pub(super) fn path(&mut self, path: &'a Path) -> Result<BoundExpr, QueryError> {
        let mut steps = path.steps.as_slice();
        let aliased = |name: &str, names: &Names<'_>| names.source_alias == Some(name) && steps.len() > 1;
        if let [Step::Key(first), rest @ ..] = steps
            && aliased(first, &self.names)
            && self.names.column(first, self.mode).is_none()
        {
            steps = rest; // D-27
        }
        let [Step::Key(first), rest @ ..] = steps else {
            return Err(QueryError::new("a path begins with a name"));
        };
        match self.meaning(first, path.quotes)? {
            Some(Meaning::Field(field)) => Ok(self.field(field, rest.to_vec())),
            Some(Meaning::Below(column, field)) => {
                let steps = [Step::Key(field)].into_iter().chain(rest.iter().cloned());
                Ok(self.field(Field::Column(column), steps.collect()))
            }
            Some(Meaning::Alias(name, expr)) => {
                let bound = self.expanded(name, expr)?;
                Ok(into(bound, rest.to_vec()))
            }
            None => {
                self.note("unknownField", format!("there is no column `{first}`; it is null in every row"), true);
                Ok(null())
            }
        }
    }

    fn meaning(&self, name: &str, quotes: Quotes) -> Result<Option<Meaning<'a>>, QueryError> {
        if let Some(field) = self.names.column(name, self.mode) {
            return Ok(Some(Meaning::Field(field)));
        }
        if self.names.unpivoted.contains(&name) {
            return Ok(Some(Meaning::Field(Field::Unpivoted(name.to_owned()))));
        }
        if let Some((alias, expr)) = self.names.alias(name).map_err(QueryError::new)? {
            return Ok(Some(Meaning::Alias(alias, expr)));
        }
        if let Some((column, field)) = self.names.nested(name) {
            return Ok(Some(Meaning::Below(column, field)));
        }
        let scores = quotes != Quotes::None && self.names.kind.is_some_and(|kind| has(kind, "scores"));
        Ok(scores.then(|| Meaning::Below("scores", name.to_owned())))
    }

    /// Returns the expression of a path that is an alias and no column.
    pub(super) fn alias_of(&self, path: &Path) -> Result<Option<(&'a str, &'a ast::Expr)>, QueryError> {
        match path.steps.as_slice() {
            [Step::Key(name)] => match self.meaning(name, path.quotes)? {
                Some(Meaning::Alias(name, expr)) => Ok(Some((name, expr))),
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// Binds the expression of an alias.
    pub(super) fn expanded(&mut self, name: &'a str, expr: &'a ast::Expr) -> Result<BoundExpr, QueryError> {
        self.expanded += expr.size();
        if self.expanded > EXPANDED_MAX {
            let what = format!("with its aliases written out this query has more than {EXPANDED_MAX} parts");
            return Err(QueryError::new(what));
        }
        self.within_alias(name, |binder| binder.expr(expr))
    }

    pub(super) fn within_alias<T>(&mut self, name: &'a str, bind: impl FnOnce(&mut Self) -> T) -> T {
        self.names.expanding.push(name);
        let bound = bind(self);
        self.names.expanding.pop();
        bound
    }

    /// A column, or a field that is computed where it was not logged. A summary's row has those in its metrics.
    fn field(&self, field: Field, steps: Vec<Step>) -> BoundExpr {
        let on_spans = self.mode == Mode::Spans || self.names.shape != Shape::Summary;
        if let (Field::Column("metrics"), [Step::Key(name)]) = (&field, steps.as_slice())
            && on_spans
            && let Some(derived) = Derived::ALL.into_iter().find(|derived| derived.name() == name)
        {
            return BoundExpr::Field(Field::Derived(derived), Vec::new());
        }
        BoundExpr::Field(field, steps)
    }

    pub(super) fn estimated_cost(&self) -> Result<BoundExpr, QueryError> {
        let has_metrics = self.names.kind.is_some_and(|kind| has(kind, "metrics"));
        if !has_metrics {
            return Err(QueryError::new("estimated_cost() is of spans: this source has none"));
        }
        Ok(self.field(Field::Column("metrics"), vec![Step::Key("estimated_cost".into())]))
    }

    /// Returns the columns of `search` that the source has.
    pub(super) fn searched(&self) -> Vec<BoundExpr> {
        let columns = ["input", "output", "expected", "metadata", "span_attributes"];
        let found = columns.into_iter().filter_map(|column| self.names.column(column, self.mode));
        found.map(|field| BoundExpr::Field(field, Vec::new())).collect()
    }
}

/// Steps into something bound.
pub(super) fn into(expr: BoundExpr, more: Vec<Step>) -> BoundExpr {
    if more.is_empty() {
        return expr;
    }
    match expr {
        BoundExpr::Field(field @ (Field::Column(_) | Field::Inner(_) | Field::Unpivoted(_)), mut steps) => {
            steps.extend(more);
            BoundExpr::Field(field, steps)
        }
        other => BoundExpr::Call(crate::bound::Function::Get(more), vec![other]),
    }
}
