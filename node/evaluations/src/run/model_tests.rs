//! Model-based tests of runs: random orders of events, failing functions, and crashes at any point.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::datum::EvalDatum;
use crate::plan::{EvalScorer, EvalScorerKind, WrittenCases};
use crate::request::EvalTarget;
use crate::rows::SpanRow;

/// Shape of an eval.
#[derive(Clone, Debug)]
struct Shape {
    data: u64,
    trials: u32,
    kinds: Vec<EvalScorerKind>,
    reads_trace: bool,
    max_concurrency: u32,
    /// Decides which calls fail, and with what.
    seed: u64,
}

/// Driver of a run, whose calls and writes end in an order that the test chooses.
struct Driver<'s> {
    shape: &'s Shape,
    run: EvalRun,
    /// Effects whose end has not been reported.
    pending: Vec<EvalEffect>,
    /// Rows by id, which survive crashes.
    store: BTreeMap<String, SpanRow>,
    /// Writes of each complete case that reached the store.
    complete_writes: BTreeMap<CaseIndex, u32>,
    finished: Option<(EvalTotals, EvalEnd)>,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let kind = prop_oneof![
        3 => Just(EvalScorerKind::Scorer),
        1 => Just(EvalScorerKind::Classifier),
        1 => Just(EvalScorerKind::Tag),
    ];
    let kinds = prop::collection::vec(kind, 0..4);
    (0..6_u64, 1..3_u32, kinds, any::<bool>(), 1..5_u32, any::<u64>()).prop_map(
        |(data, trials, kinds, reads_trace, max_concurrency, seed)| Shape {
            data,
            trials,
            kinds,
            reads_trace,
            max_concurrency,
            seed,
        },
    )
}

impl Shape {
    fn new_run(&self) -> EvalRun {
        let data = (0..self.data).map(|position| EvalDatum::of_inline(position, json!(position)).expect("a datum"));
        // Two scorers have one name.
        let scorer = |(index, kind): (usize, &EvalScorerKind)| EvalScorer {
            name: format!("f{}", index / 2),
            kind: *kind,
            reads_trace: self.reads_trace && index == 0,
        };
        let scorers = self.kinds.iter().enumerate().map(scorer).collect();
        let target = EvalTarget::experiment(Uuid::nil());
        let plan = EvalPlan::new(Uuid::from_u128(9), target, data.collect(), self.trials, scorers).expect("a plan");
        let limits = EvalLimits { max_concurrency: self.max_concurrency, trial_count: self.trials, timeout_ms: None };
        EvalRun::new(Arc::new(plan), limits)
    }

    /// Returns the outcome of a call, which is the same in every process.
    fn outcome(&self, case: CaseIndex, role: &str) -> EvalCallOutcome {
        let id = Uuid::new_v5(&Uuid::from_u64_pair(self.seed, case.0.into()), role.as_bytes());
        let dice = id.as_bytes()[0];
        let result = match (role, dice % 8) {
            (_, 0) => Err(format!("{role} failed")),
            ("task", _) => Ok(json!(dice)),
            (_, 1) => Ok(Value::Null),
            (_, 2) => Ok(json!(17)),
            (_, 3) => Ok(json!({"id": "c", "score": 0.5})),
            _ => Ok(json!({"id": format!("c{}", dice % 3), "score": f64::from(dice) / 255.0})),
        };
        let span = SpanRow::from_iter([("id".to_owned(), json!(id.to_string()))]);
        EvalCallOutcome { spans: vec![span], ..EvalCallOutcome::new(result) }
    }
}

