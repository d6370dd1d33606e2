//! Blind reviews: what a reader may not see yet is removed before filters, orders, traces and groups. So an answer over masked
//! sources is the answer over rows that were masked before they were written.

use std::collections::BTreeSet;
use std::rc::Rc;

use assay_node_btql::{Env, bind};
use assay_node_reviews::{ASSIGNMENTS, Blindness, REVIEW_TYPE, SUBMITTERS};
use assay_storage_model::command::{Action, RowOp};
use assay_storage_model::event::parse_created;
use assay_test_btql::random::{Dice, data, query, seeds};
use assay_test_btql::{Dataset, case};
use serde_json::{Map, Value as Json, json};
use uuid::Uuid;

use crate::compare;
use crate::world::{ALL_KEPT, World};

/// Every so many seeds of the random queries are asked here too.
const ONE_SEED_IN: u64 = 5;

fn reader() -> Blindness {
    let scores: BTreeSet<String> = ["Quality", "Safe"].into_iter().map(str::to_owned).collect();
    Blindness { user: Uuid::from_u128(7), scores }
}

/// Makes reviews of some rows, and lists of submitters in some.
fn reviewed(mut data: Dataset, seed: u64) -> Dataset {
    let mut dice = Dice::of(seed ^ 0x5265_7669);
    let people = [Uuid::from_u128(7), Uuid::from_u128(8)];
    for row in data.objects.iter_mut().flat_map(|object| &mut object.rows) {
        let row = Rc::make_mut(row);
        let mut metadata = row["metadata"].as_object().cloned().unwrap_or_default();
        if dice.happens(50) {
            let submitters: Vec<Uuid> = people.into_iter().filter(|_| dice.happens(50)).collect();
            metadata.insert(SUBMITTERS.into(), json!(submitters));
        }
        if dice.happens(20) {
            metadata.insert(ASSIGNMENTS.into(), json!(people));
        }
        if dice.happens(25) {
            row["span_attributes"]["type"] = REVIEW_TYPE.into();
            metadata.insert("reviewer_id".into(), json!(dice.pick(&people)));
        }
        row.insert("metadata".into(), metadata.into());
    }
    data
}

fn masked(data: &Dataset, reader: &Blindness) -> Dataset {
    let mut data = data.clone();
    for object in &mut data.objects {
        let shown = object.rows.iter().filter_map(|row| reader.masked(Map::clone(row)).map(Rc::new));
        object.rows = shown.collect();
    }
    data
}

#[test]
fn masked_sources_are_answered_as_rows_that_were_masked_before() {
    let (mut wrong, mut asked, mut hidden) = (Vec::new(), 0, 0);
    for seed in (0..seeds()).filter(|seed| seed % ONE_SEED_IN == 0) {
        let env = Env { now: parse_created("2026-05-03T05:06:07Z").expect("a time"), ..Env::default() };
        let Ok(bound) = bind(&query(seed), &env) else { continue };
        asked += 1;
        let (all, reader) = (reviewed(data(seed), seed), reader());
        let shown = masked(&all, &reader);
        hidden += all.objects[0].rows.len() - shown.objects[0].rows.len();
        let kept = ALL_KEPT[(seed / ONE_SEED_IN % 4) as usize];
        let worlds = vec![(format!("{kept:?}"), World::new(&all, kept, false).read_by(reader))];
        let name = format!("seed {seed} {:?}", case::forms(&query(seed)).first());
        compare(&name, &bound, &shown, &worlds, &mut wrong);
        assert!(wrong.len() < 12, "{}", wrong.join("\n"));
    }
    assert!(wrong.is_empty(), "{} are answered otherwise:\n{}", wrong.len(), wrong.join("\n"));
    assert!(asked > 40 && hidden > asked / 4, "{hidden} rows were hidden from {asked} queries");
}

