//! Tests of runs: one for each rule.

use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::datum::EvalDatum;
use crate::plan::{EvalScorer, EvalScorerKind, WrittenCases};
use crate::request::EvalTarget;
use crate::rows::{EvalCaseNotes, SpanRow};

const START: EvalEvent = EvalEvent::Started { started_ms: 1_000 };

fn scorers(count: usize, reads_trace: bool) -> Vec<EvalScorer> {
    let scorer = |index| EvalScorer { name: format!("s{index}"), kind: EvalScorerKind::Scorer, reads_trace };
    (0..count).map(scorer).collect()
}

fn run_of(data: u64, scorers: Vec<EvalScorer>, max_concurrency: u32, timeout_ms: Option<u64>) -> EvalRun {
    let data = (0..data).map(|position| EvalDatum::of_inline(position, json!(position)).expect("a datum")).collect();
    let target = EvalTarget::experiment(Uuid::nil());
    let plan = EvalPlan::new(Uuid::from_u128(1), target, data, 1, scorers).expect("a plan");
    EvalRun::new(Arc::new(plan), EvalLimits { max_concurrency, trial_count: 1, timeout_ms })
}

fn ok(value: Value) -> EvalCallOutcome {
    EvalCallOutcome::new(Ok(value))
}

fn task_ended(case: u32) -> EvalEvent {
    EvalEvent::TaskEnded { case: CaseIndex(case), outcome: ok(json!("out")) }
}

fn scorer_ended(case: u32, scorer: usize) -> EvalEvent {
    EvalEvent::ScorerEnded { case: CaseIndex(case), scorer, outcome: ok(json!(1)) }
}

fn written(case: u32) -> EvalEvent {
    EvalEvent::Written { case: CaseIndex(case) }
}

fn write_failed(case: u32) -> EvalEvent {
    EvalEvent::WriteFailed { case: CaseIndex(case), reason: "too large".into() }
}

/// Returns effects as short words, such as `task 0`.
fn words(effects: &[EvalEffect]) -> Vec<String> {
    let word = |effect: &EvalEffect| match effect {
        EvalEffect::RunTask { case, .. } => format!("task {}", case.0),
        EvalEffect::RunScorer { case, scorer, .. } => format!("scorer {}.{scorer}", case.0),
        EvalEffect::WriteTrace { case, .. } => format!("trace {}", case.0),
        EvalEffect::WriteCase { case, .. } => format!("write {}", case.0),
        EvalEffect::StopCalls => "stop".to_owned(),
        EvalEffect::Progress(progress) => format!("{} of {}", progress.done, progress.cases),
        EvalEffect::Finished { end, .. } => format!("{end:?}"),
    };
    effects.iter().map(word).collect()
}

fn written_rows(effects: &[EvalEffect]) -> Vec<&SpanRow> {
    let rows = effects.iter().filter_map(|effect| match effect {
        EvalEffect::WriteCase { rows, .. } | EvalEffect::WriteTrace { rows, .. } => Some(rows),
        _ => None,
    });
    rows.flatten().collect()
}

fn written_cases<'r>(plan: &EvalPlan, rows: impl IntoIterator<Item = &'r SpanRow>) -> Vec<WrittenCase> {
    let mut found = WrittenCases::new(plan);
    rows.into_iter().filter_map(|row| found.find(row)).collect()
}

#[test]
fn scorers_and_the_root_row_have_what_the_task_left_in_its_hooks() {
    let mut run = run_of(1, scorers(1, false), 10, None);
    run.step(1_000, START);
    let metadata = json!({"m": 1}).as_object().cloned().expect("an object");
    let notes = Some(EvalCaseNotes { metadata, tags: vec!["t".into()] });
    let outcome = EvalCallOutcome { notes, ..ok(json!("out")) };
    let effects = run.step(2_000, EvalEvent::TaskEnded { case: CaseIndex(0), outcome });
    let EvalEffect::RunScorer { input, .. } = &effects[0] else { panic!("a scorer") };
    assert_eq!(input["metadata"], json!({"m": 1}));
    let effects = run.step(3_000, scorer_ended(0, 0));
    let root = written_rows(&effects)[0];
    assert_eq!((&root["metadata"], &root["tags"]), (&json!({"m": 1}), &json!(["t"])));
}

