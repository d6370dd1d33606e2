//! Tallies of an experiment: means of scores and metrics, and changes against another experiment.
//!
//! Traces are paired by a key. The mean of several traces with the same key counts.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{BuildHasher, RandomState};

use serde_json::{Map, Value, json};

/// Upper bound of the numbers of one compared experiment in memory.
const CELLS_MAX: usize = 1 << 20;
/// Upper bound of the names of scores or metrics of one experiment.
const NAMES_MAX: usize = 10_000;
/// Metrics that are points in time, which have no mean.
const MOMENTS: [&str; 2] = ["start", "end"];

/// Hash function for the keys of traces, shared by both experiments.
#[derive(Clone, Debug, Default)]
pub struct KeyHasher {
    hashers: [RandomState; 2],
}

impl KeyHasher {
    fn hash(&self, key: &str) -> u128 {
        let [a, b] = &self.hashers;
        u128::from(a.hash_one(key)) << 64 | u128::from(b.hash_one(key))
    }
}

/// Error for an experiment with too many numbers to summarize in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooManyNumbers {
    Names,
    Cells,
}

impl fmt::Display for TooManyNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TooManyNumbers::Names => {
                write!(f, "the experiment has more than {NAMES_MAX} distinct scores or metrics: use a query")
            }
            TooManyNumbers::Cells => {
                write!(f, "the experiment has more than {CELLS_MAX} numbers to compare: use a query")
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, number: f64) {
        self.sum += number;
        self.count += 1;
    }

    fn value(self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }
}

/// Scores or metrics of one experiment.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    all: BTreeMap<String, Mean>,
    /// Means by the key of a trace and the index of a name. The map is empty without a comparison.
    paired: HashMap<(u128, u32), Mean>,
    names: HashMap<String, u32>,
}

impl Tally {
    /// Adds the numbers of one trace. A comparison requires `key`.
    pub fn add(&mut self, numbers: &Map<String, Value>, key: Option<(&KeyHasher, &str)>) -> Result<(), TooManyNumbers> {
        let key = key.map(|(hasher, key)| hasher.hash(key));
        for (name, number) in numbers {
            let Some(number) = number.as_f64().filter(|_| !MOMENTS.contains(&name.as_str())) else { continue };
            if !self.names.contains_key(name) {
                if self.names.len() == NAMES_MAX {
                    return Err(TooManyNumbers::Names);
                }
                self.names.insert(name.clone(), self.names.len() as u32);
            }
            self.all.entry(name.clone()).or_default().add(number);
            if let Some(key) = key {
                self.paired.entry((key, self.names[name])).or_default().add(number);
                if self.paired.len() > CELLS_MAX {
                    return Err(TooManyNumbers::Cells);
                }
            }
        }
        Ok(())
    }

    /// Returns an entry for each name, with the mean in the field `mean_as`.
    ///
    /// With `base`, an entry also has the numbers of improved and regressed traces, and the mean difference. Higher
    /// scores are better, and [`better_when`] decides for metrics.
    pub fn entries(&self, mean_as: &str, base: Option<&Tally>) -> Value {
        let compared = base.map(|base| self.compared(base, mean_as)).unwrap_or_default();
        let entries = self.all.iter().map(|(name, mean)| {
            let found = self.names.get(name).and_then(|place| compared.get(place)).copied().unwrap_or_default();
            let mut entry = json!({
                "name": name, "improvements": found.improved, "regressions": found.regressed,
            });
            entry[mean_as] = mean.value().into();
            if mean_as == METRIC {
                entry["unit"] = unit(name).into();
            }
            if found.by.count > 0 {
                entry["diff"] = found.by.value().into();
            }
            (name.clone(), entry)
        });
        Value::Object(entries.collect())
    }

    /// Returns the changes against another experiment, by the index of a name. Each pair is read once.
    fn compared(&self, base: &Tally, mean_as: &str) -> HashMap<u32, Compared> {
        let shared = self.names.iter().filter_map(|(name, own)| {
            let better = if mean_as == METRIC { better_when(name) } else { Better::Higher };
            Some((*own, (*base.names.get(name)?, better)))
        });
        let shared: HashMap<u32, (u32, Better)> = shared.collect();
        let mut all: HashMap<u32, Compared> = HashMap::new();
        for ((key, own), mean) in &self.paired {
            let Some((theirs, better)) = shared.get(own) else { continue };
            let Some(before) = base.paired.get(&(*key, *theirs)) else { continue };
            all.entry(*own).or_default().add(mean.value() - before.value(), *better);
        }
        all
    }
}

/// Field of a score's mean in entries.
pub const SCORE: &str = "score";
/// Field of a metric's mean in entries.
pub const METRIC: &str = "metric";

#[derive(Clone, Copy, Debug, Default)]
struct Compared {
    improved: u64,
    regressed: u64,
    by: Mean,
}

impl Compared {
    fn add(&mut self, by: f64, better: Better) {
        self.by.add(by);
        let gain = match better {
            Better::Higher => by,
            Better::Lower => -by,
        };
        if gain > 0.0 {
            self.improved += 1;
        } else if gain < 0.0 {
            self.regressed += 1;
        }
    }
}

/// Direction in which a number gets better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Better {
    Higher,
    Lower,
}

