//! Tests that the queries parse in our language, that the rows contain the values they need, and that the reference
//! interpreter returns the same as DuckDB and chDB.

use std::rc::Rc;

use assay_node_btql::bound::Bound;
use assay_node_btql::columns::Kind;
use assay_node_btql::{Env, bind, parse_text};
use assay_storage_model::event::parse_created;
use assay_test_btql::{Dataset, Object};
use serde_json::{Map, Value, json};

use super::event_feed::Feed;
use super::event_feed::tests::all;
use super::spans::{BIG_TRACE_SPANS, RARE_WORD};
use super::*;

/// So many that the large trace is among them.
const ROWS: u64 = 8000;
const SEED: u64 = 3;

fn objects() -> Objects {
    Objects { log: "L".into(), events: "E".into(), experiments: ["X".into(), "Y".into()] }
}

fn bound(question: &Question, text: &str) -> Bound {
    let parsed = parse_text(text).unwrap_or_else(|error| panic!("{}: {error}", question.name));
    let bound = bind(&parsed, &Env { text: Some(text), ..Env::default() });
    bound.unwrap_or_else(|error| panic!("{}: {error}", question.name))
}

/// Rows as they are stored.
fn object(kind: Kind, name: &str, feed: impl Feed) -> Object {
    let stored = |(number, event): (usize, Value)| {
        let mut row: Map<String, Value> = kind.columns().iter().map(|column| ((*column).into(), Value::Null)).collect();
        row.insert("is_root".into(), event.get("span_parents").is_none().into());
        row.insert("_pagination_key".into(), format!("p{number:020}").into());
        row.insert("_xact_id".into(), "1000197121814560768".into());
        if kind == Kind::Experiment {
            row.insert("experiment_id".into(), name.into());
        }
        row.extend(event.as_object().expect("an object").clone());
        for own in ["span_id", "root_span_id"] {
            if row[own].is_null() {
                row.insert(own.into(), row["id"].clone());
            }
        }
        Rc::new(row)
    };
    let rows = all(feed).into_iter().enumerate().map(stored).collect();
    Object { kind, names: vec![name.into()], project: None, organization: None, rows }
}

fn data() -> Dataset {
    let [x, y] = [("X", 0), ("Y", 1)].map(|(name, number)| object(Kind::Experiment, name, Trials::new(SEED, number)));
    let spans = object(Kind::ProjectLogs, "L", Spans::new(SEED, ROWS));
    let events = object(Kind::ProjectLogs, "E", Documents::new(SEED, ROWS, Wrapped::Row));
    Dataset { objects: vec![spans, events, x, y], ..Dataset::default() }
}

fn facts() -> Facts {
    let (mut spans, mut text) = (Spans::new(SEED, ROWS), Vec::new());
    while spans.next(&mut text).is_some() {
        text.clear();
    }
    Facts::of(&spans)
}

fn interpreted(question: &Question, facts: &Facts, data: &Dataset) -> Vec<QueryResult> {
    let texts = facts.texts(&named(question.ours, &objects()));
    let answer = |text: &String| {
        let answer = assay_test_btql::run(&bound(question, text), data);
        let answer = answer.unwrap_or_else(|error| panic!("{}: {error}", question.name));
        QueryResult { columns: answer.columns, rows: answer.rows }
    };
    // One trace is as good as all.
    texts.iter().take(3).map(answer).collect()
}

#[test]
fn every_question_of_ours_is_understood_and_names_what_exists() {
    let facts = Facts { traces: vec!["T".into()], big: "B".into() };
    let places = [
        ("$LOG", "'L'"),
        ("$EVENTS", "'E'"),
        ("$BASE", "'X'"),
        ("$CHANGED", "'Y'"),
        ("$TRACE", "'T'"),
        ("$BIG", "'B'"),
    ];
    for question in questions() {
        for text in facts.texts(&named(question.ours, &objects())) {
            assert!(!text.contains('$'), "{text}");
            let stands = |(place, id): &(&str, &str)| !question.ours.contains(place) || text.contains(id);
            assert!(places.iter().all(stands), "{text}");
            let notes = bound(question, &text).notes;
            assert!(!format!("{notes:?}").to_lowercase().contains("unknown"), "{text}: {notes:?}");
        }
    }
}

#[test]
fn names_of_questions_are_told_apart() {
    let names: std::collections::BTreeSet<&str> = questions().map(|question| question.name).collect();
    assert_eq!(names.len(), questions().count());
    assert!(names.contains(EXPORT) && names.len() >= 19);
}

