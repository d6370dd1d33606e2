//! Inline code of both languages: arguments, values, errors, console, and the API on behalf of the caller.

use assay_test_api::rows::call;
use serde_json::{Value, json};

use super::{CodeNode, javascript, python, with};

fn scorer() -> Value {
    json!({"function_type": "scorer"})
}

#[test]
fn inline_code_runs_in_both_languages() {
    let Some(node) = CodeNode::start("inline code", &[]) else { return };
    values(&node);
    scores(&node);
    errors(&node);
    events(&node);
    modules_and_types(&node);
    api_of_the_caller(&node);
    clients_of_a_module(&node);
    variables(&node);
    stored_functions_with_schemas(&node);
    traces(&node);
    calls_within_calls(&node);
    functions_of_a_playground(&node);
}

fn values(node: &CodeNode) {
    for (code, input, value) in [
        ("const handler = ({a, b}) => a + b", json!({"a": 1, "b": 2}), json!(3)),
        ("async function handler(input) { await null; return input }", json!([1, null, "é"]), json!([1, null, "é"])),
        ("function handler() {}", json!(null), json!(null)),
        ("const handler = () => '0.45'", json!(null), json!("0.45")),
    ] {
        assert_eq!(node.value(&javascript(code, input)), value, "{code}");
    }
    for (code, input, value) in [
        ("def handler(a, b=2):\n    return a + b", json!({"a": 1, "unknown": 5}), json!(3)),
        ("async def handler(**all):\n    return all", json!({"x": "é"}), json!({"x": "é"})),
        ("def handler(value):\n    return value", json!([1, 2]), json!([1, 2])),
        ("def handler():\n    pass", json!({}), json!(null)),
        (
            "class S:\n    def __call__(self, output):\n        return output\nhandler = S()",
            json!({"output": 1}),
            json!(1),
        ),
    ] {
        assert_eq!(node.value(&python(code, input)), value, "{code}");
    }
}

