//! Writes and reads of rows, for tests of deployments rather than of the API.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::http::{Exchange, Request, exchange, send};
use crate::server::TEST_KEY;

/// Timeout of a write, after which its outcome is unknown.
const PATIENCE: Duration = Duration::from_secs(10);
const PAGES_MAX: usize = 200;

fn request(method: &str, target: &str, body: &Value) -> Request {
    Request {
        method: method.into(),
        target: target.into(),
        headers: vec![("authorization".into(), format!("Bearer {TEST_KEY}"))],
        body: (method != "GET").then(|| body.to_string().into_bytes()),
        declared_length: None,
    }
}

/// The JSON of a 200.
pub fn call(url: &str, method: &str, target: &str, body: &Value) -> Result<Value> {
    let answer = send(url, &request(method, target, body))?;
    ensure!(answer.status == 200, "{method} {target} at {url}: {}: {}", answer.status, answer.text());
    serde_json::from_slice(&answer.body).context("no JSON")
}

/// Status and body, without a credential.
pub fn knock(url: &str, target: &str) -> Result<(u16, String)> {
    let bare = Request { method: "GET".into(), target: target.into(), ..Request::default() };
    let answer = send(url, &bare)?;
    Ok((answer.status, answer.text()))
}

/// The rows that were sent, and which of them were acknowledged, by object.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    pub objects: Vec<String>,
    sent: BTreeMap<String, BTreeSet<String>>,
    acknowledged: BTreeMap<String, BTreeSet<String>>,
    /// Answers that ask to try again, and answers that did not come.
    pub refusals: usize,
}

impl Rows {
    /// So many projects, made at these addresses in turn.
    pub fn new(urls: &[String], objects: usize) -> Result<Rows> {
        let make = |number: usize| {
            let url = &urls[number % urls.len()];
            let made = call(url, "POST", "/v1/project", &json!({"name": format!("object {number}")}))?;
            Ok(made["id"].as_str().context("an id")?.to_owned())
        };
        let objects = (0..objects).map(make).collect::<Result<_>>()?;
        Ok(Rows { objects, ..Rows::default() })
    }

    /// One row for each object. An error is an answer that the loss of a node does not explain.
    pub fn write(&mut self, url: &str, row: &str) -> Result<()> {
        for object in self.objects.clone() {
            self.sent.entry(object.clone()).or_default().insert(row.to_owned());
            let body = json!({"events": [{"id": row, "input": {"said": row}}]});
            let sent = request("POST", &format!("/v1/project_logs/{object}/insert"), &body);
            match exchange(url, &sent, PATIENCE) {
                Ok(Exchange::Answered(answer)) if answer.status == 200 => {
                    self.acknowledged.entry(object).or_default().insert(row.to_owned());
                }
                Ok(Exchange::Answered(answer)) if ![429, 503].contains(&answer.status) => {
                    bail!("{url} answered {}: {}", answer.status, answer.text());
                }
                _ => self.refusals += 1,
            }
        }
        Ok(())
    }

    /// Reads everything; what was acknowledged must be there, and nothing that was never sent. Returns how many rows.
    pub fn all_there(&self, url: &str) -> Result<usize> {
        let mut found = 0;
        for object in &self.objects {
            let rows = rows_of(url, object)?;
            let acknowledged = self.acknowledged.get(object).into_iter().flatten();
            let lost: Vec<&String> = acknowledged.filter(|id| !rows.contains_key(*id)).collect();
            ensure!(lost.is_empty(), "{url} lacks of object {object} what was acknowledged: {lost:?}");
            for (id, input) in &rows {
                let sent = self.sent.get(object).is_some_and(|sent| sent.contains(id));
                ensure!(sent && *input == json!({"said": id}), "{url}: {object} has {id}: {input}");
            }
            found += rows.len();
        }
        Ok(found)
    }

    pub fn acknowledged(&self) -> usize {
        self.acknowledged.values().map(BTreeSet::len).sum()
    }
}

/// Every row of an object by id, over pages.
fn rows_of(url: &str, object: &str) -> Result<BTreeMap<String, Value>> {
    let (mut rows, mut body) = (BTreeMap::new(), json!({"limit": 100}));
    for _ in 0..PAGES_MAX {
        let page = call(url, "POST", &format!("/v1/project_logs/{object}/fetch"), &body)?;
        for row in page["events"].as_array().context("events")? {
            let id = row["id"].as_str().context("an id")?.to_owned();
            ensure!(rows.insert(id.clone(), row["input"].clone()).is_none(), "{id} came twice");
        }
        match page["cursor"].as_str() {
            Some(cursor) if !cursor.is_empty() => body["cursor"] = json!(cursor),
            _ => return Ok(rows),
        }
    }
    bail!("a fetch did not end within {PAGES_MAX} pages")
}
