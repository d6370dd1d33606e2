//! Wire formats of model servers: those of clients, and those that only cloud servers use.

use assay_node_dialects::form::{ModelError, ModelRequest};
use assay_node_dialects::sse::SSE_EVENT_BYTES_MAX;
use assay_node_dialects::{Dialect, DialectError, WriteOptions, WrittenRequest};
use assay_node_dialects_anthropic::{self as anthropic, body_for_bedrock, body_for_vertex};
use assay_node_dialects_chat as chat;
use assay_node_dialects_converse as converse;
use assay_node_dialects_gemini as gemini;
use assay_node_dialects_responses as responses;
use serde_json::Value;

use super::EventParser;

/// Upper bound of the bytes of one Gemini event, which may contain a whole image.
const IMAGE_EVENT_BYTES_MAX: usize = 16 << 20;

/// Wire format of a model server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamFormat {
    /// Format that clients also use. Only bodies in such a format pass untranslated.
    Client(Dialect),
    /// Converse API of Amazon Bedrock.
    Converse,
    /// Messages of Anthropic through InvokeModel of Amazon Bedrock.
    BedrockAnthropic,
    /// Messages of Anthropic through `rawPredict` of Google Vertex.
    VertexAnthropic,
}

impl From<Dialect> for UpstreamFormat {
    fn from(dialect: Dialect) -> UpstreamFormat {
        UpstreamFormat::Client(dialect)
    }
}

impl UpstreamFormat {
    /// Returns the dialect of requests before the changes for a cloud, or `None` for Converse.
    pub fn dialect(self) -> Option<Dialect> {
        match self {
            UpstreamFormat::Client(dialect) => Some(dialect),
            UpstreamFormat::BedrockAnthropic | UpstreamFormat::VertexAnthropic => Some(Dialect::Anthropic),
            UpstreamFormat::Converse => None,
        }
    }

    /// Returns whether streams are binary event streams of AWS.
    pub fn is_aws_stream(self) -> bool {
        matches!(self, UpstreamFormat::Converse | UpstreamFormat::BedrockAnthropic)
    }

    /// Returns the media type of streams.
    pub fn stream_type(self) -> &'static str {
        if self.is_aws_stream() { converse::EVENT_STREAM_TYPE } else { "text/event-stream" }
    }

    pub(super) fn parser(self) -> EventParser {
        if self.is_aws_stream() { EventParser::aws() } else { EventParser::sse(event_bytes_max(self)) }
    }

    pub(super) fn write_request(
        self,
        request: &ModelRequest,
        options: &WriteOptions,
    ) -> Result<WrittenRequest, DialectError> {
        let Some(dialect) = self.dialect() else { return converse::write_request(request, options) };
        let written = match dialect {
            Dialect::Chat => chat::write_request(request, options),
            Dialect::Responses => responses::write_request(request, options),
            Dialect::Anthropic => anthropic::write_request(request, options),
            Dialect::Gemini => gemini::write_request(request, options),
        }?;
        let WrittenRequest { body, dropped } = written;
        let body = match self {
            UpstreamFormat::BedrockAnthropic => body_for_bedrock(&body, None)?,
            UpstreamFormat::VertexAnthropic => body_for_vertex(&body)?,
            _ => body,
        };
        Ok(WrittenRequest { body, dropped })
    }
}

/// Upper bound of the bytes of one server-sent event.
pub fn event_bytes_max(server: impl Into<UpstreamFormat>) -> usize {
    match server.into() {
        UpstreamFormat::Client(Dialect::Gemini) => IMAGE_EVENT_BYTES_MAX,
        _ => SSE_EVENT_BYTES_MAX,
    }
}

/// Returns the status for an error, if its response has no status of its own.
pub fn error_status(server: impl Into<UpstreamFormat>, error: &ModelError) -> u16 {
    match server.into().dialect() {
        Some(Dialect::Chat) => chat::error_status(error),
        Some(Dialect::Responses) => responses::error_status(error),
        Some(Dialect::Anthropic) => anthropic::error_status(error),
        Some(Dialect::Gemini) => gemini::error_status(error),
        None => error.kind.status(),
    }
}

/// Reads the error of a model server. It always has a message.
pub fn read_error(server: impl Into<UpstreamFormat>, status: u16, body: &Value) -> ModelError {
    let mut error = read_error_in(server.into(), status, body);
    if error.message.trim().is_empty() {
        error.message = format!("the model server answered with status {status}");
    }
    error
}

fn read_error_in(server: UpstreamFormat, status: u16, body: &Value) -> ModelError {
    match server {
        UpstreamFormat::Client(Dialect::Chat) => chat::read_error(status, body),
        UpstreamFormat::Client(Dialect::Responses) => responses::read_error(status, body),
        UpstreamFormat::Client(Dialect::Gemini) => gemini::read_error(status, body),
        UpstreamFormat::Converse | UpstreamFormat::BedrockAnthropic => converse::read_error(status, body),
        // Errors of Vertex itself are in Google's format.
        UpstreamFormat::VertexAnthropic if body.pointer("/error/status").is_some() => gemini::read_error(status, body),
        UpstreamFormat::Client(Dialect::Anthropic) | UpstreamFormat::VertexAnthropic => {
            anthropic::read_error(status, body)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_without_a_message_tells_its_status() {
        let formats = Dialect::ALL.map(UpstreamFormat::Client);
        for server in formats.into_iter().chain([UpstreamFormat::Converse, UpstreamFormat::VertexAnthropic]) {
            for body in [json!({"message": ""}), json!({"error": {"message": " "}})] {
                let message = read_error(server, 503, &body).message;
                assert!(!message.trim().is_empty(), "{server:?}, {body}");
            }
        }
        let message = read_error(UpstreamFormat::Converse, 503, &json!({"message": ""})).message;
        assert_eq!(message, "the model server answered with status 503");
    }
}
