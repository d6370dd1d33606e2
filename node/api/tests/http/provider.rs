//! A provider of models that answers from a script, in the format of OpenAI's API.
//!
//! | request | answer |
//! |---|---|
//! | the last text is `fail 429` | an error with this status |
//! | tools, and no results of them yet | a call of the first tool, or of the forced one: each argument is `Paris` |
//! | results of tools | their texts |
//! | anything else | the last text |

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};

/// Characters of a text in one event of a stream.
const PIECE_CHARS: usize = 4;

/// A provider on a port of its own. Its thread ends with the test.
pub struct ScriptedProvider {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl ScriptedProvider {
    pub fn start() -> ScriptedProvider {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::<Mutex<Vec<Value>>>::default();
        let kept = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || serve(stream, &kept));
            }
        });
        ScriptedProvider { address, requests }
    }

    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Bodies of the requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.requests.lock().expect("no panic").clone()
    }
}

/// Answers one request and closes the connection.
fn serve(stream: TcpStream, requests: &Mutex<Vec<Value>>) {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    let mut path = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        if path.is_empty() {
            path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        line.clear();
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    requests.lock().expect("no panic").push(body.clone());
    let (status, content_type, text) = answer(&path, &body);
    let response = format!(
        "HTTP/1.1 {status} Scripted\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    // the client may have left
    drop(reader.get_mut().write_all(response.as_bytes()));
}

fn answer(path: &str, body: &Value) -> (u16, &'static str, String) {
    const JSON: &str = "application/json";
    if path.ends_with("/embeddings") {
        let inputs = body["input"].as_array().map_or(1, Vec::len);
        let vector = |index| json!({"object": "embedding", "index": index, "embedding": [0.6, 0.8]});
        let data: Vec<Value> = (0..inputs).map(vector).collect();
        let usage = json!({"prompt_tokens": 1, "total_tokens": 1});
        let answer = json!({"object": "list", "model": body["model"], "data": data, "usage": usage});
        return (200, JSON, answer.to_string());
    }
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let texts = |role: &str| -> Vec<String> {
        let of_role = messages.iter().filter(|message| message["role"] == role);
        of_role.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let last = texts("user").pop().unwrap_or_default();
    if let Some(status) = last.strip_prefix("fail ").and_then(|status| status.parse().ok()) {
        return (status, JSON, json!({"error": {"message": "as the script says", "type": "error"}}).to_string());
    }
    let results = texts("tool");
    let call = called(body).filter(|_| results.is_empty());
    let text = match results.is_empty() {
        true => format!("echo: {last}"),
        false => format!("results: {}", results.join("; ")),
    };
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5});
    if body["stream"] == true {
        return (200, "text/event-stream", streamed(body, call, &text, &usage));
    }
    let (message, finish) = match call {
        Some(call) => (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls"),
        None => (json!({"role": "assistant", "content": text}), "stop"),
    };
    let choices = json!([{"index": 0, "message": message, "finish_reason": finish}]);
    let answer = json!({"id": "c", "object": "chat.completion", "created": 1, "model": body["model"], "choices": choices, "usage": usage});
    (200, JSON, answer.to_string())
}

/// Returns the call of the tool that is forced, or of the first one.
fn called(body: &Value) -> Option<Value> {
    let tools = body["tools"].as_array()?;
    let forced = &body["tool_choice"]["function"]["name"];
    let tool = tools.iter().find(|tool| forced.is_null() || tool["function"]["name"] == *forced)?;
    let properties = tool["function"]["parameters"]["properties"].as_object().cloned().unwrap_or_default();
    let arguments: Map<String, Value> = properties.into_iter().map(|(name, _)| (name, json!("Paris"))).collect();
    let function = json!({"name": tool["function"]["name"], "arguments": Value::Object(arguments).to_string()});
    Some(json!({"id": "call_1", "type": "function", "function": function}))
}

fn streamed(body: &Value, call: Option<Value>, text: &str, usage: &Value) -> String {
    let chunk = |choices: Value, usage: &Value| {
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": body["model"],
            "choices": choices, "usage": usage});
        format!("data: {chunk}\n\n")
    };
    let delta = |delta: Value, finish: Value| {
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": finish}]), &Value::Null)
    };
    let mut all = delta(json!({"role": "assistant"}), Value::Null);
    match call {
        Some(mut call) => {
            call["index"] = 0.into();
            all.push_str(&delta(json!({"tool_calls": [call]}), Value::Null));
            all.push_str(&delta(json!({}), json!("tool_calls")));
        }
        None => {
            let characters: Vec<char> = text.chars().collect();
            for piece in characters.chunks(PIECE_CHARS) {
                all.push_str(&delta(json!({"content": piece.iter().collect::<String>()}), Value::Null));
            }
            all.push_str(&delta(json!({}), json!("stop")));
        }
    }
    all.push_str(&chunk(json!([]), usage));
    all.push_str("data: [DONE]\n\n");
    all
}
