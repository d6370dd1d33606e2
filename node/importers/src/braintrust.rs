//! Braintrust: logs, experiments, datasets and prompts over the API that Assay itself serves.

use serde_json::{Map, Value, json};

use crate::error::ImportError;
use crate::fields::{list, object, text};
use crate::item::{DatasetRow, ItemHome, NeutralDataset, NeutralExperiment, NeutralItem, NeutralPrompt, NeutralSpan};
use crate::source::{ImportSource, ImportWindow, SourceAnswer, SourcePage, SourceRequest, SourceTask, encoded};

const NAME: &str = "braintrust";
/// Rows of a page. The service accepts no larger limit.
const ROWS_MAX: u64 = 500;
/// Fields that the server makes.
const OWN_FIELDS: [&str; 18] = [
    "_xact_id",
    "_pagination_key",
    "_async_scoring_state",
    "org_id",
    "project_id",
    "experiment_id",
    "dataset_id",
    "log_id",
    "is_root",
    "comments",
    "audit_data",
    "id",
    "span_id",
    "root_span_id",
    "span_parents",
    "classifications",
    "facets",
    "origin",
];

/// Project of the service.
#[derive(Clone, Debug)]
pub struct BraintrustSource {
    pub url: String,
    pub source_project: String,
    pub window: ImportWindow,
}

impl ImportSource for BraintrustSource {
    fn name(&self) -> &'static str {
        NAME
    }

    fn identity(&self) -> String {
        format!("{} {}", self.url, self.source_project)
    }

    fn first_tasks(&self) -> Vec<SourceTask> {
        vec![SourceTask::new("project")]
    }

    fn request(&self, task: &SourceTask) -> SourceRequest {
        let id = task.text("id");
        match task.step.as_str() {
            "project" => SourceRequest::Get(format!("/v1/project?project_name={}", encoded(&self.source_project))),
            "datasets" => SourceRequest::Get(format!("/v1/dataset?project_id={}", encoded(id))),
            "experiments" => SourceRequest::Get(format!("/v1/experiment?project_id={}", encoded(id))),
            "prompts" => SourceRequest::Get(format!("/v1/prompt?project_id={}", encoded(id))),
            source => SourceRequest::Search { path: "/btql".to_owned(), body: self.query(source, task) },
        }
    }

    fn page(&self, task: &SourceTask, answer: &SourceAnswer) -> Result<SourcePage, ImportError> {
        let body = answer.json(NAME, task)?;
        let mut page = SourcePage::default();
        match task.step.as_str() {
            "project" => {
                let id = list(&body, "objects").first().and_then(|project| text(project, "id"));
                let missing = || ImportError::Settings(format!("the source has no project {}", self.source_project));
                let about = json!({"id": id.ok_or_else(missing)?});
                let steps = ["project_logs", "datasets", "experiments", "prompts"];
                page.next.extend(steps.map(|step| SourceTask::about(step, about.clone())));
            }
            "datasets" | "experiments" => {
                list(&body, "objects").iter().for_each(|one| container(&task.step, one, &mut page));
            }
            "prompts" => list(&body, "objects").iter().for_each(|one| prompt(one, &mut page)),
            _ => {
                list(&body, "data").iter().for_each(|one| row(task, one, &mut page));
                let cursor = text(&body, "cursor").filter(|_| !list(&body, "data").is_empty());
                page.next.extend(cursor.map(|cursor| task.at(cursor)));
            }
        }
        Ok(page)
    }
}

