//! Sessions with servers: connection, list of tools, calls.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use assay_node_egress::EgressClient;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest, ErrorData, Implementation,
    ListToolsRequest, PaginatedRequestParams, ProtocolVersion,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, PeerRequestOptions, RunningService, ServiceError,
    serve_client_with_lifecycle,
};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};
use serde_json::Value;
use tokio::time::timeout;

use crate::answer::{ListedTool, McpToolOutcome, read_outcome, read_tools};
use crate::error::{McpAction, McpAnswer, McpError, McpFailure};
use crate::names::tool_names;
use crate::spec::{CLOSE_TIME_MAX, McpServerSpec, SCHEMA_LIST_BYTES_MAX, TOOLS_MAX};
use crate::transport::McpHttpClient;

/// Pages of a list of tools.
pub const LIST_PAGES_MAX: usize = 100;

/// A tool of a server, as it is offered to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct McpTool {
    /// Name for the model, unique among the tools of the server: `<server>_<tool>`.
    pub name: String,
    /// Name on the server, for [`McpSession::call`].
    pub tool: String,
    pub description: Option<String>,
    /// JSON schema of the arguments.
    pub input_schema: Value,
}

/// A session with one server. Dropping it ends it in the background.
pub struct McpSession {
    spec: McpServerSpec,
    http: McpHttpClient,
    service: RunningService<RoleClient, ClientConfig>,
}

impl fmt::Debug for McpSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpSession").field("server", &self.spec.name).finish_non_exhaustive()
    }
}

impl McpSession {
    /// Connects to a server and agrees on a version of the protocol.
    pub async fn connect(client: EgressClient, spec: McpServerSpec) -> Result<McpSession, McpError> {
        let http = McpHttpClient::new(client, &spec);
        let failed = |failure| error_of(&spec, McpAction::Connect, failure);
        // Neither URL nor token: `http` has both, and what this configuration has may be logged.
        let config = StreamableHttpClientTransportConfig::with_uri("mcp");
        let transport = StreamableHttpClientTransport::with_client(http.clone(), config);
        let config =
            ClientConfig::new(ClientCapabilities::default(), Implementation::new("assay", env!("CARGO_PKG_VERSION")))
                .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE);
        let served = Box::pin(serve_client_with_lifecycle(config, transport, ClientLifecycleMode::Initialize));
        let service = match timeout(spec.exchange_time(), served).await {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => return Err(failed(connect_failure(error, &http))),
            Err(_) => return Err(failed(McpFailure::Late)),
        };
        Ok(McpSession { spec, http, service })
    }

    /// Returns the name of the server in the prompt.
    pub fn server(&self) -> &str {
        &self.spec.name
    }

    /// Lists the tools that are enabled, with their names for a model.
    pub async fn list_tools(&self) -> Result<Vec<McpTool>, McpError> {
        let listed = Box::pin(timeout(self.spec.exchange_time(), self.listed_tools())).await;
        let listed = listed.unwrap_or(Err(McpFailure::Late));
        let listed = listed.map_err(|failure| self.failed(McpAction::ListTools, failure))?;
        let names = tool_names(&self.spec.name, listed.iter().map(|tool| &*tool.name));
        let tools = names.into_iter().zip(listed);
        Ok(tools
            .map(|(name, tool)| McpTool {
                name,
                tool: tool.name,
                description: tool.description,
                input_schema: tool.input_schema,
            })
            .collect())
    }

    /// Lists all pages. Of tools with one name the first counts.
    async fn listed_tools(&self) -> Result<Vec<ListedTool>, McpFailure> {
        let (mut tools, mut known) = (Vec::new(), HashSet::new());
        let (mut bytes, mut cursor) = (0, None);
        for _ in 0..LIST_PAGES_MAX {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let page = self.request(ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params))).await?;
            let (listed, next) = read_tools(&page)?;
            bytes += listed.iter().map(|tool| tool.bytes).sum::<usize>();
            if bytes > SCHEMA_LIST_BYTES_MAX {
                return Err(McpFailure::Large { bytes_max: SCHEMA_LIST_BYTES_MAX, subject: McpAnswer::ToolList });
            }
            let enabled = listed.into_iter().filter(|tool| self.spec.is_enabled(&tool.name));
            tools.extend(enabled.filter(|tool| known.insert(tool.name.clone())));
            if tools.len() > TOOLS_MAX {
                return Err(McpFailure::TooManyTools { max: TOOLS_MAX });
            }
            cursor = next;
            if cursor.is_none() {
                return Ok(tools);
            }
        }
        Err(McpFailure::Invalid("the list of tools does not end"))
    }

    /// Calls a tool by its name on the server. `arguments` is an object, or null for none.
    pub async fn call(&self, tool: &str, arguments: &Value) -> Result<McpToolOutcome, McpError> {
        let failed = |failure| self.failed(McpAction::CallTool(tool.to_owned()), failure);
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = match arguments {
            Value::Null => None,
            Value::Object(arguments) => Some(arguments.clone()),
            _ => return Err(failed(McpFailure::Arguments)),
        };
        let result = Box::pin(self.request(ClientRequest::CallToolRequest(CallToolRequest::new(params)))).await;
        result.and_then(|result| read_outcome(&result, self.spec.bearer.as_ref())).map_err(failed)
    }

    /// Ends the session, and tells the server. A server that does not answer is not waited for.
    pub async fn close(mut self) {
        let closed = self.service.close_with_timeout(CLOSE_TIME_MAX).await;
        tracing::debug!(server = self.spec.name, is_told = matches!(closed, Ok(Some(_))), "an MCP session ended");
    }

    /// Sends a request, and returns its result as JSON, whichever of the known results it looks like.
    async fn request(&self, request: ClientRequest) -> Result<Value, McpFailure> {
        let options = PeerRequestOptions::with_timeout(self.exchange_time());
        let sent = self.service.send_cancellable_request(request, options).await;
        let result = match sent {
            Ok(handle) => handle.await_response().await,
            Err(error) => Err(error),
        };
        let result = result.map_err(|error| service_failure(error, &self.http))?;
        serde_json::to_value(result).map_err(|_| McpFailure::Invalid("the result cannot be read"))
    }

    fn exchange_time(&self) -> Duration {
        self.spec.exchange_time()
    }

    fn failed(&self, action: McpAction, failure: McpFailure) -> McpError {
        error_of(&self.spec, action, failure)
    }
}

