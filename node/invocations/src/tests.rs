//! Tests of invocations with scripted services.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use assay_node_prompts::{AttachmentReference, InvokeMode, PROMPT_DEPTH_MAX, TraceReference};
use assay_node_scorers::DefaultModels;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::services::{
    AttachmentReader, CacheUse, CodeCaller, CodeRequest, CodeValue, FunctionSource, ModelAnswer, ModelCaller,
    ModelDelta, ModelRequest, OpenSpan, RemoteTool, SpanSink, ToolServers, ToolSession, TraceSource,
};
use crate::{
    CodeFailure, EVENTS_WAITING_MAX, EventOutput, FunctionReference, FunctionVersion, InvokeArguments, InvokeCall,
    InvokeError, InvokeErrorKind, InvokeEvent, InvokedFunction, Invoker, LogScope,
};

/// Answer of a scripted model: pieces, followed by the whole message or an error.
type ScriptedAnswer = (Vec<ModelDelta>, Result<Value, InvokeError>);

/// Services with scripted model answers.
#[derive(Default)]
struct ScriptedServices {
    answers: Mutex<VecDeque<ScriptedAnswer>>,
    requests: Mutex<Vec<ModelRequest>>,
    functions: Vec<InvokedFunction>,
    spans: Vec<Value>,
    /// Rows of spans, from their starts and ends.
    rows: Arc<Mutex<Vec<Value>>>,
}

impl FunctionSource for ScriptedServices {
    fn resolve<'a>(
        &'a self,
        reference: &'a FunctionReference,
        _: &'a FunctionVersion,
    ) -> BoxFuture<'a, Result<InvokedFunction, InvokeError>> {
        let found = match reference {
            FunctionReference::Id(id) => self.functions.iter().find(|one| one.id.as_ref() == Some(id)).cloned(),
            FunctionReference::Global { name, function_type } => Some(InvokedFunction::global(name, function_type)),
            _ => None,
        };
        ready(found.ok_or_else(|| InvokeError::not_found("no function"))).boxed()
    }
}

struct ListedAnswer {
    deltas: VecDeque<ModelDelta>,
    end: Result<Value, InvokeError>,
}

impl ModelAnswer for ListedAnswer {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<ModelDelta>, InvokeError>> {
        let next = match (self.deltas.pop_front(), &self.end) {
            (Some(delta), _) => Ok(Some(delta)),
            (None, Ok(_)) => Ok(None),
            (None, Err(error)) => Err(error.clone()),
        };
        ready(next).boxed()
    }

    fn into_response(self: Box<Self>) -> Value {
        let message = self.end.expect("an answer that did not fail");
        match message.get("data") {
            Some(_) => message,
            None => {
                json!({"model": "m", "choices": [{"message": message}], "usage": {"prompt_tokens": 2, "completion_tokens": 1}})
            }
        }
    }
}

impl ModelCaller for ScriptedServices {
    fn call(&self, request: ModelRequest) -> BoxFuture<'_, Result<Box<dyn ModelAnswer>, InvokeError>> {
        let is_stream = request.is_stream;
        self.requests.lock().expect("no panic").push(request);
        let (deltas, end) = self.answers.lock().expect("no panic").pop_front().expect("one more answer");
        let deltas = if is_stream { deltas.into() } else { VecDeque::new() };
        ready(Ok(Box::new(ListedAnswer { deltas, end }) as Box<dyn ModelAnswer>)).boxed()
    }
}

/// Server with one tool, which returns its arguments.
struct EchoSession(Vec<RemoteTool>);

impl ToolSession for EchoSession {
    fn tools(&self) -> &[RemoteTool] {
        &self.0
    }

    fn call<'a>(&'a self, _: &'a RemoteTool, arguments: &'a Value) -> BoxFuture<'a, Result<Value, String>> {
        ready(Ok(json!({ "echo": arguments }))).boxed()
    }
}

impl ToolServers for ScriptedServices {
    fn connect<'a>(
        &'a self,
        _: &'a Map<String, Value>,
        _: &'a Value,
    ) -> BoxFuture<'a, Result<Box<dyn ToolSession>, InvokeError>> {
        let tool = RemoteTool {
            name: "docs_echo".into(),
            description: None,
            parameters: json!({"type": "object", "properties": {}}),
            server: 0,
            tool: "echo".into(),
        };
        ready(Ok(Box::new(EchoSession(vec![tool])) as Box<dyn ToolSession>)).boxed()
    }
}

