//! Every syntactic form of types, each with what remains of it.

use super::marked::check;

pub const DECLARATIONS: &[&str] = &[
    "let x«: number» = 1;",
    "let a«: string», b«: Array<{ x: [number, ...string[]] }>» = [];",
    "let x«!»«: number»; x = 1;",
    "var f«: (a: number, ...rest: string[]) => void»;",
    "const { a, b: { c } }«: { a: number; b: { c: string } }» = y;",
    "const [a, b = 2]«: [number, number?]» = y;",
    "for (const x of y «as string[]») {}",
    "for (let i«: number» = 0; i < 3; i++) {}",
    "try {} catch (e«: unknown») {}",
    "«type A = string;»",
    "«type A<T extends object = {}> = { [K in keyof T]?: T[K] };»",
    "«type F = new (...args: any[]) => T extends (infer U extends object)[] ? U : void;»",
    "«interface A<T> extends B<T>, C { (x: T): void; new (x: T): A<T>; readonly [key: string]: T; m?(): void }»",
    "«declare const x: number;»",
    "«declare let x: number, y: string;»",
    "«declare function f(x: number): void;»",
    "«declare class A { x: number; m(): void }»",
    "«declare enum E { A, B }»",
    "«declare namespace N { const x: number }»",
    "«declare module \"m\" { export const x: number }»",
    "«declare global { interface Window { x: number } }»\nexport {};",
    "«namespace N { export type A = 1; interface B {} }»",
    "«namespace A.B.C {}»",
    "{ «type T = 1;» f(); }",
    "switch (x) { case 1: «type T = 1;» f(); }",
    "label: {«interface I {}»}",
];

pub const FUNCTIONS: &[&str] = &[
    "function f«<T>»(a«: T», b«?»«: number», c«: string» = \"\", ...d«: T[]»)«: T» { return a; }",
    "function f«<const T extends readonly unknown[], U = T>»(a«: T», b«: U») {}",
    "«function f(a: string): void;»\n«function f(a: number): void;»\nfunction f(a«: any») {}",
    "function f(«this: Window,» a«: number») {}",
    "function f(«this: Window») {}",
    "function f(«this: Window,») {}",
    "function is(x«: unknown»)«: x is string» { return true; }",
    "function check(x«: unknown»)«: asserts x is string» {}",
    "function check(x«: unknown»)«: asserts x» {}",
    "function f({ a, b }«: { a: number; b: string }», [c]«: [number]») {}",
    "function f(a«?»«: number») {}",
    "async function f()«: Promise<void>» {}",
    "function* f()«: Generator<number>» { yield 1 «as number»; }",
    "async function* f()«: AsyncGenerator<number>» {}",
    "const f = function«<T>»(a«: T»)«: T» { return a; };",
    "const f = «<T>»(a«: T»)«: T» => a;",
    "const f = «<T,>»(a«: T») => a;",
    "const f = async «<T>»(a«: T»)«: Promise<T>» => a;",
    "const f = async (a«: number») => a;",
    "const f = (a«?»«: number», b«: string» = \"\") => a;",
    "const f = (a)«: a is string» => true;",
    "const f = ()«: { a: number }» => ({ a: 1 });",
    "const f = ()«: (void)» => {};",
    "const f = ({ a }«: { a: number }») => a;",
    "[1].map((x)«: number» => x).filter((x)«: x is 1» => x === 1);",
    "const o = { m«<T>»(a«: T»)«: T» { return a; }, get x()«: number» { return 1; }, set x(v«: number») {} };",
    "const o = { async m()«: Promise<void>» {}, *g()«: any» {}, [k]()«: void» {} };",
];

