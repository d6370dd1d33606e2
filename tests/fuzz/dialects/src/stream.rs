//! Streamed answers: each is the same however it is cut, and what is written of it is a stream of the client's format.

use std::collections::BTreeMap;

use assay_node_dialects::form::{ContentPart, ModelError, ModelResponse, PartDelta, StreamEvent, ToolCallPart};
use assay_node_dialects::sse::SseParser;
use assay_node_dialects::{Dialect, SseEvent};

use assay_node_dialects_anthropic::AnthropicReadOptions;
use assay_node_dialects_converse::{ConverseAnswer, uses_json_tool};

use serde_json::{Map, Value};

use crate::frames;
use crate::head::Head;
use crate::translation::{
    CallTranslation, EventParser, StreamReader, TranslationError, UpstreamFormat, read_response, stream_reader,
};
use crate::{MODEL, folded};

pub fn run(input: &[u8]) {
    let Some((head, rest)) = Head::read(input) else { return };
    let Ok(call) = head.call(head.client) else { return };
    let bytes = served(head.server(), rest);
    let whole = read_all(parser(head), reader(head, &call), &[&bytes]);
    assert_eq!(read_all(parser(head), reader(head, &call), &head.cut(&bytes)), whole);
    folded(&whole.events);
    translated(head.client, &call, &bytes, is_in_turn(&whole.events));
}

/// Makes the bytes that a server sends. Binary streams are made of the events of a text.
fn served(server: UpstreamFormat, text: &[u8]) -> Vec<u8> {
    if !server.is_aws_stream() {
        return text.to_vec();
    }
    let mut parser = SseParser::new();
    let mut events = parser.push(text).expect("inputs are shorter than an event may be");
    events.extend(parser.finish().expect("inputs are shorter than an event may be"));
    let encode = if server == UpstreamFormat::Converse { frames::converse } else { frames::chunk };
    events.iter().flat_map(encode).collect()
}

/// What was read of a stream.
#[derive(Debug, PartialEq)]
pub(crate) struct ReadStream {
    pub events: Vec<StreamEvent>,
    /// Error that ended the reading.
    pub failure: Option<String>,
    /// Error that the server sent.
    pub error: Option<ModelError>,
    pub is_ended: bool,
}

fn parser(head: Head) -> EventParser {
    if head.server().is_aws_stream() { EventParser::aws() } else { EventParser::sse(usize::MAX) }
}

/// Makes the reader that the translation has.
fn reader(head: Head, call: &CallTranslation) -> StreamReader {
    let options = head.write_options();
    let read_options = AnthropicReadOptions::for_request(&call.request, &options);
    match head.server() {
        UpstreamFormat::Client(Dialect::Chat) => StreamReader::chat(options.schema_as_tool),
        UpstreamFormat::Client(Dialect::Responses) => StreamReader::responses(),
        UpstreamFormat::Client(Dialect::Gemini) => StreamReader::gemini(),
        UpstreamFormat::Client(Dialect::Anthropic) | UpstreamFormat::VertexAnthropic => {
            StreamReader::anthropic(read_options)
        }
        UpstreamFormat::BedrockAnthropic => StreamReader::bedrock_anthropic(read_options),
        UpstreamFormat::Converse => {
            let answer = ConverseAnswer { id: "answer_1".to_owned(), model: MODEL.to_owned() };
            StreamReader::converse(answer, uses_json_tool(&call.request, &options))
        }
    }
}

/// Reads what was written for a client, and checks that its reader understands it.
pub(crate) fn reread(client: Dialect, bytes: &[u8]) -> ReadStream {
    let read = read_written(client, bytes);
    assert!(read.failure.is_none(), "{client:?}: {:?} of {}", read.failure, String::from_utf8_lossy(bytes));
    folded(&read.events);
    read
}

fn read_written(client: Dialect, bytes: &[u8]) -> ReadStream {
    read_all(EventParser::sse(usize::MAX), stream_reader(client), &[bytes])
}

fn read_all(mut parser: EventParser, mut reader: StreamReader, pieces: &[&[u8]]) -> ReadStream {
    let mut events = Vec::new();
    let failure = take_all(&mut parser, &mut reader, pieces, &mut events).err().map(|why| why.to_string());
    let last = events.iter().position(|event| matches!(event, StreamEvent::End | StreamEvent::Error(_)));
    events.truncate(last.map_or(events.len(), |last| last + 1));
    let error = match events.last() {
        Some(StreamEvent::Error(error)) => Some(error.clone()),
        _ => None,
    };
    let is_ended = matches!(events.last(), Some(StreamEvent::End));
    ReadStream { events, failure, error, is_ended }
}

