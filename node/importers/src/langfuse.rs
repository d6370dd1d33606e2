//! Langfuse: the public API of its versions 3 and 4, and the files of its export to blob storage.

mod datasets;
mod export;
mod mapping;
mod prompts;

use serde_json::{Value, json};

use crate::error::ImportError;
use crate::fields::{id, list, object, text};
use crate::item::{ItemHome, NeutralItem};
use crate::source::{ImportSource, ImportWindow, SourceAnswer, SourcePage, SourceRequest, SourceTask, encoded};

pub use export::LangfuseExport;

use mapping::{observation_span, score, trace_of_observation, trace_span};

pub(crate) const NAME: &str = "langfuse";

/// Entries of a page. The endpoints accept 100 at most.
const PAGE_MAX: usize = 100;
/// Beginning of time for endpoints that require one.
const ALL_TIME: &str = "2020-01-01T00:00:00Z";
/// First version whose traces are no longer objects of their own.
const OBSERVATIONS_FIRST: u64 = 4;
/// Length from which the API of observations cuts values of metadata.
const METADATA_SHOWN_CHARS: usize = 200;
/// Upper bound of the keys of metadata that are asked for in full.
const EXPANDED_KEYS_MAX: usize = 60;
const MEDIA_MARK: &str = "@@@langfuseMedia:";
/// Lists that have no equivalent. Only their length is read.
const COUNTED: [(&str, &str); 3] =
    [("comments", "comments"), ("score-configs", "score configurations"), ("annotation-queues", "annotation queues")];

/// Generation of the public API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LangfuseApi {
    /// Traces and observations are separate objects.
    V3,
    /// Observations carry what is said of their trace.
    V4,
}

/// Project of a Langfuse server.
#[derive(Clone, Debug)]
pub struct LangfuseSource {
    pub url: String,
    /// Public key, which names the project.
    pub public_key: String,
    pub window: ImportWindow,
    /// Generation to use. `None` asks the server for its version.
    pub api: Option<LangfuseApi>,
}

impl ImportSource for LangfuseSource {
    fn name(&self) -> &'static str {
        NAME
    }

    fn identity(&self) -> String {
        format!("{} {}", self.url, self.public_key)
    }

    fn first_tasks(&self) -> Vec<SourceTask> {
        match self.api {
            Some(api) => tasks_of(api),
            None => vec![SourceTask::new("health")],
        }
    }

    fn request(&self, task: &SourceTask) -> SourceRequest {
        SourceRequest::Get(format!("/api/public/{}", self.path(task)))
    }

    fn page(&self, task: &SourceTask, answer: &SourceAnswer) -> Result<SourcePage, ImportError> {
        let mut page = SourcePage::default();
        if let Some(later) = self.replacement(task, answer) {
            page.next = later;
            return Ok(page);
        }
        let body = match task.step.as_str() {
            "run_item" | "run_trace" if answer.is_absent() => Value::Null,
            _ => answer.json(NAME, task)?,
        };
        count_media(answer, &mut page);
        match task.step.as_str() {
            "health" => page.next = tasks_of(api_of(&body)),
            "count" => {
                let total = body.pointer("/meta/totalItems").and_then(Value::as_u64).unwrap_or_default();
                if total > 0 {
                    page.unmapped.insert(task.text("what").to_owned(), total);
                }
            }
            "traces" => {
                let spans = list(&body, "data").iter().map(|trace| trace_span(ItemHome::Logs, trace));
                page.items.extend(spans.map(|span| NeutralItem::Span(Box::new(span))));
            }
            "observations" => {
                let spans = list(&body, "data").iter().map(|one| observation_span(ItemHome::Logs, one));
                page.items.extend(spans.map(|span| NeutralItem::Span(Box::new(span))));
            }
            "observations_v2" => observations_v2(task, &body, &ItemHome::Logs, &mut page),
            "scores_v2" | "scores_v3" => {
                list(&body, "data").iter().for_each(|one| score(&ItemHome::Logs, one, &mut page));
            }
            "prompts" => prompts::list_page(&body, &mut page),
            "prompt" => prompts::version(task, &body, &mut page)?,
            _ => datasets::page(task, &body, &mut page),
        }
        page.next.extend(next_page(task, &body, page.next.is_empty()));
        Ok(page)
    }
}

/// Returns the tasks of a whole import.
fn tasks_of(api: LangfuseApi) -> Vec<SourceTask> {
    let steps: &[&str] = match api {
        LangfuseApi::V3 => &["traces", "observations", "scores_v2", "datasets", "prompts"],
        LangfuseApi::V4 => &["observations_v2", "scores_v3", "datasets_v4", "experiments", "prompts"],
    };
    let counts = COUNTED.iter().map(|(path, what)| SourceTask::about("count", json!({"path": path, "what": what})));
    steps.iter().map(|step| SourceTask::new(step)).chain(counts).collect()
}

fn api_of(health: &Value) -> LangfuseApi {
    let major = text(health, "version").and_then(|version| version.trim_start_matches('v').split('.').next());
    match major.and_then(|major| major.parse::<u64>().ok()) {
        Some(major) if major >= OBSERVATIONS_FIRST => LangfuseApi::V4,
        _ => LangfuseApi::V3,
    }
}

