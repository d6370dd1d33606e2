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
use crate::script::{Prompt, answer};
use crate::sse::WireEvent;
use crate::{anthropic, chat, gemini, responses};

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
    requests: Vec<RecordedRequest>,
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
        let fault = {
            let mut shared = locked(&shared);
            if shared.requests.len() < RECORDED_MAX {
                shared.requests.push(request.clone());
            }
            shared.faults.pop_front()
        };
        if let Some(Fault::SlowFirstByte(pause)) = &fault {
            tokio::time::sleep(*pause).await;
        }
        if fault == Some(Fault::Closes)
            || !respond(stream.get_mut(), &reply_to(&request, fault.as_ref()), fault).await?
        {
            return Ok(());
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
    Whole { status: u16, retry_after: Option<String>, body: Value },
    Stream(Vec<WireEvent>),
}

/// The wire format that a path stands for.
enum Format {
    Chat,
    Completions,
    Embeddings,
    Responses,
    Anthropic,
    Gemini { model: String, verb: String },
}

impl Format {
    fn of(path: &str) -> Option<Format> {
        let path = path.split('?').next().unwrap_or_default();
        let ends = |end: &str| path.ends_with(end);
        Some(match () {
            () if ends("/chat/completions") => Format::Chat,
            () if ends("/completions") => Format::Completions,
            () if ends("/embeddings") => Format::Embeddings,
            () if ends("/responses") => Format::Responses,
            () if ends("/messages") => Format::Anthropic,
            () => {
                let (model, verb) = path.rsplit('/').next()?.split_once(':')?;
                Format::Gemini { model: model.into(), verb: verb.into() }
            }
        })
    }

    fn error(&self, status: u16) -> Value {
        match self {
            Format::Anthropic => anthropic::error(status),
            Format::Gemini { .. } => gemini::error(status),
            _ => chat::error(status),
        }
    }

    fn prompt(&self, body: &Value) -> Prompt {
        match self {
            Format::Chat => chat::read(body),
            Format::Completions | Format::Embeddings => chat::read_completion(body),
            Format::Responses => responses::read(body),
            Format::Anthropic => anthropic::read(body),
            Format::Gemini { model, verb } => gemini::read(model, verb == "streamGenerateContent", body),
        }
    }
}

fn reply_to(request: &RecordedRequest, fault: Option<&Fault>) -> Reply {
    let whole = |status: u16, body: Value| Reply::Whole { status, retry_after: None, body };
    if request.method == "GET" && request.path.ends_with("/models") {
        return whole(200, json!({"object": "list", "data": [{"id": "scripted", "object": "model"}]}));
    }
    let Some(format) = Format::of(&request.path) else { return whole(404, chat::error(404)) };
    if let Some(Fault::Status { status, retry_after }) = fault {
        return Reply::Whole { status: *status, retry_after: retry_after.clone(), body: format.error(*status) };
    }
    let body = request.json();
    let prompt = format.prompt(&body);
    let found = match answer(&prompt) {
        Ok(found) => found,
        Err(status) => return whole(status, format.error(status)),
    };
    let mut events = match (&format, prompt.stream) {
        (Format::Chat, false) => return whole(200, chat::whole(&prompt, &found)),
        (Format::Completions, _) => return whole(200, chat::completion(&body, &found)),
        (Format::Embeddings, _) => return whole(200, chat::embeddings(&body)),
        (Format::Responses, false) => return whole(200, responses::whole(&prompt, &found)),
        (Format::Anthropic, false) => return whole(200, anthropic::whole(&prompt, &found)),
        (Format::Gemini { verb, .. }, false) if verb == "generateContent" => {
            return whole(200, gemini::whole(&prompt, &found));
        }
        (Format::Gemini { verb, .. }, false) => return whole(200, gemini::embeddings(verb, &body)),
        (Format::Chat, true) => chat::stream(&body, &prompt, &found),
        (Format::Responses, true) => responses::stream(&prompt, &found),
        (Format::Anthropic, true) => anthropic::stream(&prompt, &found),
        (Format::Gemini { .. }, true) => gemini::stream(&prompt, &found),
    };
    match fault {
        Some(Fault::ErrorEventAfter(good)) => {
            events.truncate(*good);
            let error = format.error(500);
            let named = matches!(format, Format::Anthropic | Format::Responses);
            events.push(if named { WireEvent::named("error", &error) } else { WireEvent::data(&error) });
        }
        Some(Fault::HugeEvent(bytes)) => events.insert(1, WireEvent::data(&json!({"padding": "x".repeat(*bytes)}))),
        _ => {}
    }
    Reply::Stream(events)
}

/// Sends a reply. Returns whether the connection can be used again.
async fn respond(stream: &mut TcpStream, reply: &Reply, fault: Option<Fault>) -> anyhow::Result<bool> {
    let wrong_type = fault == Some(Fault::WrongContentType);
    let (head, pieces): (String, Vec<String>) = match reply {
        Reply::Whole { status, retry_after, body } => {
            let body = body.to_string();
            let content_type = if wrong_type { "text/html" } else { "application/json" };
            let retry = retry_after.as_ref().map_or_else(String::new, |after| format!("retry-after: {after}\r\n"));
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} Scripted\r\ncontent-type: {content_type}\r\n{retry}content-length: {length}\r\n\r\n"
            );
            (head, vec![body])
        }
        Reply::Stream(events) => {
            let content_type = if wrong_type { "text/html" } else { "text/event-stream" };
            let chunks = events.iter().map(|WireEvent(text)| format!("{:x}\r\n{text}\r\n", text.len()));
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n");
            (head, chunks.chain(["0\r\n\r\n".to_owned()]).collect())
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
        let bytes = &piece.as_bytes()[..piece.len().min(left)];
        stream.write_all(bytes).await?;
        left -= bytes.len();
        if left == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}
