//! Tests with the summaries of the traces in btql.md, section 19, and of unusual ones.

use assay_node_btql::columns::Kind;
use assay_node_btql::values::picked_text;
use assay_storage_model::merge::{Picker, Step};
use serde_json::{Map, Value as Json, json};

use super::*;
use crate::price::Price;

/// Spans of btql.md, section 19.
const FIXTURE: &str = include_str!("fixture.jsonl");

/// Row as JSON texts by column.
struct Row(Vec<(String, String)>);

impl Row {
    fn of(fields: &Json) -> Row {
        let fields = fields.as_object().expect("an object").iter();
        Row(fields.map(|(name, field)| (name.clone(), field.to_string())).collect())
    }

    fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("null", |(_, text)| text)
    }
}

impl Span for Row {
    fn column(&self, name: &'static str) -> Value<'_> {
        let value = Value::read(self.text(name));
        match (name, value.as_time()) {
            ("created", Some(micros)) => Value::Stored(micros),
            _ => value,
        }
    }

    fn member(&self, column: &'static str, key: &str) -> Value<'_> {
        let picker = Picker::new([[Step::Key(key.to_owned())].as_slice()]);
        picked_text(self.text(column), &picker).map_or(Value::Null, Value::read)
    }
}

fn prices() -> Prices {
    let price = |input, output, cached| Price { input, output, cached: Some(cached), cache_write: None };
    let models = [("gpt-4o", price(2.5, 10.0, 1.25)), ("gpt-4o-mini", price(0.15, 0.6, 0.075))];
    Prices::of(models.map(|(model, price)| (model.to_owned(), price)))
}

/// Calls `of` with a trace of visible spans. The first span is the root if its id is that of the trace.
fn with<T>(spans: &[Json], of: impl FnOnce(&Trace<'_, Row>) -> T) -> T {
    let rows: Vec<Row> = spans.iter().map(Row::of).collect();
    let is_root = spans[0]["id"] == spans[0]["root_span_id"];
    let prices = prices();
    let root = rows.first().filter(|_| is_root);
    of(&Trace { spans: &rows, root, key: PaginationKey(7), xact: Xact(1_000_197_121_814_560_768), prices: &prices })
}

fn fixture(root: &str) -> Vec<Json> {
    let spans = FIXTURE.lines().map(|line| serde_json::from_str::<Json>(line).expect("JSON"));
    spans.filter(|span| span["root_span_id"] == root).collect()
}

fn read(value: &Value<'_>) -> Json {
    serde_json::from_str(&value.to_json()).expect("JSON")
}

/// Returns spans with these metrics and types.
fn measured(spans: &[(&str, Json)]) -> Vec<Json> {
    let span = |(number, (kind, metrics)): (usize, &(&str, Json))| json!({"id": number, "root_span_id": 0, "span_attributes": {"type": kind}, "metrics": metrics});
    spans.iter().enumerate().map(span).collect()
}

#[track_caller]
fn near(left: &Json, right: &Json) {
    let same = match (left.as_f64(), right.as_f64()) {
        (Some(left), Some(right)) => (left - right).abs() < 1e-12,
        _ => left == right,
    };
    assert!(same, "{left} {right}");
}

#[test]
fn traces_of_the_contract_come_to_what_its_table_says() {
    // scores, prompt, completion, duration, llm_duration, llm and tool calls, llm and tool errors, first token, cost
    for (root, scores, expected) in [
        (
            "a1",
            json!({"Helpful": 0.9, "Factuality": 0.8, "Toxicity": 0}),
            json!([100, 50, 6, 3, 1, 1, 0, 0, 0.4, 0.00075]),
        ),
        ("b1", json!({"Factuality": 0.4}), json!([200, 20, 31, 0.5, 1, 1, 0, 1, 0.2, 0.000042])),
        ("c1", json!({"Helpful": 0.5, "Factuality": 1}), json!([1500, 400, 9, 7, 2, 0, 0, 0, 1, 0.005])),
        ("d1", json!({"Factuality": 0.6, "Helpful": 0.2}), json!([10, 5, 2, 2, 1, 0, 1, 0, null, 0.0000045])),
        ("e1", json!({}), json!([20, 10, 2, 2, 1, 0, 0, 0, null, null])),
    ] {
        with(&fixture(root), |trace| {
            assert_eq!(read(&trace.column("scores")), scores, "{root}");
            let names = [
                "prompt_tokens",
                "completion_tokens",
                "duration",
                "llm_duration",
                "llm_calls",
                "tool_calls",
                "llm_errors",
                "tool_errors",
                "time_to_first_token",
                "estimated_cost",
            ];
            let metrics = read(&trace.column("metrics"));
            for ((place, name), value) in names.iter().enumerate().zip(trace.metrics(&names)) {
                near(&metrics[name], &expected[place]);
                assert_eq!(read(&value), metrics[name], "{root} {name}");
            }
            let number = |place: usize| expected[place].as_i64().unwrap_or_default();
            assert_eq!(metrics["total_tokens"], number(0) + number(1));
            assert_eq!(metrics["errors"], number(6) + number(7));
            assert_eq!(metrics["tokens"], number(0) + number(1), "a metric without a rule of its own");
        });
    }
}

#[test]
fn columns_are_the_roots_or_all_spans() {
    with(&fixture("a1"), |trace| {
        let names = ["id", "created", "tags", "_xact_id", "_pagination_key", "span_type_info", "error"];
        let column = |name: &'static str| (name.to_owned(), read(&trace.column(name)));
        let columns: Map<String, Json> = names.into_iter().map(column).collect();
        let expected = json!({
            "id": "a1",
            "created": "2026-05-04T23:30:00.000Z",
            "tags": ["prod", "billing"],
            "_xact_id": "1000197121814560768",
            "_pagination_key": "p00000000000000000007",
            "span_type_info": {
                "cached": false, "has_error": false, "name": "chat", "type": "task", "purpose": null, "in_progress": false,
            },
            "error": null,
        });
        assert_eq!(Json::from(columns), expected);
        assert_eq!(read(&trace.member("metadata", "user_id")), "u1");
        assert_eq!(read(&trace.member("metrics", "duration")), 6);
        assert_eq!(read(&trace.member("scores", "Toxicity")), 0);
        assert_eq!(read(&trace.member("span_type_info", "name")), "chat");
        assert!(trace.member("tags", "a").is_null() && trace.member("scores", "a").is_null());
    });
    with(&fixture("b1"), |trace| {
        let info = json!({
            "cached": false, "has_error": true, "name": "chat", "type": "task", "purpose": null, "in_progress": false,
        });
        assert_eq!(read(&trace.column("span_type_info")), info);
    });
}

#[test]
fn a_trace_without_a_root_has_no_previews_and_the_times_of_its_first_span() {
    with(&fixture("e1"), |trace| {
        for name in Kind::Playground.columns().iter().copied().filter(|name| is_root_only(name)) {
            assert!(trace.column(name).is_null(), "{name}");
        }
        assert_eq!(read(&trace.column("root_span_id")), "e1");
        assert_eq!(read(&trace.column("created")), "2026-05-06T12:00:00.000Z");
        assert!(trace.column("tags").is_null());
        let info = json!({
            "cached": false, "has_error": false, "name": null, "type": null, "purpose": null, "in_progress": false,
        });
        assert_eq!(read(&trace.column("span_type_info")), info);
        assert!(trace.member("metadata", "model").is_null());
    });
}

#[test]
fn a_root_that_is_not_seen_gives_its_columns_and_is_not_counted() {
    let spans = fixture("a1");
    let rows: Vec<Row> = spans.iter().map(Row::of).collect();
    let prices = prices();
    let trace =
        Trace { spans: &rows[3..], root: Some(&rows[0]), key: PaginationKey(1), xact: Xact(1), prices: &prices };
    assert_eq!(read(&trace.column("scores")), json!({"Toxicity": 0}));
    assert!(trace.column("tags").is_null());
    assert_eq!(read(&trace.column("id")), "a1");
    assert_eq!(read(&trace.metric("duration")), 1);
    assert_eq!(read(&trace.member("span_type_info", "name")), "chat");
}

#[test]
fn metrics_of_nothing_are_null_and_counts_are_zero() {
    with(&measured(&[("task", Json::Null), ("score", json!("none"))]), |trace| {
        let metrics = read(&trace.column("metrics"));
        for (name, value) in metrics.as_object().expect("an object") {
            let is_count = name.contains("calls") || name.contains("errors");
            assert_eq!(*value, if is_count { json!(0) } else { Json::Null }, "{name}");
        }
        assert_eq!(metrics.as_object().map(Map::len), Some(16));
        assert_eq!(read(&trace.column("scores")), json!({}));
    });
}

#[test]
fn totals_that_parents_repeat_are_counted_once() {
    let spans = [
        ("task", json!({"prompt_tokens": 30, "retries": 2, "estimated_cost": 9})),
        ("llm", json!({"prompt_tokens": 10, "estimated_cost": 0.25})),
        ("llm", json!({"prompt_tokens": 20, "completion_tokens": "many"})),
        ("tool", json!({"completion_tokens": 4, "retries": 1, "estimated_cost": 1})),
    ];
    with(&measured(&spans), |trace| {
        let names = ["prompt_tokens", "completion_tokens", "total_tokens", "retries", "estimated_cost"];
        let values: Vec<Json> = trace.metrics(&names).iter().map(read).collect();
        assert_eq!(values, [json!(30), json!(4), json!(34), json!(3), json!(0.25)]);
    });
}

#[test]
fn what_is_no_number_is_left_out_and_a_boolean_is_one() {
    let spans = [
        (
            "llm",
            json!({"start": "NaN", "end": 5.5, "flag": true, "caller_filename": "a.py", "n": 1, "duration": "long"}),
        ),
        ("llm", json!({"start": 2, "end": null, "flag": true, "n": "2", "time_to_first_token": true})),
        ("llm", json!({"start": 3, "end": 4, "n": true, "time_to_first_token": 0.5})),
    ];
    with(&measured(&spans), |trace| {
        let metrics = read(&trace.column("metrics"));
        let names = ["start", "end", "duration", "llm_duration", "time_to_first_token", "n"];
        let values: Vec<Json> = names.iter().map(|name| metrics[name].clone()).collect();
        assert_eq!(values, [json!(2), json!(5.5), json!(3.5), json!(1), json!(0.75), json!(2)]);
        assert!(metrics.get("flag").is_none() && metrics.get("caller_filename").is_none());
        assert!(trace.metric("flag").is_null() && trace.metric("caller_filename").is_null());
    });
}

#[test]
fn whole_numbers_stay_whole_within_64_bits() {
    let large = u64::MAX;
    let spans = [("task", json!({"a": large, "b": large, "c": 1})), ("task", json!({"a": -1, "b": 1, "c": 0.5}))];
    with(&measured(&spans), |trace| {
        let values: Vec<Json> = trace.metrics(&["a", "b", "c"]).iter().map(read).collect();
        assert_eq!(values, [json!(large - 1), json!(18_446_744_073_709_551_616.0), json!(1.5)]);
    });
}

#[test]
fn a_trace_is_cached_when_all_its_llm_spans_are() {
    let cached =
        |spans: &[(&str, Json)]| with(&measured(spans), |trace| read(&trace.member("span_type_info", "cached")));
    assert_eq!(cached(&[("task", json!({"cached": 1}))]), false);
    assert_eq!(cached(&[("llm", json!({"cached": 1})), ("llm", json!({"cached": true})), ("task", json!({}))]), true);
    assert_eq!(cached(&[("llm", json!({"cached": 1})), ("llm", json!({"cached": 0}))]), false);
    assert_eq!(cached(&[("llm", json!({"cached": "1"}))]), false);
}

#[test]
fn a_root_that_began_and_did_not_end_is_in_progress() {
    for (metrics, expected) in [(json!({"start": 1}), true), (json!({"start": 1, "end": 2}), false), (json!({}), false)]
    {
        let found = with(&measured(&[("task", metrics)]), |trace| read(&trace.member("span_type_info", "in_progress")));
        assert_eq!(found, expected);
    }
}

#[test]
fn tags_and_scores_come_as_they_were_first_seen() {
    let spans = [
        json!({"id": "r", "root_span_id": "r", "tags": [], "scores": {"b": null, "a": 1}}),
        json!({"tags": ["x", "y", "x"], "scores": {"c": "high", "b": null, "a": 0}}),
        json!({"tags": "z", "scores": null}),
        json!({"tags": ["w", "y"], "scores": {"a": true}}),
    ];
    with(&spans, |trace| {
        assert_eq!(trace.column("tags").to_json(), r#"["x","y","w"]"#);
        assert_eq!(trace.column("scores").to_json(), r#"{"b":null,"a":0.6666666666666666,"c":null}"#);
        for name in ["a", "b", "c", "d"] {
            let scores = read(&trace.column("scores"));
            assert_eq!(read(&trace.member("scores", name)), scores[name], "{name}");
        }
    });
    with(&spans[..1], |trace| assert_eq!(trace.column("tags").to_json(), "[]"));
}

#[test]
fn what_is_evaluated_elsewhere_is_set_afterwards() {
    assert_eq!(comparison_key(&Value::Null), Value::Null);
    assert_eq!(comparison_key(&Value::Text("1+1".into())), Value::Text("\"1+1\"".into()));
    assert_eq!(comparison_key(&Value::read(r#"{"q":"1+1"}"#)), Value::Text(r#"{"q":"1+1"}"#.into()));
    let mut scores = Value::Members(vec![("a".into(), Value::Integer(1)), ("b".into(), Value::Integer(2))]);
    weigh(&mut scores, "both", Value::Float(1.5));
    weigh(&mut scores, "a", Value::Null);
    assert_eq!(scores.to_json(), r#"{"a":null,"b":2,"both":1.5}"#);
}

#[test]
fn a_preview_is_the_value_or_the_start_of_its_text() {
    for (json, length, expected) in [
        (r#""größer""#, 6, r#""größer""#),
        (r#""größer""#, 5, r#""größe...""#),
        (r#""größer""#, 0, r#""...""#),
        (r#""""#, 0, r#""""#),
        (r#"{"a":[1,2]}"#, 11, r#"{"a":[1,2]}"#),
        (r#"{"a":[1,2]}"#, 4, r#""{\"a\"...""#),
        ("123456", 3, r#""123...""#),
        ("true", 4, "true"),
        ("null", 0, "null"),
        (r#""long""#, -1, r#""long""#),
    ] {
        assert_eq!(preview(Value::read(json), length).to_json(), expected, "{json} {length}");
    }
}

/// Span that panics on a read that was not announced.
struct Strict<'r> {
    row: &'r Row,
    allowed: &'r [(&'static str, Option<String>)],
}

impl Span for Strict<'_> {
    fn column(&self, name: &'static str) -> Value<'_> {
        assert!(self.allowed.contains(&(name, None)), "{name} of {:?}", self.allowed);
        self.row.column(name)
    }

    fn member(&self, column: &'static str, key: &str) -> Value<'_> {
        let is_allowed = |(name, member): &(&'static str, Option<String>)| {
            *name == column && member.as_deref().is_none_or(|member| member == key)
        };
        assert!(self.allowed.iter().any(is_allowed), "{column}.{key} of {:?}", self.allowed);
        self.row.member(column, key)
    }
}

#[test]
fn nothing_is_read_but_what_is_said_to_be() {
    let prices = prices();
    let members = [
        ("metrics", "prompt_cached_tokens"),
        ("metrics", "total_tokens"),
        ("metrics", "estimated_cost"),
        ("metrics", "llm_calls"),
        ("metrics", "errors"),
        ("metrics", "start"),
        ("metrics", "duration"),
        ("metrics", "llm_duration"),
        ("metrics", "time_to_first_token"),
        ("metrics", "tokens"),
        ("scores", "Helpful"),
        ("span_type_info", "cached"),
        ("span_type_info", "has_error"),
        ("span_type_info", "purpose"),
        ("span_type_info", "in_progress"),
        ("span_type_info", "other"),
        ("metadata", "user_id"),
    ];
    let columns = ["metrics", "scores", "tags", "span_type_info", "input", "_xact_id", "_pagination_key", "created"];
    let columns = columns.into_iter().map(|column| (column, None));
    for (column, member) in columns.chain(members.map(|(column, key)| (column, Some(key)))) {
        let allowed = reads(column, member);
        for root in ["a1", "b1", "c1", "d1", "e1"] {
            let rows: Vec<Row> = fixture(root).iter().map(Row::of).collect();
            let spans: Vec<Strict<'_>> = rows.iter().map(|row| Strict { row, allowed: &allowed }).collect();
            let first = spans.first().filter(|_| root != "e1");
            let trace = Trace { spans: &spans, root: first, key: PaginationKey(1), xact: Xact(1), prices: &prices };
            match member {
                None => drop(trace.column(column)),
                Some(key) => drop(trace.member(column, key)),
            }
        }
    }
    assert_eq!(reads("metrics", Some("duration")), ["start", "end"].map(|key| ("metrics", Some(key.to_owned()))));
}
