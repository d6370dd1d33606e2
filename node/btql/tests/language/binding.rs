//! What the examples mean, as far as it is seen before there are rows; and what is refused, with its words.

use assay_node_btql::bound::{Bound, BoundExpr, Field, Key, Order, Output};
use assay_node_btql::{Env, QueryError, bind, parse, parse_text};
use serde_json::json;

fn bound(text: &str) -> Result<Bound, QueryError> {
    let text = text
        .replace("$L", "project_logs('P1')")
        .replace("$S", "project_logs('P1', shape => 'summary')")
        .replace("$T", "project_logs('P1', shape => 'traces')")
        .replace('⏎', "\n");
    let query = parse_text(&text)?;
    bind(&query, &Env { now: 1_777_937_400_000_000, text: Some(&text), ..Env::default() })
}

fn columns(bound: &Bound) -> Vec<&str> {
    match &bound.output {
        Output::Rows { columns, .. } => columns.iter().map(|(name, _)| name.as_str()).collect(),
        Output::Groups(groups) => groups.columns.iter().map(|(name, _)| name.as_str()).collect(),
        Output::Infer(_) => Vec::new(),
    }
}

#[test]
fn all_examples_but_two_can_be_asked() {
    let text = include_str!("examples.txt");
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('{')) {
        let found = bound(line);
        let refused = line.contains("id, metadata.id") || line.ends_with("count(1) > 1");
        assert_eq!(found.is_err(), refused, "{}: {line}: {found:?}", number + 1);
    }
}

#[test]
fn columns_have_the_names_that_clients_expect() {
    for (text, expected) in [
        ("SELECT id, metadata.user_id, input.messages[0].content FROM $L", &["id", "user_id", "content"][..]),
        (
            "SELECT count(*), avg(scores.Factuality), sum(metrics.tokens) / count(1) AS x FROM $L",
            &["count(*)", "avg(scores.Factuality)", "x"],
        ),
        ("SELECT name FROM $L", &["name"]),
        ("select: lower(metadata.model) | from: $L", &["lower(metadata.model)"]),
        ("dimensions: metadata.model | measures: count(1) as n | from: $L", &["model", "n"]),
    ] {
        assert_eq!(columns(&bound(text).expect(text)), expected, "{text}");
    }
}

