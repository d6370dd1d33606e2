//! Summary of a trace: one row computed from its spans (btql.md, section 7.1), with only the columns that a query
//! needs.
//!
//! ```text
//! needed columns ─ reads ─ columns and members that must be read of spans
//! spans ─ Trace ─┬─ metrics: one pass over the spans                               (metrics)
//!                ├─ scores, tags, span_type_info
//!                └─ all else: from the root; without a root, from the first span or null
//! ```
//!
//! The caller evaluates two kinds of columns (D-92). `comparison_key` is an expression on the root span, visible or
//! not, and is converted by [`comparison_key`]. `weighted_scores` depend on the row without weighted scores. So all of
//! them are evaluated first and then set with [`weigh`].

mod metrics;

use ahash::AHashMap;
use assay_node_btql::columns::{COMPARISON_KEY, SPAN_TYPE_INFO, has_members, is_root_only};
use assay_node_btql::values::Value;
use assay_node_expressions::ValueCounts;
use assay_storage_model::{PaginationKey, Xact};

use crate::groups::object_members;
use crate::price::Prices;

/// Default length of a preview in the row of a trace (D-41).
pub(crate) const PREVIEW_LENGTH: i64 = 124;

/// Members of `span_type_info`, in their order (D-38).
const TYPE_INFO: [&str; 6] = ["cached", "has_error", "name", "type", "purpose", "in_progress"];
/// Stored row of a trace.
pub trait Span {
    fn column(&self, name: &'static str) -> Value<'_>;

    /// Returns a member of a column that is an object, or null for other columns.
    fn member(&self, column: &'static str, key: &str) -> Value<'_>;
}

impl<S: Span> Span for &S {
    fn column(&self, name: &'static str) -> Value<'_> {
        (**self).column(name)
    }

    fn member(&self, column: &'static str, key: &str) -> Value<'_> {
        (**self).member(column, key)
    }
}

/// Trace with the context of its summary.
#[derive(Debug)]
pub struct Trace<'t, S> {
    /// Visible spans in the order of their pagination keys. There is at least one.
    pub spans: &'t [S],
    /// Root span, visible or not.
    pub root: Option<&'t S>,
    /// Pagination key of the root span or, without a root, of the first span.
    pub key: PaginationKey,
    /// Last transaction that changed any span, visible or not.
    pub xact: Xact,
    pub prices: &'t Prices,
}

/// Returns the columns or members to read of each span, for a column of the summary or for one of its members.
pub fn reads(column: &'static str, member: Option<&str>) -> Vec<(&'static str, Option<String>)> {
    let members = |of: &'static str, keys: &[&str]| keys.iter().map(|key| (of, Some((*key).to_owned()))).collect();
    match (column, member) {
        ("_pagination_key" | "_xact_id" | COMPARISON_KEY, _) => Vec::new(),
        ("metrics", None) => [vec![("metrics", None)], metrics::reads_beside()].concat(),
        ("metrics", Some(name)) => metrics::reads(name),
        (SPAN_TYPE_INFO, None) => TYPE_INFO.iter().flat_map(|key| reads(SPAN_TYPE_INFO, Some(key))).collect(),
        (SPAN_TYPE_INFO, Some("cached")) => {
            [members("span_attributes", &["type"]), members("metrics", &["cached"])].concat()
        }
        (SPAN_TYPE_INFO, Some("has_error")) => vec![("error", None)],
        (SPAN_TYPE_INFO, Some("in_progress")) => members("metrics", &["start", "end"]),
        (SPAN_TYPE_INFO, Some(key)) if TYPE_INFO.contains(&key) => members("span_attributes", &[key]),
        (SPAN_TYPE_INFO, Some(_)) => Vec::new(),
        ("tags", _) => vec![("tags", None)],
        (column, member) => vec![(column, member.map(str::to_owned))],
    }
}

impl<S: Span> Trace<'_, S> {
    pub fn column(&self, name: &'static str) -> Value<'static> {
        match name {
            "_pagination_key" => Value::Text(self.key.to_string().into()),
            "_xact_id" => Value::Xact(self.xact.0),
            "tags" => self.tags(),
            "scores" => self.scores(),
            "metrics" => metrics::all(self.spans, self.prices),
            SPAN_TYPE_INFO => {
                Value::Members(TYPE_INFO.iter().map(|key| ((*key).to_owned(), self.type_info(key))).collect())
            }
            // The caller sets this column afterwards.
            COMPARISON_KEY => Value::Null,
            _ => self.base(name).map_or(Value::Null, |span| span.column(name).into_owned()),
        }
    }

    /// Returns a member of a column at less cost than the whole column.
    pub fn member(&self, column: &'static str, key: &str) -> Value<'static> {
        match column {
            "scores" => self.score(key),
            "metrics" => self.metric(key),
            SPAN_TYPE_INFO => self.type_info(key),
            column if !has_members(column) => Value::Null,
            _ => self.base(column).map_or(Value::Null, |span| span.member(column, key).into_owned()),
        }
    }

    /// Returns one metric, such as `metrics.duration`.
    pub fn metric(&self, name: &str) -> Value<'static> {
        self.metrics(&[name]).pop().unwrap_or(Value::Null)
    }

    /// Returns several metrics, computed in one pass.
    pub fn metrics(&self, names: &[&str]) -> Vec<Value<'static>> {
        metrics::some(self.spans, names, self.prices)
    }

    /// Returns the span that a column is taken from.
    fn base(&self, column: &str) -> Option<&S> {
        self.root.or_else(|| self.spans.first().filter(|_| !is_root_only(column)))
    }

    /// Returns all tags in the order of their first occurrence, or null if no span has a list of tags.
    fn tags(&self) -> Value<'static> {
        let mut all: Option<ValueCounts> = None;
        for span in self.spans {
            if let Value::List(tags) = span.column("tags").opened().as_ref() {
                let all = all.get_or_insert_default();
                tags.iter().for_each(|tag| all.add(tag, 1));
            }
        }
        all.map_or(Value::Null, |all| Value::List(all.into_values()))
    }

    /// Returns the mean of each score, in the order of first occurrence (D-37).
    fn scores(&self) -> Value<'static> {
        let mut places: AHashMap<String, usize> = AHashMap::new();
        let mut means: Vec<(String, Mean)> = Vec::new();
        for span in self.spans {
            object_members::each(&span.column("scores"), |name, score| {
                let place = places.get(name).copied().unwrap_or_else(|| {
                    places.insert(name.to_owned(), means.len());
                    means.push((name.to_owned(), Mean::default()));
                    means.len() - 1
                });
                means[place].1.add(&score);
            });
        }
        Value::Members(means.into_iter().map(|(name, mean)| (name, mean.value())).collect())
    }

