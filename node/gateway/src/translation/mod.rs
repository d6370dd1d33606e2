//! Translation of one call between the wire format of the client and that of the model server.
//!
//! Equal formats need no translation: their bodies pass with small changes only (G-26). Their streams are read all the
//! same, for the log and to tell a complete answer from one that was cut.

mod formats;
mod stream;

use assay_node_dialects::form::{ModelError, ModelRequest, ModelResponse, StreamEvent, unfold};
use assay_node_dialects::sse::{SSE_EVENT_BYTES_MAX, write_event};
use assay_node_dialects::{Dialect, DialectError, WriteOptions};
use assay_node_dialects_anthropic::{self as anthropic, AnthropicReadOptions};
use assay_node_dialects_chat::{self as chat, ChatStreamOptions};
use assay_node_dialects_gemini as gemini;
use assay_node_dialects_responses as responses;
use serde_json::Value;

pub use formats::{StreamReader, StreamWriter};
pub use stream::{FinishedStream, StreamTranslation, TranslationError};

/// Model and mode of a request. Gemini has them in the path of the URL, other formats in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTarget<'a> {
    pub model: &'a str,
    pub stream: bool,
}

/// A request that was translated for a model server, and what is needed to translate the answer back.
#[derive(Clone, Debug)]
pub struct CallTranslation {
    client: Dialect,
    server: Dialect,
    options: WriteOptions,
    /// The request in the internal form.
    pub request: ModelRequest,
    /// Body for the model server.
    pub body: Value,
    /// Parameters that the server cannot express and that only tune the answer.
    pub dropped: Vec<String>,
}

impl CallTranslation {
    /// Translates a request. The name of the model may be another one at the server.
    pub fn new(
        (client, server): (Dialect, Dialect),
        target: RequestTarget<'_>,
        body: &Value,
        options: WriteOptions,
    ) -> Result<CallTranslation, DialectError> {
        let mut request = read_request(client, target, body)?;
        request.model = target.model.to_owned();
        CallTranslation::of_request((client, server), request, options)
    }

    /// Translates a request that was read already.
    pub fn of_request(
        (client, server): (Dialect, Dialect),
        request: ModelRequest,
        options: WriteOptions,
    ) -> Result<CallTranslation, DialectError> {
        if server != Dialect::Responses {
            responses::refuse_stateful(&request)?;
        }
        let written = write_request(server, &request, &options)?;
        Ok(CallTranslation { client, server, options, request, body: written.body, dropped: written.dropped })
    }

    /// Reads the whole answer of the server.
    pub fn read_response(&self, body: &Value) -> Result<ModelResponse, DialectError> {
        match self.server {
            Dialect::Chat => {
                let mut response = chat::read_response(body)?;
                if self.options.schema_as_tool {
                    chat::text_of_json_tool(&mut response);
                }
                Ok(response)
            }
            Dialect::Responses => responses::read_response(body),
            Dialect::Anthropic => anthropic::read_response_with(body, self.anthropic_options()),
            Dialect::Gemini => gemini::read_response(body),
        }
    }

    /// Returns the error of an answer that failed although its status is 200.
    pub fn read_failure(&self, body: &Value) -> Option<ModelError> {
        match self.server {
            Dialect::Responses => responses::failure(body),
            _ => None,
        }
    }

    /// Writes a whole answer for the client.
    pub fn write_response(&self, mut response: ModelResponse) -> Value {
        match self.client {
            Dialect::Chat => {
                if chat::asks_for_function_call(&self.request) {
                    chat::use_function_call(&mut response);
                }
                chat::write_response(&response)
            }
            Dialect::Responses => responses::write_response(&response),
            Dialect::Anthropic => anthropic::write_response(&response),
            Dialect::Gemini => gemini::write_response(&response),
        }
    }

    /// Returns the translation of the streamed answer.
    pub fn stream(&self) -> StreamTranslation {
        StreamTranslation::new(self.stream_reader(), self.stream_writer())
            .with_event_limit(event_bytes_max(self.server))
    }

    /// Writes a whole answer as a stream, for a client that wants one from a server that has none.
    pub fn write_as_stream(&self, response: &ModelResponse) -> Vec<u8> {
        let mut writer = self.stream_writer();
        let events = unfold(response).into_iter().flat_map(|event| writer.write(&event));
        events.flat_map(|event| write_event(&event)).collect()
    }

    fn stream_reader(&self) -> StreamReader {
        match self.server {
            Dialect::Chat => StreamReader::chat(self.options.schema_as_tool),
            Dialect::Responses => StreamReader::responses(),
            Dialect::Anthropic => StreamReader::anthropic(self.anthropic_options()),
            Dialect::Gemini => StreamReader::gemini(),
        }
    }

