//! One address in front of several nodes, like a load balancer: each connection goes to the next of them.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};

/// Connections that are carried at the same time; one beyond it is closed. Four processes of each SDK, each with eight or more
/// senders, need more than 64.
const CONNECTIONS_MAX: usize = 256;
const CONNECT_MAX: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepts: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    nodes: Vec<SocketAddr>,
    /// Connections that each node has got.
    carried: Vec<AtomicUsize>,
    open: AtomicUsize,
    stopped: AtomicBool,
}

impl Proxy {
    /// Starts a proxy for nodes at addresses such as `http://127.0.0.1:8000`.
    pub fn start(urls: &[String]) -> Result<Proxy> {
        Proxy::start_at(TcpListener::bind("127.0.0.1:0")?, urls)
    }

    /// Starts a proxy at an address that was bound before, such as one that the nodes know.
    pub fn start_at(listener: TcpListener, urls: &[String]) -> Result<Proxy> {
        let address = |url: &String| -> Result<SocketAddr> {
            let address = url.strip_prefix("http://").with_context(|| format!("{url} is no http:// address"))?;
            address.parse().with_context(|| format!("{url} is no address and port"))
        };
        let nodes: Vec<SocketAddr> = urls.iter().map(address).collect::<Result<_>>()?;
        let carried = nodes.iter().map(|_| AtomicUsize::new(0)).collect();
        let shared = Shared { nodes, carried, open: AtomicUsize::new(0), stopped: AtomicBool::new(false) };
        let shared = Arc::new(shared);
        let address = listener.local_addr()?;
        let accepts = thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Ok(Proxy { address, shared, accepts: Some(accepts) })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the number of connections of each node.
    pub fn carried(&self) -> Vec<usize> {
        self.shared.carried.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        // It waits for a connection: this is one.
        let _ = TcpStream::connect_timeout(&self.address, CONNECT_MAX);
        if let Some(accepts) = self.accepts.take() {
            let _ = accepts.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for (number, client) in listener.incoming().enumerate() {
        if shared.stopped.load(Ordering::Relaxed) {
            return;
        }
        let Ok(client) = client else { continue };
        if shared.open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            shared.open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            let node = number % shared.nodes.len();
            shared.carried[node].fetch_add(1, Ordering::Relaxed);
            // A client, or a node, that goes away in the middle is seen by the other side.
            let _ = carry(&client, shared.nodes[node]);
            shared.open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Bytes of both ways, until the node closes.
fn carry(client: &TcpStream, node: SocketAddr) -> io::Result<()> {
    let node = TcpStream::connect_timeout(&node, CONNECT_MAX)?;
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = io::copy(&mut &*client, &mut &node); // its end is told to the node either way
            let _ = node.shutdown(Shutdown::Write);
        });
        let answered = io::copy(&mut &node, &mut &*client);
        // Wakes the other way, whichever of the two it waits for.
        let _ = client.shutdown(Shutdown::Both);
        let _ = node.shutdown(Shutdown::Both);
        answered.map(drop)
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    /// Answers each connection with its name and the received bytes, and closes.
    fn node(name: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut said = [0; 2];
                (&stream).read_exact(&mut said).expect("what it was told");
                (&stream).write_all(&[name.as_bytes(), &said].concat()).expect("takes the answer");
            }
        });
        url
    }

    #[test]
    fn each_connection_goes_to_the_next_node() {
        let proxy = Proxy::start(&[node("one "), node("two ")]).expect("a proxy");
        let ask = |said: &str| {
            let mut stream = TcpStream::connect(proxy.address).expect("a connection");
            stream.write_all(said.as_bytes()).expect("takes it");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("an answer and an end");
            answer
        };
        assert_eq!(["aa", "bb", "cc"].map(ask), ["one aa", "two bb", "one cc"]);
        assert_eq!(proxy.carried(), [2, 1]);
    }
}
