//! Errors: their positions, and what they tell to write instead.

use assay_node_typescript::{CodePosition, TypeScriptError, strip};

fn position(source: &str) -> (usize, usize) {
    let position = match strip(source).expect_err(source) {
        TypeScriptError::Syntax { position, .. }
        | TypeScriptError::Unsupported { position, .. }
        | TypeScriptError::Regrouped { position } => position,
        other => panic!("{source}: {other}"),
    };
    let CodePosition { line, column } = position;
    (line, column)
}

#[test]
fn syntax_with_an_effect_at_run_time_is_refused_with_an_alternative() {
    for (source, at, words) in [
        ("const x: number = 1;\n  enum E { A }", (2, 3), "`as const`"),
        ("const enum E { A }", (1, 1), "`as const`"),
        ("export enum E { A }", (1, 8), "`as const`"),
        ("namespace N { export const x = 1 }", (1, 1), "object"),
        ("namespace A.B { f() }", (1, 1), "object"),
        ("namespace N { export import X = Y.Z }", (1, 1), "object"),
        ("class A { constructor(private x: number) {} }", (1, 23), "constructor"),
        ("class A { constructor(readonly x = 1) {} }", (1, 23), "constructor"),
        ("import fs = require(\"fs\");", (1, 1), "require("),
        ("import X = Y.Z;", (1, 1), "const name"),
        ("export = 1;", (1, 1), "export default"),
        ("@sealed class A {}", (1, 1), "call a function"),
        ("x = @f(\"\u{1f4a5}\") class implements B {};", (1, 5), "call a function"),
        ("class A { @log m(x: number) {} }", (1, 11), "call a function"),
        ("class A { accessor x: number = 1; }", (1, 11), "getter"),
    ] {
        let error = strip(source).expect_err(source);
        assert!(matches!(error, TypeScriptError::Unsupported { .. }), "{source}: {error}");
        assert!(error.to_string().contains(words), "{source}: {error}");
        assert_eq!(position(source), at, "{source}");
    }
}

#[test]
fn jsx_is_refused_as_such() {
    for (source, at) in
        [("const x: any = <div>{1}</div>;", (1, 16)), ("const x =\n <></>;", (2, 2)), ("f(<A b={1} />)", (1, 3))]
    {
        assert!(strip(source).expect_err(source).to_string().contains("JSX"), "{source}");
        assert_eq!(position(source), at, "{source}");
    }
}

#[test]
fn syntax_errors_have_the_position_of_the_unexpected_token() {
    for (source, at) in [
        ("function handler( {", (1, 20)),
        ("const x: number = ;", (1, 19)),
        ("let a = 1;\nlet b = = 2;", (2, 9)),
        ("f(); }", (1, 6)),
        ("if (x) type A = 1;", (1, 8)),
        ("x = 1 + 1 as number / 2;", (1, 20)),
        ("x = a ?? b as any || c;", (1, 5)),
        ("const s = \"abc\n", (1, 11)),
        ("type A = ;", (1, 10)),
    ] {
        let error = strip(source).expect_err(source);
        assert!(matches!(error, TypeScriptError::Syntax { .. }), "{source}: {error}");
        assert_eq!(position(source), at, "{source}: {error}");
    }
}

#[test]
fn an_assertion_whose_removal_changes_the_meaning_is_refused() {
    for (source, column) in
        [("f = () => <any>{};", 11), ("<any>{ a: 1 };", 1), ("function f() { return <any>\n x }", 23)]
    {
        let error = strip(source).expect_err(source);
        assert!(matches!(error, TypeScriptError::Regrouped { .. }), "{source}: {error}");
        assert_eq!(position(source), (1, column), "{source}");
    }
}
