//! Model calls by this node itself, whose responses are read instead of passed on.

use assay_node_dialects::Dialect;
use assay_node_dialects::form::{FoldLimits, ModelError, ResponseFold, StreamEvent};
use assay_node_dialects::sse::SseParser;
use assay_node_dialects_chat as chat;
use serde_json::Value;

use crate::call::ModelCall;
use crate::error::GatewayError;
use crate::gateway::Gateway;
use crate::outcome::CallObserver;
use crate::reply::{ModelReply, ReplyBody};
use crate::translation::{StreamReader, TranslationError, event_bytes_max, read_error, stream_reader};

/// Response to a call by this node, in the format of OpenAI's API. Dropping it cancels the call.
#[derive(Debug)]
pub struct Conversation {
    /// Headers of the response, with names in lower case.
    headers: Vec<(String, String)>,
    answer: ReadAnswer,
}

/// Response, whole or streamed.
#[derive(Debug)]
enum ReadAnswer {
    Whole(Value),
    Streamed(Box<StreamedAnswer>),
}

/// Streamed response in progress.
#[derive(Debug)]
struct StreamedAnswer {
    body: ReplyBody,
    parser: SseParser,
    reader: StreamReader,
    fold: ResponseFold,
    is_over: bool,
}

impl Gateway {
    /// Calls a model and reads its response. An error response of a model server becomes an error with its status.
    pub async fn converse(
        &self,
        call: ModelCall,
        observer: Option<Box<dyn CallObserver>>,
    ) -> Result<Conversation, GatewayError> {
        let reply = Box::pin(self.call(call, observer)).await?;
        if !(200..300).contains(&reply.status) {
            return Err(refusal_of(reply));
        }
        let ModelReply { headers, body, .. } = reply;
        let is_events = |(name, value): &(String, String)| name == "content-type" && value.contains("event-stream");
        let answer = match body {
            ReplyBody::Whole(bytes) if !headers.iter().any(is_events) => {
                let read = serde_json::from_slice(&bytes);
                ReadAnswer::Whole(read.map_err(|why| unreadable(format!("the response is no JSON: {why}")))?)
            }
            // A whole body of events comes from the cache, or from a server that does not stream.
            body => ReadAnswer::Streamed(Box::new(StreamedAnswer {
                body,
                parser: SseParser::with_limit(event_bytes_max(Dialect::Chat)),
                reader: stream_reader(Dialect::Chat),
                fold: ResponseFold::new(FoldLimits::default()),
                is_over: false,
            })),
        };
        Ok(Conversation { headers, answer })
    }
}

impl Conversation {
    /// Returns a header of the response.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the next events of a stream, or `None` at its end. A whole response has no events.
    pub async fn next_events(&mut self) -> Result<Option<Vec<StreamEvent>>, GatewayError> {
        match &mut self.answer {
            ReadAnswer::Whole(_) => Ok(None),
            ReadAnswer::Streamed(answer) => answer.next_events().await,
        }
    }

    /// Returns the whole response. For a stream, it is composed of the events so far.
    pub fn into_response(self) -> Value {
        match self.answer {
            ReadAnswer::Whole(value) => value,
            ReadAnswer::Streamed(answer) => chat::write_response(answer.fold.response()),
        }
    }
}

impl StreamedAnswer {
    async fn next_events(&mut self) -> Result<Option<Vec<StreamEvent>>, GatewayError> {
        while !self.is_over {
            let bytes = match &mut self.body {
                ReplyBody::Whole(bytes) => Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty()),
                ReplyBody::Stream(stream) => stream.next().await.map_err(|cut| unreadable(cut.to_string()))?,
            };
            let events = match bytes {
                Some(bytes) => self.read(&bytes).map_err(|why| unreadable(why.to_string()))?,
                None => {
                    self.is_over = true;
                    self.finish().map_err(|why| unreadable(why.to_string()))?
                }
            };
            for event in &events {
                if let StreamEvent::Error(error) = event {
                    return Err(failed(error.clone()));
                }
                self.fold.push(event).map_err(|why| unreadable(why.to_string()))?;
            }
            if self.is_over && !self.fold.is_ended() {
                return Err(unreadable("the model server ended its answer early"));
            }
            if !events.is_empty() {
                return Ok(Some(events));
            }
        }
        Ok(None)
    }

    fn read(&mut self, bytes: &[u8]) -> Result<Vec<StreamEvent>, TranslationError> {
        let mut events = Vec::new();
        for event in self.parser.push(bytes)? {
            events.extend(self.reader.push(&event)?);
        }
        Ok(events)
    }

    fn finish(&mut self) -> Result<Vec<StreamEvent>, TranslationError> {
        let mut events = match self.parser.finish()? {
            Some(event) => self.reader.push(&event)?,
            None => Vec::new(),
        };
        events.extend(self.reader.finish());
        Ok(events)
    }
}

