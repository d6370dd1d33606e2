//! Content of a message in the framing of gRPC: a body, a refusal, or the end of a stream.
//!
//! ```text
//! body     1 | bytes
//! refusal  2 | code u8 | length of why u32 LE | why | detail
//! end      3 |
//! ```
//! A refusal is a message and not a status in the trailers. Headers have a size limit, which a reason with its detail
//! may exceed. The end of a stream is explicit, because some HTTP/2 resets look like an end.

use bytes::{Buf, BufMut, Bytes};
use futures::Stream;
use hyper::body::Incoming;
use tonic::Status;
use tonic::body::Body;
use tonic::codec::{BufferSettings, DecodeBuf, Decoder, EncodeBody, EncodeBuf, Encoder, Streaming};

use crate::refusal::{Refusal, RefusalCode};

/// Upper bound of a request body, a response body, and a chunk of a stream. A log entry with a large write fits, with a
/// margin.
pub const MESSAGE_BYTES_MAX: usize = 80 << 20;
/// Bytes of a frame in addition to its body: its kind. A refusal has more, but no body.
const BESIDE_BODY_BYTES: usize = 1;
/// Bytes in front of every message of gRPC: a flag and the length.
const BEFORE_FRAME_BYTES: usize = 5;
/// Initial read buffer of a response. It grows to the message's length once that is known.
const READ_BUFFER_BYTES: usize = 1 << 10;
/// Size below which chunks of a stream that are ready together are sent together.
const SEND_TOGETHER_BYTES: usize = 64 << 10;

const BODY: u8 = 1;
const REFUSED: u8 = 2;
const END: u8 = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Body(Bytes),
    Refused(Refusal),
    End,
    /// A frame of a newer version.
    Alien(u8),
}

impl Frame {
    fn body_bytes(&self) -> usize {
        match self {
            Frame::Body(bytes) => bytes.len(),
            Frame::Refused(refusal) => refusal.why.len() + refusal.detail.len(),
            Frame::End | Frame::Alien(_) => 0,
        }
    }

    fn put(self, into: &mut impl BufMut) {
        match self {
            Frame::Body(bytes) => {
                into.put_u8(BODY);
                into.put(bytes);
            }
            Frame::Refused(refusal) => {
                let why = &refusal.why[..refusal.why.floor_char_boundary(Refusal::WHY_BYTES_MAX)];
                into.put_u8(REFUSED);
                into.put_u8(refusal.code as u8);
                into.put_u32_le(u32::try_from(why.len()).expect("cut above"));
                into.put_slice(why.as_bytes());
                into.put(refusal.detail);
            }
            Frame::End => into.put_u8(END),
            Frame::Alien(kind) => into.put_u8(kind),
        }
    }

    fn get(from: &mut impl Buf) -> Result<Frame, &'static str> {
        let kind = from.try_get_u8().map_err(|_| "an empty frame")?;
        match kind {
            BODY => Ok(Frame::Body(from.copy_to_bytes(from.remaining()))),
            REFUSED => {
                let code = from.try_get_u8().map_err(|_| "a refusal without a code")?;
                let length = from.try_get_u32_le().map_err(|_| "a refusal without a reason")?;
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if length > from.remaining() {
                    return Err("the refusal is truncated");
                }
                let why = String::from_utf8_lossy(&from.copy_to_bytes(length)).into_owned();
                let detail = from.copy_to_bytes(from.remaining());
                Ok(Frame::Refused(Refusal { code: RefusalCode::from_byte(code), why, detail }))
            }
            END => Ok(Frame::End),
            kind => Ok(Frame::Alien(kind)),
        }
    }
}

/// Checks the size of a body before any of it is sent.
pub(crate) fn check_size(bytes: &Bytes) -> Result<(), String> {
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(format!("{} bytes are too many: a message has at most {MESSAGE_BYTES_MAX}", bytes.len()));
    }
    Ok(())
}

/// Returns the body of a request.
pub(crate) fn request_body(frame: Frame) -> Body {
    let encoder = FrameEncoder { buffer_bytes: BEFORE_FRAME_BYTES + BESIDE_BODY_BYTES + frame.body_bytes() };
    let frames = futures::stream::iter([Ok(frame)]);
    Body::new(EncodeBody::new_client(encoder, frames, None, None))
}

/// Returns the body of a response with a single frame.
pub(crate) fn answer_body(frame: Frame) -> Body {
    let encoder = FrameEncoder { buffer_bytes: BEFORE_FRAME_BYTES + BESIDE_BODY_BYTES + frame.body_bytes() };
    server_body(encoder, futures::stream::iter([Ok(frame)]))
}

