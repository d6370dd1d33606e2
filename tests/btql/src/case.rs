//! Cases as data: a query and its expected result. One JSON object a line; blank lines and lines with `#` are remarks.
//!
//! ```text
//! about      what it shows: an example's number or a decision's
//! query      text or tree; $L, $S, $T are the logs of P1 as spans, summary, traces, and ⏎ is a newline
//! expr, of   instead of a query: an expression, and the span of P1 that it is asked of (a1)
//! body       tz_offset, now, inference_depth
//! columns    names, in order                     ids      the column `id` of the rows, in order
//! rows       all rows, in order; a row of one column is its value
//! has        rows that are among them            count    how many rows there are
//! is         what the expression comes to        whole    every row is as it is stored
//! cursor     false, or the id of the row whose key it has
//! pages      ids of page after page, by their cursors
//! notes      codes of what the query is told     blocks   those that strictness refuses
//! error      words of the error that it is
//! open       what is still wrong where a query is read: the case must fail until that is mended, and then loses the word
//! ```

use assay_node_btql::ast::Query;
use assay_node_btql::{in_clauses, in_sql, in_tree};
use serde_json::{Map, Value as Json, json};

use crate::QueryAnswer;

/// Numbers are alike that differ by less, in proportion.
const TOLERANCE: f64 = 1e-9;
const KEYS: [&str; 18] = [
    "about", "query", "expr", "of", "body", "columns", "ids", "rows", "has", "count", "is", "whole", "cursor", "pages",
    "notes", "blocks", "error", "open",
];

#[derive(Clone, Debug)]
pub struct Case {
    /// Line number in its file, from one.
    pub line: usize,
    pub about: String,
    pub query: Json,
    members: Map<String, Json>,
}

/// The cases of a file.
pub fn read(text: &str) -> Result<Vec<Case>, String> {
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    let said = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    said.map(|(number, line)| one(number, line).map_err(|error| format!("line {number}: {error}"))).collect()
}

fn one(line: usize, text: &str) -> Result<Case, String> {
    let mut members: Map<String, Json> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if let Some(unknown) = members.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("`{unknown}` is not known"));
    }
    let about = members.get("about").and_then(Json::as_str).ok_or("`about` is missing")?.to_owned();
    if let Some(expr) = members.get("expr").and_then(Json::as_str) {
        let of = members.get("of").and_then(Json::as_str).unwrap_or("a1");
        let query = format!("SELECT {expr} AS x FROM $L WHERE id = '{of}'");
        if let Some(value) = members.get("is").cloned() {
            members.insert("rows".into(), json!([[value]]));
        }
        members.insert("query".into(), query.into());
    }
    let query = named(members.get("query").ok_or("neither `query` nor `expr` is there")?);
    let expects = ["columns", "ids", "rows", "has", "count", "whole", "cursor", "pages", "notes", "blocks", "error"];
    if !expects.iter().any(|key| members.contains_key(*key)) {
        return Err("it expects nothing".into());
    }
    Ok(Case { line, about, query, members })
}

/// Replaces short names by their objects.
fn named(query: &Json) -> Json {
    let source = |shape: &str| {
        let name = json!({"op": "ident", "name": ["project_logs"]});
        json!({"op": "function", "name": name, "args": [{"op": "literal", "value": "P1"}], "shape": shape})
    };
    match query {
        Json::String(text) => {
            let text = text.replace("$L", "project_logs('P1')").replace('⏎', "\n");
            let text = text.replace("$S", "project_logs('P1', shape => 'summary')");
            text.replace("$T", "project_logs('P1', shape => 'traces')").into()
        }
        Json::Object(members) => {
            let mut members = members.clone();
            let shape = match members.get("from").and_then(Json::as_str) {
                Some("$L") => Some("spans"),
                Some("$S") => Some("summary"),
                Some("$T") => Some("traces"),
                _ => None,
            };
            if let Some(shape) = shape {
                members.insert("from".into(), source(shape));
            }
            Json::Object(members)
        }
        other => other.clone(),
    }
}

impl Case {
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.members.get(key)
    }

    /// Returns its known error.
    pub fn open(&self) -> Option<&str> {
        self.members.get("open")?.as_str()
    }

    pub fn body(&self, key: &str) -> Option<&Json> {
        self.members.get("body")?.get(key)
    }

    pub fn texts(&self, key: &str) -> Option<Vec<String>> {
        let texts = self.members.get(key)?.as_array()?.iter().filter_map(Json::as_str);
        Some(texts.map(str::to_owned).collect())
    }

    /// Rows that are expected, each with all of its columns.
    pub fn expected_rows(&self, key: &str) -> Option<Vec<Vec<Json>>> {
        let rows = self.members.get(key)?.as_array()?.iter();
        Some(rows.map(|row| row.as_array().cloned().unwrap_or_else(|| vec![row.clone()])).collect())
    }
}

/// The same query in the forms that have words for it.
pub fn forms(query: &Query) -> Vec<Json> {
    let said = [in_sql(query).map(Json::String), in_clauses(query).map(Json::String), in_tree(query)];
    said.into_iter().flatten().collect()
}

/// One form gives the columns in another order than another: dimensions before measures.
pub fn same_answer(one: &QueryAnswer, other: &QueryAnswer) -> bool {
    let places: Option<Vec<usize>> =
        one.columns.iter().map(|column| other.columns.iter().position(|found| found == column)).collect();
    let Some(places) = places.filter(|places| places.len() == other.columns.len()) else { return false };
    let rows: Vec<Vec<Json>> =
        other.rows.iter().map(|row| places.iter().map(|place| row[*place].clone()).collect()).collect();
    same_rows(&one.rows, &rows) && one.cursor == other.cursor
}

pub fn same_rows(left: &[Vec<Json>], right: &[Vec<Json>]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same_row(left, right))
}

pub fn same_row(left: &[Json], right: &[Json]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
}

/// Returns whether both are equal: numbers approximately, objects in any order of keys.
pub fn same(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Number(left), Json::Number(right)) => {
            let (Some(l), Some(r)) = (left.as_f64(), right.as_f64()) else { return left == right };
            left == right || (l - r).abs() <= TOLERANCE * l.abs().max(r.abs())
        }
        (Json::Array(left), Json::Array(right)) => same_row(left, right),
        (Json::Object(left), Json::Object(right)) => {
            let has = |(key, member): (&String, &Json)| right.get(key).is_some_and(|other| same(member, other));
            left.len() == right.len() && left.iter().all(has)
        }
        _ => left == right,
    }
}
