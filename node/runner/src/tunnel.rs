//! Network connections of a function: streams to the server, which dials on its behalf.
//!
//! A function has no network. It opens a stream to the server, writes `host:port` and a line feed, and goes on as if it
//! had connected to that host. The server refuses a connection by closing the stream.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, copy_bidirectional};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;
use uuid::Uuid;

/// Upper bound of the open connections of one worker. Others wait.
const CONNECTIONS_MAX: usize = 64;
/// Upper bound of the line that names the host.
const LINE_BYTES_MAX: usize = 300;
/// Upper bound of the time in which a function names the host.
const LINE_TIME_MAX: Duration = Duration::from_secs(30);
/// Time that a refused connection stays open for the first byte of its request.
const REFUSED_TIME: Duration = Duration::from_millis(500);
/// Upper bound of refusals that wait to be told.
const NOTES_MAX: usize = 16;

/// Host that a function connects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelTarget {
    /// Name or address, without brackets.
    pub host: String,
    pub port: u16,
    /// Organization whose function connects.
    pub organization: Uuid,
}

/// Reason why a connection is refused, for the author of the function.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TunnelRefusal(pub String);

/// Connection of the server.
pub trait TunnelStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> TunnelStream for S {}

/// Dialer that checks and opens connections.
pub trait TunnelDialer: Send + Sync + fmt::Debug {
    fn dial(&self, target: TunnelTarget) -> BoxFuture<'_, Result<Box<dyn TunnelStream>, TunnelRefusal>>;
}

/// Tunnel of one worker. Dropping it closes all its connections.
#[derive(Debug)]
pub struct WorkerTunnel {
    _tasks: JoinSet<()>,
    refusals: mpsc::Receiver<String>,
}

#[derive(Clone, Debug)]
struct Connector {
    dialer: Arc<dyn TunnelDialer>,
    organization: Uuid,
    places: Arc<Semaphore>,
    refusals: mpsc::Sender<String>,
}

impl WorkerTunnel {
    /// Listens on a socket for the connections of a worker.
    pub fn listen(path: &Path, dialer: Arc<dyn TunnelDialer>, organization: Uuid) -> io::Result<WorkerTunnel> {
        let listener = UnixListener::bind(path)?;
        // The sandbox has another user; nobody else reaches the directory of the socket.
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o666))?;
        let (connector, refusals) = Connector::new(dialer, organization);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { accept(&listener, &connector).await });
        Ok(WorkerTunnel { _tasks: tasks, refusals })
    }

    /// Serves streams that a worker inherits, each for one connection.
    pub fn serve(
        streams: Vec<std::os::unix::net::UnixStream>,
        dialer: Arc<dyn TunnelDialer>,
        organization: Uuid,
    ) -> io::Result<WorkerTunnel> {
        let (connector, refusals) = Connector::new(dialer, organization);
        let mut tasks = JoinSet::new();
        for stream in streams {
            stream.set_nonblocking(true)?;
            let (stream, connector) = (UnixStream::from_std(stream)?, connector.clone());
            // A stream may stay unused as long as its worker lives.
            tasks.spawn(async move { connector.connect(stream, None).await });
        }
        Ok(WorkerTunnel { _tasks: tasks, refusals })
    }

    /// Returns the next refusal, for the console of the function.
    pub async fn refusal(&mut self) -> String {
        match self.refusals.recv().await {
            Some(refusal) => refusal,
            None => std::future::pending().await,
        }
    }

    /// Returns the next refusal that waits, without waiting itself.
    pub fn waiting_refusal(&mut self) -> Option<String> {
        self.refusals.try_recv().ok()
    }
}

