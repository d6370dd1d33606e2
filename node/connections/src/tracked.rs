//! Stream of a connection that is registered at the gate.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::gate::Connection;

/// Stream that reports moved bytes, and fails once the connection has to close.
#[derive(Debug)]
pub struct Tracked<S> {
    stream: S,
    connection: Arc<Connection>,
}

impl<S> Tracked<S> {
    pub fn new(stream: S, connection: Arc<Connection>) -> Tracked<S> {
        Tracked { stream, connection }
    }

    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    pub fn stream(&self) -> &S {
        &self.stream
    }

    fn has_to_close(&self, context: &Context<'_>) -> io::Result<()> {
        match self.connection.end().is_told(context.waker()) {
            true => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the connection was asked to close")),
            false => Ok(()),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Tracked<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.has_to_close(context)?;
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.connection.moved();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> Tracked<S> {
    fn wrote(&self, polled: &Poll<io::Result<usize>>) {
        if matches!(polled, Poll::Ready(Ok(1..))) {
            self.connection.moved();
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Tracked<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.has_to_close(context)?;
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(&polled);
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.has_to_close(context)?;
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.wrote(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
