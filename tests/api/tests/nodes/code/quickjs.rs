//! Code for the runtime `quickjs`, which has neither files nor a network, and inline JavaScript on nodes without Node.js.

use serde_json::{Value, json};

use super::{CodeNode, inline, javascript, with};

/// Settings of a node whose functions end soon, but not while a busy machine still starts their process.
const SHORT: [&str; 2] = ["functions.seconds_max=12", "functions.memory_bytes_max=268435456"];
/// Setting of a node without Node.js.
const WITHOUT_NODE: &str = "functions.node=[\"/nonexistent/node\"]";

fn quickjs(code: &str, input: Value) -> Value {
    inline("quickjs", "ES2023", code, input)
}

#[test]
fn quickjs_runs_code_without_files_and_network() {
    let trial = quickjs("const handler = () => 1", json!(null));
    let Some(node) = CodeNode::start_for("quickjs", &SHORT, &[trial]) else { return };
    values(&node);
    errors(&node);
    no_world(&node);
    limits(&node);
    assert_eq!(node.value(&quickjs("const handler = () => 1", json!(null))), json!(1), "the node goes on");
}

fn values(node: &CodeNode) {
    for (code, input, value) in [
        ("const handler = ({a, b}) => a + b", json!({"a": 1, "b": 2}), json!(3)),
        ("async function handler(input) { await null; return input }", json!([1, null, "é"]), json!([1, null, "é"])),
        ("function handler({text}: {text: string}): number { return text.length }", json!({"text": "four"}), json!(4)),
        ("function handler() {}", json!(null), json!(null)),
    ] {
        assert_eq!(node.value(&quickjs(code, input)), value, "{code}");
    }
    let code = "const handler = ({input, expected}) => ({score: expected === null ? 1 : 0, metadata: {input}})";
    let body = with(quickjs(code, json!({"input": "i"})), json!({"function_type": "scorer"}));
    assert_eq!(node.value(&body), json!({"score": 1, "metadata": {"input": "i"}}));
    let code = "const handler = () => { console.log('line'); console.error('other'); return 1 }";
    let text = node.exchange(&with(quickjs(code, json!(null)), json!({"stream": true}))).text();
    for line in [
        "event: console\ndata: {\"stream\":\"stdout\",\"message\":\"line\"}\n",
        "event: console\ndata: {\"stream\":\"stderr\",\"message\":\"other\"}\n",
        "event: json_delta\ndata: 1\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let code = "let calls = 0; const handler = () => ++calls";
    for _ in 0..2 {
        assert_eq!(node.value(&quickjs(code, json!(null))), json!(1), "nothing passes from one call to the next");
    }
}

fn errors(node: &CodeNode) {
    let failure = node.failure(&quickjs("\nfunction handler() {\n  throw new TypeError('bad input')\n}", json!(1)));
    assert_eq!((&failure["Message"], &failure["FunctionError"]["name"]), (&json!("bad input"), &json!("TypeError")));
    let stack = failure["FunctionError"]["stack"].as_str().expect("a stack");
    assert!(stack.contains("handler.js:3"), "{stack}");
    for (code, words) in [
        ("const other = 1", "handler is not defined"),
        ("function handler( {", "line 1"),
        ("import fs from 'fs';\nexport const handler = () => 1", "no modules"),
        ("const handler = () => new Promise(() => {})", "never settled"),
    ] {
        let failure = node.failure(&quickjs(code, json!(1)));
        let message = failure["Message"].as_str().unwrap_or_default();
        assert!(message.contains(words), "{message}");
    }
    let bundle = json!({"function_data": {"type": "code", "data": {"type": "bundle", "bundle_id": "b",
        "runtime_context": {"runtime": "quickjs", "version": "ES2023"}, "location": {"type": "function", "index": 0}}}});
    let (status, refused) = node.invoke(&json!({"inline_function": bundle["function_data"], "input": 1}));
    assert_eq!(status, 400, "{refused}");
}

fn no_world(node: &CodeNode) {
    let code = "const handler = () => ['fetch', 'require', 'process', 'setTimeout', 'WebSocket', 'std', 'os', 'Deno']\
        .filter((name) => typeof globalThis[name] !== 'undefined')";
    assert_eq!(node.value(&quickjs(code, json!(null))), json!([]));
    let code =
        "const handler = async () => { try { await import('fs'); return 'imported' } catch { return 'refused' } }";
    assert_eq!(node.value(&quickjs(code, json!(null))), json!("refused"));
}

fn limits(node: &CodeNode) {
    for (code, words) in [
        ("const handler = () => { for (;;); }", "more than 12 seconds"),
        ("const handler = () => { const all = []; for (;;) all.push(new Uint8Array(1 << 20)) }", "memory"),
        ("const handler = () => 'x'.repeat(17 << 20)", "at most"),
    ] {
        let failure = node.failure(&quickjs(code, json!(null)));
        let message = failure["Message"].as_str().unwrap_or_default();
        assert!(message.contains(words), "{message}\n{code}");
    }
}

#[test]
fn inline_javascript_runs_in_quickjs_without_node_if_a_setting_says_so() {
    let trial = quickjs("const handler = () => 1", json!(null));
    let code = "const handler = ({a}: {a: number}) => [a + 1, typeof process]";
    let body = javascript(code, json!({"a": 1}));
    let Some(without) = CodeNode::start_for("quickjs for node", &[WITHOUT_NODE], std::slice::from_ref(&trial)) else {
        return;
    };
    let (status, refused) = without.invoke(&body);
    assert_eq!(status, 400, "{refused}");
    assert!(refused["Message"].as_str().is_some_and(|why| why.contains("no node")), "{refused}");
    let settings = [WITHOUT_NODE, "functions.quickjs_for_node=true"];
    let Some(with_setting) = CodeNode::start_for("quickjs for node", &settings, &[trial]) else { return };
    assert_eq!(with_setting.value(&body), json!([2, "undefined"]));
    for code in
        ["import fs from 'fs';\nexport const handler = () => 1", "const fs = require('fs'); const handler = () => 1"]
    {
        let (status, refused) = with_setting.invoke(&javascript(code, json!(1)));
        assert_eq!(status, 400, "{refused}");
    }
}