/// What the random queries have too rarely.
#[test]
fn no_form_of_a_query_tells_of_hidden_scores() {
    let texts = [
        "infer: scores | from: project_logs('R')",
        "infer: scores, metadata, span_attributes | from: project_logs('R') summary",
        "SELECT score, value FROM project_logs('R') UNPIVOT (value FOR score IN (scores))",
        "dimensions: scores.Quality as s | measures: count(1) as n, avg(scores.Safe) as f | from: project_logs('R')",
        "select: id, scores, scores.Quality | from: project_logs('R') | sort: scores.Quality desc, id",
        "select: id, scores | from: project_logs('R') summary | filter: scores.Quality > 0 | sort: id",
        "select: id, scores | from: project_logs('R') traces | filter: scores.Safe is not null | sort: id",
        "select: * | from: project_logs('R') | filter: scores.Safe is null | sort: id",
    ];
    let mut wrong = Vec::new();
    for seed in 0..24 {
        let (all, reader) = (reviewed(data(seed), seed), reader());
        let shown = masked(&all, &reader);
        let worlds: Vec<(String, World)> = ALL_KEPT
            .iter()
            .map(|kept| (format!("{kept:?}"), World::new(&all, *kept, false).read_by(reader.clone())))
            .collect();
        for text in texts {
            let parsed = assay_node_btql::parse(&Json::from(text)).unwrap_or_else(|error| panic!("{text}: {error}"));
            let bound = bind(&parsed.query, &Env::default()).unwrap_or_else(|error| panic!("{text}: {error}"));
            compare(&format!("seed {seed} {text}"), &bound, &shown, &worlds, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{} are answered otherwise:\n{}", wrong.len(), wrong[..wrong.len().min(6)].join("\n"));
}

const WRITTEN_AT: &str = "2026-05-09T10:00:00.000Z";
const FIRST_XACT: u64 = 1_000_197_000_000_000_000;

fn write<'r>(id: &'r str, action: Action, doc: &'r str) -> RowOp<'r> {
    let is_delete = action == Action::Delete;
    let span_id = if is_delete { "" } else { id };
    RowOp {
        id,
        action,
        span_id,
        root_span_id: span_id,
        is_root: !is_delete,
        created: parse_created(WRITTEN_AT).expect("a time"),
        doc: doc.as_bytes(),
        rules: b"",
        audit: b"",
    }
}

/// A row that is gone no longer tells who reviewed it. So a reader who may not see all reads none of its writes.
#[test]
fn no_audit_tells_of_hidden_scores() {
    let scores = json!({"Quality": 0.25, "Auto": 0.5});
    let theirs = json!({
        "scores": scores, "span_attributes": {"type": REVIEW_TYPE}, "metadata": {"reviewer_id": Uuid::from_u128(8)},
    });
    let reviewed = json!({"scores": scores, "metadata": {SUBMITTERS: [Uuid::from_u128(8)]}});
    let [theirs, reviewed, plain] = [theirs, reviewed, json!({"scores": scores})].map(|doc| doc.to_string());
    let of = |ids: [&'static str; 4]| {
        let docs = [&theirs, &theirs, &reviewed, &plain];
        ids.into_iter().zip(docs).map(|(id, doc)| write(id, Action::Upsert, doc)).collect::<Vec<_>>()
    };
    let transactions = [
        (FIRST_XACT, of(["review", "deleted review", "deleted row", "row"])),
        (FIRST_XACT + 1, of(["other review", "used again", "reviewed row", "other row"])),
        (
            FIRST_XACT + 2,
            ["deleted review", "deleted row", "used again"].map(|id| write(id, Action::Delete, "{}")).into(),
        ),
        (FIRST_XACT + 3, vec![write("used again", Action::Upsert, &plain), write("row", Action::Merge, &plain)]),
    ];
    let ids = "'review', 'deleted review', 'deleted row', 'row', 'used again', 'reviewed row'";
    let text = format!("select: id, scores, scores.Quality | from: project_logs('R') | filter: id in ({ids})");
    let parsed = assay_node_btql::parse(&Json::from(text)).expect("it parses");
    let bound = bind(&parsed.query, &Env { audit_log: true, ..Env::default() }).expect("it binds");
    for kept in ALL_KEPT {
        let world = World::empty(&data(0), false);
        world.write(0, &transactions, kept);
        let all = world.answer(&bound).expect("it is answered").rows;
        assert_eq!(all.len(), 11, "{kept:?}: {all:?}");
        let mut shown = world.read_by(reader()).answer(&bound).expect("it is answered").rows;
        shown.sort_by_key(|row| row[0].to_string());
        let expected = ["row", "row", "used again"].map(|id| vec![json!(id), json!({"Auto": 0.5}), Json::Null]);
        assert_eq!(shown, expected, "{kept:?}");
    }
}
