//! TCP relay that makes nodes far apart: every byte is forwarded a fixed time after its arrival, in both directions.
//!
//! ```text
//! node ─> port ─> queue: (due, bytes) (due, bytes) ... ─> the node behind the port
//!              <─ another queue <─
//! ```
//! A queue holds many pieces at once, so the delay costs no throughput. Reading stops while a queue is full, and TCP
//! makes its sender wait. The relay dials the node behind the port after one delay, as a SYN would take.
//!
//! `netem` would do the same, but many kernels are built without it.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::{Buf, Bytes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::time::{sleep, sleep_until};

/// Limits of a queue. With 300 ms of delay the first allows 27 MB a second.
const LINE_BYTES_MAX: usize = 8 << 20;
const LINE_PIECES_MAX: usize = 1 << 16;
const READ_BYTES: usize = 64 << 10;
/// Connections of one port at a time; others wait in its queue.
const CONNECTIONS_MAX: usize = 128;
/// The pause after a connection could not be taken.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Bytes on their way in one direction.
#[derive(Debug)]
struct DelayLine {
    delay: Duration,
    pieces: VecDeque<(Instant, Bytes)>,
    bytes: usize,
    /// Due time of the sender's end of stream.
    end: Option<Instant>,
}

impl DelayLine {
    fn new(delay: Duration) -> DelayLine {
        DelayLine { delay, pieces: VecDeque::new(), bytes: 0, end: None }
    }

    /// The number of bytes that may be pushed now.
    fn room(&self) -> usize {
        if self.end.is_some() || self.pieces.len() >= LINE_PIECES_MAX {
            return 0;
        }
        LINE_BYTES_MAX.saturating_sub(self.bytes)
    }

    /// Takes bytes that came now.
    fn push(&mut self, now: Instant, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.pieces.push_back((now + self.delay, Bytes::copy_from_slice(bytes)));
    }

    /// Takes the end; nothing comes after it.
    fn close(&mut self, now: Instant) {
        self.end.get_or_insert(now + self.delay);
    }

    /// The bytes to hand on first, if they are due.
    fn due(&self, now: Instant) -> &[u8] {
        self.pieces.front().filter(|(due, _)| *due <= now).map_or(&[], |(_, bytes)| bytes)
    }

    /// Forgets the first `length` bytes of what is due.
    fn handed_on(&mut self, length: usize) {
        let Some((_, first)) = self.pieces.front_mut() else { return };
        let length = length.min(first.len());
        first.advance(length);
        self.bytes -= length;
        if first.is_empty() {
            self.pieces.pop_front();
        }
    }

    /// Returns when the next bytes or the end are due.
    fn next_due(&self) -> Option<Instant> {
        self.pieces.front().map(|(due, _)| *due).or(self.end)
    }

    /// Returns whether everything was forwarded and the end is due.
    fn ended(&self, now: Instant) -> bool {
        self.pieces.is_empty() && self.end.is_some_and(|end| end <= now)
    }
}

/// Traffic of one port so far.
#[derive(Debug, Default)]
pub struct CarriedBytes {
    connections: AtomicU64,
    /// Bytes to the node behind the port, and from it.
    to: AtomicU64,
    from: AtomicU64,
}

impl CarriedBytes {
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    pub fn to(&self) -> u64 {
        self.to.load(Ordering::Relaxed)
    }

    pub fn from(&self) -> u64 {
        self.from.load(Ordering::Relaxed)
    }
}

/// Relay address of a node.
#[derive(Clone, Debug)]
pub struct RelayPort {
    pub address: SocketAddr,
    pub carried: Arc<CarriedBytes>,
}

/// Ports and all connections through them; dropped together.
#[derive(Debug)]
pub struct Relay {
    delay: Duration,
    // An option only for the end: a runtime is taken to be shut down.
    runtime: Option<Runtime>,
}

