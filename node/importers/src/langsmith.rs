//! LangSmith: runs, feedback, datasets and experiments of its API, and the Parquet files of its bulk export.

use serde_json::{Map, Value, json};

use crate::error::ImportError;
use crate::fields::{id, json_number, list, number, object, parsed, parsed_object, seconds, text, texts, time};
use crate::item::{
    DatasetRow, ItemHome, NeutralDataset, NeutralExperiment, NeutralItem, NeutralScore, NeutralSpan, ScoreValue,
};
use crate::otlp::{FILES, file_request, files};
use crate::source::{ImportSource, ImportWindow, SourceAnswer, SourcePage, SourceRequest, SourceTask, encoded};

const NAME: &str = "langsmith";
/// Entries of a page. The ids of all runs of a page are in one URL for their feedback.
const PAGE_MAX: u64 = 100;
/// Types of spans by the type of a run.
const KINDS: [(&str, &str); 7] = [
    ("llm", "llm"),
    ("embedding", "llm"),
    ("tool", "tool"),
    ("chain", "task"),
    ("retriever", "function"),
    ("prompt", "function"),
    ("parser", "function"),
];

/// Workspace of LangSmith.
#[derive(Clone, Debug)]
pub struct LangsmithSource {
    pub url: String,
    pub window: ImportWindow,
    /// Tracing project to import. `None` imports all, with datasets and experiments.
    pub source_project: Option<String>,
}

impl ImportSource for LangsmithSource {
    fn name(&self) -> &'static str {
        NAME
    }

    fn identity(&self) -> String {
        self.url.clone()
    }

    fn first_tasks(&self) -> Vec<SourceTask> {
        match &self.source_project {
            Some(name) => vec![SourceTask::about("sessions", json!({"name": name}))],
            None => vec![SourceTask::new("datasets"), SourceTask::new("sessions")],
        }
    }

    fn request(&self, task: &SourceTask) -> SourceRequest {
        let paged = format!("limit={PAGE_MAX}&offset={}", task.number(0));
        let (dataset, name) = (encoded(task.text("id")), encoded(task.text("name")));
        let path = match task.step.as_str() {
            "sessions" if name.is_empty() => format!("sessions?{paged}"),
            "sessions" => format!("sessions?name={name}&{paged}"),
            "session_dataset" => format!("datasets/{}", encoded(task.text("dataset"))),
            "datasets" => format!("datasets?{paged}"),
            "examples" => format!("examples?dataset={dataset}&{paged}"),
            "feedback" => {
                let runs = list(&task.object, "runs").iter().filter_map(Value::as_str);
                let runs: Vec<String> = runs.map(|run| format!("run={}", encoded(run))).collect();
                format!("feedback?{}&{paged}", runs.join("&"))
            }
            _ => {
                let mut body = json!({"session": [task.text("session")], "limit": PAGE_MAX, "order": "asc"});
                body["filter"] = Value::from(format!("lt(start_time, {:?})", self.window.until));
                if let Some(since) = &self.window.since {
                    body["start_time"] = Value::from(since.as_str());
                }
                if let Some(cursor) = &task.cursor {
                    body["cursor"] = Value::from(cursor.as_str());
                }
                return SourceRequest::Search { path: "/api/v1/runs/query".to_owned(), body };
            }
        };
        SourceRequest::Get(format!("/api/v1/{path}"))
    }

    fn page(&self, task: &SourceTask, answer: &SourceAnswer) -> Result<SourcePage, ImportError> {
        let mut page = SourcePage::default();
        if task.step == "session_dataset" && answer.is_absent() {
            let runs = experiment_runs(task, "", &mut page.items);
            page.next.push(runs);
            return Ok(page);
        }
        let body = answer.json(NAME, task)?;
        let entries = body.as_array().map_or(&[][..], Vec::as_slice);
        match task.step.as_str() {
            "sessions" => page.next.extend(entries.iter().filter_map(session)),
            "session_dataset" => {
                let name = text(&body, "name").unwrap_or_default().to_owned();
                let runs = experiment_runs(task, &name, &mut page.items);
                page.next.push(runs);
            }
            "datasets" => entries.iter().for_each(|one| dataset(one, &mut page)),
            "examples" => page.items.extend(entries.iter().map(|one| example(task.text("name"), one))),
            "feedback" => entries.iter().for_each(|one| feedback(task, one, &mut page)),
            _ => {
                let runs = list(&body, "runs");
                for run in runs {
                    page.items.push(NeutralItem::Span(Box::new(span(task, run))));
                }
                let ids: Vec<&str> = runs.iter().filter_map(|run| text(run, "id")).collect();
                if !ids.is_empty() {
                    let about = json!({"runs": ids, "experiment": task.text("experiment")});
                    page.next.push(SourceTask::about("feedback", about));
                }
                let cursor = body.pointer("/cursors/next").and_then(Value::as_str);
                page.next.extend(cursor.map(|cursor| task.at(cursor)));
            }
        }
        if body.is_array() && entries.len() as u64 == PAGE_MAX {
            page.next.push(task.at(task.number(0) + PAGE_MAX));
        }
        Ok(page)
    }
}

