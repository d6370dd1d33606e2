//! Ledger of one client's rows: a plain model of replace, merge and delete, and of requests with unknown outcome.

use std::collections::{BTreeMap, BTreeSet};

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};

/// Fields of a write, without the id.
type Fields = Map<String, Value>;

/// Content of a row; none if it is absent.
type LedgerRow = Option<Fields>;

/// The fields that are compared.
const FIELDS: [&str; 8] = ["input", "output", "expected", "error", "metadata", "scores", "metrics", "span_attributes"];

#[derive(Debug, Default)]
pub struct Ledger {
    /// Known content of each row; none if absent or deleted.
    rows: BTreeMap<String, LedgerRow>,
    written: u64,
    /// Request in flight: the content of each of its rows if it is applied.
    open: BTreeMap<String, LedgerRow>,
    /// The last request had no answer, and nothing has been read since.
    in_doubt: bool,
    counts: BTreeMap<&'static str, u64>,
}

impl Ledger {
    /// Rows for the next request, and whether it is wrong on purpose.
    pub fn next(&mut self, client: u64, rows_max: usize, rng: &mut ChaCha8Rng) -> (Vec<Value>, bool) {
        let mut ids = BTreeSet::new();
        let mut rows = Vec::new();
        for _ in 0..rng.random_range(1..=rows_max) {
            self.written += 1;
            let known = self.rows.len();
            let again = known > 0 && rng.random_bool(0.4);
            let id = match again {
                true => self.rows.keys().nth(rng.random_range(0..known)).cloned().unwrap_or_default(),
                false => format!("c{client}-{}", self.written),
            };
            if ids.insert(id.clone()) {
                rows.push(self.change(&id, again, rng));
            }
        }
        let wrong = rng.random_bool(0.1);
        if wrong {
            // All of a request or nothing: the rows before a wrong one must not be written either.
            rows.push(json!({ "id": format!("c{client}-wrong-{}", self.written), "scores": { "s": 1.5 } }));
        }
        (rows, wrong)
    }

    fn change(&self, id: &str, again: bool, rng: &mut ChaCha8Rng) -> Value {
        let number = self.written;
        let text = "x".repeat(rng.random_range(0..2000));
        if again && rng.random_bool(0.2) {
            return json!({ "id": id, "_object_delete": true });
        }
        if again && rng.random_bool(0.6) {
            return json!({
                "id": id, "_is_merge": true, "output": { "n": number, "text": text },
                "metadata": { format!("m{}", number % 3): number },
            });
        }
        json!({ "id": id, "input": { "n": number, "text": text }, "metadata": { "by": number } })
    }

    /// A request goes out with these rows, no id twice.
    pub fn sends(&mut self, rows: &[Value]) {
        self.open.clear();
        for row in rows {
            let id = row["id"].as_str().unwrap_or_default();
            let before = self.rows.get(id).and_then(Option::as_ref);
            self.open.insert(id.to_owned(), after(before, row));
        }
    }

    pub fn acknowledged(&mut self) {
        self.count("requests acknowledged");
        self.rows.append(&mut self.open);
    }

    pub fn refused(&mut self) {
        self.count("requests refused");
        self.open.clear();
    }

    pub fn unanswered(&mut self) {
        self.count("requests without an answer");
        self.in_doubt = true;
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub fn take_counts(&mut self) -> BTreeMap<&'static str, u64> {
        std::mem::take(&mut self.counts)
    }

    /// Holds everything that was read against what is known, and settles what was in doubt. One line for each finding.
    pub fn check(&mut self, read: &[Value]) -> Vec<String> {
        let mut found = Vec::new();
        let mut seen: BTreeMap<&str, &Value> = BTreeMap::new();
        for row in read {
            let id = row["id"].as_str().unwrap_or_default();
            if seen.insert(id, row).is_some() {
                found.push(format!("row {id} is there twice"));
            }
        }
        let open = if std::mem::take(&mut self.in_doubt) { std::mem::take(&mut self.open) } else { BTreeMap::new() };
        let applied = self.whole_or_absent(&open, &seen, &mut found);
        if applied {
            self.count("requests without an answer that were applied");
            self.rows.extend(open);
        }
        let expected: BTreeSet<&str> =
            self.rows.iter().filter(|(_, state)| state.is_some()).map(|(id, _)| id.as_str()).collect();
        for (id, state) in &self.rows {
            match (state, seen.get(id.as_str())) {
                (Some(fields), Some(row)) if !says(row, fields) => {
                    found.push(format!("row {id} says {row}, not {}", Value::Object(fields.clone())));
                }
                (Some(_), None) => found.push(format!("row {id} was acknowledged and is not there")),
                (None, Some(_)) => found.push(format!("row {id} was deleted and is there")),
                _ => {}
            }
        }
        found.extend(
            seen.keys()
                .filter(|id| !expected.contains(*id) && !self.rows.contains_key(**id))
                .map(|id| format!("row {id} is there, and was refused or never sent")),
        );
        found
    }

