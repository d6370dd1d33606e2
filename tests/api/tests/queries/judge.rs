//! A case of `tests/btql` (described at the top of its `src/case.rs`) over HTTP, and the defects of its response.

use std::fs;

use anyhow::{Context, Result};
use assay_test_api::http::HttpResponse;
use serde_json::{Map, Value, json};

use crate::fixture::{Fixture, directory};
use crate::nodes::Nodes;

/// Numbers are alike that differ by less, in proportion.
const TOLERANCE: f64 = 1e-9;
const PAGES_MAX: usize = 20;
/// Columns whose values are ids that the server chose.
const OF_IDS: [&str; 4] = ["project_id", "experiment_id", "dataset_id", "org_id"];

#[derive(Clone, Debug)]
pub struct QueryCase {
    /// File and line.
    pub name: String,
    /// Query as in the file.
    pub said: Value,
    pub query: Value,
    members: Map<String, Value>,
}

/// Rows of an answer, by columns in their order.
struct QueryRows {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
    cursor: Option<String>,
    warnings: Vec<String>,
}

/// The cases of a file, with transactions as the server has them instead of the fixture's.
pub fn read(file: &str, fixture: &Fixture) -> Result<Vec<QueryCase>> {
    let text = fs::read_to_string(directory().join(file)).context(file.to_owned())?;
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(number, line)| one(&format!("{file}:{number}"), line, fixture).context(number)).collect()
}

fn one(name: &str, line: &str, fixture: &Fixture) -> Result<QueryCase> {
    let known = |line: String, (ours, theirs): (&String, &String)| line.replace(ours.as_str(), theirs);
    let mut members: Map<String, Value> = serde_json::from_str(&fixture.xacts.iter().fold(line.to_owned(), known))?;
    let said: Map<String, Value> = serde_json::from_str(line)?;
    let said = said.get("expr").or(said.get("query")).cloned().unwrap_or_default();
    if let Some(expr) = members.get("expr").and_then(Value::as_str) {
        let of = members.get("of").and_then(Value::as_str).unwrap_or("a1");
        let query = format!("SELECT {expr} AS x FROM $L WHERE id = '{of}'");
        if let Some(value) = members.get("is").cloned() {
            members.insert("rows".into(), json!([[value]]));
        }
        members.insert("query".into(), query.into());
    }
    let query = named(members.get("query").context("a query")?);
    Ok(QueryCase { name: name.to_owned(), said, query, members })
}

/// Replaces short names by their objects.
fn named(query: &Value) -> Value {
    match query {
        Value::String(text) => {
            let text = text.replace("$L", "project_logs('P1')").replace('⏎', "\n");
            let text = text.replace("$S", "project_logs('P1', shape => 'summary')");
            text.replace("$T", "project_logs('P1', shape => 'traces')").into()
        }
        Value::Object(members) => {
            let mut members = members.clone();
            let shapes = [("$L", "spans"), ("$S", "summary"), ("$T", "traces")];
            let short = members.get("from").and_then(Value::as_str);
            if let Some((_, shape)) = shapes.iter().find(|(name, _)| Some(*name) == short) {
                let name = json!({"op": "ident", "name": ["project_logs"]});
                let args = json!([{"op": "literal", "value": "P1"}]);
                members.insert("from".into(), json!({"op": "function", "name": name, "args": args, "shape": shape}));
            }
            Value::Object(members)
        }
        other => other.clone(),
    }
}

impl QueryCase {
    fn get(&self, key: &str) -> Option<&Value> {
        self.members.get(key)
    }

    fn texts(&self, key: &str) -> Option<Vec<String>> {
        let texts = self.get(key)?.as_array()?.iter().filter_map(Value::as_str);
        Some(texts.map(str::to_owned).collect())
    }

    fn rows(&self, key: &str) -> Option<Vec<Vec<Value>>> {
        let rows = self.get(key)?.as_array()?.iter();
        Some(rows.map(|row| row.as_array().cloned().unwrap_or_else(|| vec![row.clone()])).collect())
    }