#[derive(Debug)]
struct KeptSpan {
    rows: Arc<Mutex<Vec<Value>>>,
}

impl OpenSpan for KeptSpan {
    fn end(self: Box<Self>, row: Map<String, Value>) {
        self.rows.lock().expect("no panic").push(Value::Object(row));
    }
}

impl SpanSink for ScriptedServices {
    fn open(&self, _: &LogScope, row: Map<String, Value>) -> Box<dyn OpenSpan> {
        self.rows.lock().expect("no panic").push(Value::Object(row));
        Box::new(KeptSpan { rows: Arc::clone(&self.rows) })
    }

    fn now(&self) -> f64 {
        7.0
    }
}

impl CodeCaller for ScriptedServices {
    fn checked_input(&self, _: &InvokedFunction, input: Value) -> Result<Value, InvokeError> {
        Ok(input)
    }

    /// Takes the code of a function as the JSON text of its value, as `echo` for its input, or as its error.
    fn run_code(&self, request: CodeRequest, output: EventOutput) -> BoxFuture<'_, Result<CodeValue, InvokeError>> {
        let CodeRequest { function, input, .. } = request;
        async move {
            output.send(InvokeEvent::Console { stream: "stdout", message: "ran".into() }).await;
            let code = function.function_data["data"]["code"].as_str().unwrap_or_default().to_owned();
            if code == "echo" {
                return Ok(CodeValue { value: input, notes: None });
            }
            let value = serde_json::from_str(&code).map_err(|_| {
                InvokeError::of_code(CodeFailure { name: "Error".into(), message: code, stack: "at f".into() })
            })?;
            Ok(CodeValue { value, notes: None })
        }
        .boxed()
    }
}

impl TraceSource for ScriptedServices {
    fn spans<'a>(&'a self, _: &'a TraceReference) -> BoxFuture<'a, Result<Vec<Value>, InvokeError>> {
        ready(Ok(self.spans.clone())).boxed()
    }

    fn default_preprocessor<'a>(&'a self, _: &'a TraceReference) -> BoxFuture<'a, Result<Value, InvokeError>> {
        ready(Ok(Value::Null)).boxed()
    }
}

impl AttachmentReader for ScriptedServices {
    fn data_url<'a>(&'a self, reference: &'a AttachmentReference) -> BoxFuture<'a, Result<String, InvokeError>> {
        ready(Ok(format!("data:{};base64,AA==", reference.content_type))).boxed()
    }
}

fn text(text: &str) -> ScriptedAnswer {
    let pieces = text.chars().map(|c| ModelDelta::Text(c.to_string())).collect();
    (pieces, Ok(json!({"role": "assistant", "content": text})))
}

fn calls(named: &[(&str, Value)]) -> ScriptedAnswer {
    let calls: Vec<Value> = named
        .iter()
        .enumerate()
        .map(|(place, (name, arguments))| {
            json!({"id": format!("c{place}"), "type": "function",
                "function": {"name": name, "arguments": arguments.to_string()}})
        })
        .collect();
    (Vec::new(), Ok(json!({"role": "assistant", "content": null, "tool_calls": calls})))
}

fn prompt_data(message: &str) -> Value {
    json!({"prompt": {"type": "chat", "messages": [{"role": "user", "content": message}]}, "options": {"model": "m"}})
}

fn prompt(id: &str, data: Value) -> InvokedFunction {
    InvokedFunction {
        id: Some(id.to_owned()),
        name: id.to_owned(),
        slug: id.to_owned(),
        prompt_data: data,
        ..InvokedFunction::default()
    }
}

fn scripted(answers: Vec<ScriptedAnswer>) -> ScriptedServices {
    ScriptedServices { answers: Mutex::new(answers.into()), ..ScriptedServices::default() }
}

fn call_of(function: InvokedFunction, input: Value) -> InvokeCall {
    let arguments = InvokeArguments { input, ..InvokeArguments::default() };
    InvokeCall { function, arguments, trace: None, scope: None, has_span_row: false }
}

