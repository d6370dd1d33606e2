//! Random queries are printed and parsed back, bound or refused, and give the same result in every form.

use assay_node_btql::ast::Query;
use assay_node_btql::bound::Kinds;
use assay_node_btql::{Env, bind, in_clauses, in_sql, in_tree, parse, schema};
use assay_storage_model::event::parse_created;
use assay_test_btql::case::{forms, same_answer};
use assay_test_btql::{Dataset, QueryAnswer, random, run};
use serde_json::Value as Json;

/// Minimum percentages of queries that can be run, and of those with rows: otherwise little is compared.
const BOUND_PERCENT: u64 = 90;
const WITH_ROWS_PERCENT: u64 = 60;
/// Words that must occur somewhere.
const WORDS: [&str; 46] = [
    "'traces'",
    "'summary'",
    "any_span(",
    "NOT any_span(",
    "filter_spans(",
    "UNPIVOT",
    "FOR _ IN",
    "PIVOT (",
    "SELECT *",
    "REPLACE (",
    "SELECT DISTINCT",
    "FROM (SELECT",
    "TABLESAMPLE",
    "PERCENT",
    "GROUP BY 1",
    "HAVING",
    "NULLS FIRST",
    "ORDER BY _pagination_key",
    "LIMIT 0",
    "pivot:",
    "infer:",
    "custom_columns:",
    "weighted_scores:",
    "comparison_key:",
    "preview_length:",
    "final_measures:",
    "BETWEEN",
    "ILIKE",
    "MATCH",
    "INCLUDES",
    "!~*",
    "<=>",
    "<!=>",
    " || ",
    " IN (",
    " IS NOT NULL",
    "interval",
    "date_trunc(",
    "date_part(",
    "date_diff(",
    "regexp_extract(",
    "::date",
    "::json",
    "CASE WHEN",
    "count(DISTINCT",
    "percentile(",
];
const NOW: &str = "2026-05-03T05:06:07Z";

fn env(seed: u64) -> Env<'static> {
    let tz_offset = [0, 480, -330][(seed % 3) as usize];
    Env { now: parse_created(NOW).expect("a time"), tz_offset, ..Env::default() }
}

/// None where it is refused; an error is one that only the data shows.
fn asked(query: &Query, seed: u64, data: &Dataset) -> Option<Result<QueryAnswer, String>> {
    Some(run(&bind(query, &env(seed)).ok()?, data))
}

/// Parses a form, and checks that printing and parsing it again gives the same.
fn read(form: &Json) -> Query {
    let query = parse(form).unwrap_or_else(|error| panic!("{form}: {error}")).query;
    let again = match form {
        Json::String(text) if text.starts_with("SELECT") => in_sql(&query).map(Json::String),
        Json::String(_) => in_clauses(&query).map(Json::String),
        _ => in_tree(&query),
    };
    assert_eq!(again.as_ref(), Ok(form));
    query
}

fn alike(one: &Option<Result<QueryAnswer, String>>, other: &Option<Result<QueryAnswer, String>>) -> bool {
    match (one, other) {
        (Some(Ok(one)), Some(Ok(other))) => same_answer(one, other),
        (Some(Err(_)), Some(Err(_))) | (None, None) => true,
        _ => false,
    }
}

#[test]
fn what_is_asked_at_random_is_answered_alike_in_every_form() {
    let (mut bound, mut with_rows, mut wrong) = (0, 0, Vec::new());
    for seed in 0..random::seeds() {
        let (query, data) = (random::query(seed), random::data(seed));
        let answer = asked(&query, seed, &data);
        bound += usize::from(answer.is_some());
        with_rows += usize::from(matches!(&answer, Some(Ok(answer)) if !answer.rows.is_empty()));
        let forms = forms(&query);
        let readings: Vec<Query> = forms.iter().map(read).collect();
        assert!(readings.contains(&query), "{seed}: in none of {forms:?} it is {query:?}");
        for (form, reading) in forms.iter().zip(&readings) {
            let again = asked(reading, seed, &data);
            if !alike(&answer, &again) {
                wrong.push(format!("{seed}: {form}\n    {answer:?}\n    {again:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} are answered otherwise:\n{}", wrong.len(), wrong.join("\n"));
    for (count, percent) in [(bound, BOUND_PERCENT), (with_rows, WITH_ROWS_PERCENT)] {
        let seeds = random::seeds();
        assert!(count as u64 * 100 >= seeds * percent, "{bound} of {seeds} can be asked, {with_rows} give rows");
    }
}

/// Returns whether a value is of the kinds inferred beforehand.
fn fits(kinds: Kinds, value: &Json) -> bool {
    match (kinds, value) {
        (_, Json::Null) | (Kinds::Any, _) => true,
        (Kinds::Null, _) => false,
        (Kinds::Boolean, _) => value.is_boolean(),
        (Kinds::Integer, _) => value.is_i64() || value.is_u64(),
        (Kinds::Number, _) => value.is_number(),
        (Kinds::Text | Kinds::Interval, _) => value.is_string(),
        (Kinds::Time, _) => value.as_str().is_some_and(|text| parse_created(text).is_some()),
        (Kinds::Texts, _) => value.as_array().is_some_and(|of| of.iter().all(Json::is_string)),
    }
}

#[test]
fn answers_have_the_columns_and_the_kinds_that_their_schema_says() {
    for seed in 0..random::seeds() {
        let query = random::query(seed);
        let Ok(bound) = bind(&query, &env(seed)) else { continue };
        let Ok(answer) = run(&bound, &random::data(seed)) else { continue };
        for (place, column) in schema::columns(&bound).iter().enumerate() {
            assert_eq!(answer.columns.get(place), Some(&column.name), "{seed}: {query:?}");
            for row in &answer.rows {
                let fits = fits(column.kinds, &row[place]) && (column.nullable || !row[place].is_null());
                assert!(fits, "{seed}: {} is {} in {:?}", column.name, row[place], forms(&query));
            }
        }
    }
}

#[test]
fn all_that_can_be_asked_is_asked_at_some_time() {
    let said: Vec<String> = (0..random::seeds())
        .flat_map(|seed| forms(&random::query(seed)))
        .filter_map(|form| Some(form.as_str()?.to_owned()))
        .collect();
    let missing: Vec<&str> = WORDS.into_iter().filter(|word| !said.iter().any(|said| said.contains(word))).collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn a_seed_says_all() {
    for seed in 0..20 {
        assert_eq!(random::query(seed), random::query(seed));
        assert_eq!(random::rows(seed), random::rows(seed));
    }
}