/// Forms of a scorer's result (functions.md 7.1), and malformed ones, which a direct invocation answers as they are.
fn scores(node: &CodeNode) {
    let forms = [
        ("0.5", json!(0.5)),
        ("true", json!(true)),
        ("null", json!(null)),
        ("({name: 'n', score: 1, metadata: {a: 1}})", json!({"name": "n", "score": 1, "metadata": {"a": 1}})),
        (
            "[{name: 'a', score: 0}, {name: 'b', score: 1}]",
            json!([{"name": "a", "score": 0}, {"name": "b", "score": 1}]),
        ),
        ("'high'", json!("high")),
        ("({score: 'x'})", json!({"score": "x"})),
    ];
    for (text, value) in forms {
        let body = with(javascript(&format!("const handler = () => {text}"), json!({})), scorer());
        assert_eq!(node.value(&body), value, "{text}");
    }
    for text in ["3", "-0.1"] {
        let body = with(javascript(&format!("const handler = () => {text}"), json!({})), scorer());
        let failure = node.failure(&body);
        assert!(failure["Message"].as_str().is_some_and(|why| why.contains("between 0 and 1")), "{failure}");
    }
    for text in ["NaN", "({score: Infinity})", "10n", "(() => { const a = []; a.push(a); return a })()"] {
        node.failure(&with(javascript(&format!("const handler = () => {text}"), json!({})), scorer()));
    }
    // All arguments are there, and those that were not sent are null.
    let code = "const handler = (all) => JSON.stringify([all.input, all.output, all.expected === null, all.metadata])";
    let body = with(javascript(code, json!({"input": "i", "output": "o"})), scorer());
    assert_eq!(node.value(&body), json!(r#"["i","o",true,null]"#));
    let body = with(
        python(
            "def handler(input, output, expected, metadata):\n    return [input, output, expected, metadata]",
            json!({"output": 1}),
        ),
        json!({"function_type": "scorer", "expected": 2}),
    );
    assert_eq!(node.value(&body), json!([null, 1, 2, null]));
}

fn errors(node: &CodeNode) {
    let failure = node.failure(&javascript("\nfunction handler() {\n  throw new TypeError('bad input')\n}", json!(1)));
    assert_eq!(failure["Message"], "bad input");
    assert_eq!(failure["FunctionError"]["name"], "TypeError");
    let stack = failure["FunctionError"]["stack"].as_str().expect("a stack");
    assert!(stack.contains(":3:") && !stack.contains("worker"), "{stack}");
    let failure = node.failure(&python("def handler():\n    raise ValueError('bad input')", json!({})));
    assert_eq!(failure["FunctionError"]["name"], "ValueError");
    let stack = failure["FunctionError"]["stack"].as_str().expect("a stack");
    assert!(stack.contains("line 2") && !stack.contains("worker"), "{stack}");
    for (body, words) in [
        (javascript("const other = 1", json!(1)), "handler is not defined"),
        (python("other = 1", json!({})), "'handler' is not defined"),
        (javascript("function handler( {", json!(1)), "line 1"),
        (javascript("enum A { B }\nconst handler = () => A.B", json!(1)), "as const"),
        (python("def handler(:", json!({})), "invalid syntax"),
        (javascript("const handler = () => process.exit(3)", json!(1)), "code 3"),
        (python("import os\ndef handler():\n    os._exit(4)", json!({})), "ended its process"),
        (javascript("const handler = () => new Promise(() => {})", json!(1)), "never finished"),
        (python("import missing_package\ndef handler():\n    pass", json!({})), "missing_package"),
    ] {
        let failure = node.failure(&body);
        let message = failure["Message"].as_str().unwrap_or_default();
        assert!(message.contains(words), "{message}");
    }
    let (status, refused) = node.invoke(&super::inline("browser", "1", "x", json!(1)));
    assert_eq!(status, 400, "{refused}");
    // The node goes on.
    assert_eq!(node.value(&javascript("const handler = () => 1", json!(1))), json!(1));
}

fn events(node: &CodeNode) {
    let body = with(
        javascript("const handler = () => { console.log('a\\nb'); console.error('c'); return 1 }", json!(1)),
        json!({"stream": true}),
    );
    let text = node.exchange(&body).text();
    for line in [
        "event: start\ndata: \n",
        "event: console\ndata: {\"stream\":\"stdout\",\"message\":\"a\"}\n",
        "event: console\ndata: {\"stream\":\"stdout\",\"message\":\"b\"}\n",
        "event: console\ndata: {\"stream\":\"stderr\",\"message\":\"c\"}\n",
        "event: json_delta\ndata: 1\n",
        "event: done\ndata: \n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

fn modules_and_types(node: &CodeNode) {
    let code = "import { createHash } from 'node:crypto';\nimport type { X } from 'nowhere';\n\
        interface Input { text: string }\n\
        export const handler = async ({ text }: Input): Promise<string> => createHash('sha256').update(text as string).digest('hex').slice(0, 8);";
    assert_eq!(node.value(&javascript(code, json!({"text": "abc"}))), json!("ba7816bf"));
    let code = "const fs = require('fs');\nconst handler = () => typeof fs.readFileSync";
    assert_eq!(node.value(&javascript(code, json!(1))), json!("function"));
}

/// The credential of an invocation calls the API as the caller, does not administer, and ends with the call.
fn api_of_the_caller(node: &CodeNode) {
    let code = "async function handler({path}) {\n  const {BRAINTRUST_API_URL: url, BRAINTRUST_API_KEY: key} = process.env;\n  \
        const answer = await fetch(url + path, {headers: {Authorization: `Bearer ${key}`}});\n  \
        return [answer.status, key, url];\n}";
    let answer = node.value(&javascript(code, json!({"path": "/v1/project"})));
    assert_eq!(answer[0], 200);
    let (key, url) = (answer[1].as_str().expect("a key"), answer[2].as_str().expect("a URL"));
    for path in ["/v1/api_key", "/v1/env_var", "/v1/acl", "/metrics"] {
        let answer = node.value(&javascript(code, json!({ "path": path })));
        assert!(answer[0] == 403 || answer[0] == 404, "{path}: {answer}");
    }
    let request = assay_test_api::http::Request {
        method: "GET".into(),
        target: "/v1/project".into(),
        headers: vec![("authorization".into(), format!("Bearer {key}"))],
        ..Default::default()
    };
    for url in [url, node.server.url.as_str()] {
        assert_eq!(assay_test_api::http::send(url, &request).expect("an answer").status, 401, "the call is over");
    }
    let python_code = "import json, os, urllib.request\ndef handler():\n    \
        request = urllib.request.Request(os.environ['BRAINTRUST_API_URL'] + '/v1/project', headers={'Authorization': 'Bearer ' + os.environ['BRAINTRUST_API_KEY']})\n    \
        return len(json.load(urllib.request.urlopen(request))['objects'])";
    assert_eq!(node.value(&python(python_code, json!({}))), json!(1));
}

/// A client that code makes while it is loaded has the key of its worker, which is refused between calls.
fn clients_of_a_module(node: &CodeNode) {
    let code = "const {OPENAI_BASE_URL: gateway, BRAINTRUST_API_URL: url, BRAINTRUST_API_KEY: key} = process.env;\n\
        if (!key || process.env.OPENAI_API_KEY !== key || !gateway.startsWith(url)) throw new Error('no key');\n\
        const ask = async (path) => (await fetch(url + path, {method: 'POST', headers: {Authorization: `Bearer ${key}`}})).status;\n\
        const loaded = await ask('/api/self/me');\nlet calls = 0;\n\
        export const handler = async () => [++calls, loaded, await ask('/api/self/me'), process.env.BRAINTRUST_API_KEY === key, key];";
    let python_code = "import os, urllib.request\nkey, url = os.environ['OPENAI_API_KEY'], os.environ['BRAINTRUST_API_URL']\n\
        def ask(path):\n    request = urllib.request.Request(url + path, b'{}', {'Authorization': 'Bearer ' + key, 'Content-Type': 'application/json'})\n    \
        return urllib.request.urlopen(request).status\nloaded = ask('/api/self/me')\ncalls = 0\n\
        def handler():\n    global calls\n    calls += 1\n    \
        return [calls, loaded, ask('/api/self/me'), os.environ['BRAINTRUST_API_KEY'] == key, key]";
    for body in [javascript(code, json!(null)), python(python_code, json!({}))] {
        let mut keys = Vec::new();
        for call in [1, 2] {
            let answer = node.value(&body);
            let key = answer[4].as_str().expect("a key").to_owned();
            assert_eq!(answer, json!([call, 200, 200, true, key]));
            assert_eq!(status_of_key(node, &key), 401, "no call runs");
            keys.push(key);
        }
        assert_eq!(keys[0], keys[1], "the worker is the same");
    }
}

/// Returns the status of a request with this key.
fn status_of_key(node: &CodeNode, key: &str) -> u16 {
    let request = assay_test_api::http::Request {
        method: "GET".into(),
        target: "/v1/project".into(),
        headers: vec![("authorization".into(), format!("Bearer {key}"))],
        ..Default::default()
    };
    assay_test_api::http::send(&node.server.url, &request).expect("an answer").status
}

/// Variables of the function win over those of the project, and those over the organization's.
fn variables(node: &CodeNode) {
    let url = &node.server.url;
    let function = json!({"project_id": node.project, "name": "env", "slug": "env", "function_data": {"type": "code",
        "data": {"type": "inline", "runtime_context": {"runtime": "node", "version": "20"},
            "code": "const handler = () => [process.env.A, process.env.B, process.env.C, process.env.ASSAY_API_KEY ?? null]"}}});
    let function = call(url, "POST", "/v1/function", &function).expect("a function");
    let organization = call(url, "POST", "/api/apikey/login", &json!({})).expect("a login");
    let organization = &organization["org_info"][0]["id"];
    for (object_type, id, name) in [
        ("organization", organization, "A"),
        ("organization", organization, "B"),
        ("project", &json!(node.project), "B"),
        ("organization", organization, "C"),
        ("project", &json!(node.project), "C"),
        ("function", &function["id"], "C"),
    ] {
        let variable = json!({"object_type": object_type, "object_id": id, "name": name, "value": object_type});
        call(url, "POST", "/v1/env_var", &variable).expect("a variable");
    }
    let value = node.value(&json!({"function_id": function["id"], "input": {}}));
    assert_eq!(value, json!(["organization", "project", "function", null]));
}

fn stored_functions_with_schemas(node: &CodeNode) {
    let function = json!({"project_id": node.project, "name": "add", "slug": "add", "function_type": "tool",
        "function_schema": {"parameters": {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}},
        "function_data": {"type": "code", "data": {"type": "inline", "runtime_context": {"runtime": "node", "version": "20"},
            "code": "const handler = ({a}) => a + 1"}}});
    call(&node.server.url, "POST", "/v1/function", &function).expect("a function");
    let named = |input: Value| json!({"project_name": "p", "slug": "add", "input": input});
    assert_eq!(node.value(&named(json!({"a": 1}))), json!(2));
    let (status, refused) = node.invoke(&named(json!({"a": "x"})));
    assert_eq!(status, 400, "{refused}");
    assert!(refused["Message"].as_str().is_some_and(|why| why.contains("/a")), "{refused}");
}

/// Scorers read the trace that they score, also what was written a moment ago.
fn traces(node: &CodeNode) {
    let rows = json!({"events": [
        {"id": "root", "span_id": "root", "root_span_id": "root", "input": "q", "output": "a",
            "span_attributes": {"name": "root", "type": "task"}},
        {"id": "child", "span_id": "child", "root_span_id": "root", "span_parents": ["root"],
            "input": [{"role": "user", "content": "hello"}], "output": "hi", "span_attributes": {"name": "c", "type": "llm"}},
    ]});
    call(&node.server.url, "POST", &format!("/v1/project_logs/{}/insert", node.project), &rows).expect("rows");
    let reference = json!({"object_type": "project_logs", "object_id": node.project, "root_span_id": "root"});
    let input = json!({"output": "a", "trace": {"trace_ref": reference}});
    let code = "async function handler({trace}) { const spans = await trace.getSpans({spanType: ['llm']}); \
        const thread = await trace.getThread(); return [spans.length, spans[0].output, thread.length > 0, trace.getConfiguration().root_span_id] }";
    assert_eq!(node.value(&with(javascript(code, input.clone()), scorer())), json!([1, "hi", true, "root"]));
    let code = "async def handler(output, trace):\n    spans = await trace.get_spans(span_type=['llm'])\n    return [len(spans), output]";
    assert_eq!(node.value(&with(python(code, input), scorer())), json!([1, "a"]));
}

/// Functions call functions with their credential, but not without end.
fn calls_within_calls(node: &CodeNode) {
    let code = "async function handler({n}) {\n  if (n === 0) return 0;\n  \
        const {BRAINTRUST_API_URL: url, BRAINTRUST_API_KEY: key} = process.env;\n  \
        const body = JSON.stringify({project_name: 'p', slug: 'within', input: {n: n - 1}});\n  \
        const answer = await fetch(url + '/function/invoke', {method: 'POST', body, headers: {Authorization: `Bearer ${key}`, 'Content-Type': 'application/json'}});\n  \
        const value = await answer.json();\n  return answer.ok ? value + 1 : value.Message;\n}";
    let function = json!({"project_id": node.project, "name": "within", "slug": "within", "function_data": {"type": "code",
        "data": {"type": "inline", "runtime_context": {"runtime": "node", "version": "20"}, "code": code}}});
    call(&node.server.url, "POST", "/v1/function", &function).expect("a function");
    let call = |n: u32| node.value(&json!({"project_name": "p", "slug": "within", "input": {"n": n}}));
    assert_eq!(call(3), json!(3));
    let refused = call(9);
    assert!(refused.as_str().is_some_and(|why| why.contains("more than 5 levels deep")), "{refused}");
}

/// Rows of a playground are functions, at their newest version or at an older one.
fn functions_of_a_playground(node: &CodeNode) {
    let url = &node.server.url;
    let session = call(url, "POST", "/v1/prompt_session", &json!({"project_id": node.project, "name": "play"}));
    let session = session.expect("a playground")["id"].clone();
    let write = |value: u8| {
        let code = json!({"type": "inline", "code": format!("const handler = () => {value}"),
            "runtime_context": {"runtime": "node", "version": "20"}});
        let row = json!({"id": "a", "prompt_session_id": session, "log_id": "x",
            "function_data": {"type": "code", "data": code}});
        let written = call(url, "POST", "/logs3", &json!({"rows": [row], "api_version": 2})).expect("a write");
        written["xact_id"].clone()
    };
    let older = write(1);
    write(2);
    let named = json!({"prompt_session_id": session, "prompt_session_function_id": "a"});
    assert_eq!(node.value(&named), json!(2));
    if !older.is_null() {
        assert_eq!(node.value(&with(named.clone(), json!({"version": older}))), json!(1));
    }
    let (status, answer) = node.invoke(&with(named.clone(), json!({"prompt_session_function_id": "b"})));
    assert_eq!(status, 404, "{answer}");
    let (status, answer) = node.invoke(&with(named, json!({"environment": "production"})));
    assert_eq!(status, 400, "{answer}");
}
