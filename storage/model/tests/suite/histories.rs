//! Random histories of one row, compared byte by byte with the naive model, so that the order of keys counts too.

use assay_storage_model::ObjectKind;
use assay_storage_model::command::Action;
use assay_storage_model::event::PreparedRow;
use assay_storage_model::merge::{fold, fold_batch};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};

use crate::{log_row, naive, prepared, text};

const HISTORIES: u64 = 100_000;
const HISTORIES_PER_SEED: u64 = 25_000;
const WRITES_MAX: usize = 3;

/// Few keys, so that writes meet; some that a careless merge takes for something else.
const KEYS: [&str; 7] = ["a", "b", "tags", "id", "__proto__", "q\"\\é", ""];
const TAGS: [&str; 5] = ["x", "y", "z", "é\n", ""];

fn value(random: &mut ChaCha8Rng, depth: usize) -> Value {
    match random.random_range(0..if depth == 0 { 7 } else { 12 }) {
        0 => Value::Null,
        1 => json!(random.random_range(0..3)),
        2 => json!(f64::from(random.random_range(0..6)) / 2.0),
        3 => json!(random.random::<bool>()),
        4..7 => json!(TAGS.choose(random)),
        7 | 8 => Value::Array((0..random.random_range(0..4)).map(|_| value(random, depth - 1)).collect()),
        _ => Value::Object(object(random, depth - 1)),
    }
}

fn object(random: &mut ChaCha8Rng, depth: usize) -> Map<String, Value> {
    // Now and then so many keys that they are no longer searched one by one.
    if random.random_ratio(1, 200) {
        return (0..20).map(|at| (format!("k{at}"), json!(random.random_range(0..3)))).collect();
    }
    let count = random.random_range(0..4);
    (0..count).map(|_| ((*KEYS.choose(random).expect("keys")).to_owned(), value(random, depth))).collect()
}

fn tags(random: &mut ChaCha8Rng) -> Value {
    let count = random.random_range(0..4);
    let some: Vec<_> = TAGS.choose_multiple(random, count).collect();
    json!(some)
}

fn path(random: &mut ChaCha8Rng) -> Value {
    if random.random_ratio(1, 3) {
        return json!(["tags"]);
    }
    let first = ["input", "metadata", "span_parents"].choose(random).expect("fields");
    let below = (0..random.random_range(0..3)).map(|_| KEYS.choose(random).expect("keys"));
    let below: Vec<_> = below.collect();
    json!([&[first], below.as_slice()].concat())
}

/// A row as a client may send it, always of the same id.
fn sent(random: &mut ChaCha8Rng) -> Value {
    let mut row = Map::from_iter([("id".to_owned(), json!("r"))]);
    let mut put = |name: &str, value: Value| drop(row.insert(name.to_owned(), value));
    if random.random_ratio(1, 12) {
        put("_object_delete", json!(true));
        return Value::Object(row);
    }
    let merge = random.random_ratio(3, 4);
    if merge || random.random_ratio(1, 2) {
        put("_is_merge", json!(merge));
    }
    for field in ["input", "metadata", "tags", "output", "unknown"] {
        if random.random_ratio(2, 5) {
            let value = match field {
                _ if random.random_ratio(1, 8) => Value::Null,
                "metadata" => Value::Object(object(random, 1)),
                "tags" => tags(random),
                _ => value(random, 2),
            };
            put(field, value);
        }
    }
    if random.random_ratio(1, 3) {
        let few = [json!([]), json!(["p"]), Value::Null];
        put("span_parents", few.choose(random).expect("some").clone());
        put("span_id", json!(format!("s{}", random.random_range(0..3))));
    }
    if random.random_ratio(1, 6) {
        put("_parent_id", json!("parent"));
        put("created", json!(format!("2026-01-0{}T00:00:00.000Z", random.random_range(1..4))));
    }
    if random.random_ratio(1, 3) {
        put("_merge_paths", Value::Array((0..random.random_range(0..3)).map(|_| path(random)).collect()));
    }
    if random.random_ratio(1, 3) {
        let item = |random: &mut ChaCha8Rng| {
            let values: Vec<Value> = (0..2).map(|_| value(random, 1)).collect();
            json!({"path": path(random), "delete": values})
        };
        put("_array_delete", Value::Array((0..random.random_range(0..3)).map(|_| item(random)).collect()));
    }
    Value::Object(row)
}

