//! Pure conversion of conversations to the server's format through the internal form.
//!
//! ```text
//! body ── begin ──▶ UnwrittenConversation ── media, signatures ──▶ write ──▶ AttemptPlan
//!           └─────▶ plan of a body that passes
//! ```

use assay_node_dialects::form::{ContentPart, Message, ModelRequest, Role, TextPart};
use assay_node_dialects::{Dialect, WriteOptions};
use assay_node_dialects_chat as chat;
use assay_node_models::provider::UpstreamEndpoint;
use assay_node_models::resolution::Candidate;
use serde_json::json;

use super::plan::{AttemptPlan, JSON, PlanStep, ReplyForm, bytes_of, url};
use super::server_facts::{conversation_format, model_in_body, write_options};
use crate::call::ModelCall;
use crate::error::GatewayError;
use crate::translation::{CallTranslation, RequestTarget, UpstreamFormat, read_request};

/// Members that only the gateway interprets (1.12).
const GATEWAY_MEMBERS: [&str; 3] = ["use_cache", "reasoning_enabled", "reasoning_budget"];

/// Request in the internal form, for one candidate.
#[derive(Debug)]
pub(crate) struct UnwrittenConversation {
    url: String,
    pub client: Dialect,
    pub server: UpstreamFormat,
    server_streams: bool,
    options: WriteOptions,
    pub request: ModelRequest,
}

/// Plans a body that passes unmodified, or reads a body for translation.
pub(super) fn begin(call: &ModelCall, candidate: &Candidate) -> Result<PlanStep, GatewayError> {
    let client = call.endpoint.dialect();
    let server = conversation_format(candidate, &call.endpoint);
    let options = write_options(candidate, server);
    let server_streams = server_streams(call, candidate);
    let endpoint = match server {
        UpstreamFormat::Client(Dialect::Chat) => UpstreamEndpoint::Chat,
        UpstreamFormat::Client(Dialect::Responses) => UpstreamEndpoint::Responses,
        UpstreamFormat::Client(Dialect::Gemini) => {
            UpstreamEndpoint::Gemini(if server_streams { "streamGenerateContent" } else { "generateContent" })
        }
        UpstreamFormat::Client(Dialect::Anthropic)
        | UpstreamFormat::BedrockAnthropic
        | UpstreamFormat::VertexAnthropic => UpstreamEndpoint::AnthropicMessages,
        UpstreamFormat::Converse => UpstreamEndpoint::Converse,
    };
    let url = url(candidate, endpoint, server_streams)?;
    let passes = server == UpstreamFormat::Client(client)
        && server_streams == call.stream
        && candidate.provider.metadata.override_system_prompt.is_none()
        && !options.schema_as_tool;
    if passes {
        return passed(call, candidate, (client, url), &options).map(PlanStep::Ready);
    }
    let mut request =
        read_request(client, RequestTarget { model: &call.model, stream: call.stream }, call.body.json())?;
    request.model = model_in_body(candidate, server);
    request.stream = server_streams;
    if let Some(prompt) = &candidate.provider.metadata.override_system_prompt {
        override_system_prompt(&mut request, prompt);
    }
    let unwritten = UnwrittenConversation { url, client, server, server_streams, options, request };
    Ok(PlanStep::Conversation(Box::new(unwritten)))
}

impl UnwrittenConversation {
    /// Writes the request for the server.
    pub fn write(self, call: &ModelCall) -> Result<AttemptPlan, GatewayError> {
        let UnwrittenConversation { url, client, server, server_streams, options, request } = self;
        let mut translation = CallTranslation::of_request((client, server), request, options)?;
        translation.take_betas(call.header("anthropic-beta"))?;
        translation.set_answer_id(&call.request_id);
        Ok(AttemptPlan {
            url,
            body: bytes_of(&translation.body),
            content_type: JSON.to_owned(),
            server,
            server_streams,
            dropped: translation.dropped.clone(),
            form: ReplyForm::Translated(Box::new(translation)),
        })
    }
}

/// Returns whether the server is asked for a stream. The client decides, if the server supports both modes.
fn server_streams(call: &ModelCall, candidate: &Candidate) -> bool {
    let only_streams = candidate.spec.as_ref().is_some_and(|spec| spec.streaming_only);
    (call.stream || only_streams) && candidate.supports_streaming()
}

/// Replaces all instructions of a request.
fn override_system_prompt(request: &mut ModelRequest, prompt: &str) {
    request.messages.retain(|message| !matches!(message.role, Role::System | Role::Developer));
    let text = ContentPart::Text(TextPart { text: prompt.to_owned(), ..TextPart::default() });
    let message = Message { role: Role::System, name: None, parts: vec![text], extra: Default::default() };
    request.messages.insert(0, message);
}

/// Plans a body in the format of both sides. Only the model and unsupported members change (G-26).
fn passed(
    call: &ModelCall,
    candidate: &Candidate,
    (dialect, url): (Dialect, String),
    options: &WriteOptions,
) -> Result<AttemptPlan, GatewayError> {
    let mut body = call.body.json().clone();
    let members = body.as_object_mut().ok_or_else(|| GatewayError::invalid("the body has to be a JSON object"))?;
    let asks_for_usage = members.get("stream_options").is_some_and(|options| options["include_usage"] == true);
    let (mut dropped, mut hides_usage) = (Vec::new(), false);
    let model = model_in_body(candidate, dialect.into());
    if dialect == Dialect::Chat {
        members.insert("model".to_owned(), json!(model));
        dropped = chat::adapt(&mut body, options)?;
        hides_usage = call.stream && !asks_for_usage;
    } else {
        for name in GATEWAY_MEMBERS {
            members.shift_remove(name);
        }
        if dialect != Dialect::Gemini {
            members.insert("model".to_owned(), json!(model));
        }
    }
    Ok(AttemptPlan {
        url,
        body: bytes_of(&body),
        content_type: JSON.to_owned(),
        server: dialect.into(),
        server_streams: call.stream,
        form: ReplyForm::Passed { dialect, hides_usage },
        dropped,
    })
}
