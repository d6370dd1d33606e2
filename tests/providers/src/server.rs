//! The server: HTTP/1.1 over plain TCP, written by hand so that faults can break it at any byte.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::fault::Fault;
use crate::script::{Prompt, ScriptedAnswer, answer};
use crate::sse::WireEvent;
use crate::{anthropic, bedrock, chat, event_stream, gemini, mcp, responses, tokens};

/// Upper bound of a request's head and body, and of the requests that are remembered.
const HEAD_LINES_MAX: usize = 200;
const BODY_BYTES_MAX: usize = 64 << 20;
const RECORDED_MAX: usize = 10_000;

/// Request as it came.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    pub method: String,
    /// Path with its query.
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

impl RecordedRequest {
    pub fn header(&self, wanted: &str) -> Option<&str> {
        self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.as_str())
    }

    /// Body as JSON, or null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

#[derive(Debug, Default)]
struct Shared {
    faults: VecDeque<Fault>,
    /// Fault of each request that finds none queued.
    lasting: Option<Fault>,
    requests: Vec<RecordedRequest>,
    abandoned: usize,
}

/// A provider on a port of its own, until it is dropped.
#[derive(Debug)]
pub struct ProviderServer {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    _stop: oneshot::Sender<()>,
}

impl ProviderServer {
    /// Starts a server on a free port of this machine.
    pub fn start() -> anyhow::Result<ProviderServer> {
        ProviderServer::start_on("127.0.0.1:0")
    }

    /// Starts a server on an address.
    pub fn start_on(address: &str) -> anyhow::Result<ProviderServer> {
        let listener = std::net::TcpListener::bind(address).with_context(|| format!("listening on {address}"))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Mutex::new(Shared::default()));
        let (stop, stopped) = oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).expect("a listener that does not block");
                tokio::select! {
                    () = accept(listener, serving) => {}
                    _ = stopped => {}
                }
            });
        });
        Ok(ProviderServer { address, shared, _stop: stop })
    }

    /// Origin of the server, such as `http://127.0.0.1:4000`.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Queues a fault for the next request that has none yet.
    pub fn inject(&self, fault: Fault) {
        locked(&self.shared).faults.push_back(fault);
    }

    /// Sets the fault of all requests that find none queued; none ends it.
    pub fn inject_always(&self, fault: Option<Fault>) {
        locked(&self.shared).lasting = fault;
    }

    /// Number of replies whose client went away before their end.
    pub fn abandoned(&self) -> usize {
        locked(&self.shared).abandoned
    }

    /// Requests so far, the oldest first.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        locked(&self.shared).requests.clone()
    }
}

fn locked(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().expect("no test panics while it holds this")
}

async fn accept(listener: TcpListener, shared: Arc<Mutex<Shared>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            // Clients that go away are no fault of the server.
            drop(serve(stream, shared).await);
        });
    }
}

async fn serve(stream: TcpStream, shared: Arc<Mutex<Shared>>) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some(request) = read_request(&mut stream).await? {
        let (fault, number) = {
            let mut shared = locked(&shared);
            if shared.requests.len() < RECORDED_MAX {
                shared.requests.push(request.clone());
            }
            let fault = shared.faults.pop_front().or_else(|| shared.lasting.clone());
            (fault, shared.requests.len())
        };
        if let Some(Fault::SlowFirstByte(pause)) = &fault {
            tokio::time::sleep(*pause).await;
        }
        if fault == Some(Fault::Closes) {
            return Ok(());
        }
        match respond(stream.get_mut(), &reply_to(&request, fault.as_ref(), number), fault).await {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => {
                locked(&shared).abandoned += 1;
                return Err(error);
            }
        }
        if request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            return Ok(());
        }
    }
    Ok(())
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> anyhow::Result<Option<RecordedRequest>> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().context("no method")?, words.next().context("no path")?);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
        if headers.len() > HEAD_LINES_MAX {
            bail!("more than {HEAD_LINES_MAX} headers");
        }
    }
    let mut request = RecordedRequest { method, path, headers, body: Bytes::new() };
    request.body = match request.header("transfer-encoding") {
        Some("chunked") => read_chunks(stream).await?,
        _ => {
            let length = request.header("content-length").map_or(Ok(0), str::parse)?;
            read_exactly(stream, length).await?
        }
    };
    Ok(Some(request))
}

