//! Random rows: traces with interleaved spans, and values of every kind below their columns.

use std::rc::Rc;

use assay_node_btql::columns::Kind;
use assay_storage_model::event::format_micros;
use assay_storage_model::{PaginationKey, Xact};
use serde_json::{Map, Value as Json, json};

use super::SOURCE;
use super::dice::Dice;
use crate::data::{Dataset, Fields, Object, Price};

const TRACES_MAX: usize = 7;
const SPANS_MAX: usize = 5;
/// 2026-05-01T00:00:00Z, and three days from then on.
const START_SECONDS: i64 = 1_777_593_600;
const SECONDS: usize = 3 * 86_400;
const MICROS_PER_SECOND: i64 = 1_000_000;
const FIRST_XACT: u64 = 1_000_197_000_000_000_000;

/// Live rows of a project's logs, with all columns that a system fills in.
pub fn rows(seed: u64) -> Vec<Fields> {
    let mut dice = Dice::of(seed ^ 0x526f_7773);
    let traces = dice.below(TRACES_MAX) + 1;
    let mut places: Vec<(usize, usize)> = (0..traces).flat_map(|trace| of_trace(&mut dice, trace)).collect();
    for place in (1..places.len()).rev() {
        // Most spans come when their trace does, and some late.
        if dice.happens(30) {
            let other = dice.below(place);
            places.swap(place, other);
        }
    }
    places.iter().enumerate().map(|(number, place)| Rc::new(row(&mut dice, number, *place))).collect()
}

/// Returns a dataset of these rows and prices.
pub fn data(seed: u64) -> Dataset {
    let project = Some("P".to_owned());
    let names = vec![SOURCE.to_owned()];
    let object = Object { kind: Kind::ProjectLogs, names, project, organization: None, rows: rows(seed) };
    let price = Price { input: 2.5, output: 10.0, cached: Some(1.25), cache_write: None };
    Dataset { objects: vec![object], prices: [("m-1".to_owned(), price)].into() }
}

fn of_trace(dice: &mut Dice, trace: usize) -> Vec<(usize, usize)> {
    // The root of some traces never came, and is number 0.
    let first = usize::from(dice.happens(15));
    let spans = dice.below(SPANS_MAX) + 1;
    (first..first + spans).map(|span| (trace, span)).collect()
}

fn row(dice: &mut Dice, number: usize, (trace, span): (usize, usize)) -> Map<String, Json> {
    let mut row: Map<String, Json> =
        Kind::ProjectLogs.columns().iter().map(|column| ((*column).to_owned(), Json::Null)).collect();
    let mut set = |column: &str, value: Json| drop(row.insert(column.to_owned(), value));
    let (id, root) = (format!("t{trace}s{span}"), format!("t{trace}s0"));
    let kind = *dice.pick(&["llm", "llm", "task", "tool", "score"]);
    let created = (START_SECONDS + dice.below(SECONDS) as i64) * MICROS_PER_SECOND;
    set("_pagination_key", PaginationKey::new(Xact(FIRST_XACT - 1), number as u16).to_string().into());
    // All were first written together; a row that was merged later has a later transaction.
    let later = if dice.happens(20) { 5 } else { 0 };
    set("_xact_id", (FIRST_XACT + (number / 4) as u64 + later).to_string().into());
    set("created", format_micros(created).into());
    set("id", id.clone().into());
    set("span_id", id.into());
    set("root_span_id", root.clone().into());
    set("is_root", (span == 0).into());
    set("span_parents", if span == 0 { Json::Null } else { json!([root]) });
    set("log_id", "g".into());
    set("org_id", "O".into());
    set("project_id", SOURCE.into());
    set("span_attributes", attributes(dice, kind));
    set("metrics", metrics(dice, kind, created / MICROS_PER_SECOND));
    set("metadata", metadata(dice));
    set("scores", scores(dice));
    set("tags", dice.pick(&[json!(null), json!([]), json!(["prod"]), json!(["beta", "prod"]), json!(["a"])]).clone());
    set("error", dice.pick(&[json!(null), json!(null), json!("late"), json!({"message": "refund failed"})]).clone());
    set("input", input(dice));
    set("output", any(dice, 2));
    set("expected", any(dice, 1));
    row
}

