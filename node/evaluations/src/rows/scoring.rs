//! Results of the scorers of a case, checked and merged for its root row (functions.md 7.1 to 7.3).

use assay_node_scorers::results::{classifier_result, merged_tags, scorer_result, tag_result};
use serde_json::{Map, Value};

use crate::plan::{EvalScorer, EvalScorerKind};

/// Checked result of one scorer, as its own span shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ScorerSpanResult {
    /// Value as the function gave it, also if it is not valid.
    pub output: Option<Value>,
    pub scores: Option<Map<String, Value>>,
    pub metadata: Option<Map<String, Value>>,
    pub classifications: Option<Map<String, Value>>,
    pub error: Option<String>,
}

/// Members of the root row that come from the scorers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RootScoring {
    pub scores: Map<String, Value>,
    pub classifications: Map<String, Value>,
    pub tags: Vec<String>,
    pub scorer_errors: Map<String, Value>,
    pub classifier_errors: Map<String, Value>,
}

impl RootScoring {
    /// Checks the result of a scorer, and merges it. Of two scores with one name, the later scorer's counts.
    pub fn add(&mut self, scorer: &EvalScorer, result: &Result<Value, String>) -> ScorerSpanResult {
        let mut span = ScorerSpanResult { output: result.as_ref().ok().cloned(), ..ScorerSpanResult::default() };
        let checked = result.as_ref().map_err(String::clone).and_then(|value| match scorer.kind {
            EvalScorerKind::Scorer => self.add_scores(scorer, value, &mut span),
            EvalScorerKind::Classifier => self.add_classes(scorer, value, &mut span),
            EvalScorerKind::Tag => self.add_tags(scorer, value),
        });
        if let Err(error) = checked {
            let errors = match scorer.kind {
                EvalScorerKind::Scorer => &mut self.scorer_errors,
                EvalScorerKind::Classifier | EvalScorerKind::Tag => &mut self.classifier_errors,
            };
            add_error(errors, &scorer.name, &error);
            span.error = Some(error);
        }
        span
    }

    fn add_scores(&mut self, scorer: &EvalScorer, value: &Value, span: &mut ScorerSpanResult) -> Result<(), String> {
        let found = scorer_result(&scorer.name, value).map_err(|error| error.to_string())?;
        span.scores = Some(found.span_scores());
        span.metadata = found.span_metadata();
        self.scores.extend(found.row_scores());
        Ok(())
    }

    fn add_classes(&mut self, scorer: &EvalScorer, value: &Value, span: &mut ScorerSpanResult) -> Result<(), String> {
        let found = classifier_result(&scorer.name, value).map_err(|error| error.to_string())?;
        span.classifications = found.row_classifications();
        for (name, mut listed) in span.classifications.clone().unwrap_or_default() {
            match (self.classifications.get_mut(&name), &mut listed) {
                (Some(Value::Array(known)), Value::Array(listed)) => known.append(listed),
                _ => drop(self.classifications.insert(name, listed)),
            }
        }
        Ok(())
    }

    fn add_tags(&mut self, scorer: &EvalScorer, value: &Value) -> Result<(), String> {
        let found = tag_result(&scorer.name, value).map_err(|error| error.to_string())?;
        self.tags = merged_tags(&self.tags, &found);
        Ok(())
    }
}

/// Adds an error under the name of a function. Errors of functions with one name are joined.
fn add_error(errors: &mut Map<String, Value>, name: &str, error: &str) {
    let error = match errors.get(name) {
        Some(Value::String(earlier)) => format!("{earlier}\n{error}"),
        _ => error.to_owned(),
    };
    errors.insert(name.to_owned(), error.into());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn add(root: &mut RootScoring, name: &str, kind: EvalScorerKind, result: Result<Value, &str>) -> ScorerSpanResult {
        let scorer = EvalScorer { name: name.into(), kind, reads_trace: false };
        root.add(&scorer, &result.map_err(str::to_owned))
    }

    #[test]
    fn a_skipped_score_is_only_in_the_span_of_its_scorer() {
        let mut root = RootScoring::default();
        let span = add(&mut root, "f", EvalScorerKind::Scorer, Ok(Value::Null));
        assert_eq!((json!(span.scores), span.output), (json!({"f": null}), Some(Value::Null)));
        assert_eq!(root, RootScoring::default());
    }

    #[test]
    fn scores_are_merged_by_name() {
        let mut root = RootScoring::default();
        let listed = json!([{"name": "a", "score": 0.25, "metadata": {"why": 1}}, {"name": "b", "score": true}]);
        let span = add(&mut root, "f", EvalScorerKind::Scorer, Ok(listed));
        assert_eq!(json!(span.metadata), json!({"a": {"why": 1}}));
        add(&mut root, "a", EvalScorerKind::Scorer, Ok(json!(1)));
        assert_eq!(json!(root.scores), json!({"a": 1.0, "b": 1.0}));
    }

    #[test]
    fn an_invalid_result_is_an_error_with_the_value_as_output() {
        let mut root = RootScoring::default();
        let span = add(&mut root, "f", EvalScorerKind::Scorer, Ok(json!(1.5)));
        assert_eq!((span.output, span.scores), (Some(json!(1.5)), None));
        assert!(span.error.is_some_and(|error| error.starts_with("the result of `f` has 1.5 at the top")));
        add(&mut root, "f", EvalScorerKind::Scorer, Err("it broke"));
        let text = root.scorer_errors["f"].as_str().expect("a text");
        assert!(text.starts_with("the result of `f`") && text.ends_with("\nit broke"), "{text}");
        assert!(root.scores.is_empty());
    }

    #[test]
    fn classes_are_appended_and_tags_united() {
        let mut root = RootScoring::default();
        add(&mut root, "c", EvalScorerKind::Classifier, Ok(json!({"id": "x"})));
        let span = add(&mut root, "c", EvalScorerKind::Classifier, Ok(json!([{"id": "y"}, {"name": "d", "id": "z"}])));
        let (x, y, z) =
            (json!({"id": "x", "label": "x"}), json!({"id": "y", "label": "y"}), json!({"id": "z", "label": "z"}));
        assert_eq!(json!(span.classifications), json!({"c": [y], "d": [z]}));
        assert_eq!(json!(root.classifications), json!({"c": [x, y], "d": [z]}));
        add(&mut root, "t", EvalScorerKind::Tag, Ok(json!(["p", "q"])));
        add(&mut root, "u", EvalScorerKind::Tag, Ok(json!("p")));
        add(&mut root, "u", EvalScorerKind::Tag, Ok(json!(7)));
        add(&mut root, "c", EvalScorerKind::Classifier, Err("it broke"));
        assert_eq!(root.tags, ["p", "q"]);
        assert_eq!(root.classifier_errors.keys().collect::<Vec<_>>(), ["u", "c"]);
        assert!(root.scorer_errors.is_empty());
    }
}
