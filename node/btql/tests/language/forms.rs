//! Every query that can be said in a form is the same query when it is read again.

use assay_node_btql::ast::Query;
use assay_node_btql::{in_clauses, in_sql, in_tree, parse, parse_text};
use serde_json::Value;

fn examples() -> Vec<(usize, Value)> {
    let text = include_str!("examples.txt");
    let named = [
        ("$L", "project_logs('P1')"),
        ("$S", "project_logs('P1', shape => 'summary')"),
        ("$T", "project_logs('P1', shape => 'traces')"),
        ("⏎", "\n"),
    ];
    let read = |(number, line): (usize, &str)| {
        let line = named.iter().fold(line.to_owned(), |line, (name, means)| line.replace(name, means));
        let query =
            if line.starts_with('{') { serde_json::from_str(&line).expect("a tree") } else { Value::String(line) };
        (number + 1, query)
    };
    text.lines().enumerate().map(read).collect()
}

fn read(query: &Value) -> Query {
    parse(query).unwrap_or_else(|error| panic!("{query}: {error}")).query
}

#[test]
fn each_example_is_read_again_as_it_was_said() {
    let mut said = [0; 3];
    for (number, asked) in examples() {
        let query = read(&asked);
        if let Ok(text) = in_sql(&query) {
            let again = parse_text(&text).unwrap_or_else(|error| panic!("{number}: {text}: {error}"));
            // What was said in other words is said in the same words from then on.
            assert_eq!(in_sql(&again).as_ref(), Ok(&text), "{number}");
            said[0] += 1;
        }
        if let Ok(text) = in_clauses(&query) {
            let again = parse_text(&text).unwrap_or_else(|error| panic!("{number}: {text}: {error}"));
            assert_eq!(in_clauses(&again).as_ref(), Ok(&text), "{number}");
            said[1] += 1;
        }
        if let Ok(tree) = in_tree(&query) {
            assert_eq!(in_tree(&read(&tree)).as_ref(), Ok(&tree), "{number}");
            said[2] += 1;
        }
        let own = [in_sql(&query).map(Value::String), in_clauses(&query).map(Value::String), in_tree(&query)];
        assert!(own.into_iter().flatten().any(|form| read(&form) == query), "{number}: {asked} in none of the forms");
    }
    // SQL has no preview_length, the others no query within FROM.
    assert_eq!(said, [59, 59, 59]);
}
