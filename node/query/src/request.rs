//! Request for a query, parsed and bound before any lookup. It reports all errors that do not depend on data.

use std::sync::Arc;

use assay_node_btql::ast::{self, Binary, Logic, Node, Query, Select};
use assay_node_btql::bound::{Bound, Key, Note, Order, Output, Rows};
use assay_node_btql::columns::{Kind, Named};
use assay_node_btql::schema::{self, Column};
use assay_node_btql::{Env, bind, deep, in_clauses, in_sql, in_tree, parse, without_literals};
use assay_node_engine::innermost;
use assay_storage_model::Xact;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::AskError;

/// Default limit of rows (D-17).
pub const ROWS_DEFAULT: u64 = 1000;
/// Upper bound of the rows of one page.
pub const ROWS_MAX: u64 = 10_000;
/// Default limit of groups.
pub const GROUPS_DEFAULT: u64 = 100_000;

/// Text in the place of a query that only a tree can express.
const TREE_ALONE: &str = "(a tree)";

/// Query request of a client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Question {
    /// Query as a text or a tree.
    pub query: Value,
    pub version: Option<Xact>,
    /// Minutes by which UTC is ahead of local time.
    pub tz_offset: i32,
    pub audit_log: bool,
    pub lint: Lint,
    pub disable_limit: bool,
    pub scope_to_root_span_id: Option<String>,
    /// Cursor of the request. A cursor in the query takes precedence (D-08).
    pub cursor: Option<String>,
    pub inference_depth: Option<u64>,
    /// Whether the response must have all rows up to the limit, because no client will request the rest with a cursor.
    pub whole: bool,
    /// Upper bound of the rows or groups in addition to the limit of the query.
    pub limit_max: Option<u64>,
    /// Preview length of a query that has none.
    pub preview_default: Option<u32>,
    /// Time of the request, in microseconds since the epoch.
    pub now: i64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lint {
    Off,
    #[default]
    Default,
    /// Warnings become errors as required by D-91.
    Strict,
}

/// Query that is parsed and bound.
#[derive(Clone, Debug)]
pub struct Bounded {
    pub bound: Bound,
    /// Innermost query in a form that every node can parse.
    pub(crate) inner: Value,
    pub(crate) question: Question,
    /// Upper bound of the rows or groups in the response, or `None` for all.
    pub(crate) limit: Option<u64>,
    pub(crate) cursor: Option<String>,
    /// Text without literals, for logs and lists.
    pub(crate) text: Arc<str>,
}

/// Objects named by a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meant<'b> {
    pub kind: Kind,
    pub named: Named,
    pub names: &'b [String],
}

impl Question {
    pub fn read(self) -> Result<Bounded, AskError> {
        deep(|| self.read_deep())
    }

    fn read_deep(mut self) -> Result<Bounded, AskError> {
        let parsed = parse(&self.query)?;
        let mut query = parsed.query;
        if let Some(root) = &self.scope_to_root_span_id {
            scope(&mut query, root);
        }
        if has_plain_rows(&query) {
            query.preview_length = query.preview_length.or(self.preview_default.map(i64::from));
        }
        let text = self.query.as_str();
        let env = self.env(text);
        let mut bound = bind(&query, &env)?;
        for key in &parsed.unknown_keys {
            let message = format!("the query has a key `{key}`, which is not known and has no effect");
            bound.notes.push(Note { code: "unknownQueryKey", message, blocks_strict: true });
        }
        blocked(&bound, self.lint)?;
        let cursor = innermost(&bound).cursor.clone().or(self.cursor.take()).filter(|cursor| !cursor.is_empty());
        if cursor.is_some() && !bound.has_pages() {
            return Err(AskError::BadRequest(
                "Invalid cursor: this query has no pages. A cursor goes with rows that are not unpivoted, and are \
                 unsorted or sorted by _pagination_key or _xact_id"
                    .into(),
            ));
        }
        let limit = self.limit(&bound);
        let inner = said(innermost_of(&query))?;
        let text = match &self.query {
            Value::String(text) => without_literals(text),
            _ => said(&query)?.as_str().map_or_else(|| TREE_ALONE.to_owned(), without_literals),
        };
        Ok(Bounded { bound, inner, question: self, limit, cursor, text: text.into() })
    }

    pub(crate) fn env<'t>(&self, text: Option<&'t str>) -> Env<'t> {
        Env {
            now: self.now,
            tz_offset: self.tz_offset,
            text,
            audit_log: self.audit_log,
            inference_depth: self.inference_depth,
        }
    }

    fn limit(&self, bound: &Bound) -> Option<u64> {
        let own = self.own_limit(bound);
        own.into_iter().chain(self.limit_max).min()
    }

    fn own_limit(&self, bound: &Bound) -> Option<u64> {
        match (&bound.output, bound.limit) {
            (_, None) if self.disable_limit => None,
            (Output::Rows { .. }, Some(limit)) if self.whole => Some(limit),
            (Output::Rows { .. }, limit) => Some(limit.unwrap_or(ROWS_DEFAULT).min(ROWS_MAX)),
            (Output::Groups(_) | Output::Infer(_), limit) => Some(limit.unwrap_or(GROUPS_DEFAULT)),
        }
    }
}

