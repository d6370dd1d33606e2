//! Streams: how late each event is, and the memory of many that are open.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::scripts::{OPEN, TimeReader, now_ns};
use super::sides::{Call, CallRequest, assay, request_to};

/// Time for all streams to open.
const OPEN_WAIT_MAX: Duration = Duration::from_secs(60);
/// Streams that are opened at a time.
const OPENED_AT_ONCE: usize = 50;
const LOOK: Duration = Duration::from_millis(200);
/// Time for which all streams are open.
const OPEN_TIME: Duration = Duration::from_secs(10);
/// Open files that a stream needs at most in one process, and those of everything else.
const FILES_OF_STREAM: u64 = 2;
const FILES_OF_OTHERS: u64 = 512;

/// Reads streams at the same time; returns the milliseconds from the sending of each event to its arrival.
pub fn event_delays(runtime: &Runtime, request: &CallRequest, streams: usize) -> anyhow::Result<Vec<f64>> {
    runtime.block_on(async {
        let mut lanes = JoinSet::new();
        for _ in 0..streams {
            let request = request.clone();
            lanes.spawn(async move {
                let mut sink = DelaySink::default();
                request.connection().post_into(request.path, &request.body, &mut sink).await?;
                anyhow::Ok(sink.ms)
            });
        }
        let mut ms = Vec::new();
        while let Some(lane) = lanes.join_next().await {
            let of_stream = lane.context("a client panicked")??;
            ensure!(!of_stream.is_empty(), "a stream without events");
            ms.extend(of_stream);
        }
        Ok(ms)
    })
}

/// Sink that notes how long events were on their way.
#[derive(Debug, Default)]
struct DelaySink {
    reader: TimeReader,
    ms: Vec<f64>,
}

impl Write for DelaySink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let now = now_ns();
        self.reader.push(bytes, |sent| self.ms.push(now.saturating_sub(sent) as f64 / 1e6));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Resident memory of a node with many open streams.
#[derive(Clone, Debug, Serialize)]
pub struct OpenStreams {
    pub streams: usize,
    pub before_bytes: u64,
    /// The most while all streams were open.
    pub open_bytes: u64,
    /// Events that arrived meanwhile.
    pub events: u64,
}

/// Opens streams at a new node of ours and looks at its memory.
pub fn open_streams(
    runtime: &Runtime,
    (program, upstream, dir): (&Path, SocketAddr, &Path),
    call: Call,
    streams: usize,
) -> anyhow::Result<OpenStreams> {
    let server = assay(runtime, program, upstream, dir)?;
    let request = request_to(server.target(), call, OPEN, true);
    server.quiet()?;
    let before_bytes = server.process().memory()?.resident_bytes;
    let open = Arc::new(OpenCounts::default());
    runtime.block_on(async {
        let mut lanes = JoinSet::new();
        let began = Instant::now();
        while lanes.len() < streams {
            for _ in 0..OPENED_AT_ONCE.min(streams - lanes.len()) {
                let (request, open) = (request.clone(), Arc::clone(&open));
                lanes.spawn(async move {
                    let mut sink = CountSink { reader: TimeReader::default(), is_new: true, open };
                    request.connection().post_into(request.path, &request.body, &mut sink).await
                });
            }
            while open.streams() < lanes.len() {
                ensure_all_open(&mut lanes)?;
                ensure!(began.elapsed() < OPEN_WAIT_MAX, "{} of {streams} streams are open", open.streams());
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        eprintln!("{streams} streams are open after {:.1} s", began.elapsed().as_secs_f64());
        let (events, until, mut open_bytes) = (open.events(), Instant::now() + OPEN_TIME, 0);
        while Instant::now() < until {
            tokio::time::sleep(LOOK).await;
            ensure_all_open(&mut lanes)?;
            open_bytes = server.process().memory()?.resident_bytes.max(open_bytes);
        }
        Ok(OpenStreams { streams, before_bytes, open_bytes, events: open.events() - events })
    })
}

type StreamLanes = JoinSet<anyhow::Result<Option<String>>>;

/// Fails where a stream has ended.
fn ensure_all_open(lanes: &mut StreamLanes) -> anyhow::Result<()> {
    match lanes.try_join_next() {
        None => Ok(()),
        Some(ended) => {
            ended.context("a client panicked")??;
            anyhow::bail!("a stream ended early")
        }
    }
}

#[derive(Debug, Default)]
struct OpenCounts {
    streams: AtomicU64,
    events: AtomicU64,
}

impl OpenCounts {
    /// Streams that had an event.
    fn streams(&self) -> usize {
        usize::try_from(self.streams.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }
}

/// Sink that counts streams with events.
#[derive(Debug)]
struct CountSink {
    reader: TimeReader,
    is_new: bool,
    open: Arc<OpenCounts>,
}

impl Write for CountSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut events = 0;
        self.reader.push(bytes, |_| events += 1);
        self.open.events.fetch_add(events, Ordering::Relaxed);
        if events > 0 && std::mem::replace(&mut self.is_new, false) {
            self.open.streams.fetch_add(1, Ordering::Relaxed);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Raises the limit of open files of this process and those that it starts, as far as streams need it.
pub fn allow_files(streams: usize) -> anyhow::Result<()> {
    let needed = FILES_OF_STREAM * streams as u64 + FILES_OF_OTHERS;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    ensure!(
        maximum.is_none_or(|maximum| maximum >= needed),
        "{streams} streams need {needed} open files, and {maximum:?} are allowed: raise the limit, or use --streams"
    );
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum }).context("raising the limit of open files")
}
