//! Imports and exports, and whether code is a module.

use assay_node_typescript::strip;

use super::marked::check;

pub const MODULES: &[&str] = &[
    "«import type A from \"a\";»\n«import type { B } from \"b\";»\n«import type * as C from \"c\";»",
    "«import { type A, type B } from \"a\";»",
    "import { «type A,» b, «type C as D» } from \"a\";",
    "import d, { «type A» } from \"a\";",
    "import { type as as } from \"a\";",
    "import x from \"a\" with { type: \"json\" };\nlet y«: number»;",
    "import { UnusedAsAValue } from \"a\";\nlet y«: UnusedAsAValue»;",
    "import \"a\";\n«type A = 1»",
    "«export type A = 1;»\n«export interface B {}»\n«export declare const c: number;»",
    "«export type { A };»\n«export type { B } from \"b\";»\n«export type * from \"c\";»\n«export type * as d from \"d\";»",
    "«export { type A };»\n«export { type B } from \"b\";»",
    "const a = 1, c = 2;\nexport { a, «type B,» c };",
    "export const x«: number» = 1;",
    "export default function f(a«: number») {}",
    "«export default function f(a: string): void;»\nexport default function f(a«: any») {}",
    "export default class«<T>» {}",
    "export default «abstract» class A {}",
    "export «abstract» class A {}",
    "«export default interface I {}»",
    "export default x «as any»;",
    "export default «<T>»(x«: T») => x;",
    "«export as namespace N;»",
];

#[test]
fn imports_and_exports_of_types_vanish() {
    check(MODULES);
}

#[test]
fn imports_exports_and_top_level_await_make_a_module() {
    for (code, is_module) in [
        ("import a from \"a\";", true),
        ("export const x = 1;", true),
        ("const x: any = await f();", true),
        ("const x = await f();", true),
        ("for await (const x of y) {}", true),
        ("const u: string = import.meta.url;", true),
        ("function handler() {}", false),
        ("const m: any = import(\"m\");", false),
        ("async function f(x: any) { await x; }", false),
        ("import type A from \"a\"; let x: A;", false),
        ("import { type A } from \"a\";", false),
    ] {
        assert_eq!(strip(code).map(|stripped| stripped.is_module), Ok(is_module), "{code}");
    }
}
