//! Dataset of the example data, and two experiments over it. The second one has the planted regression.

use serde_json::{Value, json};

use crate::DemoExperiment;
use crate::catalog::{ANSWER_MODEL, TOPICS, Topic, question, system_prompt, usage};
use crate::random::Dice;
use crate::traces::{event, merge};

/// Cases of each topic.
const CASES_PER_TOPIC: usize = 10;
/// Category whose answers the shorter prompt makes worse.
const REGRESSED: &str = "refunds";
/// One of so many cases of that category stays correct.
const REGRESSED_KEEPS: usize = 3;
const SECOND_MICROS: i64 = 1_000_000;
/// Time between the cases of an experiment.
const CASE_MICROS: i64 = 3 * SECOND_MICROS;
/// Age of each experiment.
const AGES_MICROS: [i64; 2] = [26 * 3600 * SECOND_MICROS, 2 * 3600 * SECOND_MICROS];

/// Returns the events of the dataset.
pub(crate) fn cases(dice: &mut Dice) -> Vec<Value> {
    let topics = TOPICS.iter().flat_map(|topic| std::iter::repeat_n(topic, CASES_PER_TOPIC));
    topics
        .map(|topic| {
            json!({
                "id": dice.id(), "input": {"question": question(dice, topic).0}, "expected": topic.answer,
                "metadata": {"category": topic.category, "article": topic.article}, "tags": [topic.category],
            })
        })
        .collect()
}

/// Returns an experiment for each version of the prompt.
pub(crate) fn experiments(dice: &mut Dice, cases: &[Value], now: i64) -> Vec<DemoExperiment> {
    let described = [
        ("long prompt", "All exceptions are named"),
        ("short prompt", "Two sentences at most: cheaper, and worse at refunds. Compare it with `long prompt`"),
    ];
    let experiment = |(version, (name, description))| DemoExperiment {
        name,
        description,
        metadata: json!({"model": ANSWER_MODEL, "prompt_version": version + 1}),
        events: events(dice, (version, cases), now - AGES_MICROS[version]),
    };
    described.into_iter().enumerate().map(experiment).collect()
}

fn events(dice: &mut Dice, (version, cases): (usize, &[Value]), start: i64) -> Vec<Value> {
    let mut events = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let topic = TOPICS.iter().find(|topic| case["metadata"]["category"] == topic.category);
        let Some(topic) = topic else { continue };
        let outcome = outcome(dice, topic, (version, index));
        let start = start + i64::try_from(index).unwrap_or_default() * CASE_MICROS;
        events.extend(case_events(dice, (version, case), &outcome, start));
    }
    events
}

/// Answer of a case and its scores.
#[derive(Debug)]
struct CaseOutcome {
    answer: String,
    correct: f64,
    concise: f64,
}

fn outcome(dice: &mut Dice, topic: &Topic, (version, index): (usize, usize)) -> CaseOutcome {
    let is_correct = match (version, topic.category == REGRESSED) {
        // The regression does not depend on the dice.
        (1, true) => index.is_multiple_of(REGRESSED_KEEPS),
        (_, true) => true,
        (_, false) => !dice.happens(0.07),
    };
    let whole = if is_correct { topic.answer } else { topic.poor_answer };
    let (answer, concise) = match version {
        0 => (whole.to_owned(), 0.6),
        // The first sentence is what a short answer keeps.
        _ => (whole.split_inclusive(['.', ';']).take(2).collect(), 0.9),
    };
    let jitter = dice.between(-10, 11) as f64 / 100.0;
    CaseOutcome { answer, correct: f64::from(u8::from(is_correct)), concise: concise + jitter }
}

/// Returns the spans of one case: the case, its task, the model call and two scores.
fn case_events(dice: &mut Dice, (version, case): (usize, &Value), outcome: &CaseOutcome, start: i64) -> Vec<Value> {
    let CaseOutcome { answer, correct, concise } = outcome;
    let (root, task) = (dice.id(), dice.id());
    let answered = start + dice.latency(if version == 0 { 1800.0 } else { 900.0 });
    let messages = json!([
        {"role": "system", "content": system_prompt(version)},
        {"role": "user", "content": case["input"]["question"]},
    ]);
    let output = json!([{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": answer}}]);
    let metrics = usage(ANSWER_MODEL, &messages.to_string(), answer);
    let whole = json!({
        "input": case["input"], "output": answer, "expected": case["expected"], "metadata": case["metadata"],
        "tags": case["tags"], "scores": {"correct": correct, "concise": concise},
        "origin": {"object_type": "dataset", "id": case["id"]},
    });
    let called = json!({"input": messages, "output": output, "metadata": {"model": ANSWER_MODEL}, "metrics": metrics});
    let mut spans = vec![
        (root.clone(), None, ("eval", "eval"), (start, answered + 40_000), whole),
        (task.clone(), Some(&root), ("task", "task"), (start, answered), json!({"output": answer})),
        (dice.id(), Some(&task), ("answer", "llm"), (start + 1000, answered - 1000), called),
    ];
    for (name, score) in [("correct", correct), ("concise", concise)] {
        let members = json!({"input": {"output": answer, "expected": case["expected"]}, "output": score,
            "scores": {name: score}, "span_attributes": {"purpose": "scorer"}});
        spans.push((dice.id(), Some(&root), (name, "score"), (answered, answered + 30_000), members));
    }
    let events = spans.into_iter().map(|(id, parent, named, times, members)| {
        let mut event = event(&id, &root, parent.map(String::as_str), named, times);
        merge(&mut event, members);
        Value::Object(event)
    });
    events.collect()
}
