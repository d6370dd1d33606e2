//! Target of an import: a project of a running server, over its public API.

use std::collections::HashMap;

use anyhow::Context;
use assay_node_egress::Method;
use assay_node_importers::{NeutralDataset, NeutralExperiment, NeutralPrompt, PROMPT_KEY, TargetObject, TargetStep};
use serde_json::{Map, Value, json};

use crate::http::HttpPeer;

/// Rows of a page that is read back.
const READ_ROWS_MAX: u64 = 1000;

/// Receiver of messages for people.
pub(crate) type Say<'s> = &'s mut dyn FnMut(&str);

/// Project of a server.
#[derive(Debug)]
pub(crate) struct Target {
    peer: HttpPeer,
    project: String,
    /// Ids of objects by kind and name.
    ids: HashMap<(&'static str, String), String>,
    /// Notes for the report.
    pub(crate) notes: Vec<String>,
    /// Whether the key may pin versions of prompts to environments.
    pins_environments: bool,
}

fn id_of(record: &Value) -> anyhow::Result<String> {
    Ok(record["id"].as_str().context("the server answered without an id")?.to_owned())
}

impl Target {
    /// Opens the project, and creates it if it does not exist.
    pub(crate) async fn open(peer: HttpPeer, project: &str, say: Say<'_>) -> anyhow::Result<Target> {
        let made = peer.json(Method::POST, "/v1/project", Some(&json!({"name": project})), say).await?;
        let project = id_of(&made)?;
        Ok(Target { peer, project, ids: HashMap::new(), notes: Vec::new(), pins_environments: true })
    }

    pub(crate) fn project(&self) -> &str {
        &self.project
    }

    /// Carries out a step. Each may be repeated.
    pub(crate) async fn run(&mut self, step: &TargetStep, say: Say<'_>) -> anyhow::Result<()> {
        match step {
            TargetStep::Dataset(dataset) => self.dataset(dataset, say).await.map(drop),
            TargetStep::Experiment(experiment) => self.experiment(experiment, say).await.map(drop),
            TargetStep::Rows { object, rows } => self.insert(object, rows, say).await,
            TargetStep::Prompt(prompt) => self.prompt(prompt, say).await,
        }
    }

    async fn dataset(&mut self, dataset: &NeutralDataset, say: Say<'_>) -> anyhow::Result<String> {
        if let Some(id) = self.ids.get(&("dataset", dataset.name.clone())) {
            return Ok(id.clone());
        }
        let body = json!({"project_id": self.project, "name": dataset.name, "description": dataset.description,
            "metadata": dataset.metadata});
        let id = id_of(&self.peer.json(Method::POST, "/v1/dataset", Some(&body), say).await?)?;
        self.ids.insert(("dataset", dataset.name.clone()), id.clone());
        Ok(id)
    }

    async fn experiment(&mut self, experiment: &NeutralExperiment, say: Say<'_>) -> anyhow::Result<String> {
        if let Some(id) = self.ids.get(&("experiment", experiment.name.clone())) {
            return Ok(id.clone());
        }
        let mut body = json!({"project_id": self.project, "name": experiment.name, "ensure_new": false,
            "description": experiment.description, "metadata": experiment.metadata});
        if let Some(name) = &experiment.dataset {
            let dataset = NeutralDataset { name: name.clone(), ..NeutralDataset::default() };
            body["dataset_id"] = Value::from(self.dataset(&dataset, say).await?);
        }
        let id = id_of(&self.peer.json(Method::POST, "/v1/experiment", Some(&body), say).await?)?;
        self.ids.insert(("experiment", experiment.name.clone()), id.clone());
        Ok(id)
    }

    /// Returns the kind and id of an object of the target.
    pub(crate) async fn object(
        &mut self,
        object: &TargetObject,
        say: Say<'_>,
    ) -> anyhow::Result<(&'static str, String)> {
        match object {
            TargetObject::Logs => Ok(("project_logs", self.project.clone())),
            TargetObject::Experiment(name) => {
                let experiment = NeutralExperiment { name: name.clone(), ..NeutralExperiment::default() };
                Ok(("experiment", self.experiment(&experiment, say).await?))
            }
            TargetObject::Dataset(name) => {
                let dataset = NeutralDataset { name: name.clone(), ..NeutralDataset::default() };
                Ok(("dataset", self.dataset(&dataset, say).await?))
            }
        }
    }

    async fn insert(&mut self, object: &TargetObject, rows: &[Map<String, Value>], say: Say<'_>) -> anyhow::Result<()> {
        let (kind, id) = self.object(object, say).await?;
        let mut events = Vec::with_capacity(rows.len());
        for row in rows {
            let mut row = row.clone();
            if let Some(Value::Object(origin)) = row.get_mut("origin")
                && let Some(Value::String(name)) = origin.remove("dataset_name")
            {
                let dataset = NeutralDataset { name, ..NeutralDataset::default() };
                origin.insert("object_id".to_owned(), Value::from(self.dataset(&dataset, say).await?));
            }
            events.push(Value::Object(row));
        }
        let path = format!("/v1/{kind}/{id}/insert");
        let answer = self.peer.json(Method::POST, &path, Some(&json!({"events": events})), say).await?;
        let stored = answer["row_ids"].as_array().map_or(0, Vec::len);
        anyhow::ensure!(stored == rows.len(), "the server stored {stored} of {} rows", rows.len());
        Ok(())
    }

