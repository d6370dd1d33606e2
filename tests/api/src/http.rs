//! A minimal HTTP client: one request, one connection, one response. It sends exactly the given bytes, including
//! invalid ones, which no HTTP library would.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Time without a byte after which the server counts as hanging, and the test fails.
pub const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Maximum size of a response in these tests.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    /// Path and query, encoded.
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    /// Value of `Content-Length` if it differs from the length of the body.
    pub declared_length: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// All values of a header, joined as if they stood in one line.
    pub fn header(&self, name: &str) -> Option<String> {
        let values = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let values: Vec<&str> = values.map(|(_, value)| value.as_str()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Result of sending a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exchange {
    Answered(HttpResponse),
    /// The server closed the connection without a whole answer.
    Closed,
}

/// Sends one request to `base`, as `http://127.0.0.1:8000`, and reads the whole answer.
pub fn send(base: &str, request: &Request) -> Result<HttpResponse> {
    match exchange(base, request, SILENCE_MAX)? {
        Exchange::Answered(answer) => Ok(answer),
        Exchange::Closed => bail!("{} {}: the connection was closed without an answer", request.method, request.target),
    }
}

/// Sends like `send`, with another timeout. If fewer bytes are sent than declared, the sending side is closed after
/// them.
pub fn exchange(base: &str, request: &Request, silence_max: Duration) -> Result<Exchange> {
    let address = base.strip_prefix("http://").with_context(|| format!("{base} is no http:// address"))?;
    let address = address.trim_end_matches('/');
    let stream = TcpStream::connect(address).with_context(|| format!("{address} does not take a connection"))?;
    stream.set_read_timeout(Some(silence_max))?;
    stream.set_write_timeout(Some(silence_max))?;
    let bytes = request_bytes(address, request);
    let truncated = request.declared_length.is_some_and(|length| length > request.body.as_ref().map_or(0, Vec::len));
    // The server may answer, and close, before it has read a body that it refuses: read while writing.
    let (written, read) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| read_all(&stream));
        let written = (&stream).write_all(&bytes);
        if truncated {
            let _ = stream.shutdown(Shutdown::Write);
        }
        (written, reader.join().unwrap_or_else(|_| Err(io::Error::other("the reader died"))))
    });
    let read = read.with_context(|| format!("{} {}: no answer", request.method, request.target))?;
    match parse(&read)? {
        Some(answer) => Ok(Exchange::Answered(answer)),
        None => match written {
            Err(error) if error.kind() == ErrorKind::WouldBlock => bail!("the server stopped reading"),
            _ => Ok(Exchange::Closed),
        },
    }
}

/// Returns the bytes of a request.
pub fn request_bytes(address: &str, request: &Request) -> Vec<u8> {
    let mut head =
        format!("{} {} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n", request.method, request.target);
    for (name, value) in &request.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let length = request.declared_length.or(request.body.as_ref().map(Vec::len));
    if let Some(length) = length.or((request.method != "GET" && request.method != "OPTIONS").then_some(0)) {
        head.push_str(&format!("Content-Length: {length}\r\n"));
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(request.body.as_deref().unwrap_or_default());
    bytes
}

/// Everything until the server closes. A reset behind the answer is no error: what came is judged.
fn read_all(stream: &TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match stream.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => Ok(bytes),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Err(io::Error::new(ErrorKind::TimedOut, format!("silence after {} bytes", bytes.len())))
        }
        Err(error) => Err(error),
    }
}

/// An answer from all that was read; none where the bytes are no whole one.
pub fn parse(bytes: &[u8]) -> Result<Option<HttpResponse>> {
    let Some(end) = find(bytes, b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&bytes[..end]).context("a head that is no text")?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
    let status: u16 = status.with_context(|| format!("no status line: {head:?}"))?;
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut answer = HttpResponse { status, headers, body: Vec::new() };
    let rest = &bytes[end + 4..];
    if status == 100 {
        return parse(rest);
    }
    if answer.header("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
        let Some(body) = unchunked(rest)? else { return Ok(None) };
        answer.body = body;
        return Ok(Some(answer));
    }
    let length = answer.header("content-length").and_then(|length| length.parse::<usize>().ok());
    match length {
        Some(length) if rest.len() < length => Ok(None),
        Some(length) => {
            answer.body = rest[..length].to_vec();
            Ok(Some(answer))
        }
        None => {
            answer.body = rest.to_vec();
            Ok(Some(answer))
        }
    }
}

/// None where the last chunk is missing.
fn unchunked(mut rest: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    loop {
        let Some(end) = find(rest, b"\r\n") else { return Ok(None) };
        let size = std::str::from_utf8(&rest[..end]).context("a chunk's size that is no text")?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).with_context(|| format!("`{size}` is no size of a chunk"))?;
        rest = &rest[end + 2..];
        if size == 0 {
            return Ok(Some(body));
        }
        if rest.len() < size + 2 {
            return Ok(None);
        }
        body.extend_from_slice(&rest[..size]);
        rest = &rest[size + 2..];
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Everything but letters, digits and `-_.~` as `%XX`.
pub fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_a_known_length_is_whole_when_all_of_it_came() {
        let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: 1\r\nx-a: 2\r\n\r\n{}";
        let answer = parse(bytes).unwrap().expect("whole");
        assert_eq!((answer.status, answer.text()), (200, "{}".into()));
        assert_eq!(answer.header("X-a").as_deref(), Some("1, 2"));
        assert_eq!(parse(&bytes[..bytes.len() - 1]).unwrap(), None);
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\n").unwrap(), None);
    }

    #[test]
    fn chunks_are_put_together() {
        let bytes = b"HTTP/1.1 404 Not Found\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
        assert_eq!(parse(bytes).unwrap().expect("whole").text(), "abcde");
        assert_eq!(parse(&bytes[..bytes.len() - 8]).unwrap(), None);
    }

    #[test]
    fn a_request_says_what_it_is_told() {
        let request = Request { method: "POST".into(), target: "/x".into(), ..Request::default() };
        let text = |request: &Request| String::from_utf8(request_bytes("h:1", request)).unwrap();
        assert!(text(&request).ends_with("Content-Length: 0\r\n\r\n"));
        let short = Request { body: Some(b"ab".to_vec()), declared_length: Some(9), ..request };
        assert!(text(&short).ends_with("Content-Length: 9\r\n\r\nab"));
        assert_eq!(percent_encoded("a b&ü"), "a%20b%26%C3%BC");
    }
}