async fn read_exactly(stream: &mut BufReader<TcpStream>, length: usize) -> anyhow::Result<Bytes> {
    if length > BODY_BYTES_MAX {
        bail!("a body of more than {BODY_BYTES_MAX} bytes");
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(body.into())
}

async fn read_chunks(stream: &mut BufReader<TcpStream>) -> anyhow::Result<Bytes> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let size = usize::from_str_radix(line.trim(), 16)?;
        let chunk = read_exactly(stream, size + 2).await?;
        if size == 0 {
            return Ok(body.into());
        }
        body.extend_from_slice(&chunk[..size]);
        if body.len() > BODY_BYTES_MAX {
            bail!("a body of more than {BODY_BYTES_MAX} bytes");
        }
    }
}

/// What is sent back.
enum Reply {
    Whole { status: u16, content_type: &'static str, headers: Vec<(&'static str, String)>, body: String },
    Stream { content_type: &'static str, events: Vec<WireEvent> },
}

impl Reply {
    fn json(status: u16, body: &Value) -> Reply {
        Reply::Whole { status, content_type: "application/json", headers: Vec::new(), body: body.to_string() }
    }

    fn with_header(mut self, name: &'static str, value: String) -> Reply {
        if let Reply::Whole { headers, .. } = &mut self {
            headers.push((name, value));
        }
        self
    }
}

/// The wire format that a path stands for.
enum Format {
    Chat,
    Completions,
    Embeddings,
    Responses,
    Anthropic,
    Gemini {
        model: String,
        verb: String,
    },
    Converse {
        model: String,
        stream: bool,
    },
    /// Anthropic's messages at Bedrock.
    Invoke {
        model: String,
        stream: bool,
    },
    /// Anthropic's messages at Vertex.
    RawPredict {
        model: String,
        stream: bool,
    },
}

impl Format {
    fn of(path: &str) -> Option<Format> {
        let path = path.split('?').next().unwrap_or_default();
        if let Some((_, rest)) = path.split_once("/model/") {
            return Format::of_bedrock(rest);
        }
        let ends = |end: &str| path.ends_with(end);
        Some(match () {
            () if ends("/chat/completions") || ends("/invocations") => Format::Chat,
            () if ends("/completions") => Format::Completions,
            () if ends("/embeddings") => Format::Embeddings,
            () if ends("/responses") => Format::Responses,
            () if ends("/messages") => Format::Anthropic,
            () => {
                let (model, verb) = path.rsplit('/').next()?.split_once(':')?;
                match verb {
                    "rawPredict" => Format::RawPredict { model: model.into(), stream: false },
                    "streamRawPredict" => Format::RawPredict { model: model.into(), stream: true },
                    _ => Format::Gemini { model: model.into(), verb: verb.into() },
                }
            }
        })
    }

    fn of_bedrock(path: &str) -> Option<Format> {
        let (model, verb) = path.rsplit_once('/')?;
        let model = model.replace("%3A", ":");
        Some(match verb {
            "converse" => Format::Converse { model, stream: false },
            "converse-stream" => Format::Converse { model, stream: true },
            "invoke" => Format::Invoke { model, stream: false },
            "invoke-with-response-stream" => Format::Invoke { model, stream: true },
            _ => return None,
        })
    }

    fn is_bedrock(&self) -> bool {
        matches!(self, Format::Converse { .. } | Format::Invoke { .. })
    }

    fn error(&self, status: u16) -> Value {
        match self {
            Format::Anthropic | Format::RawPredict { .. } => anthropic::error(status),
            Format::Gemini { .. } => gemini::error(status),
            Format::Converse { .. } | Format::Invoke { .. } => bedrock::error(status),
            _ => chat::error(status),
        }
    }

