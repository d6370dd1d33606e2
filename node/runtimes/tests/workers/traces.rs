//! The argument `trace` of scorers, over an API server.

use assay_node_runtimes::{CallForm, RuntimeKind, WorkerTrace};
use serde_json::{Value, json};

use crate::harness::Worker;
use crate::servers::{HttpServer, Tunnel};

const NODE: RuntimeKind = RuntimeKind::Node;
const PYTHON: RuntimeKind = RuntimeKind::Python;

fn spans() -> Value {
    json!([
        {"span_id": "a", "is_root": true, "span_attributes": {"type": "task", "name": "t"}, "input": 1, "error": null,
         "metadata": {"k": {"v": 1}}, "metrics": {"start": 1.5, "end": 2.5}},
        {"span_id": "b", "span_attributes": {"type": "llm", "name": "l"}, "error": "no", "metrics": {"start": 1.5, "end": 9.5}},
    ])
}

/// API server with two pages of spans and a thread.
fn api() -> HttpServer {
    HttpServer::start(|request| {
        if request.line.starts_with("POST /function/invoke ") {
            return (200, json!([{"role": "user", "content": "hi"}]));
        }
        let all = spans();
        match request.body["query"]["cursor"].as_str() {
            None => (200, json!({"data": [all[0]], "cursor": "next"})),
            Some("next") => (200, json!({"data": [all[1]], "cursor": null})),
            Some(_) => (400, json!("unknown cursor")),
        }
    })
}

fn worker(kind: RuntimeKind, tunnel: &Tunnel, code: &str) -> Worker {
    let mut worker = Worker::start_with(kind, &[("ASSAY_TUNNEL", tunnel.path().to_str().unwrap())]);
    worker.load(crate::harness::inline(kind, code)).unwrap();
    let variables = [("BRAINTRUST_API_URL", "http://cluster.test:8000/"), ("BRAINTRUST_API_KEY", "key of the call")];
    worker.environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    worker.parent = Some("slug".to_owned());
    let text = str::to_owned;
    let (object_type, object_id, root_span_id) = (text("experiment"), text("e1"), text("r1"));
    worker.trace = Some(WorkerTrace { object_type, object_id, root_span_id });
    worker
}

const NODE_CODE: &str = "async function handler({trace, kind}) {
    if (kind === 'configuration') return [trace.getConfiguration(), trace];
    if (kind === 'spans') return [await trace.getSpans(), await trace.getSpans({spanType: ['llm']})];
    if (kind === 'scorers') return (await trace.getSpans({includeScorers: true})).length;
    if (kind === 'filters') {
      const ids = async filters => (await trace.getSpans({filters})).map(s => s.span_id).join();
      return [await ids({name: ['t']}), await ids({hasError: true}), await ids({metadata: {k: {v: 1}}}),
              await ids({duration: {min: 5}}), await ids({duration: {max: 5}}), await ids({duration: {}})];
    }
    if (kind === 'unknown') return trace.getSpans({filters: {color: 1}});
    return Promise.all([trace.getThread(), trace.getThread(), trace.getThread({preprocessor: 'mine'})]);
}";
const PYTHON_CODE: &str = "async def handler(trace, kind):
    if kind == 'configuration': return [trace.get_configuration(), trace]
    if kind == 'spans': return [await trace.get_spans(), trace.get_spans(span_type=['llm'])]
    if kind == 'scorers': return len(await trace.get_spans(include_scorers=True))
    if kind == 'filters':
        ids = lambda **filters: ','.join(s.span_id for s in trace.get_spans(filters=filters))
        return [ids(name=['t']), ids(has_error=True), ids(metadata={'k': {'v': 1}}),
                ids(duration={'min': 5}), ids(duration={'max': 5}), ids(duration={})]
    if kind == 'unknown': return trace.get_spans(filters={'color': 1})
    return [await trace.get_thread(), trace.get_thread(), await trace.get_thread({'preprocessor': 'mine'})]