fn unreadable(why: impl Into<String>) -> GatewayError {
    GatewayError::new(502, "upstream_error", why)
}

fn failed(error: ModelError) -> GatewayError {
    GatewayError { status: error.kind.status(), error: Box::new(error), retry_after_s: None, limits: Vec::new() }
}

/// Returns the error in an error response of a model server.
fn refusal_of(reply: ModelReply) -> GatewayError {
    let body = match &reply.body {
        ReplyBody::Whole(bytes) => serde_json::from_slice(bytes).unwrap_or_default(),
        ReplyBody::Stream(_) => Value::Null,
    };
    let retry_after = reply.headers.iter().find(|(name, _)| name == "retry-after");
    GatewayError {
        status: reply.status,
        error: Box::new(read_error(Dialect::Chat, reply.status, &body)),
        retry_after_s: retry_after.and_then(|(_, seconds)| seconds.parse().ok()),
        limits: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;

    fn streamed(text: &str) -> Conversation {
        let answer = StreamedAnswer {
            body: ReplyBody::Whole(Bytes::from(text.to_owned())),
            parser: SseParser::new(),
            reader: stream_reader(Dialect::Chat),
            fold: ResponseFold::new(FoldLimits::default()),
            is_over: false,
        };
        Conversation { headers: Vec::new(), answer: ReadAnswer::Streamed(Box::new(answer)) }
    }

    async fn all(conversation: &mut Conversation) -> Result<usize, GatewayError> {
        let mut count = 0;
        while let Some(events) = conversation.next_events().await? {
            count += events.len();
        }
        Ok(count)
    }

    #[tokio::test]
    async fn the_events_of_a_stream_add_up_to_its_response() {
        let chunk = |delta: Value, finish: Value| {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
            format!("data: {}\n\n", json!({"id": "c", "model": "m", "created": 1, "choices": [choice]}))
        };
        let usage =
            json!({"id": "c", "model": "m", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
        let text = [
            chunk(json!({"role": "assistant", "content": "Hel"}), Value::Null),
            chunk(json!({"content": "lo"}), Value::Null),
            ": ping\n\n".to_owned(),
            chunk(json!({}), json!("stop")),
            format!("data: {usage}\n\ndata: [DONE]\n\n"),
        ];
        let mut conversation = streamed(&text.concat());
        assert!(all(&mut conversation).await.expect("a stream") > 3);
        let response = conversation.into_response();
        assert_eq!(response["choices"][0]["message"]["content"], "Hello");
        assert_eq!(response["usage"]["prompt_tokens"], 3);
        let mut cut = streamed(&text[..2].concat());
        assert_eq!(all(&mut cut).await.map_err(|error| error.status), Err(502));
    }

    #[tokio::test]
    async fn an_error_in_a_stream_ends_it() {
        let mut conversation =
            streamed("data: {\"error\": {\"message\": \"too much\", \"type\": \"rate_limit_error\"}}\n\n");
        let error = all(&mut conversation).await.expect_err("an error");
        assert_eq!(error.error.message, "too much");
    }

    #[test]
    fn a_refusal_has_the_status_and_the_words_of_its_server() {
        let reply = ModelReply {
            status: 429,
            headers: vec![("retry-after".to_owned(), "7".to_owned())],
            body: ReplyBody::Whole(Bytes::from_static(b"{\"error\": {\"message\": \"slow down\"}}")),
        };
        let error = refusal_of(reply);
        assert_eq!((error.status, error.retry_after_s, error.error.message.as_str()), (429, Some(7), "slow down"));
    }
}