impl LangfuseSource {
    /// Returns the path of a task below the root of the API, with its query.
    fn path(&self, task: &SourceTask) -> String {
        let page = task.number(1);
        let paged = format!("page={page}&limit={PAGE_MAX}");
        let from = self.window.since.as_deref();
        let until = encoded(&self.window.until);
        let between = |first: &str, last: &str| match from {
            Some(from) => format!("{first}={}&{last}={until}", encoded(from)),
            None => format!("{last}={until}"),
        };
        let all_time = format!("fromStartTime={}&toStartTime={until}", encoded(from.unwrap_or(ALL_TIME)));
        let cursor = task.cursor.as_deref().map(|cursor| format!("&cursor={}", encoded(cursor))).unwrap_or_default();
        match task.step.as_str() {
            "health" => "health".to_owned(),
            "count" => format!("{}?page=1&limit=1", task.text("path")),
            "traces" => {
                let window = between("fromTimestamp", "toTimestamp");
                format!("traces?{paged}&orderBy=timestamp.asc&fields=core%2Cio%2Cmetrics&{window}")
            }
            "observations" => format!("observations?{paged}&{}", between("fromStartTime", "toStartTime")),
            "observations_v2" => {
                let trace = match task.text("trace") {
                    "" => all_time,
                    trace => format!("traceId={}", encoded(trace)),
                };
                let expanded = match task.text("expand") {
                    "" => String::new(),
                    keys => format!("&expandMetadata={}", encoded(keys)),
                };
                format!("v2/observations?limit={PAGE_MAX}&fields={OBSERVATION_FIELDS}&{trace}{expanded}{cursor}")
            }
            "scores_v2" => format!("v2/scores?{paged}&{}", between("fromTimestamp", "toTimestamp")),
            "scores_v3" => {
                let window = between("fromTimestamp", "toTimestamp");
                format!("v3/scores?limit={PAGE_MAX}&fields=details%2Csubject%2Cannotation&{window}{cursor}")
            }
            "prompts" => format!("v2/prompts?{paged}"),
            "prompt" => format!("v2/prompts/{}?version={}", encoded(task.text("name")), task.text("version")),
            _ => datasets::path(task, &paged, &all_time, &cursor),
        }
    }

    /// Returns the tasks that replace one whose endpoint the server does not have.
    fn replacement(&self, task: &SourceTask, answer: &SourceAnswer) -> Option<Vec<SourceTask>> {
        if !answer.is_absent() {
            return None;
        }
        match task.step.as_str() {
            "health" => Some(tasks_of(LangfuseApi::V3)),
            "count" | "traces" => Some(Vec::new()),
            "observations" => Some(vec![SourceTask::new("observations_v2")]),
            "scores_v2" => Some(vec![SourceTask::new("scores_v3")]),
            "scores_v3" => Some(vec![SourceTask::new("scores_v2")]).filter(|_| self.api != Some(LangfuseApi::V3)),
            "runs" => Some(vec![SourceTask::about("experiments", task.object.clone())]),
            _ => None,
        }
    }
}

const OBSERVATION_FIELDS: &str =
    "core%2Cbasic%2Ctime%2Cio%2Cmetadata%2Cmodel%2Cusage%2Cprompt%2Cmetrics%2Ctrace_context";

/// Adds observations with what they say of their traces.
///
/// If the server has cut values of metadata, the page is asked for again with these values in full.
fn observations_v2(task: &SourceTask, body: &Value, home: &ItemHome, page: &mut SourcePage) {
    let observations = list(body, "data");
    if task.text("expand").is_empty() {
        let keys = cut_keys(observations, page);
        if !keys.is_empty() {
            let mut again = task.clone();
            if !again.object.is_object() {
                again.object = json!({});
            }
            again.object["expand"] = Value::from(keys.join(","));
            page.next.push(again);
            return;
        }
    }
    for observation in observations {
        page.items
            .extend(trace_of_observation(home.clone(), observation).map(|span| NeutralItem::Span(Box::new(span))));
        page.items.push(NeutralItem::Span(Box::new(observation_span(home.clone(), observation))));
    }
}

/// Returns the keys of metadata whose values may be cut.
fn cut_keys(observations: &[Value], page: &mut SourcePage) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for (key, value) in observations.iter().filter_map(|one| object(one, "metadata")).flatten() {
        let shown = value.as_str().map(|text| text.chars().count());
        let is_cut = shown.is_some_and(|shown| shown >= METADATA_SHOWN_CHARS);
        if !is_cut || keys.contains(key) {
            continue;
        }
        if keys.len() < EXPANDED_KEYS_MAX && !key.contains(',') {
            keys.push(key.clone());
        } else {
            page.note("long values of metadata that the server returns only in part");
        }
    }
    keys
}

/// Returns the task of the next page, for lists with numbers of pages and for lists with cursors.
fn next_page(task: &SourceTask, body: &Value, has_no_tasks: bool) -> Option<SourceTask> {
    let meta = body.get("meta")?;
    if task.step == "count" {
        return None;
    }
    // A page that is asked for again comes before the next one, which its answer names.
    if task.step == "observations_v2" && !has_no_tasks {
        return None;
    }
    if let Some(cursor) = text(meta, "cursor") {
        let mut next = task.at(cursor);
        if let Some(object) = next.object.as_object_mut() {
            object.remove("expand");
        }
        return Some(next);
    }
    let page = task.number(1);
    let last = meta.get("totalPages").and_then(Value::as_u64)?;
    (page < last).then(|| task.at(page + 1))
}

fn count_media(answer: &SourceAnswer, page: &mut SourcePage) {
    let mark = MEDIA_MARK.as_bytes();
    let found = answer.body.windows(mark.len()).filter(|window| *window == mark).count();
    if found > 0 {
        page.unmapped.insert("references to media, which stay references".to_owned(), found as u64);
    }
}

/// Returns the id of an object, or an empty text.
fn id_of(of: &Value, key: &str) -> String {
    id(of, key).unwrap_or_default()
}

#[cfg(test)]
mod tests;
