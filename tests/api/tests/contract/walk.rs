//! Calls of every operation of the contract: with a valid request, with null for all optional parts, and with each
//! required field missing or wrong. Responses have to match the contract and our own document.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use assay_test_api::dev::Dev;
use assay_test_api::http::{HttpResponse, Request, percent_encoded, send};
use assay_test_api::process::run;
use assay_test_api::schema::{Document, Operation, Spoiled};
use assay_test_api::server::{Options, Server};
use assay_test_api::template::{self, Variables};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::document::{self, guide_is_shown, page_is_shown, shown_by};
use crate::listed::{self, contract};

/// Names something that is not there.
const NOBODY: &str = "11111111-2222-4333-8444-555555555555";
/// Stands for the rest of a path, with its slashes.
const SOME_PATH: &str = "some/thing";
/// Status of an operation that is not served.
const UNSERVED: u16 = 501;

/// Request bodies that cannot be derived from the contract alone.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bodies {
    /// Path at which a record of a kind is made, if not `/v1/<kind>`.
    made_at: BTreeMap<String, String>,
    /// Paths that take the service token of an owner alone.
    by_token: Vec<String>,
    requests: BTreeMap<String, RequestCounts>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestCounts {
    /// One of this kind is made before: `${it}` is its id, `${its_name}` its name.
    needs: Option<String>,
    body: Option<Value>,
    #[serde(default)]
    query: BTreeMap<String, Value>,
}

struct Walk<'d> {
    contract: &'d Document,
    ours: &'d Document,
    bodies: Bodies,
    urls: &'d [String],
    key: &'d str,
    token: &'d str,
    /// Requests so far: each goes to the next node.
    turn: usize,
    variables: Variables,
    found: Vec<String>,
}

