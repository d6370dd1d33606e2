//! Output of a function while it runs: lines of both streams, within limits.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

/// Upper bound of the bytes of a call's console that are kept (F-24).
const KEPT_BYTES_MAX: usize = 1 << 20;
/// Upper bound of the bytes that a call may write at all.
const WRITTEN_BYTES_MAX: u64 = 64 << 20;
/// Upper bound of the bytes of one event. Longer lines become several.
const LINE_BYTES_MAX: usize = 16 << 10;
/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;
/// Last line of a console that was cut.
const CUT: &str = "... the console of a call holds 1 MiB; the rest is left out";

/// Stream of a console.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConsoleStream {
    Stdout,
    Stderr,
}

impl ConsoleStream {
    pub fn name(self) -> &'static str {
        match self {
            ConsoleStream::Stdout => "stdout",
            ConsoleStream::Stderr => "stderr",
        }
    }
}

/// Event of a running function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeEvent {
    Console {
        stream: ConsoleStream,
        message: String,
    },
    /// Event that a task of an evaluation reported.
    Progress(Value),
}

/// Pipe of one stream, with the line that is not complete.
#[derive(Debug)]
pub struct ConsolePipe {
    stream: ConsoleStream,
    receiver: pipe::Receiver,
    /// Same pipe for reads that must not depend on the readiness that the runtime knows.
    direct: File,
    line: Vec<u8>,
    is_open: bool,
}

impl ConsolePipe {
    pub fn new(stream: ConsoleStream, pipe: OwnedFd) -> io::Result<ConsolePipe> {
        let direct = File::from(pipe.try_clone()?);
        // Makes the pipe non-blocking, for both handles.
        let receiver = pipe::Receiver::from_owned_fd(pipe)?;
        Ok(ConsolePipe { stream, receiver, direct, line: Vec::new(), is_open: true })
    }

    /// Waits until the pipe can be read, or forever if it is closed.
    pub async fn readable(&self) {
        if !self.is_open || self.receiver.readable().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Reads once. Returns the number of bytes, or `None` if there are none now.
    fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        match self.receiver.try_read(buffer) {
            Ok(0) => {
                self.is_open = false;
                None
            }
            Ok(count) => Some(count),
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => None,
            Err(_) => {
                self.is_open = false;
                None
            }
        }
    }

    /// Reads what the pipe holds at this moment.
    fn read_directly(&mut self, buffer: &mut [u8]) -> Option<usize> {
        match self.direct.read(buffer) {
            Ok(count @ 1..) => Some(count),
            _ => None,
        }
    }
}

/// Console of one call: what it may still write, and where it goes.
#[derive(Debug)]
pub struct CallConsole {
    events: Option<mpsc::Sender<CodeEvent>>,
    kept: usize,
    written: u64,
    /// Last lines of the standard error, for the error of a process that ends without a word.
    last_error: String,
    /// Last refused connection. The libraries of a function only tell that it was closed.
    refusal: Option<String>,
}

/// A call wrote more than it may.
#[derive(Debug, PartialEq, Eq)]
pub struct ConsoleOverflow;

impl CallConsole {
    pub fn new(events: Option<mpsc::Sender<CodeEvent>>) -> CallConsole {
        CallConsole { events, kept: 0, written: 0, last_error: String::new(), refusal: None }
    }

    /// Reads what can be read, and sends whole lines.
    pub async fn take(&mut self, pipe: &mut ConsolePipe) -> Result<(), ConsoleOverflow> {
        let mut buffer = vec![0; READ_BYTES];
        while let Some(count) = pipe.read(&mut buffer) {
            self.add(pipe, &buffer[..count]).await?;
        }
        Ok(())
    }

    /// Reads what a process wrote before its last frame, and ends the line that is not complete.
    pub async fn finish(&mut self, pipe: &mut ConsolePipe) -> Result<(), ConsoleOverflow> {
        let mut buffer = vec![0; READ_BYTES];
        while let Some(count) = pipe.read_directly(&mut buffer) {
            self.add(pipe, &buffer[..count]).await?;
        }
        let rest = std::mem::take(&mut pipe.line);
        if !rest.is_empty() {
            self.send(pipe.stream, &rest).await;
        }
        Ok(())
    }

    pub fn last_error(&self) -> &str {
        self.last_error.trim()
    }

    /// Adds a line on a refused connection.
    pub async fn note_refusal(&mut self, refusal: String) {
        self.send(ConsoleStream::Stderr, refusal.as_bytes()).await;
        self.refusal = Some(refusal);
    }

    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    async fn add(&mut self, pipe: &mut ConsolePipe, bytes: &[u8]) -> Result<(), ConsoleOverflow> {
        self.written += bytes.len() as u64;
        if self.written > WRITTEN_BYTES_MAX {
            return Err(ConsoleOverflow);
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            pipe.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") || pipe.line.len() >= LINE_BYTES_MAX {
                let line = std::mem::take(&mut pipe.line);
                self.send(pipe.stream, &line).await;
            }
        }
        Ok(())
    }

    async fn send(&mut self, stream: ConsoleStream, line: &[u8]) {
        let message = String::from_utf8_lossy(line);
        let message = message.strip_suffix('\n').unwrap_or(&message);
        if stream == ConsoleStream::Stderr && self.last_error.len() < LINE_BYTES_MAX {
            self.last_error.push_str(message);
            self.last_error.push('\n');
        }
        let Some(events) = self.events.as_ref().filter(|_| self.kept <= KEPT_BYTES_MAX) else { return };
        self.kept += line.len();
        let message = if self.kept > KEPT_BYTES_MAX { CUT } else { message };
        // A reader that has left ends the call elsewhere.
        let _ = events.send(CodeEvent::Console { stream, message: message.to_owned() }).await;
    }
}
