//! Phoenix: its REST API with spans, annotations, datasets, experiments and prompts.

use serde_json::{Map, Value, json};

use crate::error::ImportError;
use crate::fields::{id, json_number, list, number, object, seconds, text, time};
use crate::item::{
    DatasetRow, ItemHome, NeutralDataset, NeutralExperiment, NeutralItem, NeutralPrompt, NeutralScore, NeutralSpan,
    ScoreValue,
};
use crate::otlp;
use crate::source::{ImportSource, ImportWindow, SourceAnswer, SourcePage, SourceRequest, SourceTask, encoded};

const NAME: &str = "phoenix";
/// Spans of a page. The ids of all of them are in one URL for their annotations.
const SPANS_MAX: usize = 100;
const LIST_MAX: usize = 100;
/// Annotations of a page, several for each span.
const ANNOTATIONS_MAX: usize = 1000;

/// Phoenix server.
#[derive(Clone, Debug)]
pub struct PhoenixSource {
    pub url: String,
    pub window: ImportWindow,
    /// Project to import. `None` imports all.
    pub source_project: Option<String>,
}

impl ImportSource for PhoenixSource {
    fn name(&self) -> &'static str {
        NAME
    }

    fn identity(&self) -> String {
        self.url.clone()
    }

    fn first_tasks(&self) -> Vec<SourceTask> {
        let projects = match &self.source_project {
            Some(name) => SourceTask::about("spans", json!({"name": name, "id": name})),
            None => SourceTask::new("projects"),
        };
        vec![projects, SourceTask::new("datasets"), SourceTask::new("prompts")]
    }

    fn request(&self, task: &SourceTask) -> SourceRequest {
        let cursor = task.cursor.as_deref().map(|cursor| format!("&cursor={}", encoded(cursor))).unwrap_or_default();
        let id = encoded(task.text("id"));
        let path = match task.step.as_str() {
            "projects" => format!("projects?limit={LIST_MAX}{cursor}"),
            "spans" => {
                let since = self.window.since.as_deref().map(|since| format!("&start_time={}", encoded(since)));
                let until = encoded(&self.window.until);
                let since = since.unwrap_or_default();
                format!("projects/{id}/spans?limit={SPANS_MAX}&end_time={until}{since}{cursor}")
            }
            "annotations" => {
                let spans = list(&task.object, "spans").iter().filter_map(|span| text(span, "span"));
                let spans: Vec<String> = spans.map(|span| format!("span_ids={}", encoded(span))).collect();
                format!("projects/{id}/span_annotations?{}&limit={ANNOTATIONS_MAX}{cursor}", spans.join("&"))
            }
            "datasets" => format!("datasets?limit={LIST_MAX}{cursor}"),
            "examples" => format!("datasets/{id}/examples"),
            "experiments" => format!("datasets/{id}/experiments?limit={LIST_MAX}{cursor}"),
            "experiment" => format!("experiments/{id}/json"),
            "prompts" => format!("prompts?limit={LIST_MAX}{cursor}"),
            "versions" => format!("prompts/{id}/versions?limit={LIST_MAX}{cursor}"),
            _ => format!("prompt_versions/{id}/tags?limit={LIST_MAX}{cursor}"),
        };
        SourceRequest::Get(format!("/v1/{path}"))
    }

    fn page(&self, task: &SourceTask, answer: &SourceAnswer) -> Result<SourcePage, ImportError> {
        let mut page = SourcePage::default();
        // Earlier servers have no lists of annotations, datasets, experiments or prompts. An experiment without
        // runs has no JSON either.
        let is_optional = !matches!(task.step.as_str(), "projects" | "spans");
        if is_optional && answer.is_absent() {
            let is_empty_experiment = task.step == "experiment";
            if !is_empty_experiment {
                page.note(format!("{}, which this version of the server does not return", task.step));
            }
            return Ok(page);
        }
        let body = answer.json(NAME, task)?;
        match task.step.as_str() {
            "projects" => {
                for project in list(&body, "data") {
                    let about = json!({"name": text(project, "name"), "id": text(project, "id")});
                    page.next.push(SourceTask::about("spans", about));
                }
            }
            "spans" => spans(task, &body, &mut page)?,
            "annotations" => list(&body, "data").iter().for_each(|one| annotation(task, one, &mut page)),
            "datasets" => list(&body, "data").iter().for_each(|one| dataset(one, &mut page)),
            "examples" => {
                let examples = body.pointer("/data/examples").and_then(Value::as_array).into_iter().flatten();
                page.items.extend(examples.map(|one| NeutralItem::DatasetRow(row(task.text("name"), one))));
            }
            "experiments" => list(&body, "data").iter().for_each(|one| experiment(task, one, &mut page)),
            "experiment" => {
                body.as_array().into_iter().flatten().for_each(|run| experiment_run(task, run, &mut page));
            }
            "prompts" => {
                for prompt in list(&body, "data") {
                    let about = json!({"name": text(prompt, "name"), "id": text(prompt, "id"),
                        "description": text(prompt, "description")});
                    page.next.push(SourceTask::about("versions", about));
                }
            }
            "versions" => versions(task, &body, &mut page),
            _ => prompt(task, &body, &mut page),
        }
        let is_list = !matches!(task.step.as_str(), "examples" | "experiment" | "tags" | "versions");
        if let Some(cursor) = text(&body, "next_cursor").filter(|_| is_list) {
            page.next.push(task.at(cursor));
        }
        Ok(page)
    }
}

