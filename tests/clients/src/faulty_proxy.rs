//! An HTTP proxy on the way to a server that breaks a share of the exchanges: errors, lost connections, and silence.
//!
//! One of [`BLOCK`] requests fails and one hangs, at random places. Faults change: before the server has the
//! request, behind its execution, and within the response.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};

/// Requests of which one fails and one hangs: 5 % each.
pub const BLOCK: usize = 20;
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Time for which a request hangs at most, if the caller does not give up.
const HANG_MAX: Duration = Duration::from_secs(300);
const HEAD_BYTES_MAX: usize = 64 << 10;
const BODY_BYTES_MAX: usize = 64 << 20;
/// Connections that are carried at the same time; one beyond it is closed.
const CONNECTIONS_MAX: usize = 256;

/// What happens to an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExchangeFault {
    Status(&'static str),
    ClosedAtOnce,
    ClosedBehind,
    CutResponse,
    HangsAtOnce,
    HangsBehind,
    HangsWithin,
}

const FAILURES: [ExchangeFault; 5] = [
    ExchangeFault::Status("500 Internal Server Error"),
    ExchangeFault::ClosedBehind,
    ExchangeFault::Status("503 Slow Down"),
    ExchangeFault::ClosedAtOnce,
    ExchangeFault::CutResponse,
];
const HANGS: [ExchangeFault; 3] = [ExchangeFault::HangsBehind, ExchangeFault::HangsAtOnce, ExchangeFault::HangsWithin];

/// Plan of the faults, by the number of the request.
#[derive(Debug)]
struct FaultPlan {
    random: u64,
    requests: usize,
    /// Places of the failure and the hang in the current block.
    places: (usize, usize),
}

impl FaultPlan {
    fn new(seed: u64) -> FaultPlan {
        FaultPlan { random: seed | 1, requests: 0, places: (0, 0) }
    }

    fn random_below(&mut self, end: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random % end as u64).unwrap_or(0)
    }

    fn next(&mut self) -> Option<ExchangeFault> {
        let (block, place) = (self.requests / BLOCK, self.requests % BLOCK);
        self.requests += 1;
        if place == 0 {
            let fails = self.random_below(BLOCK);
            let hangs = (fails + 1 + self.random_below(BLOCK - 1)) % BLOCK;
            self.places = (fails, hangs);
        }
        match self.places {
            (fails, _) if fails == place => Some(FAILURES[block % FAILURES.len()]),
            (_, hangs) if hangs == place => Some(HANGS[block % HANGS.len()]),
            _ => None,
        }
    }
}

#[derive(Debug)]
pub struct FaultyProxy {
    address: SocketAddr,
    shared: Arc<ProxyState>,
    accepts: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct ProxyState {
    server: SocketAddr,
    plan: Mutex<FaultPlan>,
    faults: AtomicUsize,
    open: AtomicUsize,
    is_stopped: AtomicBool,
}

impl FaultyProxy {
    /// Starts a proxy in front of a server at an address and port. The seed decides about the faults.
    pub fn start(server: &str, seed: u64) -> Result<FaultyProxy> {
        let server = server.parse().with_context(|| format!("{server} is no address and port"))?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(ProxyState {
            server,
            plan: Mutex::new(FaultPlan::new(seed)),
            faults: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            is_stopped: AtomicBool::new(false),
        });
        let accepts = thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Ok(FaultyProxy { address, shared, accepts: Some(accepts) })
    }

    /// Returns the address and port.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Returns the numbers of requests and of those with a fault.
    pub fn counts(&self) -> (usize, usize) {
        let requests = self.shared.plan.lock().unwrap_or_else(PoisonError::into_inner).requests;
        (requests, self.shared.faults.load(Ordering::Relaxed))
    }
}

impl Drop for FaultyProxy {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        // It waits for a connection: this is one.
        let _ = TcpStream::connect_timeout(&self.address, CONNECT_MAX);
        if let Some(accepts) = self.accepts.take() {
            let _ = accepts.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<ProxyState>) {
    for client in listener.incoming() {
        if shared.is_stopped.load(Ordering::Relaxed) {
            return;
        }
        let Ok(client) = client else { continue };
        if shared.open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            shared.open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            // A client that gives up in the middle is not the concern of a proxy.
            let _ = exchange(&client, &shared);
            let _ = client.shutdown(Shutdown::Both);
            shared.open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Carries one request and its response, and closes.
fn exchange(mut client: &TcpStream, shared: &ProxyState) -> io::Result<()> {
    let Some(request) = read_request(client)? else { return Ok(()) };
    let fault = shared.plan.lock().unwrap_or_else(PoisonError::into_inner).next();
    if fault.is_some() {
        shared.faults.fetch_add(1, Ordering::Relaxed);
    }
    match fault {
        Some(ExchangeFault::Status(status)) => {
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            return client.write_all(head.as_bytes());
        }
        Some(ExchangeFault::ClosedAtOnce) => return Ok(()),
        Some(ExchangeFault::HangsAtOnce) => return hang(client),
        _ => {}
    }
    let mut server = TcpStream::connect_timeout(&shared.server, CONNECT_MAX)?;
    server.write_all(&request)?;
    let mut response = Vec::new();
    server.read_to_end(&mut response)?;
    // A response to HEAD has no body, so this cuts within its head.
    let half = response.len().saturating_sub(1).min(response.len() / 2 + HALF_BEHIND);
    match fault {
        Some(ExchangeFault::ClosedBehind) => Ok(()),
        Some(ExchangeFault::HangsBehind) => hang(client),
        Some(ExchangeFault::CutResponse) => client.write_all(&response[..half]),
        Some(ExchangeFault::HangsWithin) => {
            client.write_all(&response[..half])?;
            hang(client)
        }
        _ => client.write_all(&response),
    }
}

/// Bytes behind the middle at which a response is cut, so that most cuts are within bodies.
const HALF_BEHIND: usize = 200;

/// Waits until the client closes.
fn hang(mut client: &TcpStream) -> io::Result<()> {
    client.set_read_timeout(Some(HANG_MAX))?;
    client.read(&mut [0]).map(drop)
}

/// Reads a request with its body, which has a declared length. None if the client sent nothing.
fn read_request(mut client: &TcpStream) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        let read = client.read(&mut chunk)?;
        if read == 0 || bytes.len() > HEAD_BYTES_MAX {
            return Ok(None);
        }
        bytes.extend_from_slice(&chunk[..read]);
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    let length = end + length.unwrap_or(0).min(BODY_BYTES_MAX);
    while bytes.len() < length {
        let read = client.read(&mut chunk)?;
        if read == 0 {
            return Ok(None);
        }
        bytes.extend_from_slice(&chunk[..read]);
    }
    // The server closes behind its response, which so ends without a look into it.
    let line = bytes.windows(2).position(|window| window == b"\r\n").unwrap_or(0);
    drop(bytes.splice(line..line, b"\r\nConnection: close".iter().copied()));
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_twenty_requests_one_fails_and_one_hangs() {
        for seed in 0..50 {
            let mut plan = FaultPlan::new(seed);
            for _ in 0..8 {
                let block: Vec<_> = (0..BLOCK).filter_map(|_| plan.next()).collect();
                let hangs = block.iter().filter(|fault| HANGS.contains(fault)).count();
                assert_eq!((block.len(), hangs), (2, 1), "seed {seed}: {block:?}");
            }
        }
    }
}