async fn accept(listener: &UnixListener, connector: &Connector) {
    let mut connections = JoinSet::new();
    loop {
        // Nobody closes the semaphore.
        let Ok(place) = Arc::clone(&connector.places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else { return };
        let connector = connector.clone();
        connections.spawn(async move {
            connector.connect(stream, Some(LINE_TIME_MAX)).await;
            drop(place);
        });
        while connections.try_join_next().is_some() {}
    }
}

impl Connector {
    fn new(dialer: Arc<dyn TunnelDialer>, organization: Uuid) -> (Connector, mpsc::Receiver<String>) {
        let (refusals, received) = mpsc::channel(NOTES_MAX);
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        (Connector { dialer, organization, places, refusals }, received)
    }

    async fn connect(&self, mut stream: UnixStream, within: Option<Duration>) {
        let line = match within {
            Some(within) => timeout(within, read_line(&mut stream)).await.ok().flatten(),
            None => read_line(&mut stream).await,
        };
        let Some(line) = line else { return };
        let Some((host, port)) = parse_target(&line) else {
            self.tell(format!("connection refused: `{line}` is no host and port"));
            return;
        };
        let target = TunnelTarget { host: host.to_owned(), port, organization: self.organization };
        match self.dialer.dial(target).await {
            Ok(mut outside) => {
                // A broken connection is seen by both ends.
                let _ = copy_bidirectional(&mut stream, &mut outside).await;
            }
            Err(refusal) => {
                self.tell(format!("connection to {host}:{port} refused: {refusal}"));
                // `fetch` of Node.js never ends if its connection closes before it has sent the request.
                let mut request = [0; 1];
                let _ = timeout(REFUSED_TIME, stream.read(&mut request)).await;
            }
        }
    }

    fn tell(&self, refusal: String) {
        // The console of a function that tries often need not have every try.
        let _ = self.refusals.try_send(refusal);
    }
}

/// Reads the line that names the host, and no byte more.
async fn read_line(stream: &mut UnixStream) -> Option<String> {
    let mut line = Vec::new();
    loop {
        let byte = stream.read_u8().await.ok()?;
        if byte == b'\n' {
            return String::from_utf8(line).ok();
        }
        if line.len() == LINE_BYTES_MAX {
            return None;
        }
        line.push(byte);
    }
}

/// Splits `host:port`, where the host may be an address in brackets or without.
fn parse_target(line: &str) -> Option<(&str, u16)> {
    let (host, port) = line.trim_end_matches('\r').rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(host);
    let is_valid = |byte: u8| byte.is_ascii_graphic() && !b"/@?#[]\\".contains(&byte);
    (!host.is_empty() && host.bytes().all(is_valid)).then_some(())?;
    Some((host, port.parse().ok().filter(|port| *port > 0)?))
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[derive(Debug)]
    struct Echo;

    impl TunnelDialer for Echo {
        fn dial(&self, target: TunnelTarget) -> BoxFuture<'_, Result<Box<dyn TunnelStream>, TunnelRefusal>> {
            Box::pin(async move {
                if target.host == "refused.example" {
                    return Err(TunnelRefusal("not allowed".into()));
                }
                let (ours, theirs) = tokio::io::duplex(64);
                tokio::spawn(async move {
                    let (mut read, mut write) = tokio::io::split(theirs);
                    let _ = tokio::io::copy(&mut read, &mut write).await;
                });
                Ok(Box::new(ours) as Box<dyn TunnelStream>)
            })
        }
    }

    #[test]
    fn a_line_names_a_host_and_a_port() {
        for (line, expected) in [
            ("example.com:443", Some(("example.com", 443))),
            ("[::1]:80", Some(("::1", 80))),
            ("::1:80", Some(("::1", 80))),
            ("example.com:0", None),
            ("example.com", None),
            (":80", None),
            ("a b:80", None),
            ("user@host:80", None),
            ("host/path:80", None),
            ("host:65536", None),
        ] {
            assert_eq!(parse_target(line), expected, "{line}");
        }
    }

    #[tokio::test]
    async fn a_connection_is_dialed_and_refusals_are_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("tunnel");
        let mut tunnel = WorkerTunnel::listen(&path, Arc::new(Echo), Uuid::nil()).expect("a tunnel");
        let mut stream = UnixStream::connect(&path).await.expect("a stream");
        stream.write_all(b"echo.example:80\nhello").await.expect("written");
        let mut answer = [0; 5];
        stream.read_exact(&mut answer).await.expect("an answer");
        assert_eq!(&answer, b"hello");
        let mut refused = UnixStream::connect(&path).await.expect("a stream");
        refused.write_all(b"refused.example:443\n").await.expect("written");
        assert_eq!(refused.read(&mut answer).await.unwrap_or(0), 0, "the stream is closed");
        assert_eq!(tunnel.refusal().await, "connection to refused.example:443 refused: not allowed");
    }
}
