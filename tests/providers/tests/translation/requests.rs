//! The same requests in each wire format.

use assay_node_dialects::Dialect;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    Plain,
    Tools,
    Results,
    ForcedTool,
    Image,
    Schema,
    Fails,
}

/// Scenarios with an answer.
pub const SCENARIOS: [Scenario; 6] =
    [Scenario::Plain, Scenario::Tools, Scenario::Results, Scenario::ForcedTool, Scenario::Image, Scenario::Schema];

const TOOLS: [&str; 2] = ["get_weather", "get_time"];
const ASKED: &str = "weather and time?";
const RESULTS: [&str; 2] = ["rain", "noon"];
/// Bytes in standard base64, and in that for URLs, which clients of Gemini write.
const PNG: &str = "iVBORw0KGgr7//7/";
const PNG_FOR_URLS: &str = "iVBORw0KGgr7__7_";

fn city() -> Value {
    json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
}

fn person() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"], "additionalProperties": false})
}

fn text_of(scenario: Scenario) -> &'static str {
    match scenario {
        Scenario::Plain => "hello wide world",
        Scenario::Fails => "fail 429",
        Scenario::Image => "what is it?",
        _ => ASKED,
    }
}

/// Returns the body of a request. Gemini has the model and the mode in the path.
pub fn body(dialect: Dialect, scenario: Scenario, model: &str, stream: bool) -> Value {
    let mut body = match dialect {
        Dialect::Chat => chat(scenario),
        Dialect::Responses => responses(scenario),
        Dialect::Anthropic => anthropic(scenario),
        Dialect::Gemini => return gemini(scenario),
    };
    body["model"] = json!(model);
    if stream {
        body["stream"] = json!(true);
        if dialect == Dialect::Chat {
            body["stream_options"] = json!({"include_usage": true});
        }
    }
    body
}

fn has_tools(scenario: Scenario) -> bool {
    matches!(scenario, Scenario::Tools | Scenario::Results | Scenario::ForcedTool)
}

fn chat(scenario: Scenario) -> Value {
    let mut messages = match scenario {
        Scenario::Plain => vec![json!({"role": "system", "content": "be brief"})],
        _ => Vec::new(),
    };
    let url = format!("data:image/png;base64,{PNG}");
    messages.push(match scenario {
        Scenario::Image => json!({"role": "user", "content": [{"type": "text", "text": text_of(scenario)},
            {"type": "image_url", "image_url": {"url": url}}]}),
        _ => json!({"role": "user", "content": text_of(scenario)}),
    });
    if scenario == Scenario::Results {
        let call = |(index, name): (usize, &&str)| {
            json!({"id": format!("call_{index}"), "type": "function",
                "function": {"name": name, "arguments": "{\"city\":\"Paris\"}"}})
        };
        let calls: Vec<_> = TOOLS.iter().enumerate().map(call).collect();
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": calls}));
        messages.extend(RESULTS.iter().enumerate().map(
            |(index, result)| json!({"role": "tool", "tool_call_id": format!("call_{index}"), "content": result}),
        ));
    }
    let mut body = json!({"messages": messages});
    if has_tools(scenario) {
        let tool = |name: &&str| json!({"type": "function", "function": {"name": name, "parameters": city()}});
        body["tools"] = TOOLS.iter().map(tool).collect();
    }
    match scenario {
        Scenario::ForcedTool => body["tool_choice"] = json!({"type": "function", "function": {"name": TOOLS[1]}}),
        Scenario::Schema => {
            let schema = json!({"name": "person", "schema": person(), "strict": true});
            body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
        }
        _ => {}
    }
    body
}

