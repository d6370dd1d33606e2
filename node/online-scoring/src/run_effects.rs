//! Rows that a run writes: the scorer's span, and merges into the scored rows, all in one transaction.

use assay_node_scorers::results::{ResultError, classifier_result, scorer_result, tag_result};
use serde_json::{Map, Value, json};

use crate::candidates::{SCORER_PURPOSE, root_span_id_of, span_id_of, text};
use crate::control::{AttemptFailure, CONTROL_FIELD, ScoringControl, TriggerCompletion};
use crate::fields::described;
use crate::identity::EffectIdentity;
use crate::input_digest::InputDigest;
use crate::open_triggers::OpenTrigger;
use crate::state::ScoringState;
use crate::trigger_progress::{RunFailureCause, TriggerEvent};

/// Bytes of the error of a run that its span keeps.
pub const RUN_ERROR_BYTES_MAX: usize = 16 << 10;
const MILLIS_PER_SECOND: f64 = 1000.0;
/// Fields of a row that scorers get.
const SCORER_FIELDS: [&str; 4] = ["input", "output", "expected", "metadata"];

/// Returns the arguments of a scorer from the scored row, or from the root of the scored trace.
pub fn scorer_input(row: &Map<String, Value>) -> Map<String, Value> {
    SCORER_FIELDS.iter().map(|name| ((*name).to_owned(), row.get(*name).cloned().unwrap_or_default())).collect()
}

/// Form of a function's results, by its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnlineResultForm {
    Scores,
    Classes,
    Facets,
    Tags,
}

impl OnlineResultForm {
    /// Returns the form for a function type, or `None` if such functions cannot run online. Stored prompts may have none.
    pub fn of_function_type(function_type: Option<&str>) -> Option<OnlineResultForm> {
        match function_type {
            None | Some("scorer") => Some(OnlineResultForm::Scores),
            Some("classifier") => Some(OnlineResultForm::Classes),
            Some("facet") => Some(OnlineResultForm::Facets),
            Some("tag") => Some(OnlineResultForm::Tags),
            Some(_) => None,
        }
    }

    fn span_type(self) -> &'static str {
        match self {
            OnlineResultForm::Scores => "score",
            OnlineResultForm::Classes | OnlineResultForm::Tags => "classifier",
            OnlineResultForm::Facets => "facet",
        }
    }
}

/// Row that receives a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScoringTarget {
    pub row_id: String,
    pub span_id: String,
    pub root_span_id: String,
}

impl ScoringTarget {
    pub fn of_row(row: &Map<String, Value>) -> Option<ScoringTarget> {
        Some(ScoringTarget {
            row_id: text(row, "id")?.to_owned(),
            span_id: span_id_of(row)?.to_owned(),
            root_span_id: root_span_id_of(row)?.to_owned(),
        })
    }
}

/// Error of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlineRunError {
    pub cause: RunFailureCause,
    pub message: String,
}

/// Run that ended, with what its rows need.
#[derive(Clone, Debug)]
pub struct FinishedRun<'a> {
    pub trigger: &'a OpenTrigger,
    /// Digest of the input that the run read.
    pub digest: InputDigest,
    pub function_name: &'a str,
    pub form: OnlineResultForm,
    /// Arguments of the function, as its span shows them.
    pub input: &'a Map<String, Value>,
    /// Row that keeps the state. The scorer's span is its child.
    pub target: &'a ScoringTarget,
    /// Other rows that receive the result: roots of the traces of a group.
    pub other_targets: &'a [ScoringTarget],
    /// Token of the state of the target.
    pub token: Option<&'a str>,
    pub started_ms: u64,
    pub ended_ms: u64,
    pub result: Result<Value, OnlineRunError>,
}

/// Rows of a run, and the event for its trigger.
///
/// The executor writes them only if the control of the merge applies to the current state of the target.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEffects {
    /// Span of the scorer, unless the rules skip logging.
    pub span: Option<Value>,
    /// Merges into the scored rows, that of the target first.
    pub merges: Vec<Value>,
    pub event: TriggerEvent,
    /// Error of a failed run.
    pub error: Option<String>,
}

