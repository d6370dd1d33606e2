//! Reading what was printed gives the same, whatever it is; and what is no query is an error, never a panic.

use crate::generated::{clauses, sql};
use assay_node_btql::{expression, in_clauses, in_sql, in_tree, parse, parse_expression, parse_text};
use proptest::prelude::*;

const CASES: u32 = 2_000;

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, max_shrink_iters: 5_000, ..ProptestConfig::default() })]

    #[test]
    fn expressions(expr in crate::generated::expression()) {
        let text = expression(&expr);
        let again = parse_expression(&text);
        prop_assert_eq!(again.as_ref(), Ok(&expr), "{}", text);
    }

    #[test]
    fn statements(query in sql()) {
        let text = in_sql(&query).expect("SQL can say it");
        let again = parse_text(&text);
        prop_assert_eq!(again.as_ref(), Ok(&query), "{}", text);
    }

    #[test]
    fn clauses_and_trees(query in clauses()) {
        let text = in_clauses(&query).expect("clauses can say it");
        let tree = in_tree(&query).expect("a tree can say it");
        let again = [parse(&tree).map(|parsed| parsed.query), parse_text(&text)];
        if text.is_empty() {
            prop_assert!(again.iter().all(Result::is_err), "a query of nothing");
        } else {
            prop_assert_eq!(again, [Ok(query.clone()), Ok(query)], "{} {}", text, tree);
        }
    }

    #[test]
    fn words_of_the_language_as_names(
        word in prop::sample::select(&["interval", "date", "Timestamp", "exists", "extract", "distinct", "cast", "limit", "from", "not"][..]),
        behind in prop::sample::select(&["", " + 1", ".a", "[0]", " = 'x'", "(a)", "('2026-01-01')"][..]),
    ) {
        let text = format!("{word}{behind}");
        if let Ok(expr) = parse_expression(&text) {
            let said = expression(&expr);
            prop_assert_eq!(parse_expression(&said), Ok(expr), "{}", said);
            // SQL would begin another clause with some of them.
            let Ok(query) = parse_text(&format!("select: {text}")) else { return Ok(()) };
            let tree = in_tree(&query).expect("a tree can say it");
            prop_assert_eq!(parse(&tree).map(|parsed| parsed.query), Ok(query), "{}", tree);
        }
    }

    #[test]
    fn what_is_broken_is_refused_and_nothing_panics(query in sql(), cut in any::<prop::sample::Index>(), with in "\\PC{0,3}") {
        let text = in_sql(&query).expect("SQL can say it");
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let at = *cut.get(&places);
        for broken in [text[..at].to_owned(), format!("{}{with}{}", &text[..at], &text[at..])] {
            let _ = parse_text(&broken);
            let _ = parse_expression(&broken);
        }
    }
}
