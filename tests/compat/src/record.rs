//! Responses of a server about all of its content, recorded as a case that repeats the requests.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use assay_test_api::case::json_of;
use assay_test_api::http::{Request, send};
use assay_test_api::server::Server;
use serde_json::{Map, Value, json};

/// Families of records that are listed; those with rows, and where their rows are.
const LISTED: [&str; 4] = ["project", "experiment", "dataset", "api_key"];
const WITH_ROWS: [(&str, &str); 3] =
    [("project", "project_logs"), ("experiment", "experiment"), ("dataset", "dataset")];
/// Every row of one object; `writing/` stays far below.
const ROWS_MAX: usize = 1000;
/// Traces of a page when the rows are read again: old data is paged through too.
const PAGE: usize = 3;
/// Members of a row that its writer chose: in them not even a null may come or go.
const CHOSEN: [&str; 9] =
    ["input", "output", "expected", "error", "metadata", "scores", "metrics", "span_attributes", "tags"];
/// A text that is longer and repeats a shorter one is written down as that.
const LONG_TEXT: usize = 200;
const REPEATED_MAX: usize = 64;

/// Content found so far.
#[derive(Debug, Default)]
pub struct Recorded {
    /// Paths of records, whether they are still there or not.
    records: BTreeSet<String>,
    /// Paths of objects with rows, each with the versions it had.
    objects: BTreeMap<String, BTreeSet<String>>,
}

impl Recorded {
    /// Notes what there is now, and each object's newest version.
    pub fn look(&mut self, server: &Server) -> Result<()> {
        for family in LISTED {
            let listed = ask(server, "GET", &format!("/v1/{family}"), None)?.unwrap_or_default();
            let ids = listed["objects"].as_array().into_iter().flatten().filter_map(|record| record["id"].as_str());
            self.records.extend(ids.map(|id| format!("/v1/{family}/{id}")));
        }
        for object in self.with_rows() {
            let Some(rows) = rows(server, &object, None)? else { continue };
            let newest = rows.iter().filter_map(|row| row["_xact_id"].as_str()).max().map(str::to_owned);
            self.objects.entry(object).or_default().extend(newest);
        }
        Ok(())
    }

    fn with_rows(&self) -> Vec<String> {
        let in_family = |record: &String| {
            let (family, id) = record.strip_prefix("/v1/")?.split_once('/')?;
            let (_, rows) = WITH_ROWS.iter().find(|(name, _)| *name == family)?;
            Some(format!("/v1/{rows}/{id}"))
        };
        self.records.iter().filter_map(in_family).collect()
    }

    /// Requests everything, and records the responses as a case.
    pub fn reads(&mut self, server: &Server) -> Result<String> {
        // Records that are new since the last look; a version that is the newest anyway does no harm.
        self.look(server)?;
        let mut steps = vec![step("POST", "/api/self/me", None, record(server, "POST", "/api/self/me")?)];
        for path in LISTED.iter().map(|family| format!("/v1/{family}")).chain(self.records.iter().cloned()) {
            steps.push(step("GET", &path, None, record(server, "GET", &path)?));
        }
        for (object, versions) in &self.objects {
            let path = format!("{object}/fetch");
            for version in std::iter::once(None).chain(versions.iter().map(Some)) {
                let mut body = json!({"limit": PAGE});
                if let Some(version) = version {
                    body["version"] = json!(version);
                }
                let rows = rows(server, object, version)?;
                let answer = rows.map(|rows| json!({"events": rows.iter().map(row_pattern).collect::<Vec<_>>()}));
                steps.push(step("POST", &path, Some(body), answer));
            }
        }
        let lines: Vec<String> = steps.iter().map(|step| format!("    {step}")).collect();
        let about = "What was answered when this was written: records, rows of now, rows of older versions";
        Ok(format!("{{\n  \"about\": \"{about}\",\n  \"steps\": [\n{}\n  ]\n}}\n", lines.join(",\n")))
    }
}