impl Bounded {
    /// Returns the objects of the query.
    pub fn sources(&self) -> Meant<'_> {
        match &innermost(&self.bound).rows {
            Rows::Objects { kind, named, names, .. } => Meant { kind: *kind, named: *named, names },
            Rows::Query(_) => unreachable!("the innermost query is of objects"),
        }
    }

    /// Returns the cursor of the request.
    pub fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// Returns whether pages are ordered by key, so that a key can serve as their cursor. The writes of one row share a
    /// key.
    pub fn is_by_key(&self) -> bool {
        let by_key = |by: &Key| *by == Key::Pagination && !self.bound.audit_log;
        matches!(&self.bound.output, Output::Rows { order: Order::Key { by, .. }, .. } if by_key(by))
    }

    /// Returns whether the query returns all rows, without a limit.
    pub fn is_endless(&self) -> bool {
        self.limit.is_none()
    }

    pub fn columns(&self) -> Vec<Column> {
        schema::columns(&self.bound)
    }

    pub fn notes(&self) -> &[Note] {
        match self.question.lint {
            Lint::Off => &[],
            Lint::Default | Lint::Strict => &self.bound.notes,
        }
    }
}

/// Returns an error if a lint blocks the query in strict mode (D-91).
fn blocked(bound: &Bound, lint: Lint) -> Result<(), AskError> {
    let blocking: Vec<&Note> = bound.notes.iter().filter(|note| note.blocks_strict).collect();
    if lint != Lint::Strict || blocking.is_empty() {
        return Ok(());
    }
    let many = if blocking.len() == 1 { "lint" } else { "lints" };
    let mut message = format!("Query blocked by strict lint mode due to {} {many}:", blocking.len());
    for note in blocking {
        message.push_str(&format!("\n{} (optimizer/warning): {}", note.code, note.message));
    }
    Err(AskError::BadRequest(message))
}

/// Restricts the innermost query to the spans of one trace.
fn scope(query: &mut Query, root_span_id: &str) {
    if let Some(ast::Source::Query(inner)) = query.from.as_mut().map(|from| &mut from.source) {
        return scope(inner, root_span_id);
    }
    let (path, id) = (ast::Expr::path(&["root_span_id"]), ast::Expr::literal(root_span_id));
    let of_trace = ast::Expr::new(ast::At::default(), Node::Binary(Binary::Eq, Box::new(path), Box::new(id)));
    let conditions = query.filter.take().into_iter().chain([of_trace]);
    query.filter = Some(ast::Expr::new(ast::At::default(), Node::logic(Logic::And, conditions)));
}

/// Returns whether the result has columns of objects only, so that every form of the language can add a preview to it.
fn has_plain_rows(query: &Query) -> bool {
    let is_column = |select: &Select| match select {
        Select::Star(_) => true,
        Select::Item(item) => matches!(item.expr.node, Node::Path(_)),
    };
    let has_groups = query.group_by.is_some() || !query.dimensions.is_empty() || !query.measures.is_empty();
    let is_nested = matches!(query.from.as_ref().map(|from| &from.source), Some(ast::Source::Query(_)));
    let is_changed = query.distinct || query.pivot.is_some() || !query.unpivot.is_empty() || !query.settings.is_empty();
    !has_groups && !is_nested && !is_changed && !query.select.is_empty() && query.select.iter().all(is_column)
}

fn innermost_of(query: &Query) -> &Query {
    match query.from.as_ref().map(|from| &from.source) {
        Some(ast::Source::Query(inner)) => innermost_of(inner),
        _ => query,
    }
}

/// Prints a query as SQL, as clauses or as a tree: the first of these that can express it.
fn said(query: &Query) -> Result<Value, AskError> {
    // Texts are preferred, because a deep tree exceeds the recursion limit of JSON parsers.
    let text = in_sql(query).or_else(|_| in_clauses(query)).map(Value::String);
    text.or_else(|_| in_tree(query)).map_err(|why| AskError::Internal(format!("a query that cannot be said: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Bounded {
        let question =
            Question { query: query.into(), limit_max: Some(5), preview_default: Some(9), ..Question::default() };
        question.read().expect("it reads")
    }

    #[test]
    fn a_caller_bounds_the_rows_of_any_query() {
        for (query, limit) in [
            ("SELECT * FROM dataset('x')", 5),
            ("SELECT * FROM dataset('x') LIMIT 3", 3),
            ("SELECT * FROM dataset('x') LIMIT 30", 5),
            ("SELECT tags, count(1) FROM dataset('x') GROUP BY 1", 5),
            ("infer: * | from: dataset('x')", 5),
        ] {
            assert_eq!(read(query).limit, Some(limit), "{query}");
        }
    }

    #[test]
    fn a_query_has_a_text_without_literals_in_every_form() {
        let tree = serde_json::json!({
            "select": [{"op": "star"}],
            "from": {"op": "function", "name": {"op": "ident", "name": ["dataset"]},
                "args": [{"op": "literal", "value": "secret"}]},
            "filter": {"op": "eq", "left": {"op": "ident", "name": ["id"]}, "right": {"op": "literal", "value": 7}},
        });
        for query in ["SELECT * FROM dataset('secret') WHERE id = 7".into(), tree] {
            let read = Question { query, ..Question::default() }.read().expect("it reads");
            assert_eq!(&*read.text, "SELECT * FROM dataset(?) WHERE id = ?");
        }
    }

    #[test]
    fn a_default_preview_goes_with_columns_of_objects_only() {
        for (query, preview) in [
            ("SELECT * FROM dataset('x')", Some(9)),
            ("SELECT id, input.a FROM project_logs('x') WHERE is_root ORDER BY created DESC", Some(9)),
            ("select: input | from: dataset('x') | preview_length: 3", Some(3)),
            ("SELECT upper(id) FROM dataset('x')", None),
            ("SELECT count(1) FROM dataset('x')", None),
            ("SELECT DISTINCT input FROM dataset('x')", None),
            ("SELECT input, count(1) FROM dataset('x') GROUP BY 1", None),
            ("SELECT id FROM (SELECT id, input FROM dataset('x'))", None),
            ("infer: input | from: dataset('x')", None),
        ] {
            assert_eq!(read(query).bound.preview_length, preview, "{query}");
        }
    }
}
