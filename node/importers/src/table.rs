//! JSON lines, JSON and CSV with columns of any name.

use serde_json::{Map, Value, json};

use crate::error::ImportError;
use crate::fields::{number_of, parsed};
use crate::ids::digits;
use crate::item::{DatasetRow, ItemHome, NeutralDataset, NeutralExperiment, NeutralItem, NeutralSpan};
use crate::otlp::{FILES, RECORDS, file_request, files};
use crate::source::{ImportSource, SourceAnswer, SourcePage, SourceRequest, SourceTask};

/// Fields that a column may be mapped to.
const FIELDS: [&str; 12] = [
    "id",
    "name",
    "type",
    "input",
    "output",
    "expected",
    "error",
    "created",
    "tags",
    "span_id",
    "root_span_id",
    "parent_id",
];
/// Object fields, whose members a column may be mapped to.
const OBJECTS: [&str; 3] = ["metadata", "scores", "metrics"];
/// Step that creates the object of the rows.
const OBJECT: &str = "object";

/// Mapping of columns to fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnMap {
    /// Fields with their columns.
    pairs: Vec<(String, String)>,
}

impl ColumnMap {
    /// Parses `field=column` texts.
    pub fn parse<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<ColumnMap, ImportError> {
        let mut pairs = Vec::new();
        for text in texts {
            let wrong = |why: &str| ImportError::Settings(format!("the mapping `{text}` {why}"));
            let (field, column) = text.split_once('=').ok_or_else(|| wrong("has no `=`: write input=question"))?;
            let (field, column) = (field.trim(), column.trim());
            let is_member =
                field.split_once('.').is_some_and(|(object, member)| OBJECTS.contains(&object) && !member.is_empty());
            if !FIELDS.contains(&field) && !is_member {
                let known = FIELDS.join(", ");
                return Err(wrong(&format!("is of no field: use {known}, metadata.NAME, scores.NAME or metrics.NAME")));
            }
            if column.is_empty() {
                return Err(wrong("has no column"));
            }
            pairs.push((field.to_owned(), column.to_owned()));
        }
        Ok(ColumnMap { pairs })
    }

    /// Returns the field of a column. Columns that are named like a field need no mapping.
    fn field_of(&self, column: &str) -> Option<String> {
        let mapped = self.pairs.iter().find(|(_, mapped)| mapped == column).map(|(field, _)| field.clone());
        let is_free = |field: &str| !self.pairs.iter().any(|(taken, _)| taken == field);
        let is_plain = FIELDS.contains(&column) || OBJECTS.contains(&column);
        mapped.or_else(|| (is_plain && is_free(column)).then(|| column.to_owned()))
    }
}

/// Files with records of any shape.
#[derive(Clone, Debug)]
pub struct TableSource {
    /// Path as the user named it.
    pub path: String,
    pub map: ColumnMap,
    pub into: ItemHome,
}

impl ImportSource for TableSource {
    fn name(&self) -> &'static str {
        "table"
    }

    fn identity(&self) -> String {
        let (kind, name) = crate::ids::home_text(&self.into);
        format!("{} {kind} {name}", self.path).trim_end().to_owned()
    }

    fn first_tasks(&self) -> Vec<SourceTask> {
        vec![SourceTask::new(FILES)]
    }

    fn request(&self, task: &SourceTask) -> SourceRequest {
        file_request(task)
    }

    fn page(&self, task: &SourceTask, answer: &SourceAnswer) -> Result<SourcePage, ImportError> {
        if task.step != RECORDS {
            let mut page = files(answer, |_| true);
            page.items.extend(self.object());
            return Ok(page);
        }
        let mut page = SourcePage::default();
        let offset = task.number(0);
        for (index, record) in answer.records.iter().enumerate() {
            let place = format!("{}/{offset}/{index}", task.text("file"));
            match record.as_object() {
                Some(record) => page.items.push(self.item(record, &place)),
                None => page.note("records that are no objects"),
            }
        }
        page.next.extend(answer.next_offset.map(|offset| task.at(offset)));
        Ok(page)
    }
}

