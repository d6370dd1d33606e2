//! Bytes of a frame: a length of four bytes, big endian, and JSON in UTF-8.

use std::io::{self, Read};
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::RESULT_BYTES_MAX;
use crate::frames::{FromWorker, ToWorker};

/// Bytes of the length before each frame.
pub const FRAME_HEADER_BYTES: usize = 4;
/// Upper bound of a frame from the server, without its length.
pub const TO_WORKER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Upper bound of a frame from a worker, without its length: a result and the rest of its frame.
pub const FROM_WORKER_BYTES_MAX: usize = RESULT_BYTES_MAX + 1024 * 1024;
/// Upper bound of the bytes that [`read_frame`] requests at once.
const READ_BYTES_MAX: usize = 64 * 1024;
/// Capacity that a decoder keeps after a large frame.
const IDLE_CAPACITY_MAX: usize = 256 * 1024;

/// Upper bound of the values in a frame from a worker.
///
/// An empty object has three bytes in a frame, and dozens in the memory of the server.
pub const FROM_WORKER_VALUES_MAX: usize = 1_000_000;
/// Upper bound of the levels of a frame from a worker, which is below that of the parser.
pub const FROM_WORKER_DEPTH_MAX: usize = 120;

/// Shape of a frame that its receiver accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameShape {
    pub values: usize,
    pub depth: usize,
}

/// Frame of one direction of the channel.
pub trait ChannelFrame: Serialize + DeserializeOwned {
    /// Upper bound of the encoded frame, without its length.
    const BYTES_MAX: usize;
    /// Upper bounds of its shape, if the sender is not trusted.
    const SHAPE_MAX: Option<FrameShape>;
    /// Sender of such frames, for errors.
    const SENDER: &'static str;
}

impl ChannelFrame for ToWorker {
    const BYTES_MAX: usize = TO_WORKER_BYTES_MAX;
    const SHAPE_MAX: Option<FrameShape> = None;
    const SENDER: &'static str = "server";
}

impl ChannelFrame for FromWorker {
    const BYTES_MAX: usize = FROM_WORKER_BYTES_MAX;
    const SHAPE_MAX: Option<FrameShape> =
        Some(FrameShape { values: FROM_WORKER_VALUES_MAX, depth: FROM_WORKER_DEPTH_MAX });
    const SENDER: &'static str = "worker";
}

