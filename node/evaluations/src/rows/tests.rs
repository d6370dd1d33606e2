//! Tests of the rows of a case.

use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::plan::{CaseIndex, EvalScorerKind};
use crate::request::{EvalParentSpan, EvalTarget, EvalTargetType};

fn call(result: Result<Value, &str>, start_ms: u64, end_ms: u64) -> CallRecord {
    let outcome = EvalCallOutcome::new(result.map_err(str::to_owned));
    CallRecord { start_ms, end_ms, outcome }
}

fn scorer(name: &str, kind: EvalScorerKind) -> EvalScorer {
    EvalScorer { name: name.into(), kind, reads_trace: false }
}

fn plan(target: EvalTarget, scorers: Vec<EvalScorer>) -> EvalPlan {
    let row =
        json!({"id": "r", "_xact_id": "7", "input": {"q": 1}, "expected": 2, "metadata": {"m": 1}, "tags": ["a"]});
    let datum = EvalDatum::of_dataset_row("d", row.as_object().cloned().expect("an object")).expect("a datum");
    EvalPlan::new(Uuid::from_u128(1), target, vec![datum], 1, scorers).expect("a plan")
}

fn record(task: CallRecord, scorers: Vec<CallRecord>) -> CaseRecord {
    CaseRecord { start_ms: 1_000, end_ms: Some(4_500), task: Some(task), scorers, error: None }
}

fn rows(plan: &EvalPlan, mut record: CaseRecord) -> (EvalCaseIds, CaseRows) {
    let case = CaseIndex(0);
    let (datum, ids) = (plan.datum(case).expect("a datum"), plan.ids(case).expect("ids"));
    let rows = CaseFrame { plan, datum, ids: &ids }.rows(&mut record);
    (ids, rows)
}

/// Returns the members of a row that every row has.
fn head(ids: EvalSpanIds, root_span_id: &str, parents: Value, (start, end): (f64, f64), created: &str) -> Value {
    json!({"id": ids.row_id, "span_id": ids.span_id, "root_span_id": root_span_id, "span_parents": parents,
        "created": created, "metrics": {"start": start, "end": end}})
}

fn with(mut head: Value, members: Value) -> Value {
    let Value::Object(members) = members else { panic!("an object") };
    head.as_object_mut().expect("an object").extend(members);
    head
}

#[test]
fn a_case_has_a_root_a_task_and_a_span_for_each_scorer() {
    let scorers = vec![
        scorer("Exact", EvalScorerKind::Scorer),
        scorer("Judge", EvalScorerKind::Scorer),
        scorer("Broken", EvalScorerKind::Scorer),
        scorer("Class", EvalScorerKind::Classifier),
        scorer("Tags", EvalScorerKind::Tag),
    ];
    let plan = plan(EvalTarget::experiment(Uuid::nil()), scorers);
    let judge = json!({"name": "Quality", "score": 0.5, "metadata": {"choice": "B"}});
    let results = [Ok(json!(null)), Ok(judge.clone()), Err("it broke"), Ok(json!({"id": "x"})), Ok(json!(["b", "a"]))];
    let calls = results.map(|result| call(result, 3_000, 4_000)).to_vec();
    let (ids, found) = rows(&plan, record(call(Ok(json!("out")), 1_000, 3_000), calls));
    let root = ids.root.span_id.to_string();
    let origin = json!({"object_type": "dataset", "object_id": "d", "id": "r", "_xact_id": "7"});
    let classes = json!({"Class": [{"id": "x", "label": "x"}]});
    let child = |ids, times, created| head(ids, &root, json!([root]), times, created);
    let start = "1970-01-01T00:00:01.000Z";
    let arguments = json!({"input": {"q": 1}, "output": "out", "expected": 2, "metadata": {"m": 1}});
    let scored = |index: usize, name: &str, span_type: &str, members: Value| {
        let attributes = json!({"name": name, "type": span_type, "purpose": "scorer"});
        let head = child(ids.scorers[index], (3.0, 4.0), "1970-01-01T00:00:03.000Z");
        with(with(head, json!({"span_attributes": attributes, "input": arguments})), members)
    };
    let expected = json!([
        with(
            head(ids.root, &root, Value::Null, (1.0, 4.5), start),
            json!({
            "span_attributes": {"name": "eval", "type": "eval"}, "input": {"q": 1}, "output": "out", "expected": 2,
            "metadata": {"m": 1, "scorer_errors": {"Broken": "it broke"}}, "scores": {"Quality": 0.5},
            "classifications": classes, "tags": ["a", "b"], "origin": origin})
        ),
        with(
            child(ids.task, (1.0, 3.0), start),
            json!({
            "span_attributes": {"name": "task", "type": "task"}, "input": {"q": 1}, "output": "out"})
        ),
        scored(0, "Exact", "score", json!({"output": null, "scores": {"Exact": null}})),
        scored(1, "Judge", "score", json!({"output": judge, "scores": {"Quality": 0.5}, "metadata": {"choice": "B"}})),
        scored(2, "Broken", "score", json!({"error": "it broke"})),
        scored(3, "Class", "classifier", json!({"output": {"id": "x"}, "classifications": classes})),
        scored(4, "Tags", "classifier", json!({"output": ["b", "a"]})),
    ]);
    for (row, expected) in found.rows.iter().zip(expected.as_array().expect("a list")) {
        assert_eq!(json!(row), *expected);
    }
    assert_eq!((found.rows.len(), found.omitted_spans), (7, 0));
}