";

#[test]
fn a_trace_has_the_methods_of_the_sdk() {
    for (kind, code) in [(NODE, NODE_CODE), (PYTHON, PYTHON_CODE)] {
        let server = api();
        let tunnel = Tunnel::start(&[("cluster.test:8000", server.port)]);
        let mut worker = worker(kind, &tunnel, code);
        let reference = json!({"object_type": "experiment", "object_id": "e1", "root_span_id": "r1"});
        let mut ask = |kind: &str| worker.call(CallForm::Scorer, json!({"input": 1, "kind": kind}));
        assert_eq!(ask("configuration"), json!([reference, {"trace_ref": reference}]));
        assert_eq!(ask("spans"), json!([spans(), [spans()[1]]]));
        assert_eq!(ask("filters"), json!(["a", "b", "a", "b", "a", "a,b"]));
        let thread = json!([{"role": "user", "content": "hi"}]);
        assert_eq!(ask("thread"), json!([thread, thread, thread]));

        let requests = server.requests();
        assert!(requests.iter().all(|request| request.authorization == "Bearer key of the call"));
        let query = &requests[0].body["query"];
        assert_eq!(requests[0].line, "POST /btql HTTP/1.1");
        assert_eq!(query["from"]["args"], json!([{"op": "literal", "value": "e1"}]));
        assert_eq!(query["filter"]["children"].as_array().unwrap().len(), 2);
        let invoked: Vec<&Value> =
            requests.iter().filter(|r| r.line.contains("/function/invoke")).map(|r| &r.body).collect();
        let mut names: Vec<_> = invoked.iter().map(|body| body["global_function"].as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, [Some("mine"), Some("project_default")]);
        assert_eq!(invoked[0]["input"], json!({"trace_ref": reference}));
        assert_eq!((&invoked[0]["mode"], &invoked[0]["parent"]), (&json!("json"), &json!("slug")));
    }
}

#[test]
fn scorer_spans_come_only_if_they_are_asked_for() {
    for (kind, code) in [(NODE, NODE_CODE), (PYTHON, PYTHON_CODE)] {
        let server = api();
        let tunnel = Tunnel::start(&[("cluster.test:8000", server.port)]);
        let mut worker = worker(kind, &tunnel, code);
        assert_eq!(worker.call(CallForm::Scorer, json!({"kind": "scorers"})), json!(2));
        assert_eq!(server.requests()[0].body["query"]["filter"]["children"].as_array().unwrap().len(), 1);
        let failure = worker.try_call(CallForm::Scorer, json!({"kind": "unknown"})).unwrap_err();
        assert!(failure.message.contains("unknown filter of spans: color"), "{}", failure.message);
    }
}

#[test]
fn a_trace_within_the_input_becomes_an_object_too() {
    for (kind, code) in [(NODE, NODE_CODE), (PYTHON, PYTHON_CODE)] {
        let tunnel = Tunnel::start(&[]);
        let mut worker = worker(kind, &tunnel, code);
        worker.trace = None;
        let reference = json!({"object_type": "project_logs", "object_id": "p", "root_span_id": "r"});
        let input = json!({"kind": "configuration", "trace": {"trace_ref": reference}});
        assert_eq!(worker.call(CallForm::Scorer, input), json!([reference, {"trace_ref": reference}]));
    }
}

#[test]
fn an_error_of_the_server_says_what_it_answered() {
    for (kind, code) in [(NODE, NODE_CODE), (PYTHON, PYTHON_CODE)] {
        let server = HttpServer::start(|_| (403, json!("missing read")));
        let tunnel = Tunnel::start(&[("cluster.test:8000", server.port)]);
        let failure = worker(kind, &tunnel, code).try_call(CallForm::Scorer, json!({"kind": "spans"})).unwrap_err();
        assert_eq!(failure.message, "the server answered 403 to POST /btql: \"missing read\"");
    }
}
