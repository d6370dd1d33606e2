//! Results of classifiers and of tag functions (functions.md 7.3).

use serde_json::{Map, Value, json};

use super::{ResultError, below, entries, valid_name};

const VALID: &str = "an object with `id`, an array of these objects, or null";
const VALID_TAG: &str = "a text of 1 to 1024 bytes, or an object with such an `id`";
const VALID_TEXT: &str = "a text of 1 to 1024 bytes";

/// Class that a classifier found.
#[derive(Clone, Debug, PartialEq)]
pub struct Classification {
    pub name: String,
    pub id: String,
    pub label: String,
    pub metadata: Option<Map<String, Value>>,
    pub confidence: Option<Value>,
    pub source: Option<Value>,
}

/// Classes of one run of a classifier, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Classifications(pub Vec<Classification>);

/// Returns the classes of a result, or why it is not valid.
pub fn classifier_result(function: &str, value: &Value) -> Result<Classifications, ResultError> {
    match value {
        Value::Null => Ok(Classifications(Vec::new())),
        Value::Object(_) => Ok(Classifications(vec![classification(function, "", value)?])),
        Value::Array(listed) => {
            let listed = entries(function, value, listed)?.iter().enumerate();
            let found = listed.map(|(index, entry)| classification(function, &index.to_string(), entry));
            Ok(Classifications(found.collect::<Result<_, _>>()?))
        }
        other => Err(ResultError::new(function, "", other, VALID)),
    }
}

fn classification(function: &str, path: &str, value: &Value) -> Result<Classification, ResultError> {
    let members = value.as_object().filter(|members| !members.is_empty());
    let members = members.ok_or_else(|| ResultError::new(function, path, value, "an object with `id`"))?;
    let text = |name: &str, default: Option<&str>| match (members.get(name).unwrap_or(&Value::Null), default) {
        (Value::Null, Some(default)) => Ok(default.to_owned()),
        (Value::String(text), Some(default)) if text.is_empty() => Ok(default.to_owned()),
        (found, _) => valid_name(found)
            .map(str::to_owned)
            .ok_or_else(|| ResultError::new(function, &below(path, name), found, VALID_TEXT)),
    };
    let id = text("id", None)?;
    let metadata = match members.get("metadata").unwrap_or(&Value::Null) {
        Value::Null => None,
        Value::Object(metadata) => Some(metadata.clone()),
        other => return Err(ResultError::new(function, &below(path, "metadata"), other, "an object or null")),
    };
    let label = text("label", Some(&id))?;
    let more = |name: &str| members.get(name).filter(|value| !value.is_null()).cloned();
    let (confidence, source) = (more("confidence"), more("source"));
    Ok(Classification { name: text("name", Some(function))?, id, label, metadata, confidence, source })
}

impl Classifications {
    /// Returns `classifications` of a row: classes by name, in their order. None where there are none.
    pub fn row_classifications(&self) -> Option<Map<String, Value>> {
        let mut by_name: Map<String, Value> = Map::new();
        for one in &self.0 {
            let mut entry = Map::new();
            entry.insert("id".to_owned(), json!(one.id));
            entry.insert("label".to_owned(), json!(one.label));
            let metadata = one.metadata.clone().map(Value::Object);
            let more = [("metadata", metadata), ("confidence", one.confidence.clone()), ("source", one.source.clone())];
            entry.extend(more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
            let listed = by_name.entry(one.name.clone()).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(listed) = listed {
                listed.push(Value::Object(entry));
            }
        }
        (!by_name.is_empty()).then_some(by_name)
    }
}

/// Returns the tags of a result: a text, a class by its id, or an array of these (F-56). None for null.
pub fn tag_result(function: &str, value: &Value) -> Result<Vec<String>, ResultError> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(listed) => {
            let listed = entries(function, value, listed)?.iter().enumerate();
            let tags: Vec<_> =
                listed.map(|(index, entry)| tag(function, &index.to_string(), entry)).collect::<Result<_, _>>()?;
            Ok(merged_tags(&[], &tags))
        }
        other => Ok(vec![tag(function, "", other)?]),
    }
}

fn tag(function: &str, path: &str, value: &Value) -> Result<String, ResultError> {
    if value.is_object() {
        return classification(function, path, value).map(|found| found.id);
    }
    let tag = valid_name(value).map(str::to_owned);
    tag.ok_or_else(|| ResultError::new(function, path, value, VALID_TAG))
}

/// Returns tags of a row with others added, each once.
pub fn merged_tags(tags: &[String], added: &[String]) -> Vec<String> {
    let mut merged: Vec<String> = Vec::with_capacity(tags.len() + added.len());
    let mut seen = std::collections::HashSet::new();
    for tag in tags.iter().chain(added) {
        if seen.insert(tag) {
            merged.push(tag.clone());
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_listed_by_name_with_their_duplicates() {
        let value = json!([
            {"id": "b", "label": "Bug", "metadata": {"rationale": "r"}, "confidence": 0.5},
            {"name": "g", "id": "x", "label": null},
            {"name": "", "id": "b"},
        ]);
        let found = classifier_result("f", &value).expect("valid").row_classifications();
        let expected = json!({
            "f": [
                {"id": "b", "label": "Bug", "metadata": {"rationale": "r"}, "confidence": 0.5},
                {"id": "b", "label": "b"},
            ],
            "g": [{"id": "x", "label": "x"}],
        });
        assert_eq!(json!(found), expected);
        for empty in [json!(null), json!([])] {
            assert_eq!(classifier_result("f", &empty).expect("valid").row_classifications(), None);
        }
    }

    #[test]
    fn other_results_of_classifiers_are_refused_with_their_path() {
        let cases = [
            (json!("bug"), "a string at the top"),
            (json!({}), "an empty object at the top"),
            (json!({"label": "x"}), "null at `id`"),
            (json!([{"id": ""}]), "a string at `0.id`"),
            (json!([{"id": "a"}, 3]), "3 at `1`"),
            (json!({"id": "a", "metadata": "m"}), "a string at `metadata`"),
        ];
        for (value, found) in cases {
            let error = classifier_result("f", &value).expect_err("not valid").to_string();
            assert!(error.starts_with(&format!("the result of `f` has {found}; it must be ")), "{value}: {error}");
        }
    }

    #[test]
    fn tags_are_texts_or_ids_each_once() {
        let tags = |value| tag_result("f", &value).map_err(|error| error.to_string());
        assert_eq!(tags(json!("a")), Ok(vec!["a".to_owned()]));
        assert_eq!(tags(json!({"id": "a", "label": "A"})), Ok(vec!["a".to_owned()]));
        assert_eq!(tags(json!(["b", "a", "b"])), Ok(vec!["b".to_owned(), "a".to_owned()]));
        assert_eq!(tags(json!(null)), Ok(Vec::new()));
        assert!(tags(json!(3)).is_err() && tags(json!([""])).is_err());
        let merged = merged_tags(&["x".to_owned(), "a".to_owned()], &["a".to_owned(), "b".to_owned()]);
        assert_eq!(merged, ["x", "a", "b"]);
    }
}
