//! HTTP of MCP sessions over the egress client: one POST for each message, answered as JSON or as an event stream.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use assay_node_dialects::sse::SseParser;
use assay_node_egress::{
    BETWEEN_CHUNKS, EgressBody, EgressClient, EgressError, EgressOptions, EgressPurpose, EgressRequest, EgressResponse,
    EgressTimes, EgressUrl, HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
};
use futures::stream::BoxStream;
use parking_lot::Mutex;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ClientResult, ErrorCode, ErrorData, JsonRpcMessage, JsonRpcRequest,
    ServerJsonRpcMessage, ServerRequest,
};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

use crate::error::{McpAnswer, McpFailure};
use crate::spec::{McpServerSpec, RESULT_BYTES_MAX, SCHEMA_LIST_BYTES_MAX};

/// Bytes around the payload of an answer.
const ENVELOPE_BYTES_MAX: usize = 64 << 10;
/// Bytes of an answer to `initialize`, with the instructions of the server, and of an error.
const OTHER_ANSWER_BYTES_MAX: usize = 256 << 10;
/// Bytes of a whole event stream: notifications come before the answer.
const STREAM_BYTES_MAX: u64 = 4 << 20;
/// Requests of a server within one event stream.
const SERVER_REQUESTS_MAX: usize = 16;
/// Headers that the protocol sets, besides those that begin with `mcp-`.
const PROTOCOL_HEADERS: [&str; 4] = ["accept", "authorization", "content-type", "last-event-id"];
const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";

type TransportError = StreamableHttpError<McpFailure>;

/// HTTP client of one server. Clones are the same client.
#[derive(Clone, Debug)]
pub(crate) struct McpHttpClient {
    shared: Arc<ServerConnection>,
}

struct ServerConnection {
    name: String,
    egress: EgressClient,
    url: EgressUrl,
    options: EgressOptions,
    /// Headers of all requests, with the token.
    headers: HeaderMap,
    /// Why the latest exchange failed, for callers to whom the failure itself does not come back.
    failure: Mutex<Option<McpFailure>>,
}

impl fmt::Debug for ServerConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConnection").field("name", &self.name).finish_non_exhaustive()
    }
}

impl McpHttpClient {
    pub(crate) fn new(egress: EgressClient, spec: &McpServerSpec) -> McpHttpClient {
        let time = spec.exchange_time();
        let times = EgressTimes {
            first_byte: time,
            between_chunks: time.min(BETWEEN_CHUNKS),
            total: time,
            ..EgressTimes::WHOLE
        };
        let options = EgressOptions { times, ..EgressOptions::new(EgressPurpose::Mcp, spec.organization) };
        let mut headers = HeaderMap::new();
        let is_ours =
            |name: &HeaderName| name.as_str().starts_with("mcp-") || PROTOCOL_HEADERS.contains(&name.as_str());
        for (name, value) in spec.headers.iter().filter(|(name, _)| !is_ours(name)) {
            headers.append(name, value.clone());
        }
        if let Some(token) = &spec.bearer {
            headers.insert("authorization", token.header());
        }
        let (name, url) = (spec.name.clone(), spec.url.clone());
        let shared = ServerConnection { name, egress, url, options, headers, failure: Mutex::new(None) };
        McpHttpClient { shared: Arc::new(shared) }
    }

    /// Returns why the latest exchange failed, once.
    pub(crate) fn take_failure(&self) -> Option<McpFailure> {
        self.shared.failure.lock().take()
    }

    fn failed(&self, failure: McpFailure) -> TransportError {
        *self.shared.failure.lock() = Some(failure.clone());
        StreamableHttpError::Client(failure)
    }

    fn egress_failed(&self, error: &EgressError, large: McpFailure) -> TransportError {
        let (server, reason) = (&self.shared.name, error.operator_reason());
        tracing::debug!(server, reason, "an exchange with an MCP server failed");
        self.failed(McpFailure::of_egress(error, large))
    }

    async fn send(
        &self,
        method: Method,
        body: Vec<u8>,
        session_id: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
        bytes_max: u64,
    ) -> Result<EgressResponse, TransportError> {
        let mut all = self.shared.headers.clone();
        all.extend(headers.into_iter().map(|(name, value)| (Some(name), value)));
        all.insert("accept", HeaderValue::from_static("application/json, text/event-stream"));
        if !body.is_empty() {
            all.insert("content-type", HeaderValue::from_static(JSON));
        }
        if let Some(id) = session_id {
            let id = HeaderValue::from_str(id);
            all.insert(SESSION_ID, id.map_err(|_| self.failed(McpFailure::Invalid("its session id is no header")))?);
        }
        let request = EgressRequest { method, url: self.shared.url.clone(), headers: all, body: body.into() };
        let options = EgressOptions { response_bytes_max: bytes_max, ..self.shared.options.clone() };
        let sent = self.shared.egress.send(&request, &options).await;
        sent.map_err(|error| self.egress_failed(&error, McpFailure::Invalid("it is too large")))
    }