/// Runs a call, and returns its result, its events, and the services.
async fn run(
    services: ScriptedServices,
    call: InvokeCall,
) -> (Result<Value, InvokeError>, Vec<InvokeEvent>, Arc<ScriptedServices>) {
    let services = Arc::new(services);
    let (sender, mut receiver) = mpsc::channel(EVENTS_WAITING_MAX);
    let invoker = Invoker::new(Arc::clone(&services) as _, DefaultModels::default());
    let result = invoker.invoke(call, EventOutput::new(sender)).await;
    let mut events = Vec::new();
    while let Ok(event) = receiver.try_recv() {
        events.push(event);
    }
    (result.map(|outcome| outcome.value), events, services)
}

/// Returns a span without a parent.
pub(crate) fn scope() -> LogScope {
    LogScope {
        row_id: "r".into(),
        span_id: "s".into(),
        root_span_id: "t".into(),
        parent_span_id: None,
        propagated: Map::new(),
    }
}

#[tokio::test]
async fn a_text_goes_out_piece_by_piece_and_a_parsed_answer_whole() {
    let (result, events, _) =
        run(scripted(vec![text("hi")]), call_of(prompt("p", prompt_data("{{input}}")), json!(1))).await;
    assert_eq!(result, Ok(json!("hi")));
    assert_eq!(events, [InvokeEvent::TextDelta("h".into()), InvokeEvent::TextDelta("i".into())]);
    let mut call = call_of(prompt("p", prompt_data("{{input}}")), json!(1));
    call.arguments.mode = InvokeMode::Json;
    let (result, events, _) = run(scripted(vec![text("[1]")]), call).await;
    assert_eq!((result, events), (Ok(json!([1])), vec![InvokeEvent::JsonDelta("[1]".into())]));
}

#[tokio::test]
async fn structured_answers_are_fragments_of_json_and_reasoning_is_told_apart() {
    let mut data = prompt_data("q");
    data["options"]["params"] = json!({"response_format": {"type": "json_object"}, "use_cache": false});
    let mut answer = text("{}");
    answer.0.insert(0, ModelDelta::Reasoning("hm".into()));
    let (result, events, services) = run(scripted(vec![answer]), call_of(prompt("p", data), Value::Null)).await;
    assert_eq!(result, Ok(json!({})));
    let fragment = |text: &str| InvokeEvent::JsonDelta(text.into());
    assert_eq!(events, [InvokeEvent::ReasoningDelta("hm".into()), fragment("{"), fragment("}")]);
    let requests = services.requests.lock().expect("no panic");
    assert_eq!(requests[0].cache, CacheUse::Never);
    assert!(requests[0].body.get("use_cache").is_none());
}

#[tokio::test]
async fn a_failure_within_a_stream_comes_behind_its_pieces() {
    let failed = (vec![ModelDelta::Text("a".into())], Err(InvokeError::new(InvokeErrorKind::Upstream, "cut")));
    let (result, events, _) = run(scripted(vec![failed]), call_of(prompt("p", prompt_data("q")), Value::Null)).await;
    assert_eq!(result.expect_err("cut").kind, InvokeErrorKind::Upstream);
    assert_eq!(events, [InvokeEvent::TextDelta("a".into())]);
}

#[tokio::test]
async fn tools_run_and_the_model_is_asked_again() {
    let mut data = prompt_data("q");
    data["tool_functions"] = json!([{"type": "function", "id": "inner"}, {"type": "global", "name": "ExactMatch"}]);
    data["mcp"] = json!({"docs": {"type": "url", "url": "https://docs.example"}});
    let exact = json!({"output": 1, "expected": 1});
    let answers = vec![
        calls(&[("inner", json!({"input": "x"})), ("ExactMatch", exact), ("docs_echo", json!({"a": 1}))]),
        text("inner"),
        text("done"),
    ];
    let services =
        ScriptedServices { functions: vec![prompt("inner", prompt_data("in: {{input}}"))], ..scripted(answers) };
    let mut call = call_of(prompt("outer", data), Value::Null);
    call.scope = Some(scope());
    let (result, events, services) = run(services, call).await;
    assert_eq!(result, Ok(json!("done")));
    let requests = services.requests.lock().expect("no panic");
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[1].body["messages"], json!([{"role": "user", "content": "in: x"}]));
    let messages = requests[2].body["messages"].as_array().expect("messages");
    let results: Vec<&Value> = messages[2..].iter().map(|message| &message["content"]).collect();
    let exact = json!({"name": "ExactMatch", "score": 1}).to_string();
    assert_eq!(json!(results), json!(["inner", exact, "{\"echo\":{\"a\":1}}"]));
    // The value of the prompt is its last text. Inner steps are progress.
    assert_eq!(events.last(), Some(&InvokeEvent::TextDelta("done".into())));
    let named = |wanted: &str| {
        events
            .iter()
            .filter(|event| matches!(event, InvokeEvent::Progress { frame, .. } if frame.name == wanted))
            .count()
    };
    assert_eq!((named("ExactMatch"), named("docs_echo")), (3, 3));
    assert!(named("inner") > 3);
    // Each span has a row at its start and at its end.
    let rows = services.rows.lock().expect("no panic");
    let types = rows.iter().filter_map(|row| row["span_attributes"]["type"].as_str());
    assert_eq!((rows.len(), types.filter(|kind| *kind == "tool").count()), (8, 3));
}

