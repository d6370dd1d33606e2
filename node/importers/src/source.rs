//! Interface of a source: tasks, the request of each, and the items in its answer.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ImportError;
use crate::item::NeutralItem;
use crate::records::RecordForm;

/// Upper bound of the tasks that wait at the same time.
pub const TASKS_MAX: usize = 100_000;

/// Text of an error of the source that is shown, in bytes.
const SHOWN_BYTES_MAX: usize = 300;

/// Task of an import: one request to the source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceTask {
    /// Kind of request, such as `traces`.
    pub step: String,
    /// Object of the request, such as the name of a dataset.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub object: Value,
    /// Position in a list: a page number, a cursor or an offset. `None` is its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl SourceTask {
    pub fn new(step: &str) -> SourceTask {
        SourceTask { step: step.to_owned(), ..SourceTask::default() }
    }

    pub fn about(step: &str, object: Value) -> SourceTask {
        SourceTask { step: step.to_owned(), object, cursor: None }
    }

    /// Returns the same task at another position.
    pub fn at(&self, cursor: impl fmt::Display) -> SourceTask {
        SourceTask { cursor: Some(cursor.to_string()), ..self.clone() }
    }

    /// Returns the position as a number, or `first` at the start.
    pub(crate) fn number(&self, first: u64) -> u64 {
        self.cursor.as_deref().and_then(|cursor| cursor.parse().ok()).unwrap_or(first)
    }

    /// Returns a text of the object.
    pub(crate) fn text(&self, key: &str) -> &str {
        self.object.get(key).and_then(Value::as_str).unwrap_or_default()
    }
}

impl fmt::Display for SourceTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.step)?;
        let name = ["name", "file", "id"].iter().find_map(|key| self.object.get(*key)).and_then(Value::as_str);
        if let Some(name) = name {
            write!(f, " of {name}")?;
        }
        Ok(())
    }
}

/// Request to a source. All of them only read.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceRequest {
    /// GET of a path with its query.
    Get(String),
    /// POST of a search. It changes nothing at the source.
    Search { path: String, body: Value },
    /// List of the files of a directory, with their sizes.
    Files,
    /// Records of a file from an offset.
    Records { file: String, form: RecordForm, offset: u64 },
}

/// Answer of a source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceAnswer {
    pub status: u16,
    /// Body of a response, or one message of a file.
    pub body: Vec<u8>,
    /// Records of a file, or names of files.
    pub records: Vec<Value>,
    /// Offset behind the records, or `None` at the end of the file.
    pub next_offset: Option<u64>,
}

impl SourceAnswer {
    pub fn of_json(value: &Value) -> SourceAnswer {
        SourceAnswer { status: 200, body: value.to_string().into_bytes(), ..SourceAnswer::default() }
    }

    /// Returns whether the source has no such path, as older and newer versions do.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self.status, 404 | 405 | 410 | 501)
    }

    /// Returns the JSON of a successful response.
    pub(crate) fn json(&self, source_name: &'static str, task: &SourceTask) -> Result<Value, ImportError> {
        if !(200..300).contains(&self.status) {
            let shown = &self.body[..self.body.len().min(SHOWN_BYTES_MAX)];
            let why = String::from_utf8_lossy(shown).trim().to_owned();
            return Err(ImportError::Refused { source_name, what: task.to_string(), status: self.status, why });
        }
        serde_json::from_slice(&self.body).map_err(|why| ImportError::Malformed {
            source_name,
            what: task.to_string(),
            why: why.to_string(),
        })
    }
}

/// Items of an answer, and the tasks that follow from it.
#[derive(Debug, Default)]
pub struct SourcePage {
    pub items: Vec<NeutralItem>,
    /// Tasks that come next, in their order, before all other waiting ones.
    pub next: Vec<SourceTask>,
    /// What has no equivalent in Assay, with the number of times.
    pub unmapped: BTreeMap<String, u64>,
}

impl SourcePage {
    pub(crate) fn note(&mut self, what: impl Into<String>) {
        *self.unmapped.entry(what.into()).or_default() += 1;
    }
}

/// Time window of an import, in ISO 8601.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportWindow {
    pub since: Option<String>,
    /// End of the window. Without a setting it is the start of the import, so that pages do not move while it runs.
    pub until: String,
}

/// Product to import from.
pub trait ImportSource: fmt::Debug + Send + Sync {
    /// Name of the product, as in the command.
    fn name(&self) -> &'static str;
    /// Identity of the source, from which ids of rows follow. It contains no secret.
    fn identity(&self) -> String;
    fn first_tasks(&self) -> Vec<SourceTask>;
    fn request(&self, task: &SourceTask) -> SourceRequest;
    /// Converts an answer to items and further tasks.
    fn page(&self, task: &SourceTask, answer: &SourceAnswer) -> Result<SourcePage, ImportError>;
}

/// Returns a text percent-encoded for a path segment or a query value.
pub(crate) fn encoded(text: &str) -> String {
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
