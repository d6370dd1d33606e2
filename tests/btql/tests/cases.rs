//! Runs every case of `cases/*.jsonl` as written and in each other form that can express it, with equal results.

use std::fs;
use std::path::{Path, PathBuf};

use assay_node_btql::{Env, bind, parse};
use assay_storage_model::event::parse_created;
use assay_test_btql::case::{self, Case, forms, same_answer, same_row, same_rows};
use assay_test_btql::{Dataset, QueryAnswer, fixture, run};
use serde_json::Value as Json;

/// Time of requests without a time of their own.
const NOW: &str = "2026-05-07T12:34:56Z";
const PAGES_MAX: usize = 20;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

fn data() -> Dataset {
    fixture::read(&directory().join("fixture")).expect("the fixture is read")
}

fn cases(name: &str) -> Vec<Case> {
    let text = fs::read_to_string(directory().join(name)).expect(name);
    case::read(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Result of a case, and the notes of its query.
struct CaseOutcome {
    answer: QueryAnswer,
    notes: Vec<&'static str>,
    blocks: Vec<&'static str>,
}

fn ask(case: &Case, query: &Json, cursor: Option<String>, data: &Dataset) -> Result<CaseOutcome, String> {
    let parsed = parse(query).map_err(|error| error.to_string())?;
    let now = case.body("now").and_then(Json::as_str).unwrap_or(NOW);
    let tz_offset = case.body("tz_offset").and_then(Json::as_i64).unwrap_or(0);
    let env = Env {
        now: parse_created(now).expect("a time"),
        tz_offset: tz_offset.try_into().expect("minutes of a day"),
        text: query.as_str(),
        inference_depth: case.body("inference_depth").and_then(Json::as_u64),
        ..Env::default()
    };
    let mut bound = bind(&parsed.query, &env).map_err(|error| error.to_string())?;
    bound.cursor = cursor.or(bound.cursor);
    let answer = run(&bound, data)?;
    assert_eq!(run(&bound, data).as_ref(), Ok(&answer), "{query}: asked twice");
    let notes = bound.notes.iter().map(|note| note.code).collect();
    let blocks = bound.notes.iter().filter(|note| note.blocks_strict).map(|note| note.code).collect();
    Ok(CaseOutcome { answer, notes, blocks })
}

fn key_of(id: &str, data: &Dataset) -> String {
    let mut rows = data.objects.iter().flat_map(|object| &object.rows);
    let row = rows.find(|row| row["id"] == id).unwrap_or_else(|| panic!("there is no row {id}"));
    row["_pagination_key"].as_str().expect("a key").to_owned()
}

fn ids(answer: &QueryAnswer) -> Vec<String> {
    let place = answer.columns.iter().position(|column| column == "id").expect("a column id");
    answer.rows.iter().map(|row| row[place].as_str().unwrap_or("null").to_owned()).collect()
}

/// Returns the defects of a result.
fn complaints(case: &Case, asked: &CaseOutcome, data: &Dataset) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |fine: bool, what: String| found.extend((!fine).then_some(what));
    let answer = &asked.answer;
    if let Some(columns) = case.texts("columns") {
        check(answer.columns == columns, format!("columns {:?}", answer.columns));
    }
    if let Some(rows) = case.expected_rows("rows") {
        check(
            same_rows(&rows, &answer.rows),
            format!("rows {}", Json::from(answer.rows.iter().map(|row| Json::from(row.clone())).collect::<Vec<_>>())),
        );
    }
    for wanted in case.expected_rows("has").unwrap_or_default() {
        let has = answer.rows.iter().any(|row| same_row(row, &wanted));
        check(has, format!("{wanted:?} is not among {:?}", answer.rows));
    }
    if let Some(wanted) = case.texts("ids") {
        check(ids(answer) == wanted, format!("ids {:?}", ids(answer)));
    }
    if let Some(count) = case.get("count").and_then(Json::as_u64) {
        check(answer.rows.len() as u64 == count, format!("{} rows", answer.rows.len()));
    }
    if case.get("whole").is_some() {
        for (row, id) in answer.rows.iter().zip(ids(answer)) {
            let stored = data.objects.iter().flat_map(|object| &object.rows).find(|row| row["id"] == id.as_str());
            let stored: Vec<Json> = stored.expect("a row").values().cloned().collect();
            check(same_row(row, &stored), format!("{id} is {row:?}"));
        }
    }
    let cursor = answer.cursor.as_ref().map(|cursor| cursor.key.clone());
    match case.get("cursor") {
        Some(Json::String(id)) => check(cursor == Some(key_of(id, data)), format!("cursor {cursor:?}")),
        Some(_) => check(cursor.is_none(), format!("cursor {cursor:?}")),
        None => {}
    }
    for (key, told) in [("notes", &asked.notes), ("blocks", &asked.blocks)] {
        if let Some(mut wanted) = case.texts(key) {
            let mut told = told.clone();
            told.sort_unstable();
            wanted.sort_unstable();
            check(told == wanted, format!("{key} {told:?}"));
        }
    }
    found
}

/// Follows cursors until there is none.
fn page_by_page(case: &Case, query: &Json, data: &Dataset) -> Result<Vec<String>, String> {
    let wanted = case.get("pages").and_then(Json::as_array).expect("pages");
    let mut cursor = None;
    for number in 0..PAGES_MAX {
        let asked = ask(case, query, cursor, data)?;
        let wanted: Vec<String> = match wanted.get(number).and_then(Json::as_array) {
            Some(ids) => ids.iter().filter_map(Json::as_str).map(str::to_owned).collect(),
            None => return Ok(vec![format!("page {} is one too many", number + 1)]),
        };
        let found = ids(&asked.answer);
        if found != wanted {
            return Ok(vec![format!("page {} has {found:?}", number + 1)]);
        }
        cursor = asked.answer.cursor.map(|cursor| cursor.text);
        if cursor.is_some() == found.is_empty() {
            return Ok(vec![format!("page {} has the cursor {cursor:?}", number + 1)]);
        }
        if cursor.is_none() {
            let left = case.get("pages").and_then(Json::as_array).map_or(0, Vec::len) - number - 1;
            return Ok(if left == 0 { Vec::new() } else { vec![format!("{left} pages are missing")] });
        }
    }
    Ok(vec!["there is no last page".into()])
}

fn of_case(case: &Case, data: &Dataset) -> Vec<String> {
    if case.get("pages").is_some() {
        return page_by_page(case, &case.query, data).unwrap_or_else(|error| vec![error]);
    }
    let asked = ask(case, &case.query, None, data);
    let wanted = case.get("error").and_then(Json::as_str);
    let mut found = match (&asked, wanted) {
        (Ok(asked), None) => complaints(case, asked, data),
        (Err(error), Some(words)) if error.to_lowercase().contains(&words.to_lowercase()) => Vec::new(),
        (Ok(asked), Some(_)) => vec![format!("no error but {:?}", asked.answer)],
        (Err(error), _) => vec![error.clone()],
    };
    for form in parse(&case.query).map(|parsed| forms(&parsed.query)).unwrap_or_default() {
        match (&asked, ask(case, &form, None, data)) {
            (Ok(asked), Ok(again)) if same_answer(&asked.answer, &again.answer) => {}
            (Err(_), Err(_)) => {}
            (_, Ok(again)) => found.push(format!("{form} gives {:?}", again.answer)),
            (_, Err(error)) => found.push(format!("{form} gives {error}")),
        }
    }
    found
}

fn all_of(name: &str) -> Vec<Case> {
    let data = data();
    let cases = cases(name);
    let mut wrong = Vec::new();
    for case in &cases {
        let mut found = of_case(case, &data);
        if case.open().is_some() {
            found = if found.is_empty() { vec!["it is open no longer".to_owned()] } else { Vec::new() };
        }
        wrong.extend(
            found.iter().map(|found| format!("{name}:{}: {}: {}\n    {found}", case.line, case.about, case.query)),
        );
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    cases
}

#[test]
fn the_sixty_examples_are_answered() {
    let cases = all_of("examples.jsonl");
    for number in 1..=60 {
        assert!(cases.iter().any(|case| case.about == format!("example {number}")), "example {number} is missing");
    }
}

#[test]
fn decisions_are_kept() {
    let cases = all_of("decisions.jsonl");
    for number in 34..=89 {
        let about = format!("D-{number}");
        assert!(cases.iter().any(|case| case.about == about), "{about} is missing");
    }
}

#[test]
fn what_is_answered_otherwise_is_told() {
    let data = data();
    let asked = |expected: &str| {
        let query =
            format!("{{\"about\":\"itself\",\"query\":\"SELECT id FROM $L WHERE root_span_id = 'c1'\",{expected}}}");
        of_case(&case::read(&query).expect("a case")[0], &data)
    };
    assert_eq!(
        asked(r#""rows":["c3","c2","c1"],"columns":["id"],"cursor":"c1","count":3,"notes":[],"has":["c2"]"#),
        [""; 0]
    );
    for wrong in [
        r#""rows":["c3","c1","c2"]"#,
        r#""rows":["c3","c2"]"#,
        r#""columns":["ID"]"#,
        r#""ids":["c1"]"#,
        r#""cursor":false"#,
        r#""cursor":"c2""#,
        r#""count":2"#,
        r#""has":["a1"]"#,
        r#""notes":["unknownField"]"#,
        r#""error":"""#,
        r#""pages":[["c3","c2","c1"]]"#,
    ] {
        assert_eq!(asked(wrong).len(), 1, "{wrong}");
    }
}