#[test]
fn a_case_runs_its_task_then_all_scorers_then_one_write() {
    let mut run = run_of(1, scorers(2, false), 10, None);
    assert_eq!(words(&run.step(1_000, START)), ["task 0"]);
    let effects = run.step(2_000, task_ended(0));
    assert_eq!(words(&effects), ["scorer 0.0", "scorer 0.1"]);
    let EvalEffect::RunScorer { input, ids, .. } = &effects[0] else { panic!("a scorer") };
    let trace = json!({"trace_ref": {"object_type": "experiment", "object_id": Uuid::nil(),
        "root_span_id": ids.root.span_id}});
    let expected = json!({"input": 0, "output": "out", "expected": null, "metadata": {}, "trace": trace});
    assert_eq!(json!(**input), expected);
    assert!(run.step(3_000, scorer_ended(0, 1)).is_empty());
    let effects = run.step(4_000, scorer_ended(0, 0));
    assert_eq!(words(&effects), ["write 0"]);
    let rows = written_rows(&effects);
    assert_eq!(rows.len(), 4);
    assert_eq!(
        (&rows[0]["metrics"], &rows[0]["scores"]),
        (&json!({"start": 1.0, "end": 4.0}), &json!({"s0": 1.0, "s1": 1.0}))
    );
    assert_eq!(rows[1]["metrics"], json!({"start": 1.0, "end": 2.0}));
    assert_eq!(
        (&rows[2]["metrics"], &rows[3]["metrics"]),
        (&json!({"start": 2.0, "end": 4.0}), &json!({"start": 2.0, "end": 3.0}))
    );
    assert_eq!(rows[2]["input"].get("trace"), None);
    assert_eq!(words(&run.step(5_000, written(0))), ["1 of 1", "Completed"]);
    assert!(run.step(6_000, written(0)).is_empty(), "nothing follows the end");
}

#[test]
fn a_run_without_cases_ends_at_once() {
    assert_eq!(words(&run_of(0, Vec::new(), 1, None).step(1_000, START)), ["Completed"]);
}

#[test]
fn a_case_starts_when_another_one_is_written() {
    let mut run = run_of(3, Vec::new(), 2, None);
    assert_eq!(words(&run.step(1_000, START)), ["task 0", "task 1"]);
    assert_eq!(words(&run.step(1_000, task_ended(1))), ["write 1"]);
    assert_eq!(words(&run.step(1_000, written(1))), ["1 of 3", "task 2"]);
    assert_eq!(run.under_way(), 2);
}

#[test]
fn a_run_has_some_concurrency_and_not_too_much() {
    assert_eq!(run_of(3, Vec::new(), 0, None).step(1_000, START).len(), 1);
    assert_eq!(run_of(300, Vec::new(), 1_000, None).step(1_000, START).len(), 256);
}

#[test]
fn a_failed_task_has_no_scorers() {
    let mut run = run_of(1, scorers(1, true), 1, None);
    run.step(1_000, START);
    let outcome = EvalCallOutcome::new(Err("no model".into()));
    let effects = run.step(2_000, EvalEvent::TaskEnded { case: CaseIndex(0), outcome });
    assert_eq!(words(&effects), ["write 0"]);
    assert_eq!(written_rows(&effects)[0]["error"], "no model");
    run.step(3_000, written(0));
    assert_eq!((run.totals().written, run.totals().errors), (1, 1));
}

#[test]
fn scorers_that_read_spans_start_after_their_write() {
    let mut run = run_of(1, scorers(1, true), 1, None);
    run.step(1_000, START);
    let span = SpanRow::from_iter([("id".to_owned(), json!("model call"))]);
    let outcome = EvalCallOutcome { spans: vec![span], ..ok(json!(1)) };
    let effects = run.step(2_000, EvalEvent::TaskEnded { case: CaseIndex(0), outcome });
    assert_eq!(words(&effects), ["trace 0"]);
    let rows = written_rows(&effects);
    assert_eq!((rows.len(), &rows[0]["metrics"], &rows[2]["id"]), (3, &json!({"start": 1.0}), &json!("model call")));
    assert!(written_cases(run.plan(), rows).is_empty(), "a restart runs the case again");
    assert_eq!(words(&run.step(3_000, written(0))), ["scorer 0.0"]);
    let effects = run.step(4_000, scorer_ended(0, 0));
    let rows = written_rows(&effects);
    assert_eq!((words(&effects), rows.len()), (vec!["write 0".to_owned()], 3));
    assert_eq!(written_cases(run.plan(), rows).len(), 1);
}