impl BraintrustSource {
    /// Returns the query for a page of rows, as the SDKs send it.
    fn query(&self, source: &str, task: &SourceTask) -> Value {
        let created = json!({"op": "ident", "name": ["created"]});
        let literal = |time: &str| json!({"op": "literal", "value": time});
        let compare = |op: &str, time: &str| json!({"op": op, "left": created.clone(), "right": literal(time)});
        let mut query = json!({
            "select": [{"op": "star"}],
            "from": {"op": "function", "name": {"op": "ident", "name": [source]},
                "args": [{"op": "literal", "value": task.text("id")}]},
            "limit": ROWS_MAX,
        });
        if source == "project_logs" {
            let mut bounds = vec![compare("lt", &self.window.until)];
            bounds.extend(self.window.since.as_deref().map(|since| compare("ge", since)));
            query["filter"] = json!({"op": "and", "children": bounds});
        }
        if let Some(cursor) = &task.cursor {
            query["cursor"] = Value::from(cursor.as_str());
        }
        json!({"query": query, "fmt": "json", "use_columnstore": false, "brainstore_realtime": true})
    }
}

fn container(step: &str, record: &Value, page: &mut SourcePage) {
    let (Some(name), Some(id)) = (text(record, "name"), text(record, "id")) else { return };
    let (name, description) = (name.to_owned(), text(record, "description").map(str::to_owned));
    let metadata = object(record, "metadata").cloned().unwrap_or_default();
    let about = json!({"id": id, "name": name});
    if step == "datasets" {
        page.items.push(NeutralItem::Dataset(NeutralDataset { name, description, metadata }));
        page.next.push(SourceTask::about("dataset", about));
    } else {
        for key in ["repo_info", "base_exp_id", "parameters_id"] {
            if record.get(key).is_some_and(|value| !value.is_null()) {
                page.note(format!("`{key}` of experiments"));
            }
        }
        let dataset = None;
        page.items.push(NeutralItem::Experiment(NeutralExperiment { name, description, metadata, dataset }));
        page.next.push(SourceTask::about("experiment", about));
    }
}

/// Adds a row. It keeps its id, so that the application may update it.
fn row(task: &SourceTask, row: &Value, page: &mut SourcePage) {
    let (Some(fields), Some(id)) = (row.as_object(), text(row, "id")) else {
        return page.note("rows without an id");
    };
    for key in ["comments", "classifications", "facets", "origin"] {
        let is_there = row.get(key).is_some_and(|value| !value.is_null() && *value != json!([]) && *value != json!({}));
        if is_there {
            page.note(format!("`{key}` of rows"));
        }
    }
    let kept = fields.iter().filter(|(name, value)| !OWN_FIELDS.contains(&name.as_str()) && !value.is_null());
    let fields: Map<String, Value> = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    let row_id = Some(id.to_owned());
    if task.step == "dataset" {
        let (dataset, key) = (task.text("name").to_owned(), format!("row/{id}"));
        page.items.push(NeutralItem::DatasetRow(DatasetRow { dataset, key, row_id, fields }));
        return;
    }
    let home = match task.step.as_str() {
        "experiment" => ItemHome::Experiment(task.text("name").to_owned()),
        _ => ItemHome::Logs,
    };
    let span = text(row, "span_id").unwrap_or(id).to_owned();
    let trace = text(row, "root_span_id").unwrap_or(&span).to_owned();
    let parents = crate::fields::texts(row, "span_parents");
    let key = format!("row/{id}");
    let span = NeutralSpan { home, key, row_id, trace, span, parents, fields, ..NeutralSpan::default() };
    page.items.push(NeutralItem::Span(Box::new(span)));
}

fn prompt(prompt: &Value, page: &mut SourcePage) {
    let Some(name) = text(prompt, "name") else { return };
    page.note("earlier versions of prompts: the newest one is imported");
    page.items.push(NeutralItem::Prompt(Box::new(NeutralPrompt {
        name: text(prompt, "slug").unwrap_or(name).to_owned(),
        description: text(prompt, "description").map(str::to_owned),
        version: text(prompt, "_xact_id").unwrap_or_default().to_owned(),
        prompt_data: prompt.get("prompt_data").cloned().unwrap_or_default(),
        tags: crate::fields::texts(prompt, "tags"),
        labels: Vec::new(),
        metadata: object(prompt, "metadata").cloned().unwrap_or_default(),
    })));
}