#[test]
fn a_failed_task_has_its_error_in_the_root_too() {
    let plan = plan(EvalTarget::experiment(Uuid::nil()), Vec::new());
    let (_, found) = rows(&plan, record(call(Err("no model"), 1_000, 3_000), Vec::new()));
    assert_eq!((&found.rows[0]["error"], &found.rows[1]["error"]), (&json!("no model"), &json!("no model")));
    assert!(!found.rows[0].contains_key("output") && !found.rows[0].contains_key("scores"));
}

#[test]
fn a_case_that_ended_early_keeps_what_it_has() {
    let plan = plan(EvalTarget::experiment(Uuid::nil()), vec![scorer("f", EvalScorerKind::Scorer)]);
    let mut early = record(call(Ok(json!(1)), 1_000, 2_000), vec![call(Ok(json!(1)), 2_000, 3_000)]);
    early.error = Some("too late".into());
    let (_, found) = rows(&plan, early);
    assert_eq!((&found.rows[0]["error"], &found.rows[0]["output"]), (&json!("too late"), &json!(1)));
    assert_eq!((&found.rows[0]["scores"], found.rows[1].get("error")), (&json!({"f": 1.0}), None));
    let never =
        CaseRecord { start_ms: 1, end_ms: Some(1), task: None, scorers: Vec::new(), error: Some("late".into()) };
    let (_, found) = rows(&plan, never);
    assert_eq!((found.rows.len(), &found.rows[0]["error"]), (1, &json!("late")));
}

#[test]
fn rows_below_a_span_have_its_trace_and_what_it_propagates() {
    let span = EvalParentSpan { row_id: "otel".into(), span_id: "s".into(), root_span_id: "trace".into() };
    let propagated = json!({"span_attributes": {"purpose": "scorer", "x": 1}, "metadata": {"p": 2}});
    let target = EvalTarget {
        object_type: EvalTargetType::PlaygroundLogs,
        object_id: Uuid::nil(),
        span: Some(span),
        propagated: propagated.as_object().cloned().expect("an object"),
    };
    let plan = plan(target, vec![scorer("f", EvalScorerKind::Scorer)]);
    let (ids, found) = rows(&plan, record(call(Ok(json!(1)), 1_000, 2_000), vec![call(Ok(json!(1)), 2_000, 3_000)]));
    assert_eq!(found.rows[0]["span_parents"], json!(["s"]));
    assert_eq!(found.rows[1]["span_parents"], json!([ids.root.span_id]));
    assert_eq!(found.rows[0]["metadata"], json!({"m": 1, "p": 2}));
    for (row, (name, span_type)) in found.rows.iter().zip([("eval", "eval"), ("task", "task"), ("f", "score")]) {
        assert_eq!(row["root_span_id"], "trace");
        assert_eq!(row["span_attributes"], json!({"name": name, "type": span_type, "purpose": "scorer", "x": 1}));
        assert_eq!(row["metadata"]["p"], 2);
    }
}

#[test]
fn scorers_get_null_and_an_empty_object_for_what_is_absent() {
    let datum = EvalDatum::of_inline(0, json!("q")).expect("a datum");
    let arguments = Value::Object(scorer_arguments(&datum, &json!([1])));
    assert_eq!(arguments, json!({"input": "q", "output": [1], "expected": null, "metadata": {}}));
}

#[test]
fn spans_below_the_calls_are_added_up_to_a_limit() {
    let plan = plan(EvalTarget::experiment(Uuid::nil()), vec![scorer("f", EvalScorerKind::Scorer)]);
    let span = |id: String| SpanRow::from_iter([("id".to_owned(), json!(id))]);
    let ids = plan.ids(CaseIndex(0)).expect("ids");
    let mut scored = call(Ok(json!(1)), 2_000, 3_000);
    // The driver's row of the scorer's own span gives way to the row with the checked result.
    scored.outcome.spans = vec![span(ids.scorers[0].row_id.to_string()), span("judge".into())];
    let mut task = call(Ok(json!(1)), 1_000, 2_000);
    task.outcome.spans = vec![span(ids.function.row_id.to_string())];
    let (_, found) = rows(&plan, record(task.clone(), vec![scored.clone()]));
    let found: Vec<&Value> = found.rows.iter().map(|row| &row["id"]).collect();
    let function = ids.function.row_id;
    assert_eq!(json!(found), json!([ids.root.row_id, ids.task.row_id, function, ids.scorers[0].row_id, "judge"]));
    task.outcome.spans = (0..CASE_SPANS_MAX).map(|index| span(index.to_string())).collect();
    let (_, found) = rows(&plan, record(task, vec![scored]));
    assert_eq!((found.rows.len(), found.omitted_spans), (CASE_SPANS_MAX + 3, 1));
}

#[test]
fn a_reduced_case_has_only_its_root_without_the_output() {
    let plan = plan(EvalTarget::experiment(Uuid::nil()), vec![scorer("f", EvalScorerKind::Scorer)]);
    let record = record(call(Ok(json!("large")), 1_000, 2_000), vec![call(Ok(json!(0.5)), 2_000, 3_000)]);
    let (datum, ids) = (plan.datum(CaseIndex(0)).expect("a datum"), plan.ids(CaseIndex(0)).expect("ids"));
    let found = CaseFrame { plan: &plan, datum, ids: &ids }.reduced_rows(&record);
    assert_eq!(found.rows.len(), 1);
    assert_eq!((found.rows[0].get("output"), &found.rows[0]["scores"]), (None, &json!({"f": 0.5})));
}