impl Relay {
    pub fn new(delay: Duration) -> anyhow::Result<Relay> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name("relay").enable_all().build();
        Ok(Relay { delay, runtime: Some(runtime.context("starting the relay")?) })
    }

    /// Opens a relay port at a free port of `ip`. Connections to it reach `node`.
    pub fn open(&self, ip: IpAddr, node: SocketAddr) -> anyhow::Result<RelayPort> {
        let runtime = self.runtime.as_ref().context("the relay has ended")?;
        let listener = runtime.block_on(TcpListener::bind((ip, 0))).with_context(|| format!("listening on {ip}"))?;
        let door = RelayPort { address: listener.local_addr()?, carried: Arc::default() };
        runtime.spawn(accept(listener, node, self.delay, Arc::clone(&door.carried)));
        Ok(door)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn accept(listener: TcpListener, node: SocketAddr, delay: Duration, carried: Arc<CarriedBytes>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let Ok((near, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let carried = Arc::clone(&carried);
        tokio::spawn(async move {
            // A connection that breaks is ended on both sides; who uses it finds out.
            let _ = carry(near, node, delay, &carried).await;
            drop(place);
        });
    }
}

/// Carries one connection until both directions have ended.
async fn carry(near: TcpStream, node: SocketAddr, delay: Duration, carried: &CarriedBytes) -> io::Result<()> {
    sleep(delay).await;
    let far = TcpStream::connect(node).await?;
    carried.connections.fetch_add(1, Ordering::Relaxed);
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    let there = pump(near_in, far_out, delay, &carried.to);
    let back = pump(far_in, near_out, delay, &carried.from);
    tokio::join!(there, back);
    Ok(())
}

/// Forwards bytes until the end was forwarded, or the receiver is gone.
async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration, bytes: &AtomicU64) {
    let mut line = DelayLine::new(delay);
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let now = Instant::now();
        if line.ended(now) {
            break;
        }
        let room = line.room().min(READ_BYTES);
        let (due, next_due) = (line.due(now), line.next_due());
        let waits = due.is_empty() && next_due.is_some();
        tokio::select! {
            read = from.read(&mut buffer[..room]), if room > 0 => match read {
                Ok(length @ 1..) => line.push(Instant::now(), &buffer[..length]),
                // Its end; a connection that broke is ended too.
                _ => line.close(Instant::now()),
            },
            written = to.write(due), if !due.is_empty() => match written {
                Ok(length @ 1..) => {
                    line.handed_on(length);
                    bytes.fetch_add(length as u64, Ordering::Relaxed);
                }
                _ => return,
            },
            () = sleep_until(next_due.unwrap_or(now).into()), if waits => {}
        }
    }
    // An error means that the other side has gone already.
    let _ = to.shutdown().await;
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    const DELAY: Duration = Duration::from_millis(300);

    fn ms(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    /// Everything that is due, as a pump would take it.
    fn take(line: &mut DelayLine, now: Instant) -> Vec<u8> {
        let mut taken = Vec::new();
        while !line.due(now).is_empty() {
            let due = line.due(now).to_vec();
            line.handed_on(due.len());
            taken.extend(due);
        }
        taken
    }

    #[test]
    fn bytes_are_due_one_delay_after_they_came_and_in_order() {
        let (start, mut line) = (Instant::now(), DelayLine::new(DELAY));
        line.push(start, b"ab");
        line.push(ms(start, 10), b"cd");
        assert_eq!(line.next_due(), Some(ms(start, 300)));
        assert_eq!(take(&mut line, ms(start, 299)), b"");
        assert_eq!(take(&mut line, ms(start, 300)), b"ab");
        assert_eq!(line.next_due(), Some(ms(start, 310)));
        line.push(ms(start, 305), b"e");
        assert_eq!(take(&mut line, ms(start, 400)), b"cd");
        assert_eq!(take(&mut line, ms(start, 605)), b"e");
        assert_eq!((line.next_due(), line.bytes), (None, 0));
    }

    #[test]
    fn many_pieces_are_on_their_way_at_once() {
        let (start, mut line) = (Instant::now(), DelayLine::new(DELAY));
        (0..100).for_each(|at| line.push(ms(start, at), &[at as u8]));
        assert_eq!(take(&mut line, ms(start, 399)).len(), 100);
    }

    #[test]
    fn what_is_handed_on_in_part_goes_on_where_it_stopped() {
        let (start, mut line) = (Instant::now(), DelayLine::new(DELAY));
        line.push(start, b"abc");
        line.handed_on(2);
        assert_eq!((line.due(ms(start, 300)), line.bytes), (&b"c"[..], 1));
        line.handed_on(9);
        assert_eq!((line.pieces.len(), line.bytes), (0, 0), "no more than there is");
    }

    #[test]
    fn a_full_line_has_no_room_until_something_is_handed_on() {
        let (start, mut line) = (Instant::now(), DelayLine::new(DELAY));
        assert_eq!(line.room(), LINE_BYTES_MAX);
        line.push(start, &vec![0; LINE_BYTES_MAX - 1]);
        assert_eq!(line.room(), 1);
        line.push(start, b"x");
        assert_eq!(line.room(), 0);
        line.handed_on(5);
        assert_eq!(line.room(), 5);
        let mut line = DelayLine::new(DELAY);
        (0..LINE_PIECES_MAX).for_each(|_| line.push(start, b"x"));
        assert_eq!(line.room(), 0, "small pieces take room too");
    }

    #[test]
    fn the_end_comes_after_all_bytes_and_is_late_as_well() {
        let (start, mut line) = (Instant::now(), DelayLine::new(DELAY));
        line.push(start, b"a");
        line.close(ms(start, 20));
        assert_eq!(line.room(), 0);
        assert!(!line.ended(ms(start, 320)), "a byte is left");
        assert_eq!(take(&mut line, ms(start, 300)), b"a");
        assert_eq!(line.next_due(), Some(ms(start, 320)));
        assert!(!line.ended(ms(start, 319)));
        assert!(line.ended(ms(start, 320)));
        line.close(ms(start, 100));
        assert!(line.ended(ms(start, 320)), "the first end counts");
    }

    #[test]
    fn a_connection_is_carried_both_ways_and_no_byte_is_early() -> anyhow::Result<()> {
        const SHORT: Duration = Duration::from_millis(40);
        const BYTES: usize = 300_000;
        let node = std::net::TcpListener::bind("127.0.0.1:0")?;
        let relay = Relay::new(SHORT)?;
        let door = relay.open(IpAddr::from([127, 0, 0, 1]), node.local_addr()?)?;
        let echo = std::thread::spawn(move || -> io::Result<()> {
            let (mut stream, _) = node.accept()?;
            let mut came = Vec::new();
            stream.read_to_end(&mut came)?;
            stream.write_all(&came)
        });
        let sent: Vec<u8> = (0..BYTES).map(|at| (at % 251) as u8).collect();
        let began = Instant::now();
        let mut stream = std::net::TcpStream::connect(door.address)?;
        stream.write_all(&sent)?;
        stream.shutdown(std::net::Shutdown::Write)?;
        let mut back = Vec::new();
        stream.read_to_end(&mut back)?;
        assert!(back == sent && began.elapsed() >= 2 * SHORT, "{} bytes after {:?}", back.len(), began.elapsed());
        echo.join().expect("no panic")?;
        let carried = &door.carried;
        assert_eq!((carried.connections(), carried.to(), carried.from()), (1, BYTES as u64, BYTES as u64));
        Ok(())
    }
}
