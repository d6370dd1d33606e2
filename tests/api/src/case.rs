//! A case file: its subject, and its steps of request and expected response.
//!
//! ```json
//! {"about": "...", "steps": [{
//!   "note": "why this step", "method": "POST", "path": "/v1/project", "query": {"limit": 1, "ids": ["a", "b"]},
//!   "headers": {"authorization": null}, "body": {"name": "${run}"}, "raw": "instead of body, without a content type",
//!   "expect": {"status": 200, "headers": {"content-type": "$contains:json"}, "json": {"id": "$uuid:project"},
//!              "text": "$contains:..", "error": "words of its message"},
//!   "within_seconds": 5, "follow": true
//! }]}
//! ```
//!
//! Requests contain variables (`template`), expectations are patterns (`pattern`). Predefined are `${run}`, which is
//! unique per run and file; `${url}`, the address of the step; and `${key}`. Every request carries the key unless a
//! header overrides it; null removes a header. `status` may be a list. `error` also checks the whole error body.
//! `within_seconds` repeats the step until it holds. `follow` repeats a fetch with the cursor of each response and
//! checks all events together, as `{"events": [..], "pages": n}`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::http::{self, HttpResponse, Request, percent_encoded};
use crate::pattern::{self, shortened};
use crate::template::{self, Variables};

/// Pages that `follow` reads; a fetch that does not end is wrong.
const PAGES_MAX: usize = 200;
const RETRY_EVERY: Duration = Duration::from_millis(100);

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub about: String,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    #[serde(default)]
    pub note: String,
    pub method: String,
    pub path: String,
    #[serde(default)]
    pub query: BTreeMap<String, Value>,
    #[serde(default)]
    pub headers: BTreeMap<String, Option<String>>,
    pub body: Option<Value>,
    pub raw: Option<String>,
    pub expect: Expect,
    #[serde(default)]
    pub within_seconds: u64,
    #[serde(default)]
    pub follow: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    pub status: Value,
    #[serde(default)]
    pub headers: BTreeMap<String, Value>,
    pub json: Option<Value>,
    pub text: Option<Value>,
    pub error: Option<String>,
}

/// Addresses and credentials for cases.
#[derive(Clone, Debug)]
pub struct Target {
    /// Step i goes to the address i modulo their number; what it follows goes on from there, a page at each.
    pub urls: Vec<String>,
    pub key: String,
    /// Makes names unlike those of other runs against the same servers.
    pub run: String,
}

/// Result of a case: the number of steps run, and its complaints.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    pub steps: usize,
    pub failures: Vec<String>,
}

impl Case {
    pub fn read(path: &Path) -> Result<Case> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    /// Runs every step, also behind one that failed, as long as what it needs is known.
    pub fn run(&self, name: &str, target: &Target) -> Verdict {
        let mut verdict = Verdict::default();
        let mut variables = Variables::from([
            ("run".into(), json!(format!("{name}-{}", target.run))),
            ("key".into(), json!(target.key)),
        ]);
        for (place, step) in self.steps.iter().enumerate() {
            let mut urls = target.urls.clone();
            urls.rotate_left(place % target.urls.len());
            variables.insert("url".into(), json!(urls[0]));
            let title = format!("{name} step {} ({} {}): {}", place + 1, step.method, step.path, step.note);
            verdict.steps += 1;
            match step.run(&urls, &mut variables) {
                Ok(complaints) if complaints.is_empty() => {}
                Ok(complaints) => verdict.failures.push(format!("{title}\n    {}", complaints.join("\n    "))),
                Err(error) => {
                    verdict.failures.push(format!("{title}\n    {error:#}; the steps behind it did not run"));
                    break;
                }
            }
        }
        verdict
    }
}

impl Step {
    /// Runs the step. Returns its complaints, or an error if it could not be executed.
    fn run(&self, urls: &[String], variables: &mut Variables) -> Result<Vec<String>> {
        let deadline = Instant::now() + Duration::from_secs(self.within_seconds);
        loop {
            let mut tried = variables.clone();
            let complaints = self.once(urls, &mut tried)?;
            if complaints.is_empty() || Instant::now() >= deadline {
                *variables = tried;
                return Ok(complaints);
            }
            std::thread::sleep(RETRY_EVERY);
        }
    }