/// Returns the task of a session: of a tracing project, or of an experiment on a dataset.
fn session(session: &Value) -> Option<SourceTask> {
    let (id, name) = (text(session, "id")?, text(session, "name")?);
    match text(session, "reference_dataset_id") {
        None => Some(SourceTask::about("runs", json!({"session": id, "name": name}))),
        Some(dataset) => {
            let about = json!({"session": id, "name": name, "dataset": dataset,
                "description": text(session, "description"), "extra": session.get("extra")});
            Some(SourceTask::about("session_dataset", about))
        }
    }
}

/// Adds the experiment of a session, and returns the task for its runs.
fn experiment_runs(task: &SourceTask, dataset: &str, items: &mut Vec<NeutralItem>) -> SourceTask {
    let name = task.text("name");
    let extra = task.object.get("extra").unwrap_or(&Value::Null);
    let mut metadata = object(extra, "metadata").cloned().unwrap_or_default();
    metadata.insert(NAME.to_owned(), json!({"id": task.text("session")}));
    items.push(NeutralItem::Experiment(NeutralExperiment {
        name: name.to_owned(),
        description: text(&task.object, "description").map(str::to_owned),
        metadata,
        dataset: Some(dataset.to_owned()).filter(|name| !name.is_empty()),
    }));
    let about = json!({"session": task.text("session"), "name": name, "experiment": name, "dataset": dataset});
    SourceTask::about("runs", about)
}

fn dataset(dataset: &Value, page: &mut SourcePage) {
    let (Some(id), Some(name)) = (text(dataset, "id"), text(dataset, "name")) else { return };
    let mut metadata = object(dataset, "metadata").cloned().unwrap_or_default();
    metadata.insert(NAME.to_owned(), json!({"id": id}));
    let description = text(dataset, "description").map(str::to_owned);
    page.items.push(NeutralItem::Dataset(NeutralDataset { name: name.to_owned(), description, metadata }));
    page.next.push(SourceTask::about("examples", json!({"id": id, "name": name})));
}

fn example_key(example: &str) -> String {
    format!("example/{example}")
}

fn example(dataset: &str, example: &Value) -> NeutralItem {
    let id = id(example, "id").unwrap_or_default();
    let mut metadata = object(example, "metadata").cloned().unwrap_or_default();
    metadata.insert(NAME.to_owned(), json!({"id": id, "source_run_id": example.get("source_run_id")}));
    let mut fields = Map::new();
    fields.insert("input".to_owned(), example.get("inputs").cloned().unwrap_or_default());
    fields.insert("expected".to_owned(), example.get("outputs").cloned().unwrap_or_default());
    fields.insert("metadata".to_owned(), Value::Object(metadata));
    crate::item::set(&mut fields, "created", Value::from(time(example, "created_at")));
    NeutralItem::DatasetRow(DatasetRow { dataset: dataset.to_owned(), key: example_key(&id), row_id: None, fields })
}

/// Returns the span of a run.
fn span(task: &SourceTask, run: &Value) -> NeutralSpan {
    let id = id(run, "id").unwrap_or_default();
    let home = match task.text("experiment") {
        "" => ItemHome::Logs,
        name => ItemHome::Experiment(name.to_owned()),
    };
    let mut span = NeutralSpan {
        home,
        key: format!("run/{id}"),
        trace: text(run, "trace_id").unwrap_or(&id).to_owned(),
        parents: text(run, "parent_run_id").map(str::to_owned).into_iter().collect(),
        span: id.clone(),
        ..NeutralSpan::default()
    };
    let kind = text(run, "run_type").unwrap_or("chain");
    let ours = KINDS.iter().find(|(name, _)| *name == kind).map_or("task", |(_, ours)| *ours);
    let is_top_of_experiment = span.parents.is_empty() && matches!(span.home, ItemHome::Experiment(_));
    let ours = if is_top_of_experiment { "eval" } else { ours };
    span.set("span_attributes", json!({"name": text(run, "name").unwrap_or("run"), "type": ours}));
    for (field, from) in [("input", "inputs"), ("output", "outputs"), ("error", "error")] {
        span.set(field, run.get(from).map(parsed).unwrap_or_default());
    }
    span.set("tags", texts(&json!({"tags": run.get("tags").map(parsed)}), "tags"));
    span.set("created", time(run, "start_time"));
    let extra = parsed_object(run, "extra");
    let mut metadata = match extra.get("metadata") {
        Some(Value::Object(metadata)) => metadata.clone(),
        _ => Map::new(),
    };
    let invocation = extra.get("invocation_params").unwrap_or(&Value::Null);
    let model = metadata.get("ls_model_name").and_then(Value::as_str).or_else(|| text(invocation, "model"));
    if let Some(model) = model.map(str::to_owned) {
        metadata.insert("model".to_owned(), Value::from(model));
    }
    let project = text(run, "session_name").unwrap_or_else(|| task.text("name"));
    metadata.insert(NAME.to_owned(), json!({"id": id, "project": project, "run_type": kind}));
    span.set("metadata", metadata);
    metrics(&mut span, run, kind);
    if let Some(example) = text(run, "reference_example_id").filter(|_| is_top_of_experiment)
        && !task.text("dataset").is_empty()
    {
        span.origin = Some((task.text("dataset").to_owned(), example_key(example)));
    }
    span
}