    /// Returns why it cannot be run over HTTP, if so.
    pub fn skipped(&self) -> Option<&'static str> {
        let says = |key: &str| self.get("body").is_some_and(|body| body.get(key).is_some());
        match () {
            () if says("now") => Some("it says when it is asked"),
            () if self.get("open").is_some() => Some("it is open"),
            () => None,
        }
    }

    fn body(&self) -> Value {
        let mut body = self.get("body").cloned().unwrap_or_else(|| json!({}));
        body["query"] = self.query.clone();
        body
    }

    /// Returns the defects of the nodes' responses.
    pub fn complaints(&self, nodes: &Nodes, fixture: &Fixture) -> Result<Vec<String>> {
        if let Some(pages) = self.get("pages") {
            return self.page_by_page(nodes, pages);
        }
        let answer = nodes.ask(&self.body())?;
        if let Some(words) = self.get("error").and_then(Value::as_str) {
            let told: Value = serde_json::from_slice(&answer.body).context("no JSON")?;
            let told = told["Message"].as_str().context("a message")?.to_lowercase();
            let is_told = told.contains(&words.to_lowercase());
            return Ok(if answer.status == 400 && is_told { vec![] } else { vec![not(&answer)] });
        }
        if answer.status != 200 {
            return Ok(vec![not(&answer)]);
        }
        let found = found(&answer)?;
        let mut wrong = self.of_rows(&found, fixture);
        if self.get("whole").is_some() {
            wrong.extend(not_whole(&found, fixture));
        }
        wrong.extend(self.of_cursor(&found, fixture));
        if let Some(blocks) = self.texts("blocks") {
            wrong.extend(self.of_strictness(nodes, &blocks)?);
        }
        Ok(wrong)
    }

    fn of_rows(&self, found: &QueryRows, fixture: &Fixture) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut check = |fine: bool, what: String| wrong.extend((!fine).then_some(what));
        if let Some(columns) = self.texts("columns") {
            check(found.columns == columns, format!("columns {:?}", found.columns));
        }
        let ours = |rows: Option<Vec<Vec<Value>>>| rows.map(|rows| with_ids(rows, &found.columns, fixture));
        if let Some(rows) = ours(self.rows("rows")) {
            let alike = rows.len() == found.rows.len() && rows.iter().zip(&found.rows).all(|(a, b)| same_row(a, b));
            check(alike, format!("rows {}", json!(found.rows)));
        }
        for wanted in ours(self.rows("has")).unwrap_or_default() {
            let has = found.rows.iter().any(|row| same_row(row, &wanted));
            check(has, format!("{wanted:?} is not among {}", json!(found.rows)));
        }
        if let Some(wanted) = self.texts("ids") {
            check(ids(found) == wanted, format!("ids {:?}", ids(found)));
        }
        if let Some(count) = self.get("count").and_then(Value::as_u64) {
            check(found.rows.len() as u64 == count, format!("{} rows", found.rows.len()));
        }
        if let Some(mut wanted) = self.texts("notes") {
            let mut told = found.warnings.clone();
            told.sort_unstable();
            wanted.sort_unstable();
            check(told == wanted, format!("notes {told:?}"));
        }
        wrong
    }

    fn of_cursor(&self, found: &QueryRows, fixture: &Fixture) -> Option<String> {
        let wanted = match self.get("cursor")? {
            Value::String(id) => {
                let key = fixture.rows.get(id)?["_pagination_key"].as_str().unwrap_or_default();
                Some(cursor_of(key))
            }
            _ => None,
        };
        (found.cursor != wanted).then(|| format!("cursor {:?}, not {wanted:?}", found.cursor))
    }

    /// Checks the strict mode: it is refused for these reasons, or answered if there are none.
    fn of_strictness(&self, nodes: &Nodes, blocks: &[String]) -> Result<Option<String>> {
        let mut body = self.body();
        body["lint_mode"] = json!("strict");
        let answer = nodes.ask(&body)?;
        let fine = match blocks {
            [] => answer.status == 200,
            blocks => answer.status == 400 && blocks.iter().all(|code| answer.text().contains(code.as_str())),
        };
        Ok((!fine).then(|| format!("strictly: {}", not(&answer))))
    }

    /// Follows cursors until there is none, each page on the next node.
    fn page_by_page(&self, nodes: &Nodes, pages: &Value) -> Result<Vec<String>> {
        let mut body = self.body();
        let mut all = Vec::new();
        for _ in 0..PAGES_MAX {
            let answer = nodes.ask(&body)?;
            if answer.status != 200 {
                return Ok(vec![not(&answer)]);
            }
            let found = found(&answer)?;
            all.push(json!(ids(&found)));
            match found.cursor {
                Some(cursor) => body["cursor"] = json!(cursor),
                None => return Ok(if json!(all) == *pages { vec![] } else { vec![format!("pages {}", json!(all))] }),
            }
        }
        Ok(vec!["there is no last page".into()])
    }
}

