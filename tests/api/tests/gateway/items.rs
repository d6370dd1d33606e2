//! Items of answers that clients of the Responses API only name in later requests.

use serde_json::{Value, json};

use crate::fixture::{GatewayNode, code_of, json_of, openai, provider, with};

const RESPONSES: &str = "/v1/responses";

fn question() -> Value {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let tool = json!({"type": "function", "name": "weather", "parameters": parameters});
    json!({"model": "m", "input": [{"role": "user", "content": "how is it?"}], "tools": [tool]})
}

/// Returns the request with the results of calls, which it names by the ids of their items.
fn results(calls: &[Value]) -> Value {
    let mut body = question();
    let input = body["input"].as_array_mut().expect("items");
    input.extend(calls.iter().map(|call| json!({"type": "item_reference", "id": call["id"]})));
    input.extend(calls.iter().map(|call| {
        let id = &call["call_id"];
        json!({"type": "function_call_output", "call_id": id, "output": "sunny"})
    }));
    body
}

/// Returns the items of a streamed response as its events announced them at their end.
fn streamed_items(body: &str) -> Vec<Value> {
    let events = body.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    events.filter(|event| event["type"] == "response.output_item.done").map(|event| event["item"].clone()).collect()
}

#[test]
fn items_of_translated_answers_can_be_named() {
    let (node, server) = (GatewayNode::start(&[]), provider());
    node.secret(
        "chat",
        "openai",
        &with(&openai(&server, "m"), &json!({"customModels": {"m": {"format": "openai", "endpoint_types": ["chat"]}}})),
    );
    let unstored = node.ask(RESPONSES, &[], &with(&question(), &json!({"store": false})));
    let items = json_of(&unstored)["output"].as_array().cloned().expect("items");
    let answer = node.ask(RESPONSES, &[], &results(&items));
    assert_eq!((answer.status, code_of(&answer).as_str()), (400, "unsupported_parameter"), "{}", answer.text());
    let whole = json_of(&node.ask(RESPONSES, &[], &question()))["output"].as_array().cloned().expect("items");
    let answer = node.ask(RESPONSES, &[], &with(&question(), &json!({"stream": true})));
    for calls in [whole, streamed_items(&answer.text())] {
        assert!(!calls.is_empty() && calls.iter().all(|call| call["type"] == "function_call"), "{calls:?}");
        let answer = node.ask(RESPONSES, &[], &results(&calls));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let sent = server.requests().pop().expect("a request").json();
        let message = &sent["messages"][1];
        assert_eq!(message["role"], "assistant", "{sent}");
        assert_eq!(message["tool_calls"][0]["function"]["name"], "weather", "{sent}");
        assert_eq!(sent["messages"][2]["tool_call_id"], message["tool_calls"][0]["id"], "{sent}");
    }
}
