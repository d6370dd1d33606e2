//! Tools of MCP servers that a prompt names (G-70).

use std::collections::HashMap;

use assay_node_http::responses::refusal::Refusal;
use assay_node_invocations::services::{RemoteTool, ToolSession};
use assay_node_invocations::{InvokeError, InvokeErrorKind};
use assay_node_mcp_client::{McpError, McpServerRecord, McpSession, McpTool, record_ids, server_specs};
use assay_node_records::kinds;
use futures::FutureExt;
use futures::future::{BoxFuture, try_join_all};
use serde_json::{Map, Value};

use super::services::{CallerServices, error_of};

/// Connections to the servers of one prompt.
struct McpSessions {
    servers: Vec<McpSession>,
    tools: Vec<RemoteTool>,
}

/// Connects to the servers of a prompt and lists their tools.
pub(super) async fn connect(
    services: &CallerServices,
    servers: &Map<String, Value>,
    mcp_auth: &Value,
) -> Result<Box<dyn ToolSession>, InvokeError> {
    let caller = services.caller();
    let servers = Value::Object(servers.clone());
    let invalid = |why: assay_node_mcp_client::McpServersError| InvokeError::invalid(why.to_string());
    let mut records = HashMap::new();
    for id in record_ids(&servers).map_err(invalid)? {
        let record = caller.edge.records.get(&caller.principal, &kinds::MCP_SERVER, id).await;
        let record = record.map_err(|why| error_of(Refusal::from(why)))?;
        let url = record["url"].as_str().unwrap_or_default().to_owned();
        records.insert(id, McpServerRecord { url });
    }
    let specs = server_specs(&servers, &records, mcp_auth, caller.principal.org.0).map_err(invalid)?;
    let connected = specs.into_iter().map(|spec| {
        let egress = caller.edge.gateway.egress().clone();
        async move {
            let session = McpSession::connect(egress, spec).await?;
            let tools = session.list_tools().await?;
            Ok::<_, McpError>((session, tools))
        }
        .boxed()
    });
    let connected: Vec<BoxFuture<'_, _>> = connected.collect();
    // An unreachable server is a fault of the prompt or its tokens, so the request itself is valid.
    let connected =
        try_join_all(connected).await.map_err(|why| InvokeError::new(InvokeErrorKind::Upstream, why.to_string()))?;
    let (mut servers, mut tools) = (Vec::new(), Vec::new());
    for (session, listed) in connected {
        tools.extend(listed.into_iter().map(|tool| remote_tool(servers.len(), tool)));
        servers.push(session);
    }
    Ok(Box::new(McpSessions { servers, tools }))
}

fn remote_tool(server: usize, tool: McpTool) -> RemoteTool {
    let McpTool { name, tool, description, input_schema } = tool;
    RemoteTool { name, description, parameters: input_schema, server, tool }
}

impl ToolSession for McpSessions {
    fn tools(&self) -> &[RemoteTool] {
        &self.tools
    }

    fn call<'a>(&'a self, tool: &'a RemoteTool, arguments: &'a Value) -> BoxFuture<'a, Result<Value, String>> {
        async move {
            let server = self.servers.get(tool.server).ok_or_else(|| "the server of the tool is unknown".to_owned())?;
            let outcome = server.call(&tool.tool, arguments).await.map_err(|why| why.to_string())?;
            match (outcome.is_error, outcome.content) {
                (false, content) => Ok(content),
                (true, Value::String(text)) => Err(text),
                (true, other) => Err(other.to_string()),
            }
        }
        .boxed()
    }
}
