//! Example data of `assay demo`: a travel assistant's traces, a dataset, two versions of a prompt and two experiments.
//!
//! The content is a pure function of a seed and a time, so that it needs no network and no model. The second experiment
//! has a planted regression: its shorter prompt answers questions on refunds worse.

mod catalog;
mod experiments;
mod random;
mod traces;

use serde_json::Value;

use random::Dice;

pub use catalog::{ANSWER_MODEL, PROMPT_NAME, PROMPT_SLUG};

/// Traces of the example data.
pub const TRACES: usize = 2000;
/// Days before the given time over which the traces are spread.
pub const DAYS: i64 = 7;

/// Example data, in the form of bodies of the public API.
#[derive(Clone, Debug, PartialEq)]
pub struct DemoContent {
    /// Events of the project's log. The spans of a trace follow each other.
    pub log: Vec<Value>,
    /// Events of the dataset.
    pub cases: Vec<Value>,
    /// Members `prompt_data` of the versions of the prompt, oldest first.
    pub prompts: Vec<Value>,
    /// Experiments, oldest first.
    pub experiments: Vec<DemoExperiment>,
}

/// Experiment over all cases of the dataset.
#[derive(Clone, Debug, PartialEq)]
pub struct DemoExperiment {
    pub name: &'static str,
    pub description: &'static str,
    pub metadata: Value,
    pub events: Vec<Value>,
}

/// Returns the example data whose newest trace is from `now`, in microseconds since 1970.
pub fn demo(seed: u64, now: i64) -> DemoContent {
    let mut dice = Dice::new(seed);
    let cases = experiments::cases(&mut dice);
    DemoContent {
        log: traces::log(&mut dice, TRACES, now),
        prompts: catalog::prompts(),
        experiments: experiments::experiments(&mut dice, &cases, now),
        cases,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    const NOW: i64 = 1_796_000_000_000_000;

    #[test]
    fn the_same_seed_gives_the_same_content() {
        assert_eq!(demo(1, NOW), demo(1, NOW));
        assert_ne!(demo(1, NOW).log, demo(2, NOW).log);
    }

    #[test]
    fn traces_are_whole_and_in_the_days_before() {
        let content = demo(1, NOW);
        let text = |event: &Value, name: &str| event[name].as_str().expect("a text").to_owned();
        let spans: HashSet<_> = content.log.iter().map(|event| text(event, "span_id")).collect();
        assert_eq!(spans.len(), content.log.len(), "span ids differ");
        let roots: HashSet<_> = content.log.iter().map(|event| text(event, "root_span_id")).collect();
        assert_eq!(roots.len(), TRACES);
        let (begin, end) = ((NOW / 1_000_000 - DAYS * 86_400) as f64, NOW as f64 / 1e6);
        for event in &content.log {
            if let Some(parent) = event["span_parents"][0].as_str() {
                assert!(spans.contains(parent), "{event}");
            }
            let [from, to] = ["start", "end"].map(|name| event["metrics"][name].as_f64().expect("a time"));
            assert!(begin <= from && from <= to && to <= end, "{event}");
        }
    }

    #[test]
    fn the_second_experiment_is_worse_at_refunds_and_shorter_elsewhere() {
        let content = demo(1, NOW);
        let mean = |experiment: &DemoExperiment, category: Option<&str>, score: &str| {
            let rows = experiment.events.iter().filter(|event| event["span_attributes"]["type"] == "eval");
            let scores: Vec<f64> = rows
                .filter(|event| category.is_none_or(|category| event["metadata"]["category"] == category))
                .filter_map(|event| event["scores"][score].as_f64())
                .collect();
            assert!(!scores.is_empty());
            scores.iter().sum::<f64>() / scores.len() as f64
        };
        let [old, new] = content.experiments.as_slice() else { panic!("two experiments") };
        let refunds = Some("refunds");
        assert!(mean(old, refunds, "correct") - mean(new, refunds, "correct") > 0.3);
        assert!(mean(new, None, "concise") - mean(old, None, "concise") > 0.1);
        let mut rows: HashMap<&str, usize> = HashMap::new();
        for event in &new.events {
            *rows.entry(event["span_attributes"]["type"].as_str().expect("a type")).or_default() += 1;
        }
        assert_eq!(rows["eval"], content.cases.len());
        assert_eq!(rows["score"], 2 * content.cases.len());
    }
}
