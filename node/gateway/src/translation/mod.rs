//! Translation of one call between the wire format of the client and that of the model server.
//!
//! Equal formats need no translation: their bodies pass with small changes only (G-26). Their streams are read all the
//! same, for the log and to tell a complete answer from one that was cut.

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
    server: UpstreamFormat,
    options: WriteOptions,
    /// Id of the answer, where its body has none.
    answer_id: String,
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
        (client, server): (Dialect, impl Into<UpstreamFormat>),
        target: RequestTarget<'_>,
        body: &Value,
        options: WriteOptions,
    ) -> Result<CallTranslation, DialectError> {
        let mut request = read_request(client, target, body)?;
        request.model = target.model.to_owned();
        CallTranslation::of_request((client, server.into()), request, options)
    }

    /// Translates a request that was read already.
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

    /// Puts the names of the header `anthropic-beta` into the body, if the server takes them there only.
    pub fn take_betas(&mut self, header: Option<&str>) -> Result<(), DialectError> {
        if self.server == UpstreamFormat::BedrockAnthropic && header.is_some() {
            self.body = body_for_bedrock(&self.body, header)?;
        }
        Ok(())
    }

    /// Names the answer, whose body may have no id.
    pub fn set_answer_id(&mut self, id: impl Into<String>) {
        self.answer_id = id.into();
    }

    fn converse_answer(&self) -> ConverseAnswer {
        ConverseAnswer { id: self.answer_id.clone(), model: self.request.model.clone() }
    }

    fn uses_converse_tool(&self) -> bool {
        converse::uses_json_tool(&self.request, &self.options)
    }

    /// Reads the whole answer of the server.
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

    /// Returns the error of an answer that failed although its status is 200.
    pub fn read_failure(&self, body: &Value) -> Option<ModelError> {
        match self.server {
            UpstreamFormat::Client(Dialect::Responses) => responses::failure(body),
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
                let mut answer = chat::write_response(&response);
                chat::put_reasoning_text(&mut answer);
                answer
            }
            Dialect::Responses => responses::write_response(&response),
            Dialect::Anthropic => anthropic::write_response(&response),
            Dialect::Gemini => gemini::write_response(&response),
        }
    }

    /// Returns the translation of the streamed answer.
    pub fn stream(&self) -> StreamTranslation {
        StreamTranslation::new(self.stream_reader(), self.stream_writer()).with_parser(self.server.parser())
    }

    /// Writes a whole answer as a stream, for a client that wants one from a server that has none.
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

/// Reads a whole answer of a server whose requests pass untranslated.
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