/// Adds spans, and a task for their annotations.
fn spans(task: &SourceTask, body: &Value, page: &mut SourcePage) -> Result<(), ImportError> {
    let mut scored = Vec::new();
    for span in list(body, "data") {
        let place = otlp::span(span, page).map_err(|why| ImportError::Malformed {
            source_name: NAME,
            what: task.to_string(),
            why: why.to_string(),
        })?;
        let Some(NeutralItem::Span(made)) = place.and_then(|place| page.items.get_mut(place)) else { continue };
        made.set_in("metadata", "phoenix", json!({"project": task.text("name")}));
        if let Some(cost) = span.pointer("/attributes/llm.cost.total").and_then(crate::fields::number_of) {
            made.set_in("metrics", "estimated_cost", json_number(cost));
        }
        scored.push(json!({"span": made.span, "row": made.row_id}));
    }
    if !scored.is_empty() {
        let about = json!({"id": task.text("id"), "spans": scored});
        page.next.push(SourceTask::about("annotations", about));
    }
    Ok(())
}

fn annotation(task: &SourceTask, annotation: &Value, page: &mut SourcePage) {
    let span = text(annotation, "span_id").unwrap_or_default();
    let row = list(&task.object, "spans").iter().find(|known| text(known, "span") == Some(span));
    let Some(row) = row.and_then(|row| text(row, "row")) else { return page.note("annotations of unknown spans") };
    let result = annotation.get("result").unwrap_or(&Value::Null);
    let value = match (number(result, "score"), text(result, "label")) {
        (Some(score), _) => ScoreValue::Number(score),
        (None, Some(label)) => ScoreValue::Text(label.to_owned()),
        (None, None) => match text(result, "explanation") {
            Some(note) => ScoreValue::Text(note.to_owned()),
            None => return page.note("annotations without a score, a label or a text"),
        },
    };
    let mut details = Map::new();
    for (key, from, name) in [
        ("label", result, "label"),
        ("comment", result, "explanation"),
        ("source", annotation, "annotator_kind"),
        ("metadata", annotation, "metadata"),
        ("timestamp", annotation, "created_at"),
        ("author_user_id", annotation, "user_id"),
    ] {
        crate::item::set(&mut details, key, from.get(name).cloned().unwrap_or_default());
    }
    page.items.push(NeutralItem::Score(NeutralScore {
        home: ItemHome::Logs,
        target: format!("span/{row}"),
        row_id: Some(row.to_owned()),
        id: id(annotation, "id").unwrap_or_default(),
        name: text(annotation, "name").unwrap_or("annotation").to_owned(),
        value,
        details,
    }));
}

