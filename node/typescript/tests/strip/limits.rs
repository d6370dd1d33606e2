//! Bounds of length and nesting.

use assay_node_typescript::{SOURCE_BYTES_MAX, SYNTAX_UNITS_MAX, TypeScriptError, strip};

/// Shapes of code whose nesting grows with each repetition: prefix, repeated part, center, repeated end.
const SHAPES: &[(&str, &str, &str, &str)] = &[
    ("x = ", "(", "1", ")"),
    ("x = ", "[", "1", "]"),
    ("x = ", "{a:", "1", "}"),
    ("", "{", "", "}"),
    ("x = ", "!", "1", ""),
    ("x = ", "- ", "1", ""),
    ("x = ", "typeof ", "1", ""),
    ("x = ", "new ", "X", ""),
    ("x = ", "a => ", "1", ""),
    ("x = ", "(a) => ", "1", ""),
    ("x = ", "(a = ", "1", ") => 1"),
    ("x = ", "async (a) => ", "1", ""),
    ("", "a = ", "1", ""),
    ("x = ", "a ? b : ", "1", ""),
    ("x = 1", " + 1", "", ""),
    ("x = 2", " ** 2", "", ""),
    ("x = y", ".y", "", ""),
    ("x = y", "?.y", "", ""),
    ("x = y", "()", "", ""),
    ("x = y", "!", "", ""),
    ("x = y", " as T", "", ""),
    ("x = ", "<T>", "y", ""),
    ("x = ", "`${", "1", "}`"),
    ("", "if (a) ", "b", ""),
    ("", "if(a);else ", "b", ""),
    ("", "do ", "a", "; while (b)"),
    ("", "l: ", "a", ""),
    ("", "function f() {", "", "}"),
    ("x = ", "class extends ", "A", " {}"),
    ("x = ", "class { x = ", "1", " }"),
    ("let x: ", "A<", "B", ">"),
    ("let x: ", "(", "B", ")"),
    ("let x: ", "keyof ", "B", ""),
    ("let x: ", "{ a: ", "B", " }"),
    ("let x: B", "[]", "", ""),
    ("let x: B", " | C", "", ""),
    ("type X = ", "A extends B ? C : ", "D", ""),
    ("type X = ", "(a: any) => ", "D", ""),
    ("let {", "a: {", "b", "}"),
    ("namespace a", ".b", " {}", ""),
];

fn nested(shape: (&str, &str, &str, &str), depth: usize) -> String {
    let (prefix, open, center, close) = shape;
    format!("{prefix}{}{center}{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn code_above_the_length_limit_is_refused() {
    let longest = " ".repeat(SOURCE_BYTES_MAX);
    assert_eq!(strip(&longest).map(|stripped| stripped.text.len()), Ok(SOURCE_BYTES_MAX));
    assert_eq!(strip(&(longest + " ")), Err(TypeScriptError::TooLong { bytes: SOURCE_BYTES_MAX + 1 }));
}

#[test]
fn a_hundred_thousand_parentheses_are_refused() {
    let code = nested(("", "(", "1", ")"), 100_000);
    assert_eq!(strip(&code), Err(TypeScriptError::TooComplex { units: 100_000 }));
}

#[test]
fn the_deepest_nesting_of_every_kind_fits_the_stack() {
    for &shape in SHAPES {
        let outcome = strip(&nested(shape, deepest(shape)));
        assert!(
            !matches!(outcome, Err(TypeScriptError::TooComplex { .. } | TypeScriptError::TooLong { .. })),
            "{shape:?} is refused without being parsed"
        );
    }
}

/// Largest depth of a shape that the limits allow.
fn deepest(shape: (&str, &str, &str, &str)) -> usize {
    let (prefix, open, center, close) = shape;
    let by_bytes = (SOURCE_BYTES_MAX - prefix.len() - center.len()) / (open.len() + close.len());
    match strip(&nested(shape, by_bytes)) {
        Err(TypeScriptError::TooComplex { units }) => {
            let each = units / by_bytes;
            (SYNTAX_UNITS_MAX - (units - by_bytes * each)) / each
        }
        _ => by_bytes,
    }
}

#[test]
fn a_large_table_of_data_is_accepted() {
    let row = r#"{"name": "a name", "text": "some text (with brackets)", "score": 0.25},"#;
    let code = format!("const rows: any[] = [{}];", row.repeat(10_000));
    assert!(strip(&code).is_ok());
}
