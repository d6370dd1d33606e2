//! Request bodies of queries (btql.md, section 1.1).
//!
//! Unknown fields are ignored, because clients send many of them. This module performs no I/O.

use assay_node_http::requests::error_texts::{kind_of, shortened};
use assay_node_http::responses::refusal::Refusal;
use assay_node_query::render::Format;
use assay_node_query::{Lint, Question};
use assay_storage_model::Xact;
use serde_json::{Map, Value};

/// Upper bound of the absolute time zone offset, which exceeds every offset in use.
const OFFSET_MINUTES_MAX: i64 = 24 * 60;

/// Query with the format and options of its response.
#[derive(Clone, Debug)]
pub struct QueryRequest {
    pub question: Question,
    pub format: Format,
    pub include_plan: bool,
    /// Whether the client asks for the most recent rows. The result contains them in either case.
    pub realtime: bool,
    pub seconds: Option<u64>,
}

/// Reads the body of a query. `now` is in microseconds since the epoch.
pub fn query_request(mut body: Map<String, Value>, now: i64) -> Result<QueryRequest, Refusal> {
    let query = match body.remove("query") {
        Some(query @ (Value::String(_) | Value::Object(_))) => query,
        None | Some(Value::Null) => return Err(Refusal::bad("`query` is missing: send a string or a parsed query")),
        Some(other) => {
            return Err(Refusal::bad(format!("`query` is {}; it should be a string or an object", kind_of(&other))));
        }
    };
    let strict = flag(&body, "strict_lint_mode")?.unwrap_or(false);
    let tz_offset = match whole(&body, "tz_offset")? {
        Some(minutes) if !(-OFFSET_MINUTES_MAX..=OFFSET_MINUTES_MAX).contains(&minutes) => {
            return Err(Refusal::bad(format!(
                "`tz_offset` is {minutes} minutes; the maximum is one day ({OFFSET_MINUTES_MAX})"
            )));
        }
        minutes => minutes.unwrap_or(0) as i32,
    };
    let question = Question {
        query,
        version: version(&body)?,
        tz_offset,
        audit_log: flag(&body, "audit_log")?.unwrap_or(false),
        lint: lint(&body, strict)?,
        disable_limit: flag(&body, "disable_limit")?.unwrap_or(false),
        scope_to_root_span_id: text(&body, "scope_to_root_span_id")?.map(str::to_owned),
        cursor: text(&body, "cursor")?.map(str::to_owned),
        inference_depth: natural(&body, "inference_depth")?,
        whole: false,
        limit_max: None,
        preview_default: None,
        now,
    };
    Ok(QueryRequest {
        question,
        format: format(&body)?,
        include_plan: flag(&body, "include_plan")?.unwrap_or(false),
        realtime: flag(&body, "brainstore_realtime")?.unwrap_or(true),
        seconds: natural(&body, "query_timeout_seconds")?,
    })
}

fn format(body: &Map<String, Value>) -> Result<Format, Refusal> {
    let Some(name) = text(body, "fmt")? else { return Ok(Format::default()) };
    Format::parse(name).ok_or_else(|| {
        let known: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        Refusal::bad(format!("`fmt` is `{}`; it must be one of {}", shortened(name), known.join(", ")))
    })
}

fn lint(body: &Map<String, Value>, strict: bool) -> Result<Lint, Refusal> {
    match text(body, "lint_mode")? {
        _ if strict => Ok(Lint::Strict),
        None | Some("default") => Ok(Lint::Default),
        Some("strict") => Ok(Lint::Strict),
        Some("off") => Ok(Lint::Off),
        Some(other) => {
            let other = shortened(other);
            Err(Refusal::bad(format!("`lint_mode` is `{other}`; it must be default, strict or off")))
        }
    }
}

fn version(body: &Map<String, Value>) -> Result<Option<Xact>, Refusal> {
    let Some(text) = text(body, "version")?.filter(|text| !text.is_empty()) else { return Ok(None) };
    Ok(Some(Xact::parse(text)?))
}

/// Returns a field, or `None` if it is missing or null.
fn said<'b>(body: &'b Map<String, Value>, name: &str) -> Option<&'b Value> {
    body.get(name).filter(|value| !value.is_null())
}

fn wrong(name: &str, found: &Value, wanted: &str) -> Refusal {
    Refusal::bad(format!("`{name}` is {}; it should be {wanted}", kind_of(found)))
}

fn text<'b>(body: &'b Map<String, Value>, name: &str) -> Result<Option<&'b str>, Refusal> {
    said(body, name).map(|value| value.as_str().ok_or_else(|| wrong(name, value, "a string"))).transpose()
}

fn flag(body: &Map<String, Value>, name: &str) -> Result<Option<bool>, Refusal> {
    said(body, name).map(|value| value.as_bool().ok_or_else(|| wrong(name, value, "a boolean"))).transpose()
}

fn whole(body: &Map<String, Value>, name: &str) -> Result<Option<i64>, Refusal> {
    said(body, name).map(|value| value.as_i64().ok_or_else(|| wrong(name, value, "a whole number"))).transpose()
}

fn natural(body: &Map<String, Value>, name: &str) -> Result<Option<u64>, Refusal> {
    said(body, name)
        .map(|value| value.as_u64().ok_or_else(|| wrong(name, value, "a whole number, 0 or more")))
        .transpose()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: Value) -> Result<QueryRequest, String> {
        let Value::Object(body) = body else { panic!("an object") };
        query_request(body, 7).map_err(|refusal| refusal.message)
    }

    #[test]
    fn a_body_says_what_is_asked_and_how() {
        let found = read(json!({
            "query": "select: * | from: project_logs('x')", "fmt": "jsonl", "version": "1000192656880881099",
            "tz_offset": 480, "lint_mode": "strict", "cursor": null, "brainstore_realtime": false, "use_columnstore": 3,
            "query_timeout_seconds": 5, "include_plan": true, "disable_limit": true,
        }));
        let found = found.expect("it reads");
        assert_eq!((found.format, found.realtime, found.seconds), (Format::JsonLines, false, Some(5)));
        assert_eq!((found.question.tz_offset, found.question.lint), (480, Lint::Strict));
        assert_eq!(found.question.version, Some(Xact(1_000_192_656_880_881_099)));
        assert!(found.include_plan && found.question.disable_limit && found.question.now == 7);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (body, words) in [
            (json!({}), "`query` is missing"),
            (json!({"query": 3}), "`query` is a number"),
            (
                json!({"query": "x", "fmt": "xml"}),
                "`fmt` is `xml`; it must be one of json, jsonl, csv, spreadsheet_csv, parquet",
            ),
            (json!({"query": "x", "tz_offset": "8"}), "`tz_offset` is a string"),
            (json!({"query": "x", "tz_offset": 5000}), "one day (1440)"),
            (json!({"query": "x", "tz_offset": i64::MIN}), "one day (1440)"),
            (json!({"query": "x", "lint_mode": "hard"}), "`lint_mode` is `hard`"),
            (json!({"query": "x", "version": "yesterday"}), "yesterday"),
            (json!({"query": "x", "disable_limit": 1}), "`disable_limit` is a number; it should be a boolean"),
            (json!({"query": "x", "query_timeout_seconds": -1}), "`query_timeout_seconds`"),
        ] {
            let why = read(body.clone()).expect_err("it is wrong");
            assert!(why.contains(words), "{body}: {why}");
        }
    }
}