impl Walk<'_> {
    fn send(&mut self, method: &str, target: &str, body: Option<&Value>) -> Result<HttpResponse> {
        let url = &self.urls[self.turn % self.urls.len()];
        self.turn += 1;
        let by_token = self.bodies.by_token.iter().any(|path| target.starts_with(path));
        let credential = if by_token { self.token } else { self.key };
        let mut headers = vec![("authorization".to_owned(), format!("Bearer {credential}"))];
        if body.is_some() {
            headers.push(("content-type".into(), "application/json".into()));
        }
        let body = body.map(|body| body.to_string().into_bytes());
        send(url, &Request { method: method.into(), target: target.into(), headers, body, declared_length: None })
    }

    fn called(&mut self, method: &str, target: &str, body: Option<&Value>) -> Result<Value> {
        let answer = self.send(method, target, body)?;
        let said = answer.text();
        ensure!(answer.status == 200, "{method} {target} {}: {} {said}", body.unwrap_or(&Value::Null), answer.status);
        serde_json::from_slice(&answer.body).with_context(|| format!("{method} {target}: {said}"))
    }

    /// Creates the caller, and one of each containing object.
    fn begin(&mut self) -> Result<()> {
        let who = self.called("GET", "/ping", None)?;
        for (name, field) in [("user", "id"), ("organization", "org_id"), ("org_name", "org_name")] {
            self.variables.insert(name.into(), who[field].clone());
        }
        for kind in ["project", "experiment", "dataset", "group", "role"] {
            let id = self.made(kind)?;
            self.variables.insert(kind.into(), id);
        }
        Ok(())
    }

    /// The id of a new record of the kind; who calls, and their organization, are there already.
    fn made(&mut self, kind: &str) -> Result<Value> {
        if ["user", "organization"].contains(&kind) {
            return Ok(self.variables[kind].clone());
        }
        let path = self.bodies.made_at.get(kind).cloned().unwrap_or_else(|| format!("/v1/{kind}"));
        let name = format!("POST {path}");
        let operations = self.contract.operations();
        let operation = operations.iter().find(|operation| operation.name() == name);
        let body = self.body(&name, operation.and_then(|operation| self.contract.body(operation)))?;
        let made = self.called("POST", &path, body.as_ref())?;
        self.variables.insert("its_name".into(), made["name"].clone());
        Ok(made["id"].clone())
    }

    /// Returns the request of the table or, without one, an example of the schema.
    fn body(&mut self, name: &str, schema: Option<&Value>) -> Result<Option<Value>> {
        if let Some(kind) = self.bodies.requests.get(name).and_then(|said| said.needs.clone()) {
            let id = self.made(&kind)?;
            self.variables.insert("it".into(), id);
        }
        self.variables.insert("n".into(), json!(self.turn.to_string()));
        if let Some(body) = self.bodies.requests.get(name).and_then(|said| said.body.as_ref()) {
            return template::filled(body, &self.variables).with_context(|| name.to_owned()).map(Some);
        }
        let (turn, variables) = (self.turn, &self.variables);
        let mut known = |field: &str| match field {
            "name" | "slug" => Some(json!(format!("{field}-{turn}"))),
            "object_type" => Some(json!("project")),
            "object_id" => variables.get("project").cloned(),
            "org_name" => variables.get("org_name").cloned(),
            field => variables.get(field.strip_suffix("_id")?).cloned(),
        };
        Ok(schema.map(|schema| self.contract.example(schema, &mut known)))
    }

    /// Path and query, for a record of its own where the path names one.
    fn target(&mut self, operation: &Operation<'_>) -> Result<String> {
        let mut target = operation.path.to_owned();
        let said = self.bodies.requests.get(&operation.name()).cloned().unwrap_or_default();
        let mut sign = '?';
        for parameter in self.contract.parameters(operation) {
            let name = parameter["name"].as_str().context("a parameter has a name")?.to_owned();
            if parameter["in"] == "path" {
                if name.ends_with('+') {
                    target = target.replace(&format!("{{{name}}}"), SOME_PATH);
                    continue;
                }
                let kind = name.strip_suffix("_id").context("a path has ids")?;
                let id = self.made(kind)?;
                self.variables.insert("it".into(), id.clone());
                target = target.replace(&format!("{{{name}}}"), id.as_str().context("an id is a text")?);
            } else if parameter["required"] == true {
                let value =
                    said.query.get(&name).with_context(|| format!("bodies.json: the query has to say {name}"))?;
                let value = template::filled(value, &self.variables)?;
                target.push_str(&format!("{sign}{name}={}", percent_encoded(value.as_str().unwrap_or_default())));
                sign = '&';
            }
        }
        Ok(target)
    }

    fn note(&mut self, operation: &str, what: &str) {
        self.found.push(format!("{operation}: {what}"));
    }

    fn operation(&mut self, operation: &Operation<'_>) -> Result<()> {
        let (name, schema) = (operation.name(), self.contract.body(operation));
        let target = self.target(operation)?;
        let body = self.body(&name, schema)?;
        if let (Some(schema), Some(body)) = (schema, &body) {
            let wrong = self.contract.complaints(schema, body);
            ensure!(wrong.is_empty(), "the request of {name} is not valid: {wrong:?}");
            self.refused(operation, &target, &self.contract.spoiled(schema, body))?;
        }
        let answer = self.send(&operation.method, &target, body.as_ref())?;
        self.judge(operation, "", &answer);
        let nulls = schema.zip(body.as_ref()).and_then(|(schema, body)| self.contract.with_nulls(schema, body));
        if let Some(nulls) = nulls {
            // Of what was deleted or changed meanwhile another one.
            let target = self.target(operation)?;
            let again = self.body(&name, schema)?;
            let nulls = again.zip(nulls.as_object()).map(|(mut again, nulls)| {
                nulls.iter().filter(|(_, value)| value.is_null()).for_each(|(name, _)| again[name] = Value::Null);
                again
            });
            let answer = self.send(&operation.method, &target, nulls.as_ref())?;
            self.judge(operation, " with nulls", &answer);
        }
        Ok(())
    }

    fn judge(&mut self, operation: &Operation<'_>, how: &str, answer: &HttpResponse) {
        let name = operation.name();
        if answer.status != 200 {
            return self.note(&name, &format!("answered{how} {}: {}", answer.status, answer.text()));
        }
        let Some(schema) = self.contract.answer(operation) else { return };
        let value: Value = match serde_json::from_slice(&answer.body) {
            Ok(value) => value,
            Err(error) => return self.note(&name, &format!("answered{how} no JSON: {error}")),
        };
        for wrong in self.contract.complaints(schema, &value) {
            self.note(&name, &format!("the answer{how} is not as the contract says: {wrong}"));
        }
        let ours = self.ours.operations().into_iter().find(|ours| ours.name() == name);
        for wrong in ours
            .and_then(|ours| self.ours.answer(&ours))
            .map(|schema| self.ours.complaints(schema, &value))
            .into_iter()
            .flatten()
        {
            self.note(&name, &format!("the answer{how} is not as we say: {wrong}"));
        }
    }

    fn refused(&mut self, operation: &Operation<'_>, target: &str, spoiled: &[Spoiled]) -> Result<()> {
        for Spoiled { how, field, body } in spoiled {
            let answer = self.send(&operation.method, target, Some(body))?;
            let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            // A few operations refuse in plain text.
            let text = answer.text();
            let message = said["Message"].as_str().unwrap_or(&text);
            if answer.status != 400 {
                self.note(&operation.name(), &format!("{how}: answered {}: {message}", answer.status));
            } else if !message.contains(field.as_str()) {
                self.note(&operation.name(), &format!("{how}: the refusal does not name it: {message}"));
            }
        }
        Ok(())
    }

    /// Checks that an operation that is not served responds so to any request.
    fn unserved(&mut self, operation: &Operation<'_>) -> Result<()> {
        let path = operation.path.split('/').map(|part| match part {
            "{path+}" => "some/thing",
            part if part.starts_with('{') => NOBODY,
            part => part,
        });
        let target = path.collect::<Vec<_>>().join("/");
        let body = (operation.method != "GET").then(|| json!({}));
        let answer = self.send(&operation.method, &target, body.as_ref())?;
        if answer.status != UNSERVED {
            let name = operation.name();
            self.note(&name, &format!("is listed as not served, and answered {}: {}", answer.status, answer.text()));
        }
        Ok(())
    }

    /// Checks that operations of our document beyond the contract are served: a 404 may only mean that there is no such
    /// record.
    fn knocked(&mut self, operation: &Operation<'_>) -> Result<()> {
        let path = operation.path.split('/').map(|part| if part.starts_with('{') { NOBODY } else { part });
        let target = path.collect::<Vec<_>>().join("/");
        let body = (operation.method != "GET").then(|| json!({}));
        let answer = self.send(&operation.method, &target, body.as_ref())?;
        let lost = answer.status == 404 && answer.text().contains("this path does not exist");
        if lost || [405, UNSERVED].contains(&answer.status) {
            self.note(&operation.name(), &format!("is described, and answered {}: {}", answer.status, answer.text()));
        }
        Ok(())
    }
}