    fn score(&self, name: &str) -> Value<'static> {
        let mut mean = Mean::default();
        self.spans.iter().for_each(|span| mean.add(&span.member("scores", name)));
        mean.value()
    }

    fn type_info(&self, key: &str) -> Value<'static> {
        match key {
            "cached" => {
                let mut llm = self.spans.iter().filter(|span| metrics::is_type(*span, "llm")).peekable();
                let has_llm = llm.peek().is_some();
                Value::Boolean(has_llm && llm.all(|span| span.member("metrics", "cached").truth() == Some(true)))
            }
            "has_error" => Value::Boolean(self.spans.iter().any(|span| !span.column("error").is_null())),
            "in_progress" => {
                let has = |root: &S, key: &str| !root.member("metrics", key).is_null();
                Value::Boolean(self.root.is_some_and(|root| has(root, "start") && !has(root, "end")))
            }
            "name" | "type" | "purpose" => {
                self.root.map_or(Value::Null, |root| root.member("span_attributes", key).into_owned())
            }
            _ => Value::Null,
        }
    }
}

/// Mean of the numbers among values (D-75), or null without numbers.
#[derive(Clone, Debug, Default)]
struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, value: &Value<'_>) {
        if let Some(number) = value.as_f64() {
            self.sum += number;
            self.count += 1;
        }
    }

    fn value(&self) -> Value<'static> {
        if self.count == 0 { Value::Null } else { Value::float(self.sum / self.count as f64) }
    }
}

/// Returns the comparison key of a trace from its root span, or null without a root (D-92).
pub fn comparison_key(of_root: &Value<'_>) -> Value<'static> {
    if of_root.is_null() { Value::Null } else { Value::Text(of_root.to_json().into()) }
}

/// Sets a weighted score in `scores` (D-92). An existing member of this name keeps its place.
pub fn weigh(scores: &mut Value<'static>, name: &str, value: Value<'static>) {
    let Value::Members(of) = scores else { return };
    match of.iter_mut().find(|(known, _)| known == name) {
        Some((_, known)) => *known = value,
        None => of.push((name.to_owned(), value)),
    }
}

/// Returns a value that fits `length`, and otherwise the beginning of its text (D-39, D-41). A negative length cuts
/// nothing off.
pub fn preview(value: Value<'_>, length: i64) -> Value<'_> {
    let Ok(length) = usize::try_from(length) else { return value };
    // A text has at most as many characters as bytes.
    let cut = value.to_text().filter(|text| text.len() > length).and_then(|text| {
        let (end, _) = text.char_indices().nth(length)?;
        Some([&text[..end], "..."].concat())
    });
    cut.map_or(value, |text| Value::Text(text.into()))
}

#[cfg(test)]
mod tests;
