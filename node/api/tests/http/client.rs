//! The smallest client that will do: one request a connection, written by hand, so that tests can also send what no
//! good client would.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// A test that hangs fails after this.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct ClientResponse {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl ClientResponse {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The JSON of a 200.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/json"));
        self.json()
    }

    /// The message of a refusal, whose body must have its form.
    #[track_caller]
    pub fn refused(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        let body = self.json();
        assert_eq!(body["InternalTraceId"].as_str(), self.header("x-bt-internal-trace-id"));
        assert!(body["Code"].is_string() && body["Path"].is_string() && body["Service"] == "api", "{body}");
        body["Message"].as_str().expect("a message").to_owned()
    }
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_nodelay(true).expect("nodelay");
    stream
}

/// A request with its length said.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    // Metrics are shown only to callers that name this machine.
    let host = if path == "/metrics" { "127.0.0.1:8000" } else { "assay-test:8000" };
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    headers.iter().for_each(|(name, value)| text.push_str(&format!("{name}: {value}\r\n")));
    text.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    [text.as_bytes(), body].concat()
}

/// Sends these bytes and reads one answer. The server may answer and hang up before it has read all.
pub fn exchange(stream: &mut (impl Read + Write), bytes: &[u8]) -> ClientResponse {
    match stream.write_all(bytes).and_then(|()| stream.flush()) {
        Err(error) if ![ErrorKind::BrokenPipe, ErrorKind::ConnectionReset].contains(&error.kind()) => {
            panic!("sending: {error}")
        }
        _ => read_answer(stream),
    }
}

pub fn read_answer(stream: &mut impl Read) -> ClientResponse {
    let mut bytes = Vec::new();
    let mut piece = [0; 16 << 10];
    loop {
        if let Some(answer) = parse(&bytes) {
            return answer;
        }
        let read = stream.read(&mut piece).unwrap_or_else(|error| panic!("reading: {error}"));
        assert!(read > 0, "the server hung up after {:?}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&piece[..read]);
    }
}

/// Reads the first events of a response that streams them in chunks.
pub fn first_events(stream: &mut impl Read, events: usize) -> Vec<(String, Value)> {
    let mut bytes = Vec::new();
    let mut piece = [0; 16 << 10];
    loop {
        let read = stream.read(&mut piece).unwrap_or_else(|error| panic!("reading: {error}"));
        assert!(read > 0, "the server hung up after {:?}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&without_chunks(&bytes)).into_owned();
        let found: Vec<(String, Value)> = text.split_inclusive("\n\n").filter_map(event).collect();
        if found.len() >= events {
            return found;
        }
    }
}

fn event(text: &str) -> Option<(String, Value)> {
    let (name, data) = text.strip_prefix("event: ")?.strip_suffix("\n\n")?.split_once("\ndata: ")?;
    Some((name.to_owned(), serde_json::from_str(data).expect("JSON")))
}

/// Returns what the chunks of a response have that are whole.
fn without_chunks(bytes: &[u8]) -> Vec<u8> {
    let head_end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let mut rest = head_end.map_or(&[][..], |end| &bytes[end + 4..]);
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let length = std::str::from_utf8(&rest[..end]).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
        let length = length.expect("the length of a chunk");
        let Some(chunk) = rest.get(end + 2..end + 2 + length) else { break };
        body.extend_from_slice(chunk);
        rest = rest.get(end + 4 + length..).unwrap_or_default();
    }
    body
}

/// An answer that is whole; every answer of this server says its length.
fn parse(bytes: &[u8]) -> Option<ClientResponse> {
    let head_end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..head_end]).expect("a head of text");
    let (line, fields) = head.split_once("\r\n").unwrap_or((head, ""));
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let pairs = fields.lines().filter_map(|field| field.split_once(": "));
    let headers: Vec<_> = pairs.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let body = bytes[head_end + 4..].get(..length.unwrap_or(0))?.to_vec();
    Some(ClientResponse { status, headers, body })
}
