//! An MCP server on loopback that replies by script, and a client that may reach it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use assay_node_egress::{
    EgressClient, EgressConfig, EgressPolicy, EgressSettings, EgressUrl, OwnEndpoints, TrustedRoots,
};
use assay_node_mcp_client::{McpServerSpec, McpToken};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

pub const TOKEN: &str = "s3cret-token";
pub const SESSION: &str = "session-1";

/// A request as the server read it.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    pub method: String,
    pub target: String,
    head: String,
    pub body: Value,
}

impl ReadRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.split_once(": ").filter(|(known, _)| *known == name).map(|(_, v)| v))
    }

    /// Returns the method of the message.
    pub fn rpc(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    pub fn id(&self) -> &Value {
        &self.body["id"]
    }
}

/// Reply of a server.
#[derive(Clone, Debug)]
pub struct ScriptedReply {
    pause: Duration,
    status: u16,
    headers: String,
    body: String,
    /// Bytes that the head promises beyond the body.
    missing: usize,
}

impl ScriptedReply {
    pub fn new(status: u16, kind: &str, body: impl Into<String>) -> ScriptedReply {
        let headers = if kind.is_empty() { String::new() } else { format!("Content-Type: {kind}\r\n") };
        ScriptedReply { pause: Duration::ZERO, status, headers, body: body.into(), missing: 0 }
    }

    pub fn json(body: &Value) -> ScriptedReply {
        ScriptedReply::new(200, "application/json; charset=utf-8", body.to_string())
    }

    /// Replies with an event stream of these messages.
    pub fn stream(messages: &[Value]) -> ScriptedReply {
        let events = messages.iter().map(|message| format!("event: message\r\nid: 1\r\ndata: {message}\r\n\r\n"));
        ScriptedReply::new(200, "text/event-stream", format!(": hello\r\n\r\n{}", events.collect::<String>()))
    }

    pub fn with_header(mut self, name: &str, value: &str) -> ScriptedReply {
        self.headers.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    pub fn after(self, pause: Duration) -> ScriptedReply {
        ScriptedReply { pause, ..self }
    }

    pub fn cut(self) -> ScriptedReply {
        ScriptedReply { missing: 100, ..self }
    }
}

pub fn result(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// Returns what a server replies outside of the subject of a test: it has one tool, whose result is a text.
pub fn usual(request: &ReadRequest) -> ScriptedReply {
    let id = request.id();
    match (&*request.method, request.rpc()) {
        ("POST", "initialize") => ScriptedReply::json(&result(
            id,
            json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "scripted", "version": "1"},
            }),
        ))
        .with_header("Mcp-Session-Id", SESSION),
        ("POST", "tools/list") => {
            let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
            let tools = json!([{"name": "search", "description": "Finds.", "inputSchema": schema}]);
            ScriptedReply::json(&result(id, json!({"tools": tools})))
        }
        ("POST", "tools/call") => {
            ScriptedReply::json(&result(id, json!({"content": [{"type": "text", "text": "found"}]})))
        }
        ("POST", _) => ScriptedReply::new(202, "", ""),
        ("DELETE", _) => ScriptedReply::new(200, "", ""),
        _ => ScriptedReply::new(405, "", ""),
    }
}

type Script = Arc<dyn Fn(&ReadRequest) -> ScriptedReply + Send + Sync>;

/// A server on loopback, and the requests that it read.
pub struct McpServer {
    pub port: u16,
    requests: Arc<Mutex<Vec<ReadRequest>>>,
}

impl McpServer {
    /// Serves by a script; `None` stands for the usual reply.
    pub async fn new(script: impl Fn(&ReadRequest) -> Option<ScriptedReply> + Send + Sync + 'static) -> McpServer {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let read = Arc::clone(&requests);
        let script: Script = Arc::new(move |request| script(request).unwrap_or_else(|| usual(request)));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, Arc::clone(&read), Arc::clone(&script)));
            }
        });
        McpServer { port, requests }
    }

    pub fn requests(&self) -> Vec<ReadRequest> {
        self.requests.lock().expect("no test panics with it").clone()
    }

    /// Returns the server as a prompt names it, with a token in its query and one for its header.
    pub fn spec(&self) -> McpServerSpec {
        let url: EgressUrl = format!("http://127.0.0.1:{}/mcp?key={TOKEN}", self.port).parse().expect("a URL");
        let bearer = Some(McpToken::new(TOKEN.to_owned()).expect("a token"));
        McpServerSpec { bearer, call_time: Duration::from_secs(5), ..McpServerSpec::new("docs", url, Uuid::nil()) }
    }
}

async fn serve(mut socket: TcpStream, read: Arc<Mutex<Vec<ReadRequest>>>, script: Script) {
    while let Some(request) = read_request(&mut socket).await {
        let reply = script(&request);
        read.lock().expect("no test panics with it").push(request);
        tokio::time::sleep(reply.pause).await;
        let length = reply.body.len() + reply.missing;
        let text =
            format!("HTTP/1.1 {} X\r\n{}Content-Length: {length}\r\n\r\n{}", reply.status, reply.headers, reply.body);
        if socket.write_all(text.as_bytes()).await.is_err() || reply.missing > 0 {
            return;
        }
    }
}

async fn read_request(socket: &mut TcpStream) -> Option<ReadRequest> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.parse().expect("a length"));
            if body.len() >= length {
                let mut words = head.split(' ');
                let mut word = || words.next().unwrap_or_default().to_owned();
                let (method, target) = (word(), word());
                let body = serde_json::from_str(body).unwrap_or(Value::Null);
                return Some(ReadRequest { method, target, head: head.to_owned(), body });
            }
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// Returns a client that may reach loopback for MCP, or for something else only.
pub fn client(purpose: &str) -> EgressClient {
    let settings = format!("allow = [{{ cidr = \"127.0.0.1\", ports = [\"1-65535\"], for = [\"{purpose}\"] }}]");
    let settings: EgressSettings = toml::from_str(&settings).expect("settings");
    let policy = EgressPolicy::new(&settings, OwnEndpoints::default()).expect("a policy");
    EgressClient::new(EgressConfig::new(TrustedRoots::none()), policy)
}
