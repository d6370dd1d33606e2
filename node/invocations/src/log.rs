//! Spans of invocations: ids and rows (functions.md 2.6). The functions are pure except for random ids.

use assay_node_scorers::results::{classifier_result, scorer_result};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::error::InvokeError;
use crate::function::InvokedFunction;
use crate::request::InvokeArguments;

/// Ids of a span, and the members that are merged into it and its descendants.
#[derive(Clone, Debug, PartialEq)]
pub struct LogScope {
    pub row_id: String,
    pub span_id: String,
    pub root_span_id: String,
    pub parent_span_id: Option<String>,
    pub propagated: Map<String, Value>,
}

impl LogScope {
    /// Returns a new child span.
    pub fn child(&self) -> LogScope {
        LogScope {
            row_id: Uuid::new_v4().to_string(),
            span_id: Uuid::new_v4().to_string(),
            root_span_id: self.root_span_id.clone(),
            parent_span_id: Some(self.span_id.clone()),
            propagated: self.propagated.clone(),
        }
    }

    /// Marks the span and its descendants as scoring, if the function scores or classifies.
    pub fn marked(mut self, function: &InvokedFunction) -> LogScope {
        if function.is_scorer() || function.is_classifier() {
            let attributes = self.propagated.entry("span_attributes").or_insert_with(|| json!({}));
            if let Value::Object(attributes) = attributes {
                attributes.insert("purpose".to_owned(), "scorer".into());
            }
        }
        self
    }
}

/// Returns the row of a function's span at its start.
pub(crate) fn function_row(
    function: &InvokedFunction,
    span_type: &str,
    arguments: &InvokeArguments,
    now: f64,
) -> Map<String, Value> {
    let mut row = Map::new();
    row.insert("span_attributes".into(), json!({"name": function.name, "type": span_type}));
    row.insert("input".into(), arguments.input.clone());
    let more = [("expected", &arguments.expected), ("metadata", &arguments.metadata), ("tags", &arguments.tags)];
    for (name, value) in more.into_iter().filter(|(_, value)| !value.is_null()) {
        row.insert(name.into(), value.clone());
    }
    row.insert("metrics".into(), json!({"start": now}));
    row
}

/// Returns the members that the end of a function adds to its row.
pub(crate) fn end_of_function(
    function: &InvokedFunction,
    result: Result<&Value, &InvokeError>,
    now: f64,
) -> Map<String, Value> {
    let mut row = end_row(result.map_err(InvokeError::span_text), now);
    let Ok(value) = result else { return row };
    // An invalid value is logged unmodified. Its users check it.
    if function.is_scorer()
        && let Ok(scores) = scorer_result(&function.name, value)
    {
        row.insert("scores".into(), Value::Object(scores.span_scores()));
        row.extend(scores.span_metadata().map(|metadata| ("metadata".to_owned(), Value::Object(metadata))));
    }
    if function.function_type.as_deref() == Some("classifier")
        && let Ok(classes) = classifier_result(&function.name, value)
    {
        let classes = classes.row_classifications();
        row.extend(classes.map(|classes| ("classifications".to_owned(), Value::Object(classes))));
    }
    row
}

/// Returns the members that the end of a span adds to its row.
pub(crate) fn end_row(result: Result<&Value, String>, now: f64) -> Map<String, Value> {
    let mut row = Map::new();
    match result {
        Ok(value) => row.insert("output".into(), value.clone()),
        Err(error) => row.insert("error".into(), error.into()),
    };
    row.insert("metrics".into(), json!({"end": now}));
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::scope;

    #[test]
    fn everything_below_a_scorer_is_marked() {
        let scorer = InvokedFunction { function_type: Some("scorer".into()), ..InvokedFunction::default() };
        let child = scope().marked(&scorer).child();
        assert_eq!(child.propagated["span_attributes"], json!({"purpose": "scorer"}));
        assert_eq!((child.parent_span_id.as_deref(), child.root_span_id.as_str()), (Some("s"), "t"));
        assert!(scope().marked(&InvokedFunction::default()).propagated.is_empty());
    }

    #[test]
    fn the_span_of_a_scorer_has_its_score() {
        let scorer =
            InvokedFunction { function_type: Some("scorer".into()), name: "n".into(), ..InvokedFunction::default() };
        let value = json!({"name": "n", "score": 1, "metadata": {"choice": "A"}});
        let row = Value::Object(end_of_function(&scorer, Ok(&value), 2.5));
        let expected =
            json!({"output": value, "metrics": {"end": 2.5}, "scores": {"n": 1.0}, "metadata": {"choice": "A"}});
        assert_eq!(row, expected);
        let row = Value::Object(end_of_function(&scorer, Err(&InvokeError::invalid("no")), 2.5));
        assert_eq!(row, json!({"error": "no", "metrics": {"end": 2.5}}));
    }
}
