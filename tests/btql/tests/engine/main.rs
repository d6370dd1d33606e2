//! Compares the engine with the interpreter: every case, and random queries, for all locations of rows and several
//! numbers of shards.

mod audit;
mod blind;
mod newest;
mod world;

use std::fs;
use std::path::Path;
use std::rc::Rc;

use assay_node_btql::bound::Bound;
use assay_node_btql::{Env, bind, parse};
use assay_storage_model::event::{format_micros, parse_created};
use assay_test_btql::case::{self, Case, same_answer};
use assay_test_btql::{Dataset, fixture, random, run};
use serde_json::Value as Json;
use world::{ALL_KEPT, World};

const NOW: &str = "2026-05-07T12:34:56Z";

fn cases() -> Vec<(String, Case)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let of = |name: &str| {
        let text = fs::read_to_string(directory.join(name)).expect(name);
        case::read(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    let named = |name: &'static str| of(name).into_iter().map(move |case| (format!("{name}:{}", case.line), case));
    named("examples.jsonl").chain(named("decisions.jsonl")).collect()
}

fn bound(case: &Case) -> Option<Bound> {
    let now = case.body("now").and_then(Json::as_str).unwrap_or(NOW);
    let tz_offset = case.body("tz_offset").and_then(Json::as_i64).unwrap_or(0);
    let env = Env {
        now: parse_created(now).expect("a time"),
        tz_offset: tz_offset.try_into().expect("minutes of a day"),
        text: case.query.as_str(),
        inference_depth: case.body("inference_depth").and_then(Json::as_u64),
        ..Env::default()
    };
    bind(&parse(&case.query).ok()?.query, &env).ok()
}

/// Compares both results, page after page.
fn compare(name: &str, bound: &Bound, data: &Dataset, worlds: &[(String, World)], wrong: &mut Vec<String>) {
    let mut bound = bound.clone();
    for page in 0..20 {
        let expected = run(&bound, data);
        // A second time with what the first has left in memory.
        for (kept, world) in worlds.iter().flat_map(|world| [world, world]) {
            let found = world.answer(&bound);
            let alike = match (&expected, &found) {
                (Ok(expected), Ok(found)) => same_answer(expected, found),
                (Err(_), Err(_)) => true,
                _ => false,
            };
            if !alike {
                wrong.push(format!("{name} {kept} page {page}:\n    {expected:?}\n    {found:?}"));
                return;
            }
        }
        match expected.ok().and_then(|answer| answer.cursor) {
            Some(cursor) => bound.cursor = Some(cursor.text),
            None => return,
        }
    }
}

/// A time is stored with its milliseconds.
fn as_stored(mut data: Dataset) -> Dataset {
    for row in data.objects.iter_mut().flat_map(|object| &mut object.rows) {
        let created = row["created"].as_str().and_then(parse_created).expect("a time");
        Rc::make_mut(row).insert("created".into(), format_micros(created).into());
    }
    data
}

fn worlds(data: &Dataset) -> Vec<(String, World)> {
    let each = ALL_KEPT.into_iter().flat_map(|kept| [(kept, false), (kept, true)]);
    each.map(|(kept, apart)| (format!("{kept:?} apart {apart}"), World::new(data, kept, apart))).collect()
}

#[test]
fn every_case_is_answered_as_the_interpreter_answers_it() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/fixture");
    let data = as_stored(fixture::read(&directory).expect("the fixture is read"));
    let worlds = worlds(&data);
    let (mut wrong, mut asked) = (Vec::new(), 0);
    for (name, case) in cases() {
        if let Some(bound) = bound(&case) {
            asked += 1;
            compare(&format!("{name} {}", case.query), &bound, &data, &worlds, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{} of {asked} are answered otherwise:\n{}", wrong.len(), wrong.join("\n"));
    assert!(asked > 250, "{asked}");
}

#[test]
fn what_is_asked_at_random_is_answered_as_the_interpreter_answers_it() {
    let seeds = random::seeds();
    let (mut wrong, mut asked) = (Vec::new(), 0);
    for seed in 0..seeds {
        let tz_offset = [0, 480, -330][(seed % 3) as usize];
        let env = Env { now: parse_created("2026-05-03T05:06:07Z").expect("a time"), tz_offset, ..Env::default() };
        let Ok(bound) = bind(&random::query(seed), &env) else { continue };
        asked += 1;
        let data = random::data(seed);
        let kept = ALL_KEPT[(seed % 4) as usize];
        let worlds = vec![(format!("{kept:?}"), World::new(&data, kept, false))];
        compare(
            &format!("seed {seed} {:?}", case::forms(&random::query(seed)).first()),
            &bound,
            &data,
            &worlds,
            &mut wrong,
        );
        assert!(wrong.len() < 12, "{}", wrong.join("\n"));
    }
    assert!(wrong.is_empty(), "{} are answered otherwise:\n{}", wrong.len(), wrong.join("\n"));
    assert!(asked * 100 >= seeds * 90, "{asked} of {seeds} can be asked");
}