/// Returns the body of a response that is a stream.
pub(crate) fn stream_body(frames: impl Stream<Item = Frame> + Send + 'static) -> Body {
    use futures::StreamExt;
    server_body(FrameEncoder { buffer_bytes: READ_BUFFER_BYTES }, frames.map(Ok))
}

fn server_body(encoder: FrameEncoder, frames: impl Stream<Item = Result<Frame, Status>> + Send + 'static) -> Body {
    Body::new(EncodeBody::new_server(encoder, frames, None, Default::default(), None))
}

/// Returns the frames of a request. A body larger than `bytes_max` is an error.
pub(crate) fn frames_of_request(body: Incoming, bytes_max: usize) -> Streaming<Frame> {
    Streaming::new_request(FrameDecoder, body, None, Some(bytes_max + BESIDE_BODY_BYTES))
}

/// Returns the frames of a response.
pub(crate) fn frames_of_answer(answer: hyper::Response<Incoming>) -> Streaming<Frame> {
    let status = answer.status();
    // A refusal is slightly larger than its detail.
    let bytes_max = MESSAGE_BYTES_MAX + Refusal::WHY_BYTES_MAX + 64;
    Streaming::new_response(FrameDecoder, answer.into_body(), status, None, Some(bytes_max))
}

#[derive(Debug)]
struct FrameEncoder {
    /// Size of the first reservation. It covers a whole single frame, so that a body is copied once and never moved.
    buffer_bytes: usize,
}

impl Encoder for FrameEncoder {
    type Item = Frame;
    type Error = Status;

    fn encode(&mut self, frame: Frame, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.reserve(BESIDE_BODY_BYTES + frame.body_bytes());
        frame.put(into);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(self.buffer_bytes, SEND_TOGETHER_BYTES)
    }
}

#[derive(Debug)]
struct FrameDecoder;

impl Decoder for FrameDecoder {
    type Item = Frame;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Frame>, Status> {
        Frame::get(from).map(Some).map_err(Status::data_loss)
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(READ_BUFFER_BYTES, SEND_TOGETHER_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(frame: Frame) -> Vec<u8> {
        let mut bytes = Vec::new();
        frame.put(&mut bytes);
        bytes
    }

    fn refused() -> Frame {
        Frame::Refused(Refusal::new(RefusalCode::NotLeader, "ask 3").with_detail(Bytes::from_static(&[0, 3])))
    }

    /// The bytes of frames never change, because peers of other versions read them.
    #[test]
    fn frames_have_their_bytes_for_ever() {
        assert_eq!(bytes_of(Frame::Body(Bytes::from_static(b"abc"))), b"\x01abc");
        assert_eq!(bytes_of(refused()), b"\x02\x06\x05\x00\x00\x00ask 3\x00\x03");
        assert_eq!(bytes_of(Frame::End), b"\x03");
    }

    #[test]
    fn a_frame_survives_its_bytes() {
        for frame in [Frame::Body(Bytes::new()), Frame::Body(Bytes::from_static(b"x")), refused(), Frame::End] {
            assert_eq!(Frame::get(&mut bytes_of(frame.clone()).as_slice()), Ok(frame));
        }
    }

    #[test]
    fn what_a_newer_version_says_is_a_failure_or_alien_and_never_an_error() {
        let newer = Frame::get(&mut b"\x02\x63\x02\x00\x00\x00no".as_slice());
        assert_eq!(newer, Ok(Frame::Refused(Refusal::new(RefusalCode::Failed, "no"))));
        assert_eq!(Frame::get(&mut b"\x09whatever".as_slice()), Ok(Frame::Alien(9)));
    }

    #[test]
    fn every_cut_of_a_refusal_is_an_error_or_a_shorter_detail() {
        let whole = bytes_of(refused());
        for length in 0..whole.len() {
            let cut = Frame::get(&mut &whole[..length]);
            assert_eq!(cut.is_ok(), length >= whole.len() - 2, "{length}: {cut:?}");
        }
    }

    #[test]
    fn a_long_reason_is_cut_between_two_characters() {
        let long = Refusal::new(RefusalCode::Failed, "ä".repeat(Refusal::WHY_BYTES_MAX));
        let Ok(Frame::Refused(read)) = Frame::get(&mut bytes_of(Frame::Refused(long)).as_slice()) else {
            panic!("not a refusal");
        };
        assert_eq!(read.why, "ä".repeat(Refusal::WHY_BYTES_MAX / 2));
    }
}