    fn refusal(&self, status: u16) -> Reply {
        let reply = Reply::json(status, &self.error(status));
        match self.is_bedrock() {
            true => reply.with_header("x-amzn-errortype", bedrock::error_type(status).to_owned()),
            false => reply,
        }
    }

    /// Event of an error within a stream.
    fn error_event(&self) -> WireEvent {
        let error = self.error(500);
        match self {
            Format::Anthropic | Format::Responses | Format::RawPredict { .. } => WireEvent::named("error", &error),
            Format::Converse { .. } | Format::Invoke { .. } => {
                event_stream::exception("modelStreamErrorException", "scripted error 500")
            }
            _ => WireEvent::data(&error),
        }
    }

    fn huge_event(&self, bytes: usize) -> WireEvent {
        let padding = json!({"padding": "x".repeat(bytes)});
        if self.is_bedrock() { event_stream::event("padding", &padding) } else { WireEvent::data(&padding) }
    }

    fn prompt(&self, body: &Value) -> Prompt {
        match self {
            Format::Chat => chat::read(body),
            Format::Completions | Format::Embeddings => chat::read_completion(body),
            Format::Responses => responses::read(body),
            Format::Anthropic => anthropic::read(body),
            Format::Gemini { model, verb } => gemini::read(model, verb == "streamGenerateContent", body),
            Format::Converse { model, stream } => bedrock::read(model, *stream, body),
            Format::Invoke { model, stream } | Format::RawPredict { model, stream } => {
                Prompt { model: model.clone(), stream: *stream, ..anthropic::read(body) }
            }
        }
    }

    /// Returns why a cloud refuses a request, if it does: credentials and the members of Anthropic's bodies.
    fn refused_by_cloud(&self, request: &RecordedRequest, body: &Value) -> Option<(u16, String)> {
        let authorization = request.header("authorization").unwrap_or_default();
        let (status, is_signable, wanted) = match self {
            Format::Converse { .. } => (403, true, None),
            Format::Invoke { .. } => (403, true, Some(("bedrock-2023-05-31", false))),
            Format::RawPredict { .. } => (401, false, Some(("vertex-2023-10-16", true))),
            _ => return None,
        };
        let is_signed = is_signable && authorization.starts_with("AWS4-HMAC-SHA256 Credential=");
        if !is_signed && !authorization.starts_with("Bearer ") {
            return Some((status, "Missing Authentication Token".to_owned()));
        }
        let (version, has_mode) = wanted?;
        bedrock::anthropic_refusal(body, version, has_mode).map(|why| (400, why))
    }
}