fn metrics(span: &mut NeutralSpan, run: &Value, kind: &str) {
    let at = |key: &str| time(run, key).as_deref().and_then(seconds);
    let json = |value: Option<f64>| value.map_or(Value::Null, json_number);
    span.set_in("metrics", "start", json(at("start_time")));
    span.set_in("metrics", "end", json(at("end_time")));
    let first = at("first_token_time").zip(at("start_time")).map(|(first, start)| first - start);
    span.set_in("metrics", "time_to_first_token", json(first.filter(|first| *first >= 0.0)));
    // Other runs repeat the sums of the calls below them, which would count twice.
    if !matches!(kind, "llm" | "embedding") {
        return;
    }
    for (metric, from) in
        [("prompt_tokens", "prompt_tokens"), ("completion_tokens", "completion_tokens"), ("tokens", "total_tokens")]
    {
        span.set_in("metrics", metric, json(number(run, from).filter(|count| *count > 0.0)));
    }
    let cached = number(&Value::Object(parsed_object(run, "prompt_token_details")), "cache_read");
    span.set_in("metrics", "prompt_cached_tokens", json(cached));
    span.set_in("metrics", "estimated_cost", json(number(run, "total_cost")));
}

fn feedback(task: &SourceTask, feedback: &Value, page: &mut SourcePage) {
    let Some(run) = text(feedback, "run_id") else { return page.note("feedback on whole sessions") };
    let home = match task.text("experiment") {
        "" => ItemHome::Logs,
        name => ItemHome::Experiment(name.to_owned()),
    };
    let value = match (number(feedback, "score"), feedback.get("score"), feedback.get("value")) {
        (Some(score), _, _) => ScoreValue::Number(score),
        (None, Some(Value::Bool(score)), _) => ScoreValue::Number(f64::from(u8::from(*score))),
        (None, _, Some(value)) if !value.is_null() => {
            ScoreValue::Text(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        }
        _ => match text(feedback, "comment") {
            Some(comment) => ScoreValue::Text(comment.to_owned()),
            None => return page.note("feedback without a score, a value or a comment"),
        },
    };
    let mut details = Map::new();
    for (key, from) in [
        ("comment", "comment"),
        ("correction", "correction"),
        ("source", "feedback_source"),
        ("timestamp", "created_at"),
        ("label", "value"),
    ] {
        crate::item::set(&mut details, key, feedback.get(from).cloned().unwrap_or_default());
    }
    page.items.push(NeutralItem::Score(NeutralScore {
        home,
        target: format!("run/{run}"),
        row_id: None,
        id: id(feedback, "id").unwrap_or_default(),
        name: text(feedback, "key").unwrap_or("feedback").to_owned(),
        value,
        details,
    }));
}

/// Directory with a bulk export in Parquet.
#[derive(Clone, Debug)]
pub struct LangsmithExport {
    /// Path as the user named it.
    pub path: String,
}

impl ImportSource for LangsmithExport {
    fn name(&self) -> &'static str {
        NAME
    }

    fn identity(&self) -> String {
        self.path.clone()
    }

    fn first_tasks(&self) -> Vec<SourceTask> {
        vec![SourceTask::new(FILES)]
    }

    fn request(&self, task: &SourceTask) -> SourceRequest {
        file_request(task)
    }

    fn page(&self, task: &SourceTask, answer: &SourceAnswer) -> Result<SourcePage, ImportError> {
        if task.step == FILES {
            return Ok(files(answer, |_| true));
        }
        let mut page = SourcePage::default();
        for run in &answer.records {
            if run
                .get("feedback_stats")
                .map(parsed)
                .is_some_and(|stats| stats.as_object().is_some_and(|all| !all.is_empty()))
            {
                page.note("statistics of feedback in bulk exports: import feedback from the API");
            }
            page.items.push(NeutralItem::Span(Box::new(span(task, run))));
        }
        page.next.extend(answer.next_offset.map(|offset| task.at(offset)));
        Ok(page)
    }
}