fn dataset(dataset: &Value, page: &mut SourcePage) {
    let (Some(name), Some(id)) = (text(dataset, "name"), text(dataset, "id")) else { return };
    let mut metadata = object(dataset, "metadata").cloned().unwrap_or_default();
    metadata.insert("phoenix".to_owned(), json!({"id": id}));
    let description = text(dataset, "description").map(str::to_owned);
    page.items.push(NeutralItem::Dataset(NeutralDataset { name: name.to_owned(), description, metadata }));
    let about = json!({"name": name, "id": id});
    page.next.push(SourceTask::about("examples", about.clone()));
    page.next.push(SourceTask::about("experiments", about));
}

fn example_key(example: &str) -> String {
    format!("example/{example}")
}

fn row(dataset: &str, example: &Value) -> DatasetRow {
    let id = id(example, "id").unwrap_or_default();
    let mut metadata = object(example, "metadata").cloned().unwrap_or_default();
    metadata.insert("phoenix".to_owned(), json!({"id": id, "source": example.get("source")}));
    let mut fields = Map::new();
    fields.insert("input".to_owned(), example.get("input").cloned().unwrap_or_default());
    fields.insert("expected".to_owned(), example.get("output").cloned().unwrap_or_default());
    fields.insert("metadata".to_owned(), Value::Object(metadata));
    crate::item::set(&mut fields, "created", Value::from(time(example, "updated_at")));
    DatasetRow { dataset: dataset.to_owned(), key: example_key(&id), row_id: None, fields }
}

fn experiment(task: &SourceTask, experiment: &Value, page: &mut SourcePage) {
    let Some(id) = text(experiment, "id") else { return };
    // Names of experiments repeat, so that the id is a part of ours.
    let name = format!("{} {id}", text(experiment, "name").unwrap_or("experiment"));
    let mut metadata = object(experiment, "metadata").cloned().unwrap_or_default();
    let version = text(experiment, "dataset_version_id");
    metadata.insert("phoenix".to_owned(), json!({"id": id, "dataset_version": version}));
    page.items.push(NeutralItem::Experiment(NeutralExperiment {
        name: name.clone(),
        description: text(experiment, "description").map(str::to_owned),
        metadata,
        dataset: Some(task.text("name").to_owned()),
    }));
    let about = json!({"name": task.text("name"), "id": id, "experiment": name});
    page.next.push(SourceTask::about("experiment", about));
}

/// Adds a run of an experiment with its evaluations.
fn experiment_run(task: &SourceTask, run: &Value, page: &mut SourcePage) {
    let example = id(run, "example_id").unwrap_or_default();
    let key = format!("run/{}/{example}/{}", task.text("id"), id(run, "repetition_number").unwrap_or_default());
    let place = crate::ids::digits(&[&key]);
    let mut span = NeutralSpan {
        home: ItemHome::Experiment(task.text("experiment").to_owned()),
        key,
        trace: place.clone(),
        span: place,
        origin: Some((task.text("name").to_owned(), example_key(&example))),
        ..NeutralSpan::default()
    };
    span.set("span_attributes", json!({"name": "eval", "type": "eval"}));
    for (field, from) in
        [("input", "input"), ("output", "output"), ("expected", "reference_output"), ("error", "error")]
    {
        span.set(field, run.get(from).cloned().unwrap_or_default());
    }
    span.set("created", time(run, "start_time"));
    for (metric, from) in [("start", "start_time"), ("end", "end_time")] {
        let at = time(run, from).as_deref().and_then(seconds);
        span.set_in("metrics", metric, at.map_or(Value::Null, json_number));
    }
    for (metric, from) in [("prompt_tokens", "prompt_token_count"), ("completion_tokens", "completion_token_count")] {
        span.set_in("metrics", metric, number(run, from).map_or(Value::Null, json_number));
    }
    let about = json!({"trace_id": text(run, "trace_id"), "repetition": run.get("repetition_number")});
    span.set_in("metadata", "phoenix", about);
    for annotation in list(run, "annotations") {
        let name = text(annotation, "name").unwrap_or("annotation");
        let value = number(annotation, "score").map_or_else(|| annotation["label"].clone(), json_number);
        span.set_in("scores", name, value);
        let kept = span.fields.entry("metadata").or_insert_with(|| json!({}));
        kept["evaluations"][name] = annotation.clone();
    }
    page.items.push(NeutralItem::Span(Box::new(span)));
}

