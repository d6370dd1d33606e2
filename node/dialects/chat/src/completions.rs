//! Text completions, the predecessor of chat: views of bodies that pass as they are.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use crate::{count_of, read_stream_error, read_usage};
use assay_node_dialects::form::{FoldLimits, ModelError, TokenUsage};
use assay_node_dialects::{Dialect, DialectError, SseEvent, WriteOptions};

/// Size of a prompt or of an input, which is one text, one list of tokens, or a list of either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PromptSize {
    /// Number of texts and lists of tokens.
    pub inputs: usize,
    pub text_bytes: u64,
    pub tokens: u64,
}

impl PromptSize {
    /// Reads the size of the member of a body that has the prompts.
    pub fn of(path: &str, value: &Value) -> Result<PromptSize, DialectError> {
        let expected = "a text, a list of tokens, or a list of either";
        let malformed = |path: String| DialectError::malformed(path, expected);
        let mut size = PromptSize::default();
        match value {
            Value::Array(values) if values.is_empty() => return Err(malformed(path.to_owned())),
            Value::Array(values) if !values.iter().all(Value::is_u64) => {
                for (at, value) in values.iter().enumerate() {
                    size.add(value).ok_or_else(|| malformed(format!("{path}[{at}]")))?;
                }
            }
            value => size.add(value).ok_or_else(|| malformed(path.to_owned()))?,
        }
        Ok(size)
    }

    fn add(&mut self, value: &Value) -> Option<()> {
        match value {
            Value::String(text) => self.text_bytes += text.len() as u64,
            Value::Array(tokens) if tokens.iter().all(Value::is_u64) => self.tokens += tokens.len() as u64,
            _ => return None,
        }
        self.inputs += 1;
        Some(())
    }

    /// Estimates the tokens: four bytes of a text are one.
    pub fn estimated_tokens(&self) -> u64 {
        self.tokens + self.text_bytes.div_ceil(4)
    }
}

/// What the gateway needs of a request, and the whole body.
#[derive(Clone, Debug, PartialEq)]
pub struct CompletionRequest {
    pub model: String,
    pub prompt: PromptSize,
    pub stream: bool,
    /// Whether the client wants a last chunk with the usage.
    pub include_usage: bool,
    /// Upper bound of the tokens of one answer.
    pub max_output_tokens: Option<u64>,
    /// Number of answers to each prompt that the model makes: the larger of `n` and `best_of`.
    pub answers: u64,
    pub body: Map<String, Value>,
}

impl CompletionRequest {
    /// Reads a body. A missing prompt is one that is empty.
    pub fn read(body: &Value) -> Result<CompletionRequest, DialectError> {
        let body = body.as_object().ok_or_else(|| DialectError::malformed("body", "an object"))?;
        let prompt =
            present(body, "prompt").map_or(Ok(PromptSize::default()), |prompt| PromptSize::of("prompt", prompt));
        let [n, best_of, max_output_tokens] = ["n", "best_of", "max_tokens"].map(|name| count(body, name));
        let include_usage = match present(body, "stream_options") {
            Some(options) => options["include_usage"] == true,
            None => false,
        };
        Ok(CompletionRequest {
            model: model_of(body)?,
            prompt: prompt?,
            stream: flag(body, "stream")?,
            include_usage,
            max_output_tokens: max_output_tokens?,
            answers: n?.max(best_of?).unwrap_or(1),
            body: body.clone(),
        })
    }

    /// Returns the body for a server that may name the model otherwise. It is asked for the usage of a stream (G-33).
    pub fn body_for(&self, model: &str, options: &WriteOptions) -> Value {
        let mut body = self.body.clone();
        body.insert("model".to_owned(), json!(model));
        body.shift_remove("use_cache");
        if !options.takes_stream_options || !self.stream {
            body.shift_remove("stream_options");
            return Value::Object(body);
        }
        let asked = body.entry("stream_options").or_insert_with(|| json!({}));
        if !asked.is_object() {
            *asked = json!({});
        }
        asked["include_usage"] = json!(true);
        Value::Object(body)
    }
}

pub(crate) fn model_of(body: &Map<String, Value>) -> Result<String, DialectError> {
    let model = body.get("model").and_then(Value::as_str);
    model.map(str::to_owned).ok_or_else(|| DialectError::malformed("model", "a text"))
}

fn present<'a>(body: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    body.get(name).filter(|value| !value.is_null())
}

pub(crate) fn count(body: &Map<String, Value>, name: &str) -> Result<Option<u64>, DialectError> {
    let read =
        |value| count_of(value).ok_or_else(|| DialectError::malformed(name, "a whole number that is not negative"));
    present(body, name).map(read).transpose()
}

