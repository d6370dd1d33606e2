//! Model servers that fail in the middle of something: what is tried again, and what the client is told.

use std::time::Duration;

use assay_test_api::http::HttpResponse;
use assay_test_providers::{Fault, ProviderServer};
use serde_json::{Value, json};

use crate::fixture::{
    CHAT, GatewayNode, OpenResponse, chat, code_of, json_of, openai, provider, stream, streamed_text, text_of, with,
};

/// A node, and servers that are asked in this order.
struct RankedServers {
    node: GatewayNode,
    first: ProviderServer,
    second: ProviderServer,
    /// Server of the model `alone`.
    alone: ProviderServer,
}

impl RankedServers {
    fn start() -> RankedServers {
        let node = GatewayNode::start(&["gateway.retry_budget_seconds=1"]);
        let (first, second, alone) = (provider(), provider(), provider());
        node.secret("first", "openai", &with(&openai(&first, "ranked"), &json!({"priority": 0})));
        node.secret("second", "openai", &with(&openai(&second, "ranked"), &json!({"priority": 1})));
        node.secret("alone", "openai", &with(&openai(&alone, "alone"), &json!({"timeout_ms": 1500})));
        RankedServers { node, first, second, alone }
    }

    /// Calls with a fault of the first server; returns the answer and the requests that each got.
    fn call(&self, fault: Fault, body: &Value) -> (HttpResponse, [usize; 2]) {
        let counts = || [self.first.requests().len(), self.second.requests().len()];
        self.first.inject(fault);
        let before = counts();
        let answer = self.node.ask(CHAT, &[], body);
        let after = counts();
        (answer, [after[0] - before[0], after[1] - before[1]])
    }

    fn call_alone(&self, fault: Fault, path: &str, body: &Value) -> (HttpResponse, usize) {
        self.alone.inject(fault);
        let before = self.alone.requests().len();
        let answer = self.node.ask(path, &[], body);
        (answer, self.alone.requests().len() - before)
    }
}

#[test]
fn what_may_have_been_executed_is_not_sent_again() {
    let servers = RankedServers::start();
    let (answer, counts) = servers.call(Fault::Closes, &chat("ranked", "cut before its head"));
    assert_eq!((answer.status, counts), (502, [1, 0]), "{}", answer.text());
    assert_eq!(code_of(&answer), "upstream_disconnected");
    let (answer, count) = servers.call_alone(Fault::Closes, "/v1/embeddings", &json!({"model": "alone", "input": "e"}));
    assert_eq!((answer.status, count), (200, 2), "{}", answer.text());
    let slow = Fault::SlowFirstByte(Duration::from_secs(4));
    let (answer, count) = servers.call_alone(slow, CHAT, &chat("alone", "slow"));
    assert_eq!((answer.status, count, code_of(&answer).as_str()), (504, 1, "upstream_timeout"), "{}", answer.text());
    let (answer, counts) = servers.call(Fault::Status { status: 503, retry_after: None }, &chat("ranked", "refused"));
    assert_eq!((answer.status, counts), (200, [1, 1]), "a status says that it was not executed");
    assert_eq!(answer.header("x-bt-used-endpoint").as_deref(), Some("second"));
    for status in [400, 409, 413, 422] {
        let (answer, counts) = servers.call(Fault::Status { status, retry_after: None }, &chat("ranked", "bad"));
        assert_eq!((answer.status, counts), (status, [1, 0]), "{}", answer.text());
        assert!(answer.text().contains(&format!("scripted error {status}")), "{}", answer.text());
    }
}

#[test]
fn streams_that_break_say_so_and_are_tried_again_only_before_their_content() {
    let servers = RankedServers::start();
    let long = "word ".repeat(80);
    let (answer, counts) = servers.call(Fault::ErrorEventAfter(1), &stream("ranked", &long));
    assert_eq!((streamed_text(&answer.text()), counts), (format!("echo: {long}"), [1, 1]));
    for fault in [Fault::CutAfter(1200), Fault::ErrorEventAfter(5)] {
        let (answer, counts) = servers.call(fault.clone(), &stream("ranked", &long));
        assert_eq!((answer.status, counts), (200, [1, 0]), "{fault:?}");
        let text = answer.text();
        let error = text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().expect("an event");
        let error: Value = serde_json::from_str(error).unwrap_or_else(|_| panic!("{fault:?}: {text}"));
        assert!(error["error"]["message"].is_string() && !text.contains("[DONE]"), "{fault:?}: {text}");
        assert!(text.contains("wo"), "{fault:?}: {text}");
    }
    let anthropic = json!({"model": "ranked", "max_tokens": 500, "stream": true,
        "messages": [{"role": "user", "content": long}]});
    servers.first.inject(Fault::CutAfter(1200));
    let answer = servers.node.ask("/v1/messages", &[], &anthropic).text();
    assert!(answer.contains("event: error") && !answer.contains("message_stop"), "{answer}");
    let gemini = json!({"contents": [{"role": "user", "parts": [{"text": long}]}]});
    servers.first.inject(Fault::CutAfter(1200));
    let answer = servers.node.ask("/v1beta/models/ranked:streamGenerateContent?alt=sse", &[], &gemini).text();
    assert!(answer.contains("\"error\"") && !answer.contains("\"finishReason\":\"STOP\""), "{answer}");
}

#[test]
fn calls_beyond_those_of_a_node_wait_for_the_end_of_others() {
    let (node, server) = (GatewayNode::start(&["gateway.calls_max=1"]), provider());
    node.secret("one", "openai", &openai(&server, "m"));
    server.inject(Fault::SlowEvents(Duration::from_millis(100)));
    let mut running = OpenResponse::begin(node.url(), &[], &stream("m", &"word ".repeat(100)));
    running.until("wo");
    let answer = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| node.ask(CHAT, &[], &chat("m", "the next")));
        std::thread::sleep(Duration::from_millis(500));
        assert!(!waiting.is_finished() && server.requests().len() == 1);
        drop(running);
        waiting.join().expect("a call")
    });
    assert_eq!(text_of(&answer), "echo: the next");
}

#[test]
fn answers_of_another_form_than_promised_do_no_harm() {
    let servers = RankedServers::start();
    let (answer, count) = servers.call_alone(Fault::HugeEvent(10 << 20), CHAT, &stream("alone", "huge"));
    assert!((answer.status >= 500 || !answer.text().contains("[DONE]")) && count == 1, "{}", answer.status);
    assert!(answer.body.len() < 1 << 20, "{} bytes of the event went on", answer.body.len());
    let (answer, count) = servers.call_alone(Fault::WrongContentType, CHAT, &chat("alone", "typed"));
    assert_eq!((text_of(&answer), count), ("echo: typed".to_owned(), 1));
    assert_eq!(answer.header("content-type").as_deref(), Some("application/json"), "a page is never served");
    let (answer, _) = servers.call_alone(Fault::WrongContentType, CHAT, &stream("alone", "typed"));
    assert_eq!(streamed_text(&answer.text()), "echo: typed");
    assert!(answer.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")), "{answer:?}");
    let (answer, count) = servers.call_alone(Fault::CutAfter(20), CHAT, &chat("alone", "half"));
    assert_eq!((answer.status, count), (502, 1), "{}", answer.text());
    assert!(json_of(&answer)["error"]["message"].is_string());
    let (answer, _) = servers.call_alone(Fault::SlowEvents(Duration::from_millis(100)), CHAT, &stream("alone", "slow"));
    assert_eq!(streamed_text(&answer.text()), "echo: slow", "the limit is for the first byte");
}