/// Needs `python3` and its package index, or an environment that was made before.
#[test]
#[ignore = "installs DuckDB and chDB"]
fn the_others_answer_what_the_language_means() {
    let dir = tempfile::tempdir().expect("a directory");
    let environment = Environment::made(None).expect("an environment");
    let sides = Engine::ALL.into_iter().map(Side::Peer).collect();
    let options = QueryOptions {
        program: None,
        rows: ROWS,
        documents: ROWS,
        grown: None,
        sides,
        environment: None,
        kept: None,
        beside: false,
        seed: SEED,
    };
    let lines = Lines::write(&options, dir.path()).expect("files");
    let (facts, data) = (facts(), data());
    let mut measured = vec![EngineMeasurement { engine: "language".into(), ..EngineMeasurement::default() }];
    for question in questions().filter(|question| question.name != EXPORT) {
        let answers = interpreted(question, &facts, &data);
        assert!(answers.iter().all(|answer| !answer.rows.is_empty()), "{} finds nothing", question.name);
        measured[0].answers.insert(question.name, answers);
    }
    for engine in Engine::ALL {
        let mut peer = peer(&environment, engine, &options, &lines, dir.path()).expect("answers");
        peer.answers.remove(EXPORT);
        peer.answers.values_mut().for_each(|answers| answers.truncate(3));
        measured.push(peer);
    }
    assert_eq!(differences(&measured), Vec::<String>::new());
}

#[test]
fn spans_hold_what_is_asked_for_as_often_as_it_is_said() {
    let rows = 20_000;
    let events = all(Spans::new(SEED, rows));
    let count = |has: &dyn Fn(&Value) -> bool| events.iter().filter(|event| has(event)).count() as u64;
    assert_eq!(events.len() as u64, rows);
    assert_eq!(count(&|event| event["input"].to_string().contains(RARE_WORD)), 2);
    assert_eq!(count(&|event| event["metadata"].get("incident").is_some()), 1);
    let failed = count(&|event| event.get("error").is_some());
    assert!((rows / 60..rows / 42).contains(&failed), "{failed} errors");
    let says = |event: &Value, word: &str| event["input"].to_string().contains(word);
    let common = count(&|event| says(event, " refund ") && says(event, " invoice "));
    assert!((rows / 50..rows).contains(&common), "{common} with both words");
    let bytes: usize = events.iter().map(|event| event.to_string().len()).sum();
    assert!((1950..2150).contains(&(bytes / events.len())), "{} bytes a span", bytes / events.len());
}

#[test]
fn spans_are_whole_traces_in_the_order_of_their_time() {
    let events = all(Spans::new(SEED, 20_000));
    let (mut spans, mut text) = (Spans::new(SEED, 20_000), Vec::new());
    while spans.next(&mut text).is_some() {}
    let of = |trace: &str| events.iter().filter(|event| event["root_span_id"] == trace).count() as u64;
    assert_eq!(of(spans.big_trace()), BIG_TRACE_SPANS);
    assert!(spans.traces().len() > 40 && spans.traces().iter().all(|trace| (1..=16).contains(&of(trace))));
    let time = |event: &Value| event["created"].as_str().and_then(parse_created);
    let roots = events.iter().filter(|event| event.get("span_parents").is_none());
    assert!(roots.filter_map(time).collect::<Vec<_>>().is_sorted());
    let mut times: Vec<i64> = events.iter().filter_map(time).collect();
    times.sort_unstable();
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "no two are of the same moment");
    let mut ids: Vec<String> = events.iter().map(|event| event["id"].to_string()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), events.len());
}

#[test]
fn answers_that_differ_are_named_with_their_row() {
    let of = |engine: &str, value: Value| {
        let answer = QueryResult::of_objects(vec![json!({ "n": value })]);
        let answers = questions().map(|question| (question.name, vec![answer.clone()])).collect();
        EngineMeasurement { engine: engine.into(), answers, ..EngineMeasurement::default() }
    };
    assert!(differences(&[of("assay", 1.into()), of("duckdb", json!(1.0))]).is_empty());
    let found = differences(&[of("assay", 1.into()), of("duckdb", 1.into()), of("chdb", 2.into())]);
    assert_eq!(found.len(), questions().count());
    assert!(found[0].starts_with("trace by id: assay and chdb: row 1: [1], and [2]"), "{}", found[0]);
}
