//! Reader of gRPC messages, which have a prefix of five bytes with a compression flag and a length.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;

use bytes::{Buf, Bytes, BytesMut};
use futures::Stream;
use futures::stream::try_unfold;
use hyper::body::{Body, Incoming};

const PREFIX_BYTES: usize = 5;
const PACKED: u8 = 1;

/// Prefix of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHead {
    /// Whether the message is compressed with the encoding in the metadata.
    pub is_packed: bool,
    pub bytes: u32,
}

/// Reason why a message cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenMessage(String);

impl fmt::Display for BrokenMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BrokenMessage {}

/// Message that has not been read yet.
#[derive(Debug)]
pub struct GrpcMessage<B = Incoming> {
    body: B,
    /// Bytes that have arrived but were not returned yet.
    ahead: BytesMut,
}

impl<B> GrpcMessage<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: fmt::Display,
{
    pub fn new(body: B) -> GrpcMessage<B> {
        GrpcMessage { body, ahead: BytesMut::new() }
    }

    /// Reads the prefix. It must be called once, before the message is read.
    pub async fn head(&mut self) -> Result<MessageHead, BrokenMessage> {
        while self.ahead.len() < PREFIX_BYTES {
            let Some(more) = next(&mut self.body).await? else {
                return Err(BrokenMessage(match self.ahead.len() {
                    0 => "the call has no message".into(),
                    came => format!("the call ended after {came} of the {PREFIX_BYTES} bytes of the message prefix"),
                }));
            };
            self.ahead.extend_from_slice(&more);
        }
        match self.ahead.get_u8() {
            flags @ 0..=PACKED => Ok(MessageHead { is_packed: flags == PACKED, bytes: self.ahead.get_u32() }),
            flags => Err(BrokenMessage(format!(
                "the compression flag of the message is {flags}; it must be 0, or 1 if the message is compressed"
            ))),
        }
    }

    /// Returns the message after the prefix, in pieces. Data after the message is an error.
    pub fn pieces(self, head: MessageHead) -> impl Stream<Item = Result<Bytes, BrokenMessage>> {
        let whole = head.bytes as usize;
        try_unfold((self, 0_usize), move |(mut rest, came)| async move {
            let piece = match rest.ahead.is_empty() {
                false => Some(rest.ahead.split().freeze()),
                true => next(&mut rest.body).await?,
            };
            let Some(piece) = piece else {
                let short = || BrokenMessage(format!("the message ended after {came} of {whole} bytes"));
                return if came == whole { Ok(None) } else { Err(short()) };
            };
            let came = came + piece.len();
            if came > whole {
                return Err(BrokenMessage(format!(
                    "the call has data after its message of {whole} bytes; send only one message in a call"
                )));
            }
            Ok(Some((piece, (rest, came))))
        })
    }
}

/// Reads the next bytes, or returns `None` at the end. Trailers are skipped.
async fn next<B>(body: &mut B) -> Result<Option<Bytes>, BrokenMessage>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: fmt::Display,
{
    loop {
        let Some(frame) = poll_fn(|task| Pin::new(&mut *body).poll_frame(task)).await else { return Ok(None) };
        let frame = frame.map_err(|why| BrokenMessage(format!("the call was interrupted: {why}")))?;
        if let Ok(bytes) = frame.into_data()
            && !bytes.is_empty()
        {
            return Ok(Some(bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::task::{Context, Poll};

    use futures::{StreamExt, TryStreamExt};
    use hyper::body::Frame;

    use super::*;

    /// Body of fixed pieces.
    struct Pieces(VecDeque<Bytes>);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(|bytes| Ok(Frame::data(bytes))))
        }
    }

    async fn read(sent: &[u8], piece: usize) -> Result<(MessageHead, Vec<u8>), BrokenMessage> {
        let mut inbound = GrpcMessage::new(Pieces(sent.chunks(piece).map(Bytes::copy_from_slice).collect()));
        let head = inbound.head().await?;
        let pieces: Vec<Bytes> = inbound.pieces(head).boxed().try_collect().await?;
        Ok((head, pieces.concat()))
    }

    #[tokio::test]
    async fn a_message_is_read_however_it_is_cut() {
        let sent = [&[0, 0, 0, 0, 9][..], b"a message"].concat();
        for piece in 1..=sent.len() {
            let (head, message) = read(&sent, piece).await.expect("a message");
            assert_eq!(
                (head, &message[..]),
                (MessageHead { is_packed: false, bytes: 9 }, &b"a message"[..]),
                "{piece}"
            );
        }
        assert_eq!(read(&[1, 0, 0, 0, 0], 5).await, Ok((MessageHead { is_packed: true, bytes: 0 }, Vec::new())));
    }

    #[tokio::test]
    async fn what_is_no_message_says_where_it_ends() {
        for (sent, said) in [
            (&b""[..], "the call has no message"),
            (&[0, 0][..], "after 2 of the 5 bytes"),
            (&[7, 0, 0, 0, 0][..], "compression flag of the message is 7"),
            (&[0, 0, 0, 0, 2, b'a'][..], "after 1 of 2 bytes"),
            (&[0, 0, 0, 0, 1, b'a', 0, 0, 0, 0, 0][..], "data after its message of 1 bytes"),
        ] {
            for piece in 1..=sent.len().max(1) {
                let why = read(sent, piece).await.expect_err(said).to_string();
                assert!(why.contains(said), "{why}");
            }
        }
    }
}