/// Members that a result adds to rows.
#[derive(Debug, Default)]
struct ResultMembers {
    span: Map<String, Value>,
    target: Map<String, Value>,
    metadata: Map<String, Value>,
}

impl FinishedRun<'_> {
    /// Returns the identity of the scorer's span, which the spans of its model calls name as their parent.
    pub fn identity(&self) -> EffectIdentity {
        EffectIdentity::new(&self.target.row_id, &self.trigger.scope, &self.trigger.function, self.digest)
    }

    /// Returns the rows to write. A result that is not valid is an error of user code.
    pub fn effects(&self) -> RunEffects {
        let found = self.result.clone().and_then(|value| {
            let refused =
                |error: ResultError| OnlineRunError { cause: RunFailureCause::UserCode, message: error.to_string() };
            self.members(&value).map(|members| (value, members)).map_err(refused)
        });
        match found {
            Ok((value, members)) => self.success(value, members),
            Err(error) => self.failure(&error),
        }
    }

    fn members(&self, value: &Value) -> Result<ResultMembers, ResultError> {
        let mut members = ResultMembers::default();
        match self.form {
            OnlineResultForm::Scores => {
                let result = scorer_result(self.function_name, value)?;
                members.metadata = result.span_metadata().unwrap_or_default();
                let scores = result.span_scores();
                if !scores.is_empty() {
                    members.target.insert("scores".to_owned(), scores.clone().into());
                    members.span.insert("scores".to_owned(), scores.into());
                }
            }
            OnlineResultForm::Classes => {
                if let Some(classes) = classifier_result(self.function_name, value)?.row_classifications() {
                    members.target.insert("classifications".to_owned(), classes.clone().into());
                    members.span.insert("classifications".to_owned(), classes.into());
                }
            }
            OnlineResultForm::Facets => {
                if let Some(facets) = facets(self.function_name, value)? {
                    members.target.insert("facets".to_owned(), facets.into());
                }
            }
            OnlineResultForm::Tags => {
                let tags = tag_result(self.function_name, value)?;
                if !tags.is_empty() {
                    members.target.insert("tags".to_owned(), tags.into());
                }
            }
        }
        Ok(members)
    }

    fn success(&self, value: Value, members: ResultMembers) -> RunEffects {
        let mut span = self.span(members.metadata);
        span["output"] = value;
        if let Some(span) = span.as_object_mut() {
            span.extend(members.span);
        }
        let completion = TriggerCompletion {
            functions: vec![self.trigger.function.clone()],
            triggered_xact: self.trigger.triggered_xact,
            run_key: self.trigger.run_key.clone(),
            digest: Some(self.digest),
        };
        let token = self.token.map(str::to_owned);
        let own = ScoringControl::ScoreUpdate { token, completes: Some(completion) };
        let other = ScoringControl::ScoreUpdate { token: None, completes: None };
        let own = merge(self.target, members.target.clone(), &own);
        let others = self.other_targets.iter().map(|target| merge(target, members.target.clone(), &other));
        RunEffects {
            span: (!self.trigger.skips_logging).then_some(span),
            merges: std::iter::once(own).chain(others).collect(),
            event: TriggerEvent::Succeed,
            error: None,
        }
    }

    fn failure(&self, error: &OnlineRunError) -> RunEffects {
        let mut span = self.span(Map::new());
        let message = shortened(&error.message);
        span["error"] = message.clone().into();
        let attempts = self.trigger.progress.attempts.saturating_add(1);
        let retry_at_ms = error.cause.retry_at_ms(attempts, self.ended_ms);
        let failure = AttemptFailure {
            functions: vec![self.trigger.function.clone()],
            run_key: self.trigger.run_key.clone(),
            attempts: Some(attempts),
            retry_at_ms,
            is_final: retry_at_ms.is_none(),
        };
        RunEffects {
            span: (!self.trigger.skips_logging).then_some(span),
            merges: vec![merge(self.target, Map::new(), &ScoringControl::MarkAttemptFailed(failure))],
            event: TriggerEvent::Fail(error.cause),
            error: Some(message),
        }
    }

    /// Returns the scorer's span without its result. It replaces the span of an earlier attempt.
    fn span(&self, mut metadata: Map<String, Value>) -> Value {
        let identity = self.identity();
        if let Some(rule) = self.trigger.payer() {
            metadata.insert("automation_id".to_owned(), rule.to_string().into());
        }
        metadata.insert("trigger".to_owned(), self.trigger.source.name().into());
        let seconds = |millis: u64| millis as f64 / MILLIS_PER_SECOND;
        json!({
            "id": identity.row_id, "span_id": identity.span_id, "root_span_id": self.target.root_span_id,
            "span_parents": [self.target.span_id], "created": crate::timestamps::timestamp_text(self.started_ms),
            "span_attributes": {"type": self.form.span_type(), "name": self.function_name, "purpose": SCORER_PURPOSE},
            "input": self.input, "metadata": metadata,
            "metrics": {"start": seconds(self.started_ms), "end": seconds(self.ended_ms)},
            CONTROL_FIELD: ScoringControl::StateOverride(ScoringState::disabled()).to_json(),
        })
    }
}

