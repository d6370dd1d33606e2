//! Protocol of an export or import between a node and the client that has the file.
//!
//! The client is `assay admin`, which accesses the file with the rights of its user. Only the bytes pass through the
//! node's socket. The node sends requests and the client follows them. So each side waits for the other, and neither
//! holds more than a part of the file:
//!
//! | node | client |
//! |---|---|
//! | progress message | prints it |
//! | line with a number of bytes, followed by these bytes | appends them to the file |
//! | request for the first or next part of the file | sends its length and the part; an empty part is the end |
//! | answer | ends |

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{TransferContext, export, import};

/// Upper bound of the file bytes that pass through the socket at once.
pub(crate) const PART_BYTES: usize = 1 << 20;
/// Time limit of waiting for the client.
const STALLED: Duration = Duration::from_secs(300);
/// Upper bound of a line from the node, whose answer lists omitted records.
pub(crate) const LINE_BYTES_MAX: u64 = 8 << 20;
/// Lock for a single export or import per node, because each uses all remaining resources of the node.
static UNDER_WAY: Mutex<()> = Mutex::new(());

/// Request for an export or an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferRequest {
    Export {
        organization: String,
    },
    /// Import, optionally under another name.
    Import {
        organization: Option<String>,
    },
}

/// Last message of the node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferAnswer {
    Done(Value),
    Refused(String),
}

/// Message of the node, encoded as a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NodeMessage {
    /// Progress message for people.
    Said(String),
    /// Number of file bytes that follow.
    Bytes(usize),
    /// Request for the first part of the file.
    First,
    /// Request for the next part.
    Next,
    Answer(TransferAnswer),
}

/// Serves one request on the node. This blocks the thread.
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

/// Writer that sends the file to the client.
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

/// Reader that receives the file from the client.
struct Incoming<'s> {
    stream: &'s UnixStream,
    is_first: bool,
    /// Number of bytes left in the current part.
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