#[test]
fn names_are_found_in_the_order_of_their_rules() {
    let only = |text: &str| match bound(text).expect(text).output {
        Output::Rows { columns, .. } => columns[0].1.clone(),
        other => panic!("{text}: {other:?}"),
    };
    let field = |column: &'static str, keys: &[&str]| {
        BoundExpr::Field(
            Field::Column(column),
            keys.iter().map(|key| assay_node_btql::ast::Step::Key((*key).into())).collect(),
        )
    };
    for (name, expected) in [
        ("ID", field("id", &[])),
        ("Name", field("span_attributes", &["name"])),
        ("model", field("metadata", &["model"])),
        ("prompt_tokens", field("metrics", &["prompt_tokens"])),
        ("`My score`", field("scores", &["My score"])),
        ("metadata.Model", field("metadata", &["Model"])),
        ("\"input\"", field("input", &[])),
    ] {
        assert_eq!(only(&format!("SELECT {name} AS it FROM $L")), expected, "{name}");
    }
    let scores = bound("SELECT id FROM $L WHERE \"My score\" IS NOT NULL").expect("a score");
    assert!(format!("{:?}", scores.filter).contains("My score"), "{:?}", scores.filter);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (text, expected) in [
        ("SELECT id FROM $L WHERE count(1) > 1", "line 1, column 41: an aggregate has no place in a filter"),
        ("SELECT id, metadata.id FROM $L", "two columns are named `id`"),
        ("SELECT id, count(1) FROM $L", "line 1, column 8: this is neither grouped by nor aggregated: `id`"),
        ("SELECT nope(id) FROM $L", "there is no function `nope`"),
        ("SELECT date_truc('day', created) FROM $L", "there is no function `date_truc`"),
        ("SELECT lower(id, 2) FROM $L", "lower takes 1 arguments and not 2"),
        ("SELECT id FROM spans('x')", "there is no source `spans`"),
        ("from: $L", "the query asks for nothing"),
        ("select: id | from: project_logs", "project_logs needs to know which"),
        ("SELECT id FROM $L WHERE created > 'yesterday'", "`yesterday` is no time"),
        ("SELECT id FROM $L ORDER BY created OFFSET 'aPuWzSlJAAM'", "this query has no pages"),
        ("SELECT id FROM $L ORDER BY 2", "there are 1 columns, counted from 1"),
        ("SELECT id FROM $L HAVING id = 'a'", "HAVING (final_filter) is about groups"),
        ("SELECT percentile(metrics.tokens, 2) FROM $L", "percentile takes a number between 0 and 1"),
        ("SELECT id FROM $T WHERE filter_spans(is_root) OR is_root", "filter_spans stands alone or is joined"),
        ("SELECT id FROM prompt('x', shape => 'traces')", "prompt has no spans"),
        ("SELECT created * 2 FROM $L", "times and intervals are added and subtracted only"),
        ("SELECT date_trunc('2 weeks', created) FROM $L", "date_trunc takes one of"),
        ("SELECT id FROM $L WHERE id ~ '(a'", "line 1, column 46: this is not a valid pattern: unclosed group"),
        ("select: id | where: is_root | filter: is_root | from: $L", "filter and where are one clause"),
        ("select: id | dimensions: id | from: $L", "beside select, dimensions are positions in it"),
        (
            "SELECT n FROM $L GROUP BY id PIVOT (count(1) AS n FOR type IN (ANY))",
            "line 1, column 43: the select of a PIVOT",
        ),
        ("select: v | from: $S | unpivot: tags as (v) | filter: any_span(v = 'a')", "exist only after it"),
        ("infer: * | from: $L | sort: created", "rows of infer have name, type, count and top_values"),
        ("SELECT id FROM $T ORDER BY _pagination_key OFFSET 'aPuWzSlJAAM'", "this query has no pages"),
    ] {
        let error = bound(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn an_audit_names_its_rows() {
    let audit = |text: &str| {
        let query = parse_text(text).expect(text);
        bind(&query, &Env { audit_log: true, text: Some(text), ..Env::default() })
    };
    assert!(audit("SELECT _xact_id FROM project_logs('P1') WHERE id IN ('a', 'b')").is_ok());
    assert!(audit("SELECT _xact_id FROM project_prompts('P1')").is_ok());
    assert!(audit("SELECT n FROM (SELECT _xact_id AS n FROM project_logs('P1') WHERE id = 'a')").is_ok());
    for (text, expected) in [
        ("SELECT _xact_id FROM project_logs('P1') WHERE created > now()", "filter by id"),
        ("SELECT n FROM (SELECT id AS n FROM project_logs('P1')) WHERE n = 'a'", "filter by id"),
        ("SELECT _xact_id FROM project_logs('P1', shape => 'summary') WHERE id = 'a'", "of shape spans"),
    ] {
        let error = audit(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn what_was_written_comes_newest_first() {
    let order = |text: &str, audit_log| {
        let bound = bind(&parse_text(text).expect(text), &Env { audit_log, ..Env::default() }).expect(text);
        assert_eq!(bound.audit_log, audit_log);
        match bound.output {
            Output::Rows { order, .. } => order,
            other => panic!("{other:?}"),
        }
    };
    let text = "SELECT _xact_id FROM project_logs('P1') WHERE id = 'a'";
    assert_eq!(order(text, true), Order::Key { by: Key::Xact, descending: true });
    assert_eq!(order(text, false), Order::Key { by: Key::Pagination, descending: true });
    let by_key = format!("{text} ORDER BY _pagination_key");
    assert_eq!(order(&by_key, true), Order::Key { by: Key::Pagination, descending: false });
}

#[test]
fn what_a_filter_leaves_is_known() {
    let bounds = |filter: &str| bound(&format!("SELECT id FROM $L WHERE {filter}")).expect(filter).bounds;
    let found = bounds("created >= '2026-05-05' AND '2026-05-06' > created AND root_span_id IN ('a', 'b')");
    assert_eq!(found.created.from, Some(1_777_939_200_000_000));
    assert_eq!(found.created.to, Some(1_778_025_600_000_000));
    assert_eq!(found.root_span_ids, Some(vec!["a".into(), "b".into()]));
    assert_eq!(bounds("id = 'a' OR id = 'b'").ids, Some(vec!["a".into(), "b".into()]));
    assert_eq!(bounds("id = 'a' OR is_root"), Default::default());
    assert_eq!(
        bounds("_xact_id > 5 AND _xact_id <= '7'").xact,
        assay_node_btql::bound::Range { from: Some(5), to: Some(7) }
    );
    let notes = |text: &str| bound(text).expect(text).notes.into_iter().map(|note| note.code).collect::<Vec<_>>();
    assert_eq!(notes("SELECT id FROM $L"), ["missingSegmentEliminationSpecs"]);
    assert_eq!(notes("SELECT id FROM $L WHERE root_span_id = 'a1'"), [""; 0]);
    assert_eq!(notes("SELECT id, no_such_column FROM $L WHERE id = 'a' OR is_root"), ["unknownField"]);
}

#[test]
fn a_query_of_nothing_is_refused_in_every_form() {
    for nothing in [json!(""), json!(" "), json!({}), json!({"select": null}), json!({"select": [], "other": 1})] {
        let error = parse(&nothing).expect_err("nothing is asked");
        assert!(error.to_string().contains("the query is empty"), "{nothing}: {error}");
    }
}

#[test]
fn a_source_has_a_name_that_every_form_can_say() {
    for text in ["SELECT id FROM IN ('a', 'b')", "select: id | from: `a b`('x')", "from: not('x')"] {
        let error = parse_text(text).expect_err("no source");
        assert!(error.to_string().contains("there is no source `"), "{text}: {error}");
    }
}