    /// Reads the answer to a message from a response with a status of success.
    async fn read_answer(
        &self,
        message: &ClientJsonRpcMessage,
        response: EgressResponse,
        session_id: Option<&str>,
    ) -> Result<StreamableHttpPostResponse, TransportError> {
        let limit = AnswerLimit::of(message);
        let kind = media_type(&response.headers);
        let new_session = response.headers.get(SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
        if kind.eq_ignore_ascii_case(EVENT_STREAM) {
            let session_id = new_session.as_deref().or(session_id);
            let answer = self.read_stream(response.body, &limit, session_id).await?;
            return Ok(StreamableHttpPostResponse::Json(answer_to(message, answer), new_session));
        }
        if !kind.eq_ignore_ascii_case(JSON) {
            return Err(self.failed(McpFailure::ContentType));
        }
        let body = self.read_whole(response.body, &limit).await?;
        let answer = self.parse(&body)?;
        Ok(StreamableHttpPostResponse::Json(answer_to(message, answer), new_session))
    }

    async fn read_whole(&self, mut body: EgressBody, limit: &AnswerLimit) -> Result<Vec<u8>, TransportError> {
        let mut whole = Vec::new();
        while let Some(chunk) = body.next().await.map_err(|error| self.egress_failed(&error, limit.failure()))? {
            if whole.len() + chunk.len() > limit.bytes_max {
                return Err(self.failed(limit.failure()));
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(whole)
    }

    /// Reads an event stream up to the answer. Notifications are passed over: nothing here shows progress.
    async fn read_stream(
        &self,
        mut body: EgressBody,
        limit: &AnswerLimit,
        session_id: Option<&str>,
    ) -> Result<ServerJsonRpcMessage, TransportError> {
        let mut parser = SseParser::with_limit(limit.bytes_max);
        let mut requests = 0;
        loop {
            let chunk = body.next().await.map_err(|error| self.egress_failed(&error, limit.failure()))?;
            let is_end = chunk.is_none();
            let events = match chunk {
                Some(chunk) => parser.push(&chunk),
                None => parser.finish().map(|event| event.into_iter().collect()),
            };
            for event in events.map_err(|_| self.failed(limit.failure()))? {
                if event.data.trim().is_empty() {
                    continue;
                }
                match self.parse(event.data.as_bytes())? {
                    answer @ (JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) => return Ok(answer),
                    JsonRpcMessage::Request(request) if requests < SERVER_REQUESTS_MAX => {
                        requests += 1;
                        self.reply(request, session_id).await?;
                    }
                    JsonRpcMessage::Request(_) => {
                        return Err(self.failed(McpFailure::Invalid("it has too many requests of its own")));
                    }
                    JsonRpcMessage::Notification(_) => {}
                }
            }
            if is_end {
                return Err(self.failed(McpFailure::Cut));
            }
        }
    }

    /// Replies to a request of the server: pings are answered, all else is refused, as nothing else was offered.
    async fn reply(
        &self,
        request: JsonRpcRequest<ServerRequest>,
        session_id: Option<&str>,
    ) -> Result<(), TransportError> {
        let reply = match request.request {
            ServerRequest::PingRequest(_) => ClientJsonRpcMessage::response(ClientResult::empty(()), request.id),
            _ => {
                let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "not offered by this client", None);
                ClientJsonRpcMessage::error(error, Some(request.id))
            }
        };
        let body = self.text_of(&reply)?;
        self.send(Method::POST, body, session_id, HashMap::new(), OTHER_ANSWER_BYTES_MAX as u64).await.map(drop)
    }

    fn text_of(&self, message: &ClientJsonRpcMessage) -> Result<Vec<u8>, TransportError> {
        serde_json::to_vec(message).map_err(|_| self.failed(McpFailure::Invalid("the message cannot be written")))
    }

    fn parse(&self, body: &[u8]) -> Result<ServerJsonRpcMessage, TransportError> {
        serde_json::from_slice(body).map_err(|_| self.failed(McpFailure::Invalid("it is no message of JSON-RPC 2.0")))
    }

    /// Reads a response without a status of success. Some servers send errors of the protocol so.
    async fn read_failure(
        &self,
        message: &ClientJsonRpcMessage,
        response: EgressResponse,
        has_session: bool,
    ) -> Result<ServerJsonRpcMessage, TransportError> {
        if response.status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let status = response.status.as_u16();
        let failure = match status {
            401 | 403 => McpFailure::Unauthorized { status },
            300..=399 => McpFailure::Redirect,
            _ => McpFailure::Status { status },
        };
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        let has_json = media_type(&response.headers).eq_ignore_ascii_case(JSON);
        if is_request && has_json && matches!(failure, McpFailure::Status { .. }) {
            let body = self.read_whole(response.body, &AnswerLimit::OTHER).await?;
            if let Ok(error @ ServerJsonRpcMessage::Error(_)) = serde_json::from_slice(&body) {
                return Ok(error);
            }
        }
        Err(self.failed(failure))
    }
}

/// Names the request in an error that answers it: servers leave the id out where they could not read it.
fn answer_to(message: &ClientJsonRpcMessage, mut answer: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    if let (ClientJsonRpcMessage::Request(request), JsonRpcMessage::Error(error)) = (message, &mut answer) {
        error.id = Some(request.id.clone());
    }
    answer
}

/// Bytes of the answer to a message.
struct AnswerLimit {
    bytes_max: usize,
    subject: McpAnswer,
}

impl AnswerLimit {
    const OTHER: AnswerLimit = AnswerLimit { bytes_max: OTHER_ANSWER_BYTES_MAX, subject: McpAnswer::Other };

    fn of(message: &ClientJsonRpcMessage) -> AnswerLimit {
        let request = match message {
            ClientJsonRpcMessage::Request(request) => Some(&request.request),
            _ => None,
        };
        match request {
            // Servers send a structured result once more, as a text with escapes.
            Some(ClientRequest::CallToolRequest(_)) => {
                AnswerLimit { bytes_max: 3 * RESULT_BYTES_MAX + ENVELOPE_BYTES_MAX, subject: McpAnswer::Result }
            }
            Some(ClientRequest::ListToolsRequest(_)) => {
                AnswerLimit { bytes_max: SCHEMA_LIST_BYTES_MAX + ENVELOPE_BYTES_MAX, subject: McpAnswer::ToolList }
            }
            _ => AnswerLimit::OTHER,
        }
    }

    fn failure(&self) -> McpFailure {
        let bytes_max = match self.subject {
            McpAnswer::Result => RESULT_BYTES_MAX,
            McpAnswer::ToolList => SCHEMA_LIST_BYTES_MAX,
            McpAnswer::Other => self.bytes_max,
        };
        McpFailure::Large { bytes_max, subject: self.subject }
    }
}

/// Returns the media type of a response, without parameters.
fn media_type(headers: &HeaderMap) -> &str {
    let value = headers.get("content-type").and_then(|value| value.to_str().ok());
    value.and_then(|value| value.split(';').next()).unwrap_or_default().trim()
}

impl StreamableHttpClient for McpHttpClient {
    type Error = McpFailure;

    /// Sends a message. The URL is that of the server of this client, and so is the token.
    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, TransportError> {
        let body = self.text_of(&message)?;
        let response = self.send(Method::POST, body, session_id.as_deref(), custom_headers, STREAM_BYTES_MAX).await?;
        if !response.status.is_success() {
            let error = self.read_failure(&message, response, session_id.is_some()).await?;
            return Ok(StreamableHttpPostResponse::Json(answer_to(&message, error), None));
        }
        let awaits_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        if !awaits_answer {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        self.read_answer(&message, response, session_id.as_deref()).await
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), TransportError> {
        let bytes_max = OTHER_ANSWER_BYTES_MAX as u64;
        let response = self.send(Method::DELETE, Vec::new(), Some(&*session_id), custom_headers, bytes_max).await?;
        match response.status {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportDeleteSession),
            status if status.is_success() || status == StatusCode::NOT_FOUND => Ok(()),
            status => Err(self.failed(McpFailure::Status { status: status.as_u16() })),
        }
    }

    /// Opens no stream: what servers send of their own accord has no use in a call, and would keep a connection.
    async fn get_stream(
        &self,
        _uri: Arc<str>,
        _session_id: Option<Arc<str>>,
        _last_event_id: Option<String>,
        _auth_header: Option<String>,
        _custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, TransportError> {
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }
}