    fn once(&self, urls: &[String], variables: &mut Variables) -> Result<Vec<String>> {
        let request = self.request(variables)?;
        let answer = if self.follow { follow(urls, request.clone())? } else { http::send(&urls[0], &request)? };
        let mut complaints = self.expect.complaints(&request, &answer, variables)?;
        if !complaints.is_empty() {
            let body = request.body.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
            complaints.push(format!("sent: {} {} {}", request.method, request.target, shortened(&body)));
            complaints.push(format!("got: {} {}", answer.status, shortened(&answer.text())));
        }
        Ok(complaints)
    }

    fn request(&self, variables: &Variables) -> Result<Request> {
        let mut headers = BTreeMap::from([("authorization".to_owned(), Some("Bearer ${key}".to_owned()))]);
        let body = match (&self.body, &self.raw) {
            (Some(_), Some(_)) => bail!("a step has `body` or `raw`, not both"),
            (Some(body), None) => {
                headers.insert("content-type".into(), Some("application/json".into()));
                Some(template::filled(body, variables)?.to_string().into_bytes())
            }
            (None, Some(raw)) => Some(template::text(raw, variables)?.into_bytes()),
            (None, None) => None,
        };
        headers.extend(self.headers.clone());
        let given = headers.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let headers = given.map(|(name, value)| Ok((name, template::text(&value, variables)?)));
        Ok(Request {
            method: self.method.clone(),
            target: self.target(variables)?,
            headers: headers.collect::<Result<_>>()?,
            body,
            declared_length: None,
        })
    }

    fn target(&self, variables: &Variables) -> Result<String> {
        let mut target = template::text(&self.path, variables)?;
        let mut sign = if target.contains('?') { '&' } else { '?' };
        for (name, value) in &self.query {
            let value = template::filled(value, variables)?;
            let values = match value {
                Value::Array(values) => values,
                one => vec![one],
            };
            for value in values {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                target.push_str(&format!("{sign}{name}={}", percent_encoded(&text)));
                sign = '&';
            }
        }
        Ok(target)
    }
}

impl Expect {
    fn complaints(&self, request: &Request, answer: &HttpResponse, variables: &mut Variables) -> Result<Vec<String>> {
        let mut complaints = Vec::new();
        let right = match &self.status {
            Value::Array(statuses) => statuses.contains(&json!(answer.status)),
            status => *status == json!(answer.status),
        };
        if !right {
            complaints.push(format!("status: wanted {}, found {}", self.status, answer.status));
        }
        for (name, wanted) in &self.headers {
            let wanted = template::filled(wanted, variables)?;
            let found = answer.header(name).map(Value::from);
            let found = pattern::complaints(&wanted, found.as_ref(), variables);
            complaints.extend(found.into_iter().map(|complaint| format!("header {name}: {complaint}")));
        }
        if let Some(wanted) = &self.text {
            let wanted = template::filled(wanted, variables)?;
            complaints.extend(pattern::complaints(&wanted, Some(&Value::from(answer.text())), variables));
        }
        if let Some(wanted) = &self.json {
            let wanted = template::filled(wanted, variables)?;
            match json_of(answer) {
                Ok(found) => complaints.extend(pattern::complaints(&wanted, Some(&found), variables)),
                Err(problem) => complaints.push(problem),
            }
        }
        if let Some(words) = &self.error {
            let words = template::text(words, variables)?;
            complaints.extend(error_complaints(request, answer, &words));
        }
        Ok(complaints)
    }
}

/// Returns the body, if it is declared as JSON and valid.
pub fn json_of(answer: &HttpResponse) -> Result<Value, String> {
    let content = answer.header("content-type").unwrap_or_default();
    if !content.starts_with("application/json") {
        return Err(format!("the body is said to be `{content}`, not JSON: {}", shortened(&answer.text())));
    }
    serde_json::from_slice(&answer.body).map_err(|error| format!("the body is no JSON: {error}"))
}

/// Returns the defects of an error's body: it must name the kind, have a sentence, and repeat path and trace id.
pub fn error_complaints(request: &Request, answer: &HttpResponse, words: &str) -> Vec<String> {
    let body = match json_of(answer) {
        Ok(body) => body,
        Err(problem) => return vec![problem],
    };
    let path = request.target.split('?').next().unwrap_or_default();
    let wanted = json!({
        "Code": "$string", "Message": {"$all": ["$string", format!("$contains:{words}")]},
        "InternalTraceId": "$string", "Path": format!("$text:{path}"), "Service": "api",
    });
    let mut complaints = pattern::complaints(&wanted, Some(&body), &mut Variables::new());
    let trace = answer.header("x-bt-internal-trace-id");
    if trace.is_none() || trace.as_deref() != body["InternalTraceId"].as_str() {
        complaints.push(format!("header x-bt-internal-trace-id is {trace:?}, unlike the body's InternalTraceId"));
    }
    complaints
}