/// Reason why bytes are no frame, or a frame has no bytes.
#[derive(Debug, Error)]
pub enum FrameCodecError {
    #[error("a frame of the {sender} has {bytes} bytes: at most {max} are valid")]
    TooLong { sender: &'static str, bytes: usize, max: usize },
    #[error("a frame of the {sender} has more than {max} values")]
    ManyValues { sender: &'static str, max: usize },
    #[error("a frame of the {sender} is nested more than {max} levels deep")]
    DeeplyNested { sender: &'static str, max: usize },
    #[error("a frame of the {sender} is not one of the known JSON forms: {reason}")]
    Malformed { sender: &'static str, reason: serde_json::Error },
    #[error("a frame of the {sender} cannot be encoded as JSON: {reason}")]
    NotEncoded { sender: &'static str, reason: serde_json::Error },
}

/// Reason why no frame could be read.
#[derive(Debug, Error)]
pub enum ChannelReadError {
    #[error("reading the channel failed: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Frame(#[from] FrameCodecError),
    #[error("the channel was closed {0} bytes after the start of a frame")]
    CutOff(usize),
}

/// Returns the bytes of a frame, with its length.
pub fn encode_frame<F: ChannelFrame>(frame: &F) -> Result<Vec<u8>, FrameCodecError> {
    let mut bytes = vec![0; FRAME_HEADER_BYTES];
    serde_json::to_writer(&mut bytes, frame)
        .map_err(|reason| FrameCodecError::NotEncoded { sender: F::SENDER, reason })?;
    let body = bytes.len() - FRAME_HEADER_BYTES;
    let length = u32::try_from(body).ok().filter(|_| body <= F::BYTES_MAX);
    let length = length.ok_or(FrameCodecError::TooLong { sender: F::SENDER, bytes: body, max: F::BYTES_MAX })?;
    bytes[..FRAME_HEADER_BYTES].copy_from_slice(&length.to_be_bytes());
    Ok(bytes)
}

/// Incremental decoder of the frames of one direction.
///
/// It holds received bytes only, so that a length alone never makes it allocate. After an error the position in the
/// stream is lost, and the channel has to be closed.
#[derive(Debug)]
pub struct ChannelDecoder<F> {
    received: Vec<u8>,
    /// Bytes of `received` that are already decoded.
    decoded: usize,
    frames: PhantomData<fn() -> F>,
}

impl<F> Default for ChannelDecoder<F> {
    fn default() -> ChannelDecoder<F> {
        ChannelDecoder { received: Vec::new(), decoded: 0, frames: PhantomData }
    }
}

impl<F: ChannelFrame> ChannelDecoder<F> {
    /// Adds bytes as they arrive. Frames have to be taken with [`ChannelDecoder::next_frame`] after each addition.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.decoded > 0 {
            self.received.drain(..self.decoded);
            self.decoded = 0;
        }
        if self.received.is_empty() && self.received.capacity() > IDLE_CAPACITY_MAX {
            self.received = Vec::new();
        }
        self.received.extend_from_slice(bytes);
    }

    /// Returns the next frame, or nothing if its bytes are not complete.
    pub fn next_frame(&mut self) -> Result<Option<F>, FrameCodecError> {
        let rest = &self.received[self.decoded..];
        let Some((header, body)) = rest.split_first_chunk::<FRAME_HEADER_BYTES>() else { return Ok(None) };
        let length = u32::from_be_bytes(*header) as usize;
        if length > F::BYTES_MAX {
            return Err(FrameCodecError::TooLong { sender: F::SENDER, bytes: length, max: F::BYTES_MAX });
        }
        let Some(body) = body.get(..length) else { return Ok(None) };
        if let Some(max) = F::SHAPE_MAX {
            check_shape(body, max, F::SENDER)?;
        }
        let frame =
            serde_json::from_slice(body).map_err(|reason| FrameCodecError::Malformed { sender: F::SENDER, reason })?;
        self.decoded += FRAME_HEADER_BYTES + length;
        Ok(Some(frame))
    }

    /// Returns the number of bytes that belong to no decoded frame.
    pub fn pending(&self) -> usize {
        self.received.len() - self.decoded
    }
}

/// Checks the number of values and levels before anything is allocated for them.
fn check_shape(body: &[u8], max: FrameShape, sender: &'static str) -> Result<(), FrameCodecError> {
    let (mut values, mut depth) = (1_usize, 0_usize);
    let (mut is_text, mut is_escaped) = (false, false);
    for byte in body {
        if is_text {
            is_text = is_escaped || *byte != b'"';
            is_escaped = !is_escaped && *byte == b'\\';
            continue;
        }
        match byte {
            b'"' => is_text = true,
            b',' => values += 1,
            b'[' | b'{' => {
                values += 1;
                depth += 1;
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if values > max.values {
            return Err(FrameCodecError::ManyValues { sender, max: max.values });
        }
        if depth > max.depth {
            return Err(FrameCodecError::DeeplyNested { sender, max: max.depth });
        }
    }
    Ok(())
}

/// Reads one frame from a blocking channel. Returns nothing if the channel was closed between two frames.
pub fn read_frame<F: ChannelFrame>(
    channel: &mut impl Read,
    decoder: &mut ChannelDecoder<F>,
) -> Result<Option<F>, ChannelReadError> {
    let mut bytes = vec![0; READ_BYTES_MAX];
    loop {
        if let Some(frame) = decoder.next_frame()? {
            return Ok(Some(frame));
        }
        match channel.read(&mut bytes) {
            Ok(0) if decoder.pending() == 0 => return Ok(None),
            Ok(0) => return Err(ChannelReadError::CutOff(decoder.pending())),
            Ok(count) => decoder.push(&bytes[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests;