#[tokio::test]
async fn prompts_are_tools_of_prompts_to_a_depth() {
    let mut data = prompt_data("q");
    data["tool_functions"] = json!([{"type": "function", "id": "self"}]);
    let function = prompt("self", data);
    // Each level calls itself, and answers when it has a result.
    let down = (0..=PROMPT_DEPTH_MAX).map(|_| calls(&[("self", json!({"input": "x"}))]));
    let up = (0..=PROMPT_DEPTH_MAX).map(|_| text("up"));
    let services = ScriptedServices { functions: vec![function.clone()], ..scripted(down.chain(up).collect()) };
    let (result, _, services) = run(services, call_of(function, Value::Null)).await;
    assert_eq!(result, Ok(json!("up")));
    let requests = services.requests.lock().expect("no panic");
    let deepest = requests[PROMPT_DEPTH_MAX + 1].body["messages"].as_array().expect("messages").last().cloned();
    let told = deepest.expect("a result")["content"].to_string();
    assert!(told.contains("Error: prompts are tools of prompts more than 5 levels deep"), "{told}");
}

#[tokio::test]
async fn a_judge_is_asked_once_more_without_the_cache() {
    let mut data = prompt_data("{{output}} {{thread_count}}");
    data["parser"] = json!({"type": "llm_classifier", "choice_scores": {"A": 1, "B": 0}});
    let function = InvokedFunction { function_type: Some("scorer".into()), ..prompt("judge", data) };
    let answers = vec![
        calls(&[("select_choice", json!({"choice": "C"}))]),
        calls(&[("select_choice", json!({"choice": " A "}))]),
    ];
    let services = ScriptedServices { spans: vec![json!({"input": "q", "output": "a"})], ..scripted(answers) };
    let trace = json!({"trace_ref": {"object_type": "experiment", "object_id": "o", "root_span_id": "r"}});
    let mut call = call_of(function, json!({"output": "o", "trace": trace}));
    call.scope = Some(scope());
    let (result, events, services) = run(services, call).await;
    let expected = json!({"name": "judge", "score": 1, "metadata": {"choice": "A"}});
    assert_eq!(result.as_ref(), Ok(&expected));
    assert_eq!(events, [InvokeEvent::JsonDelta(expected.to_string())]);
    let requests = services.requests.lock().expect("no panic");
    assert_eq!([requests[0].cache, requests[1].cache], [CacheUse::AsRequested, CacheUse::Never]);
    let asked = requests[0].body["messages"][0]["content"].as_str().expect("a text");
    assert!(asked.starts_with("o 2\n"), "{asked}");
    let rows = services.rows.lock().expect("no panic");
    assert_eq!(rows[0]["input"], json!({"output": "o"}), "the trace is not logged");
    assert_eq!(rows[1]["span_attributes"], json!({"name": "project_default", "type": "preprocessor"}));
    assert_eq!(rows[3]["scores"], json!({"judge": 1.0}));
}

#[tokio::test]
async fn repeated_calls_of_a_scorer_do_not_share_an_answer() {
    let question = || calls(&[("generate_question", json!({"question": "q", "noncommittal": 1}))]);
    let input = json!({"input": "q", "output": "o", "context": "c"});
    let services = scripted(vec![question(), question(), question()]);
    let (result, _, services) =
        run(services, call_of(InvokedFunction::global("AnswerRelevancy", "scorer"), input)).await;
    let requests = services.requests.lock().expect("no panic");
    assert!(requests.len() >= 3 && requests[..3].iter().all(|request| request.cache == CacheUse::Never), "{result:?}");
}

