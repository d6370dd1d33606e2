//! Translation of calls between the wire formats of the client and the model server.
//!
//! Equal formats need no translation: their bodies pass with only small changes (G-26). Their streams are still read,
//! for the log and to detect truncated answers.

mod event_parser;
mod formats;
mod stream;
mod upstream_format;

use assay_node_dialects::form::{ModelError, ModelRequest, ModelResponse, StreamEvent, unfold};
use assay_node_dialects::sse::write_event;
use assay_node_dialects::{Dialect, DialectError, WriteOptions, WrittenRequest};
use assay_node_dialects_anthropic::{self as anthropic, AnthropicReadOptions, body_for_bedrock};
use assay_node_dialects_chat::{self as chat, ChatStreamOptions};
use assay_node_dialects_converse::{self as converse, ConverseAnswer};
use assay_node_dialects_gemini as gemini;
use assay_node_dialects_responses as responses;
use serde_json::Value;

pub use event_parser::EventParser;
pub use formats::{StreamReader, StreamWriter};
pub use stream::{FinishedStream, StreamTranslation, TranslationError};
pub use upstream_format::{UpstreamFormat, error_status, event_bytes_max, read_error};

/// Model and mode of a request. Gemini's format has them in the path, other formats in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTarget<'a> {
    pub model: &'a str,
    pub stream: bool,
}

/// Translated request, with the state for translating its response.
#[derive(Clone, Debug)]
pub struct CallTranslation {
    client: Dialect,
    server: UpstreamFormat,
    options: WriteOptions,
    /// Id of the response, if its body has none.
    answer_id: String,
    /// Request in the internal form.
    pub request: ModelRequest,
    /// Body for the model server.
    pub body: Value,
    /// Parameters that the server does not support, and that only tune the answer.
    pub dropped: Vec<String>,
}

impl CallTranslation {
    /// Translates a request. `target` has the model name for the server.
    pub fn new(
        (client, server): (Dialect, impl Into<UpstreamFormat>),
        target: RequestTarget<'_>,
        body: &Value,
        options: WriteOptions,
    ) -> Result<CallTranslation, DialectError> {
        let mut request = read_request(client, target, body)?;
        request.model = target.model.to_owned();
        CallTranslation::of_request((client, server.into()), request, options)
    }

    /// Translates a request in the internal form.
    pub fn of_request(
        (client, server): (Dialect, UpstreamFormat),
        request: ModelRequest,
        options: WriteOptions,
    ) -> Result<CallTranslation, DialectError> {
        if server != UpstreamFormat::Client(Dialect::Responses) {
            responses::refuse_stateful(&request)?;
        }
        let WrittenRequest { body, dropped } = server.write_request(&request, &options)?;
        Ok(CallTranslation { client, server, options, answer_id: String::new(), request, body, dropped })
    }

    /// Moves the names in the header `anthropic-beta` to the body, if the server accepts them only there.
    pub fn take_betas(&mut self, header: Option<&str>) -> Result<(), DialectError> {
        if self.server == UpstreamFormat::BedrockAnthropic && header.is_some() {
            self.body = body_for_bedrock(&self.body, header)?;
        }
        Ok(())
    }

    /// Sets the id for a response whose body has none.
    pub fn set_answer_id(&mut self, id: impl Into<String>) {
        self.answer_id = id.into();
    }

    fn converse_answer(&self) -> ConverseAnswer {
        ConverseAnswer { id: self.answer_id.clone(), model: self.request.model.clone() }
    }

    fn uses_converse_tool(&self) -> bool {
        converse::uses_json_tool(&self.request, &self.options)
    }

    /// Reads a whole response of the server.
    pub fn read_response(&self, body: &Value) -> Result<ModelResponse, DialectError> {
        match self.server {
            UpstreamFormat::Client(Dialect::Chat) => {
                let mut response = chat::read_response(body)?;
                if self.options.schema_as_tool {
                    chat::text_of_json_tool(&mut response);
                }
                Ok(response)
            }
            UpstreamFormat::Client(Dialect::Responses) => responses::read_response(body),
            UpstreamFormat::Client(Dialect::Gemini) => gemini::read_response(body),
            UpstreamFormat::Client(Dialect::Anthropic)
            | UpstreamFormat::BedrockAnthropic
            | UpstreamFormat::VertexAnthropic => anthropic::read_response_with(body, self.anthropic_options()),
            UpstreamFormat::Converse => {
                let mut response = converse::read_response_of(&self.converse_answer(), body)?;
                if self.uses_converse_tool() {
                    chat::text_of_json_tool(&mut response);
                }
                Ok(response)
            }
        }
    }