/// Makes an error, without the token if the server repeats it.
fn error_of(spec: &McpServerSpec, action: McpAction, failure: McpFailure) -> McpError {
    let failure = match (failure, &spec.bearer) {
        (McpFailure::Reported { code, message }, Some(token)) => {
            McpFailure::reported(code, &token.removed_from(&message).unwrap_or(message))
        }
        (McpFailure::Reported { code, message }, None) => McpFailure::reported(code, &message),
        (other, _) => other,
    };
    McpError { server: spec.name.clone(), action, failure }
}

fn connect_failure(error: ClientInitializeError, http: &McpHttpClient) -> McpFailure {
    match error {
        ClientInitializeError::JsonRpcError(data) => reported(data),
        ClientInitializeError::TransportError { error, .. } => transport_failure(&error, http),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            McpFailure::Invalid("the server has no version of the protocol in common with this client")
        }
        _ => http.take_failure().unwrap_or(McpFailure::Invalid("the server did not answer `initialize` as it should")),
    }
}

fn service_failure(error: ServiceError, http: &McpHttpClient) -> McpFailure {
    match error {
        ServiceError::McpError(data) => reported(data),
        ServiceError::TransportSend(error) => transport_failure(&error, http),
        ServiceError::Timeout { .. } => McpFailure::Late,
        ServiceError::TransportClosed => http.take_failure().unwrap_or(McpFailure::Cut),
        _ => McpFailure::Invalid("the server asks for what this client does not offer"),
    }
}

/// The message is shortened when the token is out of it.
fn reported(data: ErrorData) -> McpFailure {
    McpFailure::Reported { code: data.code.0.into(), message: data.message.into_owned() }
}

fn transport_failure(error: &DynamicTransportError, http: &McpHttpClient) -> McpFailure {
    match error.error.downcast_ref::<StreamableHttpError<McpFailure>>() {
        Some(StreamableHttpError::Client(failure)) => failure.clone(),
        Some(StreamableHttpError::SessionExpired | StreamableHttpError::SessionRecoveryTimeout) => {
            McpFailure::SessionEnded
        }
        _ => http.take_failure().unwrap_or(McpFailure::Cut),
    }
}
