//! Graceful shutdown of listening sockets, which leaves no active or newly connected client without a response.
//!
//! ```text
//! drain    every response closes its connection: busy clients leave by themselves
//! pause    the workers accept no more connections; new clients are told to retry (503, Retry-After)
//! stop     the workers answer their requests; idle connections are closed
//! close    the accept queue is empty; then the port refuses
//! ```
//! Closing an idle HTTP connection may lose a request that was just sent. Closing a listening socket loses the
//! connections in its queue. The server therefore closes idle connections late, and empties the queue first.

use std::io;
use std::net::TcpListener;
use std::time::Duration;

use rustix::net::Shutdown;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::config::HttpConfig;
use crate::server::edge::Edge;
use crate::server::sockets::Reserved;

/// Time without requests after which the drain ends. Clients that send more often learn from a response to reconnect.
const QUIET: Duration = Duration::from_millis(150);
/// Upper bound of the wait for a time without requests.
const QUIET_WAIT_MAX: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(25);
/// Time in which a recently accepted connection must send its request to be served.
const STRAGGLER_WAIT: Duration = Duration::from_millis(100);
/// Time limit for turning away a client in the accept queue.
const TURNED_AWAY_WITHIN: Duration = Duration::from_millis(300);
const READ_BYTES: usize = 16 << 10;
const COME_AGAIN: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// Duplicate handles of the listening sockets.
#[derive(Debug)]
pub(crate) struct ListeningSockets {
    sockets: Vec<TcpListener>,
    /// Whether clients use plain HTTP, so that they can be answered without the framework.
    plain: bool,
}

impl ListeningSockets {
    /// Opens the reserved sockets.
    pub fn open(reserved: Reserved, config: &HttpConfig, plain: bool) -> io::Result<ListeningSockets> {
        let sockets = reserved.open(config.backlog)?;
        // Accepted connections inherit the timeout. The workers have no timeout of their own for unread bytes.
        let unread_millis = config.unread_seconds_max.saturating_mul(1000).min(i32::MAX.unsigned_abs());
        sockets.iter().try_for_each(|socket| rustix::net::sockopt::set_tcp_user_timeout(socket, unread_millis))?;
        Ok(ListeningSockets { sockets, plain })
    }

    /// Returns the sockets for the workers.
    pub fn sockets(&self) -> io::Result<Vec<TcpListener>> {
        self.sockets.iter().map(TcpListener::try_clone).collect()
    }

    /// Tells clients in the accept queue to retry.
    fn turn_away(&self, turned_away: &mut JoinSet<()>) {
        for socket in &self.sockets {
            // The call does not block, because the workers made the sockets non-blocking.
            while let Ok((stream, _)) = socket.accept() {
                let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
                if let Ok(stream) = stream
                    && self.plain
                {
                    turned_away.spawn(turn_away(stream));
                }
            }
        }
    }

    /// Shuts down the sockets, so that new connections are refused.
    fn close(&self) {
        for socket in &self.sockets {
            if let Err(error) = rustix::net::shutdown(socket, Shutdown::Both) {
                tracing::debug!(%error, "a socket was already closed");
            }
        }
    }
}

/// Answers one request with a 503, and reads the remaining bytes.
///
/// Closing with unread bytes would reset the connection, and the response could be lost.
async fn turn_away(mut stream: TcpStream) {
    let told = async {
        let mut received = vec![0; READ_BYTES];
        if stream.read(&mut received).await? > 0 {
            stream.write_all(COME_AGAIN).await?;
            stream.shutdown().await?;
            while stream.read(&mut received).await? > 0 {}
        }
        io::Result::Ok(())
    };
    // A client that is slow or has disconnected gets no response.
    let _ = timeout(TURNED_AWAY_WITHIN, told).await;
}

/// Waits until no request has arrived for [`QUIET`], for at most [`QUIET_WAIT_MAX`].
pub(crate) async fn quiet(edge: &Edge) {
    let until = Instant::now() + QUIET_WAIT_MAX;
    let (mut seen, mut since) = (edge.counts.begun(), Instant::now());
    while since.elapsed() < QUIET && Instant::now() < until {
        sleep(LOOK).await;
        let now = edge.counts.begun();
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
    }
}

/// Turns new connections away while the workers stop, and then closes the sockets.
pub(crate) async fn turn_away_while(doors: &[ListeningSockets], stopping: impl Future<Output = ()>) {
    let mut turned_away = JoinSet::new();
    let mut turn_away = || doors.iter().for_each(|doors| doors.turn_away(&mut turned_away));
    let stopping = async {
        sleep(STRAGGLER_WAIT).await;
        stopping.await;
    };
    tokio::pin!(stopping);
    loop {
        turn_away();
        tokio::select! {
            () = &mut stopping => break,
            () = sleep(LOOK) => {}
        }
    }
    turn_away();
    // Before the workers end, their accept thread would report this as a socket error.
    doors.iter().for_each(ListeningSockets::close);
    turned_away.join_all().await;
}