pub const EXPRESSIONS: &[&str] = &[
    "const x = y «as string»;",
    "const x = y «as const»;",
    "const x = y «as unknown» «as string[]»;",
    "const x = { a: 1 } «satisfies Record<string, number>»;",
    "const x = y /* kept */ «as /* gone */ string» /* kept */;",
    "const x = «<string>»y; f(«<any>»a.b);",
    "f(x«!», y«!».z«!».w, z«!»[0]«!», g()«!»);",
    "a?.b«!».c; a?.[0]«!».c; a?.b«!»(); (a?.b)«!».c;",
    "x«!»++; x«!» = 1; (x «as any») = 1; (x «as any»).y += 1;",
    "[x «as any», y] = [1, 2]; ({ a: x «as any» } = y);",
    "const y = x«!» «as number»;",
    "f«<string>»(x);\n«type T = 1»",
    "new Map«<string, number[]>»();",
    "new Foo«<string>»;",
    "f?.«<string>»(x); a.b«<T>»();\n«type T = 1»",
    "tag«<string>»`a${1 «as number»}b`;\n«type T = 1»",
    "const g = f«<string>»;",
    "const x = f«<typeof import(\"m\")>»(y);\n«type T = 1»",
    "const x = f«<`a${string}`>»(y);\n«type T = 1»",
    "if (a «as boolean») b(); else c(d «as any»);",
    "const x = a ? b «as any» : c «as any»;",
    "const f = () => x «as any»;",
    "const f = (a«?»«: any») => a ? (b) : c => d;",
    "const x = await (y «as Promise<any>»);",
    "const x = typeof (y «as any») === \"string\" && (z «as any») in w;",
    "const x = a && b «as any» || c;",
    "const x = a < b «as any»;",
    "const x = 1 * 1 «as number» + 2;",
    "const x = 1 «as number» * 1 + 2;",
    "const x = (1 + 1 «as number») * 2;",
    "const { [k «as string»]: v = w «as any» } = o «as any»;",
    "const x = (y «satisfies any»)[0];",
    "throw new Error(\"x\") «as any»;",
    "delete (x «as any»).y;",
    "const x = `${(a «as any»).b}${c«!»}`;",
    "const x = /a:b/u.test(s«!») / 2;",
    "const x = (function («this: any») {}).call(1);",
];

pub const CLASSES: &[&str] = &[
    "class A«<T>» extends B«<T>» «implements C<T>, D» {}",
    "class A «implements C» {}",
    "const A = class «implements C» {};",
    "const A = class«<T>» extends (B «as any»)«<T>» {};",
    "«abstract» class A { «abstract x: number;» «abstract m(): void;» «abstract get y(): number;» z() {} }",
    "class A { x«: number» = 1; y«?»«: string»; z«!»«: boolean»; #p«: number» = 1; static s«: number» = 1; }",
    "class A { «public» a«: number»; «private» b = 1; «protected» «readonly» c = 2; static «readonly» d = 3; }",
    "class A { «private» static «override» «readonly» x«: number» = 1; }",
    "class A extends B { «override» m()«: void» {} «public» async n() {} «protected» get x() { return 1; } }",
    "class A { «declare x: number;» y = 1; }",
    "class A { «[key: string]: number;» «static [key: string]: number;» «readonly [key: string]: number;» }",
    "class A { m«?»«<T>»(a«: T»)«: void» {} }",
    "class A { «m(a: string): void;» «m(a: number): void;» m(a«: any») {} }",
    "class A { «constructor(a: string);» constructor(a«: any») {} }",
    "class A { get x()«: number» { return 1; } set x(v«: number») {} static get y()«: any» { return 1; } }",
    "class A { \"quoted\"«?»«: number»; 1«: number»; [Symbol.iterator]«: any»; [k]«!»«: number»; }",
    "class A { static { let x«: number» = 1; } }",
    "class A { m(«this: A»)«: this is B» { return true; } }",
    "class A { readonly = 1; declare = 2; abstract = 3; public() {} private() {} }",
    "class A { «readonly» readonly«: number» = 1; «declare declare: number;» «public» static«: number»; }",
    "class A { handler = async (a«: number»)«: Promise<void>» => {}; }",
    "class A { «private» async *[Symbol.asyncIterator]()«: any» {} }",
    "class A { «public» constructor(a«: number») {} }",
];

#[test]
fn types_of_declarations_vanish() {
    check(DECLARATIONS);
}

#[test]
fn types_of_functions_vanish() {
    check(FUNCTIONS);
}

#[test]
fn types_in_expressions_vanish() {
    check(EXPRESSIONS);
}

#[test]
fn types_of_classes_vanish() {
    check(CLASSES);
}