/// Adds a task for each version, oldest first, which reads its tags.
fn versions(task: &SourceTask, body: &Value, page: &mut SourcePage) {
    let mut collected = list(&task.object, "versions").to_vec();
    collected.extend_from_slice(list(body, "data"));
    if let Some(cursor) = text(body, "next_cursor") {
        // The newest version comes first, so that all are needed before the oldest one is written.
        let mut next = task.at(cursor);
        next.object["versions"] = Value::Array(collected);
        return page.next.push(next);
    }
    for version in collected.into_iter().rev() {
        let about = json!({"name": task.text("name"), "description": task.text("description"),
            "id": text(&version, "id"), "version": version});
        page.next.push(SourceTask::about("tags", about));
    }
}

fn prompt(task: &SourceTask, body: &Value, page: &mut SourcePage) {
    let version = task.object.get("version").unwrap_or(&Value::Null);
    let template = version.get("template").unwrap_or(&Value::Null);
    let block = if text(template, "type") == Some("string") {
        json!({"type": "completion", "content": text(template, "template")})
    } else {
        let messages: Vec<Value> = list(template, "messages").iter().filter_map(|one| message(one, page)).collect();
        json!({"type": "chat", "messages": messages})
    };
    let format = text(version, "template_format").unwrap_or_default();
    if format == "F_STRING" {
        page.note("prompts whose variables are in single braces, which are kept as they are");
    }
    let provider = text(version, "model_provider").unwrap_or_default().to_ascii_lowercase();
    let parameters = version.get("invocation_parameters").and_then(|all| object(all, &provider)).cloned();
    let mut metadata = Map::from_iter([("model_provider".to_owned(), Value::from(provider))]);
    for key in ["tools", "response_format", "invocation_parameters", "template_format"] {
        crate::item::set(&mut metadata, key, version.get(key).cloned().unwrap_or_default());
    }
    if version.get("tools").is_some_and(|tools| !tools.is_null()) {
        page.note("tools of prompts, which are in their metadata");
    }
    let format = if format == "MUSTACHE" { "mustache" } else { "none" };
    let data = json!({"prompt": block, "template_format": format,
        "options": {"model": text(version, "model_name"), "params": parameters.unwrap_or_default()}});
    page.items.push(NeutralItem::Prompt(Box::new(NeutralPrompt {
        name: task.text("name").to_owned(),
        description: Some(task.text("description").to_owned()).filter(|text| !text.is_empty()),
        version: task.text("id").to_owned(),
        prompt_data: data,
        tags: Vec::new(),
        labels: list(body, "data").iter().filter_map(|tag| text(tag, "name")).map(str::to_owned).collect(),
        metadata,
    })));
}

/// Converts a message. Parts that are no texts have no equivalent in templates.
fn message(message: &Value, page: &mut SourcePage) -> Option<Value> {
    let role = match text(message, "role")? {
        "ai" | "model" => "assistant",
        role => role,
    };
    let content = match message.get("content")? {
        Value::String(content) => content.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| text(part, "text")).collect();
            if texts.len() < parts.len() {
                page.note("parts of prompt messages that are no texts");
            }
            texts.join("\n")
        }
        _ => return None,
    };
    Some(json!({"role": role, "content": content}))
}