/// Returns the direction in which a metric of this name gets better.
///
/// Less time, fewer tokens, lower cost and fewer errors are better. Other metrics, such as those that clients define,
/// get better upwards (`node/decisions/0029-metrics-where-less-is-better.md`).
fn better_when(name: &str) -> Better {
    const LOWER: [&str; 9] = [
        "duration",
        "llm_duration",
        "time_to_first_token",
        "tokens",
        "estimated_cost",
        "cost",
        "errors",
        "llm_errors",
        "tool_errors",
    ];
    const LOWER_ENDINGS: [&str; 5] = ["_duration", "_tokens", "_cost", "_errors", "_latency"];
    let lower = LOWER.contains(&name) || LOWER_ENDINGS.iter().any(|ending| name.ends_with(ending));
    if lower { Better::Lower } else { Better::Higher }
}

/// Returns the unit of a metric.
fn unit(name: &str) -> &'static str {
    match name {
        "duration" | "llm_duration" | "time_to_first_token" => "s",
        "estimated_cost" => "$",
        _ if name == "tokens" || name.ends_with("_tokens") => "tok",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(hasher: &KeyHasher, traces: &[(&str, Value)]) -> Tally {
        let mut tally = Tally::default();
        for (key, numbers) in traces {
            tally.add(numbers.as_object().expect("an object"), Some((hasher, key))).expect("few");
        }
        tally
    }

    #[test]
    fn means_are_over_all_traces_and_null_counts_for_nothing() {
        let hasher = KeyHasher::default();
        let traces = [("a", json!({"s": 1, "t": null})), ("b", json!({"s": 0.5})), ("c", json!({"other": 0}))];
        let entries = tally(&hasher, &traces).entries(SCORE, None);
        assert_eq!(
            entries,
            json!({
                "s": {"name": "s", "score": 0.75, "improvements": 0, "regressions": 0},
                "other": {"name": "other", "score": 0.0, "improvements": 0, "regressions": 0},
            })
        );
    }

    #[test]
    fn traces_are_compared_by_their_key_and_several_of_one_by_their_mean() {
        let hasher = KeyHasher::default();
        let before = tally(&hasher, &[("a", json!({"s": 0.25})), ("b", json!({"s": 1})), ("gone", json!({"s": 1}))]);
        let after = [
            ("a", json!({"s": 0.5})),
            ("a", json!({"s": 1})),
            ("b", json!({"s": 0.75})),
            ("new", json!({"s": 0})),
            ("b", json!({"new": 1})),
        ];
        let entries = tally(&hasher, &after).entries(SCORE, Some(&before));
        // `a` by 0.5 up, `b` by 0.25 down.
        let s = json!({"name": "s", "score": 0.5625, "improvements": 1, "regressions": 1, "diff": 0.125});
        assert_eq!(entries["s"], s);
        assert_eq!(entries["new"], json!({"name": "new", "score": 1.0, "improvements": 0, "regressions": 0}));
    }

    #[test]
    fn less_time_tokens_cost_and_errors_are_improvements() {
        let hasher = KeyHasher::default();
        let names = ["duration", "time_to_first_token", "prompt_tokens", "estimated_cost", "errors", "mine"];
        let all = |number: f64| Value::Object(names.iter().map(|name| ((*name).to_owned(), json!(number))).collect());
        let (before, after) = (tally(&hasher, &[("a", all(2.0))]), tally(&hasher, &[("a", all(1.0))]));
        let faster = after.entries(METRIC, Some(&before));
        for name in names {
            let improved = u64::from(name != "mine");
            assert_eq!(faster[name]["improvements"], improved, "{name}");
            assert_eq!(faster[name]["regressions"], 1 - improved, "{name}");
            assert_eq!(faster[name]["diff"], -1.0, "{name}");
        }
        let scores = after.entries(SCORE, Some(&before));
        assert_eq!(scores["duration"]["regressions"], 1, "a score of that name gets better upwards");
    }

    #[test]
    fn metrics_have_units_and_moments_are_none() {
        let hasher = KeyHasher::default();
        let trace = json!({"start": 5, "end": 7, "duration": 2, "prompt_tokens": 3, "estimated_cost": 0.5, "mine": 1});
        let entries = tally(&hasher, &[("a", trace)]).entries(METRIC, None);
        let units: Vec<_> = entries
            .as_object()
            .expect("entries")
            .iter()
            .map(|(name, entry)| (name.as_str(), entry["unit"].as_str().expect("a unit")))
            .collect();
        assert_eq!(units, [("duration", "s"), ("estimated_cost", "$"), ("mine", ""), ("prompt_tokens", "tok")]);
        assert_eq!(entries["duration"]["metric"], 2.0);
    }

    #[test]
    fn there_is_an_end_to_what_is_compared() {
        let (hasher, mut tally) = (KeyHasher::default(), Tally::default());
        let numbers: Map<String, Value> = (0..NAMES_MAX).map(|name| (name.to_string(), json!(1))).collect();
        let mut over = None;
        for key in 0..=CELLS_MAX / NAMES_MAX {
            over = tally.add(&numbers, Some((&hasher, &key.to_string()))).err();
        }
        assert_eq!(over, Some(TooManyNumbers::Cells));
        let one_more = Map::from_iter([("another".to_owned(), json!(1))]);
        assert_eq!(tally.add(&one_more, None), Err(TooManyNumbers::Names));
    }
}