/// All pages of a fetch as one answer, each from the next address: a cursor is good at any of them.
fn follow(urls: &[String], mut request: Request) -> Result<HttpResponse> {
    let mut events = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for pages in 1..=PAGES_MAX {
        let mut answer = http::send(&urls[(pages - 1) % urls.len()], &request)?;
        let Ok(page) = json_of(&answer) else { return Ok(answer) };
        let Some(rows) = page["events"].as_array() else { return Ok(answer) };
        events.extend(rows.iter().cloned());
        let cursor = page["cursor"].as_str().unwrap_or_default();
        if cursor.is_empty() {
            answer.body = json!({"events": events, "pages": pages}).to_string().into_bytes();
            return Ok(answer);
        }
        if rows.is_empty() {
            bail!("an empty page has the cursor {cursor}");
        }
        if seen.iter().any(|known| known == cursor) {
            bail!("the cursor {cursor} came twice");
        }
        let mut body: Value = serde_json::from_slice(request.body.as_deref().unwrap_or(b"{}"))?;
        body["cursor"] = json!(cursor);
        request.body = Some(body.to_string().into_bytes());
        seen.push(cursor.to_owned());
    }
    bail!("a fetch did not end within {PAGES_MAX} pages")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> HttpResponse {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        HttpResponse { status, headers, body: body.into() }
    }

    fn expect(text: &str) -> Expect {
        serde_json::from_str(text).expect("an expectation")
    }

    fn request() -> Request {
        Request { method: "GET".into(), target: "/x?a=1".into(), ..Request::default() }
    }

    #[test]
    fn status_headers_and_body_are_judged() {
        let json = [("content-type", "application/json; charset=utf-8"), ("x-a", "1")];
        let wanted = expect(r#"{"status": [200, 201], "headers": {"x-a": "1"}, "json": {"id": "$as:id"}}"#);
        let mut variables = Variables::new();
        let right = answer(201, &json, r#"{"id": 3}"#);
        assert_eq!(wanted.complaints(&request(), &right, &mut variables).unwrap(), Vec::<String>::new());
        assert_eq!(variables["id"], json!(3));
        let wrong = answer(500, &[("content-type", "text/plain")], "no");
        let complaints = wanted.complaints(&request(), &wrong, &mut variables).unwrap();
        assert_eq!(complaints.len(), 3, "{complaints:?}");
    }

    #[test]
    fn an_error_says_everything_it_must() {
        let body =
            r#"{"Code":"NotFound","Message":"no such project","InternalTraceId":"t","Path":"/x","Service":"api"}"#;
        let headers = [("content-type", "application/json"), ("x-bt-internal-trace-id", "t")];
        assert!(error_complaints(&request(), &answer(404, &headers, body), "project").is_empty());
        assert_eq!(error_complaints(&request(), &answer(404, &headers, body), "dataset").len(), 1);
        assert_eq!(error_complaints(&request(), &answer(404, &headers[..1], body), "").len(), 1);
        assert_eq!(error_complaints(&request(), &answer(404, &headers, r#"{"error":"x"}"#), "").len(), 6);
        assert_eq!(error_complaints(&request(), &answer(404, &[], "not found"), "").len(), 1);
    }

    #[test]
    fn a_request_is_made_of_its_step_and_what_is_known() {
        let step = r#"{"method": "POST", "path": "/v1/${kind}", "query": {"a": "x y", "ids": ["1", "2"]},
            "headers": {"authorization": null, "x-a": "${kind}"}, "body": {"n": "${n}"}, "expect": {"status": 200}}"#;
        let step: Step = serde_json::from_str(step).expect("a step");
        let variables = Variables::from([("kind".into(), json!("dataset")), ("n".into(), json!([1]))]);
        let request = step.request(&variables).expect("a request");
        assert_eq!(request.target, "/v1/dataset?a=x%20y&ids=1&ids=2");
        let headers: Vec<_> = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(headers, [("content-type", "application/json"), ("x-a", "dataset")]);
        assert_eq!(request.body.as_deref(), Some(br#"{"n":[1]}"#.as_slice()));
        assert!(serde_json::from_str::<Step>(r#"{"method": "GET", "paht": "/"}"#).is_err());
    }
}
