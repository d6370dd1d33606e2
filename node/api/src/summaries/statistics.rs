//! Statistics of an experiment: means of its scores and metrics, and their changes against another experiment, trace by trace.
//! Pure. Traces are paired by a key; of several with one key the mean counts.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};

use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use serde_json::{Map, Value, json};

/// Upper bound of numbers held of one compared experiment: a name, a key and a value.
pub const CELLS_MAX: usize = 1 << 20;
/// Names of scores and metrics of one experiment.
const NAMES_MAX: usize = 10_000;
/// Metrics that are moments and not amounts.
const MOMENTS: [&str; 2] = ["start", "end"];

/// Hash of the keys that traces are paired by, the same for both experiments.
#[derive(Clone, Debug, Default)]
pub struct Pairing {
    hashers: [RandomState; 2],
}

impl Pairing {
    fn hash(&self, key: &str) -> u128 {
        let [a, b] = &self.hashers;
        u128::from(a.hash_one(key)) << 64 | u128::from(b.hash_one(key))
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

/// The numbers of one kind, of one experiment.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    all: BTreeMap<String, Mean>,
    /// Means by the key of a trace and the index of a name. Filled only for a comparison.
    paired: HashMap<(u128, u32), Mean>,
    names: HashMap<String, u32>,
}

impl Tally {
    /// Adds the numbers of one trace. `key` is set if it is compared.
    pub fn add(&mut self, numbers: &Map<String, Value>, key: Option<(&Pairing, &str)>) -> Result<(), Refusal> {
        let key = key.map(|(pairing, key)| pairing.hash(key));
        for (name, number) in numbers {
            let Some(number) = number.as_f64().filter(|_| !MOMENTS.contains(&name.as_str())) else { continue };
            if !self.names.contains_key(name) {
                if self.names.len() == NAMES_MAX {
                    let said =
                        format!("the experiment has more than {NAMES_MAX} distinct scores or metrics: use a query");
                    return Err(Refusal::new(ErrorKind::TooLarge, said));
                }
                self.names.insert(name.clone(), self.names.len() as u32);
            }
            self.all.entry(name.clone()).or_default().add(number);
            if let Some(key) = key {
                self.paired.entry((key, self.names[name])).or_default().add(number);
                if self.paired.len() > CELLS_MAX {
                    let said = format!("the experiment has more than {CELLS_MAX} numbers to compare: use a query");
                    return Err(Refusal::new(ErrorKind::TooLarge, said));
                }
            }
        }
        Ok(())
    }

    /// Returns an entry for each name: the name, its mean (in the field `mean_as`) and, against another experiment, the
    /// number of traces that improved and regressed, and the mean difference. Scores improve upwards; a metric improves in
    /// the direction of [`better_when`].
    pub fn entries(&self, mean_as: &str, base: Option<&Tally>) -> Value {
        let mut compared: BTreeMap<&str, Compared> = BTreeMap::new();
        if let Some(base) = base {
            for (name, place) in &self.names {
                let Some(theirs) = base.names.get(name) else { continue };
                let better = if mean_as == METRIC { better_when(name) } else { Better::Higher };
                compared.insert(name, self.compared(*place, base, *theirs, better));
            }
        }
        let entries = self.all.iter().map(|(name, mean)| {
            let found = compared.get(name.as_str()).copied().unwrap_or_default();
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

    fn compared(&self, own: u32, base: &Tally, theirs: u32, better: Better) -> Compared {
        let mut found = Compared::default();
        for ((key, name), mean) in self.paired.iter().filter(|((_, name), _)| *name == own) {
            debug_assert_eq!(*name, own);
            let Some(before) = base.paired.get(&(*key, theirs)) else { continue };
            let by = mean.value() - before.value();
            found.by.add(by);
            let gain = match better {
                Better::Higher => by,
                Better::Lower => -by,
            };
            if gain > 0.0 {
                found.improved += 1;
            } else if gain < 0.0 {
                found.regressed += 1;
            }
        }
        found
    }
}

/// The fields of the mean in entries.
pub const SCORE: &str = "score";
pub const METRIC: &str = "metric";

#[derive(Clone, Copy, Debug, Default)]
struct Compared {
    improved: u64,
    regressed: u64,
    by: Mean,
}

/// Direction in which a number gets better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Better {
    Higher,
    Lower,
}

/// Returns the direction in which a metric of this name gets better: less time, fewer tokens, lower cost and fewer errors.
/// A metric of any other name, such as one that a client defined, gets better upwards
/// (`node/decisions/0029-metrics-where-less-is-better.md`).
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

    fn tally(pairing: &Pairing, traces: &[(&str, Value)]) -> Tally {
        let mut tally = Tally::default();
        for (key, numbers) in traces {
            tally.add(numbers.as_object().expect("an object"), Some((pairing, key))).expect("few");
        }
        tally
    }

    #[test]
    fn means_are_over_all_traces_and_null_counts_for_nothing() {
        let pairing = Pairing::default();
        let traces = [("a", json!({"s": 1, "t": null})), ("b", json!({"s": 0.5})), ("c", json!({"other": 0}))];
        let entries = tally(&pairing, &traces).entries(SCORE, None);
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
        let pairing = Pairing::default();
        let before = tally(&pairing, &[("a", json!({"s": 0.25})), ("b", json!({"s": 1})), ("gone", json!({"s": 1}))]);
        let after = [
            ("a", json!({"s": 0.5})),
            ("a", json!({"s": 1})),
            ("b", json!({"s": 0.75})),
            ("new", json!({"s": 0})),
            ("b", json!({"new": 1})),
        ];
        let entries = tally(&pairing, &after).entries(SCORE, Some(&before));
        // `a` by 0.5 up, `b` by 0.25 down.
        let s = json!({"name": "s", "score": 0.5625, "improvements": 1, "regressions": 1, "diff": 0.125});
        assert_eq!(entries["s"], s);
        assert_eq!(entries["new"], json!({"name": "new", "score": 1.0, "improvements": 0, "regressions": 0}));
    }

    #[test]
    fn less_time_tokens_cost_and_errors_are_improvements() {
        let pairing = Pairing::default();
        let names = ["duration", "time_to_first_token", "prompt_tokens", "estimated_cost", "errors", "mine"];
        let all = |number: f64| Value::Object(names.iter().map(|name| ((*name).to_owned(), json!(number))).collect());
        let (before, after) = (tally(&pairing, &[("a", all(2.0))]), tally(&pairing, &[("a", all(1.0))]));
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
        let pairing = Pairing::default();
        let trace = json!({"start": 5, "end": 7, "duration": 2, "prompt_tokens": 3, "estimated_cost": 0.5, "mine": 1});
        let entries = tally(&pairing, &[("a", trace)]).entries(METRIC, None);
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
        let (pairing, mut tally) = (Pairing::default(), Tally::default());
        let numbers: Map<String, Value> = (0..NAMES_MAX).map(|name| (name.to_string(), json!(1))).collect();
        let mut over = None;
        for key in 0..=CELLS_MAX / NAMES_MAX {
            over = tally.add(&numbers, Some((&pairing, &key.to_string()))).err();
        }
        assert_eq!(over.map(|refusal| refusal.kind), Some(ErrorKind::TooLarge));
        let one_more = Map::from_iter([("another".to_owned(), json!(1))]);
        assert!(tally.add(&one_more, None).is_err());
    }
}