fn attributes(dice: &mut Dice, kind: &str) -> Json {
    let name = *dice.pick(&["chat", "answer", "Prod-run"]);
    if kind == "score" {
        json!({"name": name, "type": kind, "purpose": "scorer"})
    } else {
        json!({"name": name, "type": kind})
    }
}

fn metrics(dice: &mut Dice, kind: &str, start: i64) -> Json {
    let mut metrics = json!({"start": start});
    if dice.happens(85) {
        metrics["end"] = (start as f64 + dice.below(40) as f64 / 4.0).into();
    }
    if kind == "llm" || dice.happens(10) {
        metrics["prompt_tokens"] = dice.below(500).into();
        metrics["completion_tokens"] = dice.below(50).into();
        metrics["time_to_first_token"] = (dice.below(8) as f64 / 8.0).into();
    }
    if dice.happens(30) {
        metrics["tokens"] = dice.below(600).into();
    }
    metrics
}

fn metadata(dice: &mut Dice) -> Json {
    if dice.happens(10) {
        return Json::Null;
    }
    let mut metadata = Map::new();
    let model = *dice.pick(&["m-1", "m-2"]);
    let when = *dice.pick(&["2026-05-02", "2026-05-02T23:30:00-05:00", "soon"]);
    for (key, value) in [
        ("env", Json::from(*dice.pick(&["prod", "dev", ""]))),
        ("model", model.into()),
        ("when", when.into()),
        ("n", dice.pick(&[json!(1), json!(2.5), json!("2"), json!(-7), json!(true)]).clone()),
        ("v", any(dice, 2)),
        ("list", json!([any(dice, 0), any(dice, 1)])),
        ("deep", json!({"x": dice.below(3), "y": {"z": any(dice, 0)}})),
        ("config", json!("{\"a.b\":1,\"a\":[1]}")),
    ] {
        if dice.happens(60) {
            metadata.insert(key.to_owned(), value);
        }
    }
    Json::Object(metadata)
}

fn scores(dice: &mut Dice) -> Json {
    let mut scores = Map::new();
    for name in ["Quality", "Tone of voice", "Safe"] {
        if dice.happens(40) {
            let score = if dice.happens(15) { Json::Null } else { (dice.below(5) as f64 / 4.0).into() };
            scores.insert(name.to_owned(), score);
        }
    }
    if scores.is_empty() && dice.happens(50) { Json::Null } else { Json::Object(scores) }
}

fn input(dice: &mut Dice) -> Json {
    let content = *dice.pick(&["Where is my order?", "a refund", "Größe?"]);
    match dice.below(3) {
        0 => content.into(),
        1 => json!({"messages": [{"role": "user", "content": content}]}),
        _ => any(dice, 1),
    }
}

/// A value of any kind, made of others so deep.
fn any(dice: &mut Dice, depth: usize) -> Json {
    match dice.below(if depth == 0 { 8 } else { 11 }) {
        0 => Json::Null,
        1 => dice.happens(50).into(),
        2 => (dice.below(5) as i64 - 2).into(),
        3 => 0.5.into(),
        4 => 9_007_199_254_740_993_u64.into(),
        5 => "a".into(),
        6 => "10".into(),
        7 => (*dice.pick(&["prod", "Refund, late", "b"])).into(),
        8 => json!([any(dice, depth - 1), any(dice, depth - 1)]),
        9 => json!({"a": any(dice, depth - 1)}),
        _ => json!({"b": any(dice, depth - 1), "a": any(dice, depth - 1)}),
    }
}
