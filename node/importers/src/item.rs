//! Items that sources produce: spans, scores, datasets, experiments and prompts, independent of any product.

use serde_json::{Map, Value};

/// Object of the target that has a row.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemHome {
    /// Logs of the project.
    #[default]
    Logs,
    /// Experiment of this name.
    Experiment(String),
    /// Dataset of this name.
    Dataset(String),
}

/// Item of a source.
#[derive(Clone, Debug, PartialEq)]
pub enum NeutralItem {
    Span(Box<NeutralSpan>),
    Score(NeutralScore),
    Dataset(NeutralDataset),
    DatasetRow(DatasetRow),
    Experiment(NeutralExperiment),
    Prompt(Box<NeutralPrompt>),
}

/// Span with its place in a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NeutralSpan {
    pub home: ItemHome,
    /// Kind of object in the source and its id there, such as `observation/1`. The id of the row follows from it.
    pub key: String,
    /// Id of the row, if the source has one that Assay itself would choose.
    pub row_id: Option<String>,
    pub trace: String,
    pub span: String,
    pub parents: Vec<String>,
    /// Fields of the row: `input`, `output`, `expected`, `error`, `scores`, `metadata`, `metrics`, `tags` and others.
    pub fields: Map<String, Value>,
    /// Row of a dataset from which the span was made: name of the dataset, and key of the row.
    pub origin: Option<(String, String)>,
    pub repeat: SpanRepeat,
}

/// What happens with a span whose row was imported before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpanRepeat {
    /// It is counted as a duplicate and left out.
    #[default]
    Duplicate,
    /// It is left out, because it only stands for one that may not come.
    Implied,
    /// Its fields are added to the row.
    Added,
}

impl NeutralSpan {
    /// Sets a field, unless the value is empty.
    pub(crate) fn set(&mut self, field: &str, value: impl Into<Value>) {
        set(&mut self.fields, field, value.into());
    }

    /// Sets a member of an object field, unless the value is empty.
    pub(crate) fn set_in(&mut self, field: &str, key: &str, value: impl Into<Value>) {
        let value = value.into();
        if is_empty(&value) {
            return;
        }
        let object = self.fields.entry(field).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(object) = object {
            object.insert(key.to_owned(), value);
        }
    }
}

/// Sets a member of a map, unless the value is empty.
pub(crate) fn set(map: &mut Map<String, Value>, key: &str, value: Value) {
    if !is_empty(&value) {
        map.insert(key.to_owned(), value);
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// Value of a score.
#[derive(Clone, Debug, PartialEq)]
pub enum ScoreValue {
    Number(f64),
    Text(String),
}

/// Score of a row that was imported before.
#[derive(Clone, Debug, PartialEq)]
pub struct NeutralScore {
    pub home: ItemHome,
    /// Key of the scored row.
    pub target: String,
    /// Id of the scored row, if the source has one that Assay itself would choose.
    pub row_id: Option<String>,
    /// Id of the score in the source.
    pub id: String,
    pub name: String,
    pub value: ScoreValue,
    /// Everything else about the score, such as its comment and author.
    pub details: Map<String, Value>,
}

/// Dataset, without its rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NeutralDataset {
    pub name: String,
    pub description: Option<String>,
    pub metadata: Map<String, Value>,
}

/// Row of a dataset.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DatasetRow {
    pub dataset: String,
    pub key: String,
    pub row_id: Option<String>,
    pub fields: Map<String, Value>,
}

/// Experiment, without its rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NeutralExperiment {
    pub name: String,
    pub description: Option<String>,
    pub metadata: Map<String, Value>,
    /// Name of its dataset.
    pub dataset: Option<String>,
}

/// One version of a prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NeutralPrompt {
    pub name: String,
    pub description: Option<String>,
    /// Version in the source.
    pub version: String,
    pub prompt_data: Value,
    pub tags: Vec<String>,
    /// Labels of the version in the source, which become environments.
    pub labels: Vec<String>,
    pub metadata: Map<String, Value>,
}