fn code(text: &str, function_type: Option<&str>) -> InvokedFunction {
    let data = json!({"type": "inline", "runtime_context": {"runtime": "node", "version": "20"}, "code": text});
    InvokedFunction {
        function_type: function_type.map(str::to_owned),
        function_data: json!({"type": "code", "data": data}),
        ..prompt("c", Value::Null)
    }
}

#[tokio::test]
async fn code_gives_its_value_and_its_console() {
    let (result, events, _) = run(scripted(vec![]), call_of(code("\"0.45\"", None), json!(1))).await;
    assert_eq!(result, Ok(json!("0.45")));
    let console = InvokeEvent::Console { stream: "stdout", message: "ran".into() };
    assert_eq!(events, [console, InvokeEvent::JsonDelta("\"0.45\"".into())]);
    let (result, _, _) = run(scripted(vec![]), call_of(code("echo", Some("tool")), json!({"a": 1}))).await;
    assert_eq!(result, Ok(json!({"a": 1})));
}

#[tokio::test]
async fn scorers_receive_all_their_arguments_and_give_scores() {
    let mut call = call_of(code("echo", Some("scorer")), json!({"output": 1}));
    call.arguments.expected = json!(2);
    let (result, _, _) = run(scripted(vec![]), call).await;
    assert_eq!(result, Ok(json!({"output": 1, "expected": 2, "input": null, "metadata": null})));
    let call = InvokeCall { scope: Some(scope()), ..call_of(code("{\"score\": 1}", Some("scorer")), json!({})) };
    let (result, _, services) = run(scripted(vec![]), call).await;
    assert_eq!(result, Ok(json!({"score": 1})));
    assert_eq!(services.rows.lock().expect("no panic")[1]["scores"], json!({"c": 1.0}));
    let (result, _, _) = run(scripted(vec![]), call_of(code("1.5", Some("scorer")), json!({}))).await;
    assert_eq!(result.expect_err("no score").kind, InvokeErrorKind::Failed);
}

#[tokio::test]
async fn the_error_of_code_is_in_its_span_with_its_stack() {
    let call = InvokeCall { scope: Some(scope()), ..call_of(code("boom!", None), Value::Null) };
    let (result, _, services) = run(scripted(vec![]), call).await;
    let error = result.expect_err("an error");
    assert_eq!((error.kind, error.message.as_str()), (InvokeErrorKind::Failed, "boom!"));
    assert_eq!(services.rows.lock().expect("no panic")[1]["error"], "Error: boom!\nat f");
}

#[tokio::test]
async fn code_is_a_tool_of_a_prompt_and_a_preprocessor_of_a_trace() {
    let mut data = prompt_data("q");
    data["tool_functions"] = json!([{"type": "function", "id": "c"}]);
    let answers = vec![calls(&[("c", json!({"n": 2}))]), text("done")];
    let services = ScriptedServices { functions: vec![code("echo", Some("tool"))], ..scripted(answers) };
    let (result, _, services) = run(services, call_of(prompt("p", data), Value::Null)).await;
    assert_eq!(result, Ok(json!("done")));
    let messages = services.requests.lock().expect("no panic")[1].body["messages"].to_string();
    assert!(messages.contains(r#"{\"n\":2}"#), "{messages}");
    let spans =
        vec![json!({"id": "1"}), json!({"id": "2", "span_attributes": {"purpose": "scorer"}}), json!({"id": "1"})];
    let services = ScriptedServices { spans, ..scripted(vec![]) };
    let reference = json!({"object_type": "project_logs", "object_id": "o", "root_span_id": "r"});
    let input = json!({"trace_ref": reference});
    let (result, _, _) = run(services, call_of(code("echo", Some("preprocessor")), input)).await;
    assert_eq!(result, Ok(json!([{"id": "1"}])));
}

#[tokio::test]
async fn kinds_that_do_not_run_are_refused() {
    let unknown = InvokedFunction::global("Nothing", "scorer");
    let (result, _, _) = run(scripted(vec![]), call_of(unknown, json!({}))).await;
    assert_eq!(result.expect_err("unknown").kind, InvokeErrorKind::NotFound);
    let parameters = InvokedFunction { function_type: Some("parameters".into()), ..prompt("p", Value::Null) };
    let (result, _, _) = run(scripted(vec![]), call_of(parameters, Value::Null)).await;
    assert_eq!(result.expect_err("parameters").kind, InvokeErrorKind::Invalid);
}
