//! Queries that are too much: each is refused with its limit, or answered; none exhausts the stack of a thread.

use assay_node_btql::{Env, TEXT_BYTES_MAX, bind, expression, in_sql, in_tree, parse, parse_expression, parse_text};
use serde_json::{Value, json};

const DEEP: usize = 255;

fn nested(open: &str, inner: &str, close: &str, times: usize) -> String {
    format!("{}{inner}{}", open.repeat(times), close.repeat(times))
}

#[test]
fn what_nests_deep_is_read_up_to_the_limit_and_refused_above() {
    for (open, inner, close) in [
        ("(", "a", ")"),
        ("lower(", "a", ")"),
        ("NOT (", "a", ")"),
        ("- ", "a", ""),
        ("[", "a", "]"),
        ("{'k': ", "a", "}"),
        ("CASE WHEN ", "a", " THEN 1 END"),
        ("a ? ", "b", " : c"),
        ("x IN (", "1", ")"),
        ("coalesce(a, ", "b", ")"),
    ] {
        for times in [DEEP / 2, DEEP, 10_000] {
            let text = nested(open, inner, close, times);
            match parse_expression(&text) {
                Ok(expr) => {
                    let again = parse_expression(&expression(&expr));
                    assert_eq!(again.as_ref(), Ok(&expr), "{open} {times}");
                }
                Err(error) => {
                    let error = error.to_string();
                    assert!(error.contains("nested deeper than") && times >= DEEP, "{open} {times}: {error}");
                }
            }
        }
    }
}

#[test]
fn long_chains_are_flat() {
    let query = |filter: &str| format!("SELECT id FROM project_logs('P') WHERE {filter}");
    let terms: Vec<String> = (0..5_000).map(|number| format!("id = 'r{number}'")).collect();
    let or = parse_text(&query(&terms.join(" OR "))).expect("5,000 conditions");
    assert!(bind(&or, &Env::default()).is_ok());
    assert_eq!(parse_text(&in_sql(&or).expect("SQL")), Ok(or));
    let ids: Vec<String> = (0..100_000).map(|number| number.to_string()).collect();
    let many = parse_text(&query(&format!("metadata.n IN ({})", ids.join(", ")))).expect_err("too many parts");
    assert!(many.to_string().contains("more than 20000 parts"), "{many}");
    let sum = vec!["1"; 300].join(" + ");
    let error = parse_text(&query(&sum)).expect_err("a sum is as deep as it is long").to_string();
    assert!(error.contains("nested deeper than 256"), "{error}");
}

#[test]
fn aliases_of_aliases_do_not_multiply_without_end() {
    let asked = |items: &[String]| {
        let text = format!("SELECT {} FROM project_logs('P')", items.join(", "));
        bind(&parse_text(&text).expect("it is read"), &Env::default()).map(drop).map_err(|error| error.to_string())
    };
    let doubled = |of: &str, times: usize| -> Vec<String> {
        let first = format!("{of} AS a0");
        let more = (1..times).map(|number| format!("a{0} + a{0} AS a{number}", number - 1));
        [first].into_iter().chain(more).collect()
    };
    for of in ["id", "count(1)"] {
        assert_eq!(asked(&doubled(of, 8)), Ok(()));
        assert!(asked(&doubled(of, 60)).expect_err("too large").contains("written out"));
    }
    let deep = |number: usize, of: &str| format!("{} AS b{number}", nested("lower(", of, ")", 200));
    let chain: Vec<String> = (1..20).map(|number| deep(number, &format!("b{}", number - 1))).collect();
    let chain = [vec![deep(0, "id")], chain].concat();
    assert!(asked(&chain).expect_err("too deep").contains("nested deeper than"));
    assert_eq!(asked(&chain[..2]), Ok(()));
}

#[test]
fn queries_stand_within_each_other_so_often() {
    let of = |times: usize| nested("SELECT * FROM (", "SELECT id FROM project_logs('P')", ")", times);
    assert!(parse_text(&of(8)).is_ok());
    for times in [9, 300, 60_000] {
        let error = parse_text(&of(times)).expect_err("too many").to_string();
        assert!(error.contains("more than 8 queries stand within each other"), "{error}");
    }
}

#[test]
fn a_text_may_be_so_long() {
    let text = format!("SELECT id FROM project_logs('{}')", "x".repeat(TEXT_BYTES_MAX));
    assert!(parse_text(&text).expect_err("too long").to_string().contains("1048576 are allowed"));
}

#[test]
fn a_tree_has_the_same_limits() {
    let deep = |times: usize| {
        let mut filter = json!({"op": "ident", "name": ["is_root"]});
        for _ in 0..times {
            filter = json!({"op": "not", "expr": filter});
        }
        json!({"select": [{"op": "star"}], "from": {"op": "function", "name": {"op": "ident", "name": ["project_logs"]},
            "args": [{"op": "literal", "value": "P"}]}, "filter": filter})
    };
    let parsed = parse(&deep(200)).expect("200 levels").query;
    assert!(bind(&parsed, &Env::default()).is_ok());
    assert_eq!(parse(&in_tree(&parsed).expect("a tree")).map(|parsed| parsed.query).as_ref(), Ok(&parsed));
    let error = parse(&deep(300)).expect_err("300 levels").to_string();
    assert!(error.contains("nested deeper than 256"), "{error}");
    let children: Vec<Value> = (0..30_000).map(|_| json!({"op": "ident", "name": ["is_root"]})).collect();
    let mut wide = deep(0);
    wide["filter"] = json!({"op": "and", "children": children});
    let error = parse(&wide).expect_err("30,000 nodes").to_string();
    assert!(error.contains("more than 20000 parts"), "{error}");
}