fn flag(body: &Map<String, Value>, name: &str) -> Result<bool, DialectError> {
    let read = |value: &Value| value.as_bool().ok_or_else(|| DialectError::malformed(name, "true or false"));
    present(body, name).map_or(Ok(false), read)
}

/// What the gateway needs of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompletionResponse {
    pub id: String,
    pub model: String,
    /// Choices as the server sent them, for the log.
    pub choices: Vec<Value>,
    pub usage: Option<TokenUsage>,
}

impl CompletionResponse {
    pub fn read(body: &Value) -> Result<CompletionResponse, DialectError> {
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        let choices = body["choices"].as_array().ok_or_else(|| DialectError::malformed("choices", "a list"))?;
        Ok(CompletionResponse {
            id: text("id"),
            model: text("model"),
            choices: choices.clone(),
            usage: read_usage(&body["usage"]),
        })
    }
}

/// Answer that the chunks of a stream are added to.
#[derive(Debug, Default)]
pub struct CompletionStreamFold {
    limits: FoldLimits,
    response: CompletionResponse,
    /// Indexes of the choices, in their order.
    indexes: Vec<u64>,
    bytes: usize,
    error: Option<ModelError>,
    is_ended: bool,
}

impl CompletionStreamFold {
    pub fn new(limits: FoldLimits) -> CompletionStreamFold {
        CompletionStreamFold { limits, ..CompletionStreamFold::default() }
    }

    /// Adds an event of the server.
    pub fn push(&mut self, event: &SseEvent) -> Result<(), DialectError> {
        if self.is_ended || self.error.is_some() || event.data.trim().is_empty() {
            return Ok(());
        }
        if event.data.trim() == "[DONE]" {
            self.is_ended = true;
            return Ok(());
        }
        self.bytes = self.bytes.saturating_add(event.data.len());
        if self.bytes > self.limits.bytes_max {
            return Err(DialectError::TooMany { dialect: Dialect::Chat, of: "bytes", max: self.limits.bytes_max });
        }
        let chunk: Value = serde_json::from_str(&event.data)
            .map_err(|error| DialectError::Stream(format!("a chunk is no JSON: {error}")))?;
        if chunk.get("error").is_some_and(|error| !error.is_null()) || chunk["object"] == "error" {
            self.error = Some(read_stream_error(&chunk));
            return Ok(());
        }
        for (name, kept) in [("id", &mut self.response.id), ("model", &mut self.response.model)] {
            if kept.is_empty() {
                *kept = chunk[name].as_str().unwrap_or_default().to_owned();
            }
        }
        for choice in chunk["choices"].as_array().into_iter().flatten() {
            self.add(choice)?;
        }
        if let Some(usage) = read_usage(&chunk["usage"]) {
            self.response.usage = Some(usage);
        }
        Ok(())
    }

    fn add(&mut self, choice: &Value) -> Result<(), DialectError> {
        let Some(added) = choice.as_object() else { return Err(DialectError::malformed("choices[]", "an object")) };
        let index = added.get("index").and_then(count_of).unwrap_or(0);
        let at = match self.indexes.binary_search(&index) {
            Ok(at) => at,
            Err(_) if self.indexes.len() == self.limits.choices_max => {
                let max = self.limits.choices_max;
                return Err(DialectError::TooMany { dialect: Dialect::Chat, of: "choices", max });
            }
            Err(at) => {
                self.indexes.insert(at, index);
                self.response.choices.insert(at, choice.clone());
                return Ok(());
            }
        };
        let kept = &mut self.response.choices[at];
        for (name, value) in added {
            match (&mut kept[name], value) {
                (Value::String(kept), Value::String(text)) if name == "text" => kept.push_str(text),
                (Value::Object(kept), Value::Object(lists)) if name == "logprobs" => append_lists(kept, lists),
                (_, Value::Null) => {}
                (kept, value) => *kept = value.clone(),
            }
        }
        Ok(())
    }

    pub fn response(&self) -> &CompletionResponse {
        &self.response
    }

    /// Returns the error that ended the stream.
    pub fn error(&self) -> Option<&ModelError> {
        self.error.as_ref()
    }

    /// Returns whether the stream had its regular end.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }
}

fn append_lists(kept: &mut Map<String, Value>, added: &Map<String, Value>) {
    for (name, value) in added {
        match (kept.get_mut(name), value) {
            (Some(Value::Array(kept)), Value::Array(added)) => kept.extend(added.iter().cloned()),
            _ => {
                kept.insert(name.clone(), value.clone());
            }
        }
    }
}