    /// Returns the error in a failed response with the status 200.
    pub fn read_failure(&self, body: &Value) -> Option<ModelError> {
        match self.server {
            UpstreamFormat::Client(Dialect::Responses) => responses::failure(body),
            _ => None,
        }
    }

    /// Writes a whole response for the client.
    pub fn write_response(&self, mut response: ModelResponse) -> Value {
        match self.client {
            Dialect::Chat => {
                if chat::asks_for_function_call(&self.request) {
                    chat::use_function_call(&mut response);
                }
                let mut answer = chat::write_response(&response);
                chat::put_reasoning_text(&mut answer);
                answer
            }
            Dialect::Responses => responses::write_response(&response),
            Dialect::Anthropic => anthropic::write_response(&response),
            Dialect::Gemini => gemini::write_response(&response),
        }
    }

    /// Returns the translation for a streamed response.
    pub fn stream(&self) -> StreamTranslation {
        StreamTranslation::new(self.stream_reader(), self.stream_writer()).with_parser(self.server.parser())
    }

    /// Writes a whole response as a stream, for a streaming client of a server that does not stream.
    pub fn write_as_stream(&self, response: &ModelResponse) -> Vec<u8> {
        let mut writer = self.stream_writer();
        let events = unfold(response).into_iter().flat_map(|event| writer.write(&event));
        events.flat_map(|event| write_event(&event)).collect()
    }

    fn stream_reader(&self) -> StreamReader {
        match self.server {
            UpstreamFormat::Client(Dialect::Chat) => StreamReader::chat(self.options.schema_as_tool),
            UpstreamFormat::Client(Dialect::Responses) => StreamReader::responses(),
            UpstreamFormat::Client(Dialect::Gemini) => StreamReader::gemini(),
            UpstreamFormat::Client(Dialect::Anthropic) | UpstreamFormat::VertexAnthropic => {
                StreamReader::anthropic(self.anthropic_options())
            }
            UpstreamFormat::BedrockAnthropic => StreamReader::bedrock_anthropic(self.anthropic_options()),
            UpstreamFormat::Converse => StreamReader::converse(self.converse_answer(), self.uses_converse_tool()),
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

/// Returns a reader for streams that pass untranslated.
pub fn stream_reader(dialect: Dialect) -> StreamReader {
    match dialect {
        Dialect::Chat => StreamReader::chat(false),
        Dialect::Responses => StreamReader::responses(),
        Dialect::Anthropic => StreamReader::anthropic(AnthropicReadOptions::default()),
        Dialect::Gemini => StreamReader::gemini(),
    }
}

/// Writes an error event for a stream.
pub fn write_stream_error(dialect: Dialect, error: &ModelError) -> Vec<u8> {
    let mut writer = match dialect {
        Dialect::Chat => StreamWriter::chat(ChatStreamOptions::default()),
        Dialect::Responses => StreamWriter::responses(),
        Dialect::Anthropic => StreamWriter::anthropic(),
        Dialect::Gemini => StreamWriter::gemini(),
    };
    writer.write(&StreamEvent::Error(error.clone())).iter().flat_map(write_event).collect()
}

/// Reads a whole response that passes untranslated.
pub fn read_response(dialect: Dialect, body: &Value) -> Result<ModelResponse, DialectError> {
    match dialect {
        Dialect::Chat => chat::read_response(body),
        Dialect::Responses => responses::read_response(body),
        Dialect::Anthropic => anthropic::read_response(body),
        Dialect::Gemini => gemini::read_response(body),
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

/// Writes an error for a client (G-17).
pub fn write_error(dialect: Dialect, status: u16, error: &ModelError) -> Value {
    match dialect {
        Dialect::Chat => chat::write_error(status, error),
        Dialect::Responses => responses::write_error(status, error),
        Dialect::Anthropic => anthropic::write_error(status, error),
        Dialect::Gemini => gemini::write_error(status, error),
    }
}
