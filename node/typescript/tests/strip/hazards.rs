//! Types whose removal would join lines or statements.

use assay_node_typescript::strip;

use super::marked::check;

pub const HAZARDS: &[&str] = &[
    "foo\n«;|type x = 1;»\n(1);",
    "foo\n«;|type y = 1;»\n``;",
    "foo\n«;|interface I {}»\n[1].f();",
    "foo\n«;|declare class C {}»\n(1);",
    "foo\n«;|declare function f(): void»\n(1);",
    "foo\n«;|declare enum E {}»\n/x/.test(y);",
    "foo\n«interface I {}»\nbar",
    "let y = foo «;|as string»/* c */\n(1);",
    "foo «;|satisfies string»\n[0].x();",
    "foo «as string»\n+ \"\";",
    "let x«: number»\n;[1].f()",
    "let x«;|: number»\n(1);",
    "function f() { return x «;|as any»\n[0].f() }",
    "class A {\n  f = 1 «;|as number»\n  [\"m\"]() {}\n}",
    "class A {\n  f = 2\n  «;|public» [\"m\"]() {}\n}",
    "class A {\n  f = 2\n  «;|private» *m() {}\n}",
    "class A {\n  f = 2\n  static «readonly» [\"m\"] = 1\n}",
    "class A {\n  get«;|: string»\n  foo() {}\n}",
    "class A {\n  static«;|: string»\n  foo«: number»\n}",
    "class A {\n  f = 1\n  «;|declare g: number»\n  [\"m\"]() {}\n}",
    "const f = («)»\n«)|: number» => 1;",
    "const f = («)»«)|: A<\n  number\n>»=> 1;",
    "const f = (a«: number»«)»«)|:\n  number» => a;",
    "const f = async «(|<\n  T\n>»«(»v«: T») => v;",
    "function f() { return «(|<T\n>»«(»v«: T») => v }",
    "function f() { return «(|<T>»\n  «(»v«: T») => v }",
    "function f() { return «(|<\n  T\n>»«(»v«: T»«)»«)|: Promise<\n  T\n>» => v }",
    "[1].map((v«)»«)|: number[\n]»=>[v]);",
];

#[test]
fn removed_types_do_not_join_lines() {
    check(HAZARDS);
}

#[test]
fn a_directive_after_a_type_stays() {
    check(&["«interface I {}»\n\"use strict\"\nf()"]);
}

#[test]
fn a_type_in_characters_of_several_bytes_keeps_columns() {
    let stripped = strip("const f = (a: \"\u{1f4a5}é\"): \"\u{1f4a5}\" => a;");
    assert_eq!(stripped.map(|code| code.text), Ok("const f = (a       )       => a;".to_owned()));
}
