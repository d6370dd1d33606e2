//! Tests of plans.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::*;
use crate::request::EvalParentSpan;

const JOB: Uuid = Uuid::from_u128(7);

fn inline(count: u64) -> Vec<EvalDatum> {
    (0..count).map(|position| EvalDatum::of_inline(position, json!(position)).expect("a datum")).collect()
}

fn row(id: &str) -> EvalDatum {
    let row = Map::from_iter([("id".to_owned(), json!(id)), ("input".to_owned(), json!(1))]);
    EvalDatum::of_dataset_row("d", row).expect("a datum")
}

fn scorers(count: usize) -> Vec<EvalScorer> {
    let scorer =
        |index: usize| EvalScorer { name: format!("s{index}"), kind: EvalScorerKind::Scorer, reads_trace: false };
    (0..count).map(scorer).collect()
}

fn plan(data: Vec<EvalDatum>, trials: u32, scorers: Vec<EvalScorer>) -> Result<EvalPlan, EvalPlanError> {
    EvalPlan::new(JOB, EvalTarget::experiment(Uuid::nil()), data, trials, scorers)
}

#[test]
fn every_id_of_a_plan_is_used_once_and_is_the_same_in_the_next_process() {
    let data = || [inline(3), vec![row("0"), row("1/row/0")]].concat();
    let all_ids = |plan: &EvalPlan| -> Vec<Uuid> {
        let cases = (0..plan.case_count()).filter_map(|case| plan.ids(CaseIndex(case)));
        let spans = cases.flat_map(|ids| [vec![ids.root, ids.task, ids.function], ids.scorers].concat());
        spans.flat_map(|span| [span.row_id, span.span_id]).collect()
    };
    let ids = all_ids(&plan(data(), 4, scorers(2)).expect("a plan"));
    assert_eq!(ids.len(), 5 * 4 * 5 * 2);
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    assert_eq!(all_ids(&plan(data(), 4, scorers(2)).expect("a plan")), ids);
    let other = EvalPlan::new(Uuid::from_u128(8), EvalTarget::experiment(Uuid::nil()), data(), 4, scorers(2));
    assert!(all_ids(&other.expect("a plan")).iter().all(|id| !ids.contains(id)));
}

#[test]
fn ids_stay_the_same_between_versions() {
    let ids = plan(vec![row("r")], 1, scorers(1)).expect("a plan").ids(CaseIndex(0)).expect("a case");
    assert_eq!(ids.root.row_id, Uuid::new_v5(&JOB, b"root.row/0/row/r"));
    assert_eq!(ids.scorers[0].span_id, Uuid::new_v5(&JOB, b"scorer-0.span/0/row/r"));
    assert_eq!(ids.root_span_id, ids.root.span_id.to_string());
}

#[test]
fn a_case_below_a_span_is_in_the_trace_of_that_span() {
    let span = EvalParentSpan { row_id: "otel".into(), span_id: "s".into(), root_span_id: "trace".into() };
    let target = EvalTarget { span: Some(span), ..EvalTarget::experiment(Uuid::nil()) };
    let plan = EvalPlan::new(JOB, target, inline(1), 1, Vec::new()).expect("a plan");
    assert_eq!(plan.ids(CaseIndex(0)).expect("a case").root_span_id, "trace");
}

#[test]
fn trials_of_a_datum_follow_each_other() {
    let plan = plan(inline(2), 3, Vec::new()).expect("a plan");
    let found: Vec<(Value, u32)> = (0..plan.case_count())
        .map(|case| (plan.datum(CaseIndex(case)).expect("a datum").input.clone(), plan.trial(CaseIndex(case))))
        .collect();
    assert_eq!(found, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)].map(|(input, trial)| (json!(input), trial)));
    assert!(plan.datum(CaseIndex(6)).is_none() && plan.ids(CaseIndex(6)).is_none());
}

#[test]
fn a_plan_beyond_a_limit_is_refused() {
    let error = |data, trials, scorers| plan(data, trials, scorers).expect_err("beyond a limit").to_string();
    assert_eq!(
        error(inline(10_001), 100, Vec::new()),
        "the eval has 10001 data with 100 trials each; at most 1000000 cases are allowed"
    );
    assert!(plan(inline(10_000), 100, Vec::new()).is_ok());
    assert_eq!(error(inline(1), 101, Vec::new()), "the eval has 101 trials of each datum; 1 to 100 are allowed");
    assert!(error(inline(1), 0, Vec::new()).starts_with("the eval has 0 trials"));
    assert_eq!(error(inline(1), 1, scorers(257)), "the eval has 257 scorers; at most 256 are allowed");
    assert_eq!(
        error(vec![row("a"), row("b"), row("a")], 1, Vec::new()),
        "row `a` occurs twice in the data; the ids of rows must be unique"
    );
    let large = EvalDatum::of_inline(0, json!("x".repeat(EVAL_DATA_BYTES_MAX))).expect("a datum");
    assert!(error(vec![large], 1, Vec::new()).contains("take more than 268435456 bytes"));
}

#[test]
fn written_cases_are_those_with_an_ended_root_row() {
    let plan = plan(inline(2), 2, Vec::new()).expect("a plan");
    let row = |case: u32, end: Value| {
        let id = plan.ids(CaseIndex(case)).expect("a case").root.row_id.to_string();
        let row = json!({"id": id, "metrics": {"start": 1, "end": end}, "scores": {"a": 1}});
        row.as_object().cloned().expect("an object")
    };
    let other = Map::from_iter([("id".to_owned(), json!("x")), ("metrics".to_owned(), json!({"end": 1}))]);
    let rows = [row(2, json!(2)), row(1, Value::Null), row(0, json!(2.5)), row(2, json!(2)), other];
    let mut found = WrittenCases::new(&plan);
    let written: Vec<WrittenCase> = rows.iter().filter_map(|row| found.find(row)).collect();
    assert_eq!(written.iter().map(|written| written.case.0).collect::<Vec<_>>(), [2, 0]);
    assert_eq!(written[0].tally.scores, [("a".to_owned(), 1.0)]);
}

#[test]
fn functions_of_other_types_are_no_scorers() {
    let kind = EvalScorerKind::of_function_type;
    assert_eq!((kind(None), kind(Some("scorer"))), (Some(EvalScorerKind::Scorer), Some(EvalScorerKind::Scorer)));
    assert_eq!(
        (kind(Some("tag")), kind(Some("classifier"))),
        (Some(EvalScorerKind::Tag), Some(EvalScorerKind::Classifier))
    );
    assert_eq!((kind(Some("task")), kind(Some("facet"))), (None, None));
}
