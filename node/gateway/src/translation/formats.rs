//! Stream readers and writers for all wire formats.

use assay_node_dialects::form::StreamEvent;
use assay_node_dialects::{DialectError, SseEvent};
use assay_node_dialects_anthropic::{AnthropicReadOptions, AnthropicStreamReader, AnthropicStreamWriter};
use assay_node_dialects_chat::{ChatStreamOptions, ChatStreamReader, ChatStreamWriter, JsonToolStream};
use assay_node_dialects_converse::{ConverseAnswer, ConverseStreamReader, read_invoke_event};
use assay_node_dialects_gemini::{GeminiStreamReader, GeminiStreamWriter};
use assay_node_dialects_responses::{ResponsesStreamReader, ResponsesStreamWriter};

/// Reader for the events of a model server.
#[derive(Debug)]
pub enum StreamReader {
    /// The second part extracts the answer from the forced tool of a JSON schema.
    Chat(Box<ChatStreamReader>, Option<Box<JsonToolStream>>),
    Responses(Box<ResponsesStreamReader>),
    Anthropic(Box<AnthropicStreamReader>),
    Gemini(Box<GeminiStreamReader>),
    /// The second part is as for chat completions.
    Converse(Box<ConverseStreamReader>, Option<Box<JsonToolStream>>),
    /// Events of Anthropic in InvokeModel chunks.
    BedrockAnthropic(Box<AnthropicStreamReader>),
}

impl StreamReader {
    /// Creates a reader for chat completions. `schema_as_tool` says whether a JSON schema was sent as a forced tool.
    pub fn chat(schema_as_tool: bool) -> StreamReader {
        StreamReader::Chat(Box::default(), schema_as_tool.then(Box::default))
    }

    pub fn responses() -> StreamReader {
        StreamReader::Responses(Box::default())
    }

    pub fn anthropic(options: AnthropicReadOptions) -> StreamReader {
        StreamReader::Anthropic(Box::new(AnthropicStreamReader::with_options(options)))
    }

    pub fn gemini() -> StreamReader {
        StreamReader::Gemini(Box::default())
    }

    /// Creates a reader for Converse. `schema_as_tool` says whether a JSON schema was sent as a forced tool.
    pub fn converse(answer: ConverseAnswer, schema_as_tool: bool) -> StreamReader {
        let reader = Box::new(ConverseStreamReader::new(answer));
        StreamReader::Converse(reader, schema_as_tool.then(Box::default))
    }

    pub fn bedrock_anthropic(options: AnthropicReadOptions) -> StreamReader {
        StreamReader::BedrockAnthropic(Box::new(AnthropicStreamReader::with_options(options)))
    }

    pub(crate) fn push(&mut self, event: &SseEvent) -> Result<Vec<StreamEvent>, DialectError> {
        match self {
            StreamReader::Chat(reader, tool) => Ok(mapped(tool, reader.push(event)?)),
            StreamReader::Responses(reader) => reader.push(event),
            StreamReader::Anthropic(reader) => reader.push(event),
            StreamReader::Gemini(reader) => reader.push(event),
            StreamReader::Converse(reader, tool) => Ok(mapped(tool, reader.push(event)?)),
            StreamReader::BedrockAnthropic(reader) => match read_invoke_event(event)? {
                Some(event) => reader.push(&event),
                None => Ok(Vec::new()),
            },
        }
    }

    /// Returns the remaining events at the end of the input.
    pub(crate) fn finish(&mut self) -> Vec<StreamEvent> {
        match self {
            StreamReader::Chat(reader, tool) => mapped(tool, reader.finish()),
            StreamReader::Responses(reader) => reader.finish(),
            StreamReader::Anthropic(reader) => reader.finish(),
            StreamReader::Gemini(reader) => reader.finish(),
            StreamReader::Converse(reader, tool) => mapped(tool, reader.finish()),
            StreamReader::BedrockAnthropic(reader) => reader.finish(),
        }
    }
}

fn mapped(tool: &mut Option<Box<JsonToolStream>>, events: Vec<StreamEvent>) -> Vec<StreamEvent> {
    match tool {
        Some(tool) => events.into_iter().map(|event| tool.map(event)).collect(),
        None => events,
    }
}

/// Writer for the events to a client.
#[derive(Debug)]
pub enum StreamWriter {
    Chat(Box<ChatStreamWriter>),
    Responses(Box<ResponsesStreamWriter>),
    Anthropic(Box<AnthropicStreamWriter>),
    Gemini(Box<GeminiStreamWriter>),
}

impl StreamWriter {
    pub fn chat(options: ChatStreamOptions) -> StreamWriter {
        StreamWriter::Chat(Box::new(ChatStreamWriter::new(options)))
    }

    pub fn responses() -> StreamWriter {
        StreamWriter::Responses(Box::new(ResponsesStreamWriter::new()))
    }

    pub fn anthropic() -> StreamWriter {
        StreamWriter::Anthropic(Box::new(AnthropicStreamWriter::new()))
    }

    pub fn gemini() -> StreamWriter {
        StreamWriter::Gemini(Box::new(GeminiStreamWriter::new()))
    }

    pub(super) fn write(&mut self, event: &StreamEvent) -> Vec<SseEvent> {
        match self {
            StreamWriter::Chat(writer) => writer.write(event),
            StreamWriter::Responses(writer) => writer.write(event),
            StreamWriter::Anthropic(writer) => writer.write(event),
            StreamWriter::Gemini(writer) => writer.write(event),
        }
    }
}
