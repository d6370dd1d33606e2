//! HTTP/1.1 messages as far as this client needs them, as plain functions over bytes: heads of requests and responses,
//! and chunked bodies.

use std::time::Duration;

/// A head longer than this is no answer of ours.
pub const HEAD_BYTES_MAX: usize = 64 << 10;
/// Maximum length of a line with a chunk's size.
const CHUNK_LINE_BYTES_MAX: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    Bytes(usize),
    Chunked,
}

/// Head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Up to where the body begins.
    pub bytes: usize,
    pub status: u16,
    pub length: Length,
    pub retry_after: Option<Duration>,
    /// The server closes the connection after this answer.
    pub closes: bool,
    /// Start of the next page.
    pub cursor: Option<String>,
}

/// The head of a request with a JSON body of `body_bytes`.
pub fn request_head(
    method: &str,
    path: &str,
    host: &str,
    key: Option<&str>,
    said: &[(&str, &str)],
    body_bytes: usize,
) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {body_bytes}\r\n");
    if body_bytes > 0 && said.is_empty() {
        head.push_str("content-type: application/json\r\n");
    }
    for (name, value) in said {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(key) = key {
        head.push_str(&format!("authorization: Bearer {key}\r\n"));
    }
    head.push_str("\r\n");
    head.into_bytes()
}

/// The head of an answer, or none while more of it is to come.
pub fn read_head(received: &[u8]) -> Result<Option<Head>, String> {
    let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") else {
        return if received.len() > HEAD_BYTES_MAX { Err("an answer's head without an end".into()) } else { Ok(None) };
    };
    let text = std::str::from_utf8(&received[..end]).map_err(|_| "an answer's head that is no text")?;
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let status = first.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| format!("an answer that opens with `{first}`"))?;
    let mut head =
        Head { bytes: end + 4, status, length: Length::Bytes(0), retry_after: None, closes: false, cursor: None };
    for line in lines {
        let (name, value) = line.split_once(':').ok_or_else(|| format!("a header without a colon: `{line}`"))?;
        head.take(&name.to_ascii_lowercase(), value.trim())?;
    }
    Ok(Some(head))
}

impl Head {
    fn take(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "content-length" => {
                self.length = Length::Bytes(value.parse().map_err(|_| format!("a length of `{value}`"))?);
            }
            "transfer-encoding" if value.eq_ignore_ascii_case("chunked") => self.length = Length::Chunked,
            "transfer-encoding" => return Err(format!("a transfer encoding of `{value}`")),
            "content-encoding" => return Err(format!("a body encoded as `{value}`, which nobody asked for")),
            "connection" => self.closes = value.eq_ignore_ascii_case("close"),
            // The other form is a date; the servers measured here say seconds.
            "retry-after" => self.retry_after = value.parse().ok().map(Duration::from_secs),
            "x-bt-cursor" => self.cursor = Some(value.to_owned()).filter(|cursor| !cursor.is_empty()),
            _ => {}
        }
        Ok(())
    }
}

/// Reads a body in chunks from what was received so far.
#[derive(Clone, Copy, Debug)]
pub struct Chunks {
    /// Up to here all is read.
    at: usize,
}

impl Chunks {
    pub fn from(body_at: usize) -> Chunks {
        Chunks { at: body_at }
    }

    /// Up to where all is read.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Appends every whole chunk to `body`; where the whole body ends, once it is there.
    pub fn read(&mut self, received: &[u8], body: &mut Vec<u8>) -> Result<Option<usize>, String> {
        loop {
            let rest = &received[self.at..];
            let Some(line) = rest.windows(2).position(|two| two == b"\r\n") else {
                return if rest.len() > CHUNK_LINE_BYTES_MAX { Err("a chunk without a size".into()) } else { Ok(None) };
            };
            let text = std::str::from_utf8(&rest[..line]).map_err(|_| "a chunk whose size is no text")?;
            let digits = text.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(digits, 16).map_err(|_| format!("a chunk of `{text}` bytes"))?;
            let (start, end) = (line + 2, size.saturating_add(line + 2));
            let Some(after) = rest.get(end..end.saturating_add(2)) else {
                return Ok(None);
            };
            if after != b"\r\n" {
                return Err("a chunk that is longer than it says, or trailers".into());
            }
            body.extend_from_slice(&rest[start..end]);
            self.at += end + 2;
            if size == 0 {
                return Ok(Some(self.at));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let text = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 12\r\nRetry-After: 2\r\n\r\n{";
        for cut in 0..text.len() - 1 {
            assert_eq!(read_head(&text[..cut]), Ok(None));
        }
        let head = read_head(text).expect("a head").expect("whole");
        assert_eq!((head.status, head.length, head.bytes), (429, Length::Bytes(12), text.len() - 1));
        assert_eq!((head.retry_after, head.closes), (Some(Duration::from_secs(2)), false));
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for text in ["SSH-2.0\r\n\r\n", "HTTP/1.1 two\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\n\r\n"] {
            assert!(read_head(text.as_bytes()).is_err(), "{text}");
        }
        assert!(read_head(&[b'x'; HEAD_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn chunks_are_joined_however_they_arrive() {
        let text = b"5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\n\r\n";
        for step in 1..text.len() {
            let (mut chunks, mut body, mut end) = (Chunks::from(0), Vec::new(), None);
            for upto in (step..text.len()).step_by(step).chain([text.len()]) {
                end = chunks.read(&text[..upto], &mut body).expect("chunks");
            }
            assert_eq!((body.as_slice(), end), (&b"hello world"[..], Some(text.len())));
        }
        assert!(Chunks::from(0).read(b"zz\r\n", &mut Vec::new()).is_err());
    }

    #[test]
    fn a_request_says_who_asks_and_how_much_follows() {
        let head = String::from_utf8(request_head("POST", "/v1/project", "h:1", Some("sk-1"), &[], 2)).expect("text");
        assert!(head.starts_with("POST /v1/project HTTP/1.1\r\nhost: h:1\r\ncontent-length: 2\r\n"), "{head}");
        assert!(head.ends_with("authorization: Bearer sk-1\r\n\r\n"), "{head}");
    }
}