fn reply_to(request: &RecordedRequest, fault: Option<&Fault>, number: usize) -> Reply {
    if request.method == "GET" && request.path.ends_with("/models") {
        return Reply::json(200, &json!({"object": "list", "data": [{"id": "scripted", "object": "model"}]}));
    }
    if request.path == mcp::PATH {
        let (status, body) = mcp::answer(&request.method, &request.json());
        let body = if body.is_null() { String::new() } else { body.to_string() };
        return Reply::Whole { status, content_type: "application/json", headers: Vec::new(), body };
    }
    let format = Format::of(&request.path);
    if let Some(Fault::Status { status, retry_after }) = fault {
        let reply = format.as_ref().unwrap_or(&Format::Chat).refusal(*status);
        return match retry_after {
            Some(after) => reply.with_header("retry-after", after.clone()),
            None => reply,
        };
    }
    if let Some(Fault::TellsHeaders(status)) = fault {
        let said: Vec<_> = request.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let message = format!("refused, with the headers {}", said.join(", "));
        return Reply::json(*status, &json!({"error": {"message": message, "type": "invalid_request_error"}}));
    }
    if request.path.ends_with("/rerank") {
        return Reply::json(200, &json!({"results": [{"index": 0, "relevance_score": 1}], "read": request.json()}));
    }
    if let Some(token) = tokens::answer(&request.path, &String::from_utf8_lossy(&request.body), number) {
        let tokens::TokenAnswer { status, content_type, body } = token;
        return Reply::Whole { status, content_type, headers: Vec::new(), body };
    }
    let Some(format) = format else { return Reply::json(404, &chat::error(404)) };
    let body = request.json();
    if let Some((status, message)) = format.refused_by_cloud(request, &body) {
        return Reply::json(status, &json!({"message": message}));
    }
    let prompt = format.prompt(&body);
    let found = match answer(&prompt) {
        Ok(found) => found,
        Err(status) => return format.refusal(status),
    };
    if !prompt.stream || matches!(format, Format::Completions | Format::Embeddings) {
        return whole(&format, &body, &prompt, &found);
    }
    let mut events = match &format {
        Format::Responses => responses::stream(&prompt, &found),
        Format::Anthropic | Format::RawPredict { .. } => anthropic::stream(&prompt, &found),
        Format::Gemini { .. } => gemini::stream(&prompt, &found),
        Format::Converse { .. } => bedrock::stream(&found),
        Format::Invoke { .. } => anthropic::stream(&prompt, &found).iter().map(bedrock::chunk).collect(),
        Format::Chat | Format::Completions | Format::Embeddings => chat::stream(&body, &prompt, &found),
    };
    match fault {
        Some(Fault::ErrorEventAfter(good)) => {
            events.truncate(*good);
            events.push(format.error_event());
        }
        Some(Fault::HugeEvent(bytes)) => events.insert(1, format.huge_event(*bytes)),
        _ => {}
    }
    let content_type = if format.is_bedrock() { "application/vnd.amazon.eventstream" } else { "text/event-stream" };
    Reply::Stream { content_type, events }
}

fn whole(format: &Format, body: &Value, prompt: &Prompt, found: &ScriptedAnswer) -> Reply {
    let answer = match format {
        Format::Chat => chat::whole(prompt, found),
        Format::Completions => chat::completion(body, found),
        Format::Embeddings => chat::embeddings(body),
        Format::Responses => responses::whole(prompt, found),
        Format::Anthropic | Format::Invoke { .. } | Format::RawPredict { .. } => anthropic::whole(prompt, found),
        Format::Gemini { verb, .. } if verb == "generateContent" => gemini::whole(prompt, found),
        Format::Gemini { verb, .. } => gemini::embeddings(verb, body),
        Format::Converse { .. } => bedrock::whole(found),
    };
    Reply::json(200, &answer)
}

/// Sends a reply. Returns whether the connection can be used again.
async fn respond(stream: &mut TcpStream, reply: &Reply, fault: Option<Fault>) -> anyhow::Result<bool> {
    let wrong_type = fault == Some(Fault::WrongContentType);
    let shown = |content_type: &'static str| if wrong_type { "text/html" } else { content_type };
    let (head, pieces): (String, Vec<Vec<u8>>) = match reply {
        Reply::Whole { status, content_type, headers, body } => {
            let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let (content_type, length) = (shown(content_type), body.len());
            let head = format!(
                "HTTP/1.1 {status} Scripted\r\ncontent-type: {content_type}\r\n{headers}content-length: {length}\r\n\r\n"
            );
            (head, vec![body.clone().into_bytes()])
        }
        Reply::Stream { content_type, events } => {
            let content_type = shown(content_type);
            let chunk =
                |WireEvent(bytes): &WireEvent| [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
            let chunks = events.iter().map(chunk);
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n");
            (head, chunks.chain([b"0\r\n\r\n".to_vec()]).collect())
        }
    };
    stream.write_all(head.as_bytes()).await?;
    let mut left = match fault {
        Some(Fault::CutAfter(bytes)) => bytes,
        _ => usize::MAX,
    };
    let pause = match fault {
        Some(Fault::SlowEvents(pause)) => pause,
        _ => Duration::ZERO,
    };
    for piece in pieces {
        tokio::time::sleep(pause).await;
        let bytes = &piece[..piece.len().min(left)];
        stream.write_all(bytes).await?;
        left -= bytes.len();
        if left == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}
