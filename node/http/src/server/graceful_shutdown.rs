//! Graceful shutdown of listening sockets: a client that is being served, or connects at that moment, gets an answer.
//!
//! ```text
//! drain    every response closes its connection: busy clients leave by themselves
//! pause    the workers accept no more connections; new clients are told to retry (503, Retry-After)
//! stop     the workers answer their requests; idle connections are closed
//! close    the accept queue is empty; then the port refuses
//! ```
//! An HTTP connection that a server closes while it is idle may cost a request that was just sent, and so does a queue of
//! connections that goes with its socket. So idle connections are closed late, and the queue is emptied first.

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

/// Clients that send at least this often learn from a response that their connection closes.
const QUIET: Duration = Duration::from_millis(150);
/// Upper bound of the wait for a pause of all clients.
const QUIET_WAIT_MAX: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(25);
/// A connection accepted just before is served if its request arrives within this time.
const STRAGGLER_WAIT: Duration = Duration::from_millis(100);
/// Time in which a client in the accept queue is turned away.
const TURNED_AWAY_WITHIN: Duration = Duration::from_millis(300);
const READ_BYTES: usize = 16 << 10;
const COME_AGAIN: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// Second handles on the listening sockets.
#[derive(Debug)]
pub(crate) struct ListeningSockets {
    sockets: Vec<TcpListener>,
    /// Clients speak plain HTTP, so that they can be answered without the framework.
    plain: bool,
}

impl ListeningSockets {
    /// Opens the sockets that were reserved.
    pub fn open(reserved: Reserved, config: &HttpConfig, plain: bool) -> io::Result<ListeningSockets> {
        let sockets = reserved.open(config.backlog)?;
        // Connections have it from the socket they came in by. The workers have no clock for what nobody reads.
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
            // Not blocking: the workers made it so.
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

    /// Nobody gets in from here on.
    fn close(&self) {
        for socket in &self.sockets {
            if let Err(error) = rustix::net::shutdown(socket, Shutdown::Both) {
                tracing::debug!(%error, "a socket was already closed");
            }
        }
    }
}

/// Answers one request by hand, and reads what else comes: closing on unread bytes would take the answer back.
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
    // Whoever hung up or is slow has nothing coming.
    let _ = timeout(TURNED_AWAY_WITHIN, told).await;
}

/// Returns when no request has come for a moment, or they do not cease to come.
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

/// The workers take no more connections, and stop. Whoever comes meanwhile is turned away; then the doors are closed.
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
    // Only now: the workers' own thread would take it for a fault of the socket.
    doors.iter().for_each(ListeningSockets::close);
    turned_away.join_all().await;
}
