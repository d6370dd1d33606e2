//! Tests of the review rules.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::*;

fn user(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

fn reviewer(number: u128) -> Reviewer {
    Reviewer { id: user(number), name: format!("Person {number}") }
}

/// Store of one trace, which merges rows deeply as the server does.
#[derive(Default)]
struct Store(Vec<Map<String, Value>>);

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

impl Store {
    fn write(&mut self, rows: Vec<Value>) {
        for row in rows.into_iter().filter(|row| row.get("comment").is_none()) {
            let place = self.0.iter().position(|kept| kept["id"] == row["id"]);
            let mut kept = place.map(|place| Value::Object(self.0.remove(place))).unwrap_or_else(|| json!({}));
            merge(&mut kept, &row);
            self.0.push(object(kept));
        }
    }

    fn row(&self) -> ReviewedRow {
        let row = self.0.iter().find(|row| row["id"] == "row").expect("the row");
        ReviewedRow::read(&Value::Object(row.clone())).expect("it reads")
    }

    fn reviews(&self) -> Vec<Review> {
        let reviews = self.0.iter().filter(|row| row["id"] != "row");
        reviews.map(|row| Review::read(&Value::Object(row.clone())).expect("it reads")).collect()
    }

    fn review(&mut self, number: u128, body: Value, is_blind: bool) {
        let change = Change::read(object(body)).expect("a change");
        let (row, id) = (self.row(), review_id("row", user(number)).to_string());
        let before = self.reviews().into_iter().find(|review| review.id == id);
        let withdrawn = before.as_ref().map(|review| contributed(review, is_blind)).unwrap_or_default();
        self.write(change.rows(&row, before.as_ref(), &reviewer(number), "2026-11-28T00:00:00Z"));
        self.write(settle(&self.row(), &self.reviews(), &withdrawn, is_blind));
        assert!(settle(&self.row(), &self.reviews(), &withdrawn, is_blind).is_empty(), "it is settled at once");
    }
}

fn store() -> Store {
    let mut store = Store::default();
    store.write(vec![json!({"id": "row", "span_id": "s", "root_span_id": "r", "scores": {"Auto": 0.5, "Good": 0.1}})]);
    store
}

#[test]
fn the_row_has_the_mean_of_submitted_reviews() {
    let mut store = store();
    store.review(1, json!({"scores": {"Good": 1}}), true);
    assert_eq!(store.row().scores["Good"], 0.1, "it is not submitted");
    store.review(1, json!({"submitted": true}), true);
    assert_eq!(store.row().scores["Good"], 1.0);
    store.review(2, json!({"scores": {"Good": 0.5, "Other": null}, "submitted": true}), true);
    assert_eq!(store.row().scores, object(json!({"Auto": 0.5, "Good": 0.75})));
    assert_eq!(store.row().submitters.len(), 2);
    store.review(3, json!({"scores": {"Good": 0.0}}), false);
    assert_eq!(store.row().scores["Good"], 0.5, "all reviews count if the project is not blind");
    for (number, change) in [(1, json!({"scores": {"Good": null}})), (2, json!({"submitted": false}))] {
        store.review(number, change, true);
    }
    assert_eq!(store.row().scores, object(json!({"Auto": 0.5, "Good": null})), "nobody's score remains");
}

#[test]
fn a_change_keeps_what_it_does_not_name() {
    let mut store = store();
    store.review(1, json!({"scores": {"A": 1, "B": 0}, "metadata": {"note": "x"}, "submitted": true}), true);
    store.review(1, json!({"scores": {"B": 1}, "comment": "fine"}), true);
    let review = store.reviews().remove(0);
    assert!(review.submitted);
    assert_eq!(review.scores, object(json!({"A": 1, "B": 1})));
    assert_eq!((review.metadata, review.comment), (object(json!({"note": "x"})), Some("fine".into())));
    assert_eq!(review.name, "Person 1");
}

#[test]
fn wrong_changes_say_what_is_wrong() {
    let cases = [
        (json!({"scores": 1}), "`scores` has to be an object"),
        (json!({"scores": {"a": 2}}), "`scores.a`"),
        (json!({"scores": {"a": "x"}}), "`scores.a`"),
        (json!({"metadata": []}), "`metadata`"),
        (json!({"metadata": {"reviewer_id": "x"}}), "`metadata.reviewer_id`"),
        (json!({"comment": 1}), "`comment`"),
        (json!({"submitted": "yes"}), "`submitted`"),
        (json!({"score": {}}), "`score` is unknown"),
    ];
    for (body, text) in cases {
        let why = Change::read(object(body)).expect_err("it is refused").to_string();
        assert!(why.starts_with(text), "{why}");
    }
    assert!(Change::read(Map::new()).expect("a change").is_empty());
}

#[test]
fn a_score_is_filled_where_its_definition_says() {
    let score = |body: Value| HumanScore::read(&object(body)).expect("a human score");
    let review = |row: Value| Review::read(&row).expect("a review");
    let slider = score(json!({"name": "Good", "score_type": "slider"}));
    assert!(slider.is_filled(&review(json!({"id": "a", "scores": {"Good": 0}}))));
    assert!(!slider.is_filled(&review(json!({"id": "a", "scores": {"Good": null}}))));
    let choice = score(json!({"name": "Kind", "score_type": "categorical", "config": {"destination": "expected"}}));
    assert!(!choice.is_among_scores() && choice.is_filled(&review(json!({"id": "a", "expected": "refund"}))));
    let notes = score(json!({"name": "Notes", "score_type": "free-form", "config": {"destination": "metadata.a.b"}}));
    assert!(notes.is_filled(&review(json!({"id": "a", "metadata": {"a": {"b": "x"}}}))));
    assert!(!notes.is_filled(&review(json!({"id": "a", "metadata": {"a": {"b": ""}}}))));
    let computed = score(json!({"name": "All", "score_type": "weighted"}));
    assert!(computed.is_among_scores() && !computed.is_entered());
    assert_eq!(HumanScore::read(&object(json!({"name": "Online", "score_type": "online"}))), None);
}

#[test]
fn visibility_and_types_say_for_whom_a_score_is() {
    let config = json!({"visibility": {"users": [user(1)], "groups": [user(9)]}, "object_types": ["experiment"]});
    let score = json!({"name": "Good", "score_type": "slider", "config": config});
    let score = HumanScore::read(&object(score)).expect("a human score");
    let is_for = |of: &str, number, groups: &[u128]| {
        score.is_for(of, user(number), &groups.iter().map(|group| user(*group)).collect())
    };
    assert!(is_for("experiment", 1, &[]) && is_for("experiment", 2, &[9]));
    assert!(!is_for("experiment", 2, &[]) && !is_for("project_logs", 1, &[]));
}

#[test]
fn a_reviewer_sees_the_others_once_the_own_review_is_submitted() {
    let blind = Blindness { user: user(2), scores: ["Good".to_owned()].into() };
    let mut store = store();
    store.review(1, json!({"scores": {"Good": 1}, "submitted": true}), true);
    store.review(2, json!({"scores": {"Good": 0}}), true);
    let seen = |store: &Store| -> Vec<Map<String, Value>> {
        store.0.iter().filter_map(|row| blind.masked(row.clone())).collect()
    };
    let before = seen(&store);
    assert_eq!(before.len(), 2, "the row and the own review");
    let row = before.iter().find(|row| row["id"] == "row").expect("the row");
    assert_eq!(row["scores"], json!({"Auto": 0.5}));
    let forged = object(json!({"id": "row", "scores": {"Good": 1}, "metadata": {"reviewer_id": user(2)}}));
    let masked = blind.masked(forged).expect("it is no review");
    assert_eq!(masked["scores"], json!({}), "only a review can be the reader's own");
    let own = before.iter().find(|row| row["id"] != "row").expect("the review");
    assert_eq!(own["scores"], json!({"Good": 0}));
    store.review(2, json!({"submitted": true}), true);
    let after = seen(&store);
    assert_eq!(after.len(), 3);
    assert!(after.iter().any(|row| row["id"] == "row" && row["scores"]["Good"] == 0.5));
}

proptest! {
    /// Checks the mean scores against the last change of each reviewer, for any order of changes.
    #[test]
    fn means_follow_the_last_changes(changes in prop::collection::vec((1u128..4, 0u32..=10, any::<bool>()), 1..20)) {
        let mut store = store();
        let mut model: std::collections::BTreeMap<u128, (f64, bool)> = std::collections::BTreeMap::new();
        // A value that no review has contributed to stays.
        let mut without_reviews = json!(0.1);
        for (number, score, submitted) in changes {
            let score = f64::from(score) / 10.0;
            store.review(number, json!({"scores": {"Good": score}, "submitted": submitted}), true);
            model.insert(number, (score, submitted));
            let counted: Vec<f64> = model.values().filter(|(_, submitted)| *submitted).map(|(score, _)| *score).collect();
            if counted.is_empty() {
                prop_assert_eq!(&store.row().scores["Good"], &without_reviews);
            } else {
                let mean = counted.iter().sum::<f64>() / counted.len() as f64;
                prop_assert!((store.row().scores["Good"].as_f64().expect("a number") - mean).abs() < 1e-6);
                without_reviews = Value::Null;
            }
            prop_assert_eq!(store.row().submitters.len(), counted.len());
        }
    }
}