fn merge(target: &ScoringTarget, mut members: Map<String, Value>, control: &ScoringControl) -> Value {
    members.insert("id".to_owned(), target.row_id.clone().into());
    members.insert("_is_merge".to_owned(), true.into());
    members.insert(CONTROL_FIELD.to_owned(), control.to_json());
    Value::Object(members)
}

/// Returns `facets` of a row: a text under the name of the function, or several texts under their names.
fn facets(function: &str, value: &Value) -> Result<Option<Map<String, Value>>, ResultError> {
    let refused = |path: String, value: &Value| ResultError {
        function: function.to_owned(),
        path,
        found: described(value),
        expected: "a text, an object of texts, or null",
    };
    match value {
        Value::Null => Ok(None),
        Value::String(_) => Ok(Some(Map::from_iter([(function.to_owned(), value.clone())]))),
        Value::Object(members) => match members.iter().find(|(_, text)| !text.is_string() && !text.is_null()) {
            Some((name, other)) => Err(refused(format!("`{name}`"), other)),
            None => Ok((!members.is_empty()).then(|| members.clone())),
        },
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => Err(refused("the top".to_owned(), value)),
    }
}

fn shortened(message: &str) -> String {
    if message.len() <= RUN_ERROR_BYTES_MAX {
        return message.to_owned();
    }
    let end = (0..=RUN_ERROR_BYTES_MAX).rev().find(|end| message.is_char_boundary(*end)).unwrap_or_default();
    format!("{} (shortened from {} bytes)", &message[..end], message.len())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::function_key::OnlineFunction;
    use crate::open_triggers::TriggerPlace;
    use crate::scope::TriggerScope;
    use crate::state::TriggerSource;
    use crate::trigger_progress::TriggerProgress;

    const RULE: Uuid = Uuid::from_u128(7);

    fn row() -> Map<String, Value> {
        let row = json!({"id": "r", "span_id": "s", "root_span_id": "t", "input": "i", "output": "o"});
        row.as_object().cloned().expect("an object")
    }

    fn trigger() -> OpenTrigger {
        OpenTrigger {
            place: TriggerPlace { row_id: "r".to_owned(), key: "function_id:f".to_owned() },
            function: OnlineFunction::of_key("function_id:f").expect("a key"),
            scope: TriggerScope::Span,
            run_key: Some("k".to_owned()),
            triggered_xact: 9,
            digest: Some(InputDigest::of_row(&row())),
            rules: vec![RULE],
            source: TriggerSource::Online,
            requested_by: None,
            skips_logging: false,
            progress: TriggerProgress::pending(0, 0),
            seen_xact: 9,
        }
    }

    fn effects(
        trigger: &OpenTrigger,
        form: OnlineResultForm,
        result: Result<Value, OnlineRunError>,
        other_targets: &[ScoringTarget],
    ) -> RunEffects {
        let run = FinishedRun {
            trigger,
            digest: InputDigest::of_row(&row()),
            function_name: "Helpful",
            form,
            input: &scorer_input(&row()),
            target: &ScoringTarget::of_row(&row()).expect("a row with an id"),
            other_targets,
            token: Some("token"),
            started_ms: 1_000,
            ended_ms: 2_500,
            result,
        };
        run.effects()
    }

    fn members(value: &Value, names: &[&str]) -> Vec<Value> {
        names.iter().map(|name| value[*name].clone()).collect()
    }

    #[test]
    fn a_score_is_written_as_in_the_contract() {
        let result = json!({"name": "Helpful", "score": 0.8, "metadata": {"rationale": "r", "trigger": "forged"}});
        let found = effects(&trigger(), OnlineResultForm::Scores, Ok(result.clone()), &[]);
        let span = found.span.expect("a span");
        let identity = EffectIdentity::new("r", &TriggerScope::Span, &trigger().function, InputDigest::of_row(&row()));
        let expected = json!({
            "id": identity.row_id, "span_id": identity.span_id, "root_span_id": "t", "span_parents": ["s"],
            "created": "1970-01-01T00:00:01.000Z",
            "span_attributes": {"type": "score", "name": "Helpful", "purpose": "scorer"},
            "input": {"input": "i", "output": "o", "expected": null, "metadata": null}, "output": result,
            "scores": {"Helpful": 0.8},
            "metadata": {"rationale": "r", "automation_id": RULE, "trigger": "online"},
            "metrics": {"start": 1.0, "end": 2.5},
            "_async_scoring_control": {"kind": "state_override", "state": {"status": "disabled"}},
        });
        assert_eq!(span, expected);
        let merge = &found.merges[0];
        let control = &merge["_async_scoring_control"];
        let expected = [json!("r"), json!(true), json!({"Helpful": 0.8})];
        assert_eq!(members(merge, &["id", "_is_merge", "scores"]), expected);
        assert_eq!(members(control, &["kind", "token"]), [json!("score_update"), json!("token")]);
        assert_eq!(control["completes"]["idempotency_key"], "k");
        assert_eq!((found.merges.len(), found.event), (1, TriggerEvent::Succeed));
    }

    #[test]
    fn each_form_of_a_result_has_its_members() {
        use OnlineResultForm::{Classes, Facets, Scores, Tags};
        let classes = json!({"Helpful": [{"id": "b", "label": "b"}]});
        let cases = [
            (Scores, json!(null), "score", "scores", json!({"Helpful": null})),
            (Scores, json!([{"name": "a", "score": 1}]), "score", "scores", json!({"a": 1.0})),
            (Scores, json!([]), "score", "scores", json!(null)),
            (Classes, json!({"id": "b"}), "classifier", "classifications", classes),
            (Classes, json!(null), "classifier", "classifications", json!(null)),
            (Facets, json!("short text"), "facet", "facets", json!({"Helpful": "short text"})),
            (Facets, json!({"a": "x", "b": "y"}), "facet", "facets", json!({"a": "x", "b": "y"})),
            (Tags, json!(["x", "y", "x"]), "classifier", "tags", json!(["x", "y"])),
            (Tags, json!(null), "classifier", "tags", json!(null)),
        ];
        for (form, result, span_type, member, expected) in cases {
            let found = effects(&trigger(), form, Ok(result.clone()), &[]);
            assert_eq!(found.event, TriggerEvent::Succeed, "{result}");
            assert_eq!(found.merges[0][member], expected, "{result}");
            let span = found.span.expect("a span");
            assert_eq!((&span["span_attributes"]["type"], &span["output"]), (&json!(span_type), &result));
        }
    }

    #[test]
    fn a_failed_run_has_a_span_with_its_error_and_no_score() {
        let error = OnlineRunError { cause: RunFailureCause::Transient, message: "no answer".to_owned() };
        let found = effects(&trigger(), OnlineResultForm::Scores, Err(error), &[]);
        let span = found.span.expect("a span");
        assert_eq!(members(&span, &["error", "output", "scores"]), [json!("no answer"), json!(null), json!(null)]);
        let expected = json!({
            "kind": "mark_attempt_failed", "function_ids": [{"type": "function", "id": "f"}], "idempotency_key": "k",
            "attempts": 1, "retry_at_ms": 12_500, "final": false,
        });
        assert_eq!((&found.merges[0]["_async_scoring_control"], &found.merges[0]["scores"]), (&expected, &json!(null)));
        assert_eq!(found.event, TriggerEvent::Fail(RunFailureCause::Transient));
    }

    #[test]
    fn results_that_are_not_valid_are_errors_of_user_code() {
        use OnlineResultForm::{Classes, Facets, Scores, Tags};
        let cases = [
            (Scores, json!("0.45"), "the result of `Helpful` has a string at the top; it must be a number"),
            (Classes, json!("bug"), "the result of `Helpful` has a string at the top; it must be an object"),
            (Facets, json!(3), "the result of `Helpful` has 3 at the top; it must be a text"),
            (Facets, json!({"a": []}), "the result of `Helpful` has an array of 0 elements at `a`; it must be a text"),
            (Tags, json!(3), "the result of `Helpful` has 3 at the top; it must be a text"),
        ];
        for (form, result, begin) in cases {
            let found = effects(&trigger(), form, Ok(result), &[]);
            assert_eq!(found.event, TriggerEvent::Fail(RunFailureCause::UserCode));
            let error = found.span.expect("a span")["error"].as_str().expect("a text").to_owned();
            assert!(error.starts_with(begin), "{error}");
        }
    }

    #[test]
    fn without_logging_only_the_scored_rows_are_written() {
        let trigger = OpenTrigger { skips_logging: true, ..trigger() };
        let error = OnlineRunError { cause: RunFailureCause::Permanent, message: "no function".to_owned() };
        for result in [Ok(json!(1)), Err(error)] {
            let found = effects(&trigger, OnlineResultForm::Scores, result, &[]);
            assert_eq!((found.span, found.merges.len()), (None, 1));
        }
    }

    #[test]
    fn all_roots_of_a_group_receive_the_score() {
        let other = ScoringTarget { row_id: "q".to_owned(), span_id: "q".to_owned(), root_span_id: "q".to_owned() };
        let found = effects(&trigger(), OnlineResultForm::Scores, Ok(json!(1)), &[other]);
        let written: Vec<_> = found.merges.iter().map(|merge| members(merge, &["id", "scores"])).collect();
        assert_eq!(written, [[json!("r"), json!({"Helpful": 1.0})], [json!("q"), json!({"Helpful": 1.0})]]);
        assert_eq!(found.merges[1]["_async_scoring_control"]["completes"], Value::Null);
    }

    #[test]
    fn a_long_error_is_shortened_between_characters() {
        let error = OnlineRunError { cause: RunFailureCause::Permanent, message: "é".repeat(RUN_ERROR_BYTES_MAX) };
        let span = effects(&trigger(), OnlineResultForm::Scores, Err(error), &[]).span.expect("a span");
        let error = span["error"].as_str().expect("a text");
        assert!(error.ends_with("é (shortened from 32768 bytes)") && error.len() < RUN_ERROR_BYTES_MAX + 50);
    }

    #[test]
    fn functions_of_other_types_cannot_run_online() {
        assert_eq!(OnlineResultForm::of_function_type(None), Some(OnlineResultForm::Scores));
        assert_eq!(OnlineResultForm::of_function_type(Some("tool")), None);
    }
}