impl TableSource {
    /// Returns the object of the rows, which also exists if there are none.
    fn object(&self) -> Option<NeutralItem> {
        let metadata = Map::from_iter([(OBJECT.to_owned(), json!({"imported_from": self.path}))]);
        match &self.into {
            ItemHome::Logs => None,
            ItemHome::Experiment(name) => Some(NeutralItem::Experiment(NeutralExperiment {
                name: name.clone(),
                metadata,
                ..NeutralExperiment::default()
            })),
            ItemHome::Dataset(name) => {
                Some(NeutralItem::Dataset(NeutralDataset { name: name.clone(), description: None, metadata }))
            }
        }
    }

    fn item(&self, record: &Map<String, Value>, place: &str) -> NeutralItem {
        let mut fields = self.fields(record);
        let mut take = |key: &str| match fields.remove(key) {
            Some(Value::String(text)) if !text.is_empty() => Some(text),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        let (id, name, kind) = (take("id"), take("name"), take("type"));
        let (span_id, root, parent) = (take("span_id"), take("root_span_id"), take("parent_id"));
        let key = id.map_or_else(|| format!("record/{place}"), |id| format!("id/{id}"));
        if let ItemHome::Dataset(dataset) = &self.into {
            return NeutralItem::DatasetRow(DatasetRow { dataset: dataset.clone(), key, row_id: None, fields });
        }
        let span_id = span_id.unwrap_or_else(|| digits(&[&key])[..16].to_owned());
        let mut span = NeutralSpan {
            home: self.into.clone(),
            trace: root.unwrap_or_else(|| digits(&["trace", &key])),
            key,
            span: span_id,
            parents: parent.into_iter().collect(),
            fields,
            ..NeutralSpan::default()
        };
        let is_experiment = matches!(self.into, ItemHome::Experiment(_));
        let kind = kind.unwrap_or_else(|| if is_experiment { "eval" } else { "task" }.to_owned());
        span.set("span_attributes", json!({"name": name.as_deref().unwrap_or("imported"), "type": kind}));
        NeutralItem::Span(Box::new(span))
    }

    /// Returns the fields of a record. Columns without a mapping become metadata.
    fn fields(&self, record: &Map<String, Value>) -> Map<String, Value> {
        let mut fields = Map::new();
        for (column, value) in record {
            let value = parsed(value);
            if value.is_null() || value == "" {
                continue;
            }
            let field = self.map.field_of(column).unwrap_or_else(|| format!("metadata.{column}"));
            match field.split_once('.') {
                Some((object, member)) => {
                    let is_number = object != "metadata";
                    let number = number_of(&value).map(crate::fields::json_number).filter(|_| is_number);
                    let of_object = fields.entry(object).or_insert_with(|| json!({}));
                    if let Value::Object(of_object) = of_object {
                        of_object.insert(member.to_owned(), number.unwrap_or(value));
                    }
                }
                None if field == "tags" => drop(fields.insert(field, tags(&value))),
                None => drop(fields.insert(field, value)),
            }
        }
        fields
    }
}

/// Returns tags of a list, or of a text with commas.
fn tags(value: &Value) -> Value {
    match value {
        Value::String(text) => {
            let tags = text.split(',').map(str::trim).filter(|tag| !tag.is_empty());
            Value::Array(tags.map(Value::from).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(map: &[&str], into: ItemHome) -> TableSource {
        TableSource { path: "x.csv".into(), map: ColumnMap::parse(map.iter().copied()).unwrap(), into }
    }

    #[test]
    fn columns_go_to_their_fields_and_others_to_metadata() {
        let source = source(&["input=question", "scores.good=ok", "id=n"], ItemHome::Dataset("d".into()));
        let record = json!({"question": "why", "expected": "so", "ok": "0.5", "n": 7, "team": "a", "tags": "x, y"});
        let NeutralItem::DatasetRow(row) = source.item(record.as_object().unwrap(), "p") else { panic!("a row") };
        assert_eq!(row.key, "id/7");
        assert_eq!(
            Value::Object(row.fields),
            json!({"input": "why", "expected": "so", "scores": {"good": 0.5}, "metadata": {"team": "a"},
                "tags": ["x", "y"]})
        );
    }

    #[test]
    fn a_wrong_mapping_is_named() {
        let refused = |text: &str| ColumnMap::parse([text]).unwrap_err().to_string();
        assert!(refused("question").contains("no `=`"));
        assert!(refused("question=input").contains("is of no field"));
        assert!(refused("input=").contains("no column"));
    }
}