    fn stream_writer(&self) -> StreamWriter {
        match self.client {
            Dialect::Chat => StreamWriter::chat(ChatStreamOptions {
                include_usage: self.request.include_usage,
                function_call: chat::asks_for_function_call(&self.request),
            }),
            Dialect::Responses => StreamWriter::responses(),
            Dialect::Anthropic => StreamWriter::anthropic(),
            Dialect::Gemini => StreamWriter::gemini(),
        }
    }

    fn anthropic_options(&self) -> AnthropicReadOptions {
        AnthropicReadOptions::for_request(&self.request, &self.options)
    }
}

/// Returns a reader of streams in one wire format, for those that pass untranslated.
pub fn stream_reader(dialect: Dialect) -> StreamReader {
    match dialect {
        Dialect::Chat => StreamReader::chat(false),
        Dialect::Responses => StreamReader::responses(),
        Dialect::Anthropic => StreamReader::anthropic(AnthropicReadOptions::default()),
        Dialect::Gemini => StreamReader::gemini(),
    }
}

/// Returns the bytes by which a stream of one wire format says that it failed.
pub fn write_stream_error(dialect: Dialect, error: &ModelError) -> Vec<u8> {
    let mut writer = match dialect {
        Dialect::Chat => StreamWriter::chat(ChatStreamOptions::default()),
        Dialect::Responses => StreamWriter::responses(),
        Dialect::Anthropic => StreamWriter::anthropic(),
        Dialect::Gemini => StreamWriter::gemini(),
    };
    writer.write(&StreamEvent::Error(error.clone())).iter().flat_map(write_event).collect()
}

/// Upper bound of the bytes of one event. Servers of Gemini send an image in one event.
pub fn event_bytes_max(server: Dialect) -> usize {
    const IMAGE_EVENT_BYTES_MAX: usize = 16 << 20;
    match server {
        Dialect::Gemini => IMAGE_EVENT_BYTES_MAX,
        _ => SSE_EVENT_BYTES_MAX,
    }
}

/// Reads a whole answer of a server whose requests pass untranslated.
pub fn read_response(dialect: Dialect, body: &Value) -> Result<ModelResponse, DialectError> {
    match dialect {
        Dialect::Chat => chat::read_response(body),
        Dialect::Responses => responses::read_response(body),
        Dialect::Anthropic => anthropic::read_response(body),
        Dialect::Gemini => gemini::read_response(body),
    }
}

/// Returns the status of a response with an error, where nothing else says it.
pub fn error_status(dialect: Dialect, error: &ModelError) -> u16 {
    match dialect {
        Dialect::Chat => chat::error_status(error),
        Dialect::Responses => responses::error_status(error),
        Dialect::Anthropic => anthropic::error_status(error),
        Dialect::Gemini => gemini::error_status(error),
    }
}

/// Reads the request of a client.
pub fn read_request(dialect: Dialect, target: RequestTarget<'_>, body: &Value) -> Result<ModelRequest, DialectError> {
    match dialect {
        Dialect::Chat => chat::read_request(body),
        Dialect::Responses => responses::read_request(body),
        Dialect::Anthropic => anthropic::read_request(body),
        Dialect::Gemini => gemini::read_request(target.model, target.stream, body),
    }
}

fn write_request(
    dialect: Dialect,
    request: &ModelRequest,
    options: &WriteOptions,
) -> Result<assay_node_dialects::WrittenRequest, DialectError> {
    match dialect {
        Dialect::Chat => chat::write_request(request, options),
        Dialect::Responses => responses::write_request(request, options),
        Dialect::Anthropic => anthropic::write_request(request, options),
        Dialect::Gemini => gemini::write_request(request, options),
    }
}

/// Reads the error of a model server.
pub fn read_error(dialect: Dialect, status: u16, body: &Value) -> ModelError {
    match dialect {
        Dialect::Chat => chat::read_error(status, body),
        Dialect::Responses => responses::read_error(status, body),
        Dialect::Anthropic => anthropic::read_error(status, body),
        Dialect::Gemini => gemini::read_error(status, body),
    }
}

/// Writes an error for a client (G-17).
pub fn write_error(dialect: Dialect, status: u16, error: &ModelError) -> Value {
    match dialect {
        Dialect::Chat => chat::write_error(status, error),
        Dialect::Responses => responses::write_error(status, error),
        Dialect::Anthropic => anthropic::write_error(status, error),
        Dialect::Gemini => gemini::write_error(status, error),
    }
}