#[test]
fn written_cases_are_not_run_again() {
    let mut first = run_of(3, Vec::new(), 3, None);
    first.step(1_000, START);
    let effects = first.step(2_000, task_ended(1));
    let cases = written_cases(first.plan(), written_rows(&effects));
    let mut second = run_of(3, Vec::new(), 3, None);
    assert!(second.step(5_000, EvalEvent::Restored { cases: cases.clone() }).is_empty());
    assert_eq!(words(&second.step(5_000, START)), ["task 0", "task 2"]);
    assert!(second.step(5_000, EvalEvent::Restored { cases }).is_empty());
    assert_eq!(second.totals().written, 1);
}

#[test]
fn cases_that_are_not_done_at_the_timeout_get_an_error() {
    let mut run = run_of(5, scorers(2, false), 3, Some(9_000));
    run.step(1_500, START);
    run.step(2_000, task_ended(0));
    run.step(3_000, scorer_ended(0, 1));
    run.step(3_000, task_ended(2));
    for scorer in 0..2 {
        run.step(4_000, scorer_ended(2, scorer));
    }
    assert_eq!(run.deadline_ms(), Some(10_000));
    let effects = run.step(10_000, EvalEvent::TimedOut);
    assert_eq!(words(&effects), ["stop", "write 0", "write 1"]);
    let error = json!("the eval exceeded its time limit of 9000 ms");
    let rows = written_rows(&effects);
    let errors: Vec<Option<&Value>> = rows.iter().map(|row| row.get("error")).collect();
    // Case 0 has a root, its task and two scorers, of which the first did not end. Case 1 has a root and its task.
    assert_eq!(errors, [Some(&error), None, Some(&error), None, Some(&error), Some(&error)]);
    assert_eq!((&rows[0]["output"], &rows[0]["scores"]), (&json!("out"), &json!({"s1": 1.0})));
    assert!(run.step(10_001, task_ended(1)).is_empty(), "a late result is not used");
    // Case 2 was complete before the timeout.
    let effects = run.step(10_002, written(2));
    assert_eq!(words(&effects), ["1 of 5", "write 3"]);
    let rows = written_rows(&effects);
    assert_eq!((rows.len(), &rows[0]["error"]), (1, &error));
    assert_eq!(words(&run.step(10_003, written(0))), ["2 of 5", "write 4"]);
    for case in [1, 3] {
        run.step(10_004, written(case));
    }
    assert_eq!(words(&run.step(10_005, written(4))), ["5 of 5", "TimedOut"]);
    assert_eq!((run.totals().errors, run.totals().scorer_errors), (4, 1));
}

#[test]
fn the_time_limit_holds_without_an_event_for_it_and_after_a_restart() {
    let mut run = run_of(1, Vec::new(), 1, Some(500));
    assert_eq!(words(&run.step(1_499, START)), ["task 0"]);
    let mut restarted = run_of(1, Vec::new(), 1, Some(500));
    assert_eq!(words(&restarted.step(1_500, START)), ["write 0"]);
    assert_eq!(words(&run.step(2_000, write_failed(0))), ["stop", "write 0"]);
}

#[test]
fn a_cancelled_run_writes_only_the_cases_under_way() {
    let mut run = run_of(3, scorers(1, true), 2, None);
    run.step(1_000, START);
    run.step(2_000, task_ended(1));
    let effects = run.step(3_000, EvalEvent::Cancelled);
    assert_eq!(words(&effects), ["stop", "write 0"]);
    assert_eq!(written_rows(&effects)[0]["error"], "the eval was cancelled");
    // The trace of case 1 is being written, so the write of the case follows it.
    let effects = run.step(3_000, written(1));
    assert_eq!(
        (words(&effects), &written_rows(&effects)[0]["error"]),
        (vec!["write 1".to_owned()], &json!("the eval was cancelled"))
    );
    run.step(4_000, written(1));
    assert_eq!(words(&run.step(4_000, written(0))), ["2 of 3", "Cancelled"]);
}