    /// Returns whether the unanswered request was applied: all of its rows, or none.
    fn whole_or_absent(
        &self,
        open: &BTreeMap<String, LedgerRow>,
        seen: &BTreeMap<&str, &Value>,
        found: &mut Vec<String>,
    ) -> bool {
        let as_now = |id: &String, state: &LedgerRow| match (state, seen.get(id.as_str())) {
            (Some(fields), Some(row)) => says(row, fields),
            (None, None) => true,
            _ => false,
        };
        let before = |id: &String| self.rows.get(id).cloned().flatten();
        // A row that says the same before and after tells nothing.
        let telling: Vec<_> = open.iter().filter(|(id, state)| before(id) != **state).collect();
        let applied = telling.iter().filter(|(id, state)| as_now(id, state)).count();
        if applied != 0 && applied != telling.len() {
            found.push(format!("of a request without an answer {applied} of {} rows were applied", telling.len()));
        }
        applied == telling.len() && !telling.is_empty()
    }
}

fn says(row: &Value, fields: &Fields) -> bool {
    FIELDS.iter().all(|name| {
        let expected = fields.get(*name).unwrap_or(&Value::Null);
        row.get(*name).unwrap_or(&Value::Null) == expected
    })
}

/// Returns the content of a row after this write.
fn after(before: Option<&Fields>, row: &Value) -> LedgerRow {
    if row["_object_delete"] == json!(true) {
        return None;
    }
    let sent = FIELDS.iter().filter_map(|name| Some(((*name).to_owned(), row.get(*name)?.clone())));
    if row["_is_merge"] != json!(true) {
        return Some(sent.collect());
    }
    let mut fields = before.cloned().unwrap_or_default();
    for (name, value) in sent {
        merge(fields.entry(name).or_insert(Value::Null), value);
    }
    Some(fields)
}

/// Objects merge deep, everything else takes the place of what was there.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn read(ledger: &Ledger) -> Vec<Value> {
        let live = ledger.rows.iter().filter_map(|(id, state)| Some((id, state.clone()?)));
        live.map(|(id, mut fields)| {
            fields.insert("id".into(), json!(id));
            Value::Object(fields)
        })
        .collect()
    }

    fn ledger() -> Ledger {
        let (mut ledger, mut rng) = (Ledger::default(), ChaCha8Rng::seed_from_u64(1));
        for _ in 0..50 {
            let (rows, wrong) = ledger.next(0, 20, &mut rng);
            ledger.sends(&rows);
            if wrong { ledger.refused() } else { ledger.acknowledged() }
        }
        ledger
    }

    #[test]
    fn what_is_as_it_was_told_has_no_findings() {
        let mut ledger = ledger();
        let rows = read(&ledger);
        assert_eq!(ledger.check(&rows), [""; 0]);
    }

    #[test]
    fn every_kind_of_loss_is_found() {
        let mut rows = read(&ledger());
        let lost = rows.pop().unwrap();
        assert!(ledger().check(&rows)[0].contains("is not there"));
        rows.push(lost.clone());
        rows.push(lost);
        assert!(ledger().check(&rows)[0].contains("twice"));
        rows.pop();
        rows[0]["metadata"]["by"] = json!(-1);
        assert!(ledger().check(&rows)[0].contains("says"));
        let mut rows = read(&ledger());
        rows.push(json!({ "id": "c0-wrong-7" }));
        assert!(ledger().check(&rows)[0].contains("refused or never sent"));
    }

    #[test]
    fn a_merge_is_folded_into_what_was_there_and_a_delete_leaves_nothing() {
        let mut ledger = Ledger::default();
        let mut write = |row: Value| {
            ledger.sends(&[row]);
            ledger.acknowledged();
            ledger.rows["r"].clone().map(Value::Object)
        };
        write(json!({ "id": "r", "input": 1, "metadata": { "a": { "b": 1 } }, "tags": ["not compared"] }));
        let merged = write(json!({ "id": "r", "_is_merge": true, "output": 2, "metadata": { "a": { "c": [2] } } }));
        assert_eq!(merged, Some(json!({ "input": 1, "output": 2, "metadata": { "a": { "b": 1, "c": [2] } } })));
        assert_eq!(write(json!({ "id": "r", "output": 3 })), Some(json!({ "output": 3 })), "replaced");
        assert_eq!(write(json!({ "id": "r", "_object_delete": true })), None);
        let again = write(json!({ "id": "r", "_is_merge": true, "output": 4 }));
        assert_eq!(again, Some(json!({ "output": 4 })), "a merge onto nothing is the row");
    }

    #[test]
    fn a_request_without_an_answer_is_whole_or_absent() {
        let in_doubt = || {
            let (mut ledger, mut rng) = (ledger(), ChaCha8Rng::seed_from_u64(2));
            loop {
                let (rows, wrong) = ledger.next(0, 20, &mut rng);
                if !wrong && rows.len() >= 3 {
                    ledger.sends(&rows);
                    break;
                }
            }
            ledger.unanswered();
            ledger
        };
        let mut absent = in_doubt();
        let rows = read(&absent);
        assert_eq!(absent.check(&rows), [""; 0]);
        let mut whole = in_doubt();
        whole.rows.extend(whole.open.clone());
        let rows = read(&whole);
        let mut asked = in_doubt();
        assert_eq!(asked.check(&rows), [""; 0]);
        let mut half = in_doubt();
        let first =
            half.open.iter().find(|(_, state)| state.is_some()).map(|(id, state)| (id.clone(), state.clone())).unwrap();
        half.rows.insert(first.0, first.1);
        let rows = read(&half);
        assert!(in_doubt().check(&rows)[0].contains("of a request without an answer"));
    }
}