fn step(base: Option<&[u8]>, row: &PreparedRow) -> Option<Vec<u8>> {
    let deleted = row.action == Action::Delete;
    (!deleted).then(|| fold(base, &row.as_op()).expect("what was prepared folds"))
}

fn history(seed: u64, number: u64, random: &mut ChaCha8Rng) {
    let kind = *ObjectKind::ALL[..2].choose(random).expect("kinds");
    let (mut ours, mut theirs) = (None, None);
    let writes = random.random_range(1..=WRITES_MAX);
    for at in 1..=writes {
        let sent = sent(random);
        let row = prepared(kind, sent.clone()).unwrap_or_else(|e| panic!("{e} {sent}"));
        let before = ours.take();
        ours = step(before.as_deref(), &row);
        theirs = naive::next(theirs, &sent);
        let say = || format!("seed {seed}, history {number}, write {at}: {sent}\non {:?}", before.as_deref().map(text));
        assert_eq!(ours.as_deref().map(text), theirs.as_ref().map(Value::to_string).as_deref(), "{}", say());
        if at == writes {
            assert_eq!(step(ours.as_deref(), &row), ours, "sent twice: {}", say());
        }
    }
}

#[test]
fn a_hundred_thousand_random_histories_agree_with_the_naive_model() {
    let seeds = 0..HISTORIES / HISTORIES_PER_SEED;
    std::thread::scope(|scope| {
        for seed in seeds {
            scope.spawn(move || {
                let mut random = ChaCha8Rng::seed_from_u64(seed);
                (0..HISTORIES_PER_SEED).for_each(|number| history(seed, number, &mut random));
            });
        }
    });
}

#[test]
fn spaces_and_escapes_in_a_document_change_nothing() {
    let mut random = ChaCha8Rng::seed_from_u64(77);
    for _ in 0..3_000 {
        let (first, second) = (sent(&mut random), sent(&mut random));
        let Some(base) = naive::next(None, &first) else { continue };
        let mut row = log_row(second.clone());
        if row.action != Action::Merge {
            continue;
        }
        let spaced = |json: &Value| serde_json::to_string_pretty(json).expect("writes").replace("\"a\"", "\"\\u0061\"");
        row.doc = spaced(&serde_json::from_slice(&row.doc).expect("a document")).into_bytes();
        let folded = fold(Some(spaced(&base).as_bytes()), &row.as_op()).expect("folds");
        let folded: Value = serde_json::from_slice(&folded).expect("still JSON");
        assert_eq!(Some(folded), naive::next(Some(base), &second), "{first} {second}");
    }
}

#[test]
fn a_folded_batch_means_what_its_rows_mean_one_by_one() {
    let mut random = ChaCha8Rng::seed_from_u64(99);
    let ids = ["r1", "r2"];
    for _ in 0..10_000 {
        let mut rows = Vec::new();
        for _ in 0..random.random_range(1..8) {
            let mut row = log_row(sent(&mut random));
            row.id = (*ids.choose(&mut random).expect("ids")).to_owned();
            rows.push(row);
        }
        let folded = fold_batch(rows.clone()).expect("small rows");
        for id in ids {
            for base in [None, Some(br#"{"id":"r","created":"2025","tags":["w"],"input":{"a":{"b":1}}}"#.to_vec())] {
                let run = |rows: &[PreparedRow]| {
                    let of_id = rows.iter().filter(|row| row.id == id);
                    of_id.fold(base.clone(), |state, row| step(state.as_deref(), row))
                };
                assert_eq!(run(&folded), run(&rows), "{rows:#?}");
            }
        }
    }
}
