//! Socket of a connection, which counts its bytes and closes it when the other side is silent.
//!
//! Both sides ping after a time without received bytes, so a live peer sends at least that often. The ping limit of
//! HTTP/2 considers only the pong. Behind megabytes on a slow link a pong is late, and that limit would cut a
//! connection that moves data.
//!
//! Here any byte counts as a sign of life. Silence begins only when all written bytes must have arrived, because the
//! next sign of life may be behind them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::peer_counters::Traffic;

/// Time without received bytes after which a ping is sent.
pub(crate) const PING_EVERY: Duration = Duration::from_millis(700);
/// Time without received bytes after which a peer counts as gone, if it owes nothing but pongs.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(2);
/// Slowest link that a bulk transfer may keep busy, in bytes a second.
const SLOWEST_BYTES_PER_SECOND: u64 = 1 << 20;
/// Upper bound of the bytes in transit that the kernels at both ends buffer.
const ON_THE_WAY_BYTES_MAX: u64 = 8 << 20;
/// Limit after the last sign of life within which written bytes excuse silence.
///
/// Later bytes are behind a ping that waits for its response. Without this limit, a caller that retries a dead
/// connection would keep it open.
const EXCUSES_SILENCE_FOR: Duration = PING_EVERY.saturating_mul(2);
/// Delay of a timer that means that this process was paused, so that silence proves nothing.
const OVERSLEPT: Duration = Duration::from_millis(300);

#[derive(Debug)]
pub(crate) struct Wire {
    socket: TcpStream,
    traffic: Arc<Traffic>,
    heard: Instant,
    /// Time at which all bytes that excuse silence have arrived, even over the slowest link.
    through: Instant,
    alarm: Pin<Box<Sleep>>,
}

impl Wire {
    pub(crate) fn new(socket: TcpStream, traffic: Arc<Traffic>) -> io::Result<Wire> {
        // With Nagle's algorithm, small messages would wait for the acknowledgement of the previous one.
        socket.set_nodelay(true)?;
        let now = Instant::now();
        Ok(Wire { socket, traffic, heard: now, through: now, alarm: Box::pin(sleep_until(now + SILENCE_MAX)) })
    }

    /// Returns ready when the other side has been silent for too long. Otherwise registers the task to be woken then.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        while self.alarm.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            if now.duration_since(self.alarm.deadline()) > OVERSLEPT {
                self.heard = now;
            }
            let silent_at = self.heard.max(self.through) + SILENCE_MAX;
            if now >= silent_at {
                let why = format!("nothing received for {} ms", now.duration_since(self.heard).as_millis());
                return Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            self.alarm.as_mut().reset(silent_at);
        }
        Poll::Pending
    }

    fn wrote(&mut self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = written {
            let now = Instant::now();
            if now < self.heard + EXCUSES_SILENCE_FOR {
                self.through = through(self.through, now, *bytes as u64);
            }
            self.traffic.wrote(*bytes);
        }
    }
}

fn through(before: Instant, now: Instant, bytes: u64) -> Instant {
    let time_for = |bytes: u64| Duration::from_micros(bytes * 1_000_000 / SLOWEST_BYTES_PER_SECOND);
    (before.max(now) + time_for(bytes)).min(now + time_for(ON_THE_WAY_BYTES_MAX))
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let wire = self.get_mut();
        let before = into.filled().len();
        let read = Pin::new(&mut wire.socket).poll_read(cx, into);
        let bytes = into.filled().len() - before;
        if bytes > 0 {
            wire.heard = Instant::now();
            wire.traffic.heard(bytes, wire.heard.into_std());
        }
        if read.is_pending() { wire.poll_silence(cx).map(Err) } else { read }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let wire = self.get_mut();
        let written = Pin::new(&mut wire.socket).poll_write(cx, bytes);
        wire.wrote(&written);
        // While this write waits, possibly nobody reads.
        if written.is_pending() { wire.poll_silence(cx).map(Err) } else { written }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wire = self.get_mut();
        let written = Pin::new(&mut wire.socket).poll_write_vectored(cx, slices);
        wire.wrote(&written);
        if written.is_pending() { wire.poll_silence(cx).map(Err) } else { written }
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (Wire, TcpStream, Arc<Traffic>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (near, far) = tokio::join!(TcpStream::connect(listener.local_addr().expect("bound")), listener.accept());
        let traffic = Arc::new(Traffic::default());
        (Wire::new(near.expect("connected"), Arc::clone(&traffic)).expect("a wire"), far.expect("accepted").0, traffic)
    }

    #[tokio::test]
    async fn what_was_written_is_through_later_the_more_it_is_up_to_a_limit() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        assert_eq!(through(now - second, now, 0), now, "what is through is forgotten");
        assert_eq!(through(now, now, 1 << 20), now + second);
        assert_eq!(through(now + second, now, 1 << 20), now + second * 2, "what is on its way goes before");
        assert_eq!(through(now + second * 8, now, 1 << 20), now + second * 8, "it cannot be more");
        assert_eq!(through(now, now, u64::MAX >> 24), now + second * 8);
    }

    #[tokio::test]
    async fn silence_ends_a_read_and_a_byte_puts_it_off() {
        let (mut wire, mut far, traffic) = pair().await;
        let begun = Instant::now();
        let said = tokio::spawn(async move {
            tokio::time::sleep(SILENCE_MAX / 2).await;
            far.write_all(b"x").await.expect("sent");
            far
        });
        let mut buffer = [0; 8];
        assert_eq!(wire.read(&mut buffer).await.expect("a byte"), 1);
        let error = wire.read(&mut buffer).await.expect_err("silence");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let passed = begun.elapsed();
        assert!(passed >= SILENCE_MAX * 3 / 2 && passed < SILENCE_MAX * 2, "{passed:?}");
        let counts = traffic.read(true);
        assert_eq!((counts.bytes_in, counts.bytes_out), (1, 0));
        assert!(counts.last_heard.is_some_and(|at| at >= begun.into_std()));
        drop(said.await);
    }

    /// Regression: probes of a cut path kept its connection open, which was useless until the kernel retransmitted.
    /// After a cut of 30 s that took up to 25 s more.
    #[tokio::test]
    async fn small_writes_do_not_keep_a_silent_connection_open() {
        let (mut wire, far, _) = pair().await;
        let begun = Instant::now();
        let mut buffer = [0; 8];
        let error = loop {
            wire.write_all(b"probe").await.expect("the kernel takes it");
            match tokio::time::timeout(SILENCE_MAX / 4, wire.read(&mut buffer)).await {
                Ok(Err(error)) => break error,
                Ok(Ok(bytes)) => panic!("{bytes} bytes came"),
                Err(_) => assert!(begun.elapsed() < SILENCE_MAX * 4, "it is still open"),
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(far);
    }

    #[tokio::test]
    async fn a_writer_whom_nobody_reads_ends_as_well_but_later() {
        let (mut wire, far, traffic) = pair().await;
        let begun = Instant::now();
        let error = loop {
            if let Err(error) = wire.write(&[0; 1 << 16]).await {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let written = traffic.read(true).bytes_out;
        let begins = through(begun, begun, written);
        assert!(written > 1 << 16 && Instant::now() >= begins + SILENCE_MAX, "{written} in {:?}", begun.elapsed());
        drop(far);
    }
}
