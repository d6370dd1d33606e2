//! Texts of the scripted conversations: requests of clients, answers of the model server, and times in streamed text.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde_json::{Value, json};

/// Model that answers at once.
pub const WHOLE: &str = "scripted";
/// Model with an event each 20 ms.
pub const PACED: &str = "scripted-paced-20-100";
/// Model with an event a second, for open streams.
pub const OPEN: &str = "scripted-paced-1000-300";
/// Begin of the names of the same models at a server of Anthropic's format.
pub const MESSAGES: &str = "messages-";

/// About 100 words, so that a request has the size of a short question with instructions.
const INSTRUCTIONS: &str = "You are the assistant of a shop. Answer questions about orders, deliveries and returns. \
    Be brief and friendly. Say so where you do not know something, and never invent an order, a price or a date. \
    Orders can be returned within thirty days in their original packaging. Refunds take up to ten working days.";
const QUESTION: &str = "I ordered two lamps eleven days ago, and only one of them arrived yesterday. The package had a \
    dent, but the lamp works. The tracking page says that both were delivered. Can you tell me where the second lamp \
    is, whether I can return the first one without the second, and how long the refund would take? I paid by card, \
    and I still have the packaging of the first lamp, though the box is a little damaged on one side.";
const ANSWER: &str = "I am sorry that only one of your two lamps arrived. The tracking page shows the delivery of the \
    whole order, so I have asked the carrier to look for the second package; you will hear from us within two working \
    days. You can return the first lamp without the second. A small damage of the box is no problem, as long as the \
    lamp itself is packed safely. Once we have it, the refund to your card takes up to ten working days. Would you \
    like me to send you the label for the return now, or would you rather wait until the second lamp is found?";

/// Wire format of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptForm {
    Chat,
    Messages,
}

impl ScriptForm {
    pub fn path(self) -> &'static str {
        match self {
            ScriptForm::Chat => "/v1/chat/completions",
            ScriptForm::Messages => "/v1/messages",
        }
    }

    /// Returns the request of a client.
    pub fn request(self, model: &str, stream: bool) -> Bytes {
        let user = json!({ "role": "user", "content": QUESTION });
        let mut body = json!({ "model": model, "max_tokens": 256, "temperature": 0.7, "stream": stream });
        match self {
            ScriptForm::Chat => body["messages"] = json!([{ "role": "system", "content": INSTRUCTIONS }, user]),
            ScriptForm::Messages => {
                body["system"] = json!(INSTRUCTIONS);
                body["messages"] = json!([user]);
            }
        }
        Bytes::from(body.to_string())
    }

    /// Returns the whole answer of the model server.
    pub fn answer(self) -> Bytes {
        let body = match self {
            ScriptForm::Chat => json!({
                "id": "chatcmpl-scripted",
                "object": "chat.completion",
                "created": 1_790_000_000,
                "model": WHOLE,
                "choices": [{
                    "index": 0,
                    "message": { "role": "assistant", "content": ANSWER, "refusal": null },
                    "logprobs": null,
                    "finish_reason": "stop"
                }],
                "usage": { "prompt_tokens": 190, "completion_tokens": 128, "total_tokens": 318 },
                "system_fingerprint": "fp_scripted"
            }),
            ScriptForm::Messages => json!({
                "id": "msg_scripted",
                "type": "message",
                "role": "assistant",
                "model": WHOLE,
                "content": [{ "type": "text", "text": ANSWER }],
                "stop_reason": "end_turn",
                "stop_sequence": null,
                "usage": { "input_tokens": 190, "output_tokens": 128 }
            }),
        };
        Bytes::from(body.to_string())
    }

    /// Returns the events before the text of a stream.
    pub fn begin(self) -> Bytes {
        match self {
            ScriptForm::Chat => chunk(json!({ "role": "assistant", "content": "" }), Value::Null),
            ScriptForm::Messages => {
                let message = json!({
                    "id": "msg_scripted", "type": "message", "role": "assistant", "model": WHOLE, "content": [],
                    "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 190, "output_tokens": 1 }
                });
                let block = json!({ "type": "text", "text": "" });
                let begin = event("message_start", json!({ "message": message }));
                [begin, event("content_block_start", json!({ "index": 0, "content_block": block }))].concat().into()
            }
        }
    }

    /// Returns an event whose text is the time now.
    pub fn timed(self) -> Bytes {
        let text = format!("@{};", now_ns());
        match self {
            ScriptForm::Chat => chunk(json!({ "content": text }), Value::Null),
            ScriptForm::Messages => {
                let delta = json!({ "type": "text_delta", "text": text });
                event("content_block_delta", json!({ "index": 0, "delta": delta })).into()
            }
        }
    }

    /// Returns the events behind the text of a stream.
    pub fn end(self) -> Bytes {
        match self {
            ScriptForm::Chat => {
                let last = chunk(json!({}), json!("stop"));
                [&last[..], b"data: [DONE]\n\n"].concat().into()
            }
            ScriptForm::Messages => {
                let delta = json!({ "stop_reason": "end_turn", "stop_sequence": null });
                let usage = json!({ "output_tokens": 128 });
                let events = [
                    event("content_block_stop", json!({ "index": 0 })),
                    event("message_delta", json!({ "delta": delta, "usage": usage })),
                    event("message_stop", json!({})),
                ];
                events.concat().into()
            }
        }
    }
}

fn chunk(delta: Value, finish: Value) -> Bytes {
    let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish });
    let chunk = json!({
        "id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1_790_000_000, "model": WHOLE,
        "choices": [choice]
    });
    Bytes::from(format!("data: {chunk}\n\n"))
}

fn event(name: &str, mut data: Value) -> Vec<u8> {
    data["type"] = json!(name);
    format!("event: {name}\ndata: {data}\n\n").into_bytes()
}

/// Nanoseconds of the clock that all processes of this machine share.
pub fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// Reader of the times in a streamed text, however its bytes are cut.
#[derive(Clone, Debug, Default)]
pub struct TimeReader {
    /// Digits of the time that is being read.
    digits: Option<u64>,
}

impl TimeReader {
    /// Calls `found` with each time whose end is in these bytes.
    pub fn push(&mut self, bytes: &[u8], mut found: impl FnMut(u64)) {
        for byte in bytes {
            match (byte, self.digits) {
                (b'@', _) => self.digits = Some(0),
                (b'0'..=b'9', Some(digits)) => {
                    self.digits = Some(digits.wrapping_mul(10).wrapping_add(u64::from(byte - b'0')));
                }
                (b';', Some(digits)) => {
                    found(digits);
                    self.digits = None;
                }
                _ => self.digits = None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_from_events_of_both_forms_however_they_are_cut() {
        for form in [ScriptForm::Chat, ScriptForm::Messages] {
            let before = now_ns();
            let text = [form.begin(), form.timed(), form.timed(), form.end()].concat();
            for step in 1..text.len() {
                let (mut reader, mut times) = (TimeReader::default(), Vec::new());
                text.chunks(step).for_each(|bytes| reader.push(bytes, |time| times.push(time)));
                assert_eq!(times.len(), 2, "{form:?} by {step}");
                assert!(times.is_sorted() && times[0] >= before);
            }
        }
    }

    #[test]
    fn requests_name_their_model_and_mode() {
        for form in [ScriptForm::Chat, ScriptForm::Messages] {
            let body: Value = serde_json::from_slice(&form.request(PACED, true)).expect("JSON");
            assert_eq!((&body["model"], &body["stream"]), (&json!(PACED), &json!(true)));
            assert!(serde_json::from_slice::<Value>(&form.answer()).expect("JSON")["usage"].is_object());
        }
    }
}
