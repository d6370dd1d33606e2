//! Files of Langfuse's export to blob storage: traces, observations and scores, as JSON lines, JSON or CSV.

use serde_json::{Map, Value, json};

use super::NAME;
use super::mapping::{camel, observation_span, score, trace_of_observation, trace_span};
use crate::error::ImportError;
use crate::fields::{list, parsed, texts};
use crate::item::{ItemHome, NeutralItem};
use crate::otlp::{FILES, RECORDS, file_request, files};
use crate::source::{ImportSource, SourceAnswer, SourcePage, SourceRequest, SourceTask};

/// Directory with an export.
#[derive(Clone, Debug)]
pub struct LangfuseExport {
    /// Path as the user named it.
    pub path: String,
}

/// Kind of the records of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ExportKind {
    Traces,
    Observations,
    /// Observations with what is said of their traces.
    EnrichedObservations,
    Scores,
}

impl ExportKind {
    /// Returns the kind by the folder or the name of a file.
    fn of(file: &str) -> Option<ExportKind> {
        let parts = file.split(['/', '\\']);
        parts.rev().find_map(|part| {
            if part.starts_with("observations_v2") {
                Some(ExportKind::EnrichedObservations)
            } else if part.starts_with("observations") {
                Some(ExportKind::Observations)
            } else if part.starts_with("traces") {
                Some(ExportKind::Traces)
            } else if part.starts_with("scores") {
                Some(ExportKind::Scores)
            } else {
                None
            }
        })
    }
}

impl ImportSource for LangfuseExport {
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
            let mut page = files(answer, |name| ExportKind::of(name).is_some());
            // Scores come behind the rows that they are of.
            page.next.sort_by_key(|task| ExportKind::of(task.text("file")));
            return Ok(page);
        }
        let mut page = SourcePage::default();
        let kind = ExportKind::of(task.text("file")).filter(|_| task.step == RECORDS);
        for record in &answer.records {
            let record = as_of_api(record);
            let mut push = |span| page.items.push(NeutralItem::Span(Box::new(span)));
            match kind {
                Some(ExportKind::Traces) => push(trace_span(ItemHome::Logs, &record)),
                Some(ExportKind::Observations) => push(observation_span(ItemHome::Logs, &record)),
                Some(ExportKind::EnrichedObservations) => {
                    trace_of_observation(ItemHome::Logs, &record).into_iter().for_each(&mut push);
                    push(observation_span(ItemHome::Logs, &record));
                }
                Some(ExportKind::Scores) => score(&ItemHome::Logs, &record, &mut page),
                None => page.note("records of files of no known kind"),
            }
        }
        page.next.extend(answer.next_offset.map(|offset| task.at(offset)));
        Ok(page)
    }
}

/// Returns a record with the names of the API, and values of CSV as JSON.
fn as_of_api(record: &Value) -> Value {
    let Value::Object(fields) = record else { return record.clone() };
    let mut renamed = Map::with_capacity(fields.len());
    for (name, value) in fields {
        let name = camel(name);
        let value = match (name.as_str(), value) {
            // CSV has an empty text for a missing value.
            (_, Value::String(text)) if text.is_empty() => continue,
            ("input" | "output" | "metadata" | "modelParameters" | "usageDetails" | "costDetails" | "tags", value) => {
                parsed(value)
            }
            ("public" | "bookmarked" | "isRootObservation" | "isAppRoot", Value::String(text)) => {
                Value::Bool(matches!(text.as_str(), "true" | "1"))
            }
            (_, value) => value.clone(),
        };
        renamed.insert(name, value);
    }
    let record = Value::Object(renamed);
    if list(&record, "tags").is_empty() && record.get("traceTags").is_some() {
        let mut record = record;
        record["tags"] = json!(texts(&record, "traceTags"));
        return record;
    }
    record
}