#[test]
fn a_stop_after_the_last_call_changes_nothing() {
    let mut run = run_of(1, Vec::new(), 1, Some(5_000));
    run.step(1_000, START);
    run.step(2_000, task_ended(0));
    assert!(run.step(7_000, EvalEvent::Cancelled).is_empty());
    assert_eq!(words(&run.step(8_000, written(0))), ["1 of 1", "Completed"]);
    assert_eq!(run.totals().errors, 0);
}

#[test]
fn a_run_may_be_cancelled_before_its_start() {
    assert_eq!(words(&run_of(2, Vec::new(), 1, None).step(1_000, EvalEvent::Cancelled)), ["Cancelled"]);
}

#[test]
fn a_refused_case_is_written_without_its_output() {
    let mut run = run_of(2, scorers(1, false), 1, None);
    run.step(1_000, START);
    run.step(1_000, task_ended(0));
    run.step(1_000, scorer_ended(0, 0));
    let effects = run.step(2_000, write_failed(0));
    assert_eq!(words(&effects), ["write 0"]);
    let rows = written_rows(&effects);
    assert_eq!((rows.len(), rows[0].get("output"), &rows[0]["scores"]), (1, None, &json!({"s0": 1.0})));
    assert_eq!(rows[0]["error"], "the rows of the case could not be written: too large");
    assert_eq!(words(&run.step(3_000, write_failed(0))), ["1 of 2", "task 1"]);
    assert_eq!((run.totals().unwritten, run.totals().written), (1, 0));
}

#[test]
fn a_refused_trace_is_a_refused_case() {
    let mut run = run_of(1, scorers(1, true), 1, None);
    run.step(1_000, START);
    run.step(1_000, task_ended(0));
    let effects = run.step(2_000, write_failed(0));
    assert_eq!((words(&effects), written_rows(&effects).len()), (vec!["write 0".to_owned()], 1));
    assert_eq!(words(&run.step(3_000, written(0))), ["1 of 1", "Completed"]);
}

#[test]
fn a_run_ends_when_no_case_can_be_written() {
    let mut run = run_of(100, Vec::new(), 2, None);
    run.step(1_000, START);
    let mut last = Vec::new();
    // Case 1 stays under way.
    for failing in [0, 2, 3, 4, 5, 6, 7, 8] {
        run.step(1_000, task_ended(failing));
        run.step(1_000, write_failed(failing));
        last = run.step(1_000, write_failed(failing));
    }
    assert_eq!(words(&last), ["8 of 100", "stop", "WritesFailed"]);
    assert_eq!((run.totals().unwritten, run.totals().written), (9, 0));
}

#[test]
fn a_write_that_succeeds_ends_a_series_of_failures() {
    let mut run = run_of(40, Vec::new(), 1, None);
    run.step(1_000, START);
    for case in 0..40 {
        run.step(1_000, task_ended(case));
        if case % UNWRITTEN_CASES_MAX == 0 {
            run.step(1_000, written(case));
        } else {
            run.step(1_000, write_failed(case));
            run.step(1_000, write_failed(case));
        }
    }
    assert_eq!((run.totals().written, run.totals().unwritten), (5, 35));
}

#[test]
fn events_for_nothing_under_way_are_ignored() {
    let mut run = run_of(2, scorers(1, false), 1, None);
    let strange = || {
        [task_ended(0), scorer_ended(0, 0), written(0), write_failed(0), task_ended(99), scorer_ended(1, 7), written(1)]
    };
    assert!(strange().into_iter().all(|event| run.step(1_000, event).is_empty()));
    run.step(1_000, START);
    for event in [START, scorer_ended(0, 0), written(0), write_failed(0), task_ended(1)] {
        assert!(run.step(1_000, event).is_empty());
    }
    run.step(1_000, task_ended(0));
    for event in [task_ended(0), scorer_ended(0, 1), written(0), write_failed(0)] {
        assert!(run.step(1_000, event).is_empty());
    }
    assert_eq!(words(&run.step(1_000, scorer_ended(0, 0))), ["write 0"]);
    assert!(run.step(1_000, scorer_ended(0, 0)).is_empty());
}
