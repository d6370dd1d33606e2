//! First bytes of an input: formats, options and cuts.

use assay_node_dialects::form::{ContentPart, JsonSchemaFormat, Message, ModelRequest, OutputFormat, Role, TextPart};
use assay_node_dialects::{Dialect, DialectError, ReasoningHistory, WriteOptions};
use serde_json::{Value, json};

use crate::translation::{CallTranslation, UpstreamFormat};
use crate::{INPUT_BYTES_MAX, MODEL, SERVERS};

/// Number of the bytes of a head.
pub const HEAD_BYTES: usize = 6;

/// Choices of an input. Digits and letters stand for small numbers, so that an input is a text.
///
/// ```text
/// client, server, options, options, pieces, pieces
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub client: Dialect,
    /// Number of the server's format, or of the kind of an input.
    pub server: usize,
    options: u16,
    pieces: [u8; 2],
}

impl Head {
    /// Reads the head of an input, and returns it with the rest.
    pub fn read(input: &[u8]) -> Option<(Head, &[u8])> {
        let (head, rest) = input.split_first_chunk::<HEAD_BYTES>().filter(|_| input.len() <= INPUT_BYTES_MAX)?;
        let [client, server, first, second, pieces @ ..] = head.map(|byte| byte.wrapping_sub(b'0'));
        let client = Dialect::ALL[usize::from(client) % Dialect::ALL.len()];
        let options = u16::from(first) | u16::from(second) << 6;
        Some((Head { client, server: usize::from(server), options, pieces }, rest))
    }

    pub fn server(self) -> UpstreamFormat {
        SERVERS[self.server % SERVERS.len()]
    }

    /// A small number that an input chooses.
    pub fn number(self) -> usize {
        self.pieces[0].into()
    }

    /// Whether the call asks for a JSON schema.
    pub fn asks_for_schema(self) -> bool {
        self.option(2)
    }

    fn option(self, bit: u16) -> bool {
        self.options >> bit & 1 == 1
    }

    pub fn write_options(self) -> WriteOptions {
        WriteOptions {
            model_max_output_tokens: self.option(0).then_some(4_096),
            schema_as_tool: self.option(1),
            is_reasoning_model: self.option(2),
            takes_stream_options: self.option(3),
            reasoning_history: match self.options >> 4 & 3 {
                1 => ReasoningHistory::Texts,
                2 => ReasoningHistory::Remove,
                _ => ReasoningHistory::Keep,
            },
            refuses_parallel_tool_calls: self.option(6),
            refuses_cache_control: self.option(7),
            developer_as_system: self.option(6),
            needs_call_signatures: self.option(8),
            omits_call_ids: self.option(9),
            takes_thinking_level: self.option(8),
            takes_json_schema: self.option(10),
            schema_in_output_format: self.option(7),
            adaptive_thinking: self.option(11),
        }
    }

    /// Makes the call that an answer belongs to. It may ask for a JSON schema.
    pub(crate) fn call(self, client: Dialect) -> Result<CallTranslation, DialectError> {
        let text = ContentPart::Text(TextPart { text: "hi".to_owned(), ..TextPart::default() });
        let question = Message { role: Role::User, name: None, parts: vec![text], extra: Default::default() };
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false});
        let format = JsonSchemaFormat {
            name: Some("a".to_owned()),
            description: None,
            schema,
            strict: None,
            extra: Default::default(),
        };
        let request = ModelRequest {
            model: MODEL.to_owned(),
            messages: vec![question],
            output_format: self.asks_for_schema().then(|| OutputFormat::JsonSchema(Box::new(format))),
            include_usage: self.option(3),
            ..ModelRequest::default()
        };
        let mut call = CallTranslation::of_request((client, self.server()), request, self.write_options())?;
        call.set_answer_id("answer_1");
        Ok(call)
    }

    /// Cuts bytes into pieces, of two sizes in turn.
    pub fn cut(self, bytes: &[u8]) -> Vec<&[u8]> {
        let sizes = self.pieces.map(|size| usize::from(size) + 1);
        let (mut rest, mut pieces) = (bytes, Vec::new());
        while !rest.is_empty() {
            let size = sizes[pieces.len() % sizes.len()].min(rest.len());
            let (piece, after) = rest.split_at(size);
            pieces.push(piece);
            rest = after;
        }
        pieces
    }
}

/// Parses the body of an input.
pub(crate) fn body(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice(bytes).ok()
}
