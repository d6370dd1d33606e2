//! Server-sent events: an incremental parser and a writer.
//!
//! ```text
//! bytes ──▶ lines (LF, CRLF or CR) ──▶ fields ──▶ event at an empty line
//! ```
//! Lines are found in bytes and decoded when their event is whole. So a read may end within a character or a line end.

#[cfg(test)]
mod tests;

/// Upper bound of the bytes of one event, unless the caller sets another.
pub const SSE_EVENT_BYTES_MAX: usize = 1 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Type of the event, if it names one.
    pub event: Option<String>,
    pub data: String,
}

impl SseEvent {
    /// Makes an event without a type.
    pub fn of_data(data: impl Into<String>) -> SseEvent {
        SseEvent { event: None, data: data.into() }
    }
}

/// Stream that cannot be split into events.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    #[error("an event of the stream is larger than {max} bytes")]
    EventTooLong { max: usize },
}

/// Incremental parser of a stream of events.
#[derive(Debug)]
pub struct SseParser {
    bytes_max: usize,
    /// Bytes of the byte order mark that were seen; `None` after the beginning.
    mark: Option<usize>,
    /// Line that has not ended.
    line: Vec<u8>,
    /// Whether the last line ended in CR, so that LF belongs to it.
    after_return: bool,
    event: Option<Vec<u8>>,
    data: Option<Vec<u8>>,
    failed: bool,
}

impl Default for SseParser {
    fn default() -> SseParser {
        SseParser::new()
    }
}

impl SseParser {
    pub fn new() -> SseParser {
        SseParser::with_limit(SSE_EVENT_BYTES_MAX)
    }

    /// Makes a parser with another bound of the bytes of one event.
    pub fn with_limit(bytes_max: usize) -> SseParser {
        SseParser {
            bytes_max,
            mark: Some(0),
            line: Vec::new(),
            after_return: false,
            event: None,
            data: None,
            failed: false,
        }
    }

    /// Reads bytes and returns the events that they complete. If a later event is too long, the events before it are
    /// returned first, and the error by the next call.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, SseError> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while !self.failed && !rest.is_empty() {
            rest = self.step(rest, &mut events);
        }
        if self.failed && events.is_empty() { Err(self.too_long()) } else { Ok(events) }
    }

    /// Ends the input. Returns the event that no empty line ended, which some servers leave out.
    pub fn finish(&mut self) -> Result<Option<SseEvent>, SseError> {
        if !self.failed && !self.line.is_empty() {
            self.end_line();
        }
        if self.failed { Err(self.too_long()) } else { Ok(self.end_event()) }
    }

    /// Reads up to the end of a line, and returns the bytes after it.
    fn step<'a>(&mut self, bytes: &'a [u8], events: &mut Vec<SseEvent>) -> &'a [u8] {
        if let Some(seen) = self.mark {
            if BYTE_ORDER_MARK[seen] == bytes[0] {
                self.mark = (seen + 1 < BYTE_ORDER_MARK.len()).then_some(seen + 1);
                return &bytes[1..];
            }
            self.line.extend_from_slice(&BYTE_ORDER_MARK[..seen]);
            self.mark = None;
        }
        if std::mem::take(&mut self.after_return) && bytes[0] == b'\n' {
            return &bytes[1..];
        }
        let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        self.keep(&bytes[..end.unwrap_or(bytes.len())]);
        let Some(end) = end.filter(|_| !self.failed) else { return &[] };
        self.after_return = bytes[end] == b'\r';
        if self.line.is_empty() {
            events.extend(self.end_event());
        } else {
            self.end_line();
        }
        &bytes[end + 1..]
    }

    fn keep(&mut self, bytes: &[u8]) {
        let kept = [&self.event, &self.data].into_iter().flatten().map(Vec::len).sum::<usize>();
        if kept + self.line.len() + bytes.len() > self.bytes_max {
            self.failed = true;
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    /// Takes the field of a line. Comments, ids and times to wait have no use here.
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = match colon {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (&line[..], &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"event" => self.event = Some(value.to_vec()),
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            _ => {}
        }
    }

    /// Returns the event, if it has data. A type without data is no event.
    fn end_event(&mut self) -> Option<SseEvent> {
        let (event, data) = (self.event.take(), self.data.take());
        let decoded = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let event = event.filter(|event| !event.is_empty());
        data.map(|data| SseEvent { event: event.map(decoded), data: decoded(data) })
    }

    fn too_long(&self) -> SseError {
        SseError::EventTooLong { max: self.bytes_max }
    }
}

/// Writes an event. A line end within its data begins another `data` line; one within its type ends the type.
pub fn write_event(event: &SseEvent) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(event.data.len() + 16);
    if let Some(event) = &event.event {
        bytes.extend_from_slice(b"event: ");
        bytes.extend_from_slice(lines(event).next().unwrap_or_default().as_bytes());
        bytes.push(b'\n');
    }
    for line in lines(&event.data) {
        bytes.extend_from_slice(b"data: ");
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    bytes.push(b'\n');
    bytes
}

/// Writes a comment, which keeps a connection alive and which parsers skip.
pub fn write_comment(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() + 4);
    for line in lines(text) {
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    bytes.push(b'\n');
    bytes
}

/// Splits at LF, CRLF and CR. A text without any is one line.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}