/// Returns a request with its response; none if the object is gone.
fn step(method: &str, path: &str, body: Option<Value>, answer: Option<Value>) -> Value {
    let mut step = json!({"method": method, "path": path});
    if let Some(body) = body {
        step["body"] = body;
        step["follow"] = json!(true);
    }
    step["expect"] = match answer {
        Some(answer) => json!({"status": 200, "json": answer}),
        None => json!({"status": 404}),
    };
    step
}

/// A row with what its writer chose to the letter.
fn row_pattern(row: &Value) -> Value {
    let members = row.as_object().into_iter().flatten();
    let pattern = members.map(|(name, value)| {
        let chosen = CHOSEN.contains(&name.as_str()) && !value.is_null();
        (name.clone(), if chosen { to_the_letter(value) } else { in_substance(value) })
    });
    Value::Object(pattern.collect())
}

/// Returns the relevant part: later programs may add fields, and leave out null ones.
fn in_substance(value: &Value) -> Value {
    match value {
        Value::Null => json!("$none"),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), in_substance(value))).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(in_substance).collect(),
        other => other.clone(),
    }
}

fn to_the_letter(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: Map<String, Value> =
                members.iter().map(|(name, value)| (name.clone(), to_the_letter(value))).collect();
            json!({"$exact": members})
        }
        Value::Array(items) => items.iter().map(to_the_letter).collect(),
        Value::String(text) if text.len() > LONG_TEXT => match repeated(text) {
            Some(part) => json!({"$repeat": [part, text.len() / part.len()]}),
            None => value.clone(),
        },
        other => other.clone(),
    }
}

/// The shortest text that this one repeats.
fn repeated(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let repeats =
        |length: &usize| bytes.len().is_multiple_of(*length) && bytes[*length..] == bytes[..bytes.len() - length];
    (1..=REPEATED_MAX.min(bytes.len() / 2)).find(repeats).and_then(|length| text.get(..length))
}

fn record(server: &Server, method: &str, path: &str) -> Result<Option<Value>> {
    Ok(ask(server, method, path, None)?.as_ref().map(in_substance))
}

/// All rows of an object on one page; none where it is gone.
fn rows(server: &Server, object: &str, version: Option<&String>) -> Result<Option<Vec<Value>>> {
    let body = json!({"limit": ROWS_MAX, "version": version});
    let Some(page) = ask(server, "POST", &format!("{object}/fetch"), Some(body))? else { return Ok(None) };
    anyhow::ensure!(page["cursor"].is_null(), "{object} has more rows than one page");
    Ok(page["events"].as_array().cloned())
}

/// Returns the response to a request; none if the object is gone.
fn ask(server: &Server, method: &str, target: &str, body: Option<Value>) -> Result<Option<Value>> {
    let headers = vec![("authorization".to_owned(), format!("Bearer {}", server.key))];
    let body = body.map(|body| body.to_string().into_bytes());
    let request = Request { method: method.into(), target: target.into(), headers, body, declared_length: None };
    let answer = send(&server.url, &request)?;
    if answer.status == 404 {
        return Ok(None);
    }
    anyhow::ensure!(answer.status == 200, "{method} {target}: {} {}", answer.status, answer.text());
    json_of(&answer).map(Some).map_err(anyhow::Error::msg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_written_down_to_the_letter_where_its_writer_chose() {
        let row = json!({
            "id": "r", "input": {"a": [{}, null]}, "output": "ab".repeat(200), "expected": null,
            "origin": {"id": "x", "created": null},
        });
        let pattern = json!({
            "id": "r", "input": {"$exact": {"a": [{"$exact": {}}, null]}}, "output": {"$repeat": ["ab", 200]},
            "expected": "$none", "origin": {"id": "x", "created": "$none"},
        });
        assert_eq!(row_pattern(&row), pattern);
    }

    #[test]
    fn only_a_text_that_repeats_a_part_whole_is_shortened() {
        assert_eq!(repeated("üüü"), Some("ü"));
        assert_eq!(repeated("abcabc"), Some("abc"));
        assert_eq!(repeated("abcabcab"), None);
        assert_eq!(repeated(""), None);
    }
}
