//! The conversation of an export or import between a node and the side that has the file: `assay admin` reads and writes
//! the file with the rights of its caller, and what goes through the node's socket is the bytes.
//!
//! The node speaks first and the other side does what it says, so that each waits for the other and neither holds more than
//! a part of the file:
//!
//! | the node | the other side |
//! |---|---|
//! | progress | shows it |
//! | bytes, so many of them behind the line | puts them at the end of the file |
//! | wants the first part of the file, or the next | sends it behind its length; an empty one is the end |
//! | its answer | ends |

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{TransferContext, export, import};

/// Bytes of the file that go through the socket at once.
pub(crate) const PART_BYTES: usize = 1 << 20;
/// Upper bound of waiting for the other side.
const STALLED: Duration = Duration::from_secs(300);
/// Upper bound of a line of the node: an answer names what it left out.
pub(crate) const LINE_BYTES_MAX: u64 = 8 << 20;
/// Held by the one export or import of the node: each takes what the node has left.
static UNDER_WAY: Mutex<()> = Mutex::new(());

/// A request for an export or an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferRequest {
    Export {
        organization: String,
    },
    /// Under another name where one is given.
    Import {
        organization: Option<String>,
    },
}

/// The last message of the node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferAnswer {
    Done(Value),
    Refused(String),
}

/// A message of the node, as a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NodeMessage {
    /// Progress, for people.
    Said(String),
    /// So many bytes of the file follow.
    Bytes(usize),
    /// The first part of the file is wanted.
    First,
    /// The next part is wanted.
    Next,
    Answer(TransferAnswer),
}

/// Serves one request on the side of the node; blocks.
pub fn serve(stream: UnixStream, context: &TransferContext, request: &TransferRequest) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(STALLED))?;
    stream.set_write_timeout(Some(STALLED))?;
    let answer = match UNDER_WAY.try_lock() {
        Some(_alone) => carry_out(&stream, context, request),
        None => TransferAnswer::Refused("another export or import is running on this node: try again later".into()),
    };
    tell(&stream, &NodeMessage::Answer(answer))?;
    Ok(())
}

fn carry_out(stream: &UnixStream, context: &TransferContext, request: &TransferRequest) -> TransferAnswer {
    let mut say = |said: &str| {
        if let Err(error) = tell(stream, &NodeMessage::Said(said.to_owned())) {
            tracing::debug!(%error, "the client of the export or import is gone"); // the next part of the file ends it
        }
    };
    let done = match request {
        TransferRequest::Export { organization: name } => {
            let out = BufWriter::with_capacity(PART_BYTES, Outgoing(stream));
            export(context, name, out, &mut say).map(|footer| {
                json!({
                    "organization": name, "records": footer.records, "objects": footer.objects,
                    "operations": footer.operations, "sha256": footer.sha256,
                })
            })
        }
        TransferRequest::Import { organization: name } => {
            let mut open = || Ok(BufReader::with_capacity(PART_BYTES, Incoming::start(stream)));
            import(context, name.as_deref(), &mut open, &mut say).map(|done| {
                json!({
                    "id": done.organization.to_string(), "organization": done.name,
                    "records": done.footer.records, "operations": done.footer.operations,
                    "records_written": done.records, "operations_written": done.operations,
                    "sha256": done.footer.sha256, "to_be_set_anew": done.without_secret,
                    "to_be_set_anew_count": done.without_secret_count,
                })
            })
        }
    };
    done.map_or_else(|why| TransferAnswer::Refused(why.to_string()), TransferAnswer::Done)
}

fn tell(mut stream: &UnixStream, message: &NodeMessage) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// The file as the node writes it.
struct Outgoing<'s>(&'s UnixStream);

impl Write for Outgoing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let part = &bytes[..bytes.len().min(PART_BYTES)];
        if !part.is_empty() {
            tell(self.0, &NodeMessage::Bytes(part.len()))?;
            self.0.write_all(part)?;
        }
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The file as the node reads it.
struct Incoming<'s> {
    stream: &'s UnixStream,
    is_first: bool,
    /// Bytes left of the part that is being read.
    left: usize,
    is_over: bool,
}

impl Incoming<'_> {
    fn start(stream: &UnixStream) -> Incoming<'_> {
        Incoming { stream, is_first: true, left: 0, is_over: false }
    }
}

impl Read for Incoming<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.is_over || into.is_empty() {
            return Ok(0);
        }
        if self.left == 0 {
            tell(self.stream, if self.is_first { &NodeMessage::First } else { &NodeMessage::Next })?;
            self.is_first = false;
            let mut length = [0; 4];
            self.stream.read_exact(&mut length)?;
            self.left = u32::from_le_bytes(length) as usize;
            if self.left > PART_BYTES {
                return Err(io::Error::other("a part of the file is too large"));
            }
            self.is_over = self.left == 0;
        }
        let count = self.left.min(into.len());
        self.stream.read_exact(&mut into[..count])?;
        self.left -= count;
        Ok(count)
    }
}