/// The token of a service account that owns the organization, made through a node's socket, and the account's id.
fn service_token(url: &str, data_dir: &Path) -> Result<(String, Value)> {
    let place = data_dir.to_str().context("a path that is text")?;
    let words = ["admin", "create-service-account", "walker", "--organization", "default", "--data-dir", place];
    let made = run(&words, &[], "")?.json().context("create-service-account")?;
    let token = made["service_token"].as_str().context("a token")?.to_owned();
    let headers = vec![("authorization".to_owned(), format!("Bearer {token}"))];
    let asked = Request { method: "POST".into(), target: "/api/self/me".into(), headers, ..Request::default() };
    let who: Value = serde_json::from_slice(&send(url, &asked)?.body)?;
    Ok((token, who["id"].clone()))
}

fn complaints(urls: &[String], key: &str, data_dir: &Path) -> Result<Vec<String>> {
    let (contract, ours) = (contract(), shown_by(&urls[0]));
    page_is_shown(&urls[0]);
    guide_is_shown(&urls[0]);
    let mut complaints = document::complaints(&ours);
    let not_served: BTreeMap<String, String> = listed::read("not_served.json");
    let (token, account) = service_token(&urls[0], data_dir)?;
    let mut walk = Walk {
        contract: &contract,
        ours: &ours,
        bodies: listed::read("bodies.json"),
        urls,
        key,
        token: &token,
        turn: 0,
        variables: Variables::from([("service_account".into(), account)]),
        found: Vec::new(),
    };
    walk.begin()?;
    let operations = contract.operations();
    let names: Vec<String> = operations.iter().map(Operation::name).collect();
    for operation in &operations {
        let name = operation.name();
        let went = if not_served.contains_key(&name) { walk.unserved(operation) } else { walk.operation(operation) };
        if let Err(error) = went {
            complaints.push(format!("{name}: {error:#}"));
        }
    }
    for operation in ours.operations().iter().filter(|operation| !names.contains(&operation.name())) {
        walk.knocked(operation)?;
    }
    println!("{} requests", walk.turn);
    complaints.extend(listed::complaints("deviations.json", &walk.found));
    let odd = not_served.iter().filter(|(name, why)| why.is_empty() || !names.contains(name));
    complaints.extend(
        odd.map(|(name, _)| format!("contract/not_served.json: `{name}` is not in the contract or has no reason")),
    );
    Ok(complaints)
}

fn holds(urls: &[String], key: &str, data_dir: &Path, log: impl FnOnce() -> String) {
    let found = complaints(urls, key, data_dir).unwrap_or_else(|error| panic!("{error:#}\n{}", log()));
    assert!(found.is_empty(), "{} things are not as the contract says\n\n{}\n", found.len(), found.join("\n"));
}

#[test]
fn the_contract_holds() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let server = Server::start(&Options::new(&data)).unwrap_or_else(|error| panic!("{error:#}"));
    holds(std::slice::from_ref(&server.url), &server.key, &data, || server.log());
}

#[test]
fn the_contract_holds_on_three_nodes_in_turn() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let dev = Dev::start(&data).unwrap_or_else(|error| panic!("{error:#}"));
    holds(&dev.urls, &dev.key, &data.join("node-1"), || dev.log());
}
