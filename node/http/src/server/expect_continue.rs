//! Support for `Expect: 100-continue`, which tells a client to continue only after its request is admitted.
//!
//! The HTTP library writes `100 Continue` before it calls a handler. This stream withholds it, and sends it when the
//! body is first read. An earlier final response replaces it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use actix_rt::net::{ActixStream, Ready};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Stream of a connection, which can withhold `100 Continue`.
pub(crate) struct Interim<S> {
    stream: S,
    state: Continue,
}

/// State of `100 Continue` on a connection. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Continue(Arc<Mutex<ContinueState>>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ContinueState {
    /// All bytes pass.
    #[default]
    Passing,
    /// The library is about to write `100 Continue`.
    Expected { is_released: bool },
    /// The library has written it, and the stream withholds it.
    Withheld,
    /// The stream sends it, starting at this byte.
    Sending(usize),
}

impl Continue {
    /// Withholds the `100 Continue` that the library writes next. It must be called before the library flushes.
    pub fn withhold(&self) {
        *self.0.lock() = ContinueState::Expected { is_released: false };
    }

    /// Sends the withheld `100 Continue` with the next flush.
    pub fn release(&self) {
        let mut state = self.0.lock();
        *state = match *state {
            ContinueState::Expected { .. } => ContinueState::Expected { is_released: true },
            ContinueState::Withheld => ContinueState::Sending(0),
            other => other,
        };
    }

    /// Returns whether the client still waits for `100 Continue`.
    pub fn is_withheld(&self) -> bool {
        matches!(*self.0.lock(), ContinueState::Expected { is_released: false } | ContinueState::Withheld)
    }

    /// Returns the number of written bytes to withhold.
    fn withheld_of(&self, bytes: &[u8]) -> usize {
        let mut state = self.0.lock();
        match *state {
            ContinueState::Expected { is_released } if bytes.starts_with(CONTINUE) => {
                *state = if is_released { ContinueState::Sending(0) } else { ContinueState::Withheld };
                CONTINUE.len()
            }
            // The library writes the response to an earlier request, or a final response instead of `100 Continue`.
            ContinueState::Expected { .. } | ContinueState::Withheld => {
                *state = ContinueState::Passing;
                0
            }
            ContinueState::Passing | ContinueState::Sending(_) => 0,
        }
    }
}

impl<S> Interim<S> {
    pub fn new(stream: S) -> Interim<S> {
        Interim { stream, state: Continue::default() }
    }

    pub fn inner(&self) -> &S {
        &self.stream
    }

    pub fn interim(&self) -> &Continue {
        &self.state
    }
}

impl<S: AsyncWrite + Unpin> Interim<S> {
    fn poll_continue(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let ContinueState::Sending(sent) = *self.state.0.lock() else { return Poll::Ready(Ok(())) };
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, &CONTINUE[sent..]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let sent = sent + written;
            *self.state.0.lock() =
                if sent == CONTINUE.len() { ContinueState::Passing } else { ContinueState::Sending(sent) };
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Interim<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Interim<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_continue(context))?;
        match self.state.withheld_of(bytes) {
            0 => Pin::new(&mut self.stream).poll_write(context, bytes),
            withheld => Poll::Ready(Ok(withheld)),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = slices.iter().find(|slice| !slice.is_empty()).map_or(&[][..], |slice| slice);
        self.poll_write(context, first)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_continue(context))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: ActixStream> ActixStream for Interim<S> {
    fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        self.stream.poll_read_ready(context)
    }

    fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        self.stream.poll_write_ready(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    async fn sent(steps: impl AsyncFnOnce(&mut Interim<tokio::io::DuplexStream>, Continue)) -> String {
        let (mut client, server) = duplex(1 << 10);
        let mut stream = Interim::new(server);
        let state = stream.interim().clone();
        steps(&mut stream, state).await;
        drop(stream);
        let mut text = String::new();
        client.read_to_string(&mut text).await.expect("text");
        text
    }

    async fn write(stream: &mut Interim<tokio::io::DuplexStream>, bytes: &[u8]) {
        stream.write_all(bytes).await.expect("written");
        stream.flush().await.expect("flushed");
    }

    #[tokio::test]
    async fn it_is_sent_once_it_is_released_and_only_then() {
        let text = sent(async |stream, state| {
            state.withhold();
            write(stream, CONTINUE).await;
            assert!(state.is_withheld());
            state.release();
            stream.flush().await.expect("flushed");
            write(stream, b"HTTP/1.1 200 OK").await;
        });
        assert_eq!(text.await, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK");
        let text = sent(async |stream, state| {
            state.withhold();
            state.release();
            write(stream, CONTINUE).await;
        });
        assert_eq!(text.await.as_bytes(), CONTINUE, "a handler may read before the library flushes");
    }

    #[tokio::test]
    async fn a_final_answer_takes_its_place() {
        for apart in [true, false] {
            let text = sent(async |stream, state| {
                state.withhold();
                if apart {
                    write(stream, CONTINUE).await;
                    write(stream, b"HTTP/1.1 401 Unauthorized").await;
                } else {
                    write(stream, &[CONTINUE, b"HTTP/1.1 401 Unauthorized"].concat()).await;
                }
                assert!(!state.is_withheld());
            });
            assert_eq!(text.await, "HTTP/1.1 401 Unauthorized");
        }
    }

    #[tokio::test]
    async fn the_same_bytes_pass_where_nobody_expects_them() {
        assert_eq!(sent(async |stream, _| write(stream, CONTINUE).await).await.as_bytes(), CONTINUE);
        let text = sent(async |stream, state| {
            state.withhold();
            write(stream, b"HTTP/1.1 200 OK").await;
            write(stream, CONTINUE).await;
        });
        assert_eq!(text.await, "HTTP/1.1 200 OKHTTP/1.1 100 Continue\r\n\r\n");
    }
}