fn not(answer: &HttpResponse) -> String {
    format!("{}: {}", answer.status, answer.text())
}

fn found(answer: &HttpResponse) -> Result<QueryRows> {
    let envelope: Value = serde_json::from_slice(&answer.body).context("no JSON")?;
    let columns = envelope["schema"]["items"]["properties"].as_object().context("a schema")?;
    let columns: Vec<String> = columns.keys().cloned().collect();
    let cells = |row: &Value| -> Result<Vec<Value>> {
        let row = row.as_object().context("a row")?;
        anyhow::ensure!(row.keys().eq(&columns), "a row of other columns: {row:?}");
        Ok(row.values().cloned().collect())
    };
    let rows = envelope["data"].as_array().context("data")?.iter().map(cells).collect::<Result<_>>()?;
    let cursor = envelope["cursor"].as_str().map(str::to_owned);
    anyhow::ensure!(cursor == answer.header("x-bt-cursor"), "a cursor that the header does not have");
    let warnings = envelope["warnings"].as_array().context("warnings")?;
    let warnings = warnings.iter().filter_map(|warning| Some(warning["code"].as_str()?.to_owned())).collect();
    Ok(QueryRows { columns, rows, cursor, warnings })
}

fn ids(found: &QueryRows) -> Vec<String> {
    let place = found.columns.iter().position(|column| column == "id");
    let id = |row: &Vec<Value>| place.and_then(|place| row[place].as_str()).unwrap_or("null").to_owned();
    found.rows.iter().map(id).collect()
}

/// Every row is as it was written, with all that the server fills in.
fn not_whole(found: &QueryRows, fixture: &Fixture) -> Vec<String> {
    let mut wrong = Vec::new();
    for (id, row) in ids(found).iter().zip(&found.rows) {
        let stored: Vec<Value> = fixture.rows.get(id).map(|row| row.values().cloned().collect()).unwrap_or_default();
        if !same_row(row, &stored) {
            wrong.push(format!("{id} is {}", json!(row)));
        }
    }
    wrong
}

/// Replaces the fixture's names by the server's ids.
fn with_ids(mut rows: Vec<Vec<Value>>, columns: &[String], fixture: &Fixture) -> Vec<Vec<Value>> {
    for row in &mut rows {
        for (value, column) in row.iter_mut().zip(columns) {
            if let Some(id) = value.as_str().and_then(|name| fixture.ids.get(name))
                && OF_IDS.contains(&column.as_str())
            {
                *value = json!(id);
            }
        }
    }
    rows
}

/// base64 of the eight bytes of a key, without padding.
fn cursor_of(key: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let number: u64 = key.trim_start_matches('p').parse().unwrap_or_default();
    let bits = u128::from(number) << 2;
    (0..11).rev().map(|place| char::from(DIGITS[(bits >> (6 * place)) as usize % 64])).collect()
}

pub fn same_row(left: &[Value], right: &[Value]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
}

/// Returns whether both are equal: numbers approximately, objects in any order of keys, times with or without trailing
/// zeros.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            let (Some(l), Some(r)) = (left.as_f64(), right.as_f64()) else { return left == right };
            left == right || (l - r).abs() <= TOLERANCE * l.abs().max(r.abs())
        }
        (Value::Array(left), Value::Array(right)) => same_row(left, right),
        (Value::Object(left), Value::Object(right)) => {
            let has = |(key, member): (&String, &Value)| right.get(key).is_some_and(|other| same(member, other));
            left.len() == right.len() && left.iter().all(has)
        }
        (Value::String(left), Value::String(right)) => left.replace(".000Z", "Z") == right.replace(".000Z", "Z"),
        _ => left == right,
    }
}

#[test]
fn a_cursor_is_that_of_its_row() {
    assert_eq!(cursor_of("p07564805807003992067"), "aPuWzSlJAAM");
}
