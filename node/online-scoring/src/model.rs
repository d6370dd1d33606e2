//! Model of a log with its write path, executors that crash, and clients, for the test of all parts together.

mod executor;
mod log;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::control::ScoringControl;
use crate::identity::EffectIdentity;
use crate::rule::{OnlineRule, OnlineRuleStatus};
use crate::scope::TriggerScope;
use crate::state::TriggerStatus;
use executor::ModelExecutor;
use log::{ModelLog, name_of};

/// Rounds until everything has run at the end; more show that something never ends.
const SETTLING_ROUNDS: usize = 400;

/// Rule with the parts that change.
#[derive(Clone, Debug)]
pub(crate) struct ModelRule {
    pub(crate) rule: OnlineRule,
    pub(crate) since_xact: u64,
    pub(crate) is_deleted: bool,
}

#[derive(Clone, Debug)]
enum ModelStep {
    /// Start of a span, which replaces an older row.
    Start {
        row: u8,
        input: u8,
    },
    /// End of a span by a merge.
    End {
        row: u8,
        output: u8,
    },
    /// Whole row with a result. The same one again is a replay.
    Whole {
        row: u8,
        output: u8,
        skips: bool,
    },
    /// Score by a person.
    Feedback {
        row: u8,
    },
    /// Merge of something that functions read.
    Comment {
        row: u8,
        expected: u8,
    },
    Control {
        row: u8,
        kind: u8,
    },
    Toggle {
        rule: usize,
    },
    Delete {
        rule: usize,
    },
    Poll {
        executor: usize,
    },
    Run {
        executor: usize,
        fails: bool,
    },
    Store {
        executor: usize,
    },
    Crash {
        executor: usize,
    },
    Wait {
        ms: u64,
    },
}

fn step() -> impl Strategy<Value = ModelStep> {
    let row = 0_u8..4;
    let executor = 0_usize..2;
    prop_oneof![
        4 => (row.clone(), 0_u8..2).prop_map(|(row, input)| ModelStep::Start { row, input }),
        5 => (row.clone(), 0_u8..3).prop_map(|(row, output)| ModelStep::End { row, output }),
        4 => (row.clone(), 0_u8..3, prop::bool::weighted(0.2))
            .prop_map(|(row, output, skips)| ModelStep::Whole { row, output, skips }),
        2 => row.clone().prop_map(|row| ModelStep::Feedback { row }),
        2 => (row.clone(), 0_u8..3).prop_map(|(row, expected)| ModelStep::Comment { row, expected }),
        1 => (row, 0_u8..3).prop_map(|(row, kind)| ModelStep::Control { row, kind }),
        1 => (0_usize..2).prop_map(|rule| ModelStep::Toggle { rule }),
        1 => (0_usize..40).prop_map(|rule| if rule < 2 { ModelStep::Delete { rule } } else { ModelStep::Wait { ms: 1 } }),
        12 => executor.clone().prop_map(|executor| ModelStep::Poll { executor }),
        12 => (executor.clone(), prop::bool::weighted(0.25)).prop_map(|(executor, fails)| ModelStep::Run { executor, fails }),
        4 => executor.clone().prop_map(|executor| ModelStep::Store { executor }),
        2 => executor.prop_map(|executor| ModelStep::Crash { executor }),
        3 => (0_u64..70_000).prop_map(|ms| ModelStep::Wait { ms }),
    ]
}

fn rule(id: u128, rate: f64, functions: &[&str], skips_logging: bool) -> ModelRule {
    let scorers: Vec<Value> = functions.iter().map(|id| json!({"type": "function", "id": id})).collect();
    let record = json!({
        "id": Uuid::from_u128(id), "project_id": Uuid::nil(), "name": "rule", "score_type": "online",
        "config": {"online": {"sampling_rate": rate, "scorers": scorers, "skip_logging": skips_logging}},
    });
    let rule = OnlineRule::read(record.as_object().expect("an object")).expect("a valid rule");
    ModelRule { rule, since_xact: 0, is_deleted: false }
}

/// Log, rules and executors together.
struct ModelWorld {
    log: ModelLog,
    rules: Vec<ModelRule>,
    executors: Vec<ModelExecutor>,
    now_ms: u64,
}

impl ModelWorld {
    fn new(executors: usize) -> ModelWorld {
        ModelWorld {
            log: ModelLog::default(),
            rules: vec![rule(1, 1.0, &["f", "g"], false), rule(2, 0.5, &["f", "h"], true)],
            executors: (0..executors).map(|_| ModelExecutor::default()).collect(),
            now_ms: 0,
        }
    }