    /// Writes a version of a prompt, unless it is there already.
    async fn prompt(&mut self, prompt: &NeutralPrompt, say: Say<'_>) -> anyhow::Result<()> {
        let query = format!("/v1/prompt?project_id={}&slug={}", self.project, encoded(&prompt.name));
        let found = self.peer.json(Method::GET, &query, None, say).await?;
        let written = match found.pointer("/objects/0") {
            Some(head) => self.written(&id_of(head)?, prompt, say).await?,
            None => None,
        };
        let stored = match written {
            Some(written) => written,
            None => {
                let body = json!({"project_id": self.project, "name": prompt.name, "slug": prompt.name,
                    "description": prompt.description, "prompt_data": prompt.prompt_data, "tags": prompt.tags,
                    "metadata": prompt.metadata});
                self.peer.json(Method::PUT, "/v1/prompt", Some(&body), say).await?
            }
        };
        let version = stored["_xact_id"].as_str().unwrap_or_default().to_owned();
        let id = id_of(&stored)?;
        for label in prompt.labels.iter().filter(|_| self.pins_environments).cloned().collect::<Vec<_>>() {
            self.pin(&id, &version, &label, say).await?;
        }
        Ok(())
    }

    /// Returns the write of a version that an earlier run has made.
    async fn written(&self, id: &str, prompt: &NeutralPrompt, say: Say<'_>) -> anyhow::Result<Option<Value>> {
        let query = format!("SELECT * FROM project_prompts('{}') WHERE id = '{id}'", self.project);
        let body = json!({"query": query, "audit_log": true, "fmt": "json"});
        let mut answer = self.peer.json(Method::POST, "/btql", Some(&body), say).await?;
        let Value::Array(writes) = answer["data"].take() else { anyhow::bail!("the server answered without rows") };
        let origin = prompt.metadata.get(PROMPT_KEY);
        Ok(writes.into_iter().find(|write| write.pointer(&format!("/metadata/{PROMPT_KEY}")) == origin))
    }

    /// Pins a version to the environment of a label. A key without this right imports everything else.
    async fn pin(&mut self, prompt: &str, version: &str, label: &str, say: Say<'_>) -> anyhow::Result<()> {
        let slug = slug_of(label);
        let environment = json!({"name": label, "slug": slug});
        // An environment that exists is refused as well, so that only the pin itself is judged.
        self.peer.call(Method::POST, "/environment", Some(&environment), say).await?;
        let path = format!("/environment-object/prompt/{prompt}/{slug}");
        let pinned = self.peer.call(Method::PUT, &path, Some(&json!({"object_version": version})), say).await?;
        if !pinned.is_success() {
            self.pins_environments = false;
            let why = pinned.shown();
            self.notes.push(format!("labels of prompts are in their metadata only: the server refused one: {why}"));
        }
        Ok(())
    }

    /// Reads a page of rows with the fields that are compared. Also returns the cursor of the next page.
    pub(crate) async fn read(
        &self,
        kind: &str,
        id: &str,
        cursor: Option<&str>,
        say: Say<'_>,
    ) -> anyhow::Result<(Vec<Map<String, Value>>, Option<String>)> {
        let fields: &[&str] = match kind {
            "dataset" => &["id"],
            _ => &["id", "span_id", "root_span_id", "span_parents", "span_attributes", "metrics", "scores"],
        };
        let select: Vec<Value> =
            fields.iter().map(|field| json!({"alias": field, "expr": {"op": "ident", "name": [field]}})).collect();
        let mut query = json!({
            "select": select,
            "from": {"op": "function", "name": {"op": "ident", "name": [kind]},
                "args": [{"op": "literal", "value": id}]},
            "limit": READ_ROWS_MAX,
        });
        if let Some(cursor) = cursor {
            query["cursor"] = Value::from(cursor);
        }
        let body = json!({"query": query, "fmt": "json"});
        let mut answer = self.peer.json(Method::POST, "/btql", Some(&body), say).await?;
        let Value::Array(rows) = answer["data"].take() else { anyhow::bail!("the server answered without rows") };
        let rows = rows.into_iter().filter_map(|row| if let Value::Object(row) = row { Some(row) } else { None });
        let cursor = answer["cursor"].as_str().map(str::to_owned);
        Ok((rows.collect(), cursor))
    }

    /// Returns whether the prompt is there.
    pub(crate) async fn prompts(&self, say: Say<'_>) -> anyhow::Result<usize> {
        let found = self.peer.json(Method::GET, &format!("/v1/prompt?project_id={}", self.project), None, say).await?;
        Ok(found["objects"].as_array().map_or(0, Vec::len))
    }
}

/// Returns a text percent-encoded for a query.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Returns a label as the slug of an environment: lower-case letters, digits and dashes.
fn slug_of(label: &str) -> String {
    let slug: String =
        label.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    slug.trim_matches('-').to_owned()
}