fn take_all(
    parser: &mut EventParser,
    reader: &mut StreamReader,
    pieces: &[&[u8]],
    events: &mut Vec<StreamEvent>,
) -> Result<(), TranslationError> {
    let mut take = |read: Vec<SseEvent>| -> Result<(), TranslationError> {
        for event in &read {
            events.extend(reader.push(event)?);
        }
        Ok(())
    };
    for piece in pieces {
        take(parser.push(piece)?)?;
    }
    // A parser that failed behind good events says so by the next call.
    take(parser.push(&[])?)?;
    take(parser.finish()?.into_iter().collect())?;
    events.extend(reader.finish());
    Ok(())
}

/// Checks that a translated stream is one of the client's format, and ends as that of the server does.
fn translated(client: Dialect, call: &CallTranslation, bytes: &[u8], is_in_turn: bool) {
    let mut stream = call.stream();
    let mut written = Vec::new();
    if stream.push(bytes, &mut written).is_err() {
        return;
    }
    let Ok(last) = stream.finish() else { return };
    written.extend(last.bytes);
    // Clients of chat completions put the arguments of alternating calls together by index. Our reader refuses them.
    if client == Dialect::Chat && !is_in_turn && read_written(client, &written).failure.is_some_and(is_refused_call) {
        return;
    }
    let read = reread(client, &written);
    let text = || String::from_utf8_lossy(&written);
    assert_eq!(read.error.is_some(), last.error.is_some(), "{client:?}: {read:?} of {}", text());
    if last.error.is_none() {
        // A stream of Gemini ends with the reason of each candidate only, which the answer may not have.
        assert!(read.is_ended || client == Dialect::Gemini, "{client:?}: {read:?} of {}", text());
        // A format with one text for all parts has them in the order of their pieces, which that of the parts may differ from.
        if is_in_turn {
            assert_like_whole(client, call, &last.response, &read);
        }
    }
}

/// Returns whether a reader of chat completions refused arguments of a call before the open one.
fn is_refused_call(failure: String) -> bool {
    failure.contains("continue after the next call began")
}

/// Returns whether the parts of each choice come one after the other. Each piece of a text belongs to the part that began
/// last, and parts end in the order in which they began: a format that sends calls whole sends them as they end.
fn is_in_turn(events: &[StreamEvent]) -> bool {
    let mut begun: BTreeMap<u64, usize> = BTreeMap::new();
    let mut ended: BTreeMap<u64, usize> = BTreeMap::new();
    events.iter().all(|event| match event {
        StreamEvent::PartStart { choice, part, .. } => {
            begun.insert(*choice, *part);
            true
        }
        StreamEvent::PartDelta { choice, part, delta: PartDelta::Text(_) } => begun.get(choice) == Some(part),
        StreamEvent::PartEnd { choice, part } => ended.insert(*choice, *part).is_none_or(|before| before < *part),
        _ => true,
    })
}

/// Checks that a client gets the same texts and calls of a stream as of a whole answer.
pub(crate) fn assert_like_whole(client: Dialect, call: &CallTranslation, response: &ModelResponse, read: &ReadStream) {
    // Arguments that are no object have no place in the bodies of some formats, but are cut like others in their streams.
    if !response.choices.iter().flat_map(|choice| &choice.parts).all(has_object) {
        return;
    }
    // Formats of one choice take that with the index 0 of a stream, and the first of an answer.
    if response.choices.first().is_some_and(|choice| choice.index != 0) {
        return;
    }
    let whole = call.write_response(response.clone());
    // Items of a stream of Responses need not have what those of a whole answer must have.
    let Ok(whole) = read_response(client, &whole) else {
        return assert_eq!(client, Dialect::Responses, "{whole}");
    };
    let Some(streamed) = folded(&read.events) else { return };
    assert_eq!(contents(&streamed), contents(&whole), "{client:?}: {read:?} of {response:?}");
}

/// Returns the arguments of a call in one spelling. None are an empty object.
fn arguments(call: &ToolCallPart) -> String {
    let value: Option<Value> = serde_json::from_str(&call.arguments).ok();
    value.map_or_else(|| "{}".to_owned(), |value| value.to_string())
}

/// Returns whether a part is something else than a call, or one whose arguments are an object or nothing.
fn has_object(part: &ContentPart) -> bool {
    let ContentPart::ToolCall(call) = part else { return true };
    call.arguments.is_empty() || serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok()
}

/// Returns the texts, refusals, reasoning and calls of each choice that has some.
fn contents(response: &ModelResponse) -> BTreeMap<u64, [String; 4]> {
    let mut choices: BTreeMap<u64, [String; 4]> = BTreeMap::new();
    for choice in &response.choices {
        for part in &choice.parts {
            let (at, text) = match part {
                ContentPart::Text(part) => (0, part.text.clone()),
                ContentPart::Refusal(part) => (1, part.text.clone()),
                ContentPart::Reasoning(part) => (2, part.text.clone()),
                ContentPart::ToolCall(call) => (3, format!("{}({});", call.name, arguments(call))),
                _ => continue,
            };
            if !text.is_empty() {
                choices.entry(choice.index).or_default()[at].push_str(&text);
            }
        }
    }
    choices
}