fn responses(scenario: Scenario) -> Value {
    let mut body = json!({});
    if scenario == Scenario::Plain {
        body["instructions"] = json!("be brief");
    }
    let url = format!("data:image/png;base64,{PNG}");
    let content = match scenario {
        Scenario::Image => json!([{"type": "input_text", "text": text_of(scenario)},
            {"type": "input_image", "image_url": url, "detail": "auto"}]),
        _ => json!(text_of(scenario)),
    };
    let mut input = vec![json!({"role": "user", "content": content})];
    if scenario == Scenario::Results {
        input.extend(TOOLS.iter().enumerate().map(|(index, name)| {
            json!({"type": "function_call", "call_id": format!("call_{index}"), "name": name,
                "arguments": "{\"city\":\"Paris\"}"})
        }));
        input.extend(RESULTS.iter().enumerate().map(|(index, result)| {
            json!({"type": "function_call_output", "call_id": format!("call_{index}"), "output": result})
        }));
    }
    body["input"] = input.into();
    if has_tools(scenario) {
        let tool = |name: &&str| json!({"type": "function", "name": name, "parameters": city(), "strict": false});
        body["tools"] = TOOLS.iter().map(tool).collect();
    }
    match scenario {
        Scenario::ForcedTool => body["tool_choice"] = json!({"type": "function", "name": TOOLS[1]}),
        Scenario::Schema => {
            let format = json!({"type": "json_schema", "name": "person", "schema": person(), "strict": true});
            body["text"] = json!({"format": format});
        }
        _ => {}
    }
    body
}

fn anthropic(scenario: Scenario) -> Value {
    let mut body = json!({"max_tokens": 500});
    if scenario == Scenario::Plain {
        body["system"] = json!("be brief");
    }
    let source = json!({"type": "base64", "media_type": "image/png", "data": PNG});
    let content = match scenario {
        Scenario::Image => json!([{"type": "text", "text": text_of(scenario)}, {"type": "image", "source": source}]),
        _ => json!(text_of(scenario)),
    };
    let mut messages = vec![json!({"role": "user", "content": content})];
    if scenario == Scenario::Results {
        let call = |(index, name): (usize, &&str)| json!({"type": "tool_use", "id": format!("call_{index}"), "name": name, "input": {"city": "Paris"}});
        let calls: Vec<_> = TOOLS.iter().enumerate().map(call).collect();
        messages.push(json!({"role": "assistant", "content": calls}));
        let result = |(index, result): (usize, &&str)| json!({"type": "tool_result", "tool_use_id": format!("call_{index}"), "content": result});
        let results: Vec<_> = RESULTS.iter().enumerate().map(result).collect();
        messages.push(json!({"role": "user", "content": results}));
    }
    body["messages"] = messages.into();
    if has_tools(scenario) {
        body["tools"] = TOOLS.iter().map(|name| json!({"name": name, "input_schema": city()})).collect();
    }
    match scenario {
        Scenario::ForcedTool => body["tool_choice"] = json!({"type": "tool", "name": TOOLS[1]}),
        Scenario::Schema => body["output_config"] = json!({"format": {"type": "json_schema", "schema": person()}}),
        _ => {}
    }
    body
}

fn gemini(scenario: Scenario) -> Value {
    let mut body = json!({});
    if scenario == Scenario::Plain {
        body["systemInstruction"] = json!({"parts": [{"text": "be brief"}]});
    }
    let mut parts = vec![json!({"text": text_of(scenario)})];
    if scenario == Scenario::Image {
        parts.push(json!({"inlineData": {"mimeType": "image/png", "data": PNG_FOR_URLS}}));
    }
    let mut contents = vec![json!({"role": "user", "parts": parts})];
    if scenario == Scenario::Results {
        let call = |name: &&str| json!({"functionCall": {"name": name, "args": {"city": "Paris"}}});
        let calls: Vec<_> = TOOLS.iter().map(call).collect();
        contents.push(json!({"role": "model", "parts": calls}));
        let result =
            |(name, result): (&&str, &str)| json!({"functionResponse": {"name": name, "response": {"output": result}}});
        let results: Vec<_> = TOOLS.iter().zip(RESULTS).map(result).collect();
        contents.push(json!({"role": "user", "parts": results}));
    }
    body["contents"] = contents.into();
    if has_tools(scenario) {
        let declared: Vec<_> = TOOLS.iter().map(|name| json!({"name": name, "parametersJsonSchema": city()})).collect();
        body["tools"] = json!([{"functionDeclarations": declared}]);
    }
    match scenario {
        Scenario::ForcedTool => {
            let calling = json!({"mode": "ANY", "allowedFunctionNames": [TOOLS[1]]});
            body["toolConfig"] = json!({"functionCallingConfig": calling});
        }
        Scenario::Schema => {
            let generation = json!({"responseMimeType": "application/json", "responseJsonSchema": person()});
            body["generationConfig"] = generation;
        }
        _ => {}
    }
    body
}