impl<'s> Driver<'s> {
    fn new(shape: &'s Shape) -> Driver<'s> {
        let (store, complete_writes) = (BTreeMap::new(), BTreeMap::new());
        let mut driver =
            Driver { shape, run: shape.new_run(), pending: Vec::new(), store, complete_writes, finished: None };
        driver.start();
        driver
    }

    /// Restores what the store has, and starts the run.
    fn start(&mut self) {
        let mut found = WrittenCases::new(self.run.plan());
        let cases = self.store.values().filter_map(|row| found.find(row)).collect();
        self.step(EvalEvent::Restored { cases });
        self.step(EvalEvent::Started { started_ms: 1 });
    }

    /// Loses everything but the store.
    fn crash(&mut self) {
        self.run = self.shape.new_run();
        self.pending.clear();
        self.finished = None;
        self.start();
    }

    fn step(&mut self, event: EvalEvent) {
        // The time stands still, so that rows of two runs are comparable.
        for effect in self.run.step(1, event) {
            match effect {
                EvalEffect::Progress(_) => {}
                EvalEffect::StopCalls => panic!("nothing stops this run"),
                EvalEffect::Finished { totals, end } => {
                    assert!(self.finished.replace((totals, end)).is_none(), "a run ends once");
                }
                effect => self.pending.push(effect),
            }
        }
        assert!(self.run.under_way() <= self.shape.max_concurrency as usize);
        let mut cases: Vec<CaseIndex> = self.pending.iter().filter_map(case_of).collect();
        cases.sort();
        cases.dedup();
        assert!(cases.len() <= self.shape.max_concurrency as usize, "{cases:?}");
    }

    /// Executes one of the pending effects, and reports its end unless the report is lost.
    fn execute(&mut self, choice: usize, is_reported: bool) {
        let event = match self.pending.swap_remove(choice % self.pending.len()) {
            EvalEffect::RunTask { case, .. } => {
                EvalEvent::TaskEnded { case, outcome: self.shape.outcome(case, "task") }
            }
            EvalEffect::RunScorer { case, scorer, .. } => {
                let outcome = self.shape.outcome(case, &format!("scorer {scorer}"));
                EvalEvent::ScorerEnded { case, scorer, outcome }
            }
            EvalEffect::WriteTrace { case, rows } => {
                self.store(rows);
                EvalEvent::Written { case }
            }
            EvalEffect::WriteCase { case, rows } => {
                self.store(rows);
                *self.complete_writes.entry(case).or_default() += 1;
                EvalEvent::Written { case }
            }
            other => panic!("{other:?} is not pending"),
        };
        if is_reported {
            self.step(event);
        }
    }

    fn store(&mut self, rows: Vec<SpanRow>) {
        for row in rows {
            let id = row["id"].as_str().expect("an id").to_owned();
            self.store.insert(id, row);
        }
    }

    fn run_to_end(&mut self) {
        while !self.pending.is_empty() {
            self.execute(0, true);
        }
    }
}

fn case_of(effect: &EvalEffect) -> Option<CaseIndex> {
    match effect {
        EvalEffect::RunTask { case, .. }
        | EvalEffect::RunScorer { case, .. }
        | EvalEffect::WriteTrace { case, .. }
        | EvalEffect::WriteCase { case, .. } => Some(*case),
        EvalEffect::StopCalls | EvalEffect::Progress(_) | EvalEffect::Finished { .. } => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_run_with_crashes_has_the_rows_and_totals_of_an_undisturbed_run(
        shape in shapes(),
        choices in prop::collection::vec((any::<prop::sample::Index>(), 0..10_u8), 0..120),
    ) {
        let mut undisturbed = Driver::new(&shape);
        undisturbed.run_to_end();
        let mut disturbed = Driver::new(&shape);
        for (choice, crash) in choices {
            if disturbed.pending.is_empty() {
                break;
            }
            // A crash comes before, between or after an effect and its report.
            disturbed.execute(choice.index(usize::MAX), crash != 0);
            if crash <= 1 {
                disturbed.crash();
            }
        }
        disturbed.run_to_end();
        prop_assert_eq!(disturbed.finished, undisturbed.finished);
        prop_assert_eq!(&disturbed.store, &undisturbed.store);
        let cases = shape.data as usize * shape.trials as usize;
        prop_assert_eq!(disturbed.complete_writes.len(), cases);
        prop_assert!(disturbed.complete_writes.values().all(|writes| *writes == 1), "{:?}", disturbed.complete_writes);
    }

    #[test]
    fn a_run_ends_with_every_case_accounted_for(
        shape in shapes(),
        timeout in 0..40_usize,
        is_cancelled in any::<bool>(),
        choices in prop::collection::vec((any::<prop::sample::Index>(), 0..6_u8), 0..120),
    ) {
        let mut run = shape.new_run();
        let cases = u64::from(run.plan().case_count());
        let mut pending = run.step(1, EvalEvent::Started { started_ms: 1 });
        let mut finished = None;
        let mut choices = choices.into_iter().cycle();
        for turn in 0.. {
            if turn == timeout {
                let stop = if is_cancelled { EvalEvent::Cancelled } else { EvalEvent::TimedOut };
                pending.extend(run.step(1, stop));
            }
            if pending.is_empty() {
                break;
            }
            let (choice, fails) = choices.next().map_or((0, 1), |(choice, fails)| (choice.index(pending.len()), fails));
            let event = match pending.swap_remove(choice) {
                EvalEffect::RunTask { case, .. } => EvalEvent::TaskEnded { case, outcome: shape.outcome(case, "task") },
                EvalEffect::RunScorer { case, scorer, .. } => {
                    EvalEvent::ScorerEnded { case, scorer, outcome: shape.outcome(case, "scorer") }
                }
                EvalEffect::WriteTrace { case, .. } | EvalEffect::WriteCase { case, .. } if fails == 0 => {
                    EvalEvent::WriteFailed { case, reason: "no".into() }
                }
                EvalEffect::WriteTrace { case, .. } | EvalEffect::WriteCase { case, .. } => EvalEvent::Written { case },
                EvalEffect::Finished { totals, end } => {
                    prop_assert!(finished.replace((totals, end)).is_none(), "a run ends once");
                    continue;
                }
                EvalEffect::StopCalls | EvalEffect::Progress(_) => continue,
            };
            pending.extend(run.step(1, event));
            prop_assert!(run.under_way() <= shape.max_concurrency as usize);
        }
        let Some((totals, end)) = finished else { return Err(TestCaseError::fail("the run has no end")) };
        if matches!(end, EvalEnd::Completed | EvalEnd::TimedOut) {
            prop_assert_eq!(totals.done(), cases);
        }
        prop_assert!(totals.done() <= cases && totals.errors <= totals.written);
    }
}