    fn apply(&mut self, step: &ModelStep) {
        let executors = self.executors.len();
        match *step {
            ModelStep::Start { row, input } => self.log.write(json!({
                "id": name_of(row), "span_id": name_of(row), "root_span_id": name_of(row), "span_parents": null,
                "input": input, "metrics": {"start": 1},
            })),
            ModelStep::End { row, output } => {
                self.log.write(json!({
                    "id": name_of(row), "_is_merge": true, "output": output, "metrics": {"end": 2},
                }));
            }
            ModelStep::Whole { row, output, skips } => self.log.write(json!({
                "id": name_of(row), "span_id": name_of(row), "root_span_id": name_of(row), "input": 0, "output": output,
                "_skip_async_scoring": skips,
            })),
            ModelStep::Feedback { row } => {
                self.log.write(json!({"id": name_of(row), "_is_merge": true, "scores": {"human": 1}, "tags": ["t"]}));
            }
            ModelStep::Comment { row, expected } => {
                self.log.write(json!({"id": name_of(row), "_is_merge": true, "expected": expected}));
            }
            ModelStep::Control { row, kind } => self.control(row, kind),
            ModelStep::Toggle { rule } => self.toggle(rule),
            ModelStep::Delete { rule } => self.delete(rule),
            ModelStep::Poll { executor } => self.executors[executor % executors].poll(&mut self.log, &self.rules),
            ModelStep::Run { executor, fails } => {
                self.executors[executor % executors].run_one(&mut self.log, self.now_ms, fails);
            }
            ModelStep::Store { executor } => self.executors[executor % executors].store(),
            ModelStep::Crash { executor } => self.executors[executor % executors].crash(),
            ModelStep::Wait { ms } => self.now_ms += ms,
        }
    }

    /// Writes a control of a client to a row that exists.
    fn control(&mut self, row: u8, kind: u8) {
        let control = match kind {
            0 => json!({"kind": "state_force_reselect"}),
            1 => json!({"kind": "state_enabled_force_rescore"}),
            _ => json!({"kind": "trigger_functions",
                "triggered_functions": [{"function_id": {"type": "function", "id": "f"}, "idempotency_key": "client"}]}),
        };
        if self.log.rows.contains_key(&name_of(row)) {
            self.log.write(json!({"id": name_of(row), "_is_merge": true, "_async_scoring_control": control}));
        }
    }

    fn toggle(&mut self, rule: usize) {
        use OnlineRuleStatus::{Active, Paused};
        let changed = &mut self.rules[rule];
        if changed.is_deleted {
            return;
        }
        let status = if changed.rule.is_active() { Paused } else { Active };
        changed.rule.config.status = status;
        if status == Active {
            changed.since_xact = self.log.xact;
        } else {
            self.cancel(rule);
        }
    }

    fn delete(&mut self, rule: usize) {
        self.rules[rule].is_deleted = true;
        self.rules[rule].rule.config.status = OnlineRuleStatus::Paused;
        self.cancel(rule);
    }

    fn cancel(&mut self, rule: usize) {
        let id = self.rules[rule].rule.id;
        for executor in &mut self.executors {
            for row in executor.open.cancel_rule(id) {
                let control = ScoringControl::CancelTriggers { rules: vec![id] }.to_json();
                self.log.write(json!({"id": row, "_is_merge": true, "_async_scoring_control": control}));
            }
        }
    }

    /// Lets both executors work until nothing is left to do.
    fn settle(&mut self) {
        for _ in 0..SETTLING_ROUNDS {
            let before = self.log.xact;
            for executor in &mut self.executors {
                executor.poll(&mut self.log, &self.rules);
                while executor.run_one(&mut self.log, self.now_ms, false) {}
                executor.store();
            }
            let next = self.executors.iter().filter_map(|executor| executor.open.next_ready_at_ms()).min();
            self.now_ms = next.map_or(self.now_ms, |next| next.max(self.now_ms));
            if self.log.xact == before && self.executors.iter().all(|executor| executor.open.is_empty()) {
                return;
            }
        }
        panic!("online scoring does not come to an end");
    }

