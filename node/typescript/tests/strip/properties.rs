//! Properties that hold for all code.

use assay_node_typescript::strip;
use proptest::prelude::*;

use super::constructs::{CLASSES, DECLARATIONS, EXPRESSIONS, FUNCTIONS};
use super::hazards::HAZARDS;
use super::marked::Marked;

/// Expressions without types.
fn javascript_expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "[a-d]",
        "[0-9]{1,3}",
        Just("\"text: number\"".to_owned()),
        Just("`a${b}c`".to_owned()),
        Just("/a|b/".to_owned()),
        Just("this".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} + {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) < {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("f({a}, {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}, ...{b}]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({{ x: {a}, [{b}]: 1 }})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("((x = {a}) => {b})")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("(({a}) ? {b} : {c})")),
            inner.clone().prop_map(|a| format!("(class {{ static x = {a}; get y() {{ return 1 }} }})")),
            inner.prop_map(|a| format!("(async function () {{ await {a} }})")),
        ]
    })
}

fn javascript() -> impl Strategy<Value = String> {
    let statement = javascript_expression().prop_flat_map(|a| {
        prop_oneof![
            Just(format!("({a});")),
            Just(format!("let x = {a}\n")),
            Just(format!("if ({a}) {{ f() }} else g();")),
            Just(format!("for (const x of [{a}]) f(x);")),
            Just(format!("function type(a, b = {a}) {{ return {a}; }}")),
        ]
    });
    prop::collection::vec(statement, 1..5).prop_map(|statements| statements.join("\n"))
}

/// Code with types: some of the cases of the other tests, one after the other.
fn typescript() -> impl Strategy<Value = String> {
    let cases: Vec<String> = [DECLARATIONS, FUNCTIONS, EXPRESSIONS, CLASSES, HAZARDS]
        .concat()
        .iter()
        .map(|case| Marked::new(case).source)
        .collect();
    prop::collection::vec(prop::sample::select(cases), 1..6).prop_map(|cases| cases.join(";\n"))
}

fn columns(text: &str) -> Vec<usize> {
    text.split('\n').map(|line| line.encode_utf16().count()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn javascript_is_not_changed(code in javascript()) {
        prop_assert_eq!(strip(&code).map(|stripped| stripped.text), Ok(code));
    }

    #[test]
    fn lines_and_columns_stay(code in typescript()) {
        let stripped = strip(&code);
        prop_assert_eq!(stripped.map(|stripped| columns(&stripped.text)), Ok(columns(&code)));
    }

    #[test]
    fn a_second_time_changes_nothing(code in typescript()) {
        let once = strip(&code);
        let twice = once.as_ref().map_err(Clone::clone).and_then(|stripped| strip(&stripped.text));
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn arbitrary_text_is_stripped_or_refused(code in "[a-z<>(){}\\[\\]:;,.?!=|&`'\"$@# \n/\\\\é\u{1f600}-]{0,40}") {
        if let Ok(stripped) = strip(&code) {
            prop_assert_eq!(columns(&stripped.text), columns(&code));
        }
    }
}
