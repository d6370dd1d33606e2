//! Link between two nodes that can be cut, silenced, or slowed down.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Good,
    /// Forwards no byte, and closes nothing.
    Silent,
    /// Forwards this many bytes in ten milliseconds.
    Slow(usize),
    Cut,
}

pub struct Proxy {
    address: SocketAddr,
    line: Arc<watch::Sender<Line>>,
}

impl Proxy {
    pub async fn start(to: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let (line, watched) = watch::channel(Line::Good);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(to).await else { continue };
                for socket in [&near, &far] {
                    socket.set_nodelay(true).expect("a socket");
                }
                let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
                tokio::spawn(carry(near_in, far_out, watched.clone()));
                tokio::spawn(carry(far_in, near_out, watched.clone()));
            }
        });
        Proxy { address, line: Arc::new(line) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn cut(&self) {
        self.line.send_replace(Line::Cut);
    }

    pub fn silence(&self) {
        self.line.send_replace(Line::Silent);
    }

    pub fn heal(&self) {
        self.line.send_replace(Line::Good);
    }

    pub fn slow(&self, bytes_per_second: usize) {
        self.line.send_replace(Line::Slow(bytes_per_second / 100));
    }
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut line: watch::Receiver<Line>) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let now = *line.borrow_and_update();
        let most = match now {
            Line::Good => buffer.len(),
            Line::Slow(bytes) => bytes.min(buffer.len()),
            Line::Silent => {
                // A silenced connection stays silent, and its bytes in transit are lost.
                std::future::pending::<()>().await;
                0
            }
            Line::Cut => return,
        };
        let read = tokio::select! {
            read = from.read(&mut buffer[..most]) => read,
            changed = line.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
        };
        let Ok(bytes @ 1..) = read else { return };
        if *line.borrow() == Line::Silent {
            continue;
        }
        if to.write_all(&buffer[..bytes]).await.is_err() {
            return;
        }
        if let Line::Slow(_) = now {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