    /// Checks the log after everything has run.
    fn check(&self) {
        let mut runs: BTreeMap<(&str, u64, String), usize> = BTreeMap::new();
        for effect in &self.log.effects {
            assert!(effect.row_id.starts_with('r'), "rows of scoring are scored: {effect:?}");
            *runs.entry((&effect.row_id, effect.life, effect.function.key())).or_default() += 1;
        }
        for ((row_id, life, function), count) in &runs {
            let forced = self.log.forced.get(&((*row_id).to_owned(), *life)).copied().unwrap_or_default();
            assert!(*count <= 1 + forced, "{function} has {count} effects on {row_id}, {forced} forced");
        }
        self.check_spans();
        for (id, row) in self.log.rows.iter().filter(|(id, _)| id.starts_with('r')) {
            for (function, is_expected) in self.expected(id) {
                let count = runs.get(&(id.as_str(), row.life, function.clone())).copied().unwrap_or_default();
                let has_failed = row.state.enabled().is_some_and(|enabled| {
                    enabled.triggers().any(|(key, found)| key == function && found.status() == TriggerStatus::Failed)
                });
                match is_expected {
                    true => {
                        assert!(count > 0 || has_failed, "{function} has no effect on {id}: {row:?}");
                        assert!(
                            has_failed || row.doc["scores"][&function[12..]] == 1.0,
                            "{id} lost its score: {row:?}"
                        );
                    }
                    false => assert_eq!(count, 0, "{function} has an effect on {id}: {row:?}"),
                }
            }
            assert_eq!(row.state.open_triggers().count(), 0);
        }
    }

    /// Checks that each input of a function has one span, however often it ran.
    fn check_spans(&self) {
        let inputs: BTreeSet<_> =
            self.log.effects.iter().map(|effect| (&effect.row_id, effect.function.key(), effect.digest)).collect();
        let spans = self.log.rows.values().filter(|row| row.doc["span_attributes"]["purpose"] == "scorer");
        let with_scores = spans.filter(|row| row.doc.get("scores").is_some()).count();
        assert!(with_scores <= inputs.len(), "{with_scores} spans for {} inputs", inputs.len());
        for effect in &self.log.effects {
            let row = &self.log.rows[&effect.row_id];
            let trigger =
                row.state.enabled().and_then(|enabled| enabled.trigger(&effect.function, &TriggerScope::Span));
            let is_shown = trigger.is_some_and(|(_, trigger)| {
                let is_latest = trigger.digest == Some(effect.digest) && trigger.status() == TriggerStatus::Done;
                is_latest && !trigger.skips_logging
            });
            let identity = EffectIdentity::new(&effect.row_id, &TriggerScope::Span, &effect.function, effect.digest);
            let span = self.log.rows.get(&identity.row_id.to_string()).filter(|_| is_shown);
            assert!(span.is_none_or(|span| span.doc.get("scores").is_some()), "an error hides a result: {span:?}");
        }
    }

    /// Returns the functions that must, or must not, have an effect on the last life of a row.
    fn expected(&self, id: &str) -> Vec<(String, bool)> {
        let row = &self.log.rows[id];
        let is_wanted = |function: &str| {
            self.rules.iter().any(|rule| {
                let of_rule = rule.rule.config.functions.iter().any(|known| known.key() == function);
                let is_seen = row.finishes.iter().any(|finish| *finish > rule.since_xact);
                rule.rule.is_active() && of_rule && is_seen && rule.rule.config.sampling_rate.selects(rule.rule.id, id)
            })
        };
        let functions = ["f", "g", "h"].map(|function| format!("function_id:{function}"));
        let is_forced = self.log.forced.contains_key(&(id.to_owned(), row.life));
        let never = row.finishes.is_empty() && !is_forced;
        let found = functions.into_iter().filter_map(|function| match (row.skipped, is_wanted(&function)) {
            // a skipped finish beside others is judged or not, as the executor saw it
            (true, _) => (row.finishes.is_empty() && !is_forced).then_some((function, false)),
            (false, true) => Some((function, true)),
            (false, false) => never.then_some((function, false)),
        });
        found.collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn each_sampled_candidate_has_one_effect_of_each_function(
        steps in prop::collection::vec(step(), 1..120), executors in 1_usize..3,
    ) {
        let mut world = ModelWorld::new(executors);
        for step in &steps {
            world.apply(step);
        }
        world.settle();
        world.check();
        // an executor that reads the whole log again has nothing to do
        let (xact, effects) = (world.log.xact, world.log.effects.len());
        let mut reader = ModelExecutor::default();
        reader.poll(&mut world.log, &world.rules);
        prop_assert!(reader.open.is_empty());
        prop_assert_eq!((world.log.xact, world.log.effects.len()), (xact, effects));
    }
}
